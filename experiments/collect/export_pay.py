"""What people are to be paid: a row per session, with the recruiter's id, which no other export has."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sqlalchemy import func, select
from sqlalchemy.orm import Session as Transaction

from shannon_game.experiments.collect.settings import PaySettings
from shannon_game.experiments.collect.tables import Answer, Assignment, Player, Question, Session

__all__ = ["PAY_COLUMNS", "bonus", "pay_table"]

PAY_COLUMNS = (
    *("recruiter_id", "participant", "game", "state", "completion_code", "n_answers", "n_failed_checks"),
    *("score_points", "base", "bonus", "total", "currency"),
)
"""Columns of the table; amounts in units of the currency, rounded to cents."""


def bonus(points: float, pay: PaySettings) -> float:
    """Bonus of a score: nothing below 0, no more than the most.

    Examples
    --------
    >>> pay = PaySettings(bonus_per_1000_points=2.0, most=5.0)
    >>> bonus(1500.0, pay), bonus(-80.0, pay), bonus(9000.0, pay)
    (3.0, 0.0, 5.0)
    """
    earned = max(points, 0.0) / 1000 * pay.bonus_per_1000_points
    return round(earned if pay.most is None else min(earned, pay.most), 2)


def pay_table(transaction: Transaction, study_id: int, pay: PaySettings) -> pd.DataFrame:
    """Say what every session earned: the base where it is complete, and the bonus of its score."""
    counted = Assignment.training.is_(False) & Question.attention.is_(False)
    query = (
        select(
            Session,
            Player,
            func.count(Answer.id).filter(counted),
            func.count(Answer.id).filter(Question.attention & Answer.correct.is_(False)),
            func.sum(Answer.score).filter(counted),
        )
        .join(Player, Player.id == Session.player_id)
        .outerjoin(Assignment, Assignment.session_id == Session.id)
        .outerjoin(Question, Question.id == Assignment.question_id)
        .outerjoin(Answer, Answer.assignment_id == Assignment.id)
        .where(Session.study_id == study_id)
        .group_by(Session.id, Player.id)
        .order_by(Session.id)
    )
    rows: list[dict[str, Any]] = []
    for session, player, n_answers, n_failed, points in transaction.execute(query):
        score, left = float(points or 0.0), session.state in ("declined", "withdrawn")
        base = pay.base if session.state == "done" else 0.0
        extra = 0.0 if left else bonus(score, pay)
        rows.append(
            {
                "recruiter_id": player.recruiter_id,
                "participant": player.pseudonym,
                "game": session.game,
                "state": session.state,
                "completion_code": session.completion_code,
                "n_answers": n_answers,
                "n_failed_checks": n_failed,
                "score_points": round(score, 1),
                "base": base,
                "bonus": extra,
                "total": round(base + extra, 2),
                "currency": pay.currency,
            }
        )
    return pd.DataFrame(rows, columns=list(PAY_COLUMNS))
