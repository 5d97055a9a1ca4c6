"""The pages of the game itself: a question, its answer, the feedback."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Transaction
from starlette.responses import Response

from experiments.collect.assign import count_main
from experiments.collect.games.protocol import FormError
from experiments.collect.games.registry import game_named
from experiments.collect.pages import Handler
from experiments.collect.play import (
    assignment_at,
    last_answered,
    open_assignment,
    show,
    skip_open,
    submit,
    total_score,
)
from experiments.collect.sessions import Refusal, go_on, session_of
from experiments.collect.tables import OPEN, Answer, Assignment, Session
from experiments.collect.visit import Visit, page, redirect

__all__ = ["PLAY_PAGES"]

_PLAYING = ("training", "play")


def play(visit: Visit) -> Response:
    """Show the question that waits for an answer, the same one after every reload."""
    with visit.collection.database.write() as transaction:
        session = session_of(transaction, visit.token, lock=True)
        if session is None:
            return redirect("/")
        assignment = show(transaction, visit.collection, session) if session.state in _PLAYING else None
        if assignment is None:
            return redirect(session)
        shown = _question(visit, transaction, session, assignment)
    # rendered after the commit: nobody waits for a page
    return page(visit, **shown)


def answer(visit: Visit) -> Response:
    """Store an answer, then show its feedback or the next question."""
    token = visit.checked()
    with visit.collection.database.write() as transaction:
        session = session_of(transaction, token, lock=True)
        if session is None:
            return redirect("/")
        assignment: Assignment | None
        shown: dict[str, Any] = {}
        try:
            assignment = submit(transaction, visit.collection, session, visit.form)
        except FormError as problem:
            found = open_assignment(transaction, session)
            if found is None:
                return redirect(session)
            shown = _question(visit, transaction, session, found, problem)
            assignment = None
        else:
            is_step = assignment.state == OPEN
            if is_step or assignment.question.attention or not visit.collection.settings.feedback:
                return redirect("/play")
    return page(visit, **shown) if assignment is None else redirect(f"/feedback?order={assignment.order}")


def feedback(visit: Visit) -> Response:
    """Show the right token and the score of an answer that was given; the last one unless another is asked for."""
    with visit.collection.database.read() as transaction:
        session = session_of(transaction, visit.token)
        if session is None or not visit.collection.settings.feedback:
            return redirect("/play")
        asked = visit.query.get("order")
        found = last_answered(transaction, session) if asked is None else assignment_at(transaction, session, asked)
        given = None if found is None else _answer_of(transaction, found)
        if found is None or given is None or found.question.attention or given.automatic:
            return redirect("/play")
        game = game_named(session.game)
        shown = game.feedback(found.question.content, found.layout, found.steps, given.value)
        context = game.view(found.question.content, found.layout, found.steps)["context"]
        return page(
            visit,
            "feedback.html",
            session=session,
            feedback=shown,
            context=context,
            training=found.training,
            **_progress(visit, transaction, session),
        )


def skip_training(visit: Visit) -> Response:
    """Go on to the questions that count."""
    token = visit.checked()
    with visit.collection.database.write() as transaction:
        session = session_of(transaction, token, lock=True)
        if session is None:
            return redirect("/")
        if session.state == "training":
            skip_open(transaction, session)
            go_on(session, visit.collection)
        return redirect(session)


def change_document(visit: Visit) -> Response:
    """Leave a text that is gone through word by word for another one."""
    token = visit.checked()
    with visit.collection.database.write() as transaction:
        session = session_of(transaction, token, lock=True)
        if session is None:
            return redirect("/")
        if visit.collection.settings.order != "cumulative" or session.game == "comparison":
            raise Refusal(404, "error.not_found")
        if session.state in _PLAYING:
            skip_open(transaction, session)
        return redirect(session)


def _question(
    visit: Visit,
    transaction: Transaction,
    session: Session,
    assignment: Assignment,
    problem: FormError | None = None,
) -> dict[str, Any]:
    view = game_named(session.game).view(assignment.question.content, assignment.layout, assignment.steps)
    return {
        "template": f"play_{session.game}.html",
        "session": session,
        "status": 200 if problem is None else 422,
        "view": view,
        "order": assignment.order,
        "step": len(assignment.steps),
        "training": assignment.training,
        "given": visit.form,
        "problem": problem,
        "may_change_document": visit.collection.settings.order == "cumulative" and session.game != "comparison",
        **_progress(visit, transaction, session),
    }


def _answer_of(transaction: Transaction, assignment: Assignment) -> Answer | None:
    return transaction.scalar(select(Answer).where(Answer.assignment_id == assignment.id))


def _progress(visit: Visit, transaction: Transaction, session: Session) -> dict[str, Any]:
    training, settings = session.state == "training", visit.collection.settings
    return {
        "n_done": count_main(transaction, session, training=training),
        "n_all": settings.training_rounds if training else settings.n_questions,
        "points": total_score(transaction, session, training=training),
    }


PLAY_PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/play", play),
    ("POST", "/play", answer),
    ("GET", "/feedback", feedback),
    ("POST", "/skip-training", skip_training),
    ("POST", "/change-document", change_document),
)
"""Method, address, handler."""
