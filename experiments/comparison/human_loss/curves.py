"""Figures of what depends on the scale of the humans' belief, and of what does not."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from estimators.layout import HUMAN
from experiments.comparison.caveats import NOT_RELIED_ON
from experiments.comparison.human_loss.figures import WITHOUT
from experiments.harness.figures import STYLE, finite_range, new_figure, player_colours, player_label
from experiments.harness.marks import arms, curve, number_ticks
from experiments.harness.settings import rows_of

__all__ = ["curve_figure", "top1_figure"]


def curve_figure(table: pd.DataFrame, dataset: xr.Dataset, study_name: str = "", interval: float = 0.9) -> Figure:
    """Gap by the assumed scale, with what the anchors say and the models' true gaps."""
    humans = table[table["player"] == HUMAN].set_index("what")
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 4.4)
        axes = fig.add_subplot()
        k0 = dataset["k0"].to_numpy()
        for what, colour in (("everyone", "#000000"), ("without", WITHOUT)):
            if what not in dataset["fit"]:
                continue
            label = _who(what, humans)
            named_so = f"{label}, if k\N{SUBSCRIPT ZERO} were this"
            curve(axes, k0, dataset["curve_gap_nats"].sel(fit=what), colour, alpha=0.18, label=named_so)
            row = humans.loc[what]
            if row["anchor"] == "outcomes":
                axes.errorbar(
                    row["k0_median"],
                    row["gap_median_nats"],
                    xerr=_bar(row, "k0{}"),
                    yerr=_bar(row, "gap{}_nats"),
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
                yerr=_bar(row._asdict(), "gap{}_nats"),
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
        number_ticks(axes.xaxis, ticks)
        axes.set_xlabel("typical slope k\N{SUBSCRIPT ZERO} of reports on the log-odds of the belief")
        axes.set_ylabel(f"loss gap to {player_label(dataset.attrs['generator'])}, nats per token")
        axes.set_title(
            "Reports alone fix the humans' loss only up to k\N{SUBSCRIPT ZERO}: the curve assumes it\n"
            f"(bands and bars {interval:.0%}, {NOT_RELIED_ON}; {study_name})"
        )
        fig.legend(loc="outside lower center", ncols=2)
    return fig


def _who(what: str, humans: pd.DataFrame) -> str:
    return "all participants" if what == "everyone" else f"without {humans.loc[what, 'left_out_label']!s}"


def _bar(row: Any, name: str) -> NDArray[np.float64]:
    return arms(*([row[name.format(end)]] for end in ("_lower", "_median", "_upper")))


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


def top1_figure(
    table: pd.DataFrame,
    dataset: xr.Dataset,
    study_name: str = "",
    observed: float | None = None,
    se: float = 0.06,
) -> Figure:
    """How often the belief's most probable token is the true one: implied by the model, and measured."""
    humans = table[table["player"] == HUMAN].set_index("what")
    with mpl.rc_context(STYLE):
        fig = new_figure(6, 3.2)
        axes = fig.add_subplot()
        for what, colour in (("everyone", "#000000"), ("without", WITHOUT)):
            if what not in dataset["fit"]:
                continue
            draws = dataset["top1_draws"].sel(fit=what).to_numpy()
            rate, count = np.unique(draws[np.isfinite(draws)].round(9), return_counts=True)
            name = _who(what, humans)
            axes.fill_between(rate, count / count.sum(), step="mid", color=colour, alpha=0.3, linewidth=0, label=name)
        if observed is not None:
            axes.axvline(observed, color="#CC3311", label=f"measured: {observed:g} (given in the settings)")
            axes.axvspan(
                observed - se,
                observed + se,
                color="#CC3311",
                alpha=0.12,
                linewidth=0,
                label="\N{PLUS-MINUS SIGN} 1 se of the soft constraint",
            )
        axes.set_ylim(bottom=0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("share of items whose true token is the most probable of the shared belief")
        axes.set_title(f"A check that does not depend on the scale: top-1 rate ({study_name})")
        fig.legend(loc="outside lower center", ncols=2)
    return fig
