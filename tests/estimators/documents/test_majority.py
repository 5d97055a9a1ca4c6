"""Accuracy of ensembles of people against every ensemble there is, closed forms, draws, and known populations."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from shannon_game.estimators.documents import majority, majority_accuracy
from shannon_game.estimators.errors import InputError
from tests.oracles import majority as oracle

CONTEXTS = ["aabbc", "abcde", "aaaab", "abbcc", "cccaa"]
ANSWERS, CONTEXT = list("".join(CONTEXTS)), np.repeat(np.arange(5), 5)


@pytest.mark.parametrize("right", ["a", None])
def test_every_ensemble_counts(right: str | None) -> None:
    hit = None if right is None else [answer == right for answer in ANSWERS]
    sizes = [1, 2, 3, 4] + [5] * (right is not None)
    found = majority_accuracy(ANSWERS, CONTEXT, sizes=[*sizes, 0], right=hit)
    for size, by_context in zip([*sizes, sizes[-1]], found.by_context, strict=True):
        plain = [oracle.accuracy(answers, size, right) for answers in CONTEXTS]
        np.testing.assert_allclose(by_context, plain, atol=1e-12)
    # one person, and two who share the guess where they disagree, are right as often as people are
    np.testing.assert_allclose(found.accuracy[0], found.accuracy[1], atol=1e-12)


def test_of_two_words_the_sample_with_more_of_it_decides() -> None:
    # hypergeometric: 18 people of 30 are right, 11 asked
    hit = np.tile(np.arange(30) < 18, 2)
    found = majority_accuracy(np.where(hit, "a", "b"), np.repeat([0, 1], 30), sizes=[11], right=hit)
    exact = sum(comb(18, k) * comb(12, 11 - k) for k in range(6, 12)) / comb(30, 11)
    assert found.accuracy[0] == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("n_right", [7, -1])
def test_draws_are_near_the_sum(n_right: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = (1, 1, 2, 3, 5) + (7,) * (n_right < 0)
    exact = majority._of_counts(counts, n_right, (1, 5, 10), 0)
    monkeypatch.setattr(majority, "_TERMS", 0)
    drawn = np.mean([majority._of_counts(counts, n_right, (1, 5, 10), seed) for seed in range(1, 31)], axis=0)
    # 12,000 draws of shares between 0 and 1: standard error 0.0046 at most
    np.testing.assert_allclose(drawn, exact, atol=0.02)


def test_intervals_hold_the_accuracy_of_other_people_in_other_texts() -> None:
    """90% intervals hold the truth in 84% of 100 studies at least: two standard errors below 90, and wide by design."""
    wrong = np.array(list("bcd"))

    def played(rng: np.random.Generator, n_texts: int, n_people: int) -> np.ndarray:
        # texts and people differ; wrong answers are one of three words
        logit = rng.normal(-0.3, 0.8, n_texts)[:, None, None] + rng.normal(0, 0.7, n_people)
        right = rng.random((n_texts, 2, n_people)) < 1 / (1 + np.exp(-logit))
        return np.where(right, "a", rng.choice(wrong, size=right.shape, p=[0.6, 0.3, 0.1]))

    def of(answers: np.ndarray, sizes: list[int]) -> majority.MajorityAccuracy:
        n_texts, _, n_people = answers.shape
        text, _, person = np.indices(answers.shape)
        context = np.repeat(np.arange(n_texts * 2), n_people)
        how = {"group": text.ravel(), "participant": person.ravel(), "right": answers.ravel() == "a"}
        return majority_accuracy(answers.ravel(), context, sizes=sizes, **how)

    rng = np.random.default_rng(2)
    truth = np.mean([of(played(rng, 100, 10), [1, 5]).accuracy for _ in range(20)], axis=0)
    held = np.zeros(2)
    for _ in range(100):
        found = of(played(rng, 10, 10), [1, 5])
        held += (found.lower <= truth) & (truth <= found.upper)
    assert (held >= 84).all(), held


def test_too_few_people_get_one_line() -> None:
    with pytest.raises(InputError, match="has 0 contexts with 6 people or more; two are needed"):
        majority_accuracy(ANSWERS, CONTEXT, sizes=[5])
