"""The course of a visit: rules that are understood, training that is right, checks, arms, what is kept for how long."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from starlette.testclient import TestClient

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.__main__ import main
from shannon_game.experiments.collect.database import Database
from shannon_game.experiments.collect.deletion import forget
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.export import pay_table, tidy_answers
from shannon_game.experiments.collect.games.practice import obvious_words
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import BlockSettings, CollectSettings, PaySettings, RecruiterSettings
from shannon_game.experiments.collect.strings import Strings, available
from shannon_game.experiments.collect.surveys import right_answers, rules_questions, text_version
from shannon_game.experiments.collect.tables import Player as Person
from shannon_game.experiments.collect.tables import Question, Session
from shannon_game.experiments.studies.collected.loader import collected_study
from tests.experiments.collect.players import Player, csrf_of, order_of, step_of

GAMES = ("comparison", "top1", "cloze", "guess_until_right", "bets")
ANN, BO = "?PROLIFIC_PID=ann&STUDY_ID=s&SESSION_ID=a", "?PROLIFIC_PID=bo&STUDY_ID=s&SESSION_ID=b"
PLAIN: dict[str, Any] = {"n_questions": 2, "training_rounds": 0, "attention_share": 0, "before": None, "after": None}


def site(database: Database, **settings: Any) -> Any:
    return app(CollectSettings(**PLAIN | settings), collect_demo(), database)


def at_rules(made: Any, game: str, query: str = "") -> Player:
    player = Player(made, game)
    player.begin(query)
    player.post("/consent", agree="yes")
    return player


def started(made: Any, game: str, query: str = "") -> Player:
    player = at_rules(made, game, query)
    player.post("/instructions", **right_answers(game))
    return player


def visits(database: Database) -> list[Session]:
    with database.read() as transaction:
        return list(transaction.scalars(select(Session).order_by(Session.id)))


@pytest.mark.parametrize("game", GAMES)
def test_nobody_begins_who_has_not_understood_the_rules(database: Database, game: str) -> None:
    player = at_rules(site(database, comprehension_tries=None), game)
    right = right_answers(game)
    for wrong in ({}, right | {"rule-1": "7"}, dict.fromkeys(right, "0") | {"rule-0": "x"}):
        page = player.post("/instructions", **wrong)
        assert page.status_code == 422
        assert player.get("/play").url.path == "/instructions"
    assert player.post("/instructions", **right).url.path == "/play"
    player.answer({"comparison": "70", "top1": " the", "guess_until_right": "zebra"}.get(game, "the"))
    with database.read() as transaction:
        assert transaction.scalars(select(Session)).one().rules_tries == {game: 4}
        if game != "guess_until_right":
            # with those of the server, where both tokens are the same
            assert set(tidy_answers(transaction, game, study_ids=[1])["rules_tries"]) == {4}


def test_who_fails_the_rules_so_often_is_sent_back_in_the_first_part_alone(database: Database) -> None:
    recruiter = RecruiterSettings(screened_url="https://example.org/out?id={PROLIFIC_PID}")
    blocks = tuple(BlockSettings(game=game, n_questions=1, training_rounds=0) for game in ("cloze", "bets"))
    made = site(database, blocks=blocks, comprehension_tries=2, recruiter=recruiter, n_sessions=1)
    ann = at_rules(made, "cloze", ANN)
    ann.post("/instructions")
    page = ann.post("/instructions")
    assert page.url.path == "/screened"
    assert 'href="https://example.org/out?id=ann"' in page.text
    assert ann.get("/instructions").url.path == "/screened"
    # the place is free, and in the second part nobody is sent back
    bo = started(made, "cloze", BO)
    bo.play_all("the")
    for _ in range(4):
        assert bo.post("/instructions").status_code == 422
    bo.game = "bets"
    bo.post("/instructions", **right_answers("bets"))
    bo.play_all("the")
    assert [visit.state for visit in visits(database)] == ["screened", "done"]
    assert collected_study(url=url_of(database), game="cloze").sizes["response"] == 1


def url_of(database: Database) -> str:
    return str(database.engine.url.render_as_string(hide_password=False)).replace("+psycopg", "")


def test_questions_on_the_rules_are_the_same_in_every_language() -> None:
    strings = Strings(available())
    for game in GAMES:
        for language in available():
            asked = rules_questions(strings, language, game)
            assert len(asked) >= 2
            assert {f"rule-{at}": str(right) for at, (*_, right) in enumerate(asked)} == right_answers(game)
            assert all(len(set(options)) == 3 for _, options, _ in asked)


@pytest.mark.parametrize(("game", "given"), [("comparison", "50"), ("bets", "zebra"), ("guess_until_right", "zebra")])
def test_practice_is_of_no_study_and_never_asked_again(database: Database, game: str, given: str) -> None:
    """Whatever is sensible or not: each round is answered once, and the study keeps all of its contexts."""
    player = started(site(database, training_rounds=2, most_guesses=1), game, ANN)
    with database.read() as transaction:
        rows = transaction.scalars(select(Question).where(Question.game == game, Question.training)).all()
        kept = transaction.scalar(select(func.count(Question.id)).where(Question.game == game, ~Question.training))
    assert {row.content["target"].strip() for row in rows} <= set(obvious_words().values())
    assert kept is not None
    assert kept >= 118
    for n_trained in (1, 2):
        player.get("/play")
        player.answer(given)
        assert visits(database)[0].n_trained == n_trained
    player.get("/play")
    assert visits(database)[0].state == "play"


def failing(player: Player, game: str = "cloze") -> None:
    """Answer until the visit ends, and no check as it asks."""
    while player.page.url.path == "/play":
        player.post("/play", order=order_of(player.page), step=step_of(player.page), word="zebra")
        if player.page.url.path == "/feedback":
            player.get("/play")


def test_who_fails_the_stated_number_of_checks_is_sent_back_and_counts_for_nothing(
    database: Database, tmp_path: Path
) -> None:
    recruiter = RecruiterSettings(screened_url="https://example.org/out?id={PROLIFIC_PID}")
    pay = PaySettings(base=4.0, screened=0.5)
    made = site(
        database,
        n_questions=6,
        attention_share=0.5,
        screen_out_after=2,
        answers_per_question=1,
        n_sessions=1,
        recruiter=recruiter,
        pay=pay,
        game="cloze",
    )
    player = Player(made, "cloze")
    player.begin(ANN)
    player.post("/consent", agree="yes")
    player.post("/instructions", **right_answers("cloze"))
    failing(player)
    assert player.page.url.path == "/screened"
    assert 'href="https://example.org/out?id=ann"' in player.page.text
    # nobody comes back into it, and place and questions are free for others
    assert Player(made, "cloze").begin(ANN).status_code == 403
    assert player.begin(ANN).url.path == "/screened"
    other = started(made, "cloze", BO)
    other.play_all("zebra")
    assert other.page.url.path == "/thanks"
    with database.read() as transaction:
        answers = tidy_answers(transaction, "cloze", study_ids=[1])
        kept = answers[answers["state"] == "screened"]
        assert set(kept["failed_checks"]) == {2}
        table = pay_table(transaction, 1, pay).set_index("recruiter_id")
        assert table["total"].to_dict() == {"ann": 0.5, "bo": 4.0}
    url = url_of(database)
    assert main(["export", "--url", url, "--folder", str(tmp_path / "tables")]) == 0
    assert (tmp_path / "tables" / "pay.csv").stat().st_mode & 0o777 == 0o600
    found = collected_study(url=url, game="cloze")
    assert found.sizes["response"] == 6
    with database.write() as transaction:
        assert forget(transaction, "ann")
        counts = transaction.execute(select(func.min(Question.n_held), func.sum(Question.n_held))).one()
    # those of the one who is left: six answers, three checks
    assert tuple(counts) == (0, 9)


def test_places_of_unfinished_visits_are_free_after_the_stated_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = site(database, n_sessions=1, idle_minutes=5, game="cloze")
    first = started(made, "cloze", ANN)
    page = Player(made, "cloze").begin(BO)
    assert page.status_code == 403
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 301)
    second = started(made, "cloze", BO)
    second.play_all("the")
    assert second.page.url.path == "/thanks"
    # who comes back all the same goes on
    assert first.get("/play").url.path == "/play"


ARMS: dict[str, Any] = {
    "blocks": (BlockSettings(game="cloze", n_questions=2), BlockSettings(game="comparison", n_questions=2)),
    "arms": (
        {"name": "words", "feedback": False, "items": ("moby_dick.txt", "bohemia.txt")},
        {"name": "tokens", "order": ("comparison", "cloze")},
    ),
    "lists": {"A": ("moby_dick.txt", "alice.txt"), "B": ("bohemia.txt", "peter_pan.txt")},
}


def with_arms(database: Database, **more: Any) -> Any:
    blocks = tuple(block.model_copy(update={"training_rounds": 0}) for block in ARMS["blocks"])
    return site(database, **ARMS | {"blocks": blocks} | more)


def test_arms_and_lists_are_balanced_though_all_come_at_once(database: Database) -> None:
    made = with_arms(database)
    people = [Player(made, "cloze") for _ in range(12)]
    threads = [
        threading.Thread(target=one.begin, args=(f"?PROLIFIC_PID=p{number}&STUDY_ID=s&SESSION_ID=t",))
        for number, one in enumerate(people)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cells = Counter((each.arm, each.item_list) for each in visits(database))
    assert cells == {(arm, name): 3 for arm in ("words", "tokens") for name in "AB"}
    # who leaves frees the cell
    people[0].post("/consent", agree="no")
    [gone] = [cell for cell, n in Counter((each.arm, each.item_list) for each in visits(database)).items() if n == 2]
    Player(made, "cloze").begin(ANN)
    last = visits(database)[-1]
    assert (last.arm, last.item_list) == gone


def test_an_arm_has_its_own_order_feedback_and_items_and_they_are_exported(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHANNON_COLLECT_PASSWORD", "long enough")
    made = with_arms(database, pay=PaySettings(base=6.0, currency="GBP", planned_minutes=30))
    for number in range(4):
        player = Player(made, "cloze")
        player.begin(f"?PROLIFIC_PID=p{number}&STUDY_ID=s&SESSION_ID=t")
        player.post("/consent", agree="yes")
        session, paths = visits(database)[-1], []
        order = [("cloze", "the"), ("comparison", "70")]
        for game, given in order if session.arm == "words" else order[::-1]:
            player.game = game
            player.post("/instructions", **right_answers(game))
            while player.page.url.path == "/play":
                paths.append(player.answer(given).url.path)
                player.get("/play")
        assert player.page.url.path == "/thanks"
        assert ("/feedback" in paths) == (session.arm == "tokens")
    with database.read() as transaction:
        for game in ("cloze", "comparison"):
            table = tidy_answers(transaction, game, study_ids=[1])
            assert Counter(zip(table["arm"], table["list"], strict=True)).keys() == {
                (arm, name) for arm in ("words", "tokens") for name in "AB"
            }
            for name, documents in ARMS["lists"].items():
                assert set(table[table["list"] == name]["document"]) <= set(documents)
            # items of the arm and of the list
            assert set(table[table["arm"] == "words"]["document"]) == {"moby_dick.txt", "bohemia.txt"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lists": {"A": ("no_book.txt",)}}, "lists.A: names 'no_book.txt', which is no item or document"),
        ({"screen_out_after": 3, "n_questions": 40, "attention_share": 0.05}, "3, and a visit has 2 attention checks"),
        ({"arms": ({"name": "a"}, {"name": "a"})}, r"arms: are named \['a', 'a'\]"),
        ({"arms": ({"name": "a", "order": ("cloze",)},)}, r"arms\.a\.order: is \['cloze'\], should name each"),
    ],
)
def test_a_plan_whose_arms_do_not_fit_is_refused(database: Database, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_arms(database, **given)


def test_recruiters_ids_go_after_the_stated_days(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = site(database, retention_days=30, game="cloze")
    ann = at_rules(made, "cloze", ANN)
    version = visits(database)[0].consent_version
    paragraphs = made.state.collection.consent["en"]
    assert paragraphs[-1].startswith("30 days after your last visit")
    assert version == text_version(paragraphs) != text_version(paragraphs[:-1])
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 29 * 86_400)
    started(made, "cloze", BO)

    def ids() -> set[str | None]:
        ann.get("/healthz")
        with database.read() as transaction:
            table = pay_table(transaction, 1, PaySettings())
            assert transaction.scalar(select(func.count(Session.id))) == 2
            return {None if who != who else who for who in table["recruiter_id"]}

    assert ids() == {"ann", "bo"}
    monkeypatch.setattr(time, "time", lambda: now + 31 * 86_400)
    with caplog.at_level("INFO", logger="shannon-game"):
        assert ids() == {None, "bo"}
    assert [record.message for record in caplog.records if "deleted" in record.message] == [
        "deleted the recruiter's ids of 1 participant, 30 days after the last visit"
    ]
    with database.read() as transaction:
        assert transaction.scalars(select(Person).where(Person.recruiter_id.is_(None))).one().recruiter == {}
    monkeypatch.setattr(time, "time", lambda: now + 99 * 86_400)
    # a start does it too
    site(database, retention_days=30, game="cloze")
    with database.read() as transaction:
        assert transaction.scalar(select(func.count(Person.recruiter_id))) == 0


MTURK = {"workerId": "ann", "assignmentId": "a1", "hitId": "h", "turkSubmitTo": "https://workersandbox.mturk.com"}


@pytest.mark.parametrize(
    ("sent", "action"),
    [
        (MTURK, "https://workersandbox.mturk.com/mturk/externalSubmit"),
        (MTURK | {"turkSubmitTo": "https://evil.example"}, "https://www.mturk.com/mturk/externalSubmit"),
    ],
)
def test_mturk_shows_the_pages_in_its_frame_and_nobody_else_does(
    database: Database, sent: dict[str, str], action: str
) -> None:
    made = site(database, recruiter={"platform": "mturk", "required": True}, https=True, game="cloze")
    client = TestClient(made, base_url="https://testserver")
    player = Player(made, "cloze", client)
    player.page = client.get("/", params=MTURK | {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"})
    assert player.page.status_code == 403
    page = client.get("/", params=sent)
    assert (
        "frame-ancestors https://worker.mturk.com https://workersandbox.mturk.com"
        in page.headers["content-security-policy"]
    )
    assert "x-frame-options" not in page.headers
    player.page = page
    given = client.post("/start", data={"csrf": csrf_of(page), "game": "cloze", **sent}, follow_redirects=False)
    assert "samesite=none; secure; partitioned" in given.headers["set-cookie"].lower()
    player.get("/consent")
    player.post("/consent", agree="yes")
    player.post("/instructions", **right_answers("cloze"))
    player.play_all("the")
    assert f'action="{action}"' in player.page.text
    assert 'name="assignmentId" value="a1"' in player.page.text
    with pytest.raises(InputError, match="https: is false; the frame of MTurk"):
        CollectSettings(recruiter=RecruiterSettings(platform="mturk"))
