"""Attacks on a collection, one a row: what is sent, what has to come back, and that nothing changed."""

from __future__ import annotations

import asyncio
import html
import logging
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from itsdangerous import URLSafeTimedSerializer
from markupsafe import escape
from sqlalchemy import func, select
from starlette.testclient import TestClient

import shannon_game.experiments.collect.admin_pages as admin
import shannon_game.experiments.collect.strings as strings
import shannon_game.experiments.collect.visit as visit
from shannon_game.experiments.collect.database import Database, open_database
from shannon_game.experiments.collect.deletion import forget
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.export import chosen_study, write_exports
from shannon_game.experiments.collect.games.comparison import Comparison
from shannon_game.experiments.collect.security import ADMIN_COOKIE, COOKIE, Attempts, csrf_token, read_cookie, signed
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.sessions import token_hash
from shannon_game.experiments.collect.settings import CollectSettings, RecruiterSettings
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.collect.tables import Answer, Assignment, Player, Question, Session

PASSWORD = "correct horse battery"
RETURN = "https://recruiter.example/done?cc={code}"
FORM = {"content-type": "application/x-www-form-urlencoded"}


class Visitor:
    """Somebody with a client that follows no redirect and lets no cookie go."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.client = TestClient(site.app, raise_server_exceptions=False, follow_redirects=False)

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, **more)

    def post(self, path: str, **fields: str) -> Any:
        return self.client.post(path, data={"csrf": self.csrf(), **fields})

    def raw(self, body: bytes, path: str = "/play", **headers: str) -> Any:
        return self.client.post(path, content=body, headers=FORM | headers)

    @property
    def token(self) -> str:
        return read_cookie(self.site.key, COOKIE, self.client.cookies.get(COOKIE)) or ""

    def csrf(self) -> str:
        return csrf_token(self.site.key, self.token)

    def begin(self, game: str = "comparison", **recruiter: str) -> Visitor:
        self.get("/")
        self.post("/start", game=game, **recruiter)
        self.post("/consent", agree="yes")
        self.post("/instructions", **right_answers(game))
        self.page = self.get("/play")
        return self

    def field(self, name: str) -> str:
        return re.search(rf'name="{name}" value="([^"]*)"', self.page.text)[1]  # type: ignore[index]

    def answer(self, **fields: str) -> Any:
        return self.post("/play", **{"order": self.field("order"), "step": "0", **fields})

    def finish(self, **answer: str) -> Visitor:
        while self.page.status_code == 200:
            check = instruction(self.page)
            self.answer(**(dict.fromkeys(answer, check) if check else answer))
            self.page = self.get("/play")
        return self

    def login(self) -> Visitor:
        self.get("/admin/login")
        assert self.post("/admin/login", password=PASSWORD).status_code == 303
        return self


def instruction(page: Any) -> str | None:
    """What an attention check asks for."""
    found = re.search(r"""check">[^<]*(?: (\d+)%| (\w+))\.<""", page.text)
    return found and (found[1] or found[2])


@dataclass
class Site:
    app: Any
    database: Database
    key: bytes

    def answers(self, player: Visitor) -> list[dict[str, Any]]:
        """What is stored of a visitor, what the server answered by itself left out."""
        whose = Session.token_hash == token_hash(player.token)
        with self.database.read() as transaction:
            query = select(Answer.value).join(Assignment).join(Session).where(whose, ~Answer.automatic)
            return list(transaction.scalars(query))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('attacks') / 'c.sqlite'}")
    settings = CollectSettings(
        n_questions=3,
        training_rounds=0,
        attention_share=0.3,
        before=None,
        after=None,
        recruiter=RecruiterSettings(return_url=RETURN),
    )
    made = app(settings, collect_demo(), database)
    yield Site(made, database, made.state.collection.key)
    database.close()


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(admin.PASSWORD, PASSWORD)
    monkeypatch.setattr(admin, "_ATTEMPTS", Attempts())


@pytest.fixture
def visitor(site: Site) -> Visitor:
    return Visitor(site)


Do = Callable[[Visitor], Any]


def played(do: Do, game: str = "comparison") -> Do:
    """The same by somebody who has a question open."""
    return lambda who: do(who.begin(game))


def as_admin(do: Do) -> Do:
    return lambda who: do(who.login())


def other(who: Visitor) -> Visitor:
    return Visitor(who.site).begin()


def with_cookie(who: Visitor, value: str, path: str = "/play", name: str = COOKIE) -> Any:
    return TestClient(who.site.app, raise_server_exceptions=False, follow_redirects=False).get(
        path, headers={"cookie": f"{name}={value}"}
    )


def twice(who: Visitor) -> Any:
    who.answer(report="80")
    return who.answer(report="20")


def replayed_login(who: Visitor) -> Any:
    return with_cookie(who, str(who.client.cookies.get(COOKIE)), "/admin/answers.csv", ADMIN_COOKIE)


def named(name: str) -> Do:
    def do(who: Visitor) -> Any:
        who.begin().finish(report="70")
        return who.post("/name", name=name)

    return do


ATTACKS: list[tuple[str, Do, int | tuple[int, ...]]] = [
    # forms of other pages
    ("answer without a form token", played(lambda w: w.client.post("/play", data={"order": "0", "report": "80"})), 403),
    ("answer with a wrong form token", played(lambda w: w.answer(csrf="0" * 64, report="80")), 403),
    ("answer with a form token that is no ASCII", played(lambda w: w.answer(csrf="ä" * 64, report="80")), 403),
    ("answer with another session's form token", played(lambda w: w.answer(csrf=other(w).csrf(), report="80")), 403),
    ("consent without a form token", lambda w: (w.get("/"), w.client.post("/consent", data={"agree": "yes"}))[1], 403),
    ("start without a cookie", lambda w: w.client.post("/start", data={"csrf": "x", "game": "cloze"}), 403),
    ("the way back of those screened out, before it comes", played(lambda w: w.get("/screened")), 303),
    ("change the document without a form token",
     played(lambda w: w.client.post("/change-document", data={"a": "b"})), 403),
    ("log in without a form token", lambda w: w.client.post("/admin/login", data={"password": PASSWORD}), 403),
    ("delete as the experimenter without a form token",
     as_admin(lambda w: w.client.post("/admin/delete", data={"pseudonym": "P"})), 403),
    ("delete as the experimenter with another's form token",
     as_admin(lambda w: w.post("/admin/delete", csrf=other(w).csrf(), pseudonym="P")), 403),
    # cookies
    ("a cookie that is garbage", lambda w: with_cookie(w, "garbage"), 303),
    ("a cookie without its signature",
     lambda w: with_cookie(w, signed(w.site.key, COOKIE, "t").rsplit(".", 1)[0]), 303),
    ("a cookie signed with another key", lambda w: with_cookie(w, signed(b"other", COOKIE, "t")), 303),
    ("a cookie of nobody's session", lambda w: with_cookie(w, signed(w.site.key, COOKIE, "t")), 303),
    ("a cookie that holds a list",
     lambda w: with_cookie(w, str(URLSafeTimedSerializer(w.site.key, salt=COOKIE).dumps([1]))), 303),
    ("a cookie of a megabyte", lambda w: with_cookie(w, "a" * 10**6), (303, 400, 431)),
    ("a player's cookie as the experimenter's", played(replayed_login), 303),
    ("the token as the database holds it as a cookie",
     played(lambda w: with_cookie(w, signed(w.site.key, COOKIE, "0" * 64))), 303),
    # answers out of turn
    ("a second, other answer", played(twice), 409),
    ("an answer to a question that was not asked", played(lambda w: w.answer(order="99", report="80")), 409),
    ("an answer to a question of 60,000 digits", played(lambda w: w.answer(order="9" * 60_000, report="80")), 409),
    ("an answer to step 7", played(lambda w: w.answer(step="7", report="80")), 409),
    ("an answer before the consent", lambda w: (w.get("/"), w.post("/start", game="cloze"),
     w.post("/play", order="0", step="0", word="x"))[2], 409),
    ("an answer after the last question", lambda w: w.begin().finish(report="70").post("/play", order="9", step="0",
     report="80"), 409),
    ("the last page before the end", played(lambda w: w.get("/thanks")), 303),
    ("the feedback of a question of 5,000 digits", played(lambda w: w.get("/feedback?order=" + "9" * 5000)), 303),
    ("a game that is not on offer", lambda w: (w.get("/"), w.post("/start", game="chess"))[1], 404),
    # what is no answer
    ("a percentage that is not offered", played(lambda w: w.answer(report="100")), 422),
    ("a script as a word", played(lambda w: w.answer(word="<script>alert(1)</script>"), "cloze"), 303),
    ("a formula as a word", played(lambda w: w.answer(word="=HYPERLINK(1)"), "cloze"), 303),
    ("a line break in a word", played(lambda w: w.answer(word="a\r\nSet-Cookie:b"), "cloze"), 422),
    ("a second guess before the first", played(lambda w: w.answer(step="1", word="a"), "guess_until_right"), 409),
    ("the first guess again, as another",
     played(lambda w: (w.answer(word="xa"), w.answer(word="xb"))[1], "guess_until_right"), 409),
    # bodies
    ("a body over the limit", played(lambda w: w.raw(b"a=" + b"x" * 70_000)), 413),
    ("a body over the limit in pieces",
     played(lambda w: w.client.post("/play", content=iter([b"x" * 9000] * 9), headers=FORM)), 413),
    ("a body that is no form", played(lambda w: w.client.post("/play", json={"report": 80})), 415),
    ("a form with files", played(lambda w: w.client.post("/play", files={"a": b"b"})), 415),
    ("half of a character", played(lambda w: w.raw(b"word=%ED%A0%80")), 400),
    ("thousands of fields", played(lambda w: w.raw(b"&".join(b"a%d=b" % n for n in range(3000)))), 400),
    # names
    ("a line of a log as a name", named("a\r\nERROR x"), (303, 400)),
    ("a name that turns the writing round", named("a\u202eb"), 400),
    ("a name before the end", played(lambda w: (w.post("/name", name="early"), w.get("/thanks"))[1]), 303),
    # addresses
    ("a file above the static ones", lambda w: w.get("/static/../server.py"), 404),
    ("the same, twice encoded", lambda w: w.get("/static/%252e%252e%252fserver.py"), 404),
    ("a file by its whole path", lambda w: w.get("/static//etc/passwd"), 404),
    ("a null byte in a path", lambda w: w.get("/static/style.css%00.js"), 404),
    ("a method that there is not", lambda w: w.client.request("DELETE", "/play"), 405),
    # the experimenter's pages
    ("the overview without a login", lambda w: w.get("/admin"), 303),
    ("the export without a login", lambda w: w.get("/admin/answers.csv"), 303),
    ("the pay without a login", lambda w: w.get("/admin/pay.csv"), 303),
    ("a deletion without a login", played(lambda w: w.post("/admin/delete", pseudonym="P")), 303),
    ("an empty password", lambda w: (w.get("/admin/login"), w.post("/admin/login", password=""))[1], 403),
    ("a wrong password", lambda w: (w.get("/admin/login"), w.post("/admin/login", password=PASSWORD + " "))[1], 403),
    ("a password of a megabyte",
     lambda w: (w.get("/admin/login"), w.post("/admin/login", password="a" * 10**6))[1], 413),
]  # fmt: skip
"""What is tried, how, and the status that it gets."""


@pytest.mark.parametrize(("attack", "status"), [row[1:] for row in ATTACKS], ids=[row[0] for row in ATTACKS])
def test_an_attack_is_refused(site: Site, visitor: Visitor, attack: Do, status: int | tuple[int, ...]) -> None:
    before = counts(site)
    response = attack(visitor)
    assert response.status_code in (status if isinstance(status, tuple) else (status,)), response.text[:300]
    assert "Traceback" not in response.text
    assert "<script>" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert response.headers["x-frame-options"] == "DENY"
    if response.status_code == 303:
        # the way on is one of our pages
        assert re.fullmatch(r"/[a-z/-]*(\?order=\d+)?", response.headers["location"])
    after = counts(site)
    assert after["player"] >= before["player"]
    assert after["question"] == before["question"]
    assert visitor.get("/healthz").text == "ok\n"


def counts(site: Site) -> dict[str, int]:
    with site.database.read() as transaction:
        return {
            table.__tablename__: transaction.scalar(select(func.count()).select_from(table)) or 0
            for table in (Player, Question, Session)
        }


def test_of_many_answers_at_once_one_is_stored(visitor: Visitor) -> None:
    visitor.begin()
    fields = {"csrf": visitor.csrf(), "order": visitor.field("order"), "step": "0"}
    cookie = {"cookie": f"{COOKIE}={visitor.client.cookies.get(COOKIE)}"}

    def send(report: str) -> int:
        client = TestClient(visitor.site.app, follow_redirects=False, raise_server_exceptions=False)
        return int(client.post("/play", data=fields | {"report": report}, headers=cookie).status_code)

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(send, ("99", "80", "60", "40", "20", "1")))
    assert statuses == [303, 409, 409, 409, 409, 409]
    assert len(visitor.site.answers(visitor)) == 1


def test_another_ones_question_cannot_be_answered(site: Site) -> None:
    two, one = sorted((Visitor(site).begin() for _ in range(2)), key=lambda visitor: int(visitor.field("order")))
    # the first one goes on to a question whose order the second one was not asked; the site answers some by itself
    while int(one.field("order")) <= int(two.field("order")):
        one.answer(report=instruction(one.page) or "80")
        one.page = one.get("/play")
    assert two.answer(order=one.field("order"), report="20").status_code == 409
    assert site.answers(two) == []


def test_a_cookie_from_before_the_start_is_worth_nothing(visitor: Visitor) -> None:
    visitor.get("/")
    fixed = visitor.client.cookies.get(COOKIE)
    visitor.begin()
    assert visitor.client.cookies.get(COOKIE) != fixed
    assert with_cookie(visitor, str(fixed)).headers["location"] == "/"


def test_who_reads_the_database_cannot_play_for_others(visitor: Visitor) -> None:
    visitor.begin()
    with visitor.site.database.read() as transaction:
        stored = {str(value) for row in transaction.scalars(select(Session)) for value in vars(row).values()}
    assert visitor.token
    assert visitor.token not in stored


@pytest.mark.parametrize("https", [False, True])
def test_cookies_are_for_our_pages_alone(tmp_path: Path, https: bool) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'c.sqlite'}")
    made = app(CollectSettings(n_questions=3, https=https), collect_demo(), database)
    who = Visitor(Site(made, database, made.state.collection.key))
    given = [who.get("/").headers["set-cookie"], who.post("/start", game="cloze").headers["set-cookie"]]
    who.get("/admin/login")
    given.append(who.post("/admin/login", password=PASSWORD).headers["set-cookie"]) if not https else None
    database.close()
    for cookie in given:
        flags = cookie.lower()
        assert "httponly" in flags
        assert "samesite=lax" in flags or "samesite=strict" in flags
        assert ("secure" in flags) == https
        assert "domain=" not in flags


def test_the_login_cannot_be_tried_for_ever(visitor: Visitor) -> None:
    visitor.get("/admin/login")
    statuses = [visitor.post("/admin/login", password=f"guess {n}").status_code for n in range(8)]
    assert statuses == [403] * 5 + [429] * 3
    assert visitor.post("/admin/login", password=PASSWORD).status_code == 429


def test_without_a_password_there_is_no_login(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("", "short"):
        monkeypatch.setenv(admin.PASSWORD, given)
        visitor.get("/admin/login")
        assert visitor.post("/admin/login", password=given).status_code == 403


@pytest.mark.parametrize("header", ["host", "x-forwarded-host", "x-original-url", "forwarded", "referer"])
def test_no_page_believes_the_address_in_a_header(visitor: Visitor, header: str) -> None:
    visitor.begin()
    for path in ("/", "/play", "/thanks", "/admin"):
        response = visitor.get(path, headers={header: "evil.example"})
        assert "evil.example" not in response.text
        assert "evil.example" not in str(response.headers)


def test_the_way_back_is_the_settings_alone(visitor: Visitor) -> None:
    visitor.get("/?return_url=https://evil.example&next=//evil.example&PROLIFIC_PID=https://evil.example")
    visitor.begin(PROLIFIC_PID="https://evil.example", return_url="https://evil.example").finish(report="70")
    page = visitor.get("/thanks?return_url=//evil.example").text
    assert "evil.example" not in page
    found = re.findall(r'href="(https?:[^"]+)"', page)
    assert len(found) == 1
    assert html.unescape(found[0]).startswith("https://recruiter.example/done?cc=")


@pytest.mark.parametrize("name", ["<b>x</b>", "{{7*7}}", "=1+1", "';drop/**/table/**/player;--", '"><script>alert(1)'])
def test_a_name_is_shown_as_it_is(visitor: Visitor, name: str) -> None:
    visitor.begin().finish(report="70")
    assert visitor.post("/name", name=name).status_code == 303
    page = visitor.get("/leaderboard").text
    assert str(escape(name)) in page
    assert "<script>alert" not in page
    assert "<b>x</b>" not in page


def test_nothing_secret_is_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        who = Visitor(site).begin(PROLIFIC_PID="recruiter-secret", STUDY_ID="s", SESSION_ID="t")
        who.answer(report="bad\r\nERROR forged line")
        who.answer(report="80")
        who.login()
        who.get("/admin/answers.csv")
    said = "\n".join(
        record.getMessage() for record in caplog.records if not record.name.startswith(("asyncio", "httpx"))
    )
    secrets = (who.token, who.csrf(), PASSWORD, site.key.hex(), "recruiter-secret", "forged line")
    assert [secret for secret in secrets if secret in said] == []


def test_a_body_that_comes_too_slowly_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visit, "BODY_SECONDS", 0.2)
    sent: list[dict[str, Any]] = []
    who = Visitor(site).begin()
    cookie = f"{COOKIE}={who.client.cookies.get(COOKIE)}".encode()
    scope: dict[str, Any] = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST"}
    scope |= {"scheme": "http", "path": "/play", "raw_path": b"/play", "query_string": b"", "root_path": ""}
    scope |= {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    scope |= {"headers": [(b"content-type", b"application/x-www-form-urlencoded"), (b"cookie", cookie)]}

    async def slowly() -> dict[str, Any]:
        nonlocal n_parts
        n_parts += 1
        await asyncio.sleep(0.15)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    n_parts = 0
    asyncio.run(site.app(scope, slowly, send))
    assert sent[0]["status"] == 408
    # it asks for no part after the time is up; a busy machine lets it ask for fewer
    assert n_parts <= 2


def test_the_cheaters_view_of_a_comparison_is_the_same_for_both_sides(site: Site) -> None:
    """Nothing of a question but the two tokens depends on which of them is the target's."""
    with site.database.read() as transaction:
        questions = transaction.scalars(
            select(Question).where(Question.game == "comparison", ~Question.attention)
        ).all()
    for question in questions:
        for candidate in range(len(question.content["candidates"])):
            a, b = (
                Comparison().view(question.content, {"candidate": candidate, "target_side": side}, []) for side in "AB"
            )
            assert (a["a"], a["b"]) == (b["b"], b["a"])
            assert {**a, "a": "", "b": ""} == {**b, "a": "", "b": ""}


COLLECT = Path(strings.__file__).parent
TO_EVERYBODY = "\n".join(
    path.read_text(encoding="utf-8")
    for path in (COLLECT / "languages/en.yaml", *sorted((COLLECT / "templates").rglob("*.html")))
)
"""Words of the pages themselves, with those of their markup: class names may be somebody's next word."""

GIVEN: dict[str, dict[str, str]] = {
    "comparison": {"report": "70"},
    "top1": {"token": " the"},
    "cloze": {"word": "the"},
    "guess_until_right": {"word": "xa"},
    "bets": {"word1": "the", "chips1": "100"},
}


@pytest.mark.parametrize("game", GIVEN)
def test_every_page_and_asset_of_a_session_keeps_the_answer(site: Site, game: str) -> None:
    """Crawl what a browser can get before each answer: pages, their links, scripts, styles, headers."""
    who = Visitor(site).begin(game)
    seen: dict[str, str] = {}
    n_questions = 0
    while who.page.status_code == 200:
        order = int(who.field("order"))
        with site.database.read() as transaction:
            its = Session.token_hash == token_hash(who.token), Assignment.order == order
            query = select(Assignment, Question).join(Question).join(Session).where(*its)
            assignment, question = transaction.execute(query).one()
        pages = crawled(who)
        # the last answer's feedback says what models gave, and nothing of the open question
        said = pages.pop("/feedback")
        everything = "\n".join(pages.values())
        content = question.content
        forbidden = ["logprob", "target", "probability", "candidate", '"layout"', "smollm2"]
        forbidden.append(f"question_id={question.id}")
        if game != "comparison" and not question.attention:
            shown = content["context"]
            target = content["target"].strip(".,;:!?\"'()")
            # nor is a word given away that the pages say to everybody
            if len(target) > 4 and target not in shown and target not in TO_EVERYBODY:
                forbidden.append(target)
        if game == "comparison" and not question.attention:
            body = who.page.text
            for token in (content["target"], content["candidates"][assignment.layout["candidate"]]["token"]):
                # both options stand in the page equally often
                assert body.count(f"> {html.escape(token.strip())}<") <= 1
            logprob = content["target_logprob"]["smollm2"]
            forbidden += [f"{logprob:.4f}", f"{2.718281828459045**logprob:.5f}"]
            assert f"{logprob:.4f}" not in said
        found = [word for word in forbidden if word in everything]
        assert found == [], (order, found)
        seen |= pages
        n_questions += 1
        check, given = instruction(who.page), dict(GIVEN[game])
        if check:
            given[next(iter(given))] = check
        elif game == "guess_until_right":
            given["word"] = f"x{'abcdefghijkl'[int(who.field('step'))]}"
        who.answer(step=who.field("step"), **given)
        who.page = who.get("/play")
    assert n_questions >= 4
    assert any(path.split("?")[0].endswith(".js") for path in seen)


def crawled(who: Visitor) -> dict[str, str]:
    """The open question's page, what it links to, and what that links to; with headers, without the admin's."""
    found: dict[str, str] = {}
    waiting = ["/play", "/", "/leaderboard", "/instructions", "/consent", "/thanks", "/feedback", "/healthz"]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        response = who.get(path)
        text = response.text
        # CSS and scripts name their own things; what is in them is the same for everybody
        asset = path.startswith("/static")
        found[path] = "" if asset else text + "\n".join(f"{k}: {v}" for k, v in response.headers.items())
        if asset:
            assert "logprob" not in text
            continue
        waiting += [link for link in re.findall(r'(?:href|src)="(/[^"]*)"', text) if not link.startswith("/admin")]
    return found


def test_a_chosen_recruiters_id_deletes_nobody_else(site: Site) -> None:
    """Somebody whose recruiter's id is another's pseudonym is not deleted in the other's place."""
    victim = Visitor(site).begin(PROLIFIC_PID="victim")
    with site.database.read() as transaction:
        pseudonym = transaction.scalar(select(Player.pseudonym).where(Player.recruiter_id == "victim"))
    Visitor(site).begin(PROLIFIC_PID=str(pseudonym))
    with site.database.write() as transaction:
        assert forget(transaction, str(pseudonym))
    with site.database.read() as transaction:
        left = transaction.scalars(
            select(Player.recruiter_id).where(Player.recruiter_id.in_(["victim", pseudonym]))
        ).all()
    assert left == [pseudonym]
    assert victim.get("/play").headers["location"] == "/"


def test_a_copy_of_the_experimenters_cookie_ends_with_the_login(visitor: Visitor) -> None:
    visitor.login()
    copied = str(visitor.client.cookies.get(ADMIN_COOKIE))
    assert with_cookie(visitor, copied, "/admin", ADMIN_COOKIE).status_code == 200
    assert visitor.post("/admin/logout").status_code == 303
    assert with_cookie(visitor, copied, "/admin", ADMIN_COOKIE).status_code == 303


def test_words_in_exports_run_nowhere(site: Site, tmp_path: Path) -> None:
    who = Visitor(site).begin("cloze")
    for word in ("=1+1", "@SUM(1)", "+1", "-1"):
        if who.page.status_code == 200 and instruction(who.page) is None:
            who.answer(word=word)
            who.page = who.get("/play")
    with site.database.read() as transaction:
        written = write_exports(transaction, chosen_study(transaction), tmp_path)
    cells = [cell for path in written for cell in re.split(r"[,\n]", path.read_text(encoding="utf-8"))]
    assert "'=1+1" in cells
    numbers = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?")
    risky = [cell for cell in cells if cell.startswith(("=", "+", "-", "@")) and not numbers.fullmatch(cell)]
    assert risky == []
    admins = Visitor(site).login().get("/admin/answers.csv").text
    assert not re.search(r"(^|,)[=@]", admins, re.MULTILINE)
