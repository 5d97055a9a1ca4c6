"""Appendices A, E and F of "Predict the Next Word" as its code computed them, list by list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from estimators.cloze.distributions import Distributions, WordCounts, relative_frequencies
from estimators.cloze.renormalised import renormalised_distributions
from estimators.cloze.split_halves import (
    SplitHalves,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from estimators.cloze.study import model_names
from estimators.cloze.study_words import study_words
from estimators.cloze.words import WORD_RULES
from experiments.papers.provo.quirks import (
    PUBLISHED,
    improved_legacy,
    legacy_bootstrap_halves,
    legacy_split_halves,
)

__all__ = ["SHARES", "appendix_lists", "spread_of_oracles"]

Floats = NDArray[np.float64]
Lists = dict[str, tuple[Floats, NDArray[np.intp]]]

SHARES = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
"""Shares of contexts that are improved, as the stored lists name them."""

_FOLDS = ("1_10", "11_20", "21_30", "31_40")
_MAIN = "cal_metrics_improved_model"
_ORACLE = re.compile(r"cal_metrics_oracle/(?P<oracle>oracle\d)_(?P<kind>no_repl|repl)_dict/TVD_per_instance")


def appendix_lists(study: xr.Dataset) -> tuple[dict[str, Floats], dict[str, NDArray[np.intp]]]:
    """Compute the lists of appendices A (oracles), E (improvement) and F (the same, by fold of passages)."""
    names = study["result_name"].to_numpy().tolist()
    lists: Lists = _oracle_lists(study, names)
    for model in ("gpt2", "gpt2-ft"):
        if model in model_names(study):
            lists |= _improvement_lists(study, names, model)
    return {name: values for name, (values, _) in lists.items()}, {name: items for name, (_, items) in lists.items()}


def spread_of_oracles(lists: Mapping[str, Floats]) -> dict[str, float]:
    """Mean, population standard deviation and maximum of the lists of appendix A, which the code stores too.

    Examples
    --------
    >>> spread_of_oracles({"cal_metrics_oracle/oracle1_repl_dict/TVD_per_instance": np.array([0.25, 0.75])})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'tvd/appendix A/oracle1 with replacement/mean': 0.5, 'tvd/appendix A/oracle1 with replacement/sd': 0.25,
     'tvd/appendix A/oracle1 with replacement/maximum': 0.75}
    """
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


def _items(study: xr.Dataset, names: list[str], name: str) -> NDArray[np.intp]:
    rows = study["result_list"].to_numpy() == names.index(name)
    return np.asarray(study["result_item"].to_numpy()[rows], dtype=np.intp)


def _oracle_lists(study: xr.Dataset, names: list[str]) -> Lists:
    """Appendix A: two halves, and two draws with replacement, each against all answers."""
    none = WORD_RULES["none"]
    words = study_words(study, human=none, model=none, corpus=none, models=[])
    answers = words.answers()
    found: Lists = {}
    for which, kind in (("no_repl", "halves"), ("repl", "draws")):
        for number, part in ((1, "first"), (2, "second")):
            name = f"cal_metrics_oracle/oracle{number}_{which}_dict/TVD_per_instance"
            if name not in names:
                continue
            items = _items(study, names, name)
            counts = answers.take(items)
            split = (
                legacy_split_halves(counts, [0], size="half", remove_odd=False)
                if kind == "halves"
                else legacy_bootstrap_halves(counts)
            )
            everyone = relative_frequencies(counts)
            # a blank answer is NaN there, which equals nothing: people's probability of it is lost
            kept = everyone.word != words.blank
            q = Distributions(
                everyone.context[kept], everyone.word[kept], everyone.probability[kept], everyone.n_contexts
            )
            side = "first" if part == "first" else "second"
            values = tvd_to_split_halves(q, split, side, remaining=np.zeros(len(items)))[0]  # type: ignore[arg-type]
            found[name] = values, items
    return found


def _improvement_lists(study: xr.Dataset, names: list[str], model: str) -> Lists:
    """Appendices E and F: TVDs to oracle 1, a share of them replaced by those between the oracles."""
    none = WORD_RULES["none"]
    found: Lists = {}
    tuned = "_fine_tuned" if model == "gpt2-ft" else ""
    # appendix E drops failed samples and lower-cases; appendix F does neither
    for base, rules in ((_MAIN, replace(PUBLISHED, failed="drop")), (f"{_MAIN}{tuned}_", none)):
        folds = [base] if base == _MAIN else [base + fold for fold in _FOLDS]
        if base == _MAIN and model != "gpt2":
            continue
        words = study_words(study, human=none, model=rules, corpus=none, models=[model], per="entry")
        one = words.models[model]
        answers = words.answers()
        if model == "gpt2-ft":
            answers = _without(answers, words.blank)
        split = legacy_split_halves(answers.take(one.item), [0], size="half")
        biased = renormalised_distributions(study, model, list(words.strings), none, same="last")
        to_biased = tvd_to_split_halves(biased, split)[0]
        to_unbiased = tvd_to_split_halves(relative_frequencies(one.counts), split)[0]
        for fold in folds:
            if f"{fold}/0/tvd_biased" not in names:
                continue
            items = _items(study, names, f"{fold}/0/tvd_biased")
            between = tvd_between_split_halves(_halves(answers, items))[0]
            known = [_known(values, one.item, items) for values in (to_biased, to_unbiased)]
            for share in SHARES:
                for skip, kind in enumerate(("tvd_biased", "tvd_unbiased")):
                    values = improved_legacy(known[skip], between, share, skip_draws=skip)
                    found[f"{fold}/{share}/{kind}"] = values, items
    return found


def _halves(answers: WordCounts, items: NDArray[np.intp]) -> SplitHalves:
    return legacy_split_halves(answers.take(items), [0], size="half")


def _without(counts: WordCounts, word: int) -> WordCounts:
    kept = counts.word != word
    return WordCounts(counts.context[kept], counts.word[kept], counts.count[kept], counts.n_contexts)


def _known(values: Floats, of_item: NDArray[np.intp], items: NDArray[np.intp]) -> Floats:
    """Values in the order of a list; where a context has several entries they follow one another."""
    found: dict[int, list[float]] = {}
    for item, value in zip(of_item.tolist(), values.tolist(), strict=True):
        found.setdefault(item, []).append(value)
    taken = []
    for item in items.tolist():
        mine = found.get(item, [np.nan])
        taken.append(mine.pop(0) if len(mine) > 1 else mine[0])
    return np.array(taken)
