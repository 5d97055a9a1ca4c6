"""Probabilistic programs: data in, a PyMC model out, with named dims and coords.

A module ``NAME_data`` makes what the model in ``NAME`` is fitted to. Names are imported when they are first used, so
that ``import shannon_game.models`` costs nothing. A module that builds a model imports PyMC at its top: whoever imports
it has checked the extra ``bayes``. Modules of data need NumPy only. Examples of docstrings take NumPy, this package and
the kinds of ``shannon_game.estimators`` for imported.
"""

import shannon_game.models.notices  # noqa: F401 - before any model imports PyTensor
from shannon_game.models.lazy import public_names

__getattr__, __dir__ = public_names(__name__, __file__, "bayes")
