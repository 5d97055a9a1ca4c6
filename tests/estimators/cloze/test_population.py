"""Whether people are one population: by hand, and how often the tests are wrong or right."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from shannon_game.estimators.cloze import agreement_spread, group_distance


def people(
    rng: np.random.Generator, *, own: float = 0.0, group: float = 0.0
) -> tuple[NDArray[np.int_], NDArray[np.int_], NDArray[np.int_]]:
    """16 people answer 12 contexts; a share `own` of the odd ones' words are rare, `group` those of the second half."""
    who, item = (axis.ravel() for axis in np.indices((16, 12)))
    word = rng.choice(4, size=who.size, p=[0.5, 0.3, 0.15, 0.05])
    strange = (who % 2 == 1) & (rng.uniform(size=who.size) < own)
    word = np.where(strange, rng.integers(10, 40, who.size), word)
    moved = (who >= 8) & (rng.uniform(size=who.size) < group)
    return item, np.where(moved, 3 - word, word), who


def test_distances_by_hand() -> None:
    # context 0: shares (1, 0) and (1/2, 1/2); context 1: the same; context 2: of one group alone
    item = [0, 0, 0, 0, 1, 1, 1, 1, 2]
    word = [0, 0, 0, 1, 5, 6, 5, 6, 7]
    who = [0, 1, 2, 3, 0, 1, 2, 3, 0]
    second = np.array(who) >= 2
    found = group_distance(item, word, who, second, np.random.default_rng(0), n_permutations=199)
    assert (found.tvd, found.n_contexts, found.n_first, found.n_second) == (0.25, 2, 2, 2)
    # 3 ways to pair four people: the observed one has context 1 alike, the two others context 1 apart or alike
    assert found.baseline == pytest.approx(np.mean([0.25, 0.25 + 0.5, 0.25]), abs=0.06)


def test_p_values_of_one_population_are_uniform() -> None:
    rng = np.random.default_rng(1)
    p_groups, p_people = [], []
    for _ in range(120):
        item, word, who = people(rng)
        p_groups.append(group_distance(item, word, who, who >= 8, rng, n_permutations=39).p_value)
        p_people.append(agreement_spread(item, word, who, rng, n_permutations=39).p_value)
    # 120 studies: a standard error of .027 at 10%
    for p in (p_groups, p_people):
        assert np.mean(np.array(p) <= 0.1) == pytest.approx(0.1, abs=0.08)


def test_differences_that_are_there_are_found() -> None:
    rng = np.random.default_rng(2)
    item, word, who = people(rng, group=0.9)
    assert group_distance(item, word, who, who >= 8, rng, n_permutations=199).p_value <= 0.01
    item, word, who = people(rng, own=0.5)
    spread = agreement_spread(item, word, who, rng, n_permutations=199)
    assert spread.p_value <= 0.01
    assert spread.sd > spread.expected
    # odd people are in both halves: these do not differ
    assert group_distance(item, word, who, who >= 8, rng, n_permutations=199).p_value > 0.05
