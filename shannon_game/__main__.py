"""``python -m shannon_game +exp=NAME``: the command, from any folder."""

import sys

from shannon_game.experiments.run import main

sys.exit(main())
