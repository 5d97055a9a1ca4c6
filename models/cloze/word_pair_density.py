r"""Log-density of the model of two samples of words as a function of numbers.

The parameters stand in one vector, on the scale on which PyMC samples them: ``population_mean``, the logarithms of
``population_variance`` and the logit of ``share_equal`` (where contexts are pooled), then ``unit``, ``scale`` and
``unseen``.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from shannon_game.estimators.arrays import FloatArray
from shannon_game.models.cloze.tvd import (
    NODE_LOG_WEIGHTS,
    NODES,
    PARAMETERS,
    WORD_LOG_WEIGHTS,
    WORD_NODES,
    WordPairData,
    WordPairPriors,
)
from shannon_game.models.cloze.word_pair_kernels import log_odds, word_pair_log_density
from shannon_game.models.density import WrittenDensity

# Numba takes named tuples as they are
_Rows = namedtuple("_Rows", "a b words")
_Nodes = namedtuple("_Nodes", "x log_weight word_x word_log_weight")
_Priors = namedtuple("_Priors", "mean sd df scale alpha beta unseen pooled")

_NODES = _Nodes(NODES, NODE_LOG_WEIGHTS, WORD_NODES, WORD_LOG_WEIGHTS)
_START_LOGIT_EQUAL = -1.0
_OF_CONTEXTS = ("log_u", "log_u_equal", "log_odds_equal")


def word_pair_density(
    data: WordPairData, *, pooled: bool = True, priors: WordPairPriors | None = None
) -> WrittenDensity:
    """Log-density of :func:`~shannon_game.models.word_pair_model`, for the counts that the model's data have."""
    p = priors or WordPairPriors()
    mean, sd = p.vectors()
    n, n_contexts = len(PARAMETERS), data.n_contexts
    numbers = (p.population_df, p.population_scale, p.equal_alpha, p.equal_beta, p.unseen)
    known = _Priors(*(mean, sd, *map(float, numbers), pooled))
    population = np.concatenate([mean, 2 * np.log(p.population_scale * sd), [_START_LOGIT_EQUAL]])
    start = np.concatenate([population if pooled else [], np.zeros((n + 2) * n_contexts + 1)])

    def arguments(**given: Any) -> tuple[Any, ...]:
        rows = _Rows(*(np.ascontiguousarray(given[f"row_{name}"], dtype=float) for name in _Rows._fields))
        starts = np.searchsorted(given["row_context"], np.arange(n_contexts + 1))
        return rows, starts, np.ascontiguousarray(given["answers"], dtype=float), _NODES, known

    def expand(x: FloatArray, **given: Any) -> dict[str, Any]:
        return _expanded(x, n_contexts, known, arguments(**given)[:3])

    names = ("row_context", "row_a", "row_b", "row_words", "answers")
    return WrittenDensity(start, word_pair_log_density, arguments, expand, names, jitter=0.3)


def _expanded(x: FloatArray, n_contexts: int, known: Any, counts: tuple[Any, ...]) -> dict[str, Any]:
    """Values of the model's variables at a vector of parameters, deterministic ones too."""
    n, (rows, starts, answers) = len(PARAMETERS), counts
    found: dict[str, Any] = {}
    centre, sd, logit_equal = known.mean, known.sd, 0.0
    if known.pooled:
        variance, logit_equal = np.exp(x[n : 2 * n]), x[2 * n]
        found |= {"population_mean": x[:n], "population_variance": variance}
        found["share_equal"] = 1 / (1 + np.exp(-logit_equal))
        centre, sd = x[:n], np.sqrt(variance)
    rest = x[x.size - 1 - (n + 2) * n_contexts : -1].reshape(n + 2, n_contexts)
    found["unit"], found["scale"], found["unseen"] = rest[:n], rest[n:], x[-1]
    found["theta"] = theta = centre[:, None] + sd[:, None] * rest[:n]
    found["log_u"], found["log_u_equal"] = np.empty((2, 2, n_contexts))
    found["log_odds_equal"] = np.empty(n_contexts)
    log_odds(theta, rest[n:], rows, starts, answers, _NODES, *(found[name] for name in _OF_CONTEXTS))
    found["log_odds_equal"] += logit_equal
    return found
