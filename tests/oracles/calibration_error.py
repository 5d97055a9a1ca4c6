"""Calibration error in exact fractions, prediction by prediction: slow, obvious and without floating-point edges."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def fixed_bins(confidence: Sequence[Fraction], n_bins: int) -> list[int]:
    """Bins [i/n, (i+1)/n), and 1 in the last one."""
    return [max(at for at in range(n_bins) if each >= Fraction(at, n_bins)) for each in confidence]


def adaptive_bins(confidence: Sequence[Fraction], n_bins: int) -> list[int]:
    """Bin i begins with the value at place floor(i N / n) of the sorted ones; bins that begin alike are one."""
    ranked = sorted(confidence)
    starts = sorted({ranked[at * len(ranked) // n_bins] for at in range(n_bins)})
    return [max(at for at, start in enumerate(starts) if each >= start) for each in confidence]


def calibration_error(confidence: Sequence[Fraction], correct: Sequence[int], which: Sequence[int]) -> Fraction:
    """Sum over bins of the absolute difference between summed confidences and hits, over N."""
    total = Fraction(0)
    for bin_number in set(which):
        own = [row for row, its in enumerate(which) if its == bin_number]
        total += abs(sum((confidence[row] - correct[row] for row in own), Fraction(0)))
    return total / len(confidence)
