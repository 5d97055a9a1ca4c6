"""Engines: the posterior of a model, and the language model that gives log-probabilities.

``inference.fit_participants`` and the other names are here, whatever folder they are made in: each is imported when it
is first used, so that ``import inference`` costs nothing.

What lives here:

- ``posterior``: samplers, convergence gates, all groups of a posterior, leave-one-out, files; recovery and
  simulation-based calibration in long loops that can be resumed;
- ``comparison``, ``cloze``, ``guesses``, ``rankings``, ``bets``: what follows from the posteriors of each kind;
- ``lm``: batched scoring of text by language models; ``api``: the same from an endpoint; ``store``: stored results.

What does not: the models themselves (``models``), reading studies, tables and figures (``experiments``).

It may import ``models`` and ``estimators``, nothing above. Only ``posterior.arviz_adapter`` knows versions of ArviZ.
Imports stand at the top of a module: who imports one that fits a model has checked the extra ``bayes`` before. Inside a
function stands only what some callers of a module do without: torch and transformers in ``lm``, the client's packages
in ``api``, and packages that one choice needs (a sampler, joblib, scikit-learn).
"""

import models.notices  # noqa: F401 - before anything imports PyTensor or ArviZ
from models.lazy import public_names

__getattr__, __dir__ = public_names(__name__, __file__, "bayes")
