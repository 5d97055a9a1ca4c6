"""How often people should have answered each token freely, by the posterior of free answers and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.display import Result
from inference.posterior.item_draws import flat_draws, thinned
from models.comparison.free_answers import draw_pool_answers, draws_missed

if TYPE_CHECKING:
    import xarray as xr

    from models.comparison.free_answer_data import FreeAnswerData

__all__ = ["ExpectedAnswers", "expected_answers"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BIN_EDGES = (0.0, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 4.0, np.inf)
"""Of the number of answers expected of one token."""

_N_DRAWS = 500
_MOST = 10.0  # of ln of an expected number of answers, as in the model


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedAnswers(Result):
    """Answers that were given beside those that the posterior expects.

    Attributes
    ----------
    item : ndarray of int or str, shape (token,)
        Item of every token: first the targets, then the other tokens of the pools.
    observed : ndarray of int, shape (token,)
        How often people answered it.
    expected : ndarray, shape (token,)
        Posterior mean of the expected number, given that the token is in the pool.
    predicted : ndarray of int, shape (draw, token)
        Numbers drawn from the posterior.
    """

    item: NDArray[Any]
    observed: IntArray
    expected: FloatArray
    predicted: IntArray

    def headline(self) -> str:
        """Say how many answers there are and how many were expected."""
        return f"{int(self.observed.sum())} free answers to tokens of the pools, {self.expected.sum():.1f} expected"

    def summary(self, interval: float = 0.9) -> pd.DataFrame:
        """One row a bin of the expected number (:data:`BIN_EDGES`); a bin without tokens has none.

        ``n_tokens``; ``mean_expected``, of one token; ``observed``, ``expected``, ``predicted_lower`` and
        ``predicted_upper``, of all of the bin, the last two the equal-tailed predictive interval.
        """
        place = np.digitize(self.expected, BIN_EDGES) - 1
        rows = []
        for number in np.unique(place):
            mine = place == number
            low, high = np.quantile(self.predicted[:, mine].sum(axis=1), [(1 - interval) / 2, (1 + interval) / 2])
            rows.append(
                {
                    "expected_from": BIN_EDGES[number],
                    "expected_to": BIN_EDGES[number + 1],
                    "n_tokens": int(mine.sum()),
                    "mean_expected": float(self.expected[mine].mean()),
                    "observed": int(self.observed[mine].sum()),
                    "expected": float(self.expected[mine].sum()),
                    "predicted_lower": low,
                    "predicted_upper": high,
                }
            )
        return pd.DataFrame(rows)


def expected_answers(posterior: xr.Dataset, data: FreeAnswerData, rng: np.random.Generator) -> ExpectedAnswers:
    r"""Compare free answers with what the posterior expects.

    Of a token that would be a candidate in any case, :math:`n_q h(x)` answers are expected. Another one stands in the
    pool because the generator drew it, or because one of the first :math:`n'_q` answers was this token:

    .. math:: E[c \mid x \in \mathrm{pool}] = \frac{n'_q h(x)}{1 - (1 - g(x))^{m_q} e^{-n'_q h(x)}} + (n_q - n'_q) h(x)

    The posterior has seen these answers; what the comparison shows is whether reports and answers have room in one
    belief.

    Parameters
    ----------
    posterior : xarray.Dataset
        Draws of :func:`models.free_answer_model`.
    data : FreeAnswerData
        To which it was fitted.
    rng : numpy.random.Generator
        Of the predictions.

    Returns
    -------
    ExpectedAnswers

    Raises
    ------
    InputError
        If the posterior is of other items.

    Examples
    --------
    >>> import inference, models
    >>> import numpy as np
    >>> from estimators.comparison.examples import designed_study
    >>> data = models.free_answer_data(designed_study())
    >>> posterior = inference.stand_in_posterior(models.free_answer_model(data)).posterior
    >>> inference.expected_answers(posterior, data, np.random.default_rng(0)).predicted.shape[0]
    16
    """
    few = thinned(posterior, _N_DRAWS)
    ratio = flat_draws(few, ("item_gap_nats", "token_log_ratio"), data.item, source="posterior of free answers")
    at = np.concatenate([np.arange(data.item.size), data.token_item])
    n, entry = (values[at].astype(float) for values in (data.n_answers, data.n_entry))
    h = np.exp(
        np.minimum(np.concatenate([-ratio["item_gap_nats"], ratio["token_log_ratio"]], axis=1) + data.log_g, _MOST)
    )
    # of the target, and of candidates in any case, there is nothing to know from their being there
    not_drawn = np.concatenate([np.zeros(data.item.size), draws_missed(data)])
    in_pool = 1 - not_drawn * np.exp(-entry * h)
    first = entry * h / np.maximum(in_pool, 1e-12)
    predicted = draw_pool_answers(entry * h, not_drawn, rng) + rng.poisson((n - entry) * h)
    return ExpectedAnswers(
        item=data.item[at],
        observed=np.concatenate([data.target_answers, data.token_answers]).astype(np.int64),
        expected=(first + (n - entry) * h).mean(axis=0),
        predicted=predicted,
    )
