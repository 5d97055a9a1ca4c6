"""Figures of the loss of humans beside that of models."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray
from omegaconf import DictConfig

from estimators.comparison import HUMAN
from experiments.harness.figures import (
    STYLE,
    TRUTH_ASKED,
    finite_range,
    log_perplexity_axis,
    new_figure,
    player_colours,
    player_label,
)
from experiments.harness.settings import rows_of

__all__ = ["curve_figure", "loss_figure", "sensitivity_figure", "short_name", "top1_figure"]

FloatArray = NDArray[np.float64]

_WITHOUT = "#999999"
_EQUATION5 = "0.55"
_DENSITY_POINTS = 200
_MAX_NAME = 9


def short_name(name: str) -> str:
    """First characters of a long participant's name, enough to find it in the table."""
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


def assumption(cfg: DictConfig, anchor: str) -> str:
    """Say where the scale of the humans' belief comes from."""
    if anchor == "outcomes":
        return "scale from which tokens were true"
    return f"scale assumed, k\N{SUBSCRIPT ZERO} = {cfg.experiment.k0:g}"


def _human_label(row: Any, cfg: DictConfig) -> str:
    text = "humans" if not row.left_out else f"humans, {row.left_out.count(';') + 1} left out"
    # the title says what holds where a row does not
    beside = [assumption(cfg, row.anchor)] if row.anchor != cfg.experiment.anchor else []
    if ", top-1" in row.what:
        beside.append(f"top-1 rate near {row.top1_rate_given:g}")
    text += f"\n{', '.join(beside)}" if beside else ""
    return text if row.converged else f"{text} (not converged)"


def _model_label(row: Any) -> str:
    name = player_label(row.player) if row.rounding == "none" else f"rounded: {row.rounding}"
    return name if row.converged else f"{name} (not converged)"


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
    return table[~table["what"].str.startswith(("without one", "priors:"))]


def loss_figure(table: pd.DataFrame, dataset: xr.Dataset, cfg: DictConfig) -> Figure:
    """Equation 5 and the posterior of models and humans, with the truth where it is known, on a log axis."""
    shown = main_rows(table)
    shown = pd.concat([shown[shown["player"] != HUMAN], shown[shown["player"] == HUMAN]])
    colours = player_colours(list(dict.fromkeys(shown["player"])))
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 1.9 + 0.36 * len(shown) + 0.22 * (shown["player"] == HUMAN).sum())
        axes = fig.add_subplot()
        heights, labels, height, before = [], [], 0.0, None
        for number, row in zip(shown.index, rows_of(shown), strict=True):
            if before is not None and before != row.player:
                height -= 0.6 if row.player == HUMAN else 0.3
            before = row.player
            colour = _WITHOUT if row.left_out else colours[row.player]
            hollow = row.player != HUMAN and row.rounding != "none"
            if row.player == HUMAN and ", top-1" not in row.what:
                draws = dataset["gap_draws_nats"].to_numpy()[number]
                grid, density = _density(draws[np.isfinite(draws)])
                axes.fill_between(
                    np.exp(row.reference_loss_nats + grid),
                    height + 0.12,
                    height + 0.12 + 0.75 * density,
                    color=colour,
                    alpha=0.25,
                    linewidth=0,
                )
            axes.plot(
                [row.perplexity_posterior_lower, row.perplexity_posterior_upper],
                [height + 0.12] * 2,
                color=colour,
                linewidth=2,
            )
            axes.plot(
                row.perplexity_median,
                height + 0.12,
                marker="o",
                color=colour,
                markerfacecolor="white" if hollow else colour,
                markersize=6,
                zorder=4,
            )
            axes.errorbar(
                row.perplexity,
                height - 0.2,
                xerr=[[row.perplexity - row.perplexity_lower], [row.perplexity_upper - row.perplexity]],
                fmt="s",
                color=_EQUATION5,
                markersize=4,
                capsize=2,
                linewidth=1,
            )
            if np.isfinite(row.true_perplexity_asked):
                axes.plot(
                    row.true_perplexity_asked,
                    height,
                    marker="|",
                    markersize=21,
                    markeredgewidth=2.2,
                    color="#CC3311",
                    zorder=5,
                )
            heights.append(height)
            labels.append(_human_label(row, cfg) if row.player == HUMAN else _model_label(row))
            height -= 1.6 if row.player == HUMAN else 1.0
        axes.set_yticks(heights, labels)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(height + 0.8, 0.75)
        log_perplexity_axis(
            axes,
            "x",
            *finite_range(
                shown["perplexity_lower"],
                shown["perplexity_upper"],
                shown["perplexity_posterior_lower"],
                shown["perplexity_posterior_upper"],
                shown["true_perplexity_asked"],
            ),
        )
        axes.set_xlabel("perplexity per token (log scale)")
        fig.suptitle(
            f"Next-token loss of humans and models, {cfg.study.name}\n"
            f"Humans: their shared, de-noised belief; {assumption(cfg, cfg.experiment.anchor)},\n"
            "unless the row says otherwise",
            x=0.01,
            ha="left",
            fontsize=10,
        )
        fig.legend(handles=_loss_handles(cfg), loc="outside lower center", ncols=2)
    return fig


def _loss_handles(cfg: DictConfig) -> list[Any]:
    estimator = cfg.estimator
    return [
        Line2D(
            [], [], marker="o", color="0.2", markersize=6, label=f"report model: median, {cfg.experiment.interval:.0%}"
        ),
        Line2D(
            [], [], marker="o", color="0.2", markerfacecolor="white", markersize=6, label="the same, rounded reports"
        ),
        Line2D(
            [],
            [],
            marker="s",
            color=_EQUATION5,
            markersize=4,
            linewidth=1,
            label=f"equation 5 \N{PLUS-MINUS SIGN} {estimator.n_se:g} se ({estimator.uncertainty})",
        ),
        Line2D(
            [], [], marker="|", color="#CC3311", markersize=14, markeredgewidth=2.2, linestyle="", label=TRUTH_ASKED
        ),
        Patch(color="0.2", alpha=0.25, linewidth=0, label="posterior density"),
    ]


def curve_figure(table: pd.DataFrame, dataset: xr.Dataset, cfg: DictConfig) -> Figure:
    """Gap by the assumed scale, with what the anchors say and the models' true gaps."""
    humans = table[table["player"] == HUMAN].set_index("what")
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 4.4)
        axes = fig.add_subplot()
        k0 = dataset["k0"].to_numpy()
        for what, colour in (("everyone", "#000000"), ("without", _WITHOUT)):
            if what not in dataset["fit"]:
                continue
            low, middle, high = dataset["curve_gap_nats"].sel(fit=what).to_numpy()
            label = (
                "all participants" if what == "everyone" else f"without {short_name(str(humans.loc[what, 'left_out']))}"
            )
            axes.fill_between(k0, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(k0, middle, color=colour, label=f"{label}, if k\N{SUBSCRIPT ZERO} were this")
            row = humans.loc[what]
            if row["anchor"] == "outcomes":
                axes.errorbar(
                    row["k0_median"],
                    row["gap_median_nats"],
                    xerr=[[row["k0_median"] - row["k0_lower"]], [row["k0_upper"] - row["k0_median"]]],
                    yerr=[
                        [row["gap_median_nats"] - row["gap_lower_nats"]],
                        [row["gap_upper_nats"] - row["gap_median_nats"]],
                    ],
                    fmt="o",
                    color=colour,
                    markersize=6,
                    capsize=3,
                    zorder=4,
                    label=f"{label}, k\N{SUBSCRIPT ZERO} from the outcomes",
                )
        if np.isfinite(dataset.attrs["k0_true"]):
            truth = humans["true_gap_nats"].iloc[0]
            axes.plot(dataset.attrs["k0_true"], truth, "*", color="#CC3311", markersize=12, zorder=5, label="truth")
        assumed = humans[humans["anchor"] == "assumed"]
        for row in rows_of(assumed[~assumed.index.str.startswith(("without", "priors"))].iloc[:1]):
            axes.errorbar(
                row.k0_median,
                row.gap_median_nats,
                yerr=[[row.gap_median_nats - row.gap_lower_nats], [row.gap_upper_nats - row.gap_median_nats]],
                fmt="D",
                color="#AA4499",
                markersize=5,
                capsize=3,
                zorder=4,
                label=f"all participants, fitted at k\N{SUBSCRIPT ZERO} = {row.k0_median:g}",
            )
        axes.set_ylim(*_curve_range(humans.reset_index(), dataset))
        _model_lines(axes, dataset)
        axes.set_xscale("log")
        axes.set_xlim(k0.min(), k0.max())
        ticks = [tick for tick in (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5) if k0.min() <= tick <= k0.max() * 1.001]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        axes.set_xlabel("typical slope k\N{SUBSCRIPT ZERO} of reports on the log-odds of the belief")
        axes.set_ylabel(f"loss gap to {player_label(dataset.attrs['generator'])}, nats per token")
        axes.set_title(
            "Reports alone fix the humans' loss only up to k\N{SUBSCRIPT ZERO}: the curve assumes it\n"
            f"(bands and bars {cfg.experiment.interval:.0%}; {cfg.study.name})"
        )
        fig.legend(loc="outside lower center", ncols=2)
    return fig


def _curve_range(humans: pd.DataFrame, dataset: xr.Dataset) -> tuple[float, float]:
    """Range of the gap that shows the anchors and the models; far off, the curve may leave it."""
    main = humans[humans["what"].isin(["everyone", "without", "assumed"])]
    low, high = finite_range(
        main["gap_lower_nats"], main["gap_upper_nats"], main["true_gap_nats"], list(_true_gaps(dataset).values())
    )
    margin = 0.15 * (high - low)
    return low - margin, high + margin


def _true_gaps(dataset: xr.Dataset) -> dict[str, float]:
    prefix = "true_gap_nats_"
    return {name.removeprefix(prefix): float(at) for name, at in dataset.attrs.items() if name.startswith(prefix)}


def _model_lines(axes: Axes, dataset: xr.Dataset) -> None:
    truths = _true_gaps(dataset)
    colours = player_colours(list(truths))
    low, high = axes.get_ylim()
    names: list[list[str]] = []
    for name in sorted(truths, key=lambda model: truths[model]):
        axes.axhline(truths[name], color=colours[name], linewidth=1, linestyle="--", zorder=1)
        # names of lines that nearly coincide share a label
        if names and truths[name] - truths[names[-1][0]] < 0.05 * (high - low):
            names[-1].append(name)
        else:
            names.append([name])
    for group in names:
        axes.annotate(
            "\n".join(player_label(name) for name in reversed(group)),
            (1, float(np.mean([truths[name] for name in group]))),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=colours[group[0]] if len(group) == 1 else "0.3",
            fontsize=8.5,
        )


def top1_figure(table: pd.DataFrame, dataset: xr.Dataset, cfg: DictConfig) -> Figure:
    """How often the belief's most probable token is the true one: implied by the model, and measured."""
    humans = table[table["player"] == HUMAN].set_index("what")
    with mpl.rc_context(STYLE):
        fig = new_figure(6, 3.2)
        axes = fig.add_subplot()
        for what, colour in (("everyone", "#000000"), ("without", _WITHOUT)):
            if what not in dataset["fit"]:
                continue
            draws = dataset["top1_draws"].sel(fit=what).to_numpy()
            rate, count = np.unique(draws[np.isfinite(draws)].round(9), return_counts=True)
            name = (
                "all participants" if what == "everyone" else f"without {short_name(str(humans.loc[what, 'left_out']))}"
            )
            axes.fill_between(rate, count / count.sum(), step="mid", color=colour, alpha=0.3, linewidth=0, label=name)
        observed = cfg.experiment.top1.rate
        if observed is not None:
            axes.axvline(observed, color="#CC3311", label=f"measured: {observed:g} (given in the settings)")
            axes.axvspan(
                observed - cfg.experiment.top1.se,
                observed + cfg.experiment.top1.se,
                color="#CC3311",
                alpha=0.12,
                linewidth=0,
                label="\N{PLUS-MINUS SIGN} 1 se of the soft constraint",
            )
        axes.set_ylim(bottom=0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("share of items whose true token is the most probable of the shared belief")
        axes.set_title(f"A check that does not depend on the scale: top-1 rate ({cfg.study.name})")
        fig.legend(loc="outside lower center", ncols=2)
    return fig


def sensitivity_figure(table: pd.DataFrame, cfg: DictConfig) -> Figure:
    """The gap without each participant, and under other priors."""
    humans = table[table["player"] == HUMAN]
    base = humans[humans["what"] == "everyone"].iloc[0]
    ones = humans[humans["what"] == "without one"].sort_values("gap_median_nats")
    priors = humans[humans["what"].str.startswith("priors:")]
    rows = [*rows_of(humans[humans["what"].isin(["everyone", "without"])]), *rows_of(priors), *rows_of(ones)]
    with mpl.rc_context(STYLE):
        fig = new_figure(6.4, 1.5 + 0.2 * len(rows))
        axes = fig.add_subplot()
        axes.axvspan(base["gap_lower_nats"], base["gap_upper_nats"], color="0.93", linewidth=0)
        axes.axvline(base["gap_median_nats"], color="0.6", linewidth=1)
        labels, heights, height, kind = [], [], 0.0, None
        for row in rows:
            if kind is not None and kind != row.what.split(":")[0] and "without one" in row.what:
                height -= 0.5
            kind = row.what.split(":")[0]
            weak = row.method == "importance weights" and not row.pareto_k_left_out <= _K_BAD
            colour = {"everyone": "#000000", "without": "#000000"}.get(row.what, "#0072B2")
            colour = "#CC79A7" if row.what.startswith("priors:") else colour
            axes.errorbar(
                row.gap_median_nats,
                height,
                xerr=[[row.gap_median_nats - row.gap_lower_nats], [row.gap_upper_nats - row.gap_median_nats]],
                fmt="D" if row.method.startswith("participant") else "o",
                color=colour,
                alpha=0.4 if weak else 1,
                markerfacecolor="white" if weak else colour,
                markersize=4,
                capsize=0,
                linewidth=1.2,
            )
            labels.append(_sensitivity_label(row))
            heights.append(height)
            height -= 1.0
        axes.set_yticks(heights, labels, fontsize=7.5)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(height + 0.4, 0.8)
        axes.set_xlabel("loss gap of the shared belief, nats per token")
        axes.set_title(
            f"Does the result hang on one participant or on the priors?\n({assumption(cfg, cfg.experiment.anchor)}; "
            f"{cfg.study.name}; {cfg.experiment.interval:.0%} intervals)"
        )
        handles = [
            Line2D([], [], marker="o", color="#0072B2", markersize=4, label="importance weights"),
            Line2D([], [], marker="D", color="#0072B2", markersize=4, label="new fit"),
            Line2D(
                [],
                [],
                marker="o",
                color="#0072B2",
                alpha=0.4,
                markerfacecolor="white",
                markersize=4,
                label="weights not reliable (k > 0.7)",
            ),
        ]
        fig.legend(handles=handles, loc="outside lower center", ncols=3)
    return fig


_K_BAD = 0.7


def _sensitivity_label(row: Any) -> str:
    if row.what == "everyone":
        return "all participants"
    if row.what == "without":
        return f"without the unusual: {short_name(row.left_out)}"
    if row.what.startswith("priors:"):
        return f"priors {'half as wide' if row.priors == 'narrow' else 'twice as wide'}"
    return f"without {short_name(row.left_out)}"
