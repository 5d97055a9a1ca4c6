"""One row per context, and one row per participant, of a cloze study: for regressions, with the owner's own ids."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import DataFrame, Dataset, FloatArray
from shannon_game.estimators.cloze.answer_statistics import entropy_corrected_nats
from shannon_game.estimators.cloze.distances import total_variation
from shannon_game.estimators.cloze.distributions import (
    Distributions,
    WordCounts,
    entropy_nats,
    highest_rows,
    probability_at,
    relative_frequencies,
)
from shannon_game.estimators.cloze.study import CLOZE, context_labels, entry_positions
from shannon_game.estimators.cloze.study_words import ModelWords, StudyWords, study_words
from shannon_game.estimators.cloze.tvd_bias import tvd_with_baseline
from shannon_game.estimators.cloze.words import WordRules, normalise_words, word_rules
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions


def cloze_items(
    study: Dataset,
    *,
    rules: WordRules | str | None = None,
    models: Sequence[str] | None = None,
    distances: bool = True,
    words: StudyWords | None = None,
) -> DataFrame:
    """Describe every context: what people said, and how likely each model finds the word of the text.

    Parameters
    ----------
    rules : WordRules or str, optional
        What makes words comparable; the study's own by default.
    models : sequence of str, optional
        All of the study by default.
    distances : bool, optional
        Whether to add the distances, which take most of the time.
    words : StudyWords, optional
        Those of the study by `rules`, where they are made already.

    Returns
    -------
    pandas.DataFrame
        One row per context, in the order of the study. What is not known is NaN.

        - ``item``: the study's ``item_id``, else "TEXT:WORD"; ``text_id``, ``word_num``, ``context``, ``target``.
        - ``n_answers``, ``n_different``: answers that are words, and how many different ones.
        - ``cloze_probability``: share of them that are the target.
        - ``modal_answer``, ``modal_probability``, ``n_modal``: the most frequent answer, its share, and how many
          answers are as frequent (the first of them in the data is shown).
        - ``entropy_nats`` of the shares, and ``entropy_corrected_nats`` (:func:`entropy_corrected_nats`).
        - For each model NAME ``n_samples_NAME``; ``target_probability_NAME`` and ``surprisal_nats_NAME``, of the
          log-probabilities of the target (its most probable spelling) where the study holds one for every context of
          the model, else of the samples, where a target that was never drawn has an infinite surprisal.
        - ``tvd_NAME``: raw distance to people, biased up; ``tvd_corrected_NAME``: see :func:`tvd_with_baseline`.

    Examples
    --------
    >>> table = cloze.cloze_items(cloze.examples.cloze_study(), models=["mixture"])
    >>> table.loc[:1, ["item", "n_answers", "modal_answer", "entropy_nats", "tvd_mixture"]].round(2)
      item  n_answers modal_answer  entropy_nats  tvd_mixture
    0  1:2         20        word0          1.61         0.65
    1  1:3         20        word0          2.11         0.50
    """
    study = CLOZE.read(study)
    import pandas as pd  # noqa: PLC0415 - half a second that importing estimators does not need

    if words is None:
        words, rules = _words(study, rules, models)
    else:
        rules = _rules(study, rules)
    people = words.human_distributions
    target = words.target
    n_items = study.sizes["item"]
    highest, top, tied, _ = highest_rows(people, people.probability)
    counts = words.human
    columns: dict[str, object] = {
        "item": context_labels(study),
        "text_id": study["text_id"].to_numpy(),
        "word_num": study["word_num"].to_numpy(),
        "context": study["context"].to_numpy(),
        "target": study["target_word"].to_numpy(),
        "n_answers": np.nan if counts is None else counts.totals,
        "n_different": np.bincount(people.context, minlength=n_items),
        "cloze_probability": _probability_of(target, people),
        "modal_answer": [str(words.strings[code]) if code >= 0 else "" for code in top.tolist()],
        "modal_probability": np.where(tied > 0, highest, np.nan),
        "n_modal": tied,
        "entropy_nats": entropy_nats(people),
        "entropy_corrected_nats": np.nan if counts is None else entropy_corrected_nats(counts),
    }
    code = _codes_of_strings(study, words, rules) if "sample_logprob" in study and words.models else None
    for name in words.models if models is None else models:
        said = _over_items(words.models[name], n_items)
        shares = relative_frequencies(said)
        scored = None if code is None else _scored_target(study, name, target, code)
        likely = _probability_of(target, shares) if scored is None else scored
        with np.errstate(divide="ignore"):
            surprisal = -np.log(likely)
        columns |= {
            f"n_samples_{name}": said.totals,
            f"target_probability_{name}": likely,
            f"surprisal_nats_{name}": surprisal,
        }
        if distances:
            columns[f"tvd_{name}"] = total_variation(shares, people)
            columns[f"tvd_corrected_{name}"] = np.nan if counts is None else tvd_with_baseline(said, counts).corrected
    return pd.DataFrame(columns)


def cloze_participants(study: Dataset, *, rules: WordRules | str | None = None) -> DataFrame:
    """Describe every participant: how much they answered, how often they hit the target, and agree with the others.

    Returns
    -------
    pandas.DataFrame
        One row per participant, in the order of the study: ``participant``; ``n_responses``, and ``n_answers`` of them
        that are words; ``share_target``, those that are the target among the answers to contexts that have one;
        ``agreement``, the mean share of the other people who gave the same answer.

    Examples
    --------
    >>> settings = cloze.ClozeSimulation(n_items=5, n_answers=8, vocab_size=30, n_groups=1)
    >>> study = cloze.simulate_cloze_study(settings, np.random.default_rng(0))
    >>> cloze.cloze_participants(study).columns.tolist()
    ['participant', 'n_responses', 'n_answers', 'share_target', 'agreement']
    """
    import pandas as pd  # noqa: PLC0415

    study, source = CLOZE.read(study), CLOZE.source(study)
    if "participant" not in study:
        raise InputError("is missing; the study does not say who answered", source=source, field="participant")
    words, rules = _words(study, rules, [])
    item = item_positions(study, "response_item")
    answer = _codes_of_strings(study, words, rules)[study["response_word"].to_numpy()]
    counts = words.answers()
    own = WordCounts(item, answer, np.ones(len(item), dtype=np.int64), counts.n_contexts)
    # of the others: the answer itself is one of those counted
    others = counts.totals[item] - 1
    same = probability_at(relative_frequencies(counts), own) * counts.totals[item] - 1
    is_word, target = answer >= 0, words.target[item]
    table = pd.DataFrame(
        {
            "participant": study["participant"].to_numpy(),
            "is_word": is_word,
            "hit": np.where(is_word & (target >= 0), answer == target, np.nan),
            "agreement": np.where(is_word & (others > 0), same / np.maximum(others, 1), np.nan),
        }
    )
    by = table.groupby("participant", sort=False)
    named = by.agg(
        n_responses=("is_word", "size"),
        n_answers=("is_word", "sum"),
        share_target=("hit", "mean"),
        agreement=("agreement", "mean"),
    )
    return named.reset_index()


def _words(study: Dataset, rules: WordRules | str | None, models: Sequence[str] | None) -> tuple[StudyWords, WordRules]:
    study = CLOZE.read(study)
    rules = _rules(study, rules)
    return study_words(study, human=rules, model=rules, corpus=rules, models=models), rules


def _rules(study: Dataset, rules: WordRules | str | None) -> WordRules:
    if isinstance(rules, WordRules):
        return rules
    return word_rules(str(study.attrs.get("word_rules", "clean")) if rules is None else rules)


def _over_items(model: ModelWords, n_items: int) -> WordCounts:
    counts = model.counts
    return WordCounts(model.item[counts.context], counts.word, counts.count, n_items)


def _probability_of(target: NDArray[np.int64], p: Distributions) -> FloatArray:
    """Probability of each context's target; NaN where there is no target or no distribution."""
    known = np.flatnonzero((target >= 0) & (p.mass > 0))
    likely = np.full(p.n_contexts, np.nan)
    likely[known] = probability_at(p, Distributions(known, target[known], np.ones(len(known)), p.n_contexts))
    return likely


def _codes_of_strings(study: Dataset, words: StudyWords, rules: WordRules) -> NDArray[np.int64]:
    """Code of the word that each string of the study is; -1 where it is none, or none of the words."""
    known = {word: code for code, word in enumerate(words.strings.tolist())}
    return normalise_words(study["word_text"].to_numpy(), rules).codes(known)


def _scored_target(study: Dataset, name: str, target: NDArray[np.int64], code: NDArray[np.int64]) -> FloatArray | None:
    """Probability that the study holds for the target; None where it lacks that of a context of the model."""
    entries, item = entry_positions(study, name), item_positions(study, "entry_item")
    entry, logprob = study["sample_entry"].to_numpy(), study["sample_logprob"].to_numpy()
    wanted = np.full(study.sizes["entry"], -2, dtype=np.int64)
    wanted[entries] = np.where(target[item[entries]] >= 0, target[item[entries]], -2)
    rows = np.flatnonzero((code[study["sample_word"].to_numpy()] == wanted[entry]) & np.isfinite(logprob))
    # of a context that was asked again, the entries say the same
    likely = np.zeros(study.sizes["item"])
    np.maximum.at(likely, item[entry[rows]], np.exp(logprob[rows]))
    asked = np.unique(item[entries][wanted[entries] >= 0])
    if not asked.size or not (likely[asked] > 0).all():
        return None
    return np.where(likely > 0, np.minimum(likely, 1), np.nan)
