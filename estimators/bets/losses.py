r"""What a bet cost: -ln of the stake on the word that came, unnamed words sharing one stake by a stated back-off.

An answer names words W, stakes :math:`b_w` on each and :math:`b_0` on anything else. Had the better to bet on every
word, the loss would be -ln of the stake on the true word y. Where y was not named, the back-off m says how
:math:`b_0` is spread over unnamed words:

.. math::

    \ell = -\ln b_y \quad (y \in W), \qquad
    \ell = -\ln b_0 - \ln \frac{m(y)}{1 - \sum_{w \in W} m(w)} \quad (y \notin W).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray
from shannon_game.estimators.bets.study import BETS, GENERATOR, hit_of_answers, named_mass
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents import CrossedMean, crossed_mean
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import item_positions

UNIFORM = "uniform"
"""Back-off that gives every word of a vocabulary that was not named the same."""

FLOOR = "floor"
"""No distribution: the whole stake on anything else lies on the word that came, so that no back-off costs less."""

Zero = Literal["refuse", "count"]
ZEROS: tuple[str, ...] = get_args(Zero)


def outcome_stakes(study: Dataset) -> tuple[FloatArray, BoolArray]:
    """Stake on what came, (response,), the target or where it was not named anything else; and whether it was named."""
    study = BETS.read(study)
    hit = hit_of_answers(study)
    named = hit >= 0
    stake = study["other_stake"].values.astype(float)
    stake[named] = study["bet_stake"].values[hit[named]]
    return stake, named


def bet_losses(study: Dataset, back_off: str = GENERATOR, *, vocab_size: int | None = None) -> FloatArray:
    """Realised loss of every answer under one back-off.

    A back-off is "generator" (the study's), the name of a model of the study, "uniform" (of `vocab_size` words, those
    named among them), or "floor".

    Returns
    -------
    ndarray, shape (response,)
        Nats; ``inf`` where nothing lay on what came, NaN where the target was not named and the model was not asked.

    Examples
    --------
    >>> bets.bet_losses(bets.examples.bet_study(), "uniform", vocab_size=1002).round(2).tolist()
    [0.69, 8.29, 2.08, 7.6, 2.77, 8.29]
    """
    study = BETS.read(study)
    stake = outcome_stakes(study)[0]
    spread = spread_nats(study, back_off, vocab_size=vocab_size)
    with np.errstate(divide="ignore"):
        losses: FloatArray = spread - np.log(stake)
    return losses


def spread_nats(study: Dataset, back_off: str, *, vocab_size: int | None = None) -> FloatArray:
    """Cost of the back-off, (response,), nats: -ln of the target's share of what lies on anything else; 0 if named."""
    study = BETS.read(study)
    n_answers = study.sizes["response"]
    named = hit_of_answers(study) >= 0
    if back_off == FLOOR:
        return np.zeros(n_answers)
    if back_off == UNIFORM:
        n_named = np.bincount(study["bet_response"].values, minlength=n_answers)
        if vocab_size is None or vocab_size <= n_named.max():
            problem = f"is {vocab_size}, should be above {n_named.max()}, the most words that an answer names"
            raise InputError(problem, field="vocab_size")
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
    study = BETS.read(study)
    names = study["model"].values.tolist() if "model" in study.coords else []
    name = study.attrs.get(GENERATOR, back_off) if back_off == GENERATOR else back_off
    if name not in names:
        said = [GENERATOR] * (GENERATOR in study.attrs)
        raise unknown_choice("back_off", back_off, [*said, *names, UNIFORM, FLOOR], source=BETS.source(study))
    return int(names.index(name))


def model_losses(study: Dataset, model: str = GENERATOR) -> FloatArray:
    """Loss of a language model on every answer's target, -ln p(target | context), nats; NaN where it was not asked."""
    study = BETS.read(study)
    at = back_off_model(study, model)
    found: FloatArray = -study["target_logprob"].values[at][item_positions(study, "response_item")]
    return found


def stake_ranks(study: Dataset) -> tuple[FloatArray, NDArray[np.int64]]:
    """Rank of the target among the words of every answer, the largest stake first, and how many words were named.

    Equal stakes rank in the order in which the words were named. :func:`shannon_game.estimators.rankings.guess_bounds`
    makes Shannon's bounds of them, for whoever guesses the words in that order. One not named has ``inf``.
    """
    study = BETS.read(study)
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


@dataclass(frozen=True, repr=False)
class BetLoss(Result):
    """Mean realised loss over answers; standard errors are clustered over people and items.

    Attributes
    ----------
    reference_loss_nats : float
        Of the reference (a generator) on the same answers; NaN without one.
    gap_nats, gap_se_nats, gap_lower_nats, gap_upper_nats : float
        Loss minus the reference's, answer by answer; NaN without one.
    n_zero : int
        Answers besides that put nothing on what came: their loss is infinite, and so is the mean with them.
    n_unasked : int
        Answers besides without a back-off or a reference.
    """

    loss_nats: float
    loss_lower_nats: float
    loss_upper_nats: float
    n_zero: int
    loss_se_nats: float
    reference_loss_nats: float
    gap_nats: float
    gap_se_nats: float
    gap_lower_nats: float
    gap_upper_nats: float
    n_responses: int
    n_participants: int
    n_items: int
    n_unasked: int


@dataclass(frozen=True, repr=False)
class LossBracket(Result):
    """Between which losses the back-offs leave open where people are.

    Attributes
    ----------
    lower_nats, upper_nats : float
        Mean loss with the most and the least favourable of the back-offs, on the same answers.
    n_responses : int
        Answers with a finite loss under every back-off.
    """

    lower_nats: float
    upper_nats: float
    lower_back_off: str
    upper_back_off: str
    n_responses: int


def estimate_bet_loss(
    loss_nats: ArrayLike,
    participant: ArrayLike,
    item: ArrayLike,
    *,
    reference: ArrayLike | None = None,
    zero: Zero | str = "refuse",
    probability: float = 0.9,
) -> BetLoss:
    r"""Mean realised loss, :math:`\frac1n \sum_i -\ln b_i(y_i)`, and its gap to a reference on the same answers.

    Losses are those of :func:`bet_losses`, the reference's such as the generator's (:func:`model_losses`). `zero` says
    what to do with answers that put nothing on what came: "refuse" them, or leave them out and "count" them.

    Examples
    --------
    >>> study = bets.examples.bet_study()
    >>> person, item = study["participant"].values, study["response_item"].values
    >>> bets.estimate_bet_loss(bets.bet_losses(study), person, item)
    BetLoss(loss_nats=2.051, loss_lower_nats=-1.596, loss_upper_nats=5.698, n_zero=0, ...)
    """
    if zero not in ZEROS:
        raise unknown_choice("zero", zero, ZEROS)
    losses = np.asarray(loss_nats, dtype=float)
    against = np.zeros(losses.shape) if reference is None else np.asarray(reference, dtype=float)
    who, where = np.asarray(participant), np.asarray(item)
    for name, values in (("reference", against), ("participant", who), ("item", where)):
        if values.shape != losses.shape or losses.ndim != 1:
            raise InputError(f"has shape {values.shape}, `loss_nats` has {losses.shape}; one an answer", field=name)
    is_zero = np.isposinf(losses)
    if is_zero.any() and zero == "refuse":
        place = f"at answer {int(np.flatnonzero(is_zero)[0])} ({int(is_zero.sum())} such): nothing lay on what came"
        raise InputError(f"is infinite {place}; zero='count' leaves such answers out", field="loss_nats")
    asked = np.isfinite(losses) & np.isfinite(against)
    if not asked.any():
        raise InputError("has no answer with a finite loss", field="loss_nats")
    of_loss = crossed_mean(losses[asked], who[asked], where[asked], probability=probability)
    gap = None
    if reference is not None:
        gap = crossed_mean((losses - against)[asked], who[asked], where[asked], probability=probability)
    return BetLoss(
        **_named("loss", of_loss),
        reference_loss_nats=float(against[asked].mean()) if gap is not None else np.nan,
        **_named("gap", gap),
        n_responses=of_loss.n_responses,
        n_participants=of_loss.n_participants,
        n_items=of_loss.n_items,
        n_zero=int(is_zero.sum()),
        n_unasked=int((~asked & ~is_zero).sum()),
    )


def _named(name: str, found: CrossedMean | None) -> dict[str, float]:
    fields = {"": "mean", "_se": "se", "_lower": "lower", "_upper": "upper"}
    return {f"{name}{end}_nats": np.nan if found is None else getattr(found, its) for end, its in fields.items()}


def bracket_losses(losses: Mapping[str, ArrayLike]) -> LossBracket:
    """Bracket of the mean loss between back-offs, on the answers that all of them give a finite loss.

    It says how much hangs on the back-off, and no more: a person's own belief about unnamed words may be
    outside. Only the back-off "floor" is a bound, from below. `losses` has one value per response for each back-off.
    """
    if not losses:
        raise InputError("is empty; one back-off at least is needed", field="losses")
    arrays = {name: np.asarray(values, dtype=float) for name, values in losses.items()}
    if len({values.shape for values in arrays.values()}) > 1:
        raise InputError("have different shapes; one loss an answer under every back-off", field="losses")
    kept = np.isfinite(np.stack(list(arrays.values()))).all(axis=0)
    if not kept.any():
        raise InputError("has no answer with a finite loss under every back-off", field="losses")
    means = {name: float(values[kept].mean()) for name, values in arrays.items()}
    low, high = min(means, key=lambda name: means[name]), max(means, key=lambda name: means[name])
    return LossBracket(means[low], means[high], low, high, int(kept.sum()))
