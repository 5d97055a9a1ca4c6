"""``+exp=improve``: how many contexts a model has to answer like a person (section 5, appendix E, figures 11-13)."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from omegaconf import DictConfig, ListConfig

from estimators.cloze.distributions import relative_frequencies
from estimators.cloze.needed_share import needed_share
from estimators.cloze.renormalised import renormalised_distributions
from estimators.cloze.split_halves import random_split_halves, tvd_between_split_halves, tvd_to_split_halves
from estimators.cloze.study import entry_positions, item_positions
from estimators.errors import InputError
from experiments.cloze.settings import chosen_models, clean_words, colours, groups_of, label, mode_of, whole, wide_rules
from experiments.cloze.tvd.experiment import kernel_density
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import rng_for, rows_of, tail_probability

__all__ = ["run"]

Floats = NDArray[np.float64]

_SHOWN = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Replace a share of a model's TVDs by those between oracles; find the share that is needed."""
    mode = mode_of(cfg)
    tail = tail_probability(cfg)
    margins = _margins(cfg)
    curves = _legacy(study) if mode == "legacy" else _clean(cfg, study)
    rows: list[dict[str, Any]] = []
    for (name, kind), one in curves.items():
        for margin in margins:
            found = needed_share(
                one["model"], one["oracle"], one["groups"], margin=margin, rng=rng_for(cfg, f"improve {name} {kind}"),
                n_replicates=whole(cfg, "n_replicates"), probability=1 - 2 * tail,
            )  # fmt: skip
            rows.append(
                {
                    "model": name,
                    "estimator": kind,
                    "mode": mode,
                    "n_contexts": len(one["model"]),
                    "tvd_model": float(one["model"].mean()),
                    "tvd_oracle": float(one["oracle"].mean()),
                    "gap": found.gap,
                    "margin": margin,
                    "share_needed": found.share,
                    "share_lower": found.lower,
                    "share_upper": found.upper,
                }
            )
    table = pd.DataFrame(rows)
    shares = np.round(np.linspace(0, 1, 11), 1)
    means = {key: _mixed_means(one, shares, cfg, key) for key, one in curves.items()}
    dataset = xr.Dataset(
        {
            f"tvd_{name}_{kind}".replace(".", "_").replace("-", "_"): ("share", mean)
            for (name, kind), mean in means.items()
        },
        coords={"share": shares},
    )
    figures = {
        "improve": curve_figure(curves, means, shares, table, cfg),
        "improve_densities": density_figure(curves, cfg),
    }
    return ExperimentResult(table, dataset, figures, summary(table))


def _margins(cfg: DictConfig) -> list[float]:
    value = cfg.experiment.margins
    margins = list(value) if isinstance(value, ListConfig) else [value]
    if not margins or not all(isinstance(m, int | float) and not isinstance(m, bool) and m > 0 for m in margins):
        raise InputError(f"is {value}, should be differences of TVD above 0", field="experiment.margins")
    return [float(margin) for margin in margins]


Curves = dict[tuple[str, str], dict[str, Any]]


def _clean(cfg: DictConfig, study: xr.Dataset) -> Curves:
    models = chosen_models(cfg, study)
    words = clean_words(cfg, study, models)
    answers = words.answers()
    found: Curves = {}
    for name in models:
        rng = rng_for(cfg, f"oracles {name}")
        model = words.models[name]
        have = np.flatnonzero((model.counts.totals > 0) & (answers.totals[model.item] > 1))
        items = model.item[have]
        splits = random_split_halves(answers.take(items), n_splits=whole(cfg, "n_splits"), rng=rng)
        found[name, "unbiased"] = {
            "model": tvd_to_split_halves(relative_frequencies(model.counts.take(have)), splits).mean(axis=0),
            "oracle": tvd_between_split_halves(splits).mean(axis=0),
            "groups": groups_of(study, items),
            "items": items,
        }
        if not cfg.experiment.biased or not _has_logprobs(study, name):
            continue
        entries = entry_positions(study, name)
        biased = renormalised_distributions(study, name, list(words.strings), wide_rules(cfg, study))
        own = item_positions(study, "entry_item")[entries]
        # the first entry of each context
        first = np.array([int(np.flatnonzero(own == item)[0]) for item in items])
        found[name, "biased"] = {
            **found[name, "unbiased"],
            "model": tvd_to_split_halves(biased.take(first), splits).mean(axis=0),
        }
    return found


def _has_logprobs(study: xr.Dataset, name: str) -> bool:
    if "sample_logprob" not in study:
        return False
    mine = np.isin(study["sample_entry"].to_numpy(), entry_positions(study, name))
    samples = study["source"].to_numpy().tolist().index("samples")
    rows = mine & (study["sample_source"].to_numpy() == samples)
    # GPT-2 at temperature 0.5 was scored without temperature: renormalised, that is another model
    return bool(np.isfinite(study["sample_logprob"].to_numpy()[rows]).any()) and name != "gpt2-t0.5"


def _legacy(study: xr.Dataset) -> Curves:
    """The stored lists of appendix E (all 2,687 contexts, of which 798 can be computed again: see +exp=tvd)."""
    if "result_name" not in study.dims:
        raise InputError("holds no stored results; mode=clean works for every cloze study", source="mode=legacy")
    names = study["result_name"].to_numpy().tolist()
    found: Curves = {}
    for kind in ("unbiased", "biased"):
        lists = [f"cal_metrics_improved_model/{share}/tvd_{kind}" for share in (0, 1)]
        if any(name not in names for name in lists):
            raise InputError(f"has no list {lists[0]}", source="study", field="result_name")
        rows = [study["result_list"].to_numpy() == names.index(name) for name in lists]
        items = study["result_item"].to_numpy()[rows[0]].astype(np.intp)
        found["gpt2", kind] = {
            "model": study["result_value"].to_numpy()[rows[0]],
            "oracle": study["result_value"].to_numpy()[rows[1]],
            "groups": groups_of(study, items),
            "items": items,
        }
    return found


def _mixed_means(one: dict[str, Any], shares: Floats, cfg: DictConfig, key: tuple[str, str]) -> Floats:
    """Mean TVD with a random share replaced, one draw of which contexts for all shares."""
    order = rng_for(cfg, f"replaced {key}").random(len(one["model"]))
    return np.array([np.where(order < share, one["oracle"], one["model"]).mean() for share in shares])


def summary(table: pd.DataFrame) -> str:
    """Say which share is needed for which margin."""
    lines = [
        f"- **{label(row.model)}** ({row.estimator}), margin {row.margin:g}: {row.share_needed:.0%} "
        f"({row.share_lower:.0%} to {row.share_upper:.0%})"
        for row in rows_of(table)
    ]
    return (
        "With a random share k of a model's TVDs replaced by those between two oracles, (1 - k) of the gap between the "
        "mean TVDs is left; it closes only at k = 1. The share needed for a difference that counts as none (the "
        "margin), with an interval from resampling texts:\n\n" + "\n".join(lines)
    )


def curve_figure(
    curves: Curves, means: dict[tuple[str, str], Floats], shares: Floats, table: pd.DataFrame, cfg: DictConfig
) -> Figure:
    """Mean TVD against the share replaced, with the share needed for the largest margin."""
    palette = colours([name for name, _ in curves])
    margin = max(table["margin"])
    with mpl.rc_context(STYLE):
        fig = new_figure(6.6, 4.0)
        axes = fig.add_subplot()
        for (name, kind), mean in means.items():
            style = "-" if kind == "unbiased" else ":"
            axes.plot(shares, mean, color=palette[name], linestyle=style, label=f"{label(name)}, {kind}")
            row = table[(table["model"] == name) & (table["estimator"] == kind) & (table["margin"] == margin)].iloc[0]
            height = row["tvd_oracle"] + (1 - row["share_needed"]) * row["gap"]
            axes.errorbar(
                row["share_needed"], height, color=palette[name], marker="o", markersize=4, capsize=2,
                xerr=_bars(row),
            )  # fmt: skip
        axes.set_xlabel("share of contexts answered as an oracle would")
        axes.set_ylabel("mean TVD to oracle 1")
        axes.set_title(f"Points: within {margin:g} of the oracle, with interval ({mode_of(cfg)})")
        axes.set_xlim(0, 1.02)
        axes.grid(color="0.92", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def _bars(row: pd.Series) -> list[list[float]]:
    below, above = row["share_needed"] - row["share_lower"], row["share_upper"] - row["share_needed"]
    return [[max(below, 0)], [max(above, 0)]]


def density_figure(curves: Curves, cfg: DictConfig) -> Figure:
    """Densities of TVD over contexts at several shares, a panel a model (figures 11-13)."""
    grid = np.linspace(0, 1, 201)
    shown = [key for key in curves if key[1] == "unbiased"]
    n_columns = min(len(shown), 3)
    n_rows = -(-len(shown) // n_columns)
    colour_map = mpl.colormaps["viridis"]
    with mpl.rc_context(STYLE):
        fig = new_figure(2.9 * n_columns + 0.6, 2.2 * n_rows + 0.6)
        axes = fig.subplots(n_rows, n_columns, sharex=True, squeeze=False)
        for ax in axes.ravel()[len(shown) :]:
            ax.set_visible(False)
        for ax, key in zip(axes.ravel(), shown, strict=False):
            one = curves[key]
            order = rng_for(cfg, f"replaced {key}").random(len(one["model"]))
            for share in _SHOWN:
                values = np.asarray(np.where(order < share, one["oracle"], one["model"]))
                ax.plot(grid, kernel_density(values, grid), color=colour_map(0.9 * share), label=f"{share:.0%}")
            ax.set_title(label(key[0]))
            ax.set_yticks([])
            ax.set_xlim(0, 1)
            ax.set_ylim(0, None)
            ax.spines["left"].set_visible(False)
        for ax in axes[-1]:
            ax.set_xlabel("TVD to oracle 1")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, title="share replaced", loc="outside right center")
    return fig
