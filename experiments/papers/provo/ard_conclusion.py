"""``+exp=ard_conclusion``: how the conclusion of appendix B fares, from the paper's regression to a clean one."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
import xarray as xr
from pydantic import Field

from shannon_game.experiments.cloze.ard.experiment import ARD_COLUMNS, ard
from shannon_game.experiments.cloze.ard.figures import predictor_label
from shannon_game.experiments.cloze.ard.settings import ArdSettings
from shannon_game.experiments.cloze.figures import about
from shannon_game.experiments.cloze.settings import chosen_models
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.papers.provo.ard_figures import ard_conclusion_figure
from shannon_game.experiments.papers.provo.ard_steps import clean_steps, paper_steps, step_rows
from shannon_game.experiments.papers.provo.quirks import legacy_columns

__all__ = ["ArdConclusionSettings", "ard_conclusion"]

_COLUMNS = ("fit", "engine", *ARD_COLUMNS[1:])


class ArdConclusionSettings(ArdSettings):
    """Settings of :func:`ard_conclusion`."""

    legacy_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the paper's oracles."""


@experiment(ArdConclusionSettings)
def ard_conclusion(study: xr.Dataset, settings: ArdConclusionSettings) -> ExperimentResult:
    """Ask how the paper's conclusion fares, "TVD between oracles matters most": from its regression to a clean one.

    The table is that of ``ard`` after the rows of scikit-learn's regressions: the paper's (``legacy``),
    ``standardised``, and on clean words ``shared``, ``resplit``, ``disjoint``.
    """
    models = chosen_models(settings, study)
    steps = clean_steps(study, settings)
    if len(models) == 1:
        legacy = legacy_columns(study, models[0], settings.predictors, seed=settings.legacy_seed)
        steps = [*paper_steps(study, models[0], legacy), *steps]
    found = ard(study, settings)
    columns = [*_COLUMNS[: _COLUMNS.index("n_rows")], "published", "published_bar"]
    columns += [name for name in _COLUMNS if name not in columns]
    bayes = [{"engine": "PyMC", **row} for row in found.table.to_dict("records")]
    table = pd.DataFrame([*step_rows(steps, settings.tail), *bayes], columns=columns)
    figure = ard_conclusion_figure(table, interval=settings.interval, about=about(study, settings.players))
    return replace(
        found,
        table=table,
        figures={**found.figures, "conclusion": figure},
        text=f"{_verdict(table, found.dataset)}\n\n{found.text}",
    )


def _verdict(table: pd.DataFrame, dataset: xr.Dataset) -> str:
    """How "TVD between oracles matters most" fares."""
    main = table[table["fit"] == "main"].set_index("predictor")
    if "oracle_tvd" not in main.index or len(main) < 2:
        return ""
    largest = main["p_largest"].astype(float)
    probability, first = float(largest["oracle_tvd"]), str(largest.idxmax())
    word = "does not hold" if probability < 0.05 else "holds" if probability > 0.95 else "is open"
    other = f"; that of {predictor_label(first)} is {largest[first]:.3f}" if first != "oracle_tvd" else ""
    said = [
        f'**The paper\'s conclusion "TVD between oracles matters most" {word}** on this model and these contexts: the '
        f"probability that its standardised coefficient is the largest is {probability:.3f}{other}."
    ]
    by_step = table.pivot_table("coefficient", "predictor", "fit")
    if {"legacy", "standardised"} <= set(by_step):
        said.append(_step_by_step(by_step))
    if "human_entropy" in main.index:
        said.append(_together(dataset))
    return "\n\n".join(said)


def _step_by_step(coefficient: pd.DataFrame) -> str:
    """Coefficients of the TVD between oracles by step: a row a predictor, a column a step."""
    ours = coefficient.loc["oracle_tvd"]
    top, top_standard = (str(coefficient[step].abs().idxmax()) for step in ("legacy", "standardised"))
    clean = {
        "shared": "with clean words and a shared oracle",
        "resplit": "over all splits of the same people",
        "disjoint": "with other people behind it",
    }
    return (
        f"Step by step (scikit-learn): with the paper's settings its coefficient is {ours['legacy']:.4f} per unit of "
        f"TVD (largest: {predictor_label(top)}). Per standard deviation, on the same rows, it is "
        f"{ours['standardised']:.3f} (largest: {predictor_label(top_standard)}, "
        f"{coefficient['standardised'][top_standard]:.3f})"
        + "".join(f"; {text} {ours[step]:.3f}" for step, text in clean.items() if step in ours)
        + "."
    )


def _together(dataset: xr.Dataset) -> str:
    """Human entropy and the TVD between oracles: their correlations, and the sum of their coefficients."""
    names = ["human_entropy", "oracle_tvd"]
    pair = dataset["coefficient_draw"].sel(fit="main", predictor=names).to_numpy()
    low, middle, high = np.quantile(pair.sum(axis=1), [0.05, 0.5, 0.95])
    values = dataset["predictor_value"].sel(predictor=names).to_numpy()
    return (
        "Human entropy and the TVD between oracles are two readings of the same thing, how much people disagree "
        f"(correlation over contexts {np.corrcoef(values.T)[0, 1]:.2f}). The data hardly say which of them carries the "
        f"effect (posterior correlation of the two coefficients {np.corrcoef(pair.T)[0, 1]:.2f}), but their sum is "
        f"known: {middle:.2f} [{low:.2f}, {high:.2f}] (90%)."
    )
