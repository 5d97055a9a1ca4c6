"""Figures of human loss, of its table and dataset: perplexities, the gap by the assumed scale, and what it hangs on."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.comparison.estimates import XLABEL, player_rows
from shannon_game.experiments.comparison.human_loss.analyses import FITTED, KIND, SENSITIVITY, Analysis, main_rows
from shannon_game.experiments.harness.figures import (
    TRUTH_ASKED,
    Series,
    finite_range,
    new_figure,
    player_colours,
    player_label,
)
from shannon_game.experiments.harness.marks import arms, curve, number_ticks
from shannon_game.experiments.harness.plots import forest_figure, styled, without_y
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.comparison.anchors import KINDS

_LEFT_OUT, _TRUTH, _PRIORS, _ONE = "#939393", "#CC3311", "#CC79A7", "#0072B2"
_POINTS = ("#000000", "#AA4499", "#0072B2", "#117733")
_SHOWN = (
    (Analysis.EVERYONE.pattern, "#000000", "humans"),
    (Analysis.WITHOUT.pattern, _LEFT_OUT, "humans, some left out"),
)
_WIDEST = 34
_GAP_OF = "true_gap_nats_"
_SCALES = (0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10)


def human_loss_figures(table: pd.DataFrame, dataset: xr.Dataset) -> dict[str, Figure]:
    """Every figure that these rows allow."""
    drawn = {"human_loss": loss_figure(table, dataset)}
    if "fit" in dataset.dims:
        drawn |= {"k0_curve": curve_figure(table, dataset), "top1": top1_figure(dataset)}
    if table[KIND].isin([Analysis.PRIORS]).any():
        drawn["sensitivity"] = sensitivity_figure(table, dataset)
    return drawn


def exact_gaps(dataset: xr.Dataset) -> dict[str, float]:
    """Exact gaps of the language models, the largest first."""
    return {str(name).removeprefix(_GAP_OF): gap for name, gap in dataset.attrs.items() if _GAP_OF in str(name)}


def people_label(row: Any) -> str:
    """Say who, and where the scale of their belief comes from."""
    if row.kind is Analysis.BRIDGE:
        return f"humans, {row.analysis}"
    who = "humans" if not row.left_out else f"humans, {row.left_out.count(';') + 1} left out"
    who = f"humans, {row.analysis}" if row.kind in (Analysis.CAMP, Analysis.POOLED) else who
    who += ", no shared bias" if row.kind is Analysis.NO_SHARED_BIAS else ""
    how = KINDS[row.anchor].label.format(row.k0_median)
    return f"{who}, {how}" + (f", top-1 rate near {row.top1_rate_given:g}" if row.top1_rate_given > 0 else "")


def _missed(row: Any) -> str:
    return "" if row.converged else " (check failed)"


def loss_figure(table: pd.DataFrame, dataset: xr.Dataset) -> Figure:
    """Posterior and equation 5 of people and language models, with the truth where it is known, on a log axis."""
    rows, about = player_rows(main_rows(table)), dataset.attrs
    labels = [(people_label(row) if row.player == HUMAN else row.label) + _missed(row) for row in rows_of(rows)]
    colour = np.where(rows["left_out"] != "", _LEFT_OUT, rows["colour"])
    rows = rows.assign(label=[fill(label, _WIDEST) for label in labels], colour=colour)
    rows["hollow"] = ~rows["converged"].astype(bool)
    ends = ("perplexity_median", "perplexity_posterior_lower", "perplexity_posterior_upper")
    # comparisons alone, whose noise says nothing of people one by one, give a set in which no value is best
    alone = rows[KIND].isin(FITTED) & rows["individual_gap_upper_median_nats"].isna()
    alone &= rows[ends[1]] < rows[ends[2]]
    rows = rows.assign(**{f"set_{name}": rows[name].where(alone) for name in ends})
    rows = rows.assign(**{name: rows[name].where(~alone) for name in ends})
    bar = f"comparisons alone: {about['interval']:.0%} set"
    only = Series(*(f"set_{name}" for name in ends), label=bar, size=0, linewidth=5, capsize=0, offset=0.12)
    median = f"posterior median, {about['interval']:.0%}"
    posterior = Series(*ends, label=median, size=6, linewidth=2, capsize=0, offset=0.12)
    ends = ("perplexity", "perplexity_lower", "perplexity_upper")
    look: dict[str, Any] = {"size": 4, "capsize": 2, "linewidth": 1, "offset": -0.2}
    classical = Series(*ends, label=about["equation_5"], marker="s", colour="0.55", **look)
    truth = Series("true_perplexity_asked", label=TRUTH_ASKED, marker="|", colour=_TRUTH, size=18, alpha=0.6)
    failed = (rows["hollow"] & ~alone).any()
    missed = [posterior.handle(hollow=True, label="check failed: not to be used")] if failed else []
    handles = [*(each.handle() for each in (posterior, only, classical, truth) if each.is_in(rows)), *missed]
    title = "What perplexity do people have?"
    shape: dict[str, Any] = {"row_height": 0.5, "scale": "log", "columns": 2, "handles": handles}
    return forest_figure(rows, [posterior, only, classical, truth], XLABEL, title, about["study"], **shape)


@styled
def curve_figure(table: pd.DataFrame, dataset: xr.Dataset) -> Figure:
    """Gap by the assumed scale, with what the anchors say and the models' exact gaps."""
    k0, exact = dataset["k0"].to_numpy(), exact_gaps(dataset)
    fits = main_rows(table[table[KIND].isin(FITTED) & (table["player"] == HUMAN)])
    fits = fits[fits["top1_rate_given"].isna() & fits["k0_median"].notna()]
    fig = new_figure(6.8, 4.4)
    axes = fig.add_subplot()
    for what, colour, who in _SHOWN:
        if what in dataset["fit"]:
            band = dataset["curve_gap_nats"].sel(fit=what)
            curve(axes, k0, band, colour, alpha=0.18, label=f"{who}, if k\N{SUBSCRIPT ZERO} were this")
    for row, colour in zip(rows_of(fits), _POINTS, strict=False):
        axes.errorbar(
            row.k0_median,
            row.gap_median_nats,
            xerr=arms([row.k0_lower], [row.k0_median], [row.k0_upper]),
            yerr=arms([row.gap_lower_nats], [row.gap_median_nats], [row.gap_upper_nats]),
            color=_LEFT_OUT if row.left_out else colour,
            markerfacecolor=None if row.converged else "white",
            label=people_label(row) + _missed(row),
            fmt="o",
            capsize=3,
            zorder=4,
        )
    if np.isfinite(fits["k0_true"].iloc[0]):
        axes.plot(*fits[["k0_true", "true_gap_nats"]].iloc[0], "*", color=_TRUTH, markersize=12, label="truth")
    shown = (fits[name] for name in ("gap_lower_nats", "gap_upper_nats", "true_gap_nats"))
    low, high = finite_range(*shown, list(exact.values()))
    for name, colour in player_colours(list(exact)).items():
        label = f"{player_label(name)}, exact"
        axes.axhline(exact[name], color=colour, linewidth=1, linestyle="--", zorder=1, label=label)
    axes.set_xscale("log")
    axes.set(xlim=(k0.min(), k0.max()), ylim=(low - 0.15 * (high - low), high + 0.15 * (high - low)))
    number_ticks(axes.xaxis, [tick for tick in _SCALES if k0.min() <= tick <= k0.max() * 1.001])
    axes.set_xlabel("typical slope k\N{SUBSCRIPT ZERO} of reports on the log-odds of the belief")
    axes.set_ylabel(f"loss gap to {player_label(dataset.attrs['generator'])}, nats per token")
    axes.set_title(
        "Reports alone fix the loss of the shared belief only up to k\N{SUBSCRIPT ZERO}\n"
        f"(bands and bars {dataset.attrs['interval']:.0%}; {dataset.attrs['study']})"
    )
    fig.legend(loc="outside lower center", ncols=2)
    return fig


@styled
def top1_figure(dataset: xr.Dataset) -> Figure:
    """How often the belief's most probable token is the true one: implied by the model, and measured."""
    fig = new_figure(6, 3.2)
    axes = fig.add_subplot()
    for what, colour, who in _SHOWN:
        if what in dataset["fit"]:
            draws = dataset["top1_draws"].sel(fit=what).to_numpy()
            at, count = np.unique(draws[np.isfinite(draws)].round(9), return_counts=True)
            axes.fill_between(at, count / count.sum(), step="mid", color=colour, alpha=0.3, linewidth=0, label=who)
    if "top1_rate" in dataset.attrs:
        rate, se = dataset.attrs["top1_rate"], dataset.attrs["top1_se"]
        measured = f"measured: {rate:g} \N{PLUS-MINUS SIGN} {se:g} (given in the settings)"
        axes.axvline(rate, color=_TRUTH, label=measured)
        axes.axvspan(rate - se, rate + se, color=_TRUTH, alpha=0.12, linewidth=0)
    without_y(axes)
    axes.set_xlabel("share of items whose true token is the most probable of the shared belief")
    axes.set_title(f"A check that does not depend on the scale: top-1 rate ({dataset.attrs['study']})")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


def sensitivity_figure(table: pd.DataFrame, dataset: xr.Dataset) -> Figure:
    """The gap without each participant, and under other priors."""
    people = table[table["player"] == HUMAN].sort_values("gap_median_nats")
    order = (Analysis.EVERYONE, Analysis.WITHOUT, *reversed(SENSITIVITY))
    rows = pd.concat([people[people[KIND] == kind] for kind in order])
    base, one = rows_of(rows)[0], rows[KIND] == Analysis.WITHOUT_ONE
    rows = rows.assign(
        label=[_sensitivity_label(row) for row in rows_of(rows)],
        group=one,
        colour=np.where(one, _ONE, np.where(rows[KIND] == Analysis.PRIORS, _PRIORS, "#000000")),
        marker=np.where(one, "o", "D"),
        hollow=~rows["converged"].astype(bool),
    )
    ends = ("gap_median_nats", "gap_lower_nats", "gap_upper_nats")
    looks = [("D", False, "fit"), ("o", False, Analysis.WITHOUT_ONE.method), ("o", True, "check failed")]
    handles = [
        Series("", label=label, marker=marker, size=4).handle(hollow=hollow, colour="0.3")
        for marker, hollow, label in looks
    ]
    series = [Series(*ends, marker=None, size=4, capsize=0, linewidth=1.2)]
    xlabel, title = "loss gap of the belief that people share, nats per token", "Does it hang on one person, or priors?"
    about = f"{dataset.attrs['study']}, {dataset.attrs['interval']:.0%}"
    look: dict[str, Any] = {"width": 6.4, "row_height": 0.2, "zero": False, "handles": handles}
    fig = forest_figure(rows, series, xlabel, title, about, **look)
    axes = fig.axes[0]
    axes.axvspan(base.gap_lower_nats, base.gap_upper_nats, color="0.93", linewidth=0, zorder=0)
    axes.axvline(base.gap_median_nats, color="0.55", linewidth=1, zorder=1)
    axes.tick_params(axis="y", labelsize=7.5)
    return fig


def _sensitivity_label(row: Any) -> str:
    if row.kind is Analysis.PRIORS:
        return f"priors {'half' if row.priors == 'narrow' else 'twice'} as wide{_missed(row)}"
    if row.kind is Analysis.EVERYONE:
        return f"all participants{_missed(row)}"
    return f"without {row.left_out_label}" + (_missed(row) if row.kind is Analysis.WITHOUT else "")
