r"""Rows of a calibration study: who reported which probability, and what turned out to be true.

In the comparison game a report of p on the true token y is a report of 1 - p on the other token x, and on which side
either stood is not stored. So "the event" of a row must not be "y is true", which always holds: its frequency would be
1 at every report. The label has to come from the report itself: the *favoured* token, the one with more than half. Its
probability is max(p, 1 - p), and the outcome is whether it is the true one (the half-range format of two-alternative
studies, Lichtenstein and Fischhoff 1977). A report of 50% favours neither and says nothing of the curve, whatever the
curve is: such rows are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.comparison.study import COMPARISON, generator_logprobs, read_kind, same_token
from shannon_game.estimators.comparison.study_sources import TARGET_POSITION, response_references
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import response_positions

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class OutcomeData:
    """Reported probability of an event, and whether it happened."""

    participant: NDArray[np.str_]
    row: IntArray  # (response,): position along the study's responses
    person: IntArray  # position along ``participant``, whose names are sorted
    report: FloatArray  # probability given to the event, strictly between 0 and 1; of boxes the value shown
    outcome: IntArray  # 1 where the event happened
    weight: FloatArray  # how much of an answer each one counts as, above 0 and at most 1
    n_ties: int  # rows left out because they favour no option


def favoured_outcomes(study: xr.Dataset, *, as_paid: bool = False) -> OutcomeData:
    r"""Whether the option that a participant favoured is the true one, for every answer of a comparison study.

    Answers that the site gave by itself, answers on the very same token, and reports of one half are left out.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study, or a forecast study.
    as_paid : bool
        Weight every answer by :math:`g(y) / (g(x) + g(y))`, with g the generator, y the true and x the false token. A
        pair arises with probability t(y) g(x), t the distribution of the text: a false token can be as good a
        continuation as the true one, and a player who reports t(f) / (t(f) + t(o)) for the favoured token f and the
        other one o is right less often than that. But it is what the game asks for, and pays: the score is
        weighted by g(y). Weighted by g(y) times anything that is the same if x and y change places, a pair counts as
        t(y) g(x) g(y), so that f is the true one with weighted probability t(f) / (t(f) + t(o)). The factor
        1 / (g(x) + g(y)) makes the weights bounded. So with the weights, a calibrated curve means reports that are
        right as continuations; without, as guesses at which token was in the text. A fixed offset ln g(o)/g(f) would
        not do: given a noisy report, the generator's ratio says much about t's, and the two cancel.

    Examples
    --------
    >>> from shannon_game import models
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> data = models.favoured_outcomes(comparison_study())
    >>> bool((data.report > 0.5).all())
    True
    """
    study = COMPARISON.read(study) if as_paid else read_kind(study)
    rows = informative_responses(study)
    report = study["report"].values[rows].astype(float)
    is_tie = report == 0.5
    kept, p = rows[~is_tie], report[~is_tie]
    if kept.size == 0:
        problem = "has no report that favours one of two tokens"
        raise InputError(problem, source=f"study {study.attrs.get('name')!r}", field="report")
    right, weight = p > 0.5, np.ones(kept.size)
    if as_paid:
        position, candidate = response_positions(study)[kept], study["response_candidate"].values[kept]
        target, drawn = generator_logprobs(study)
        weight = 1 / (1 + np.exp((drawn[position, candidate] - target[position]).astype(float)))
    people, person = np.unique(study["participant"].values[kept].astype(str), return_inverse=True)
    return OutcomeData(
        participant=people,
        row=kept,
        person=person.astype(np.intp),
        report=np.where(right, p, 1 - p),
        outcome=right.astype(np.intp),
        weight=weight,
        n_ties=int(is_tie.sum()),
    )


def informative_responses(study: xr.Dataset) -> IntArray:
    """Responses that somebody gave on two different tokens, one of them the true one."""
    study = read_kind(study)
    asked = ~study["automatic"].values & (response_references(study) == TARGET_POSITION)
    if "response_candidate" in study:
        asked &= ~same_token(study)[response_positions(study), study["response_candidate"].values]
    rows = np.flatnonzero(asked)
    if rows.size == 0:
        raise InputError("has no answer on two different tokens", source=f"study {study.attrs.get('name')!r}")
    return rows.astype(np.intp)
