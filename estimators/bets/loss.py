"""Mean realised loss of bets, its gap to a generator, and the bracket between back-offs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.display import Result
from shannon_game.estimators.documents import CrossedMean, crossed_mean
from shannon_game.estimators.errors import InputError, unknown_choice

Zero = Literal["refuse", "count"]
ZEROS: tuple[str, ...] = get_args(Zero)


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
    loss_se_nats: float
    loss_lower_nats: float
    loss_upper_nats: float
    reference_loss_nats: float
    gap_nats: float
    gap_se_nats: float
    gap_lower_nats: float
    gap_upper_nats: float
    n_responses: int
    n_participants: int
    n_items: int
    n_zero: int
    n_unasked: int

    def headline(self) -> str:
        """Say the loss, its interval, and what is not in it."""
        more = f"; {self.n_zero} more with nothing on what came" if self.n_zero else ""
        interval = f"[{self.loss_lower_nats:.3f}, {self.loss_upper_nats:.3f}]"
        return f"loss {self.loss_nats:.3f} {interval} nats over {self.n_responses} answers{more}"


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

    def headline(self) -> str:
        """Say both ends."""
        ends = f"{self.lower_nats:.3f} ({self.lower_back_off}) to {self.upper_nats:.3f} ({self.upper_back_off}) nats"
        return f"{ends} over {self.n_responses} answers"


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

    Parameters
    ----------
    loss_nats : array_like, shape (response,)
        Of :func:`bet_losses`.
    participant, item : array_like, shape (response,)
    reference : array_like, shape (response,), optional
        Losses of the generator, of :func:`model_losses`.
    zero : {"refuse", "count"}
        What to do with answers that put nothing on what came: refuse them, or leave them out and count them.

    Examples
    --------
    >>> study = bets.examples.bet_study()
    >>> person, item = study["participant"].values, study["response_item"].values
    >>> bets.estimate_bet_loss(bets.bet_losses(study), person, item)
    BetLoss(loss 2.051 [-1.596, 5.698] nats over 6 answers)
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
        raise InputError(
            f"is infinite at answer {int(np.flatnonzero(is_zero)[0])} ({int(is_zero.sum())} such): nothing was staked "
            "on what came; zero='count' leaves such answers out and counts them",
            field="loss_nats",
        )
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
    outside. Only the back-off "floor" is a bound, from below.

    Parameters
    ----------
    losses : mapping of str to array_like, shape (response,)
        By back-off.

    Examples
    --------
    >>> bets.bracket_losses({"generator": [1.0, 3.0], "uniform": [1.0, 5.0]})
    LossBracket(2.000 (generator) to 3.000 (uniform) nats over 2 answers)
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
