"""A perplexity is never below 1, and a cut at 1 costs no coverage."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.comparison import estimate_perplexity
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.perplexity import perplexity_of_loss


@pytest.mark.parametrize(
    ("loss", "expected"), [(2.0, np.exp(2.0)), (0.0, 1.0), (-0.5, 1.0), (-np.inf, 1.0), (np.inf, np.inf), (1e4, np.inf)]
)
def test_one_number(loss: float, expected: float) -> None:
    assert perplexity_of_loss(loss) == pytest.approx(expected)
    assert isinstance(perplexity_of_loss(loss), float)


def test_the_interval_of_a_study_ends_at_one_and_its_loss_does_not() -> None:
    wide = estimate_perplexity(comparison_study(), interval=1 - 1e-12)
    usual = estimate_perplexity(comparison_study())
    assert wide.perplexity_lower == 1
    assert wide.gap.gap_nats == pytest.approx(usual.gap.gap_nats)
    assert usual.perplexity == pytest.approx(np.exp(usual.gap.gap_nats + usual.reference_loss_nats))


def test_what_is_not_known_stays_unknown() -> None:
    assert np.isnan(perplexity_of_loss(np.nan))
    assert np.array_equal(perplexity_of_loss([np.nan, -1.0]), [np.nan, 1.0], equal_nan=True)
