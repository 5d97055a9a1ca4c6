"""``+exp=tvd_sample_size_legacy``: a smaller sample of the model, as the code of appendix C took it (figure 8)."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from estimators.cloze import WORD_RULES, count_words, relative_frequencies, study_words, tvd_to_split_halves
from estimators.errors import InputError
from experiments.cloze.tvd_sample_size import SampleSizeSettings, SizeDistances, large_enough, size_result
from experiments.harness.result import ExperimentResult, experiment
from experiments.papers.provo.quirks import PUBLISHED, legacy_split_halves

__all__ = ["TvdSampleSizeLegacySettings", "tvd_sample_size_legacy"]


class TvdSampleSizeLegacySettings(SampleSizeSettings):
    """Settings of :func:`tvd_sample_size_legacy`."""


@experiment(TvdSampleSizeLegacySettings)
def tvd_sample_size_legacy(study: xr.Dataset, settings: TvdSampleSizeLegacySettings) -> ExperimentResult:
    """Compare the TVD of n of a model's samples with that of all of them, as appendix C's code does.

    One shuffle a context is cut into pieces of these sizes, each against one half of people. That code seeds NumPy and
    shuffles with ``random``, so that its own numbers cannot be had again; the shuffle here has the run's seed.

    Parameters
    ----------
    study : xarray.Dataset
        Of :func:`~experiments.studies.cloze.provo.provo`.
    settings : TvdSampleSizeLegacySettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        One row a model and size.

    Raises
    ------
    InputError
        If no model has twice the largest number of samples, or the sizes together are more than there are.

    Examples
    --------
    >>> from experiments import provo, tvd_sample_size_legacy
    >>> tvd_sample_size_legacy(provo(root="predict_next_word")).table  # doctest: +SKIP
    """
    found = {name: _distances(study, settings, name) for name in large_enough(study, settings)}
    return size_result(study, settings, found)


def _distances(study: xr.Dataset, settings: SampleSizeSettings, name: str) -> SizeDistances:
    sizes = sorted(settings.n)
    words = study_words(study, human=WORD_RULES["none"], model=PUBLISHED, corpus=PUBLISHED, models=[name], per="entry")
    model = words.models[name]
    human = words.answers().take(model.item)
    split = legacy_split_halves(human, [0], size="half")
    everything = tvd_to_split_halves(relative_frequencies(model.counts), split)[0]
    draw = random.Random(settings.seed)
    ends = np.cumsum([0, *sizes])
    if (model.counts.totals < ends[-1]).any():
        raise InputError(f"is {sizes}; one shuffle is cut into all of them, which takes {ends[-1]} samples", field="n")
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
    return SizeDistances(model.item, everything, by_size, model.counts.totals)
