"""The experiments: what a user asks of a study, from data to a table, figures, a posterior and a report.

Every experiment is a function of a study and its settings; every loader gives a study::

    from shannon_game import perplexity, simulated

    result = perplexity(simulated(seed=1), rounding="coarse")

The command ``python -m experiments.run +exp=perplexity`` calls the same function behind Hydra. What lives here: one
folder a kind of study, the loaders (``studies``), what repeats the papers (``papers``), what every experiment shares
(``harness``), the command (``run``). What does not: numbers from arrays (``estimators``), probabilistic programs
(``models``), samplers and language models (``inference``). Nothing imports this package.
"""

import sys
from pathlib import Path

import lazy_loader as lazy

_ROOT = str(Path(__file__).resolve().parents[1])
if sys.argv[0] == "-m" and Path(sys.path[0]).resolve() == Path.cwd() != Path(_ROOT):
    # `python -m` looks into the working folder first, where a folder called conf, models or estimators would stand for
    # ours; after ours, the folder still holds the user's own experiments
    sys.path.extend([_ROOT, sys.path.pop(0)])

# names are imported when they are used: a loader of tables should not cost the imports of a sampler
__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
