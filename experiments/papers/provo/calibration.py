"""Calibration errors of appendices A and D of "Predict the Next Word" (tables 2 and 4)."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.calibration_error import expected_calibration_error
from shannon_game.estimators.cloze.distributions import top_words
from shannon_game.estimators.cloze.renormalised import renormalised_distributions
from shannon_game.estimators.cloze.study import model_names
from shannon_game.estimators.cloze.study_words import StudyWords, study_words
from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.experiments.papers.provo.quirks import appendix_halves, words_as_written
from shannon_game.experiments.papers.provo.stored import Items, StoredLists, single_numbers

_HALVES = "cal_metrics_oracle/oracle1_no_repl_dict/TVD_per_instance"
_TOKENS = "cal_metrics_bpe/ECE_human_maj_truth/"
_PLAYERS = {
    "model_human": "gpt2",
    "oracle_dis_1_human": "oracle1",
    "oracle_dis_2_human": "oracle2",
    "oracle_boot_1_human": "oracle1 with replacement",
    "oracle_boot_2_human": "oracle2 with replacement",
}


def appendix_calibration(study: xr.Dataset) -> dict[str, float]:
    """Compute the calibration errors of appendix A: two samples of the people, and GPT-2."""
    found = _renormalised_calibration(study) if "gpt2" in model_names(study) else {}
    stored = StoredLists(study)
    if _HALVES not in stored.names:
        return found
    items, words = stored.items(_HALVES), words_as_written(study)
    counts = words.answers().take(items)
    starts = np.searchsorted(counts.context, np.arange(counts.n_contexts))
    majority = counts.word[_first_largest(counts.count, starts)]
    # a blank answer is NaN there, which equals nothing
    gold = {"corpus": corpus_words(study, words, items), "human": np.where(majority == words.blank, -1, majority)}
    for drawn in ("", " with replacement"):
        split = appendix_halves(counts, with_replacement=bool(drawn))
        for player, part in (("oracle1", split.first[0]), ("oracle2", split.second[0])):
            top = _first_largest(part, starts)
            sure = part[top] / np.add.reduceat(part, starts)
            for label, right in gold.items():
                error = expected_calibration_error(sure, (counts.word[top] == right).astype(float), bins="legacy")
                found[f"ece/appendix A/{player}{drawn}/{label}"] = error.ece
    return found


def stored_token_errors(study: xr.Dataset) -> dict[str, float]:
    """Read the calibration errors of appendix D that the authors stored."""
    single = single_numbers(study)
    there = {player: single[_TOKENS + key] for key, player in _PLAYERS.items() if _TOKENS + key in single}
    return {f"ece/appendix D/{player}/human": float(value) for player, value in there.items()}


def _renormalised_calibration(study: xr.Dataset) -> dict[str, float]:
    """Calibration errors of GPT-2 renormalised, on the entries whose samples are public."""
    none = WORD_RULES["none"]
    words = study_words(study, human=none, model=none, corpus=none, models=["gpt2"], per="entry")
    items = words.models["gpt2"].item
    q = renormalised_distributions(study, "gpt2", list(words.strings), none, same="last")
    top = _first_largest(q.probability, np.searchsorted(q.context, np.arange(q.n_contexts)))
    gold = {"corpus": words.target[items], "human": top_words(words.answers().take(items)).word}
    return {
        f"ece/appendix A/gpt2 renormalised/{label}": expected_calibration_error(
            q.probability[top], (q.word[top] == right).astype(float), bins="legacy"
        ).ece
        for label, right in gold.items()
    }


def corpus_words(study: xr.Dataset, words: StudyWords, items: Items) -> NDArray[np.int64]:
    """Codes of the corpus words of a stored list's contexts, shape (context,).

    Passage 36 has a lone dash where the list repeats a context: the word asked for was that dash, which nobody
    can give; its code is -1.
    """
    target = words.target[items].copy()
    passage = study["text_id"].to_numpy()[items]
    target[np.flatnonzero((passage[1:] == "36") & (items[1:] == items[:-1]))] = -1
    return target


def _first_largest(values: NDArray[np.generic], starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Row of each context's largest value, the first of several, in the order of the files."""
    ends = np.append(starts[1:], len(values))
    return np.array([start + int(np.argmax(values[start:end])) for start, end in zip(starts, ends, strict=True)])
