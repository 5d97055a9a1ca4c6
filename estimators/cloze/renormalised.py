"""The biased estimator of appendix A: a model's probabilities of the words at hand, renormalised over them."""

from __future__ import annotations

from typing import Literal

import numpy as np

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.cloze.distributions import Distributions
from shannon_game.estimators.cloze.study import CLOZE, SAMPLES, entry_positions
from shannon_game.estimators.cloze.words import WordRules, normalise_words
from shannon_game.estimators.errors import InputError, unknown_choice

# the order in which the paper's code collects the words; a word that is there again overwrites its log-probability
_ORDER = ("corpus", "greedy", "human", SAMPLES)


def renormalised_distributions(
    study: Dataset, model: str, strings: list[str], rules: WordRules, *, same: Literal["last", "sum"] = "sum"
) -> Distributions:
    """Renormalise a model's probabilities over the union of sampled, nucleus, greedy, human and corpus words.

    Biased, because the words were chosen with the model's and people's help, and everything else counts as nothing.

    Parameters
    ----------
    strings : list of str
        Normalised words by code, as in ``StudyWords.strings``; extended in place by words that are new.
    same : {"sum", "last"}, optional
        What to do with different strings that are one word by the rules ("The", "the"): add their probabilities, or
        take the last one's as the paper's code does with equal strings.

    Examples
    --------
    >>> study = cloze.examples.cloze_study()
    >>> words = cloze.study_words(study, human="none", model="none", corpus="none")
    >>> scored = study.assign(sample_logprob=("sample", np.full(study.sizes["sample"], -2.0)))
    >>> rules = cloze.word_rules("none")
    >>> cloze.renormalised_distributions(scored, "mixture", words.strings.tolist(), rules).mass[:3]
    array([1., 1., 1.])
    """
    study = CLOZE.read(study)
    if same not in ("sum", "last"):
        raise unknown_choice("same", same, ("sum", "last"), source="biased estimator")
    entries = entry_positions(study, model)
    place = np.full(study.sizes["entry"], -1, dtype=np.int64)
    place[entries] = np.arange(len(entries))
    rows = np.flatnonzero(place[study["sample_entry"].values] >= 0)
    if "sample_logprob" not in study or np.isnan(study["sample_logprob"].values[rows]).all():
        raise InputError(f"{model!r} has no log-probabilities", source="biased estimator", field="model")
    rows = rows[~np.isnan(study["sample_logprob"].values[rows])]
    sources = study["source"].values.tolist()
    turn = np.array([_ORDER.index(name) if name in _ORDER else len(_ORDER) + i for i, name in enumerate(sources)])
    rows = rows[np.argsort(turn[study["sample_source"].values[rows]], kind="stable")]
    context = place[study["sample_entry"].values[rows]]
    raw = study["sample_word"].values[rows].astype(np.int64)
    logprob = study["sample_logprob"].values[rows]
    # the last row of every (context, string), in the order in which they were collected
    key = context * study.sizes["word"] + raw
    _, last = np.unique(key[::-1], return_index=True)
    kept = np.sort(len(key) - 1 - last)
    context, raw, probability = context[kept], raw[kept], np.exp(logprob[kept])
    used, row = np.unique(raw, return_inverse=True)
    done = normalise_words(study["word_text"].values[used], rules)
    codes = {text: code for code, text in enumerate(strings)}
    word_of = done.codes(codes, grow=True)
    strings.extend(list(codes)[len(strings) :])
    word = word_of[row]
    context, word, probability = context[word >= 0], word[word >= 0], probability[word >= 0]
    width = len(codes)
    union, inverse = np.unique(context * width + word, return_inverse=True)
    total = np.bincount(inverse, weights=probability).astype(float)
    if same == "last":
        # the last assignment wins
        total[inverse] = probability
    context = union // width
    mass = np.bincount(context, weights=total)
    return Distributions(context, union % width, total / mass[context], len(entries))
