"""``+exp=improve``: how many contexts a model has to answer like a person (section 5, appendix E, figures 11-13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from shannon_game.estimators import cloze
from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze.study import entry_positions
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions
from shannon_game.estimators.messages import Set
from shannon_game.experiments.cloze.figures import colours, kernel_density, label
from shannon_game.experiments.cloze.settings import ClozeSettings, chosen_models, groups_of, shared_contexts, words_of
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import arms, label_below, mark, named, titled
from shannon_game.experiments.harness.plots import styled, without_y
from shannon_game.experiments.harness.questions import bullets, one_panel
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for, rows_of
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.settings import Count, Positive, Probability

_SHOWN = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_N_DRAWN = 10
# of every criterion of criteria.csv: means, distribution functions, areas and probabilities
_CRITERION_MARGINS = (0.02, 0.05, 0.1, 0.2)


class ShareSettings(Seeded):
    """How the share of contexts is found that a model has to answer like a person."""

    margins: Annotated[
        tuple[Positive, ...], Field(min_length=1), BeforeValidator(lambda m: (m,) if isinstance(m, int | float) else m)
    ] = (0.01, 0.02, 0.05)
    """Differences of mean TVD that count as none."""
    n_replicates: Count = 2000
    """Bootstrap replicates over texts."""
    interval: Probability = 0.9
    """Probability inside the intervals (equal tails)."""


class ShareRow(column.Row):
    """One model, estimator and margin."""

    model: str = column.key("model", players=True)
    estimator: str = column.key("samples as they are, or their renormalised probabilities", usual="unbiased")
    n_contexts: int = column.context("contexts")
    tvd_model: float = column.beside("share_needed", "mean TVD of the model to one half of the people")
    tvd_oracle: float = column.beside("share_needed", "that of the other half of the people")
    gap: float = column.detail("tvd_model minus tvd_oracle")
    margin: float = column.key("difference of mean TVD that counts as none", setting="experiment.margins")
    share_needed: float = column.headline("share of contexts to answer as people do", interval="share_{}")


class ImproveSettings(ClozeSettings, ShareSettings):
    n_splits: Count = 20
    """Independent random splits of each context's answers into two oracles."""
    oracle_size: Count | None = None
    """Answers of each oracle, such as 20 or 10; null for half of the context's. Contexts with fewer than twice as many
    are left out (column n_contexts)."""
    biased: bool = True
    """Also the renormalised probabilities of appendix A, where the study has log-probabilities."""


@dataclass(frozen=True, eq=False)
class Distances:
    """TVDs to oracle 1 by context, of the model and of oracle 2."""

    model: FloatArray
    oracle: FloatArray
    text: NDArray[np.object_]
    splits: Sequence[tuple[FloatArray, FloatArray]] = ()
    """Both by single splits, where `model` and `oracle` are means over splits."""


Curves = dict[tuple[str, str], Distances]
"""Distances by model and estimator ("unbiased", "biased")."""


@experiment(ImproveSettings, row=ShareRow)
def improve(study: xr.Dataset, settings: ImproveSettings) -> ExperimentResult:
    """Find the share of contexts that a model has to answer like a person to be as good as half of the people.

    One row per model, estimator and margin.

    Examples
    --------
    >>> from shannon_game import cloze_simulated, improve
    >>> study = cloze_simulated(n_items=8, items_per_text=2, vocab_size=40)
    >>> improve(study, margins=0.02, n_replicates=50).table[["model", "margin", "share_needed"]].round(2)
         model  margin  share_needed
    0  mixture    0.02          0.82
    1  factors    0.02          0.84
    """
    words = words_of(settings, study, chosen_models(settings, study))
    return replace(share_result(_curves(study, words, settings), settings), warnings=answer_warnings(words))


def share_result(curves: Curves, settings: ShareSettings, printed: float | None = None) -> ExperimentResult:
    """Table, curves and figures of the share needed, from distances, beside the share that a paper prints."""
    rows: list[dict[str, Any]] = []
    for (name, kind), one in curves.items():
        row = {"model": name, "estimator": kind, "n_contexts": len(one.model)}
        row |= {"tvd_model": float(one.model.mean()), "tvd_oracle": float(one.oracle.mean())}
        how: dict[str, Any] = {"n_replicates": settings.n_replicates, "probability": settings.interval}
        for margin in settings.margins:
            rng = rng_for(settings.seed, f"improve {name} {kind}")
            found = cloze.needed_share(one.model, one.oracle, one.text, margin=margin, rng=rng, **how)
            share = {"share_needed": found.share, "share_lower": found.lower, "share_upper": found.upper}
            rows.append({**row, "gap": found.gap, "margin": margin, **share})
    table = pd.DataFrame(rows)
    shares = np.round(np.linspace(0, 1, 11), 1)
    means = [
        [_mixed(key, one.model, one.oracle, share, settings.seed).mean() for share in shares]
        for key, one in curves.items()
    ]
    names, kinds = zip(*curves, strict=True)
    dataset = xr.Dataset(
        {"tvd": (("curve", "share"), np.array(means))},
        coords={"share": shares, "model": ("curve", list(names)), "estimator": ("curve", list(kinds))},
    )
    size = getattr(settings, "oracle_size", None)
    half = "one half of the people" if size is None else f"{size} of the people"
    figures = {
        "improve": improve_figure(table, dataset, half=half, printed=printed),
        "improve_densities": improve_densities_figure(curves, seed=settings.seed, half=half),
    }
    criteria = {"criteria": criteria_table(curves, _CRITERION_MARGINS)}
    return ExperimentResult(table, dataset, figures, _summary(table), tables=criteria, row=ShareRow)


def criteria_table(curves: Curves, margins: tuple[float, ...]) -> pd.DataFrame:
    """Share needed by every criterion and margin, of stated margins and of those of a test at 5%."""
    rows: list[dict[str, Any]] = []
    for (name, kind), one in curves.items():
        for criterion in cloze.CRITERIA:
            stated = [(margin, "stated") for margin in margins]
            if criterion in ("kolmogorov_smirnov", "mann_whitney"):
                stated.append((cloze.criterion_margin(criterion, len(one.model)), "5% test"))
            for margin, what in stated:
                found = cloze.criterion_share(one.model, one.oracle, criterion=criterion, margin=margin)
                row = {"model": name, "estimator": kind, "criterion": criterion, "distance": found.distance}
                rows.append({**row, "margin": margin, "margin_is": what, "share_needed": found.share})
    return pd.DataFrame(rows)


def _curves(study: xr.Dataset, words: cloze.StudyWords, settings: ImproveSettings) -> Curves:
    answers = words.answers()
    found: Curves = {}
    for name, model in words.models.items():
        rng = rng_for(settings.seed, f"oracles {name}")
        have = shared_contexts(words, name)
        if settings.oracle_size is not None:
            have = have[answers.totals[model.item[have]] >= 2 * settings.oracle_size]
        if not len(have):
            problem = f"is {settings.oracle_size}, but no context of {name} has twice as many answers"
            raise InputError(problem, field=Set("experiment.oracle_size"))
        items = model.item[have]
        human = answers.take(items)
        splits = cloze.random_split_halves(human, n_splits=settings.n_splits, rng=rng, size=settings.oracle_size)
        between, text = cloze.tvd_between_split_halves(splits), groups_of(study, items)
        oracle = between.mean(axis=0)
        own = cloze.tvd_to_split_halves(cloze.relative_frequencies(model.counts.take(have)), splits)
        found[name, "unbiased"] = Distances(own.mean(axis=0), oracle, text, [*zip(own, between, strict=True)])
        if not settings.biased or not _has_logprobs(study, name):
            continue
        biased = cloze.renormalised_distributions(study, name, list(words.strings), settings.words.of(study))
        owner = item_positions(study, "entry_item")[entry_positions(study, name)]
        # the first entry of each context
        first = np.array([int(np.flatnonzero(owner == item)[0]) for item in items])
        distance = cloze.tvd_to_split_halves(biased.take(first), splits).mean(axis=0)
        found[name, "biased"] = Distances(distance, oracle, text)
    return found


def _has_logprobs(study: xr.Dataset, name: str) -> bool:
    if "sample_logprob" not in study:
        return False
    mine = np.isin(study["sample_entry"].to_numpy(), entry_positions(study, name))
    samples = study["source"].to_numpy().tolist().index("samples")
    rows = mine & (study["sample_source"].to_numpy() == samples)
    # GPT-2 at temperature 0.5 was scored without temperature: renormalised, that is another model
    return bool(np.isfinite(study["sample_logprob"].to_numpy()[rows]).any()) and name != "gpt2-t0.5"


def _mixed(key: tuple[str, str], model: FloatArray, oracle: FloatArray, share: float, seed: int) -> FloatArray:
    """TVDs with a random share replaced, one draw of which contexts for all shares."""
    order = rng_for(seed, f"replaced {key}").random(len(model))
    return np.where(order < share, oracle, model)


def _summary(table: pd.DataFrame) -> str:
    line = (
        "**{label} has to answer {share_needed:.0%} [{share_lower:.0%}, {share_upper:.0%}] of the contexts as people "
        "do** to be within {margin:g} of their TVD to each other ({estimator})."
    )
    return (
        f"{bullets(table.assign(label=table['model'].map(label)), line)}\n\nThe model's TVDs in a random share of the "
        "contexts are replaced by those between two halves of the people. Intervals are from resampling texts; "
        "`criteria.csv` has other criteria."
    )


def improve_figure(
    table: pd.DataFrame, dataset: xr.Dataset, *, half: str = "one half of the people", printed: float | None = None
) -> Figure:
    """Draw mean TVD against the share replaced, with the share needed for the largest margin and the `printed` one."""
    palette = colours(list(dict.fromkeys(table["model"])))
    margin = max(table["margin"])
    title = "How many contexts must a model improve?"
    with one_panel(4.5, 4.2, title, grid="both") as (fig, axes):
        for row in rows_of(table[table["margin"] == margin]):
            own = ((dataset["model"] == row.model) & (dataset["estimator"] == row.estimator)).to_numpy()
            style, more = ("-", "") if row.estimator == "unbiased" else (":", f", {row.estimator}")
            look: dict[str, Any] = {"color": palette[row.model], "linestyle": style, "label": label(row.model) + more}
            axes.plot(dataset["share"], dataset["tvd"].to_numpy()[own][0], **look)
            height = row.tvd_oracle + (1 - row.share_needed) * row.gap
            reach = arms([row.share_lower], [row.share_needed], [row.share_upper])
            axes.errorbar(
                row.share_needed, height, xerr=reach, fmt="o", markersize=5, capsize=3, color=palette[row.model]
            )
        axes.set(xlim=(0, 1.02), xlabel="share of contexts answered as people do", ylabel=f"mean TVD to {half}")
        handles, _ = axes.get_legend_handles_labels()
        point = mark(f"comes within {margin:g} of other people, with interval", marker="o", line="-")
        if printed is not None:
            axes.axvline(printed, color="0.3", linestyle="--", linewidth=1)
            handles.append(mark(f"the paper's share, about {printed:.0%}", line="--", linewidth=1))
        named(fig, [*handles, point], 1)
    return fig


@styled
def improve_densities_figure(curves: Curves, *, seed: int = 0, half: str = "one half of the people") -> Figure:
    """Draw densities of TVD over contexts at several shares, a panel per model and a line per split (figures 11-13)."""
    at = np.linspace(0, 1, 201)
    shown = [key for key in curves if key[1] == "unbiased"]
    n_columns = min(len(shown), 3)
    n_rows = -(-len(shown) // n_columns)
    fig = new_figure(2.9 * n_columns + 0.6, 2.2 * n_rows + 0.6)
    grid = fig.subplots(n_rows, n_columns, sharex=True, squeeze=False)
    for ax, key in zip(grid.flat, shown, strict=False):
        splits = curves[key].splits[:_N_DRAWN] or [(curves[key].model, curves[key].oracle)]
        for share in _SHOWN:
            colour = mpl.colormaps["viridis"](0.9 * share)
            for pair in splits:
                values = _mixed(key, *pair, share, seed)
                ax.plot(at, kernel_density(values, at), color=colour, linewidth=1.4 if len(splits) == 1 else 0.5)
        ax.set_title(label(key[0]))
        without_y(ax)
        ax.set(xlim=(0, 1), xticks=[0, 0.5, 1])
    label_below(grid, len(shown), f"TVD to {half}")
    for ax in grid[:, 0]:
        ax.set_ylabel("density over contexts")
    titled(fig, "Distances when a share of the contexts is answered as people do")
    handles = [mark(f"{share:.0%}", to_hex(mpl.colormaps["viridis"](0.9 * share))) for share in _SHOWN]
    fig.legend(handles=handles, title="share replaced", loc="outside right center")
    return fig
