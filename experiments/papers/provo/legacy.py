"""What repeats single figures of "Predict the Next Word" by its authors' own code: words, stored lists, samples."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.cloze import (
    WORD_RULES,
    count_words,
    relative_frequencies,
    study_words,
    tvd_to_split_halves,
)
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.improve import Curves, Distances, ShareSettings, share_result
from shannon_game.experiments.cloze.settings import chosen_models, groups_of
from shannon_game.experiments.cloze.tvd.contexts import contexts_shown
from shannon_game.experiments.cloze.tvd.sample_size import SizeDistances, large_enough, size_result
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.papers.provo.appendix_figures import histogram_figure
from shannon_game.experiments.papers.provo.quirks import PUBLISHED, PUBLISHED_RAW, legacy_split_halves
from shannon_game.experiments.papers.provo.stored import StoredLists

_SHOWN = ("1:2", "1:10", "2:20")
_SIZES = (10, 20, 40, 100)


@experiment(TvdSettings)
def distributions_legacy(study: xr.Dataset, settings: TvdSettings) -> ExperimentResult:
    """Show people's and models' most probable words side by side, words as the paper's code takes them."""
    models = chosen_models(settings, study, needed=False)
    # a failed sample is no word, though the code counts it as one
    of_gpt2 = replace(PUBLISHED, failed="drop")
    by_model = {name: of_gpt2 if name.startswith("gpt2") else PUBLISHED_RAW for name in models}
    words = study_words(study, human=PUBLISHED, model=by_model, corpus=WORD_RULES["none"], models=models)
    return contexts_shown(study, words, settings.item or _SHOWN, settings.n_words)


@experiment(ShareSettings)
def improve_legacy(study: xr.Dataset, settings: ShareSettings) -> ExperimentResult:
    """Find the share of contexts that GPT-2 has to answer like a person, from the stored lists of appendix E.

    They are of all 2,687 contexts, of which 798 can be computed again.
    """
    stored = StoredLists(study)
    found: Curves = {}
    for kind in ("unbiased", "biased"):
        lists = [f"cal_metrics_improved_model/{share}/tvd_{kind}" for share in (0, 1)]
        if not {*lists} <= {*stored.names}:
            raise InputError(f"has no list {lists[0]}; improve works for every cloze study", field="study")
        model, oracle = map(stored.values, lists)
        found["gpt2", kind] = Distances(model, oracle, groups_of(study, stored.items(lists[0])))
    return share_result(found, settings, printed=0.6)


@experiment(TvdSettings)
def tvd_sample_size_legacy(study: xr.Dataset, settings: TvdSettings) -> ExperimentResult:
    """Compare the TVD of n of a model's samples with that of all of them, as appendix C's code does.

    One shuffle a context is cut into pieces of these sizes, each against one half of people. That code seeds NumPy and
    shuffles with ``random``, so that its own numbers cannot be had again; the shuffle here has the run's seed.
    """
    sizes = sorted(settings.n or _SIZES)
    found = {name: _distances(study, settings.seed, name, sizes) for name in large_enough(study, settings, sizes)}
    result = size_result(study, found, settings.tail)
    return replace(result, figures={f"squared_errors_{name}": _errors_figure(one) for name, one in found.items()})


def _errors_figure(one: SizeDistances) -> Figure:
    """Draw histograms over contexts of the squared error of the TVD, an outline per number of samples (figure 8)."""
    squared = {n: (values - one.everything) ** 2 for n, values in one.by_size.items()}
    top = float(np.quantile(np.concatenate([*squared.values()]), 0.98))
    xlabel = f"squared error of the TVD with n samples (2% are above {top:.2g})"
    figure = histogram_figure({f"{n} samples": own for n, own in squared.items()}, "", top=top, xlabel=xlabel)
    figure.axes[0].set_yscale("log")
    return figure


def _distances(study: xr.Dataset, seed: int, name: str, sizes: list[int]) -> SizeDistances:
    words = study_words(study, human=WORD_RULES["none"], model=PUBLISHED, corpus=PUBLISHED, models=[name], per="entry")
    model = words.models[name]
    human = words.answers().take(model.item)
    split = legacy_split_halves(human, [0], size="half")
    everything = tvd_to_split_halves(relative_frequencies(model.counts), split)[0]
    draw = random.Random(seed)
    ends = np.cumsum([0, *sizes])
    if (model.counts.totals < ends[-1]).any():
        raise InputError(f"is {sizes}; one shuffle is cut into all of them, which takes {ends[-1]} samples", field="n")
    shuffled = []
    for context in range(model.counts.n_contexts):
        rows = slice(*np.searchsorted(model.counts.context, [context, context + 1]))
        answers = np.repeat(model.counts.word[rows], model.counts.count[rows]).tolist()
        draw.shuffle(answers)
        shuffled.append(answers[: ends[-1]])
    by_size = {}
    for n, (start, stop) in zip(sizes, pairwise(ends), strict=True):
        words_drawn = np.array(shuffled)[:, start:stop]
        owner = np.repeat(np.arange(len(shuffled)), n)
        drawn = count_words(owner, words_drawn.ravel(), np.ones(len(owner)), n_contexts=len(shuffled))
        by_size[n] = tvd_to_split_halves(relative_frequencies(drawn), split)[0]
    return SizeDistances(model.item, everything, by_size, model.counts.totals)
