"""``+exp=tvd_sample_size``: what a smaller sample of the model does to its TVD (appendix C, figure 8)."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from omegaconf import DictConfig

from estimators.cloze.distributions import WordCounts, count_words, relative_frequencies
from estimators.cloze.split_halves import SplitHalves, legacy_split_halves, random_split_halves, tvd_to_split_halves
from estimators.cloze.study_words import StudyWords, study_words
from estimators.cloze.tvd_bias import tvd_with_baseline
from estimators.cloze.words import WORD_RULES
from estimators.errors import InputError
from experiments.cloze.settings import (
    chosen_models,
    clean_words,
    cluster_se,
    colours,
    groups_of,
    label,
    mode_of,
    require_scipy,
)
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import rng_for, tail_probability, whole_numbers

__all__ = ["run", "subsample"]

Floats = NDArray[np.float64]


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Compare the TVD of n of a model's samples with that of all of them, context by context."""
    require_scipy()
    mode = mode_of(cfg)
    tail = tail_probability(cfg)
    sizes = sorted(whole_numbers(cfg, "n"))
    models = _large_enough(cfg, study, sizes)
    rows: list[dict[str, Any]] = []
    errors: dict[tuple[str, int], Floats] = {}
    for name in models:
        found = _legacy(study, name, sizes, cfg) if mode == "legacy" else _clean(cfg, study, name, sizes)
        groups = groups_of(study, found["items"])
        for n in sizes:
            difference = found["by_size"][n] - found["all"]
            errors[name, n] = difference
            rows.append(
                {
                    "model": name,
                    "mode": mode,
                    "n_samples": n,
                    "n_samples_all": int(np.median(found["totals"])),
                    "n_contexts": len(difference),
                    "tvd": float(found["by_size"][n].mean()),
                    "tvd_all": float(found["all"].mean()),
                    "tvd_error": float(difference.mean()),
                    "se_error": cluster_se(difference, groups),
                    "error_lower": float(np.quantile(difference, tail)),
                    "error_upper": float(np.quantile(difference, 1 - tail)),
                    "mean_squared_error": float((difference**2).mean()),
                    "tvd_corrected": found["corrected"].get(n, np.nan),
                    "tvd_corrected_all": found["corrected"].get(0, np.nan),
                }
            )
    table = pd.DataFrame(rows)
    dataset = xr.Dataset(
        {
            f"error_{name}".replace(".", "_"): (("n", f"context_{name}"), np.stack([errors[name, n] for n in sizes]))
            for name in models
        },
        coords={"n": sizes},
    )
    return ExperimentResult(table, dataset, {"tvd_sample_size": figure(errors, models, sizes, cfg)}, summary(table))


def subsample(counts: WordCounts, size: int, rng: np.random.Generator) -> WordCounts:
    """Draw `size` of each context's answers without replacement; all of them where there are no more."""
    answers = np.repeat(np.arange(len(counts.count)), counts.count)
    context = counts.context[answers]
    shuffled = answers[np.lexsort((rng.random(len(answers)), context))]
    totals = counts.totals
    rank = np.arange(len(answers)) - (np.cumsum(totals) - totals)[context]
    chosen = shuffled[rank < size]
    return count_words(counts.context[chosen], counts.word[chosen], np.ones(len(chosen)), n_contexts=counts.n_contexts)


def _large_enough(cfg: DictConfig, study: xr.Dataset, sizes: list[int]) -> list[str]:
    models = chosen_models(cfg, study)
    samples = np.bincount(
        study["sample_entry"].to_numpy(),
        weights=study["sample_count"].to_numpy() * _is_sample(study),
        minlength=study.sizes["entry"],
    )
    entry_model = study["entry_model"].to_numpy()
    names = study["model"].to_numpy().tolist()
    enough = [name for name in models if np.median(samples[entry_model == names.index(name)]) >= 2 * max(sizes)]
    if not enough or (cfg.players is not None and len(enough) < len(models)):
        raise InputError(
            f"is {sizes}, but a model needs at least twice the largest number of samples a context to compare with; "
            f"those of {', '.join(name for name in models if name not in enough)} have fewer",
            field="experiment.n",
        )
    return enough


def _is_sample(study: xr.Dataset) -> NDArray[np.bool_]:
    return np.asarray(study["sample_source"].to_numpy() == study["source"].to_numpy().tolist().index("samples"))


def _clean(cfg: DictConfig, study: xr.Dataset, name: str, sizes: list[int]) -> dict[str, Any]:
    words = clean_words(cfg, study, [name])
    model, answers = words.models[name], words.answers()
    have = np.flatnonzero((model.counts.totals >= max(sizes)) & (answers.totals[model.item] > 1))
    items = model.item[have]
    counts, human = model.counts.take(have), answers.take(items)
    n_repeats = whole_numbers(cfg, "n_repeats")[0]
    rng = rng_for(cfg, f"tvd_sample_size {name}")
    splits = random_split_halves(human, n_splits=1, rng=rng)
    everything = tvd_to_split_halves(relative_frequencies(counts), splits)[0]
    by_size, corrected = {}, {0: float(np.nanmean(tvd_with_baseline(counts, human).corrected))}
    for n in sizes:
        drawn = [subsample(counts, n, rng) for _ in range(n_repeats)]
        by_size[n] = np.mean([tvd_to_split_halves(relative_frequencies(one), splits)[0] for one in drawn], axis=0)
        corrected[n] = float(np.nanmean([np.nanmean(tvd_with_baseline(one, human).corrected) for one in drawn]))
    return {"items": items, "all": everything, "by_size": by_size, "corrected": corrected, "totals": counts.totals}


def _legacy(study: xr.Dataset, name: str, sizes: list[int], cfg: DictConfig) -> dict[str, Any]:
    """As appendix C's code: one shuffle a context cut into pieces of these sizes, each against one half of people.

    That code seeds NumPy and shuffles with ``random``, so that its own numbers cannot be had again; the shuffle here
    has the run's seed.
    """
    rules = WORD_RULES["published"]
    words: StudyWords = study_words(
        study, human=WORD_RULES["none"], model=rules, corpus=rules, models=[name], per="entry"
    )
    model = words.models[name]
    human = words.answers().take(model.item)
    split: SplitHalves = legacy_split_halves(human, [0], size="half")
    everything = tvd_to_split_halves(relative_frequencies(model.counts), split)[0]
    draw = random.Random(int(cfg.seed))
    ends = np.cumsum([0, *sizes])
    if (model.counts.totals < ends[-1]).any():
        raise InputError(
            f"is {sizes}; one shuffle is cut into all of them, which takes {ends[-1]} samples", field="experiment.n"
        )
    pieces: dict[int, list[tuple[int, NDArray[np.int64]]]] = {n: [] for n in sizes}
    for context in range(model.counts.n_contexts):
        rows = slice(*np.searchsorted(model.counts.context, [context, context + 1]))
        answers = np.repeat(model.counts.word[rows], model.counts.count[rows]).tolist()
        draw.shuffle(answers)
        for n, (start, stop) in zip(sizes, pairwise(ends), strict=True):
            pieces[n].append((context, np.array(answers[start:stop])))
    by_size = {}
    for n, parts in pieces.items():
        owner = np.repeat([one for one, _ in parts], n)
        drawn = count_words(
            owner,
            np.concatenate([part for _, part in parts]),
            np.ones(len(owner)),
            n_contexts=model.counts.n_contexts,
        )
        by_size[n] = tvd_to_split_halves(relative_frequencies(drawn), split)[0]
    return {"items": model.item, "all": everything, "by_size": by_size, "corrected": {}, "totals": model.counts.totals}


def summary(table: pd.DataFrame) -> str:
    """Say how much each size adds."""
    lines = []
    for name, rows in table.groupby("model", sort=False):
        steps = ", ".join(f"{row.n_samples} samples: {row.tvd_error:+.4f}" for row in rows.itertuples())
        first = rows.iloc[0]
        lines.append(
            f"- **{label(str(name))}** ({first['n_contexts']:,} contexts, {first['n_samples_all']:,} samples each, "
            f"TVD to oracle 1 {first['tvd_all']:.4f}): {steps}"
        )
    return "Mean change of the TVD when fewer samples of the model are used:\n\n" + "\n".join(lines)


def figure(errors: dict[tuple[str, int], Floats], models: list[str], sizes: list[int], cfg: DictConfig) -> Figure:
    """Change of the TVD over contexts, a box a size (figure 8)."""
    palette = colours(models)
    with mpl.rc_context(STYLE):
        fig = new_figure(6.2, 3.6)
        axes = fig.add_subplot()
        axes.axhline(0, color="0.5", linewidth=0.8, linestyle="--")
        width = 0.7 / len(models)
        for m, name in enumerate(models):
            places = np.arange(len(sizes)) + (m - (len(models) - 1) / 2) * width
            boxes = axes.boxplot(
                [errors[name, n] for n in sizes], positions=places, widths=width * 0.85, whis=(5, 95), showfliers=False,
                patch_artist=True, showmeans=True,
                meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 4},
                medianprops={"color": "black"},
            )  # fmt: skip
            for box in boxes["boxes"]:
                box.set(facecolor=palette[name], alpha=0.6)
            boxes["boxes"][0].set_label(label(name))
        axes.set_xticks(np.arange(len(sizes)), [str(n) for n in sizes])
        axes.set_xlabel("samples of the model a context")
        axes.set_ylabel("TVD with n samples \N{MINUS SIGN} with all")
        axes.set_title(f"A small sample of a model looks farther from people ({mode_of(cfg)})")
        axes.grid(axis="y", color="0.92", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(title="box: quartiles; whiskers: 5 to 95%; diamond: mean")
    return fig
