"""What a smaller sample of the model does to its TVD (appendix C, figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators import cloze
from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.figures import colours, label
from shannon_game.experiments.cloze.settings import (
    chosen_models,
    cluster_se,
    groups_of,
    known_mean,
    shared_contexts,
    words_of,
)
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.marks import named
from shannon_game.experiments.harness.questions import listed, one_panel
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.settings import rng_for, rows_of


class SizeRow(column.Row):
    """One model and one number of its samples."""

    model: str = column.key("model", players=True)
    n_samples: int = column.key("samples per context", setting="experiment.n")
    n_samples_all: int = column.context("all of its samples per context")
    n_contexts: int = column.context("contexts")
    tvd: float = column.estimate("TVD to one half of the people with so many samples")
    tvd_all: float = column.beside("tvd", "TVD with all of them")
    tvd_error: float = column.headline("what fewer samples add to the TVD")
    se_error: float = column.se("tvd_error")
    error_lower: float = column.lower("tvd_error", "lower end over contexts")
    error_upper: float = column.upper("tvd_error", "upper end over contexts")
    mean_squared_error: float = column.detail("mean square of tvd_error over contexts")
    tvd_corrected: float = column.estimate("TVD to people with the baseline of its sample size taken out")
    tvd_corrected_all: float = column.beside("tvd_corrected", "the same with all samples")


@dataclass(frozen=True, eq=False)
class SizeDistances:
    """TVDs to half of the people by context, with all of a model's samples (0 in `corrected`) and with some."""

    items: NDArray[np.intp]
    everything: FloatArray
    by_size: dict[int, FloatArray]
    totals: NDArray[np.int64]
    corrected: dict[int, float] = field(default_factory=dict)


def sizes_compared(study: xr.Dataset, settings: TvdSettings, sizes: Sequence[int]) -> ExperimentResult:
    """Compare the TVD of n of a model's samples with that of all of them, context by context."""
    found = {name: _distances(study, settings, name, sizes) for name in large_enough(study, settings, sizes)}
    return size_result(study, found, settings.tail)


def size_result(study: xr.Dataset, found: dict[str, SizeDistances], tail: float) -> ExperimentResult:
    """Table, errors and figure of distances by size."""
    rows, errors = [], {}
    for name, one in found.items():
        groups = groups_of(study, one.items)
        for n, distances in one.by_size.items():
            errors[name, n] = difference = distances - one.everything
            lower, upper = np.quantile(difference, [tail, 1 - tail])
            row = SizeRow(
                model=name,
                n_samples=n,
                n_samples_all=int(np.median(one.totals)),
                n_contexts=len(difference),
                tvd=distances.mean(),
                tvd_all=one.everything.mean(),
                tvd_error=difference.mean(),
                se_error=cluster_se(difference, groups),
                error_lower=lower,
                error_upper=upper,
                mean_squared_error=(difference**2).mean(),
                tvd_corrected=one.corrected.get(n, np.nan),
                tvd_corrected_all=one.corrected.get(0, np.nan),
            )
            rows.append(row)
    table = SizeRow.table(rows)
    sizes = sorted(set(table["n_samples"]))
    error = np.full((len(found), len(sizes), max(map(len, errors.values()))), np.nan)
    for (name, n), values in errors.items():
        error[list(found).index(name), sizes.index(n), : len(values)] = values
    dataset = xr.Dataset({"tvd_error": (("model", "n", "context"), error)}, coords={"model": list(found), "n": sizes})
    figures = {"tvd_sample_size": size_figure(dataset)}
    return ExperimentResult(table, dataset, figures, _summary(table), row=SizeRow)


def subsample(counts: cloze.WordCounts, size: int, rng: np.random.Generator) -> cloze.WordCounts:
    """Draw `size` of each context's answers without replacement; all of them where there are no more."""
    answers = np.repeat(np.arange(len(counts.count)), counts.count)
    context = counts.context[answers]
    shuffled = answers[np.lexsort((rng.random(len(answers)), context))]
    totals = counts.totals
    rank = np.arange(len(answers)) - (np.cumsum(totals) - totals)[context]
    chosen = shuffled[rank < size]
    return cloze.count_words(
        counts.context[chosen], counts.word[chosen], np.ones(len(chosen)), n_contexts=counts.n_contexts
    )


def large_enough(study: xr.Dataset, settings: TvdSettings, sizes: Sequence[int]) -> list[str]:
    """Models with at least twice as many samples as the largest size."""
    models = chosen_models(settings, study)
    is_sample = study["sample_source"].to_numpy() == study["source"].to_numpy().tolist().index("samples")
    weights = study["sample_count"].to_numpy() * is_sample
    samples = np.bincount(study["sample_entry"].to_numpy(), weights=weights, minlength=study.sizes["entry"])
    entry_model = study["entry_model"].to_numpy()
    names = study["model"].to_numpy().tolist()
    enough = [name for name in models if np.median(samples[entry_model == names.index(name)]) >= 2 * max(sizes)]
    if not enough or (settings.players is not None and len(enough) < len(models)):
        problem = "but a model needs at least twice the largest number of samples per context to compare with"
        fewer = ", ".join(name for name in models if name not in enough)
        raise InputError(f"is {sorted(sizes)}, {problem}; those of {fewer} have fewer", field="n")
    return enough


def _distances(study: xr.Dataset, settings: TvdSettings, name: str, sizes: Sequence[int]) -> SizeDistances:
    words = words_of(settings, study, [name])
    model, answers = words.models[name], words.answers()
    have = shared_contexts(words, name, n_samples=max(sizes))
    items = model.item[have]
    counts, human = model.counts.take(have), answers.take(items)
    rng = rng_for(settings.seed, f"tvd_sample_size {name}")
    splits = cloze.random_split_halves(human, n_splits=1, rng=rng)
    everything = cloze.tvd_to_split_halves(cloze.relative_frequencies(counts), splits)[0]
    by_size, corrected = {}, {0: known_mean(cloze.tvd_with_baseline(counts, human).corrected)}
    for n in sorted(sizes):
        drawn = [subsample(counts, n, rng) for _ in range(settings.n_repeats)]
        by_size[n] = np.mean(
            [cloze.tvd_to_split_halves(cloze.relative_frequencies(one), splits)[0] for one in drawn], axis=0
        )
        corrected[n] = known_mean([known_mean(cloze.tvd_with_baseline(one, human).corrected) for one in drawn])
    return SizeDistances(items, everything, by_size, counts.totals, corrected)


def _summary(table: pd.DataFrame) -> str:
    lines = []
    for name, rows in table.groupby("model", sort=False):
        steps = listed(f"{row.tvd_error:+.4f} with {row.n_samples}" for row in rows_of(rows))
        first = rows.iloc[0]
        lines.append(
            f"- **Fewer samples change the TVD of {label(str(name))} to people from {first['tvd_all']:.4f} "
            f"({first['n_samples_all']:,} samples per context)** by {steps}; {first['n_contexts']:,} contexts."
        )
    return "\n".join(lines)


def size_figure(dataset: xr.Dataset) -> Figure:
    """Draw the change of the TVD over contexts, a box per size (figure 8)."""
    models, sizes = [str(name) for name in dataset["model"].to_numpy()], dataset["n"].to_numpy().tolist()
    width = 0.7 / len(models)
    mean = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 4}
    look: dict[str, Any] = {"widths": width * 0.85, "whis": (5, 95), "showfliers": False, "patch_artist": True}
    look |= {"showmeans": True, "meanprops": mean, "medianprops": {"color": "black"}}
    with one_panel(
        4.5, 3.8, "Do small samples look farther from people?", "box: quartiles, whiskers: 5 to 95%, diamond: mean"
    ) as (fig, axes):
        axes.axhline(0, color="0.5", linewidth=0.8, linestyle="--")
        for m, (name, colour) in enumerate(colours(models).items()):
            errors = [own[~np.isnan(own)] for own in dataset["tvd_error"].sel(model=name).to_numpy()]
            places = np.arange(len(sizes)) + (m - (len(models) - 1) / 2) * width
            boxes = axes.boxplot(errors, positions=places, boxprops={"facecolor": colour, "alpha": 0.6}, **look)[
                "boxes"
            ]
            boxes[0].set_label(label(name))
        axes.set_xticks(np.arange(len(sizes)), [str(n) for n in sizes])
        axes.set(xlabel="samples of the model per context", ylabel="TVD with n samples \N{MINUS SIGN} with all")
        named(fig, axes.get_legend_handles_labels()[0])
    return fig
