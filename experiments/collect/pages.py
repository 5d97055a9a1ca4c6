"""The pages around the game: the choice, consent, questions before and after, instructions, thanks, leaderboard."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from sqlalchemy import desc, func, inspect, select
from sqlalchemy.orm import Session as Transaction
from starlette.responses import PlainTextResponse, Response

from shannon_game.experiments.collect.collection import Collection
from shannon_game.experiments.collect.deletion import count_gone, forget_visit
from shannon_game.experiments.collect.export import points_by_game
from shannon_game.experiments.collect.games.protocol import FormError
from shannon_game.experiments.collect.security import new_token
from shannon_game.experiments.collect.sessions import (
    ENDED,
    PLACES,
    Refusal,
    cookie_session,
    enter,
    go_on,
    is_of,
    recruiter_id_of,
    session_of,
    store_survey,
)
from shannon_game.experiments.collect.surveys import Survey, read_answers
from shannon_game.experiments.collect.tables import COUNTED, Answer, Assignment, Player, Question, ServerValue, Session
from shannon_game.experiments.collect.visit import Visit, page, redirect, set_cookie

__all__ = ["PAGES", "Handler"]

Handler = Callable[[Visit], Response]

_LONGEST_PARAMETER = 128
_LONGEST_NAME = 30


def healthz(visit: Visit) -> Response:
    """Say that the server works and its database takes what is written: a full disk is no health."""
    with visit.collection.database.write() as transaction:
        transaction.merge(ServerValue(name="health", value=str(time.time())))
    return PlainTextResponse("ok\n")


def choose(visit: Visit) -> Response:
    """Offer the games; somebody who has begun one is offered to go on, and its browser's next person to begin."""
    given, anew = _recruiter(visit, visit.query), bool(visit.query.get("new"))
    with visit.collection.database.read() as transaction:
        recruiter_id = recruiter_id_of(visit.collection, given) if given else None
        session = cookie_session(transaction, visit.token)
        mine = session is not None and is_of(session, recruiter_id, somebody_else=anew)
        played = list(_played(transaction, visit.collection, session.player)) if session is not None and mine else []
        running = session if mine and session in played and session.state not in ENDED else None
        return page(
            visit,
            "choose.html",
            recruiter=given,
            place=PLACES[running.state] if running is not None else None,
            played={each.game for each in played},
            anew=anew,
            # who came by a recruiter's link is known by its id
            may_be_another=bool(played) and not recruiter_id and not visit.collection.settings.recruiter.required,
        )


def start(visit: Visit) -> Response:
    """Begin a game, under a new secret: one that was known before the consent is worth nothing."""
    visit.checked()
    collection, token = visit.collection, new_token()
    given = _recruiter(visit, visit.form)
    wanted, anew = visit.form.get("language", ""), bool(visit.form.get("new"))
    with collection.database.write() as transaction:
        running = cookie_session(transaction, visit.token)
        if running is not None and not is_of(running, recruiter_id_of(collection, given), somebody_else=anew):
            running = None
        if running is not None and running.study_id == collection.study_id and running.state not in ENDED:
            return redirect(running)
        try:
            session = enter(
                transaction,
                collection,
                game=visit.form.get("game", ""),
                token=token,
                language=wanted if wanted in collection.strings.languages else visit.language,
                screen=visit.form.get("screen", ""),
                recruiter=given,
                known=None if running is None else running.player,
            )
        except Refusal as refusal:
            url = collection.settings.recruiter.full_url
            if url is None or refusal.key not in ("error.full", "error.closed"):
                raise
            return page(visit, "message.html", status=refusal.status, key=refusal.key, back=filled(url, given))
        response = redirect(session)
    set_cookie(response, visit, token)
    return response


def _recruiter(visit: Visit, sent: Mapping[str, str]) -> dict[str, str]:
    """What the recruiter says of somebody, in an address or a form."""
    names = visit.collection.settings.recruiter.parameters
    return {name: sent[name][:_LONGEST_PARAMETER] for name in names if _is_plain(sent.get(name, ""))}


def _played(transaction: Transaction, collection: Collection, player: Player) -> Sequence[Session]:
    query = select(Session).where(Session.player_id == player.id, Session.study_id == collection.study_id)
    return transaction.scalars(query).all()


def consent(visit: Visit) -> Response:
    """Show what people agree to."""
    with visit.collection.database.read() as transaction:
        session = _at(transaction, visit, "consent")
        if isinstance(session, Response):
            return session
        return page(visit, "consent.html", session=session, paragraphs=visit.collection.consent[session.language])


def consent_given(visit: Visit) -> Response:
    """Note that somebody agrees; of somebody who does not, nothing stays but the number of those who did not."""

    def done(transaction: Transaction, session: Session) -> None:
        if visit.form.get("agree") == "yes":
            session.consented_at = time.time()
            go_on(session, visit.collection)
        elif visit.form.get("agree") == "no":
            count_gone(transaction, "declined", session.study_id)
            forget_visit(transaction, session)
        else:
            raise Refusal(400, "error.no_choice")

    with visit.collection.database.read() as transaction:
        session = session_of(transaction, visit.collection, visit.token)
        recruiter = {} if session is None else session.player.recruiter
    response, url = _post(visit, "consent", done), visit.collection.settings.recruiter.declined_url
    if url is None or response.headers["location"] != "/declined":
        return response
    # nothing of the person is there any more by which another page could fill in the address
    return page(visit, "message.html", key="consent.declined", back=filled(url, recruiter))


def survey_page(moment: str) -> Handler:
    """Make the page with the questions before or after the game."""

    def survey(visit: Visit) -> Response:
        with visit.collection.database.read() as transaction:
            session = _at(transaction, visit, moment)
            if isinstance(session, Response):
                return session
            return _survey(visit, session, moment)

    return survey


def survey_given(moment: str) -> Handler:
    """Make what stores the answers to these questions."""

    def given(visit: Visit) -> Response:
        def done(transaction: Transaction, session: Session) -> None:
            answers = read_answers(_questions(visit, moment), visit.form)
            store_survey(transaction, session, moment=moment, answers=answers)
            go_on(session, visit.collection)

        try:
            return _post(visit, moment, done)
        except FormError as problem:
            with visit.collection.database.read() as transaction:
                session = _at(transaction, visit, moment)
                return session if isinstance(session, Response) else _survey(visit, session, moment, problem)

    return given


def instructions(visit: Visit) -> Response:
    """Show the rules of the game."""
    with visit.collection.database.read() as transaction:
        session = _at(transaction, visit, "instructions")
        if isinstance(session, Response):
            return session
        block = visit.collection.settings.block(session.game)
        scale = visit.collection.settings.scale if session.game == "comparison" else None
        return page(visit, "instructions.html", session=session, block=block, scale=scale)


def instructions_read(visit: Visit) -> Response:
    """Go on from the rules to the game."""
    return _post(visit, "instructions", lambda _, session: go_on(session, visit.collection))


def thanks(visit: Visit) -> Response:
    """Show the completion code, the points, and the way back to the recruiter."""
    with visit.collection.database.read() as transaction:
        session = _at(transaction, visit, "done")
        if isinstance(session, Response):
            return session
        points = points_by_game(transaction, session)
        url, known = visit.collection.settings.recruiter.return_url, session.player.recruiter
        back = url and filled(url, {**known, "code": session.completion_code or ""})
        name = session.player.display_name
        asked = _asked(transaction, visit, session)
        return page(visit, "thanks.html", session=session, return_url=back, points=points, name=name, asked=asked)


def _asked(transaction: Transaction, visit: Visit, session: Session) -> tuple[int, int]:
    """How many questions that count a visit had, and how many were announced."""
    settings = visit.collection.settings
    query = select(func.count(Answer.id)).select_from(Answer).join(Assignment).join(Question)
    n_asked = transaction.scalar(query.where(Assignment.session_id == session.id, COUNTED)) or 0
    return n_asked, sum(block.n_questions for block in settings.blocks or (settings.block(session.game),))


def filled(url: str, known: Mapping[str, str]) -> str:
    """Fill in what the recruiter wants to hear: {code}, and its own parameters by name."""
    for name, value in known.items():
        url = url.replace("{" + name + "}", quote(str(value), safe=""))
    return url


def name_given(visit: Visit) -> Response:
    """Put a name on the leaderboard."""
    shown = " ".join(visit.form.get("name", "").split())
    if not shown or len(shown) > _LONGEST_NAME or any(unicodedata.category(sign)[0] == "C" for sign in shown):
        raise Refusal(400, "error.name")

    def done(_: Transaction, session: Session) -> None:
        session.player.display_name = shown

    _post(visit, "done", done)
    return redirect("/leaderboard")


def leaderboard(visit: Visit) -> Response:
    """Show the points of those who gave a name."""
    if not visit.collection.settings.leaderboard:
        raise Refusal(404, "error.not_found")
    points = func.sum(Answer.score).label("points")
    query = (
        select(Question.game, Player.display_name, points)
        .select_from(Session)
        .join(Player, Player.id == Session.player_id)
        .join(Assignment, Assignment.session_id == Session.id)
        .join(Question, Question.id == Assignment.question_id)
        .join(Answer)
        .where(Session.study_id == visit.collection.study_id, Session.state == "done", COUNTED)
        .where(Player.display_name.is_not(None))
        .group_by(Session.id, Question.game, Player.display_name)
        .having(points.is_not(None))
        .order_by(Question.game, desc(points))
    )
    with visit.collection.database.read() as transaction:
        return page(visit, "leaderboard.html", rows=transaction.execute(query).all())


def declined(visit: Visit) -> Response:
    """Say goodbye to somebody who does not take part."""
    return page(visit, "message.html", key="consent.declined")


def _at(transaction: Transaction, visit: Visit, state: str) -> Session | Response:
    """Return the session if it is in this part, else the way to where it is."""
    session = session_of(transaction, visit.collection, visit.token)
    if session is None:
        return redirect("/")
    return session if session.state == state else redirect(session)


def _post(visit: Visit, state: str, done: Callable[[Transaction, Session], None]) -> Response:
    """Do something for a session that is in this part; one that is further on (a form sent twice) is sent there."""
    token = visit.checked()
    with visit.collection.database.write() as transaction:
        session = session_of(transaction, visit.collection, token, lock=True)
        if session is None:
            return redirect("/")
        if session.state == state:
            session.active_at = time.time()
            done(transaction, session)
        return redirect("/declined" if inspect(session).deleted else session)


def _survey(visit: Visit, session: Session, moment: str, problem: FormError | None = None) -> Response:
    return page(
        visit,
        "survey.html",
        session=session,
        status=200 if problem is None else 422,
        moment=moment,
        questions=_questions(visit, moment),
        given=visit.form,
        problem=problem,
    )


def _questions(visit: Visit, moment: str) -> Survey:
    return visit.collection.before if moment == "before" else visit.collection.after


def _is_plain(text: str) -> bool:
    return bool(text) and text.isprintable()


PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", choose),
    ("POST", "/start", start),
    ("GET", "/consent", consent),
    ("POST", "/consent", consent_given),
    ("GET", "/declined", declined),
    ("GET", "/before", survey_page("before")),
    ("POST", "/before", survey_given("before")),
    ("GET", "/instructions", instructions),
    ("POST", "/instructions", instructions_read),
    ("GET", "/after", survey_page("after")),
    ("POST", "/after", survey_given("after")),
    ("GET", "/thanks", thanks),
    ("POST", "/name", name_given),
    ("GET", "/leaderboard", leaderboard),
    ("GET", "/healthz", healthz),
)
"""Method, address, handler."""
