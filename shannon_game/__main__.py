"""``python -m shannon_game +exp=NAME``: the command, from any folder."""

from shannon_game.experiments.run import command

command()
