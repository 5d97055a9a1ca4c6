"""``+exp=improve_legacy``: the stored lists of appendix E and the share that they say is needed (figures 11-13)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from estimators.errors import InputError
from experiments.cloze.improve import Curves, Distances, ShareSettings, share_result
from experiments.cloze.settings import groups_of
from experiments.harness.result import ExperimentResult, experiment

__all__ = ["ImproveLegacySettings", "improve_legacy"]


class ImproveLegacySettings(ShareSettings):
    """Settings of :func:`improve_legacy`."""


@experiment(ImproveLegacySettings)
def improve_legacy(study: xr.Dataset, settings: ImproveLegacySettings) -> ExperimentResult:
    """Find the share of contexts that GPT-2 has to answer like a person, from the stored lists of appendix E.

    They are of all 2,687 contexts, of which 798 can be computed again (see :func:`~experiments.papers.provo.tvd`).

    Parameters
    ----------
    study : xarray.Dataset
        Of :func:`~experiments.studies.cloze.provo.provo`, in the layout of the public repository.
    settings : ImproveLegacySettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        One row an estimator and margin.

    Raises
    ------
    InputError
        If the study holds no stored results.

    Examples
    --------
    >>> from experiments import improve_legacy, provo
    >>> improve_legacy(provo(root="predict_next_word"), margins=0.02).table  # doctest: +SKIP
    """
    if "result_name" not in study.dims:
        raise InputError("holds no stored results; improve works for every cloze study", field="study")
    names = study["result_name"].to_numpy().tolist()
    found: Curves = {}
    for kind in ("unbiased", "biased"):
        lists = [f"cal_metrics_improved_model/{share}/tvd_{kind}" for share in (0, 1)]
        if any(name not in names for name in lists):
            raise InputError(f"has no list {lists[0]}", source="study", field="result_name")
        rows = [study["result_list"].to_numpy() == names.index(name) for name in lists]
        model, oracle = (study["result_value"].to_numpy()[its] for its in rows)
        items = study["result_item"].to_numpy()[rows[0]].astype(np.intp)
        found["gpt2", kind] = Distances(model, oracle, groups_of(study, items))
    return share_result(found, settings)
