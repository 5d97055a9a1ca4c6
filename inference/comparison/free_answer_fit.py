"""The human loss where people also answered freely: their answers say how large the log-odds of the reports are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.display import Result, interval_rows
from inference.posterior.arviz_adapter import InferenceData, group
from inference.posterior.convergence import Convergence, GateThresholds, check_convergence
from inference.posterior.sampling import compile_model, sample
from models.comparison.free_answer_data import FreeAnswerData
from models.comparison.free_answers import FreeAnswerPriors, free_answer_model

__all__ = ["FreeAnswerFit", "fit_free_answers"]

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
        Of :func:`inference.posterior.sampling.sample`: sampler, draws, tune, chains, cores, target_accept, progress.

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
    model = free_answer_model(data, priors, equation_6=equation_6)
    program = compile_model(model) if settings.get("sampler", "nutpie") == "nutpie" else model
    idata = sample(program, **settings, seed=seed)
    posterior = group(idata, "posterior")
    gap = posterior["item_gap_nats"].transpose("chain", "draw", "item").to_numpy()
    return FreeAnswerFit(
        data=data,
        idata=idata,
        convergence=check_convergence(idata, thresholds),
        item_gap_nats=gap.reshape(-1, data.item.size),
        k0=posterior["k0"].transpose("chain", "draw").to_numpy().ravel(),
    )
