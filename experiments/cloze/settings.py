"""What the experiments on cloze studies share: settings, words in one coding, standard errors over texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.cloze import StudyWords, WordRules, study_words, word_rules
from shannon_game.estimators.cloze.study import entry_positions, model_names
from shannon_game.estimators.documents import clustered_mean
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.experiments.studies.cloze.rows import WordRulesName
from shannon_game.inference.settings import Count, Names, Settings

ORACLE = "half_of_people"
"""Name of the second half of the human answers, as a player; *oracle 2* in the paper."""


class WordSettings(Settings):
    """Rules that make the words of both sides comparable; single rules that are not null replace those named."""

    rules: WordRulesName | None = None
    """Named rules (shannon_game.estimators.cloze.words.WORD_RULES); null takes the study's own."""
    drop_matching: tuple[str, ...] | None = None
    """Regular expressions; a string in which one is found is junk."""
    non_answers: Names | None = None
    """All whole answers that are no word; null takes those of the rules
    (shannon_game.estimators.cloze.words.NON_ANSWERS)."""
    more_non_answers: Names = ()
    """Whole answers that are no word either, such as [NA, weiss nicht]."""
    mac_roman: bool | None = None
    """Read apostrophes and dashes in the Mac's encoding as such."""
    unicode: Literal["NFC", "NFKC", "keep"] | None = None
    """Unicode normal form."""
    newlines: Literal["space", "delete"] | None = None
    """What a line break becomes."""
    case: Literal["lower", "keep"] | None = None
    """Lower case, or as it stands."""
    pieces: Literal["first", "join", "keep", "drop"] | None = None
    """What becomes of several words."""
    contractions: Literal["host", "join", "keep"] | None = None
    """What becomes of contractions."""
    punctuation: Literal["all", "edges", "keep"] | None = None
    """What punctuation is deleted."""
    failed: Literal["drop", "keep"] | None = None
    """Whether a sample that failed is missing or a word."""
    junk: Literal["drop", "keep"] | None = None
    """Whether a word without letter or digit is missing or a word."""
    blank: Literal["drop", "keep"] | None = None
    """Whether an empty answer is missing or a word."""
    boundaries: Literal["spaces", "icu"] | None = None
    """What stands between words: spaces, or icu, which knows the words of Chinese, Japanese and Thai (extra words)."""
    lemmas: Names | None = None
    """Codes of languages, as [en], whose words are replaced by their lemmas (extra words)."""

    def of(self, study: xr.Dataset) -> WordRules:
        """Rules for a study."""
        own = {"rules", "more_non_answers"}
        changes = {name: value for name, value in self if value is not None and name not in own}
        rules = word_rules(self.rules or str(study.attrs.get("word_rules", "clean")), changes)
        return replace(rules, non_answers=(*rules.non_answers, *self.more_non_answers))


class ClozePlayerSettings(Settings):
    """Which models are looked at."""

    players: Names | None = None
    """Models to compare with people; null takes all of the study."""


class ComparableSettings(Settings):
    """How words become comparable."""

    words: WordSettings = WordSettings()
    """What makes the words of both sides comparable."""


class ClozeSettings(ClozePlayerSettings, ComparableSettings):
    """What a comparison of people with models takes."""


class OracleSettings(ClozeSettings, Seeded):
    """What a comparison of models with people, beside that of people with people, takes."""

    n_splits: Count = 20
    """Independent random splits of each context's answers into two oracles."""
    n_bins: Count = 10
    """Bins of the expected calibration error."""


def chosen_models(
    settings: ClozePlayerSettings, study: xr.Dataset, *, needed: bool = True, scored: bool = False
) -> list[str]:
    """Models of ``players=[...]``, by default all of the study that have samples, or `scored` targets alone."""
    # a model whose file gave log-probabilities of the targets alone has no distribution to compare
    valid = [
        name
        for name in model_names(study)
        if scored
        or study["sample_count"].to_numpy()[np.isin(study["sample_entry"], entry_positions(study, name))].any()
    ]
    wanted = valid if settings.players is None else list(settings.players)
    for name in wanted:
        if name not in valid:
            raise unknown_choice("model", name, valid, source=f"players, study {study.attrs['name']!r}")
    if needed and not wanted:
        problem = "has no model's words; this experiment compares people with models"
        raise InputError(problem, source="settings", field="study")
    return wanted


def words_of(settings: ClozeSettings, study: xr.Dataset, models: Sequence[str]) -> StudyWords:
    """Words of the study with one set of rules on all sides, a model's samples pooled by context."""
    rules = settings.words.of(study)
    words = study_words(study, human=rules, model=rules, corpus=rules, models=models)
    if not len(words.strings):
        raise InputError("leave no word of any answer", field=Set("experiment.words"))
    return words


def shared_contexts(words: StudyWords, name: str, *, n_samples: int = 1) -> NDArray[np.intp]:
    """Positions, among a model's contexts, of those that have enough of its samples and two answers of people."""
    model, answers = words.models[name], words.answers()
    have = np.flatnonzero((model.counts.totals >= n_samples) & (answers.totals[model.item] > 1))
    if len(have) < 2:
        problem = f"has {len(have)} contexts with {n_samples} of its words and two answers of people"
        why = "once blank answers and junk are out; at least 2 are needed"
        raise InputError(f"{problem}, {why}", source=f"model {name!r}")
    return have


def known_mean(values: ArrayLike) -> float:
    """Mean of the values that are known; NaN where none is."""
    values = np.asarray(values, dtype=float)
    return float("nan") if np.isnan(values).all() else float(np.nanmean(values))


def cluster_se(values: ArrayLike, groups: ArrayLike) -> float:
    """Standard error of a mean over contexts in groups; contexts of one group are each their own."""
    group = np.asarray(groups)
    return clustered_mean(values, group if len(set(group.tolist())) > 1 else np.arange(group.size)).se


def groups_of(study: xr.Dataset, items: NDArray[np.intp]) -> NDArray[np.object_]:
    """Text of each context."""
    return np.asarray(study["text_id"].to_numpy()[items], dtype=object)
