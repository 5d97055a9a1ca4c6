"""What the experimenter watches while people play: flags of sessions that look wrong, and a running estimate.

Everything is computed from the answers in the database, and kept for some seconds: a page that is loaded again and
again costs the players nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session as Transaction

from shannon_game.estimators.comparison import PerplexityEstimate, estimate_perplexity
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.collect.collection import Collection
from shannon_game.experiments.collect.deck import Deck
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.tables import REJECTED, Answer, Assignment, Question, Session
from shannon_game.experiments.studies.collected.answers import collected_answers
from shannon_game.experiments.studies.collected.comparison import collected_comparisons
from shannon_game.experiments.studies.collected.settings import CollectedSettings

_KEPT_SECONDS = 10.0

FEWEST = 10
"""Answers of a session from which on it is judged."""
FASTEST_MS = 1000
"""Of the median answer; who is faster has not read."""
ONE_KEY = 0.9
"""Share of one and the same answer."""
FAR = 3.5
"""Distance from the other sessions' median, in robust standard deviations."""
_FEWEST_OTHERS = 5
# of a normal distribution: standard deviation over median absolute deviation
_OF_MAD = 1.4826

_KEPT: WeakKeyDictionary[Collection, Look] = WeakKeyDictionary()


@dataclass(frozen=True)
class Look:
    """What is shown at one time."""

    at: float
    flags: Mapping[int, Sequence[str]]
    estimate: PerplexityEstimate | None


def look(collection: Collection, *, now: float | None = None) -> Look:
    """Compute what is shown, or return what was computed some seconds ago."""
    now = time.time() if now is None else now
    kept = _KEPT.get(collection)
    if kept is not None and 0 <= now - kept.at < _KEPT_SECONDS:
        return kept
    query = (
        select(Session.id, Question.game, Assignment.question_id, Assignment.layout, Answer.value, Answer.automatic)
        .add_columns(Answer.correct, Answer.score, Answer.server_ms)
        .join(Assignment, Assignment.session_id == Session.id)
        .join(Answer, Answer.assignment_id == Assignment.id)
        .join(Question, Question.id == Assignment.question_id)
        .where(
            Session.study_id == collection.study_id,
            Session.pilot == collection.settings.pilot,
            Session.state.not_in(REJECTED),
            Assignment.training.is_(False),
        )
    )
    with collection.database.read() as transaction:
        rows = transaction.execute(query).all()
        found = Look(now, session_flags(rows, collection.deck), running_estimate(transaction, collection))
    _KEPT[collection] = found
    return found


def session_flags(rows: Sequence[Any], deck: Deck) -> dict[int, list[str]]:
    """Say which sessions look wrong, and why."""
    flags: dict[int, list[str]] = {}
    by_session: dict[tuple[str, int], list[Any]] = {}
    for row in rows:
        if deck.cards[row.question_id].attention:
            if row.correct is False and "failed_check" not in flags.setdefault(row.id, []):
                flags[row.id].append("failed_check")
        elif not row.automatic:
            by_session.setdefault((row.game, row.id), []).append(row)
    means: dict[str, dict[int, float]] = {}
    for (game, session_id), answers in by_session.items():
        if len(answers) < FEWEST:
            continue
        own = flags.setdefault(session_id, [])
        if np.median([row.server_ms for row in answers]) < FASTEST_MS:
            own.append("too_fast")
        given = Counter(GAMES[game].given(row.value).casefold() for row in answers)
        if max(given.values()) >= ONE_KEY * len(answers):
            own.append("one_key")
        scores = [_score(row) for row in answers]
        means.setdefault(game, {})[session_id] = float(np.mean(scores))
    for of_game in means.values():
        values = np.array(list(of_game.values()))
        centre = np.median(values)
        spread = _OF_MAD * np.median(np.abs(values - centre))
        if values.size > _FEWEST_OTHERS and spread > 0:
            for session_id, value in of_game.items():
                if abs(value - centre) > FAR * spread:
                    flags[session_id].append("outside")
    return {session_id: own for session_id, own in flags.items() if own}


def running_estimate(transaction: Transaction, collection: Collection) -> PerplexityEstimate | None:
    """Estimate people's loss as ``+exp=perplexity`` does, with 90% intervals; None before there are comparisons."""
    settings = CollectedSettings(collection=str(collection.study_id), pilot=collection.settings.pilot)
    try:
        study = collected_comparisons(collected_answers(transaction, settings), None)
        return estimate_perplexity(study, HUMAN, reference="asked")
    except InputError:
        return None


def _score(row: Any) -> float:
    """Points; where a game has none, whether the answer is right."""
    return float(row.score) if row.score is not None else float(bool(row.correct))
