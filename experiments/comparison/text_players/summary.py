"""What the players of the text said, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from shannon_game.experiments.comparison.text_players.settings import TextPlayersSettings
from shannon_game.experiments.harness.settings import rows_of

__all__ = ["summary"]

_WAYS = {
    "verbalised": "writes one of the eleven values",
    "boxes": "gives each of the eleven values a probability as its answer, of which the mean counts, averaged over "
    "both orders",
    "options": "gives A and B their probabilities as first token of an answer, averaged over both orders",
}


def summary(table: pd.DataFrame, settings: TextPlayersSettings, costs: Sequence[str]) -> str:
    """Say how each player answered, and how far that is from what it believes."""
    how = "greedy" if settings.temperature == 0 else f"temperature {settings.temperature:g}"
    lines = []
    for row in rows_of(table[table["rounding"] == "none"]):
        interval = f"{row.perplexity:.1f} [{row.perplexity_lower:.1f}, {row.perplexity_upper:.1f}]"
        value = interval if np.isfinite(row.perplexity) else "not known"
        if row.way not in _WAYS:
            own = "by its own probabilities" if row.way == "belief" else "which says nothing"
            who = "**people**" if row.way == "people" else f"**{row.player}**, {own}"
            lines.append(f"- {who}: perplexity {value}.")
            continue
        text = f"- **{row.player}** {_WAYS[row.way]}: perplexity {value}"
        n_readable = int(row.n_questions - row.n_unreadable)
        text += f"; {n_readable:,} of {int(row.n_questions):,} answers can be read"
        if np.isfinite(row.position_bias_nats):
            text += f"; it leans to A by {row.position_bias_nats:+.2f} nats"
        if np.isfinite(row.slope):
            text += (
                f"; of each nat that it believes it says {row.slope:.2g} (se {row.slope_se:.2g}), prefers the token "
                f"that it believes in on {row.agreement:.0%} of pairs, and is {row.distance_nats:.2f} nats off on "
                "average"
            )
        lines.append(text + ".")
    about = (
        f"Every pair of tokens was asked in both orders, by the prompt `{settings.prompt.name}` ({how}). Equal strings "
        "are answered 50%, as the game does. Perplexities are of equation 5, which noise and rounding make too high, "
        "and few pairs an item too low."
    )
    return "\n\n".join([about, "\n".join(lines), *dict.fromkeys(costs)])
