"""What ``+exp=ard`` found, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from omegaconf import DictConfig

from experiments.cloze.ard.figures import FIT_LABELS, predictor_label
from experiments.cloze.ard.settings import LadderStep
from experiments.harness.settings import rows_of
from experiments.harness.tables import markdown_table

__all__ = ["legacy_summary", "summary"]


def legacy_summary(table: pd.DataFrame) -> str:
    """Say what the paper's regression gives, and why its sizes are no relevance."""
    raw = table[table["fit"] == "legacy"].set_index("predictor")
    standard = table[table["fit"] == "standardised"].set_index("predictor")
    given = "; ".join(
        f"{predictor_label(str(name))} {row['coefficient']:.4f}"
        + (f" (paper {row['published']:.3f})" if np.isfinite(row["published"]) else "")
        for name, row in raw.iterrows()
    )
    rescaled = "; ".join(f"{predictor_label(str(name))} {row['coefficient']:.3f}" for name, row in standard.iterrows())
    first, second = (str(frame["coefficient"].abs().idxmax()) for frame in (raw, standard))
    return (
        f"scikit-learn's ARDRegression with the paper's settings, on {int(raw['n_rows'].iloc[0])} contexts: {given}. "
        f"The largest is that of **{predictor_label(first)}**. These are changes of the TVD per unit of each predictor "
        "(and units differ: a TVD between oracles moves within 0 and 1, an entropy over several nats). Per standard "
        f"deviation they are: {rescaled}; the largest is that of **{predictor_label(second)}**.\n\n"
        + (
            "The paper's coefficients are from all 2,687 contexts, with terms for the part of speech; the model's "
            "samples are public for fewer. "
            if raw["published"].notna().any()
            else ""
        )
        + "The paper's figure draws 2 / lambda around each coefficient, twice the variance of a prior; the "
        "table has it as `published_bar` beside the posterior standard deviation `sd`. Oracle 1 is in the target and "
        "in the TVD between oracles: `mode=clean` takes other people for each."
    )


def summary(  # noqa: PLR0917 - all that a report needs
    table: pd.DataFrame,
    dataset: xr.Dataset,
    compared: pd.DataFrame,
    checked: pd.DataFrame,
    steps: Sequence[LadderStep],
    notes: Sequence[tuple[str, int]],
    cfg: DictConfig,
) -> str:
    """Say which predictors matter, how the paper's conclusion fares, and whether the model can be believed."""
    main = table[table["fit"] == "main"]
    interval = f"{cfg.experiment.interval:.0%}"
    lines = [
        f"- **{predictor_label(row.predictor)}**: {row.effect_tvd:+.3f} [{row.effect_tvd_lower:+.3f}, "
        f"{row.effect_tvd_upper:+.3f}] of TVD for one standard deviation; coefficient {row.coefficient:+.3f} "
        f"[{row.lower:+.3f}, {row.upper:+.3f}]"
        + (f", scale {row.scale:.2f} [{row.scale_lower:.2f}, {row.scale_upper:.2f}]" if np.isfinite(row.scale) else "")
        + f"; positive with probability {row.p_positive:.3f}, the largest of all with {row.p_largest:.3f}."
        for row in rows_of(main.sort_values("p_largest", ascending=False))
    ]
    n_left = int(dataset.attrs["n_left_out"])
    left = f" ({n_left} contexts with too few answers are left out)" if n_left else ""
    settings = cfg.experiment
    measured = [predictor_label(str(name)) for name in dataset["noisy"].to_numpy()]
    error = f"{' and '.join(measured)} entered with their errors of measurement" if measured else "no measurement error"
    groups = str(dataset.attrs["groups"]) or "none"
    parts = [
        f"TVD between the model and {settings.target_answers} people on {int(main['n_rows'].iloc[0])} contexts{left}, "
        f"explained by predictors from {2 * int(settings.oracle_answers)} other people, the model and the context; "
        f"{FIT_LABELS[settings.likelihood]} likelihood, {FIT_LABELS[settings.prior]}, partially pooled groups: "
        f"{groups}; {error}. Medians and {interval} intervals of the posterior:",
        "\n".join(lines),
        "A scale is informed by its one coefficient and its prior alone: it says in what range the coefficient lies, "
        "and is no test. Relevance is read from the coefficients.",
        *_verdict(table, dataset, steps),
        _loo_text(compared),
        markdown_table(compared.drop(columns="warning")),
        _check_text(checked, interval),
        markdown_table(checked),
    ]
    if notes:
        parts.append("Left out on the way: " + "; ".join(f"{number:,} {text}" for text, number in notes) + ".")
    return "\n\n".join(parts)


def _verdict(table: pd.DataFrame, dataset: xr.Dataset, steps: Sequence[LadderStep]) -> list[str]:
    """How "TVD between oracles matters most" fares."""
    main = table[table["fit"] == "main"].set_index("predictor")
    if "oracle_tvd" not in main.index or len(main) < 2:
        return []
    largest = {str(name): float(value) for name, value in main["p_largest"].items()}
    probability, first = largest["oracle_tvd"], max(largest, key=lambda name: largest[name])
    word = "does not hold" if probability < 0.05 else "holds" if probability > 0.95 else "is open"
    said = [
        f'**The paper\'s conclusion "TVD between oracles matters most" {word}** on this model and these contexts: the '
        f"probability that its standardised coefficient is the largest is {probability:.3f}"
        + (f"; that of {predictor_label(first)} is {largest[first]:.3f}" if first != "oracle_tvd" else "")
        + "."
    ]
    by_step = {step.name: dict(zip(step.predictors, step.coefficient.tolist(), strict=True)) for step in steps}
    if {"legacy", "standardised"} <= by_step.keys():
        raw, standard = by_step["legacy"], by_step["standardised"]
        top, top_standard = (max(found, key=lambda name: abs(found[name])) for found in (raw, standard))
        said.append(
            f"Step by step (scikit-learn): with the paper's settings its coefficient is {raw['oracle_tvd']:.4f} per "
            f"unit of TVD (largest: {predictor_label(top)}). Per standard deviation, on the same rows, it is "
            f"{standard['oracle_tvd']:.3f} (largest: {predictor_label(top_standard)}, {standard[top_standard]:.3f})"
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
    return said


def _loo_text(compared: pd.DataFrame) -> str:
    first = str(compared["model"].iloc[0])
    return (
        "Leaving out one context at a time (PSIS-LOO; expected log predictive density in nats, higher is better, and "
        f"its difference to the best with a paired standard error), the fits predict in this order, the best being "
        f"**{FIT_LABELS.get(first, first)}**. A difference within two standard errors is none."
    )


def _check_text(checked: pd.DataFrame, interval: str) -> str:
    outside = [str(name) for name in checked.loc[~checked["inside"], "property"]]
    found = (
        f"outside their {interval} intervals: {', '.join(outside)}"
        if outside
        else f"all inside their {interval} intervals"
    )
    return f"Posterior predictive checks of the main fit, observed against drawn from the model: {found}."
