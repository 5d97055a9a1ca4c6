"""Everything that ``+exp=tvd`` says about one player, from counts of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.calibration_error import CalibrationError, expected_calibration_error, share_correct
from shannon_game.estimators.cloze.classwise_error import classwise_calibration_error
from shannon_game.estimators.cloze.distances import jensen_shannon_nats
from shannon_game.estimators.cloze.distributions import (
    Distributions,
    WordCounts,
    entropy_nats,
    relative_frequencies,
    top_words,
)
from shannon_game.estimators.cloze.split_halves import (
    SplitHalves,
    random_split_halves,
    split_half_top_words,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from shannon_game.estimators.cloze.study_words import StudyWords
from shannon_game.estimators.cloze.tvd_bias import tvd_with_baseline
from shannon_game.experiments.cloze.settings import ORACLE, cluster_se, groups_of, known_mean, shared_contexts

Floats = NDArray[np.float64]

GOLD = ("corpus", "human", "oracle1")
"""Gold labels of table 1: the word of the text, people's majority, the majority of half of the people."""


@dataclass(frozen=True, eq=False)
class PlayerTvd:
    """One player's distances to people, by context."""

    player: str
    items: NDArray[np.intp]
    groups: NDArray[Any]
    human: WordCounts
    raw: Floats
    baseline: Floats
    corrected: Floats
    to_oracle: Floats
    between: Floats
    entropy: Floats
    divergence: Floats
    calibration: dict[tuple[str, str], CalibrationError]
    oracle_ece: dict[str, float]
    samples: dict[str, float]
    n_bins: int
    classwise: float

    @property
    def between_oracles(self) -> Floats:
        """Mean TVD over the splits of oracle 2 to oracle 1, shape (context,)."""
        return np.asarray(self.between.mean(axis=0))

    @property
    def split_means(self) -> Floats:
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
    answers = words.answers()
    have = shared_contexts(words, name)
    items = model.item[have]
    counts, human = model.counts.take(have), answers.take(items)
    cpd = relative_frequencies(counts)
    against = tvd_with_baseline(counts, human)
    splits = random_split_halves(human, n_splits=n_splits, rng=rng)
    between = tvd_between_split_halves(splits)
    to_oracle = tvd_to_split_halves(cpd, splits).mean(axis=0)
    divergence = jensen_shannon_nats(cpd, relative_frequencies(human))
    calibration, oracle_ece = _calibration(words, counts, human, items, splits=splits, n_bins=n_bins)
    extra = {
        "n_samples": float(counts.totals.mean()),
        "share_failed": model.missing.get("failed", 0) / model.n_samples
        + model.missing.get("blank", 0) / model.n_samples,
        "share_dropped": sum(model.missing.values()) / model.n_samples,
    }
    return PlayerTvd(
        name,
        items,
        groups_of(study, items),
        human=human,
        raw=against.raw,
        baseline=against.baseline,
        corrected=against.corrected,
        to_oracle=to_oracle,
        between=between,
        entropy=entropy_nats(cpd),
        divergence=divergence,
        calibration=calibration,
        oracle_ece=oracle_ece,
        samples=extra,
        n_bins=n_bins,
        classwise=_classwise(cpd, words.target[items], n_bins),
    )


def oracle_tvd(
    study: xr.Dataset, words: StudyWords, *, n_splits: int, n_bins: int, rng: np.random.Generator
) -> PlayerTvd:
    """Half of the people (oracle 2) as a player, against the other half (oracle 1)."""
    answers = words.answers()
    items = np.flatnonzero(answers.totals > 1)
    human = answers.take(items)
    splits = random_split_halves(human, n_splits=n_splits, rng=rng)
    between = tvd_between_split_halves(splits)
    parts = [(part_counts(splits, at, "second"), part_counts(splits, at, "first")) for at in range(n_splits)]
    # of every split: where the number of answers is odd, each leaves out another one
    against = [tvd_with_baseline(*pair) for pair in parts]
    cpds = [(relative_frequencies(one), relative_frequencies(other)) for one, other in parts]
    raw, second = between.mean(axis=0), parts[0][0]
    calibration, oracle_ece = _calibration(words, second, human, items, splits=splits, n_bins=n_bins, own=True)
    extra = {"n_samples": float(second.totals.mean()), "share_failed": 0.0, "share_dropped": 0.0}
    return PlayerTvd(
        ORACLE,
        items,
        groups_of(study, items),
        human=human,
        raw=raw,
        baseline=np.mean([one.baseline for one in against], axis=0),
        corrected=np.mean([one.corrected for one in against], axis=0),
        to_oracle=raw,
        between=between,
        entropy=np.mean([entropy_nats(one) for one, _ in cpds], axis=0),
        divergence=np.mean([jensen_shannon_nats(one, other) for one, other in cpds], axis=0),
        calibration=calibration,
        oracle_ece=oracle_ece,
        samples=extra,
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
