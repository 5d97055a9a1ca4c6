"""What the recalibration model is given: stakes by cell, what is mixed with them, and the cell that came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.bets.losses import FLOOR, UNIFORM, back_off_model, spread_nats
from shannon_game.estimators.bets.study import BETS, GENERATOR, hit_of_answers, named_mass
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import item_labels, item_positions

if TYPE_CHECKING:
    import xarray as xr

Mix = Literal["cells", "back_off"]
MIXES: tuple[str, ...] = get_args(Mix)


@dataclass(frozen=True, eq=False)
class RecalibrationData:
    """Bets for :func:`shannon_game.models.recalibration_model`: A answers of U participants in C cells.

    Cell 0 is anything else, then come the words named, then padding.
    """

    participant: NDArray[np.str_]
    person: NDArray[np.intp]  # (A,): positions of the participants
    stake: FloatArray  # (A, C): shares, and the distribution that they are mixed with; 0 in the padding
    mixed: FloatArray
    came: NDArray[np.intp]  # the cell that came; 0 where the target was not named
    spread_nats: FloatArray  # -ln of the back-off's share of the target among the words not named; 0 where it was named
    response: NDArray[np.intp]  # responses of the study
    item: NDArray[np.generic]
    back_off: str
    mix: str
    n_unasked: int  # responses left out: the back-off was not asked


def recalibration_data(
    study: xr.Dataset, back_off: str = GENERATOR, *, mix: Mix | str = "cells", vocab_size: int | None = None
) -> RecalibrationData:
    """Take what the recalibration model needs from a bet study.

    Parameters
    ----------
    back_off, vocab_size
        See :func:`shannon_game.estimators.bets.bet_losses`; "floor" is no distribution.
    mix : {"cells", "back_off"}, optional
        What stakes are mixed with: the same for every cell of an answer, or what the back-off gives to the cells. With
        a language model the latter is the loss of people and the model together.

    Examples
    --------
    >>> models.recalibration_data(bets.examples.bet_study()).stake[0].tolist()
    [0.25, 0.5, 0.25]
    """
    study, source = BETS.read(study), BETS.source(study)
    if mix not in MIXES:
        raise unknown_choice("mix", mix, MIXES, source=source)
    if back_off == FLOOR:
        raise InputError(f"is {FLOOR!r}, which is no distribution; name another", source=source, field="back_off")
    spread = spread_nats(study, back_off, vocab_size=vocab_size)
    answer, n_answers = study["bet_response"].values, study.sizes["response"]
    n_named = np.bincount(answer, minlength=n_answers)
    order = np.argsort(answer, kind="stable")
    start = np.cumsum(n_named) - n_named
    cell = np.empty(answer.size, dtype=np.intp)
    cell[order] = np.arange(answer.size) - start[answer[order]] + 1
    shape = n_answers, int(n_named.max(initial=0)) + 1
    stake, other = np.zeros(shape), np.zeros(shape)
    stake[answer, cell] = study["bet_stake"].values
    stake[:, 0] = study["other_stake"].values
    if mix == "cells":
        other[answer, cell] = 1 / (n_named[answer] + 1)
        other[:, 0] = 1 / (n_named + 1)
    elif back_off == UNIFORM and vocab_size is not None:
        other[answer, cell] = 1 / vocab_size
        other[:, 0] = 1 - n_named / vocab_size
    else:
        at = back_off_model(study, back_off)
        other[answer, cell] = np.exp(study["bet_logprob"].values[at])
        # rounding may leave a hair less than nothing
        other[:, 0] = np.maximum(1 - named_mass(study, at), 0)
    hit = hit_of_answers(study)
    came = np.where(hit >= 0, cell[np.maximum(hit, 0)] if cell.size else 0, 0)
    taken = np.flatnonzero(~np.isnan(spread) & ~np.isnan(other).any(axis=1))
    if not taken.size:
        raise InputError(f"was asked about no answer of {source}", field=f"back-off {back_off!r}")
    rows = np.arange(n_answers)
    nothing = taken[((stake + other)[rows, came] == 0)[taken] | np.isposinf(spread[taken])]
    if nothing.size:
        raise InputError(
            f"gives nothing to what came in response {nothing[0]} ({nothing.size} such)",
            source=source,
            field=f"back-off {back_off!r}",
        )
    participant, person = np.unique(study["participant"].values.astype(str)[taken], return_inverse=True)
    return RecalibrationData(
        participant=participant,
        person=person.astype(np.intp),
        stake=stake[taken],
        mixed=other[taken],
        came=came[taken].astype(np.intp),
        spread_nats=spread[taken],
        response=taken,
        item=item_labels(study)[item_positions(study, "response_item")[taken]],
        back_off=back_off,
        mix=mix,
        n_unasked=n_answers - taken.size,
    )
