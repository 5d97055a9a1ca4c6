"""Draw ``docs/figures/front.png``, people and models in one game, from the rows of ``docs/results``.

python docs/draw_front.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import light_grid, mark, named, number_ticks

DOCS = Path(__file__).parent
ROWS = {
    "people, scale from what came next": ("everyone", None, "0.0"),
    "people, reports at face value": ("assumed", None, "0.45"),
    "14M-parameter model": ("14M, rounding interface", "14M interface", "#d55e00"),
    "GPT-2 small": ("gpt2-small, rounding interface", "gpt2-small interface", "#0072b2"),
    "GPT-2 medium": ("gpt2-medium, rounding interface", "gpt2-medium interface", "#009e73"),
}
posterior, known = (pd.read_csv(DOCS / f"results/{name}.csv", index_col="row") for name in ("human_loss", "perplexity"))

figure = new_figure(6.5, 2.9)
axes = figure.subplots()
for place, (row, of_model, colour) in enumerate(ROWS.values()):
    found = posterior.loc[row]
    axes.hlines(place, found["perplexity_posterior_lower"], found["perplexity_posterior_upper"], colour, linewidth=3)
    axes.plot(found["perplexity_median"], place, "o", color=colour, markersize=8)
    if of_model is not None:
        true = known.loc[of_model, "true_perplexity_asked"]
        axes.vlines(true, place - 0.36, place + 0.36, "#a50026", linewidth=2.5, zorder=3)
axes.set_yticks(range(len(ROWS)), ROWS)
axes.invert_yaxis()
axes.set_xscale("log")
number_ticks(axes.xaxis, [10, 20, 50, 100, 200, 500, 1000, 2000])
light_grid(axes, "x")
axes.spines[["top", "right"]].set_visible(False)
axes.set_xlabel("perplexity per token: lower predicts better")
named(figure, [mark("estimate with 90% interval", "0.3", "o", line="-"), mark("truth, known for models", "#a50026")])
figure.savefig(DOCS / "figures/front.png", dpi=200)
