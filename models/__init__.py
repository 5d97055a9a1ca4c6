"""Probabilistic programs: data in, a PyMC model out, with named dims and coords.

``models.participant_model`` and the other names are here, whatever folder they are made in: each is imported when it is
first used, so that ``import models`` costs nothing. ``estimators.comparison.examples``, and so for the other kinds, has
a small study to try them on.

What lives here, by kind of study; a module ``NAME_data`` makes what the model in ``NAME`` is fitted to:

- ``comparison``: the belief of one player without noise (``belief``), participants with a shared belief
  (``participants``), reliability curves (``calibration``), how reports come about (``report_process``);
- ``bets``: what stakes on next words are worth (``recalibration``);
- ``guesses``: top-1 accuracy of people (``accuracy``);
- ``cloze``: what a distance between people and models depends on (``ard``), the distance between two samples (``tvd``);
- ``rankings``: rank scores against context length (``slopes``).

What does not: sampling and convergence checks (``inference``), figures and files (``experiments``),
numbers that need no model (``estimators``).

It may import ``estimators``, nothing above. Imports stand at the top of a module. A module that builds a model imports
PyMC there, and whoever imports it by a name from a config has checked the extra ``bayes`` before; a module of data
needs NumPy only. An observed variable, or a potential that :class:`models.outside.OutsideLikelihood` describes, says of
every model what its data are; :func:`inference.complete` makes all groups of a posterior from it.
"""

import models.notices  # noqa: F401 - before any model imports PyTensor
from models.lazy import public_names

__getattr__, __dir__ = public_names(__name__, __file__, "bayes")
