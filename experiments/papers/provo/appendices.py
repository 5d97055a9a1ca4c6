"""Appendices A, E and F of "Predict the Next Word" as its code computed them, list by list."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import xarray as xr

from shannon_game.estimators.cloze.distributions import Distributions, relative_frequencies
from shannon_game.estimators.cloze.renormalised import renormalised_distributions
from shannon_game.estimators.cloze.split_halves import tvd_between_split_halves, tvd_to_split_halves
from shannon_game.estimators.cloze.study import model_names
from shannon_game.estimators.cloze.study_words import study_words
from shannon_game.estimators.cloze.words import WORD_RULES, WordRules
from shannon_game.experiments.papers.provo.quirks import (
    PUBLISHED,
    appendix_halves,
    improved_legacy,
    legacy_split_halves,
    words_as_written,
)
from shannon_game.experiments.papers.provo.stored import Floats, Items, StoredLists, in_order_of, without_word

Lists = dict[str, tuple[Floats, Items]]
"""By the name of the stored list: one value per context, and the positions of the contexts."""

_FIRST: Literal["first"] = "first"
_SECOND: Literal["second"] = "second"

SHARES = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
"""Shares of contexts that are improved, as the stored lists name them."""

FOLDS = ("1_10", "11_20", "21_30", "31_40")
"""Passages left out of fine-tuning, as the stored lists name them."""
_MAIN = "cal_metrics_improved_model"
_ORACLE = re.compile(r"cal_metrics_oracle/(?P<oracle>oracle\d)_(?P<kind>no_repl|repl)_dict/TVD_per_instance")


def appendix_lists(study: xr.Dataset) -> Lists:
    """Compute the lists of appendices A (oracles), E (improvement) and F (the same, by fold of passages)."""
    lists = _oracle_lists(study)
    for model in ("gpt2", "gpt2-ft"):
        if model in model_names(study):
            lists |= _improvement_lists(study, model)
    return lists


def spread_of_oracles(lists: Mapping[str, Floats]) -> dict[str, float]:
    """Mean, population standard deviation and maximum of the lists of appendix A, which the code stores too."""
    found: dict[str, float] = {}
    for name, values in lists.items():
        match = _ORACLE.fullmatch(name)
        if match is None:
            continue
        player = f"tvd/appendix A/{match['oracle']}" + (" with replacement" if match["kind"] == "repl" else "")
        found |= {
            f"{player}/mean": float(values.mean()),
            f"{player}/sd": float(values.std()),
            f"{player}/maximum": float(values.max()),
        }
    return found


def _oracle_lists(study: xr.Dataset) -> Lists:
    """Appendix A: two halves, and two draws with replacement, each against all answers."""
    stored, words = StoredLists(study), words_as_written(study)
    found: Lists = {}
    for kind in ("no_repl", "repl"):
        for number, side in ((1, _FIRST), (2, _SECOND)):
            name = f"cal_metrics_oracle/oracle{number}_{kind}_dict/TVD_per_instance"
            if name not in stored.names:
                continue
            items = stored.items(name)
            counts = words.answers().take(items)
            everyone = relative_frequencies(counts)
            # a blank answer is NaN there, which equals nothing: people's probability of it is lost
            kept = everyone.word != words.blank
            q = Distributions(
                everyone.context[kept], everyone.word[kept], everyone.probability[kept], everyone.n_contexts
            )
            split = appendix_halves(counts, with_replacement=kind == "repl")
            found[name] = tvd_to_split_halves(q, split, side, remaining=np.zeros(len(items)))[0], items
    return found


def _improvement_lists(study: xr.Dataset, model: str) -> Lists:
    """Appendices E and F: TVDs to oracle 1, a share of them replaced by those between the oracles."""
    none = WORD_RULES["none"]
    found: Lists = {}
    # appendix E drops failed samples and lower-cases; appendix F does neither
    if model == "gpt2":
        found |= _improved(study, model, replace(PUBLISHED, failed="drop"), [_MAIN])
    tuned = "_fine_tuned" if model == "gpt2-ft" else ""
    return found | _improved(study, model, none, [f"{_MAIN}{tuned}_{fold}" for fold in FOLDS])


def _improved(study: xr.Dataset, model: str, rules: WordRules, folds: Sequence[str]) -> Lists:
    stored, none = StoredLists(study), WORD_RULES["none"]
    words = study_words(study, human=none, model=rules, corpus=none, models=[model], per="entry")
    one = words.models[model]
    answers = without_word(words.answers(), words.blank) if model == "gpt2-ft" else words.answers()
    split = legacy_split_halves(answers.take(one.item), [0], size="half")
    biased = renormalised_distributions(study, model, list(words.strings), none, same="last")
    to_oracle = [tvd_to_split_halves(q, split)[0] for q in (biased, relative_frequencies(one.counts))]
    found: Lists = {}
    for fold in folds:
        if f"{fold}/0/tvd_biased" not in stored.names:
            continue
        items = stored.items(f"{fold}/0/tvd_biased")
        between = tvd_between_split_halves(legacy_split_halves(answers.take(items), [0], size="half"))[0]
        known = [in_order_of(items, values, one.item) for values in to_oracle]
        for share in SHARES:
            for skip, kind in enumerate(("tvd_biased", "tvd_unbiased")):
                values = improved_legacy(known[skip], between, share, skip_draws=skip)
                found[f"{fold}/{share}/{kind}"] = values, items
    return found
