r"""Checks of what the participant model assumes about people, each with its rate of false alarms and its power.

No check can see a bias that all participants share, nor prospect weighting where it leaves the ends of the scale alone:
the law of the targets takes both up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.display import Result
from shannon_game.inference.posterior.arviz_adapter import InferenceData, group, group_names
from shannon_game.models.comparison.participant_data import ParticipantData

CAMPS_Z = 3.0
"""Ring above. On simulated studies 2 of 419 false alarms; 25 of 52 where two camps believe differently, 11 of 52
where a quarter of the people does (``tests/benchmarks/hidden_people.py``)."""
ENDS_P = 0.01
"""Ring below. On simulated studies 1 of 319 false alarms, and 0 of 64 with prospect weighting or a pull toward 50%."""
UNEXPECTED_SHARE = 0.1
"""Ring above. On simulated studies 1 of 340 false alarms, and 39 of 40 where each item's top word is any other one."""
_AGREE, _RULED_OUT = 2, 0.005
# on two items it may be chance
_FEWEST_UNEXPECTED = 3
"""Free answers of one item with the same word, and how many at most the generator expects of it."""
_PERMUTATIONS, _LEAST_PEOPLE = 60, 3
_LEAST_SHARE = 1e-4
_RIDGE = (0.1, 1.0)
_LEAST_SD, _LEAST_VARIANCE = 0.2, 0.05


@dataclass(frozen=True, eq=False, repr=False)
class Camps(Result):
    """Whether people's residuals on the same items go together by groups of people.

    ``z`` is the leading eigenvalue of their products, in standard deviations under names permuted within items;
    ``second`` (person,) says who is on the other side of the eigenvector.
    """

    z: float
    second: NDArray[np.bool_]

    @property
    def rings(self) -> bool:
        """Whether one shared belief is a wrong description."""
        return self.z > CAMPS_Z


def check_camps(data: ParticipantData, rng: np.random.Generator) -> Camps:
    """Look for people who believe differently, from their reports alone, without a fit.

    Every participant's log-odds lose their regression on the mean log-odds of all, and the mean of the report's item.
    With fewer than three participants there is nothing to see: z is NaN and does not ring.
    """
    item, person = data.row_item, data.row_participant
    n, k = data.participant.size, data.item.size
    if n < _LEAST_PEOPLE or data.is_player:
        return Camps(float("nan"), np.zeros(n, dtype=bool))
    residual = _residuals(data)

    def leading(who: IntArray) -> tuple[float, FloatArray]:
        total, there = np.zeros((2, n, k))
        np.add.at(total, (who, item), residual)
        there[who, item] = 1
        products = total @ total.T / np.sqrt(np.maximum(there @ there.T, 1))
        np.fill_diagonal(products, 0)
        values, vectors = np.linalg.eigh(products)
        return float(values[-1]), vectors[:, -1]

    found, vector = leading(person)
    order, permuted = np.argsort(item, kind="stable"), []
    for _ in range(_PERMUTATIONS):
        who = person.copy()
        who[order] = person[order][np.lexsort((rng.random(item.size), item[order]))]
        permuted.append(leading(who)[0])
    second = vector > 0
    return Camps((found - float(np.mean(permuted))) / float(np.std(permuted)), second)


def _residuals(data: ParticipantData) -> FloatArray:
    """What a participant's log-odds are beside her line on the mean of all, in her standard deviations, (report,)."""
    item, person, n = data.row_item, data.row_participant, data.participant.size

    def mean(value: FloatArray) -> FloatArray:
        found: FloatArray = (np.bincount(item, value) / np.maximum(np.bincount(item), 1))[item]
        return found

    value = np.clip(data.box_value, _LEAST_SHARE, 1 - _LEAST_SHARE)[data.row_box]
    log_odds = np.log(value) - np.log1p(-value)
    generator = data.target_log_g[item] - data.token_log_g[data.row_token]
    size = np.sqrt(np.bincount(person, log_odds**2, n) / np.maximum(np.bincount(person, minlength=n), 1))
    scaled = log_odds / np.sqrt(size**2 + _LEAST_VARIANCE)[person]
    within = generator - mean(generator)
    shared = mean(scaled) + within * (within @ scaled) / max(float(within @ within), 1e-12)
    residual = np.zeros_like(scaled)
    for p in range(n):
        own = person == p
        if own.any():
            x = np.stack([np.ones(own.sum()), shared[own]], axis=1)
            line = np.linalg.solve(x.T @ x + np.diag(_RIDGE), x.T @ scaled[own] + [0, _RIDGE[1]])
            off = scaled[own] - x @ line
            residual[own] = off / (off.std() + _LEAST_SD)
    return residual - mean(residual)


@dataclass(frozen=True, eq=False, repr=False)
class Unexpected(Result):
    """Share of the items with free answers where people agree on a word that the generator rules out."""

    share: float
    n_items: int

    @property
    def rings(self) -> bool:
        """Whether there are more such words than the law of words allows for: it puts them too low."""
        return self.share > UNEXPECTED_SHARE and self.n_items >= _FEWEST_UNEXPECTED


def check_unexpected(data: ParticipantData) -> Unexpected:
    """Count the items of which two free answers are one word, of which the generator expects none in 200 such items."""
    asked = data.n_answers >= _AGREE
    expected = data.n_answers[data.token_item] * np.exp(data.token_log_g)
    found = data.token_item[(data.token_answers >= _AGREE) & (expected < _RULED_OUT)]
    n_items = np.unique(found).size
    return Unexpected(n_items / max(int(asked.sum()), 1), n_items)


@dataclass(frozen=True, eq=False, repr=False)
class Ends(Result):
    """Share of reports at the ends of the scale, and the probability that predictions have one as extreme."""

    observed: float
    predicted: float
    p_value: float

    @property
    def rings(self) -> bool:
        """Whether reports come from the belief in another way than the likelihood says."""
        return self.p_value < ENDS_P


def check_ends(idata: InferenceData, data: ParticipantData) -> Ends:
    """Hold the share of reports at the ends of the scale against a posterior's predictions, both sides."""
    ends = data.box_value[[0, -1]]
    predicted = np.isin(group(idata, "posterior_predictive")["reports"], ends).mean(axis=2).ravel()
    observed = float(np.isin(data.box_value[data.row_box], ends).mean())
    p = min(float((predicted <= observed).mean()), float((predicted >= observed).mean()))
    return Ends(observed, float(predicted.mean()), min(2 * p, 1.0))


def alarms(data: ParticipantData, idata: InferenceData, rng: np.random.Generator) -> list[str]:
    """Say which checks ring; that of the ends needs predictions (:func:`shannon_game.inference.whole_posterior`)."""
    camps, found = check_camps(data, rng), []
    if camps.rings:
        found.append(f"groups of participants believe differently (check of camps, z = {camps.z:.1f})")
    unexpected = check_unexpected(data)
    if unexpected.rings:
        where = f"on {unexpected.share:.0%} of the items people agree on a word that the generator rules out"
        found.append(f"{where}: the loss may be larger than its interval says")
    if "posterior_predictive" in group_names(idata):
        ends = check_ends(idata, data)
        if ends.rings:
            found.append(
                f"{ends.observed:.0%} of the reports are at the ends of the scale, {ends.predicted:.0%} are predicted"
            )
    return found
