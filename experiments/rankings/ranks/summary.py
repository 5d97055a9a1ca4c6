"""What the regression of ranks found, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.rankings.ranks.settings import RanksSettings

if TYPE_CHECKING:
    from shannon_game.experiments.rankings.ranks.posterior import Regression


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
        f"- **{row.model}**: expected score {row.expected_score_median:.3f} [{row.expected_score_lower:.3f}, "
        f"{row.expected_score_upper:.3f}], {row.score_per_doubling_median:+.4f} [{row.score_per_doubling_lower:+.4f}, "
        f"{row.score_per_doubling_upper:+.4f}] per doubling of the context (probability of a rise "
        f"{row.p_slope_positive:.2f}); best with probability {row.p_best:.2f}; approximate perplexity "
        f"{row.approximate_perplexity:.1f} (at least {row.perplexity_bound:.1f})."
        for row in rows_of(found.table)
    ]
    parts = [
        "\n".join(lines),
        f"{n_tokens:,} tokens in {found.n_windows} windows; score: {settings.score}; {settings.interval:.0%} "
        f"intervals. Windows are random effects that models share (sd {found.window_spread:.2f} log-odds), with one of "
        f"their own for every model (sd {found.model_window_spread:.2f}). Models' agreement on single tokens is not in "
        "the regression: intervals of their differences err on the wide side.",
    ]
    if found.pairs is not None:
        needed = [
            f"- {row.first} and {row.second}: mean {_needed(row.windows_for_mean)}, slope "
            f"{_needed(row.windows_for_slope)}."
            for row in rows_of(found.pairs)
        ]
        parts += ["Windows that tell two models apart with power 0.8 (5% test of the mean, or of the slope):"]
        parts += ["\n".join(needed)]
    return "\n\n".join(parts)


def _needed(n_windows: float) -> str:
    return "more than were tried" if np.isnan(n_windows) else f"{n_windows:.0f}"
