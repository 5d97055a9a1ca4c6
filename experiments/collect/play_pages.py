"""The pages of the game itself: a question, its answer, the feedback."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Transaction
from starlette.responses import JSONResponse, Response

from shannon_game.experiments.collect.games.comparison import report_of
from shannon_game.experiments.collect.games.protocol import CUT, FormError
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.games.vocabulary import read_vocabulary
from shannon_game.experiments.collect.pages import Handler, posted
from shannon_game.experiments.collect.play import (
    Asked,
    given_answer,
    open_assignment,
    show,
    skip_open,
    submit,
)
from shannon_game.experiments.collect.sessions import Refusal, session_of
from shannon_game.experiments.collect.tables import OPEN, Answer, Assignment, Question, Session
from shannon_game.experiments.collect.visit import Visit, page, redirect

_PLAYING = ("training", "play")


def play(visit: Visit) -> Response:
    """Show the question that waits for an answer, the same one after every reload."""
    if visit.collection.chooser is not None:
        visit.collection.chooser.look()
    with visit.collection.database.write() as transaction:
        session = session_of(transaction, visit.collection, visit.token, lock=True)
        if session is None:
            return redirect("/")
        asked = show(transaction, visit.collection, session) if session.state in _PLAYING else None
    # rendered after the commit: nobody waits for a page
    return redirect(session) if asked is None else question_page(visit, session, asked)


def answer(visit: Visit) -> Response:
    """Store an answer, then show its feedback or the next question."""
    token, collection = visit.checked(), visit.collection
    problem: FormError | None = None
    with collection.database.write() as transaction:
        session = session_of(transaction, visit.collection, token, lock=True)
        if session is None:
            return redirect("/")
        asked: Asked | None
        try:
            asked = submit(transaction, collection, session, visit.form)
        except FormError as wrong:
            problem, asked = wrong, open_assignment(transaction, collection, session)
    if asked is None or session.state == "screened":
        return redirect(session)
    if problem is not None:
        return question_page(visit, session, asked, problem)
    if asked.state == OPEN or asked.card.attention or not collection.of(session).shows(asked.card.game):
        return redirect("/play")
    return redirect(f"/feedback?order={asked.order}")


def feedback(visit: Visit) -> Response:
    """Show the right token and the score of an answer that was given; the last one unless another is asked for."""
    collection = visit.collection
    with collection.database.read() as transaction:
        session = session_of(transaction, visit.collection, visit.token)
        if session is None:
            return redirect("/play")
        given = given_answer(transaction, collection, session, visit.request.query_params.get("order"))
        shows = given is not None and collection.of(session).shows(given.asked.card.game)
        rounds = collection.of(session).block(session.game).training_rounds
        over = given is not None and given.asked.training and session.n_trained >= rounds
        practice = _practised(transaction, session) if over and session.game == "comparison" else None
    if given is None or given.automatic or given.asked.card.attention or not shows:
        return redirect("/play")
    asked, game = given.asked, GAMES[given.asked.card.game]
    content = asked.card.content
    return page(
        visit,
        "feedback.html",
        session=session,
        game=asked.card.game,
        feedback=game.feedback(content, asked.layout, asked.steps, given.value),
        context=game.view(content, asked.layout, asked.steps)["context"],
        cut=content.get(CUT, False),
        training=asked.training,
        over=over,
        practice=practice,
        **_progress(visit, session),
    )


def _practised(transaction: Transaction, session: Session) -> tuple[int, int, int]:
    """Practice rounds in which the right token got more than half, all of them, and what it got on average, percent."""
    query = select(Answer.value).join(Assignment).join(Question).where(Question.game == session.game)
    values = transaction.scalars(query.where(Assignment.session_id == session.id, Assignment.training)).all()
    reports = [report_of(value) for value in values]
    return sum(report > 0.5 for report in reports), len(reports), round(100 * sum(reports) / len(reports))


def change_document(visit: Visit) -> Response:
    """Leave a text that is gone through word by word for another one; nobody leaves practice, which has to be right."""

    def done(transaction: Transaction, session: Session) -> None:
        if not visit.collection.of(session).goes_on(session.game):
            raise Refusal(404, "error.not_found")
        skip_open(transaction, visit.collection, session)

    return posted(visit, "play", done)


def question_page(
    visit: Visit, session: Session, asked: Asked, problem: FormError | None = None, **more: Any
) -> Response:
    """Render a question."""
    return page(
        visit,
        f"play_{session.game}.html",
        session=session,
        status=200 if problem is None else 422,
        view=GAMES[session.game].view(asked.card.content, asked.layout, asked.steps),
        cut=asked.card.content.get(CUT, False),
        order=asked.order,
        step=len(asked.steps),
        training=asked.training,
        given=visit.form,
        problem=problem,
        may_change_document=not asked.training and visit.collection.of(session).goes_on(session.game),
        **_progress(visit, session),
        **more,
    )


def _progress(visit: Visit, session: Session) -> dict[str, Any]:
    training, block = session.state == "training", visit.collection.of(session).block(session.game)
    return {
        "n_done": session.n_trained if training else session.n_counted,
        "n_all": block.training_rounds if training else block.n_questions,
        "points": session.training_points if training else session.points,
    }


def is_token(visit: Visit) -> Response:
    """Say whether a text is one token of the vocabulary, at every key that somebody presses."""
    settings = visit.collection.settings
    if "top1" not in settings.game:
        raise Refusal(404, "error.not_found")
    found = visit.request.query_params.get("text", "") in read_vocabulary(settings.vocabulary).tokens
    # nothing of a person or a question: browsers may keep it
    return JSONResponse({"token": found}, headers={"cache-control": "private, max-age=3600"})


PLAY_PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/play", play),
    ("POST", "/play", answer),
    ("GET", "/feedback", feedback),
    ("GET", "/token", is_token),
    ("POST", "/change-document", change_document),
)
"""Method, address, handler."""
