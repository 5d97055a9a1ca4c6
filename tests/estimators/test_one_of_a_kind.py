"""A standard error that one item, participant, document or response cannot tell is NaN, and its interval too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators import bets, cloze, comparison, documents, guesses
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.comparison.gap import ESTIMATORS
from shannon_game.estimators.comparison.scaled_bridge import pool_errors
from shannon_game.estimators.comparison.stated import stated_belief

Numbers = Sequence[float]
SIZES = st.lists(st.floats(-3, 3), min_size=2, max_size=9)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def gap(values: Numbers, estimator: str, *, one_item: bool) -> list[float]:
    n = len(values)
    tokens = {"token": np.arange(n), "candidate_logprob": np.full(n, -np.log(n) if one_item else -2.0)}
    item = [0] * n if one_item else range(n)
    found = comparison.estimate_gap(values, item, estimator=estimator, target_logprob=np.full(n, -2.0), **tokens)
    return [found.se_items_nats if one_item else found.se_samples_nats]


def crossed(values: Numbers, one: str) -> list[float]:
    many, single = range(len(values)), [0] * len(values)
    found = documents.crossed_mean(values, *((single, many) if one == "participant" else (many, single)))
    return [found.se, found.lower, found.upper]


def accuracy(values: Numbers, one: str) -> list[float]:
    right, many, single = np.array(values) > 0, [str(at) for at in range(len(values))], ["0"] * len(values)
    people, places = (single, many) if one == "participant" else (many, single)
    found = guesses.pooled_accuracy(right, people, places, rng=rng(), n_replicates=50)
    return [found.se, found.lower, found.upper, *([found.participant_mean_se] if one == "participant" else [])]


def practice(values: Numbers) -> list[float]:
    n = len(values)
    found = guesses.practice_curve(np.array(values) > 0, ["0"] * n, range(n), starts=[0], rng=rng(), n_replicates=20)
    return [*found.excess_lower, *found.excess_upper]


def needed(values: Numbers) -> list[float]:
    found = cloze.needed_share(np.abs(values), np.zeros(len(values)), ["a"] * len(values), margin=0.1, rng=rng())
    return [found.lower, found.upper]


def paired(values: Numbers) -> list[float]:
    found = cloze.paired_difference(values, np.zeros(len(values)), group=["a"] * len(values), seed=1)
    return [found.lower, found.upper]


def regression(values: Numbers) -> list[float]:
    cluster = np.arange(len(values)) % 2
    # a second value of the second cluster, so that there are more values than coefficients
    y, cluster = [*values, 0.3, 1.7], [*cluster, 0, 1]
    return documents.clustered_regression(y, {"x": cluster}, cluster).se.tolist()


def pooled_items(values: Numbers) -> list[float]:
    return [pool_errors(np.zeros(1), np.array(values)[:, None], np.zeros(1), len(values))[0]]


CASES: dict[str, Callable[[Numbers], list[float]]] = {
    **{f"{name}, one item": lambda v, name=name: gap(v, name, one_item=True) for name in ESTIMATORS},
    **{f"{name}, single responses": lambda v, name=name: gap(v, name, one_item=False) for name in ESTIMATORS},
    **{f"mean over one {one}": lambda v, one=one: crossed(v, one) for one in ("participant", "item")},
    **{f"accuracy of one {one}": lambda v, one=one: accuracy(v, one) for one in ("participant", "document")},
    "practice of one participant": practice,
    "share of one group": needed,
    "difference of one group": paired,
    "slope of what two texts have": regression,
    "pool of one item": pooled_items,
    "mean of one cluster": lambda v: [documents.clustered_mean(v, ["a"] * len(v)).se],
    "loss of one document with words": lambda v: [documents.unit_loss([np.abs(v).sum(), 0], [3, 0]).nats.se],
    "bets of one person": lambda v: [bets.estimate_bet_loss(np.abs(v), ["a"] * len(v), range(len(v))).loss_se_nats],
    "line through two pairs": lambda v: [stated_belief(v[:2], [0.0, 1.0], item=[0, 1]).slope_se],
}


@pytest.mark.parametrize("case", CASES)
@given(SIZES)
def test_what_cannot_be_estimated_is_nan(case: str, values: list[float]) -> None:
    with np.errstate(all="ignore"):
        found = CASES[case](values)
    assert found
    assert np.isnan(found).all(), found


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_study_of_one_item_has_a_perplexity_and_no_interval(estimator: str) -> None:
    study = comparison_study()
    one = study.isel(response=study["response_item"].to_numpy() == study["item"].to_numpy()[0])
    found = comparison.estimate_perplexity(one, estimator=estimator)
    assert np.isfinite(found.perplexity)
    assert np.isnan([found.perplexity_lower, found.perplexity_upper, found.gap.se_items_nats]).all()
