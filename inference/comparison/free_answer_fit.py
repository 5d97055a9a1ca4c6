"""The human loss where people also answered freely: their answers say how large the log-odds of the reports are.

The density is written out (:mod:`models.comparison.free_answer_density`). How its parameters should be turned depends
on how much the reports say of a token, which is another thing for people who report a third of their log-odds and for
people who report twice as much. A first, short chain finds out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.display import Result, interval_rows
from inference.posterior.arviz_adapter import InferenceData, group
from inference.posterior.convergence import Convergence, GateThresholds, check_convergence
from inference.posterior.sampling import CompiledModel, sample, written_model
from models.comparison.free_answer_data import FreeAnswerData
from models.comparison.free_answer_density import TYPICAL, free_answer_density
from models.comparison.free_answers import FreeAnswerPriors, free_answer_model

__all__ = ["FreeAnswerFit", "compile_free_answers", "fit_free_answers"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class FreeAnswerFit(Result):
    """A posterior of the model of free answers and reports.

    Attributes
    ----------
    data : FreeAnswerData
    idata : arviz.InferenceData
    convergence : Convergence
    item_gap_nats : ndarray, shape (draw, item)
        ln g(y)/h(y), chains one after the other.
    k0 : ndarray, shape (draw,)
        Typical slope of the reports on the log-odds of the belief.
    """

    data: FreeAnswerData
    idata: InferenceData
    convergence: Convergence
    item_gap_nats: FloatArray
    k0: FloatArray

    @property
    def gap_nats(self) -> FloatArray:
        """Mean over the items, (draw,)."""
        mean: FloatArray = self.item_gap_nats.mean(axis=1)
        return mean

    def headline(self) -> str:
        """Say the gap and whether to believe it."""
        of = f"{self.data.participant.size} participants, {self.data.item.size} items"
        return (
            f"loss gap {np.median(self.gap_nats):.3f} nats, k0 {np.median(self.k0):.2f}, {of}, convergence "
            f"{self.convergence.headline()}"
        )

    def summary(self) -> pd.DataFrame:
        """Median and 90% interval of the gap and of the slope of the reports."""
        return interval_rows({"gap_nats": self.gap_nats, "k0": self.k0})


def compile_free_answers(
    data: FreeAnswerData,
    priors: FreeAnswerPriors | None = None,
    *,
    equation_6: bool = False,
    seed: int = 0,
    n_first: int = 150,
) -> CompiledModel:
    """Build the model of free answers with its density as it was written out, its parameters turned for these data.

    Parameters
    ----------
    data : FreeAnswerData
        From :func:`models.free_answer_data`.
    priors : FreeAnswerPriors, optional
    equation_6 : bool
        Whether reports may lean against the generator; see :func:`models.free_answer_model`.
    seed : int
    n_first : int
        Draws, and draws of the warm-up, of the first chain, which finds how much the data say; 0 for none. Turned
        otherwise, parameters have the same posterior.

    Returns
    -------
    CompiledModel
        For :func:`inference.sample`.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import designed_study
    >>> data = models.free_answer_data(designed_study())
    >>> program = inference.compile_free_answers(data, n_first=20)
    >>> idata = inference.sample(program, sampler="hmc", draws=20, tune=20, chains=1, progress=False)
    >>> idata.posterior["item_gap_nats"].shape == (1, 20, data.item.size)
    True
    """
    model = free_answer_model(data, priors, equation_6=equation_6)
    program = written_model(model, free_answer_density(data, priors, equation_6=equation_6))
    if n_first < 1:
        return program
    first = sample(program, sampler="hmc", draws=n_first, tune=n_first, chains=1, cores=1, seed=seed, progress=False)
    typical = group(first, "posterior")[list(TYPICAL)].median(["chain", "draw"])
    about = {name: typical[name].to_numpy() for name in TYPICAL}
    return written_model(model, free_answer_density(data, priors, equation_6=equation_6, typical=about))


def fit_free_answers(
    data: FreeAnswerData,
    *,
    priors: FreeAnswerPriors | None = None,
    equation_6: bool = False,
    thresholds: GateThresholds | None = None,
    seed: int = 0,
    **settings: Any,
) -> FreeAnswerFit:
    """Fit the model of free answers and reports.

    Parameters
    ----------
    data : FreeAnswerData
        From :func:`models.free_answer_data`.
    priors : FreeAnswerPriors, optional
    equation_6 : bool
        Whether reports may lean against the generator; see :func:`models.free_answer_model`.
    thresholds : GateThresholds, optional
    seed : int
    **settings
        Of :func:`inference.posterior.sampling.sample`: sampler (here by default ``hmc``), draws, tune, chains, cores,
        target_accept, progress.

    Returns
    -------
    FreeAnswerFit

    Raises
    ------
    InputError
        For unknown settings.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import designed_study
    >>> data = models.free_answer_data(designed_study())
    >>> fit = inference.fit_free_answers(data, draws=50, tune=100, chains=2, seed=1, progress=False)
    >>> fit.gap_nats.shape, list(fit.summary().index)
    ((100,), ['gap_nats', 'k0'])
    """
    program = compile_free_answers(data, priors, equation_6=equation_6, seed=seed)
    idata = sample(program, **{"sampler": "hmc", **settings}, seed=seed)
    posterior = group(idata, "posterior")
    gap = posterior["item_gap_nats"].transpose("chain", "draw", "item").to_numpy()
    return FreeAnswerFit(
        data=data,
        idata=idata,
        convergence=check_convergence(idata, thresholds),
        item_gap_nats=gap.reshape(-1, data.item.size),
        k0=posterior["k0"].transpose("chain", "draw").to_numpy().ravel(),
    )
