"""Forest plots of the loss of humans beside that of models."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from estimators.layout import HUMAN
from experiments.comparison.caveats import NOT_RELIED_ON
from experiments.comparison.estimates import EstimatorSettings, bars_label, player_rows
from experiments.harness.figures import (
    LOG_MARGIN,
    STYLE,
    TRUTH_ASKED,
    Series,
    forest,
    log_perplexity_axis,
    new_figure,
    player_label,
)
from experiments.harness.marks import named, titled
from experiments.harness.settings import rows_of
from inference.posterior.model_comparison import K_BAD

__all__ = ["WITHOUT", "loss_figure", "main_rows", "sensitivity_figure"]

FloatArray = NDArray[np.float64]

WITHOUT = "#939393"
"""Colour of analyses that leave participants out."""

_SIMULATED = "participant model, simulated"
_EQUATION5 = "0.55"
_MOST_NATS = np.log(1e6)
"""Where densities end on the page; a posterior without a bound goes on."""
_TRUTH = "#CC3311"
_DENSITY_POINTS = 200


def _assumption(row: Any) -> str:
    """Say where the scale of the humans' belief comes from."""
    if row.anchor == "outcomes":
        return "scale from which tokens were true"
    return f"scale assumed, k\N{SUBSCRIPT ZERO} = {row.k0_median:g}"


def _human_label(row: Any, anchor: str) -> str:
    if row.player != HUMAN:
        return f"{player_label(row.player)}'s belief,\nreported as people do"
    text = "humans" if not row.left_out else f"humans, {row.left_out.count(';') + 1} left out"
    # the title says what holds where a row does not
    beside = [_assumption(row)] if row.anchor != anchor else []
    if ", top-1" in row.what:
        beside.append(f"top-1 rate near {row.top1_rate_given:g}")
    return text + (f"\n{', '.join(beside)}" if beside else "")


def _density(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Kernel density on a grid, highest point 1."""
    spread = min(draws.std(), np.subtract(*np.quantile(draws, [0.75, 0.25])) / 1.34)
    width = max(0.9 * spread * draws.size ** (-0.2), 1e-6)
    low, high = np.quantile(draws, [0.002, 0.998])
    grid = np.linspace(low, high, _DENSITY_POINTS)
    height = np.exp(-0.5 * ((grid[:, None] - draws) / width) ** 2).sum(axis=1)
    return grid, height / height.max()


def main_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the main figure: models, and humans without the sensitivity analysis."""
    simulated_part = (table["method"] == _SIMULATED) & (table["left_out"] != "")
    return table[~table["what"].str.startswith(("without one", "priors:")) & ~simulated_part]


def _everyone(table: pd.DataFrame) -> Any:
    """Row of the headline analysis."""
    return rows_of(table[table["what"] == "everyone"])[0]


def loss_figure(
    table: pd.DataFrame,
    dataset: xr.Dataset,
    study_name: str = "",
    estimator: EstimatorSettings | None = None,
    interval: float = 0.9,
) -> Figure:
    """Equation 5 and the posterior of models and humans, with the truth where it is known, on a log axis."""
    main = _everyone(table)
    shown = player_rows(main_rows(table)).sort_values("player", key=lambda player: player == HUMAN, kind="stable")
    is_human = (shown["player"] == HUMAN).to_numpy()
    labels = [
        (row.label if row.method == "belief model" else _human_label(row, main.anchor)) + _missed(row)
        for row in rows_of(shown)
    ]
    shown = shown.assign(
        label=labels,
        colour=np.where(shown["left_out"] != "", WITHOUT, shown["colour"]),
        hollow=shown["caveat"] != "",
        height=np.where(shown["method"] == "belief model", 1.0, 1.6),
    )
    posterior = Series(
        "perplexity_median",
        "perplexity_posterior_lower",
        "perplexity_posterior_upper",
        label=f"posterior median, {interval:.0%}",
        size=6,
        capsize=0,
        linewidth=2,
        offset=0.12,
    )
    classical = Series(
        "perplexity",
        "perplexity_lower",
        "perplexity_upper",
        label=bars_label(estimator, "importance sampling (equation 5)"),
        marker="s",
        colour=_EQUATION5,
        size=4,
        capsize=2,
        linewidth=1,
        offset=-0.2,
    )
    truth = Series("true_perplexity_asked", label=TRUTH_ASKED, marker="|", colour=_TRUTH, size=21, alpha=0.6)
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 1.9 + 0.36 * len(shown) + 0.22 * is_human.sum())
        axes = fig.add_subplot()
        heights = forest(axes, shown, [posterior, classical, truth], scale="log")
        draws = dataset["gap_draws_nats"].to_numpy()
        # the bars and what the axis leaves beside them, then the densities
        low, high = axes.get_xlim()
        ends = [low * LOG_MARGIN, high / LOG_MARGIN]
        for at, row, height in zip(shown.index, rows_of(shown), heights, strict=True):
            if row.player == HUMAN and ", top-1" not in row.what:
                grid, density = _density(draws[at][np.isfinite(draws[at])])
                perplexity = np.exp(np.minimum(row.reference_loss_nats + grid, _MOST_NATS))
                ends += perplexity[[0, -1]].tolist()
                axes.fill_between(
                    perplexity,
                    height + 0.12,
                    height + 0.12 + 0.75 * density,
                    color=row.colour,
                    alpha=0.25,
                    linewidth=0,
                )
        log_perplexity_axis(axes, "x", min(ends), max(ends))
        axes.set_ylim(top=1.0 if is_human[0] else 0.7)
        axes.set_xlabel("perplexity per token (log scale)")
        titled(
            fig,
            f"Perplexity of humans and models ({study_name})\n"
            f"Humans: their shared, de-noised belief; {_assumption(main)},\n"
            "unless the row says otherwise",
            size=10,
        )
        doubtful = [posterior.handle(hollow=True, label=NOT_RELIED_ON)] if shown["hollow"].any() else []
        density_patch = Patch(color="0.2", alpha=0.25, linewidth=0, label="posterior density")
        others = [each.handle() for each in (classical, truth) if each.is_in(shown)]
        named(fig, [posterior.handle(), *doubtful, *others, density_patch], 2)
    return fig


def sensitivity_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """The gap without each participant, and under other priors."""
    base = _everyone(table)
    humans = table[table["player"] == HUMAN]
    what = humans["what"]
    shown = pd.concat(
        [
            humans[what.isin(["everyone", "without"])],
            humans[what.str.startswith("priors:")],
            humans[what == "without one"].sort_values("gap_median_nats"),
        ]
    )
    what = shown["what"]
    weak = (shown["method"] == "importance weights") & ~(shown["pareto_k_left_out"] <= K_BAD)
    colour = np.where(what.isin(["everyone", "without"]), "#000000", "#0072B2")
    shown = shown.assign(
        label=[_sensitivity_label(row) for row in rows_of(shown)],
        group=what == "without one",
        colour=np.where(what.str.startswith("priors:"), "#CC79A7", colour),
        marker=np.where(shown["method"].str.startswith("participant"), "D", "o"),
        alpha=np.where(weak, 0.4, 1.0),
        hollow=weak,
    )
    series = Series(
        "gap_median_nats", "gap_lower_nats", "gap_upper_nats", marker=None, size=4, capsize=0, linewidth=1.2
    )
    with mpl.rc_context(STYLE):
        fig = new_figure(6.4, 1.5 + 0.2 * len(shown))
        axes = fig.add_subplot()
        axes.axvspan(base.gap_lower_nats, base.gap_upper_nats, color="0.93", linewidth=0)
        axes.axvline(base.gap_median_nats, color="0.55", linewidth=1)
        forest(axes, shown, [series])
        axes.tick_params(axis="y", labelsize=7.5)
        axes.set_xlabel("loss gap of the shared belief, nats per token")
        axes.set_title(
            f"Does the result hang on one participant or on the priors?\n({_assumption(base)}; "
            f"{study_name}; {interval:.0%}, {NOT_RELIED_ON})"
        )
        looks = (("o", 1.0, "importance weights"), ("D", 1.0, "new fit"), ("o", 0.4, "weights not reliable (k > 0.7)"))
        handles = [
            Series("", "", label=label, marker=marker, alpha=alpha, size=4).handle(hollow=alpha < 1, colour="#0072B2")
            for marker, alpha, label in looks
        ]
        named(fig, handles)
    return fig


def _sensitivity_label(row: Any) -> str:
    if row.what == "everyone":
        label = "all participants"
    elif row.what == "without":
        label = f"without the unusual: {row.left_out_label}"
    elif row.what.startswith("priors:"):
        label = f"priors {'half as wide' if row.priors == 'narrow' else 'twice as wide'}"
    else:
        label = f"without {row.left_out_label}"
    # weights that are no good have a look of their own
    return label + _missed(row) if row.method.startswith("participant") else label


def _missed(row: Any) -> str:
    """Say where a fit missed the gate."""
    return "" if row.converged else " (not converged)"
