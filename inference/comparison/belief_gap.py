r"""The loss gap of a player, draw by draw of the belief model's posterior.

The item's gap is :math:`R_q = \ln \sum_x g(x) e^{v_{qx}}` over the whole vocabulary (:math:`= \ln g(y)/h(y)`, as h sums
to one). In a posterior draw the sum has four parts:

- the target, for which v is 0;
- the tokens asked about, at their observed v, or at a draw of v from the box in which the rounded report puts it;
- the stored candidates that were not asked, at a draw from the posterior predictive;
- the tokens never drawn. Where the generator's whole distribution is known they are, too; elsewhere the tokens drawn
  once stand for them (Good and Turing's idea). Each stand-in *t* of mass :math:`m_t` contributes
  :math:`m_t e^{\mathrm{mean}_t + \sigma\delta}\, E e^e`, with :math:`\delta` the discrepancy on which no answer bears.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.display import Result, interval_rows
from inference.comparison.token_kernels import add_residuals, add_terms, log_sums, predicted, start_sums
from inference.posterior.item_draws import flat_draws
from inference.posterior.sampling import CompiledModel, written_model
from models.comparison import two_piece
from models.comparison.belief import BeliefPriors, belief_model
from models.comparison.belief_data import BeliefData
from models.comparison.belief_density import belief_density

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["BeliefGap", "belief_gap", "compile_belief"]

FloatArray = NDArray[np.float64]

_NEEDED = ("A", "zeta", "s", "sigma", "b", "b2", "d", "t_b", "t_d", "xi", "ga", "delta")


@dataclass(frozen=True, repr=False)
class BeliefGap(Result):
    """Posterior draws of a player's loss gap to the generator.

    Attributes
    ----------
    item : ndarray of int or str, shape (item,)
        Labels.
    item_gap_nats : ndarray, shape (draw, item)
        R_q; chains one after the other.
    """

    item: NDArray[Any]
    item_gap_nats: FloatArray

    @property
    def gap_nats(self) -> FloatArray:
        """Mean over the items, (draw,)."""
        mean: FloatArray = self.item_gap_nats.mean(axis=1)
        return mean

    def interval(self, probability: float) -> tuple[float, float, float]:
        """Median, lower and upper end of the equal-tailed interval of the mean gap, nats."""
        tail = (1 - probability) / 2
        median, lower, upper = np.quantile(self.gap_nats, [0.5, tail, 1 - tail])
        return float(median), float(lower), float(upper)

    def headline(self) -> str:
        """Say the gap."""
        return f"loss gap {np.median(self.gap_nats):.3f} nats over {self.item.size} items"

    def summary(self) -> pd.DataFrame:
        """Median and 90% interval of the mean gap and of each item's, nats."""
        items = {str(label): self.item_gap_nats[:, at] for at, label in enumerate(self.item)}
        return interval_rows({"mean": self.gap_nats, **items})


def compile_belief(data: BeliefData, priors: BeliefPriors | None = None) -> CompiledModel:
    """Build the belief model with its density as it was written out, for several fits.

    :func:`models.comparison.belief.set_answers` then puts other answers into its ``model``, also of other items and
    pairs.

    Parameters
    ----------
    data, priors
        See :func:`models.belief_model`.

    Returns
    -------
    CompiledModel
        For :func:`inference.sample`.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import comparison_study
    >>> data = models.belief_data(comparison_study(), "lm-weak", "interface")
    >>> compiled = inference.compile_belief(data)
    >>> idata = inference.sample(compiled, draws=20, tune=50, chains=1, seed=1, progress=False)
    >>> idata.posterior["A"].shape == (1, 20, data.item.size)
    True
    """
    return written_model(belief_model(data, priors), belief_density(data, priors))


def belief_gap(
    posterior: xr.Dataset, data: BeliefData, rng: np.random.Generator, *, max_cells: int = 2_000_000
) -> BeliefGap:
    """Compute the loss gap of every posterior draw.

    Parameters
    ----------
    posterior : xarray.Dataset
        Dims ``chain``, ``draw`` (and ``item``); variables A, zeta, xi, s (item) and
        sigma, b, b2, d, t_b, t_d, ga, delta.
    data : BeliefData
        What the model was fitted to.
    rng : numpy.random.Generator
        For the tokens whose v is not known.
    max_cells : int
        Draws times tokens that are held at once.

    Returns
    -------
    BeliefGap

    Raises
    ------
    InputError
        If the posterior lacks a variable or is of other items.

    Examples
    --------
    >>> import inference
    >>> import numpy as np
    >>> from inference.comparison.examples import belief_posterior
    >>> posterior, data = belief_posterior()
    >>> gap = inference.belief_gap(posterior, data, np.random.default_rng(0))
    >>> gap.item_gap_nats.shape
    (16, 6)
    """
    flat = flat_draws(posterior, _NEEDED, data.item, source="posterior of the belief model")
    n_draws = flat["A"].shape[0]
    n_tokens = sum(map(len, (data.item, data.pair_item, data.rest_item, data.tail_item)))
    step = max(1, max_cells // n_tokens)
    chunks = [
        _item_gaps({name: values[start : start + step] for name, values in flat.items()}, data, rng)
        for start in range(0, n_draws, step)
    ]
    return BeliefGap(item=data.item, item_gap_nats=np.concatenate(chunks))


def _item_gaps(draws: dict[str, FloatArray], data: BeliefData, rng: np.random.Generator) -> FloatArray:
    """R_q of some draws, (draw, item)."""
    n_draws = len(draws["A"])
    s_left, s_right = draws["s"] * np.exp(draws["ga"]), draws["s"] * np.exp(-draws["ga"])

    place, slope = np.ascontiguousarray(draws["A"]), draws["b"] + draws["t_b"] * draws["zeta"]
    lean, b2 = draws["d"] + draws["t_d"] * draws["xi"], np.ascontiguousarray(draws["b2"][:, 0])

    def mean(item: NDArray[np.intp], log_g: FloatArray, frequency: FloatArray) -> FloatArray:
        token = np.stack([log_g + 5, np.maximum(-log_g - 7, 0), frequency, np.zeros(item.size)])
        return predicted(place, slope, lean, b2, item, token)

    if data.is_raw:
        v = np.tile(data.pair_lower, (n_draws, 1))
    else:
        centre = mean(data.pair_item, data.pair_log_g, data.pair_frequency)
        v = centre + two_piece.draw_inside(
            s_left[:, data.pair_item],
            s_right[:, data.pair_item],
            data.pair_lower - centre,
            data.pair_upper - centre,
            rng,
        )
    one, sums = np.ones(n_draws), start_sums(data.target_log_g, n_draws)
    add_terms(sums, one, v, data.pair_log_g, data.pair_item)
    rest = mean(data.rest_item, data.rest_log_g, data.rest_frequency)
    add_residuals(rest, s_left, s_right, data.rest_item, rng.standard_normal(rest.shape), rng.random(rest.shape))
    add_terms(sums, one, rest, data.rest_log_g, data.rest_item)
    never = mean(data.tail_item, data.tail_log_g, data.tail_frequency)
    # what all never drawn tokens of an item share is a factor of their sum
    shared = two_piece.log_mean_exp(s_left, s_right) + draws["sigma"] * draws["delta"]
    sums[0] -= shared
    add_terms(sums, one, never, np.log(data.tail_mass), data.tail_item)
    sums[0] += shared
    return log_sums(sums)
