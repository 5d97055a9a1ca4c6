"""Everything that ``+exp=tvd`` says about one player, from counts of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze import (
    CalibrationError,
    Distributions,
    SplitHalves,
    StudyWords,
    WordCounts,
    classwise_calibration_error,
    entropy_nats,
    expected_calibration_error,
    jensen_shannon_nats,
    random_split_halves,
    relative_frequencies,
    share_correct,
    top_words,
    tvd_between_split_halves,
    tvd_to_split_halves,
    tvd_with_baseline,
)
from shannon_game.estimators.cloze.split_halves import split_half_top_words
from shannon_game.experiments.cloze.settings import ORACLE, cluster_se, groups_of, known_mean, shared_contexts

GOLD = ("corpus", "human", "oracle1")
"""Gold labels of table 1: the word of the text, people's majority, the majority of half of the people."""


@dataclass(frozen=True, eq=False)
class PlayerTvd:
    """One player's distances to people, by context."""

    player: str
    items: NDArray[np.intp]
    groups: NDArray[Any]
    human: WordCounts
    raw: FloatArray
    baseline: FloatArray
    corrected: FloatArray
    to_oracle: FloatArray
    between: FloatArray
    entropy: FloatArray
    divergence: FloatArray
    calibration: dict[tuple[str, str], CalibrationError]
    oracle_ece: dict[str, float]
    samples: dict[str, float]
    n_bins: int
    classwise: float

    @property
    def between_oracles(self) -> FloatArray:
        """Mean TVD over the splits of oracle 2 to oracle 1, shape (context,)."""
        return np.asarray(self.between.mean(axis=0))

    @property
    def split_means(self) -> FloatArray:
        """Mean over contexts of the TVD between oracles, shape (split,)."""
        return np.asarray(self.between.mean(axis=1))

    @property
    def row(self) -> dict[str, Any]:
        """What the table says."""
        row: dict[str, Any] = {
            "player": self.player,
            "n_contexts": len(self.items),
            "n_answers": float(self.human.totals.mean()) / (2 if self.player == ORACLE else 1),
            **self.samples,
            "tvd": float(self.raw.mean()),
            "se_tvd": cluster_se(self.raw, self.groups),
            "tvd_baseline": float(self.baseline.mean()),
            "tvd_corrected": known_mean(self.corrected),
            "tvd_to_oracle": float(self.to_oracle.mean()),
            "tvd_between_oracles": float(self.between.mean()),
            "sd_between_oracles": float(self.split_means.std(ddof=1)) if len(self.between) > 1 else np.nan,
            "entropy_nats": float(self.entropy.mean()),
            "human_entropy_nats": float(entropy_nats(relative_frequencies(self.human)).mean()),
            "jensen_shannon_nats": float(self.divergence.mean()),
        }
        for bins in ("fixed", "adaptive"):
            for gold in GOLD:
                one = self.calibration.get((gold, bins))
                row[f"ece_{gold}_{bins}"] = np.nan if one is None else one.ece
            row[f"ece_oracle1_{bins}"] = self.oracle_ece[bins]
        row["ece_corpus_classwise"] = self.classwise
        return row


def model_tvd(
    study: xr.Dataset, words: StudyWords, name: str, *, n_splits: int, n_bins: int, rng: np.random.Generator
) -> PlayerTvd:
    """Distances of a model to people, over the contexts where both have words."""
    model = words.models[name]
    have = shared_contexts(words, name)
    items = model.item[have]
    counts, human = model.counts.take(have), words.answers().take(items)
    splits = random_split_halves(human, n_splits=n_splits, rng=rng)
    n_missing, n = model.missing, model.n_samples
    samples = {
        "n_samples": float(counts.totals.mean()),
        "share_failed": n_missing.get("failed", 0) / n + n_missing.get("blank", 0) / n,
        "share_dropped": sum(n_missing.values()) / n,
    }
    return _player(study, words, name, items, [(counts, human)], splits=splits, n_bins=n_bins, samples=samples)


def oracle_tvd(
    study: xr.Dataset, words: StudyWords, *, n_splits: int, n_bins: int, rng: np.random.Generator
) -> PlayerTvd:
    """Half of the people (oracle 2) as a player, against the other half (oracle 1)."""
    answers = words.answers()
    items = np.flatnonzero(answers.totals > 1)
    splits = random_split_halves(answers.take(items), n_splits=n_splits, rng=rng)
    # of every split: where the number of answers is odd, each leaves out another one
    pairs = [(part_counts(splits, at, "second"), part_counts(splits, at, "first")) for at in range(n_splits)]
    samples = {"n_samples": float(pairs[0][0].totals.mean()), "share_failed": 0.0, "share_dropped": 0.0}
    return _player(study, words, ORACLE, items, pairs, splits=splits, n_bins=n_bins, samples=samples)


def _player(
    study: xr.Dataset,
    words: StudyWords,
    name: str,
    items: NDArray[np.intp],
    pairs: list[tuple[WordCounts, WordCounts]],
    *,
    splits: SplitHalves,
    n_bins: int,
    samples: dict[str, float],
) -> PlayerTvd:
    """Means over pairs of samples, the player's and other people's; a model has one pair, oracle 2 one a split."""
    own, human, is_oracle = pairs[0][0], splits.counts, name == ORACLE
    between, against = tvd_between_split_halves(splits), [tvd_with_baseline(*pair) for pair in pairs]
    cpds = [(relative_frequencies(one), relative_frequencies(other)) for one, other in pairs]
    to_oracle = between if is_oracle else tvd_to_split_halves(cpds[0][0], splits)
    calibration, oracle_ece = _calibration(words, own, human, items, splits=splits, n_bins=n_bins, own=is_oracle)
    return PlayerTvd(
        name,
        items,
        groups_of(study, items),
        human=human,
        raw=between.mean(axis=0) if is_oracle else against[0].raw,
        baseline=np.mean([one.baseline for one in against], axis=0),
        corrected=np.mean([one.corrected for one in against], axis=0),
        to_oracle=to_oracle.mean(axis=0),
        between=between,
        entropy=np.mean([entropy_nats(one) for one, _ in cpds], axis=0),
        divergence=np.mean([jensen_shannon_nats(one, other) for one, other in cpds], axis=0),
        calibration=calibration,
        oracle_ece=oracle_ece,
        samples=samples,
        n_bins=n_bins,
        classwise=_classwise(cpds[0][0], words.target[items], n_bins),
    )


def part_counts(splits: SplitHalves, split: int, which: str) -> WordCounts:
    """Counts of one part of one split."""
    part = getattr(splits, which)[split]
    kept = part > 0
    counts = splits.counts
    return WordCounts(counts.context[kept], counts.word[kept], part[kept], counts.n_contexts)


def _calibration(
    words: StudyWords,
    counts: WordCounts,
    human: WordCounts,
    items: NDArray[np.intp],
    *,
    splits: SplitHalves,
    n_bins: int,
    own: bool = False,
) -> tuple[dict[tuple[str, str], CalibrationError], dict[str, float]]:
    top = top_words(counts)
    corpus = _as_counts(words.target[items])
    everyone = top_words(human)
    found: dict[tuple[str, str], CalibrationError] = {}
    means: dict[str, float] = {}
    firsts = split_half_top_words(splits, "first")
    seconds = split_half_top_words(splits, "second") if own else []
    for bins in ("fixed", "adaptive"):
        for gold, gold_counts, gold_top in (
            ("corpus", corpus, top_words(corpus)),
            ("human", human, everyone),
            ("oracle1", part_counts(splits, 0, "first"), firsts[0]),
        ):
            right = share_correct(counts, top, gold_counts, gold_top, ties="average")
            sure = np.where(np.isnan(right), np.nan, top.confidence)
            if not np.isnan(sure).all():
                found[gold, bins] = expected_calibration_error(sure, right, bins=bins, n_bins=n_bins)
        errors = []
        for split, first in enumerate(firsts):
            mine, mine_top = (part_counts(splits, split, "second"), seconds[split]) if own else (counts, top)
            right = share_correct(mine, mine_top, part_counts(splits, split, "first"), first, ties="average")
            errors.append(expected_calibration_error(mine_top.confidence, right, bins=bins, n_bins=n_bins).ece)
        means[bins] = float(np.mean(errors))
    return found, means


def _classwise(cpd: Distributions, target: NDArray[np.int64], n_bins: int) -> float:
    """NaN where the study has no word of the text."""
    known = (target >= 0).any()
    return classwise_calibration_error(cpd, target, n_bins=n_bins).total if known else float("nan")


def _as_counts(target: NDArray[np.int64]) -> WordCounts:
    known = np.flatnonzero(target >= 0)
    return WordCounts(known, target[known], np.ones(len(known), dtype=np.int64), len(target))
