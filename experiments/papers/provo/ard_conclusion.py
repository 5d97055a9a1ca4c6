"""``+exp=ard_conclusion``: how the conclusion of appendix B fares, from the paper's regression to a clean one."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
import xarray as xr
from pydantic import Field

from experiments.cloze.ard.experiment import ARD_COLUMNS, ard
from experiments.cloze.ard.figures import predictor_label
from experiments.cloze.ard.settings import ArdSettings
from experiments.cloze.figures import about
from experiments.cloze.settings import chosen_models
from experiments.harness.result import ExperimentResult, experiment
from experiments.papers.provo.ard_figures import ard_conclusion_figure
from experiments.papers.provo.ard_steps import clean_steps, paper_steps, step_rows
from experiments.papers.provo.quirks import legacy_columns

__all__ = ["ArdConclusionSettings", "ard_conclusion"]

_COLUMNS = ("fit", "engine", *ARD_COLUMNS[1:])


class ArdConclusionSettings(ArdSettings):
    """Settings of :func:`ard_conclusion`."""

    legacy_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the paper's oracles."""


@experiment(ArdConclusionSettings)
def ard_conclusion(study: xr.Dataset, settings: ArdConclusionSettings) -> ExperimentResult:
    """Ask how the paper's conclusion fares, "TVD between oracles matters most": from its regression to a clean one.

    Parameters
    ----------
    study : xarray.Dataset
        A cloze study with counts and models.
    settings : ArdConclusionSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        That of :func:`~experiments.cloze.ard.experiment.ard`, after the rows of scikit-learn's regressions: the paper's
        (``legacy``), ``standardised``, and on clean words ``shared``, ``resplit``, ``disjoint``.

    Examples
    --------
    >>> from experiments import ard_conclusion, provo
    >>> ard_conclusion(provo(root="predict_next_word")).figures["conclusion"]  # doctest: +SKIP
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
    largest = {str(name): float(value) for name, value in main["p_largest"].items()}
    probability, first = largest["oracle_tvd"], max(largest, key=lambda name: largest[name])
    word = "does not hold" if probability < 0.05 else "holds" if probability > 0.95 else "is open"
    said = [
        f'**The paper\'s conclusion "TVD between oracles matters most" {word}** on this model and these contexts: the '
        f"probability that its standardised coefficient is the largest is {probability:.3f}"
        + (f"; that of {predictor_label(first)} is {largest[first]:.3f}" if first != "oracle_tvd" else "")
        + "."
    ]
    by_step: dict[str, dict[str, float]] = {
        str(name): dict(zip(own["predictor"], own["coefficient"], strict=True)) for name, own in table.groupby("fit")
    }
    if {"legacy", "standardised"} <= by_step.keys():
        raw, standard = by_step["legacy"], by_step["standardised"]
        top, top_standard = (max(found, key=lambda name: abs(found[name])) for found in (raw, standard))
        said.append(
            f"Step by step (scikit-learn): with the paper's settings its coefficient is {raw['oracle_tvd']:.4f} per "
            f"unit of TVD (largest: {predictor_label(str(top))}). Per standard deviation, on the same rows, it is "
            f"{standard['oracle_tvd']:.3f} (largest: {predictor_label(str(top_standard))}, "
            f"{standard[top_standard]:.3f})"
            + "".join(
                f"; {text} {by_step[name]['oracle_tvd']:.3f}"
                for name, text in (
                    ("shared", "with clean words and a shared oracle"),
                    ("resplit", "over all splits of the same people"),
                    ("disjoint", "with other people behind it"),
                )
                if name in by_step
            )
            + "."
        )
    if "human_entropy" in main.index:
        draws = dataset["coefficient_draw"].sel(fit="main")
        pair = draws.sel(predictor=["human_entropy", "oracle_tvd"]).to_numpy()
        together = np.corrcoef(pair.T)[0, 1]
        both = np.quantile(pair.sum(axis=1), [0.05, 0.5, 0.95])
        values = dataset["predictor_value"].sel(predictor=["human_entropy", "oracle_tvd"]).to_numpy()
        said.append(
            "Human entropy and the TVD between oracles are two readings of the same thing, how much people disagree "
            f"(correlation over contexts {np.corrcoef(values.T)[0, 1]:.2f}); the data hardly say which of them carries "
            f"the effect (posterior correlation of the two coefficients {together:.2f}), but their sum is known: "
            f"{both[1]:.2f} [{both[0]:.2f}, {both[2]:.2f}] (90%)."
        )
    return "\n\n".join(said)
