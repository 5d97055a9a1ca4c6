"""Everything that ``+exp=tvd`` says about one player, from counts of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators import cloze
from shannon_game.estimators.arrays import FloatArray
from shannon_game.experiments.cloze.settings import ORACLE, cluster_se, groups_of, known_mean, shared_contexts
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import ConvergenceRow

GOLD = ("corpus", "human", "oracle1")
"""Gold labels of table 1: the word of the text, people's majority, the majority of half of the people."""


class TvdRow(column.Row, last=ConvergenceRow):
    """One player's distance from people: half of the people first, then every model."""

    player: str = column.key("half of the people, or a model", players=True)
    n_contexts: int = column.context("contexts where both have words")
    n_answers: float = column.context("people's answers per context")
    n_samples: float = column.context("the player's samples per context")
    share_failed: float = column.detail("share of a model's samples that failed or are blank")
    share_dropped: float = column.detail("share of a model's samples that are no words")
    tvd: float = column.headline("distance of the samples: beside its baseline only", label="TVD to people")
    se_tvd: float = column.se("tvd", "standard error of tvd, clustered by text")
    tvd_baseline: float = column.beside(
        "tvd", "mean distance of samples of the same sizes from one distribution: its zero"
    )
    tvd_corrected: float = column.estimate("(tvd - baseline) / (1 - baseline): to compare at equal sample sizes only")
    tvd_to_oracle: float = column.estimate("tvd to one half of the people, an oracle of the paper")
    tvd_between_oracles: float = column.beside("tvd_to_oracle", "tvd of the two halves of the people")
    sd_between_oracles: float = column.detail("its standard deviation over splits")
    entropy_nats: float = column.detail("entropy of the player's words", unit="nats")
    human_entropy_nats: float = column.detail("entropy of people's words", unit="nats")
    jensen_shannon_nats: float = column.estimate("Jensen-Shannon divergence", unit="nats")
    distance: Mapping[str, float] = column.detail("mean of a distance that was asked for", family="distance_{}")
    ece_corpus_fixed: float = column.estimate("expected calibration error: right is the word of the text")
    ece_human_fixed: float = column.estimate("expected calibration error: right is people's majority")
    ece_oracle1_fixed: float = column.detail(
        "expected calibration error: right is the majority of one half of the people"
    )
    ece_corpus_adaptive: float = column.detail("ece_corpus_fixed in bins of equal numbers")
    ece_human_adaptive: float = column.detail("ece_human_fixed in bins of equal numbers")
    ece_oracle1_adaptive: float = column.detail("ece_oracle1_fixed in bins of equal numbers")
    ece_corpus_classwise: float = column.detail("classwise calibration error: right is the word of the text")
    energy_distance: float | None = column.estimate(
        "energy distance of word vectors: 0 for halves of the people", se="energy_se"
    )
    across: float | None = column.detail("mean distance of vectors across the two")
    known_people: float | None = column.detail("share of people's answers that have a vector")
    known_player: float | None = column.detail("share of the player's words that have a vector")
    n_contexts_bayes: int | None = column.context("contexts of the Bayesian TVD")
    tvd_same_contexts: float | None = column.detail("tvd of those contexts")
    tvd_bayes: float | None = column.headline(
        "TVD of the distributions behind the samples: to report", interval="tvd_bayes_{}"
    )
    tvd_bayes_context_width: float | None = column.detail("mean width of the intervals by context")


_BINNINGS: tuple[Literal["fixed", "adaptive"], ...] = ("fixed", "adaptive")


@dataclass(frozen=True, eq=False)
class PlayerTvd:
    """One player's distances to people."""

    player: str
    items: NDArray[np.intp]
    row: TvdRow
    by_item: dict[str, FloatArray]
    calibration: dict[str, cloze.CalibrationError]
    """By gold label, in bins of fixed width."""


def model_tvd(
    study: xr.Dataset, words: cloze.StudyWords, name: str, *, n_splits: int, rng: np.random.Generator, **how: Any
) -> PlayerTvd:
    """Distances of a model to people, over the contexts where both have words; `how` goes to :func:`_player`."""
    model = words.models[name]
    have = shared_contexts(words, name)
    items = model.item[have]
    counts, human = model.counts.take(have), words.answers().take(items)
    splits = cloze.random_split_halves(human, n_splits=n_splits, rng=rng)
    n_missing, n = model.missing, model.n_samples
    samples = {
        "n_samples": float(counts.totals.mean()),
        "share_failed": n_missing.get("failed", 0) / n + n_missing.get("blank", 0) / n,
        "share_dropped": sum(n_missing.values()) / n,
    }
    return _player(study, words, name, items, [(counts, human)], splits=splits, samples=samples, **how)


def oracle_tvd(
    study: xr.Dataset, words: cloze.StudyWords, *, n_splits: int, rng: np.random.Generator, **how: Any
) -> PlayerTvd:
    """Half of the people (oracle 2) as a player, against the other half (oracle 1)."""
    answers = words.answers()
    items = np.flatnonzero(answers.totals > 1)
    splits = cloze.random_split_halves(answers.take(items), n_splits=n_splits, rng=rng)
    # of every split: where the number of answers is odd, each leaves out another one
    pairs = [(part_counts(splits, at, "second"), part_counts(splits, at, "first")) for at in range(n_splits)]
    samples = {"n_samples": float(pairs[0][0].totals.mean()), "share_failed": 0.0, "share_dropped": 0.0}
    return _player(study, words, ORACLE, items, pairs, splits=splits, samples=samples, **how)


def _player(
    study: xr.Dataset,
    words: cloze.StudyWords,
    name: str,
    items: NDArray[np.intp],
    pairs: list[tuple[cloze.WordCounts, cloze.WordCounts]],
    *,
    splits: cloze.SplitHalves,
    n_bins: int,
    samples: dict[str, float],
    distances: Sequence[str] = (),
) -> PlayerTvd:
    """Means over pairs of samples, the player's and other people's; a model has one pair, oracle 2 one a split."""
    human, is_oracle = splits.counts, name == ORACLE
    between, against = cloze.tvd_between_split_halves(splits), [cloze.tvd_with_baseline(*pair) for pair in pairs]
    cpds = [(cloze.relative_frequencies(one), cloze.relative_frequencies(other)) for one, other in pairs]
    to_oracle = between if is_oracle else cloze.tvd_to_split_halves(cpds[0][0], splits)
    by_item: dict[str, FloatArray] = {
        "tvd": between.mean(axis=0) if is_oracle else against[0].raw,
        "tvd_baseline": np.mean([one.baseline for one in against], axis=0),
        "tvd_corrected": np.mean([one.corrected for one in against], axis=0),
        "tvd_to_oracle": to_oracle.mean(axis=0),
        "between_oracles": between.mean(axis=0),
        "entropy": np.mean([cloze.entropy_nats(one) for one, _ in cpds], axis=0),
        "divergence": np.mean([cloze.jensen_shannon_nats(one, other) for one, other in cpds], axis=0),
    }
    split_means = np.asarray(between.mean(axis=1))
    row: dict[str, Any] = {
        "player": name,
        "n_contexts": len(items),
        "n_answers": float(human.totals.mean()) / (2 if is_oracle else 1),
        **samples,
        "tvd": float(by_item["tvd"].mean()),
        "se_tvd": cluster_se(by_item["tvd"], groups_of(study, items)),
        "tvd_baseline": float(by_item["tvd_baseline"].mean()),
        "tvd_corrected": known_mean(by_item["tvd_corrected"]),
        "tvd_to_oracle": float(by_item["tvd_to_oracle"].mean()),
        "tvd_between_oracles": float(between.mean()),
        "sd_between_oracles": float(split_means.std(ddof=1)) if len(between) > 1 else np.nan,
        "entropy_nats": float(by_item["entropy"].mean()),
        "human_entropy_nats": float(cloze.entropy_nats(cloze.relative_frequencies(human)).mean()),
        "jensen_shannon_nats": float(by_item["divergence"].mean()),
    }
    asked = {name: np.mean([cloze.DISTANCES[name](one, other) for one, other in cpds], axis=0) for name in distances}
    row["distance"] = {name: known_mean(values) for name, values in asked.items()}
    target = words.target[items]
    said = [one for one, _ in pairs] if is_oracle else [pairs[0][0]] * len(between)
    judged = _judged(said, target, splits)
    bins = {binning: _errors(judged, binning, n_bins) for binning in _BINNINGS}
    for binning, errors in bins.items():
        row |= {f"ece_{gold}_{binning}": known_mean([one.ece for one in errors.get(gold, [])]) for gold in GOLD}
    row["ece_corpus_classwise"] = _classwise(cpds[0][0], target, n_bins)
    calibration = {gold: some[0] for gold, some in bins["fixed"].items()}
    return PlayerTvd(name, items, TvdRow.of(**row), by_item, calibration)


def part_counts(splits: cloze.SplitHalves, split: int, which: str) -> cloze.WordCounts:
    """Counts of one part of one split."""
    part = getattr(splits, which)[split]
    kept = part > 0
    counts = splits.counts
    return cloze.WordCounts(counts.context[kept], counts.word[kept], part[kept], counts.n_contexts)


def _judged(
    said: list[cloze.WordCounts], target: NDArray[np.int64], splits: cloze.SplitHalves
) -> dict[str, list[tuple[FloatArray, FloatArray]]]:
    """Confidence of the player's top word and whether it is right, by gold label; for one half of people, by split."""

    def against(own: cloze.WordCounts, gold: cloze.WordCounts) -> tuple[FloatArray, FloatArray]:
        top = cloze.top_words(own)
        right = cloze.share_correct(own, top, gold, cloze.top_words(gold), ties="average")
        return np.where(np.isnan(right), np.nan, top.confidence), right

    known = np.flatnonzero(target >= 0)
    corpus = cloze.WordCounts(known, target[known], np.ones(len(known), dtype=np.int64), len(target))
    halves = [against(own, part_counts(splits, at, "first")) for at, own in enumerate(said)]
    return {"corpus": [against(said[0], corpus)], "human": [against(said[0], splits.counts)], "oracle1": halves}


def _errors(
    judged: dict[str, list[tuple[FloatArray, FloatArray]]], bins: Literal["fixed", "adaptive"], n_bins: int
) -> dict[str, list[cloze.CalibrationError]]:
    return {
        gold: [cloze.expected_calibration_error(sure, right, bins=bins, n_bins=n_bins) for sure, right in some]
        for gold, some in judged.items()
        if not np.isnan(some[0][0]).all()
    }


def _classwise(cpd: cloze.Distributions, target: NDArray[np.int64], n_bins: int) -> float:
    """NaN where the study has no word of the text."""
    known = (target >= 0).any()
    return cloze.classwise_calibration_error(cpd, target, n_bins=n_bins).total if known else float("nan")
