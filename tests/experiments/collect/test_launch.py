"""A study is fixed when it is launched: what a restart may change, what it is refused, and who goes on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from sqlalchemy import select, update

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import Database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import CollectSettings, RecruiterSettings
from shannon_game.experiments.collect.tables import Answer, Assignment, Question, Session, Study
from tests.experiments.collect.players import Player

SMALL: dict[str, Any] = {"game": "cloze", "n_questions": 4, "training_rounds": 1, "attention_share": 0.25}


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    return collect_demo()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_questions": 30}, r"experiment\.n_questions: is 30, and 'collect_demo' was launched with 4; give what it"),
        ({"game": ("cloze", "bets")}, r"experiment\.game: is \[\"cloze\", \"bets\"\], .* launched with \[\"cloze\"\]"),
        ({"pay": {"base": 3.0}}, r"experiment\.pay\.base: is 3\.0, .* was launched with 0\.0"),
        ({"recruiter": RecruiterSettings(required=True)}, r"experiment\.recruiter\.required: is true"),
        ({"after": None}, r"experiment\.after: is \[\], "),
        (
            {"n_questions": 9, "feedback": False},
            r"is 9, .*; feedback is false, was true; .*experiment\.collection=NAME",
        ),
    ],
)
def test_a_restart_that_changes_the_study_is_refused_and_nobody_is_locked_out(
    database: Database, study: xr.Dataset, changed: dict[str, Any], message: str
) -> None:
    player = Player(app(CollectSettings(**SMALL), study, database), "cloze")
    player.to_play()
    player.answer("the")
    with pytest.raises(InputError, match=message):
        app(CollectSettings(**SMALL | changed), study, database)
    # with the same settings the person goes on
    again = Player(app(CollectSettings(**SMALL), study, database), "cloze")
    again.client.cookies = player.client.cookies
    assert again.get("/play").status_code == 200
    again.play_all("the")
    assert again.page.url.path == "/after"


def test_a_restart_changes_what_no_answer_depends_on(database: Database, study: xr.Dataset) -> None:
    first = app(CollectSettings(**SMALL), study, database).state.collection.study_id
    recruiter = RecruiterSettings(completion_code="DONE", return_url="https://example.org/{code}")
    more: dict[str, Any] = {"n_sessions": 9, "languages": ("de", "en"), "port": 0, "pilot": True}
    made = app(CollectSettings(**SMALL, **more, recruiter=recruiter), study, database)
    assert made.state.collection.study_id == first
    closed = app(CollectSettings(**SMALL, closes="2020-01-01"), study, database)
    assert Player(closed, "cloze").begin().status_code == 403
    with database.read() as transaction:
        stored = transaction.scalars(select(Study)).one().settings
    assert stored["n_questions"] == 4
    # the words that people agreed to, not the name of a file
    assert stored["consent"]["en"][0].startswith("This is a demonstration")
    assert stored["consent"].keys() == {"de", "en"}
    assert stored["before"][0]["name"] == "first_language"
    with pytest.raises(InputError, match="closes: is 'soon', should be a day or a time"):
        CollectSettings(closes="soon")


def test_other_questions_or_another_consent_are_another_study(
    database: Database, study: xr.Dataset, tmp_path: Path
) -> None:
    first = app(CollectSettings(**SMALL), study, database).state.collection.study_id
    other = study.assign(document_text=("document_name", study["document_text"].to_numpy()[::-1]))
    with pytest.raises(InputError, match="study 'collect_demo': asks other questions than 'collect_demo'"):
        app(CollectSettings(**SMALL), other, database)
    consent = tmp_path / "consent.md"
    consent.write_text("Another text.")
    with pytest.raises(InputError, match=r'experiment\.consent\.en: is \["Another text\."\], '):
        app(CollectSettings(**SMALL, consent=consent), study, database)
    made = app(CollectSettings(**SMALL, consent=consent, collection="second"), study, database).state.collection
    assert made.study_id != first
    assert made.study_name == "second"


def test_a_study_of_the_version_before_is_found_and_stored_whole(database: Database, study: xr.Dataset) -> None:
    made = app(CollectSettings(**SMALL), study, database).state.collection
    player = Player(app(CollectSettings(**SMALL), study, database), "cloze")
    player.to_play()
    with database.write() as transaction:
        kept = {"n_questions": 4, "consent": "consent.md", "before": "before.yaml", "pay": {"base": 0.0}}
        transaction.execute(update(Study).values(content_hash="0" * 64, settings=kept))
        for question in transaction.scalars(select(Question)):
            question.content = {key: value for key, value in question.content.items() if key != "cut"}
    again = app(CollectSettings(**SMALL), study, database)
    assert again.state.collection.study_id == made.study_id
    with pytest.raises(InputError, match=r"experiment\.n_questions"):
        app(CollectSettings(**SMALL | {"n_questions": 5}), study, database)
    with database.read() as transaction:
        assert transaction.scalars(select(Session)).one().study_id == made.study_id
        assert transaction.scalars(select(Study)).one().settings["consent"]["en"]


def test_a_restart_in_the_middle_of_twenty_visits_locks_out_nobody_and_lets_nobody_in_twice(
    database: Database, study: xr.Dataset
) -> None:
    recruited: dict[str, Any] = SMALL | {"recruiter": RecruiterSettings(required=True)}
    first = app(CollectSettings(**recruited), study, database)
    links = [f"?PROLIFIC_PID=p{number}&STUDY_ID=s&SESSION_ID=e{number}" for number in range(20)]
    players = [Player(first, "cloze") for _ in links]
    for number, (player, link) in enumerate(zip(players, links, strict=True)):
        player.to_play(link)
        for _ in range(number % 7):
            if player.page.url.path == "/play":
                player.answer("the")
            if player.page.url.path == "/feedback":
                player.get("/play")
    with pytest.raises(InputError, match="n_questions"):
        app(CollectSettings(**recruited | {"n_questions": 12}), study, database)
    second = app(CollectSettings(**recruited, n_sessions=20), study, database)
    for number, (player, link) in enumerate(zip(players, links, strict=True)):
        again = Player(second, "cloze")
        if number % 2:
            again.client.cookies = player.client.cookies
            again.get("/play")
        else:
            # another browser, by the link
            again.begin(link)
        assert again.page.url.path in {"/play", "/feedback", "/after"}
        if again.page.url.path == "/feedback":
            again.get("/play")
        again.play_all("the")
        assert again.page.url.path == "/after"
    assert Player(second, "cloze").begin("?PROLIFIC_PID=late&STUDY_ID=s&SESSION_ID=late").status_code == 403
    with database.read() as transaction:
        sessions = transaction.scalars(select(Session)).all()
        answered = Counter(transaction.scalars(select(Assignment.session_id).join(Answer)))
    assert len(sessions) == 20
    assert {session.state for session in sessions} == {"after"}
    # four that count, one training round and one check
    assert set(answered.values()) == {6}


def test_lists_too_short_for_a_visit_are_refused_and_nothing_is_launched(database: Database, study: xr.Dataset) -> None:
    texts = [str(name) for name in study["document_name"].to_numpy()]
    with pytest.raises(InputError, match=r"lists\.short: a visit asks 5000 questions of cloze, and \d+ fit"):
        app(CollectSettings(**SMALL | {"n_questions": 5000}, lists={"short": texts[:1]}), study, database)
    with database.read() as transaction:
        assert not transaction.scalars(select(Study)).all()
    app(CollectSettings(**SMALL, lists={"short": texts[:1], "other": texts[1:]}), study, database)
