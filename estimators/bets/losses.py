r"""What a bet cost: -ln of the stake on the word that came, unnamed words sharing one stake by a stated back-off.

An answer names words W, stakes :math:`b_w` on each and :math:`b_0` on anything else. Had the better to bet on every
word, the loss would be -ln of the stake on the true word y. Where y was not named, the back-off m says how
:math:`b_0` is spread over unnamed words:

.. math::

    \ell = -\ln b_y \quad (y \in W), \qquad
    \ell = -\ln b_0 - \ln \frac{m(y)}{1 - \sum_{w \in W} m(w)} \quad (y \notin W).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray
from shannon_game.estimators.bets.study import BETS, GENERATOR, hit_of_answers, named_mass
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import item_positions

UNIFORM = "uniform"
"""Back-off that gives every word of a vocabulary that was not named the same."""

FLOOR = "floor"
"""No distribution: the whole stake on anything else lies on the word that came, so that no back-off costs less."""


def outcome_stakes(study: Dataset) -> tuple[FloatArray, BoolArray]:
    """Stake on what came, (response,), the target or where it was not named anything else; and whether it was named.

    Examples
    --------
    >>> bets.outcome_stakes(bets.examples.bet_study())[0].tolist()
    [0.5, 0.25, 0.125, 0.5, 0.0625, 0.25]
    """
    BETS.source(study)
    hit = hit_of_answers(study)
    named = hit >= 0
    stake = study["other_stake"].values.astype(float)
    stake[named] = study["bet_stake"].values[hit[named]]
    return stake, named


def bet_losses(study: Dataset, back_off: str = GENERATOR, *, vocab_size: int | None = None) -> FloatArray:
    """Realised loss of every answer under one back-off.

    Parameters
    ----------
    back_off : str, optional
        "generator" (the study's), the name of any model of the study, "uniform", or "floor".
    vocab_size : int, optional
        Words of the vocabulary, those named among them; for "uniform".

    Returns
    -------
    ndarray, shape (response,)
        Nats; ``inf`` where nothing lay on what came, NaN where the target was not named and the model was not asked.

    Examples
    --------
    >>> bets.bet_losses(bets.examples.bet_study(), "uniform", vocab_size=1002).round(2).tolist()
    [0.69, 8.29, 2.08, 7.6, 2.77, 8.29]
    """
    stake = outcome_stakes(study)[0]
    spread = spread_nats(study, back_off, vocab_size=vocab_size)
    with np.errstate(divide="ignore"):
        losses: FloatArray = spread - np.log(stake)
    return losses


def spread_nats(study: Dataset, back_off: str, *, vocab_size: int | None = None) -> FloatArray:
    """Cost of the back-off, (response,), nats: -ln of the target's share of what lies on anything else; 0 if named.

    Examples
    --------
    >>> bets.spread_nats(bets.examples.bet_study(), "generator").round(2).tolist()
    [0.0, 1.1, 0.0, 0.41, 0.0, 1.79]
    """
    BETS.source(study)
    n_answers = study.sizes["response"]
    named = hit_of_answers(study) >= 0
    if back_off == FLOOR:
        return np.zeros(n_answers)
    if back_off == UNIFORM:
        n_named = np.bincount(study["bet_response"].values, minlength=n_answers)
        if vocab_size is None or vocab_size <= n_named.max():
            raise InputError(
                f"is {vocab_size}, should be a number of words above {n_named.max()}, the most that an answer names",
                field="vocab_size",
            )
        return np.where(named, 0.0, np.log(vocab_size - n_named))
    at = back_off_model(study, back_off)
    target = study["target_logprob"].values[at][item_positions(study, "response_item")]
    # rounding may leave a hair less than the target itself has
    left = np.maximum(1 - named_mass(study, at), np.exp(target))
    with np.errstate(divide="ignore", invalid="ignore"):
        # ln of exp may be a hair off; no back-off gives the target more than all
        cost = np.where(np.isneginf(target), np.inf, np.maximum(np.log(left) - target, 0))
    return np.where(named, 0.0, cost)


def back_off_model(study: Dataset, back_off: str) -> int:
    """Position along ``model`` of a back-off that is one; "generator" is the study's."""
    names = study["model"].values.tolist() if "model" in study.coords else []
    name = study.attrs.get(GENERATOR, back_off) if back_off == GENERATOR else back_off
    if name not in names:
        said = [GENERATOR] * (GENERATOR in study.attrs)
        raise unknown_choice("back_off", back_off, [*said, *names, UNIFORM, FLOOR], source=BETS.source(study))
    return int(names.index(name))


def model_losses(study: Dataset, model: str = GENERATOR) -> FloatArray:
    """Loss of a language model on every answer's target, -ln p(target | context), nats; NaN where it was not asked.

    Examples
    --------
    >>> bets.model_losses(bets.examples.bet_study()).round(2).tolist()
    [0.69, 1.39, 2.08, 0.69, 1.39, 2.08]
    """
    at = back_off_model(study, model)
    found: FloatArray = -study["target_logprob"].values[at][item_positions(study, "response_item")]
    return found


def stake_ranks(study: Dataset) -> tuple[FloatArray, NDArray[np.int64]]:
    """Rank of the target among the words of every answer, the largest stake first, and how many words were named.

    Equal stakes rank in the order in which the words were named. :func:`shannon_game.estimators.rankings.guess_bounds`
    makes Shannon's bounds of them, for whoever guesses the words in that order.

    Returns
    -------
    rank : ndarray of float, shape (response,)
        From 1; ``inf`` where the target was not named.
    n_named : ndarray of int, shape (response,)

    Examples
    --------
    >>> bets.stake_ranks(bets.examples.bet_study())[0].tolist()
    [1.0, inf, 2.0, inf, 2.0, inf]
    """
    BETS.source(study)
    answer = study["bet_response"].values
    order = np.lexsort((np.arange(answer.size), -study["bet_stake"].values, answer))
    n_named = np.bincount(answer, minlength=study.sizes["response"])
    start = np.cumsum(n_named) - n_named
    place = np.empty(answer.size)
    place[order] = np.arange(answer.size) - start[answer[order]] + 1
    hit = hit_of_answers(study)
    rank = np.full(hit.size, np.inf)
    rank[hit >= 0] = place[hit[hit >= 0]]
    return rank, n_named
