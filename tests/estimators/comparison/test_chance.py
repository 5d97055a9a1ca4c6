"""Who is called better than always saying 50%: rates on players whose knowledge is known."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from shannon_game.estimators.comparison.chance import AT_CHANCE, BETTER, TOO_SURE, WORSE, compare_with_chance

N_STUDIES, LEVEL = 400, 0.9


@pytest.mark.parametrize(("n_items", "n_questions"), [(12, 1), (100, 1), (100, 6)])
@pytest.mark.parametrize("confidence", [0.05, 1.5])
def test_a_player_who_answers_at_random_is_at_chance(n_items: int, n_questions: int, confidence: float) -> None:
    """At most (1 - level) / 2 of random players are called better; 2 sd of a share of 400 studies is 0.022."""
    rng = np.random.default_rng(31)
    item = np.repeat(np.arange(n_items), n_questions)
    found: Counter[str] = Counter()
    for _ in range(N_STUDIES):
        logprob = np.log(rng.beta(0.3, 1, n_items))[item]
        report = 1 / (1 + np.exp(-confidence * rng.standard_normal(item.size)))
        found[compare_with_chance(report, logprob, item, level=LEVEL).standing] += 1
    rate = (1 - LEVEL) / 2
    bound = rate + 2 * np.sqrt(rate * (1 - rate) / N_STUDIES)
    assert found[BETTER] / N_STUDIES <= bound
    # two-sided, of the share that is favoured
    assert found[AT_CHANCE] / N_STUDIES >= LEVEL - 2 * np.sqrt(LEVEL * (1 - LEVEL) / N_STUDIES)


def test_the_interval_holds_the_points_of_a_player_who_knows() -> None:
    """Coverage over 400 studies of 60 items: within 2 sd (0.03) and what a heavy tail of g costs Student's t (0.02)."""
    rng = np.random.default_rng(5)
    true = 1000 * 0.3 / 1.3 * (0.7 * np.log(1.6) + 0.3 * np.log(0.4))
    held = 0
    for _ in range(N_STUDIES):
        logprob = np.log(rng.beta(0.3, 1, 60))
        found = compare_with_chance(np.where(rng.random(60) < 0.7, 0.8, 0.2), logprob, np.arange(60), level=LEVEL)
        held += found.points_lower <= true <= found.points_upper
    assert LEVEL - 0.05 <= held / N_STUDIES <= LEVEL + 0.03


@pytest.mark.parametrize(
    ("right", "report", "standing"), [(0.6, 0.99, TOO_SURE), (0.2, 0.9, WORSE), (0.8, 0.7, BETTER)]
)
def test_confidence_and_preference_are_told_apart(right: float, report: float, standing: str) -> None:
    is_right = np.arange(200) % 10 < 10 * right
    found = compare_with_chance(np.where(is_right, report, 1 - report), np.full(200, np.log(0.2)), np.arange(200))
    assert found.favoured == pytest.approx(right)
    assert found.standing == standing
