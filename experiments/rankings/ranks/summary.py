"""What the regression of ranks found, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.harness.settings import rows_of
from experiments.rankings.ranks.settings import RanksSettings

if TYPE_CHECKING:
    from experiments.rankings.ranks.posterior import Regression

__all__ = ["check_warnings", "summary"]


def check_warnings(checks: pd.DataFrame) -> tuple[str, ...]:
    """Warn of what the data have and the regression does not predict."""
    unlike = [
        f"{row.statistic} ({row.observed:.3f}, p {row.p_value:.3f})" for row in rows_of(checks) if row.p_value < 0.01
    ]
    if not unlike:
        return ()
    return (f"the data are unlike what the regression predicts in: {', '.join(unlike)}",)


def summary(settings: RanksSettings, found: Regression, n_tokens: int) -> str:
    """Say what the regression says of every model, and what a study needs to tell two apart."""
    lines = [
        f"- **{row.model}**: expected score {row.expected_score_median:.3f} "
        f"[{row.expected_score_lower:.3f}, {row.expected_score_upper:.3f}], "
        f"{row.score_per_doubling_median:+.4f} "
        f"[{row.score_per_doubling_lower:+.4f}, {row.score_per_doubling_upper:+.4f}] "
        f"per doubling of the context (probability of a rise {row.p_slope_positive:.2f}); best with probability "
        f"{row.p_best:.2f}; approximate perplexity {row.approximate_perplexity:.1f} "
        f"(at least {row.perplexity_bound:.1f})."
        for row in rows_of(found.table)
    ]
    parts = [
        f"{n_tokens:,} tokens in {found.n_windows} windows; score: {settings.score}; intervals hold "
        f"{settings.interval:.0%} of the posterior. A window is a random effect that models share (sd "
        f"{found.window_spread:.2f} log-odds), with one of its own for every model (sd "
        f"{found.model_window_spread:.2f}). Agreement of models on single tokens is not in the regression, so that "
        "intervals of differences between models err on the wide side.",
        "\n".join(lines),
    ]
    if found.pairs is not None:
        needed = []
        for row in rows_of(found.pairs):
            of_row = [
                f"{name} {'more than were tried' if np.isnan(n) else f'{n:.0f}'}"
                for name, n in (("mean", row.windows_for_mean), ("slope", row.windows_for_slope))
            ]
            needed.append(f"- {row.first} and {row.second}: {', '.join(of_row)}.")
        parts += [
            "Windows that a study needs to tell two models apart with power .8 (5% test of the mean, or of the slope):",
            "\n".join(needed),
        ]
    return "\n\n".join(parts)
