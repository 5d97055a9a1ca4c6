"""What ``+exp=ard`` found, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from experiments.cloze.ard.figures import FIT_LABELS, predictor_label
from experiments.cloze.ard.settings import ArdSettings
from experiments.harness.settings import rows_of
from experiments.harness.tables import for_readers, markdown_table
from inference.progress import counted

__all__ = ["summary"]


def summary(  # noqa: PLR0917 - all that a report needs
    table: pd.DataFrame,
    dataset: xr.Dataset,
    compared: pd.DataFrame,
    checked: pd.DataFrame,
    notes: Sequence[tuple[str, int]],
    settings: ArdSettings,
) -> str:
    """Say which predictors matter, and whether the model can be believed."""
    main = table[table["fit"] == "main"]
    interval = f"{settings.interval:.0%}"
    lines = [
        f"- **{predictor_label(row.predictor)}**: {row.effect_tvd:+.3f} [{row.effect_tvd_lower:+.3f}, "
        f"{row.effect_tvd_upper:+.3f}] of TVD for one standard deviation; coefficient {row.coefficient:+.3f} "
        f"[{row.lower:+.3f}, {row.upper:+.3f}]"
        + (f", scale {row.scale:.2f} [{row.scale_lower:.2f}, {row.scale_upper:.2f}]" if np.isfinite(row.scale) else "")
        + f"; positive with probability {row.p_positive:.3f}, the largest of all with {row.p_largest:.3f}."
        for row in rows_of(main.sort_values("p_largest", ascending=False))
    ]
    n_left = int(dataset.attrs["n_left_out"])
    left = f" ({counted(n_left, 'context')} with too few answers left out)" if n_left else ""
    measured = [predictor_label(str(name)) for name in dataset["noisy"].to_numpy()]
    error = f"{' and '.join(measured)} entered with their errors of measurement" if measured else "no measurement error"
    groups = str(dataset.attrs["groups"]) or "none"
    parts = [
        f"TVD between the model and {settings.target_answers} people on {int(main['n_rows'].iloc[0])} contexts{left}, "
        f"explained by predictors from {2 * settings.oracle_answers} other people, the model and the context; "
        f"{FIT_LABELS[settings.likelihood]} likelihood, {FIT_LABELS[settings.prior]}, partially pooled groups: "
        f"{groups}; {error}. Medians and {interval} intervals of the posterior:",
        "\n".join(lines),
        "A scale is informed by its one coefficient and its prior alone: it says in what range the coefficient lies, "
        "and is no test. Relevance is read from the coefficients.",
        _loo_text(compared),
        markdown_table(for_readers(compared.drop(columns="warning"))),
        _check_text(checked, interval),
        markdown_table(for_readers(checked)),
    ]
    if notes:
        parts.append("Left out on the way: " + "; ".join(f"{number:,} {text}" for text, number in notes) + ".")
    return "\n\n".join(parts)


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
