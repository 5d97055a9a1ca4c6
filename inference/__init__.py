"""Engines: the posterior of a model, and the language model that gives log-probabilities.

Input that cannot be right raises an ``InputError`` of one line, which says place, value and cure.

Names are imported when they are first used, so that ``import shannon_game.inference`` costs nothing. Who imports a
module that fits a model has checked the extra ``bayes`` before. Inside functions stand imports that only some callers
need: torch and transformers in ``lm``, the client's packages in ``api``, and packages that one choice needs.
"""

import shannon_game.models.notices  # noqa: F401 - before anything imports PyTensor or ArviZ
from shannon_game.models.lazy import public_names

__getattr__, __dir__ = public_names(__name__, __file__, "bayes")
