"""The numbers of "Predict the Next Word" as its own code made them, from the public files, list by list.

What the code does is described in :mod:`shannon_game.experiments.papers.provo.quirks`, and in
:func:`shannon_game.estimators.cloze.calibration_error.expected_calibration_error` (``bins="legacy"``). One thing shows
only in the stored lists: in the runs behind them the odd human answer had been removed (with seed 1) before anything
was computed, because the notebook had been run before on the same lists. Only the notebook of temperature 0.5 saw full
lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.calibration_error import expected_calibration_error
from shannon_game.estimators.cloze.distances import total_variation
from shannon_game.estimators.cloze.distributions import (
    TopWords,
    WordCounts,
    entropy_nats,
    relative_frequencies,
    top_words,
)
from shannon_game.estimators.cloze.split_halves import (
    SplitHalves,
    split_half_top_words,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from shannon_game.estimators.cloze.study import model_names
from shannon_game.estimators.cloze.study_words import StudyWords, study_words
from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.settings import ORACLE
from shannon_game.experiments.papers.provo.appendices import Lists, appendix_lists, spread_of_oracles
from shannon_game.experiments.papers.provo.appendix_figures import last_losses
from shannon_game.experiments.papers.provo.calibration import appendix_calibration, corpus_words, stored_token_errors
from shannon_game.experiments.papers.provo.quirks import PUBLISHED, PUBLISHED_RAW, legacy_split_halves
from shannon_game.experiments.papers.provo.stored import Floats, StoredLists, in_order_of, without_word
from shannon_game.experiments.papers.provo.tokens import token_results
from shannon_game.experiments.papers.published_study import parse_select

_TABLE = Path(__file__).parents[1] / "provo_published.csv"
"""Values of the paper and of its stored results."""

GPT2_MODELS = ("gpt2", "gpt2-ft", "gpt2-t0.5")
_SEEDS = tuple(range(20))
STORED = {
    ORACLE: ("TVD_oracle/tvd_oracle2_human", "TVD_oracle/tvd_oracle2_oracle1"),
    "gpt2": ("TVD_gpt2/tvd_gpt2_human", "TVD_gpt2/tvd_gpt2_oracle"),
    "gpt2-ft": ("TVD_GPT2_FT/tvd_gpt2_human_fine_tuned", "TVD_GPT2_FT/tvd_gpt2_oracle_fine_tuned"),
    "gpt2-t0.5": ("TVD_GPT2_temp/tvd_bloom_human", "TVD_GPT2_temp/tvd_bloom_oracle"),
    "bloom": ("TVD_Bloom/tvd_bloom_human", "TVD_Bloom/tvd_bloom_oracle"),
    "chatgpt": ("TVD_chatgpt/temp_1/tvd_chatgpt_human", "TVD_chatgpt/temp_1/tvd_chatgpt_oracle"),
    "chatgpt-2": ("TVD_chatgpt/temp_2/tvd_chatgpt_human", "TVD_chatgpt/temp_2/tvd_chatgpt_oracle"),
    "chatgpt-diverse": ("TVD_chatgpt/diverse/tvd_chatgpt_human", "TVD_chatgpt/diverse/tvd_chatgpt_oracle"),
}
"""Player -> the stored lists of its distances to people and to oracle 1."""


@dataclass(frozen=True, eq=False)
class LegacyResults:
    """What the code of the paper gives."""

    numbers: Mapping[str, float]
    """By quantity, see the published table."""
    lists: Mapping[str, Floats]
    """By the name of the stored list: one value per context, in its order. NaN where the folder has no samples."""
    n_contexts: Mapping[str, int]
    """Contexts of each model whose samples the folder has."""
    read: Set[str] = frozenset()
    """Numbers that are the authors' stored results, as the folder lacks what they were computed from."""


def legacy_results(study: xr.Dataset, vocabulary: Path | None = None) -> LegacyResults:
    """Compute everything of the paper's code that the files allow, first tokens by a vocabulary where one is given."""
    if "result_name" not in study.dims or "model" not in study.dims:
        problem = "holds no stored results; the experiments without legacy in their names work for every cloze study"
        raise InputError(problem, source="legacy", field="study")
    legacy = _Legacy(study)
    legacy.oracles()
    for name in model_names(study):
        legacy.model(name)
    appendices = appendix_lists(study)
    spread = spread_of_oracles({name: values for name, (values, _) in appendices.items()})
    token_lists, token_errors = token_results(study, vocabulary)
    lists = legacy.lists | appendices | token_lists
    stored = {**stored_token_errors(study), **last_losses(study)}
    numbers = {**legacy.numbers, **appendix_calibration(study), **spread, **stored, **token_errors}
    read = legacy.read | (stored.keys() - token_errors.keys())
    if "tvd/gpt2/stored list" in numbers and "tvd/oracle2-oracle1" in numbers:
        numbers["tvd/gpt2 minus oracles"] = numbers["tvd/gpt2/stored list"] - numbers["tvd/oracle2-oracle1"]
        read |= {"tvd/gpt2 minus oracles"} if "tvd/gpt2/stored list" in read else set()
    return LegacyResults(numbers, {name: values for name, (values, _) in lists.items()}, legacy.n_contexts, read)


class _Legacy:
    def __init__(self, study: xr.Dataset) -> None:
        self._study, self._stored = study, StoredLists(study)
        self._words: StudyWords = study_words(
            study,
            human=PUBLISHED,
            model={name: PUBLISHED if name in GPT2_MODELS else PUBLISHED_RAW for name in model_names(study)},
            corpus=WORD_RULES["none"],
            per="entry",
        )
        self._human = self._words.answers()
        # the code takes the odd answer out in place, so that later cells see what the first has left
        self._even = _without_odd(self._human, seed=1)
        self.numbers: dict[str, float] = {}
        self.lists: Lists = {}
        self.n_contexts: dict[str, int] = {}
        self.read: set[str] = set()

    def _drop_blank(self, counts: WordCounts) -> WordCounts:
        return without_word(counts, self._words.blank)

    def oracles(self) -> None:
        to_human, pair = STORED[ORACLE]
        if pair not in self._stored.names:
            return
        items = self._stored.items(pair)
        even = self._even.take(items)
        human = self._drop_blank(even)
        split = legacy_split_halves(even, [1]).without(self._words.blank)
        between = tvd_between_split_halves(split)[0]
        self.lists[pair] = between, items
        self.lists[to_human] = tvd_to_split_halves(relative_frequencies(human), split, "second")[0], items
        self.numbers["tvd/oracle2-oracle1"] = float(between.mean())
        many = legacy_split_halves(even, list(_SEEDS)).without(self._words.blank)
        means = tvd_between_split_halves(many).mean(axis=1)
        self.numbers["tvd/oracle2-oracle1/20 seeds/mean"] = float(means.mean())
        self.numbers["tvd/oracle2-oracle1/20 seeds/sd"] = float(means.std())
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
        self.numbers[f"ece/{player}/corpus"] = _ece(top, target)
        self.numbers[f"ece/{player}/human"] = _ece(top, majority)
        if oracles:
            self._keep_errors(player, [_ece(top, one.word) for one in oracles])

    def _keep_errors(self, player: str, errors: list[float]) -> None:
        """Keep the mean over the 20 pairs of oracles, and their spread."""
        self.numbers[f"ece/{player}/oracle1"] = float(np.mean(errors))
        self.numbers[f"ece/{player}/oracle1/20 seeds/sd"] = float(np.std(errors))

    def model(self, name: str) -> None:
        model = self._words.models[name]
        # the code's loops end one context early
        self.n_contexts[name] = n = len(model.item) - 1
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
        self.numbers[f"tvd/{name}"] = float(distance.mean())
        stored_human, stored_oracle = STORED[name]
        prefix = stored_human.rpartition("/")[0]
        everyone = relative_frequencies(human)
        found = {
            stored_human: distance,
            stored_oracle: to_oracle,
            f"{prefix}/tvd_oracle1_human": tvd_to_split_halves(everyone, split, "first")[0],
            f"{prefix}/tvd_oracle2_human": tvd_to_split_halves(everyone, split, "second")[0],
            # the file of temperature 0.5 has BLOOM's names
            **dict.fromkeys((f"{prefix}/entropy_bloom", f"{prefix}/entropy_chatgpt"), entropy_nats(cpd)),
            f"{prefix}/entropy_human": entropy_nats(everyone),
            f"{prefix}/entropy_oracle": entropy_nats(relative_frequencies(_first_part(split))),
        }
        for stored in filter(found.__contains__, self._stored.names):
            wanted = self._stored.items(stored)
            self.lists[stored] = in_order_of(wanted, found[stored], items), wanted
        if stored_human in self._stored.names:
            values, quantity = self.lists[stored_human][0], f"tvd/{name}/stored list"
            if np.isnan(values).any():
                values = self._stored.values(stored_human)
                self.read.add(quantity)
            self.numbers[quantity] = float(values.mean())
        seeds = [1, *_SEEDS] if name in GPT2_MODELS else list(_SEEDS)
        many = legacy_split_halves(answers, seeds, in_place=name in GPT2_MODELS).without(self._words.blank)
        tops = split_half_top_words(many)[len(seeds) - len(_SEEDS) :]
        self._calibration(name, top_words(counts), self._words.target[items], top_words(human).word, tops)


def _first_part(split: SplitHalves) -> WordCounts:
    part = split.first[0]
    kept = part > 0
    counts = split.counts
    return WordCounts(counts.context[kept], counts.word[kept], part[kept], counts.n_contexts)


def _without_odd(counts: WordCounts, *, seed: int) -> WordCounts:
    split = legacy_split_halves(counts, [seed], size="half")
    left = (split.first + split.second)[0]
    kept = left > 0
    return WordCounts(counts.context[kept], counts.word[kept], left[kept], counts.n_contexts)


def _ece(top: TopWords, gold: NDArray[np.int64]) -> float:
    return expected_calibration_error(top.confidence, (top.word == gold).astype(float), bins="legacy").ece


def stored_comparison(study: xr.Dataset, results: LegacyResults) -> pd.DataFrame:
    """Compare computed lists with the stored ones, element by element."""
    known = StoredLists(study)
    rows = []
    for name in known.names:
        values = results.lists.get(name)
        if values is None or np.isnan(values).all():
            continue
        stored, there = known.values(name), ~np.isnan(values)
        rows.append(
            {
                "list": name,
                "n_stored": len(stored),
                "n_compared": int(there.sum()),
                "mean_stored": float(stored.mean()),
                "mean_compared": float(values[there].mean()),
                "largest_difference": float(np.abs(values - stored)[there].max()),
            }
        )
    return pd.DataFrame(rows)


def published_table() -> pd.DataFrame:
    """Published values: ``legacy`` is of the paper's code, NaN if unknown; `tolerance` and `printed` are text."""
    rows = pd.read_csv(_TABLE, dtype=str, keep_default_na=False)
    printed, is_code = pd.to_numeric(rows["printed"]), rows["origin"] == "counted"
    table = pd.DataFrame(
        {
            "quantity": [parse_select(text).get("quantity", "") for text in rows["select"]],
            "legacy": printed.where(is_code),
            "paper": printed.where(~is_code),
            "printed": rows["printed"].where(~is_code),
            "tolerance": rows["tolerance"],
            "expected": rows["expected"].where(~is_code),
            "source": rows["source"],
        }
    )
    table = table[table["quantity"] != ""]
    return table.groupby("quantity", sort=False, as_index=False).first().fillna({"expected": ""})
