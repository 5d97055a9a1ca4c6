"""The games from consent to completion code, by the pages alone."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import Database, open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.players.forms import read_page
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.collect.tables import Assignment, Question, Session
from tests.experiments.collect.players import Player, answers, csrf_of, logged_in, order_of

SMALL: dict[str, Any] = {"n_questions": 4, "training_rounds": 1, "attention_share": 0.25}


@pytest.mark.parametrize("game", GAMES)
def test_a_game_is_played_from_consent_to_completion_code(database: Database, game: str) -> None:
    """The first answer is what a browser without JavaScript sends: the fields of the form as they stand there."""
    settings = CollectSettings(**SMALL, most_guesses=1, feedback=True)
    player = Player(app(settings, collect_demo(), database), game)
    player.to_play()
    text = "70" if game == "comparison" else " the"
    form, given = read_page(player.page.text, "/play").forms[0], player.form(text)
    assert re.search(r'<form method="post" action="/play".*<button>.*</form>', player.page.text, re.DOTALL)
    assert all(name in form.asked or value in form.choices[name] for name, value in given.items())
    player.page = player.client.post(form.action, data=form.fields | given)
    assert 'href="/play"' in player.page.text
    (answer,) = [row[0] for row in answers(database) if not row[0].automatic]
    assert answer.client_ms is None is not answer.server_ms
    player.get("/play")
    player.play_all(text)
    assert player.page.url.path == "/after"
    player.post("/after", **{"q-knew_text": "1", "q-remarks": ""})
    assert player.page.url.path == "/thanks"
    with database.read() as transaction:
        session = transaction.scalars(select(Session)).one()
    assert session.state == "done"
    assert session.completion_code in player.page.text
    rows = [row for row in answers(database) if not row[0].automatic]
    assert sum(row[1].training for row in rows) == 1
    assert [row[0].correct for row in rows if row[2].attention] == [True]
    assert sum(not row[1].training and not row[2].attention for row in rows) == 4
    assert all(row[0].server_ms is not None and row[0].page_version for row in rows)


@pytest.mark.parametrize("game", GAMES)
def test_pages_and_texts_have_the_direction_of_their_language(
    database: Database, game: str, tmp_path: Path, right_to_left: str
) -> None:
    """A language from right to left is added by its file alone; a text has its own direction."""
    (tmp_path / "consent.md").write_text("הסכמה", encoding="utf-8")
    settings = CollectSettings(
        **SMALL | {"n_questions": 1}, languages=(right_to_left,), text_language="ar", consent=tmp_path / "consent.md"
    )
    player = Player(app(settings, collect_demo(), database), game)
    asked = "50" if game == "comparison" else " the"
    pages = [player.begin(), player.post("/consent", agree="yes"), player.post("/before", **{"q-first_language": "0"})]
    texts = [player.post("/instructions", **right_answers(game)), player.answer(asked)]
    for page in (*pages, *texts):
        assert '<html lang="he" dir="rtl">' in page.text
    for page in texts:
        tags = re.findall(r'<(?:section class="con|bdi class="tok|input [^>]*name="(?:word|token))[^>]*>', page.text)
        assert {('dir="auto"' in tag, 'lang="ar"' in tag) for tag in tags} == {(True, True)}


def test_the_score_is_the_rule_of_the_game(database: Database) -> None:
    player = Player(app(CollectSettings(**SMALL), collect_demo(), database), "comparison")
    player.to_play()
    player.play_all("90")
    counted = [row for row in answers(database) if not row[2].attention and not row[0].automatic]
    for answer, assignment, question in counted:
        p = 0.9 if assignment.layout["target_side"] == "A" else 0.1
        g = math.exp(question.content["target_logprob"][question.content["generator"]])
        assert answer.score == pytest.approx(1000 * g * math.log(p / 0.5))


def test_what_is_no_step_of_the_slider_is_refused(database: Database) -> None:
    made = app(CollectSettings(**SMALL | {"training_rounds": 0}, scale="slider"), collect_demo(), database)
    player = Player(made, "comparison")
    order = order_of(player.to_play())
    for report in ("94", "-94", "1.5", "NaN", "\uff11", "--1", "1e1", ""):
        assert player.post("/play", order=order, step="0", report=report).status_code == 422, report
    player.post("/play", order=order, step="0", report="-93")
    [(answer, assignment, _)] = [row for row in answers(database) if not row[0].automatic]
    assert answer.value["report"] == pytest.approx(
        0.9999 if assignment.layout["target_side"] == "A" else 0.0001, rel=1e-3
    )


def test_a_database_of_a_newer_version_is_refused(database: Database) -> None:
    with database.write() as transaction:
        transaction.execute(text("update alembic_version set version_num = '9999'"))
    url = database.engine.url.render_as_string(hide_password=False)
    with pytest.raises(InputError, match="database: has version '9999', this shannon-game knows up to"):
        open_database(url)


def test_the_experimenter_sees_and_deletes_answers(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHANNON_COLLECT_PASSWORD", "long enough")
    made = app(CollectSettings(**SMALL), collect_demo(), database)
    player = Player(made, "cloze")
    player.to_play()
    player.play_all("the")
    admin = Player(made, "cloze")
    admin.get("/admin")
    assert admin.page.url.path == "/admin/login"
    assert admin.client.get("/admin/answers.csv").url.path == "/admin/login"
    assert admin.post("/admin/login", password="wrong").status_code == 403
    assert admin.post("/admin/login", password="long enough").url.path == "/admin"
    assert admin.client.get("/admin/answers.csv").text.count("\n") > 4
    with database.read() as transaction:
        pseudonym = transaction.scalars(select(Session)).one().player.pseudonym
    admin.post("/admin/delete", pseudonym=pseudonym)
    assert answers(database) == []
    with database.read() as transaction:
        assert transaction.scalar(select(func.sum(Question.n_held))) == 0


def test_who_withdraws_is_deleted_and_counted_without_a_name(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SHANNON_COLLECT_PASSWORD", "long enough")
    made = app(CollectSettings(**SMALL), collect_demo(), database)
    stays, goes = (Player(made, "cloze") for _ in range(2))
    stays.to_play("?PROLIFIC_PID=stays")
    stays.play_all("the")
    goes.to_play("?PROLIFIC_PID=goes&STUDY_ID=s&SESSION_ID=t")
    goes.answer("the")
    n_before = len(answers(database))
    assert Player(made, "cloze").get("/withdraw").url.path == "/"
    goes.get("/withdraw")
    assert len(answers(database)) == n_before
    csrf = csrf_of(goes.page)
    assert goes.client.post("/withdraw", data={"csrf": "guessed"}).status_code == 403
    assert len(answers(database)) == n_before
    with caplog.at_level("INFO", logger="shannon-game"):
        goes.page = goes.client.post("/withdraw", data={"csrf": csrf})
    assert goes.page.url.path == "/withdrawn"
    assert [record.message for record in caplog.records if record.name == "shannon-game"] == [
        "a participant withdrew; everything of theirs was deleted"
    ]
    assert goes.get("/play").url.path == "/"
    with database.read() as transaction:
        [left] = transaction.scalars(select(Session)).all()
        assert left.player.recruiter_id == "stays"
        held = transaction.scalar(select(func.sum(Question.n_held)))
        assert held == transaction.scalar(select(func.count(Assignment.id)).where(Assignment.state != "skipped"))
    admin = logged_in(made)
    assert "<b>1</b> withdrew" in admin.page.text
