"""The numbers of "Predict the Next Word" as its own code made them, from the public files, list by list.

What the code does is described in :mod:`experiments.papers.provo.quirks`, and in
:func:`estimators.cloze.calibration_error.expected_calibration_error` (``bins="legacy"``). One thing shows only in the
stored lists: in the runs behind them the odd human answer had been removed (with seed 1) before anything was computed,
because the notebook had been run before on the same lists. Only the notebook of temperature 0.5 saw full lists.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from estimators.cloze.calibration_error import expected_calibration_error
from estimators.cloze.distances import total_variation
from estimators.cloze.distributions import TopWords, WordCounts, entropy_nats, relative_frequencies, top_words
from estimators.cloze.split_halves import (
    SplitHalves,
    split_half_top_words,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from estimators.cloze.study import model_names
from estimators.cloze.study_words import StudyWords, study_words
from estimators.cloze.words import WORD_RULES
from estimators.errors import InputError
from experiments.papers.provo.appendices import appendix_lists, spread_of_oracles
from experiments.papers.provo.appendix_figures import last_losses
from experiments.papers.provo.calibration import appendix_calibration, corpus_words
from experiments.papers.provo.quirks import PUBLISHED, PUBLISHED_RAW, legacy_split_halves

__all__ = ["LegacyResults", "legacy_results", "published_table", "stored_comparison"]

Floats = NDArray[np.float64]

_TABLE = Path(__file__).parents[1] / "provo_published.csv"
"""Values of the paper and of its stored results: quantity, legacy, paper, note."""

GPT2_MODELS = ("gpt2", "gpt2-ft", "gpt2-t0.5")
_SEEDS = tuple(range(20))
_STORED = {
    "gpt2": ("TVD_gpt2/tvd_gpt2_human", "TVD_gpt2/tvd_gpt2_oracle"),
    "gpt2-ft": ("TVD_GPT2_FT/tvd_gpt2_human_fine_tuned", "TVD_GPT2_FT/tvd_gpt2_oracle_fine_tuned"),
    "gpt2-t0.5": ("TVD_GPT2_temp/tvd_bloom_human", "TVD_GPT2_temp/tvd_bloom_oracle"),
    "bloom": ("TVD_Bloom/tvd_bloom_human", "TVD_Bloom/tvd_bloom_oracle"),
    "chatgpt": ("TVD_chatgpt/temp_1/tvd_chatgpt_human", "TVD_chatgpt/temp_1/tvd_chatgpt_oracle"),
    "chatgpt-2": ("TVD_chatgpt/temp_2/tvd_chatgpt_human", "TVD_chatgpt/temp_2/tvd_chatgpt_oracle"),
    "chatgpt-diverse": ("TVD_chatgpt/diverse/tvd_chatgpt_human", "TVD_chatgpt/diverse/tvd_chatgpt_oracle"),
}


@dataclass(frozen=True, eq=False)
class LegacyResults:
    """What the code of the paper gives.

    Parameters
    ----------
    numbers : mapping of str to float
        By quantity, see the published table.
    lists : mapping of str to ndarray
        By the name of the stored list; one value a context, in its order, without the last one as in the files.
        NaN where the samples are not public.
    items : mapping of str to ndarray of int
        Positions of the contexts of every list.
    """

    numbers: Mapping[str, float]
    lists: Mapping[str, Floats]
    items: Mapping[str, NDArray[np.intp]]


def legacy_results(study: xr.Dataset) -> LegacyResults:
    """Compute everything of the paper's code that the public files allow."""
    return _Legacy(study).results()


class _Legacy:
    def __init__(self, study: xr.Dataset) -> None:
        if "result_name" not in study.dims or "model" not in study.dims:
            raise InputError(
                "holds no stored results, so it is not the public repository behind the paper; the experiments without "
                "legacy in their names work for every cloze study",
                source="legacy",
                field="study",
            )
        self._study = study
        self._names = study["result_name"].to_numpy().tolist()
        published, raw = PUBLISHED, PUBLISHED_RAW
        self._models = model_names(study)
        self._words: StudyWords = study_words(
            study,
            human=published,
            model={name: published if name in GPT2_MODELS else raw for name in self._models},
            corpus=WORD_RULES["none"],
            per="entry",
        )
        self._human = self._words.answers()
        # the code takes the odd answer out in place, so that later cells see what the first has left
        self._even = _without_odd(self._human, seed=1)
        self._values: dict[str, float] = {}
        self._lists: dict[str, Floats] = {}
        self._items: dict[str, NDArray[np.intp]] = {}

    def results(self) -> LegacyResults:
        self._oracles()
        for name in self._models:
            self._model(name)
        lists, items = appendix_lists(self._study)
        self._values |= appendix_calibration(self._study)
        self._values |= spread_of_oracles(lists)
        self._values |= last_losses(self._study)
        return LegacyResults(self._values, {**self._lists, **lists}, {**self._items, **items})

    def stored_items(self, name: str) -> NDArray[np.intp]:
        rows = self._study["result_list"].to_numpy() == self._names.index(name)
        return np.asarray(self._study["result_item"].to_numpy()[rows], dtype=np.intp)

    def stored(self, name: str) -> Floats:
        rows = self._study["result_list"].to_numpy() == self._names.index(name)
        return np.asarray(self._study["result_value"].to_numpy()[rows])

    def _keep(self, name: str, values: Floats, items: NDArray[np.intp]) -> None:
        self._lists[name], self._items[name] = values, items

    def _drop_blank(self, counts: WordCounts) -> WordCounts:
        kept = counts.word != self._words.blank
        return WordCounts(counts.context[kept], counts.word[kept], counts.count[kept], counts.n_contexts)

    def _oracles(self) -> None:
        pair, to_human = "TVD_oracle/tvd_oracle2_oracle1", "TVD_oracle/tvd_oracle2_human"
        if pair not in self._names:
            return
        items = self.stored_items(pair)
        even = self._even.take(items)
        human = self._drop_blank(even)
        split = legacy_split_halves(even, [1]).without(self._words.blank)
        between = tvd_between_split_halves(split)[0]
        self._keep(pair, between, items)
        self._keep(to_human, tvd_to_split_halves(relative_frequencies(human), split, "second")[0], items)
        self._values["tvd/oracle2-oracle1"] = float(between.mean())
        many = legacy_split_halves(even, list(_SEEDS)).without(self._words.blank)
        means = tvd_between_split_halves(many).mean(axis=1)
        self._values["tvd/oracle2-oracle1/20 seeds/mean"] = float(means.mean())
        self._values["tvd/oracle2-oracle1/20 seeds/sd"] = float(means.std())
        target = corpus_words(self._study, self._words, items)
        top = top_words(human)
        firsts, seconds = split_half_top_words(many, "first"), split_half_top_words(many, "second")
        # people's majority is always right about itself
        self._calibration("human", top, target, top.word, firsts)
        second = split_half_top_words(split, "second")[0]
        self._calibration("oracle2", second, target, top.word, [])
        self._keep_errors("oracle2", [_ece(mine, other.word) for mine, other in zip(seconds, firsts, strict=True)])

    def _calibration(
        self,
        player: str,
        top: TopWords,
        target: NDArray[np.int64],
        majority: NDArray[np.int64],
        oracles: Sequence[TopWords],
    ) -> None:
        self._values[f"ece/{player}/corpus"] = _ece(top, target)
        self._values[f"ece/{player}/human"] = _ece(top, majority)
        if oracles:
            self._keep_errors(player, [_ece(top, one.word) for one in oracles])

    def _keep_errors(self, player: str, errors: list[float]) -> None:
        """Keep the mean over the 20 pairs of oracles, and their spread."""
        self._values[f"ece/{player}/oracle1"] = float(np.mean(errors))
        self._values[f"ece/{player}/oracle1/20 seeds/sd"] = float(np.std(errors))

    def _model(self, name: str) -> None:
        model = self._words.models[name]
        # the code's loops end one context early
        n = len(model.item) - 1
        counts, items = model.counts.take(np.arange(n)), model.item[:n]
        before = self._human if name in GPT2_MODELS else self._even
        answers = before.take(items)
        if name in ("gpt2-ft", "gpt2-t0.5"):
            # these files give blank answers a count of zero
            answers = self._drop_blank(answers)
        human = self._drop_blank(answers)
        cpd = relative_frequencies(counts)
        distance = total_variation(cpd, relative_frequencies(human))
        split = legacy_split_halves(answers, [1]).without(self._words.blank)
        to_oracle = tvd_to_split_halves(cpd, split)[0]
        self._values[f"tvd/{name}"] = float(distance.mean())
        stored_human, stored_oracle = _STORED[name]
        for stored, values in ((stored_human, distance), (stored_oracle, to_oracle)):
            if stored in self._names:
                self._keep(stored, *self._in_stored_order(stored, values, items))
        if stored_human in self._names:
            self._values[f"tvd/{name}/stored list"] = float(self.stored(stored_human).mean())
        prefix = stored_human.rpartition("/")[0]
        everyone = relative_frequencies(human)
        others = {
            "tvd_oracle1_human": tvd_to_split_halves(everyone, split, "first")[0],
            "tvd_oracle2_human": tvd_to_split_halves(everyone, split, "second")[0],
            # the file of temperature 0.5 has BLOOM's names
            **dict.fromkeys(("entropy_bloom", "entropy_chatgpt"), entropy_nats(cpd)),
            "entropy_human": entropy_nats(everyone),
            "entropy_oracle": entropy_nats(relative_frequencies(_first_part(split))),
        }
        for what, values in others.items():
            if f"{prefix}/{what}" in self._names:
                self._keep(f"{prefix}/{what}", *self._in_stored_order(f"{prefix}/{what}", values, items))
        seeds = [1, *_SEEDS] if name in GPT2_MODELS else list(_SEEDS)
        many = legacy_split_halves(answers, seeds, in_place=name in GPT2_MODELS).without(self._words.blank)
        tops = split_half_top_words(many)[len(seeds) - len(_SEEDS) :]
        self._calibration(name, top_words(counts), self._words.target[items], top_words(human).word, tops)

    def _in_stored_order(self, name: str, values: Floats, items: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
        """Values in the order of a stored list; NaN where the samples are not public.

        A context that is there twice (passage 3 of GPT-2) has two entries, and the list both.
        """
        wanted = self.stored_items(name)
        if len(wanted) == len(items) and (wanted == items).all():
            return values, wanted
        found: dict[int, list[float]] = {}
        for item, value in zip(items.tolist(), values.tolist(), strict=True):
            found.setdefault(item, []).append(value)
        taken = [_next(found, item) for item in wanted.tolist()]
        return np.array(taken), wanted


def _first_part(split: SplitHalves) -> WordCounts:
    part = split.first[0]
    kept = part > 0
    counts = split.counts
    return WordCounts(counts.context[kept], counts.word[kept], part[kept], counts.n_contexts)


def _next(found: dict[int, list[float]], item: int) -> float:
    values = found.get(item, [])
    return values.pop(0) if len(values) > 1 else (values[0] if values else np.nan)


def _without_odd(counts: WordCounts, *, seed: int) -> WordCounts:
    split = legacy_split_halves(counts, [seed], size="half")
    left = (split.first + split.second)[0]
    kept = left > 0
    return WordCounts(counts.context[kept], counts.word[kept], left[kept], counts.n_contexts)


def _ece(top: TopWords, gold: NDArray[np.int64]) -> float:
    return expected_calibration_error(top.confidence, (top.word == gold).astype(float), bins="legacy").ece


def stored_comparison(study: xr.Dataset, results: LegacyResults) -> pd.DataFrame:
    """Compare computed lists with the stored ones, element by element."""
    names = study["result_name"].to_numpy().tolist()
    rows = []
    for name, values in results.lists.items():
        if name not in names:
            continue
        stored = study["result_value"].to_numpy()[study["result_list"].to_numpy() == names.index(name)]
        known = ~np.isnan(values)
        if not known.any():
            continue
        rows.append(
            {
                "list": name,
                "n_stored": len(stored),
                "n_compared": int(known.sum()),
                "mean_stored": float(stored.mean()),
                "mean_compared": float(values[known].mean()),
                "largest_difference": float(np.abs(values - stored)[known].max()),
            }
        )
    return pd.DataFrame(rows)


def published_table() -> pd.DataFrame:
    """Published values: ``quantity``, ``legacy`` (of the paper's code, NaN if unknown), ``paper``, ``note``."""
    with _TABLE.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    table = pd.DataFrame(rows)
    for column in ("legacy", "paper"):
        table[column] = pd.to_numeric(table[column])
    return table
