"""Who comes: by the recruiter's link, by the browser, as somebody else; and what a person has seen of all games."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from sqlalchemy import func, inspect, select, text

from shannon_game.experiments.collect.__main__ import main
from shannon_game.experiments.collect.database import Database, open_database
from shannon_game.experiments.collect.deletion import forget_recruiters
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import CollectSettings, RecruiterSettings
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.collect.tables import Answer, Assignment, Base, Question, ServerValue, Session
from shannon_game.experiments.collect.tables import Player as Person
from tests.experiments.collect.players import Player, logged_in

SMALL: dict[str, Any] = {"n_questions": 4, "training_rounds": 1, "attention_share": 0.25}
ANN, BO = "?PROLIFIC_PID=ann&STUDY_ID=s&SESSION_ID=a", "?PROLIFIC_PID=bo&STUDY_ID=s&SESSION_ID=b"
REOPENED = ANN + "2"


def site(database: Database, **settings: Any) -> Any:
    return app(CollectSettings(**SMALL | settings), collect_demo(), database)


def finish(player: Player, given: str = "the") -> Any:
    player.play_all(given)
    return player.post("/after", **{"q-knew_text": "1"})


def people(database: Database) -> dict[str | None, list[tuple[str, str]]]:
    """Game and state of every visit by the recruiter's id."""
    found: dict[str | None, list[tuple[str, str]]] = {}
    with database.read() as transaction:
        for session in transaction.scalars(select(Session).order_by(Session.id)):
            found.setdefault(session.player.recruiter_id, []).append((session.game, session.state))
    return found


def personal(player: Player) -> str:
    """The link that a page shows to the person alone."""
    return "/" + re.search(r'href="/(\?personal=[^"]+)"', player.page.text)[1]  # type: ignore[index]


def test_a_person_goes_on_in_another_browser_by_a_personal_link_and_in_a_reopened_submission(
    database: Database,
) -> None:
    recruiter = RecruiterSettings(required=True, completion_code="DONE", return_url="https://example.org/?{SESSION_ID}")
    made = site(database, recruiter=recruiter)
    assert Player(made, "cloze").get("/").status_code == 403
    player = Player(made, "cloze")
    player.begin(ANN)
    player.post("/consent", agree="yes")
    player.post("/before", **{"q-first_language": "0"})
    link = personal(player)
    player.post("/instructions", **right_answers("cloze"))
    # the same person, whose link lacks something or belongs to a submission that was reopened
    for query in ("?PROLIFIC_PID=ann", REOPENED):
        assert player.begin(query).url.path == "/play"
    elsewhere = Player(made, "cloze")
    assert "Go on" in elsewhere.get(link).text
    assert "personal" not in str(elsewhere.client.cookies)
    hidden = dict(re.findall(r'name="(personal)" value="([^"]*)"', elsewhere.page.text))
    assert elsewhere.post("/start", **hidden).url.path == "/play"
    # both go on with one visit
    assert player.get("/play").status_code == 200
    assert "https://example.org/?a2" in finish(elsewhere).text
    third = Player(made, "cloze")
    third.get(personal(elsewhere))
    assert "DONE" in third.post("/start", personal=personal(elsewhere).partition("=")[2]).text
    assert Player(made, "cloze").get("/?personal=guessed").status_code == 404
    assert people(database) == {"ann": [("cloze", "done")]}


@pytest.mark.parametrize("state", ["training", "done"])
def test_who_knows_or_counts_up_to_an_id_gets_into_no_visit_and_deletes_nothing(database: Database, state: str) -> None:
    """SONA's ids are small whole numbers, and a Prolific id stands in a researcher's table."""
    made = site(database, recruiter={"platform": "sona"})
    other = site(database, recruiter={"platform": "sona"}, collection="other study")
    victim = Player(made, "cloze")
    victim.to_play("?id=7")
    if state == "done":
        finish(victim)
    for game in ("cloze", "bets"):
        thief = Player(made, game)
        assert thief.begin("?id=7").status_code == 403
        assert thief.get("/withdraw").url.path == "/"
    # the id begins a visit to another study of the database: with its secret nothing of the first one is reached
    thief = Player(other, "cloze")
    thief.to_play("?id=7")
    here = Player(made, "bets")
    here.client.cookies = thief.client.cookies
    assert here.begin("?id=7").status_code == 403
    thief.get("/withdraw")
    assert thief.post("/withdraw").url.path == "/withdrawn"
    assert people(database) == {"7": [("cloze", state)]}


def test_who_withdrew_comes_back_as_nobody_new(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    url = database.engine.url.render_as_string(hide_password=False)
    made = site(database, retention_days=60.0)
    for withdrawn_before_consent in (True, False):
        player = Player(made, "cloze")
        player.begin(ANN)
        if not withdrawn_before_consent:
            player.post("/consent", agree="yes")
        player.get("/withdraw")
        assert player.post("/withdraw").url.path == "/withdrawn"
    for client in (player.client, None):
        again = Player(made, "cloze", client)
        assert "already begun or taken part" in again.begin(REOPENED).text
    assert Player(made, "cloze").begin(BO).url.path == "/consent"
    assert people(database) == {"bo": [("cloze", "consent")]}
    with database.read() as transaction:
        values = {row.name: row.value for row in transaction.scalars(select(ServerValue))}
    [mark] = [name for name in values if name.startswith("id ")]
    assert re.fullmatch("id [0-9a-f]{48}", mark)
    assert "ann" not in str(values)
    # as long as ids are kept at all, or until the experimenter lets the id in
    with database.write() as transaction:
        forget_recruiters(transaction, 1, 60.0)
        assert transaction.get(ServerValue, mark)
        transaction.get_one(ServerValue, mark).value = str(int(time.time() / 86_400) - 61)
    assert main(["expire", "--url", url]) == 0
    assert Player(made, "cloze").begin(ANN).url.path == "/consent"
    assert main(["forget", "--url", url, "bo"]) == 0
    # who had not agreed was shown nothing, and is known no more
    assert Player(made, "cloze").begin(BO).url.path == "/consent"
    player = Player(made, "cloze")
    player.to_play("?PROLIFIC_PID=cy")
    assert main(["forget", "--url", url, "cy"]) == 0
    assert player.get("/play").url.path == "/"
    assert player.begin("?PROLIFIC_PID=cy").status_code == 403
    assert main(["forget", "--url", url, "--may-return", "cy"]) == 0
    assert player.begin("?PROLIFIC_PID=cy").url.path == "/consent"
    assert main(["forget", "--url", url, "--may-return", "nobody"]) == 2
    capsys.readouterr()


def test_who_finds_no_place_is_told_when_or_where_to_go_and_nothing_else(database: Database) -> None:
    recruiter = RecruiterSettings(full_url="https://example.org/full?{SESSION_ID}")
    made = site(database, recruiter=recruiter, game=("cloze",), n_sessions=1, idle_minutes=0.2, leaderboard=False)
    ann, bo = Player(made, "cloze"), Player(made, "cloze")
    ann.to_play(ANN)

    def links(player: Player) -> list[str]:
        return re.findall(r'href="(?!/static|#)([^"]+)"', player.page.text)

    # a place is held: nobody is sent away as surplus, and no wait is of 0 minutes
    assert "after 1 min" in bo.begin(BO).text
    assert links(bo) == []
    finish(ann)
    # whose link lacks something is the same person
    for query in (ANN, "?PROLIFIC_PID=ann"):
        ann.get(f"/{query}")
        assert "Your completion code" in ann.page.text
        assert ann.begin(query).url.path == "/thanks"
    assert "enough answers" in bo.begin(BO).text
    assert links(bo) == ["https://example.org/full?b"]
    for settings in ({"closes": "2020-01-01"}, {"n_sessions": 1}):
        nowhere = site(database, game=("cloze",), leaderboard=False, idle_minutes=0.2, collection="nowhere", **settings)
        if "n_sessions" in settings:
            one = Player(nowhere, "cloze")
            one.to_play("?PROLIFIC_PID=cy")
            finish(one)
        two = Player(nowhere, "cloze")
        assert two.begin("?PROLIFIC_PID=di").status_code == 403
        # to begin again would lead here again
        assert links(two) == []


def test_two_people_in_one_browser_have_a_visit_each(database: Database) -> None:
    made = site(database)
    ann = Player(made, "cloze")
    ann.begin(ANN)
    ann.post("/consent", agree="yes")
    ann.post("/before", **{"q-first_language": "0"})
    link = personal(ann)
    ann.post("/instructions", **right_answers("cloze"))
    ann.answer("ann")
    bo = Player(made, "cloze", ann.client)
    assert "Go on" not in bo.get(f"/{BO}").text
    bo.to_play(BO)
    finish(bo, "bo")
    # the browser's cookie is the second one's now
    assert ann.begin(ANN).status_code == 403
    ann.get(link)
    assert ann.post("/start", personal=link.partition("=")[2]).url.path == "/play"
    finish(ann, "ann")
    assert people(database) == {"ann": [("cloze", "done")], "bo": [("cloze", "done")]}
    with database.read() as transaction:
        query = select(Person.recruiter_id, Answer.value).join(Session, Session.player_id == Person.id)
        query = query.join(Assignment).join(Answer).join(Question).where(~Question.attention)
        said = {(who, value["word"]) for who, value in transaction.execute(query)}
    assert said == {("ann", "ann"), ("bo", "bo")}


def test_without_a_recruiter_somebody_else_begins_anew_and_the_same_person_plays_another_game(
    database: Database,
) -> None:
    made = site(database)
    one = Player(made, "cloze")
    one.to_play()
    assert "Go on" in one.get("/").text
    assert 'href="/?new=1"' in one.page.text
    two = Player(made, "cloze", one.client)
    two.page = two.get("/?new=1")
    two.post("/start", game="cloze", new="1")
    two.post("/consent", agree="yes")
    two.post("/before", **{"q-first_language": "0"})
    two.post("/instructions", **right_answers("cloze"))
    finish(two)
    two.get("/")
    assert "You have played this game" in two.page.text
    assert two.post("/start", game="cloze").url.path == "/thanks"
    again = Player(made, "bets", two.client)
    again.to_play()
    with database.read() as transaction:
        visits = transaction.execute(select(Session.player_id, Session.game).order_by(Session.id)).all()
    assert [tuple(visit) for visit in visits] == [(1, "cloze"), (2, "cloze"), (2, "bets")]


def test_of_somebody_who_refuses_nothing_stays(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHANNON_COLLECT_PASSWORD", "long enough")
    made = site(database)
    player = Player(made, "cloze")
    player.begin(ANN)
    assert player.post("/consent", agree="no").url.path == "/declined"
    with database.read() as transaction:
        assert transaction.scalar(select(func.count(Person.id))) == 0
        assert transaction.scalar(select(func.count(Session.id))) == 0
    assert "<b>1</b> declined" in logged_in(made).page.text
    # who comes again may take part
    assert player.begin(ANN).url.path == "/consent"


def test_a_link_with_an_unfilled_placeholder_is_refused(database: Database) -> None:
    player = Player(site(database), "cloze")
    for value in ("{{%PROLIFIC_PID%}}", "%SURVEY_CODE%", "${e://Field/id}", "[ID]", "<id>"):
        player.page = player.client.get("/", params={"PROLIFIC_PID": value})
        assert player.page.status_code == 400, value
        player.get("/")
        assert player.post("/start", game="cloze", PROLIFIC_PID=value).status_code == 400, value
    assert people(database) == {}


@pytest.mark.parametrize("games", [("cloze", "comparison"), ("comparison", "cloze", "top1"), ("bets", "top1")])
def test_what_was_shown_in_one_game_answers_no_question_of_another(database: Database, games: tuple[str, ...]) -> None:
    made = site(database, n_questions=12, training_rounds=3)
    client = None
    for game in games:
        player = Player(made, game, client)
        player.to_play()
        finish(player, {"comparison": "70", "top1": " the"}.get(game, "the"))
        client = player.client
        assert player.page.url.path == "/thanks"
    with database.read() as transaction:
        assert transaction.scalar(select(func.count(Person.id))) == 1
        # what the server answers by itself is not shown
        shown = ~Question.attention & Assignment.shown_at.is_not(None)
        query = select(Question, Assignment.id).join(Assignment).where(shown).order_by(Assignment.id)
        asked = [row[0] for row in transaction.execute(query)]
    # the last game ends early if it draws texts of which nothing is left that was not shown
    assert 15 * (len(games) - 1) < len(asked) <= 15 * len(games)
    seen: list[str] = []
    for question in asked:
        place = "".join(question.content["context"].split())
        # no text that was shown goes on after this place
        # "It" is the beginning of one text and a word of others
        assert len(place) < 8 or [before for before in seen if place in before[:-1]] == []
        seen.append(place + "".join(question.content["target"].split()))


def test_a_database_of_the_version_before_goes_on(database: Database) -> None:
    made = site(database)
    player = Player(made, "comparison")
    player.to_play()
    with database.write() as transaction:
        names = ("block", "arm", "item_list", "n_failed", "rules_tries", "consent_version", "n_announced", "pointer")
        for name in names:
            transaction.execute(text(f"alter table session drop column {name}"))
        for name in ("frame_us", "hidden_ms", "n_hidden"):
            transaction.execute(text(f"alter table answer drop column {name}"))
        added = ("question add column reaches", "question add column n_answered", "assignment add column assigned_at")
        for column in added:
            transaction.execute(text(f"alter table {column} integer not null default 0"))
        transaction.execute(text("update alembic_version set version_num = '0001'"))
    opened = open_database(database.engine.url.render_as_string(hide_password=False))
    again = Player(site(opened), "comparison", None)
    again.client.cookies = player.client.cookies
    assert again.get("/play").url.path == "/play"
    for name, made_now in Base.metadata.tables.items():
        assert {column["name"] for column in inspect(opened.engine).get_columns(name)} == set(made_now.columns.keys())
    finish(again, "70")
    assert again.page.url.path == "/thanks"
    opened.close()
