"""What ``+exp=ard`` found, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.experiments.cloze.ard.figures import FIT_LABELS, predictor_label
from shannon_game.experiments.cloze.ard.settings import ArdSettings
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import for_readers, markdown_table
from shannon_game.inference.progress import counted


def summary(  # noqa: PLR0917 - all that a report needs
    table: pd.DataFrame,
    dataset: xr.Dataset,
    compared: pd.DataFrame,
    checked: pd.DataFrame,
    notes: Sequence[tuple[str, int]],
    settings: ArdSettings,
) -> str:
    """Say which predictors matter, and whether the model can be believed."""
    main, interval = table[table["fit"] == "main"], f"{settings.interval:.0%}"
    lines = [_predictor(row) for row in rows_of(main.sort_values("p_largest", ascending=False))]
    n_left = int(dataset.attrs["n_left_out"])
    left = f" ({counted(n_left, 'context')} with too few answers left out)" if n_left else ""
    measured = [predictor_label(str(name)) for name in dataset["noisy"].to_numpy()]
    error = f"{' and '.join(measured)} entered with their errors of measurement" if measured else "no measurement error"
    best = str(compared["model"].iloc[0])
    outside = ", ".join(str(name) for name in checked.loc[~checked["inside"], "property"])
    parts = [
        "\n".join(lines),
        f"The TVD is that between the model and {settings.target_answers} people on {int(main['n_rows'].iloc[0])} "
        f"contexts{left}; predictors are of {2 * settings.oracle_answers} other people, the model and the context. "
        f"{FIT_LABELS[settings.likelihood]} likelihood, {FIT_LABELS[settings.prior]}, partially pooled groups: "
        f"{dataset.attrs['groups'] or 'none'}; {error}; medians and {interval} intervals. A scale is informed by one "
        "coefficient and its prior, and is no test: relevance is read from the coefficients.",
        f"**{FIT_LABELS.get(best, best)}** predicts best, by leaving out one context at a time (PSIS-LOO, nats; a "
        "difference within two standard errors is none).",
        markdown_table(for_readers(compared.drop(columns="warning"))),
        "Posterior predictive checks of the main fit, observed against drawn from the model: "
        + (f"outside their {interval} intervals: {outside}." if outside else f"all inside their {interval} intervals."),
        markdown_table(for_readers(checked)),
    ]
    if notes:
        parts.append("Left out on the way: " + "; ".join(f"{number:,} {text}" for text, number in notes) + ".")
    return "\n\n".join(parts)


def _predictor(row: Any) -> str:
    scale = f", scale {row.scale:.2f} [{row.scale_lower:.2f}, {row.scale_upper:.2f}]" if np.isfinite(row.scale) else ""
    return (
        f"- **{predictor_label(row.predictor)}**: {row.effect_tvd:+.3f} [{row.effect_tvd_lower:+.3f}, "
        f"{row.effect_tvd_upper:+.3f}] of TVD for one standard deviation; coefficient {row.coefficient:+.3f} "
        f"[{row.lower:+.3f}, {row.upper:+.3f}]{scale}; positive with probability {row.p_positive:.3f}, the largest of "
        f"all with {row.p_largest:.3f}."
    )
