"""The pages around the game: the choice, consent, questions before and after, instructions, thanks, leaderboard."""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from sqlalchemy import desc, func, inspect, select
from sqlalchemy.orm import Session as Transaction
from starlette.responses import PlainTextResponse, Response

from shannon_game.experiments.collect.deletion import forget_recruiters
from shannon_game.experiments.collect.export import points_by_game
from shannon_game.experiments.collect.games.protocol import FormError
from shannon_game.experiments.collect.security import SUBMITS, new_token
from shannon_game.experiments.collect.sessions import (
    ENDED,
    Refusal,
    cookie_session,
    enter,
    go_on,
    is_of,
    recruiter_id_of,
    screen_out,
    session_of,
    visits_of,
)
from shannon_game.experiments.collect.surveys import Survey, read_answers, right_answers, rules_questions
from shannon_game.experiments.collect.tables import (
    COUNTED,
    Answer,
    Assignment,
    Player,
    Question,
    ServerValue,
    Session,
    SurveyAnswer,
)
from shannon_game.experiments.collect.visit import PERSONAL, Visit, page, redirect, refuse, set_cookie

Handler = Callable[[Visit], Response]

_LONGEST_PARAMETER = 128
_LONGEST_NAME = 30


def healthz(visit: Visit) -> Response:
    """Say that the server works and its database takes what is written: a full disk is no health."""
    with visit.collection.database.write() as transaction:
        transaction.merge(ServerValue(name="health", value=str(time.time())))
        forget_recruiters(transaction, visit.collection.study_id, visit.collection.settings.retention_days)
    return PlainTextResponse("ok\n")


def choose(visit: Visit) -> Response:
    """Offer the games; to go on to whom has begun one, in this browser or by a personal link, else to begin anew."""
    query = visit.request.query_params
    given, anew, link = _recruiter(visit, query), bool(query.get("new")), query.get(PERSONAL)
    with visit.collection.database.read() as transaction:
        recruiter_id = recruiter_id_of(visit.collection, given) if given else None
        session = _linked(transaction, visit, link) if link else cookie_session(transaction, visit.token)
        mine = session is not None and (bool(link) or is_of(session, recruiter_id, somebody_else=anew))
        played = list(visits_of(transaction, visit.collection, session.player)) if session is not None and mine else []
        running = session if mine and session in played and (link or session.state not in ENDED) else None
        if not played:
            recruiter_id_of(visit.collection, given)
        return page(
            visit,
            "choose.html",
            sent={PERSONAL: link} if link else given,
            running=running,
            played={each.game: each.state for each in played},
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
        if link := visit.form.get(PERSONAL):
            response = redirect(_linked(transaction, visit, link))
            set_cookie(response, visit, link)
            return response
        running = cookie_session(transaction, visit.token)
        if running is not None and not is_of(running, recruiter_id_of(collection, given), somebody_else=anew):
            running = None
        if running is not None and running.study_id == collection.study_id and running.state not in ENDED:
            # a submission that was reopened has other parameters
            running.player.recruiter = running.player.recruiter | given
            return redirect(running)
        try:
            session = enter(
                transaction,
                collection,
                game=visit.form.get("game", ""),
                token=token,
                language=wanted if wanted in collection.strings.languages else visit.language,
                **{name: visit.form.get(name, "") for name in ("screen", "pointer")},
                recruiter=given,
                known=running,
            )
        except Refusal as refusal:
            url = collection.settings.recruiter.full_url
            if url is None or refusal.key not in ("error.full", "error.closed"):
                raise
            return refuse(visit, refusal, back=filled(url, given))
        response = redirect(session)
    set_cookie(response, visit, token)
    return response


def _linked(transaction: Transaction, visit: Visit, link: str) -> Session:
    """Find the visit of a personal link, which holds the secret of the cookie."""
    session = session_of(transaction, visit.collection, link)
    if session is None:
        raise Refusal(404, "error.not_found")
    return session


def _recruiter(visit: Visit, sent: Mapping[str, str]) -> dict[str, str]:
    """What the recruiter says of somebody, in an address or a form."""
    names = visit.collection.settings.recruiter.parameters
    return {name: sent[name][:_LONGEST_PARAMETER] for name in names if sent.get(name) and sent[name].isprintable()}


def survey_page(moment: str) -> Handler:
    """Make the page with the questions before or after the game."""
    return lambda visit: shown_at(visit, moment, lambda *at: _survey(visit, moment, *at))


def survey_given(moment: str) -> Handler:
    """Make what stores the answers to these questions."""

    def given(visit: Visit) -> Response:
        def done(transaction: Transaction, session: Session) -> None:
            transaction.add_all(
                SurveyAnswer(session_id=session.id, moment=moment, question=name, value=value, answered_at=time.time())
                for name, value in read_answers(survey_of(visit, moment), visit.form).items()
            )
            go_on(session, visit.collection)

        try:
            return posted(visit, moment, done)
        except FormError as wrong:
            problem = wrong
        return shown_at(visit, moment, lambda *at: _survey(visit, moment, *at, problem=problem))

    return given


def instructions(visit: Visit) -> Response:
    """Show the rules of the game, and ask about them."""
    return shown_at(visit, "instructions", lambda _, session: instructions_page(visit, session))


def instructions_read(visit: Visit) -> Response:
    """Go on from the rules to the game, once the questions on them are answered right; the tries are counted."""
    wrong: list[int] = []

    def done(transaction: Transaction, session: Session) -> None:
        if visit.collection.settings.comprehension:
            right = enumerate(right_answers(session.game).items())
            wrong.extend(at for at, (name, number) in right if visit.form.get(name) != number)
            tries = session.rules_tries.get(session.game, 0) + 1
            session.rules_tries = session.rules_tries | {session.game: tries}
        if not wrong:
            go_on(session, visit.collection)
        elif _tries_left(visit, session) == 0:
            screen_out(transaction, session)

    response = posted(visit, "instructions", done)
    if not wrong:
        return response
    return shown_at(visit, "instructions", lambda _, session: instructions_page(visit, session, wrong))


def _tries_left(visit: Visit, session: Session) -> int | None:
    """Tries at the questions on the rules that somebody has left; later parts of a visit set no limit."""
    most = visit.collection.settings.comprehension_tries
    return None if most is None or session.block else most - session.rules_tries.get(session.game, 0)


def instructions_page(visit: Visit, session: Session, wrong: Sequence[int] = (), **more: Any) -> Response:
    """Render the rules of a game."""
    settings = visit.collection.of(session)
    asked = rules_questions(visit.collection.strings, session.language, session.game) if settings.comprehension else []
    return page(
        visit,
        "instructions.html",
        session=session,
        status=422 if wrong else 200,
        settings=settings,
        block=settings.block(session.game),
        scale=settings.scale if session.game == "comparison" else None,
        asked=asked,
        tries_left=_tries_left(visit, session),
        given=visit.form,
        wrong=wrong,
        **more,
    )


def thanks(visit: Visit) -> Response:
    """Show the completion code, the points, and the way back to the recruiter."""
    recruiter = visit.collection.settings.recruiter

    def shown(transaction: Transaction, session: Session) -> Response:
        known = session.player.recruiter
        back = recruiter.return_url and filled(recruiter.return_url, {**known, "code": session.completion_code or ""})
        return page(
            visit,
            "thanks.html",
            session=session,
            return_url=back,
            points=points_by_game(transaction, session),
            name=session.player.display_name,
            fewer=_fewer(transaction, visit, session),
            submit=_submit(recruiter.platform, known),
        )

    return shown_at(visit, "done", shown)


def _submit(platform: str, known: Mapping[str, str]) -> tuple[str, str] | None:
    """Where the last page sends a form so that the work counts as done, and for which assignment."""
    sites, assignment = SUBMITS.get(platform, ()), known.get("assignmentId")
    if not (sites and assignment):
        return None
    site = known.get("turkSubmitTo", "").rstrip("/")
    return f"{site if site in sites else sites[0]}/mturk/externalSubmit", assignment


def _fewer(transaction: Transaction, visit: Visit, session: Session) -> tuple[str, int, int] | None:
    """Why a visit had fewer questions than were announced, how many, and of how many; nothing where it had them all."""
    query = select(func.count(Answer.id)).select_from(Answer).join(Assignment).join(Question)
    n_asked = transaction.scalar(query.where(Assignment.session_id == session.id, COUNTED)) or 0
    if session.n_announced is None or n_asked >= session.n_announced:
        return None
    collection, took = visit.collection, (session.ended_at or session.active_at) - (session.started_at or math.inf)
    late = collection.settings.session_minutes is not None and took > 60 * collection.settings.session_minutes
    enough = collection.chooser is not None and collection.chooser.enough
    return f"thanks.fewer{'_time' if late else '_enough' if enough else ''}", n_asked, session.n_announced


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

    posted(visit, "done", done)
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
        session = session_of(transaction, visit.collection, visit.token)
        return page(visit, "leaderboard.html", session=session, rows=transaction.execute(query).all())


def shown_at(visit: Visit, state: str, shown: Callable[[Transaction, Session], Response]) -> Response:
    """Show something to a session that is in this part; lead any other one to where it is."""
    with visit.collection.database.read() as transaction:
        session = session_of(transaction, visit.collection, visit.token)
        if session is None:
            return redirect("/")
        return shown(transaction, session) if session.state == state else redirect(session)


def posted(visit: Visit, state: str, done: Callable[[Transaction, Session], None]) -> Response:
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


def _survey(
    visit: Visit, moment: str, transaction: Transaction, session: Session, *, problem: FormError | None = None
) -> Response:
    return page(
        visit,
        "survey.html",
        session=session,
        status=200 if problem is None else 422,
        moment=moment,
        questions=survey_of(visit, moment),
        fewer=_fewer(transaction, visit, session) if moment == "after" else None,
        given=visit.form,
        problem=problem,
    )


def survey_of(visit: Visit, moment: str) -> Survey:
    """Questions before or after the game."""
    return visit.collection.before if moment == "before" else visit.collection.after


PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", choose),
    ("POST", "/start", start),
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
