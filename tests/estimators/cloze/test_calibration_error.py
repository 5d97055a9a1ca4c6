"""Bins of the calibration error on confidences that are edges, as shares of 10, 20 and 30 samples are."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from shannon_game.estimators.cloze import Distributions, classwise_calibration_error
from shannon_game.estimators.cloze.calibration_error import expected_calibration_error
from tests.oracles.calibration_error import adaptive_bins, calibration_error, fixed_bins

BINS = {"fixed": fixed_bins, "adaptive": adaptive_bins}


@pytest.mark.parametrize("n_bins", [1, 3, 7, 10, 15, 100])
@pytest.mark.parametrize("n_samples", [10, 20, 30, 100])
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_shares_of_samples_against_exact_fractions(
    bins: Literal["fixed", "adaptive"], n_samples: int, n_bins: int, kind: type
) -> None:
    rng = np.random.default_rng(n_samples + n_bins)
    for size in (1, 2, 9, 57):
        share = [Fraction(int(count), n_samples) for count in rng.integers(1, n_samples + 1, size)]
        correct = rng.integers(0, 2, size).tolist()
        which = BINS[bins](share, n_bins)
        given = np.array([float(each) for each in share]).astype(kind)
        found = expected_calibration_error(given, correct, bins=bins, n_bins=n_bins)
        assert found.ece == pytest.approx(float(calibration_error(share, correct, which)), abs=1e-6)
        assert found.count.tolist() == np.bincount(which, minlength=len(found.count)).tolist()
        # a mean that is the same whatever the order of the sum
        again = expected_calibration_error(given[::-1], correct[::-1], bins=bins, n_bins=n_bins)
        assert again.ece == pytest.approx(found.ece)


def test_right_and_wrong_confidences_beside_an_edge() -> None:
    edge = expected_calibration_error([0.3] * 5 + [0.2] * 5, [1] * 5 + [0] * 5)
    assert edge.ece == pytest.approx(0.45)
    # .1 + .2 is above .3 and 1 - .4 - .3 below it by the last bit
    noisy = expected_calibration_error([0.1 + 0.2, 1 - 0.4 - 0.3, 0.3], [1, 1, 0], bins="adaptive")
    assert noisy.count.tolist() == [3]
    three = expected_calibration_error([0.2] * 4 + [0.5] * 3 + [0.9] * 3, [0] * 4 + [1] * 3 + [0] * 3, bins="adaptive")
    assert three.ece == pytest.approx(0.5)


def test_all_words_are_in_the_same_bins() -> None:
    """57 of 100 samples are at the edge of a bin of 100: 0.57 * 100 is below 57."""
    share, context = np.array([0.57, 0.565]), np.arange(2)
    cpd = Distributions(context, np.zeros(2, dtype=np.int64), share, 2)
    found = classwise_calibration_error(cpd, [0, 1], n_bins=100)
    # word 0: bin 57 is .43 too low and bin 56 .565 too high; word 1 was never expected
    assert found.total == pytest.approx((0.43 + 0.565 + 1) / 2)
