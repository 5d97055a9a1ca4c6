"""Draw ``docs/figures/front.png``, people and models in one game, from the rows of ``docs/results``.

python docs/draw_front.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd

from shannon_game.experiments.harness.figures import STYLE, new_figure
from shannon_game.experiments.harness.marks import light_grid, number_ticks, titled

DOCS = Path(__file__).parent
ROWS = {
    "people, reports as given": ("assumed", None, "0"),
    "people, reports rescaled": ("everyone", None, "0"),
    "14M-parameter model": ("14M, rounding interface", "14M interface", "#D55E00"),
    "GPT-2 small": ("gpt2-small, rounding interface", "gpt2-small interface", "#0072B2"),
    "GPT-2 medium": ("gpt2-medium, rounding interface", "gpt2-medium interface", "#009E73"),
}
posterior, known = (pd.read_csv(DOCS / f"results/{name}.csv", index_col="row") for name in ("human_loss", "perplexity"))

with mpl.rc_context(STYLE):
    figure = new_figure(5.2, 2.9)
    axes = figure.subplots()
    for place, (row, of_model, colour) in enumerate(ROWS.values()):
        found = posterior.loc[row]
        ends = found["perplexity_posterior_lower"], found["perplexity_posterior_upper"]
        # comparisons alone give a set, in which no value is best
        axes.hlines(place, *ends, colour, linewidth=9, alpha=0.75)
        if of_model is not None:
            true = known.loc[of_model, "true_perplexity_asked"]
            axes.vlines(true, place - 0.34, place + 0.34, "0", linewidth=2, zorder=3)
            if of_model == "14M interface":
                axes.text(true, place - 0.36, " truth, known for models", va="bottom")
    axes.set_yticks(range(len(ROWS)), ROWS)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(ROWS) - 0.5, -0.6)
    axes.set_xscale("log")
    number_ticks(axes.xaxis, [10, 30, 100, 300, 1000, 3000])
    light_grid(axes, "x")
    axes.set_xlabel("perplexity per token, 90% set\n\N{LEFTWARDS ARROW} predicts better")
    titled(figure, "How well do people and models predict the next token?")
    figure.savefig(DOCS / "figures/front.png", dpi=200)
