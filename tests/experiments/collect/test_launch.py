"""A study is fixed when it is launched: what a restart may change, what it is refused, and who goes on."""

from __future__ import annotations

import re
import resource
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from sqlalchemy import select
from starlette.testclient import TestClient

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import Database, open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.export import pay_table, tidy_answers
from shannon_game.experiments.collect.games.registry import chosen_contexts
from shannon_game.experiments.collect.games.texts import items_alone
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import CollectSettings, PaySettings, RecruiterSettings
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.collect.tables import Assignment, Question, Session, Study
from shannon_game.experiments.studies.comparison.file import comparison_file, save_comparison_study
from tests.experiments.collect.players import Player

SMALL: dict[str, Any] = {"game": "cloze", "n_questions": 4, "training_rounds": 1, "attention_share": 0.25}
N_TIGHT = 23
"""Comparisons for which a list of two texts has just enough room, after three free answers."""


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    return collect_demo()


def test_a_restart_that_changes_the_study_is_refused_and_nobody_is_locked_out(
    database: Database, study: xr.Dataset
) -> None:
    player = Player(app(CollectSettings(**SMALL), study, database), "cloze")
    player.to_play()
    player.answer("the")
    for changed, message in (
        ({"n_questions": 30}, r"n_questions: is 30, and 'collect_demo' was launched with 4; give what it"),
        ({"pay": {"base": 3.0}}, r"pay\.base: is 3\.0, .* was launched with 0\.0"),
        ({"n_questions": 9, "feedback": False}, r"is 9, .*; feedback is false, was null; .*collection='NAME'"),
    ):
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
    with pytest.raises(InputError, match=r'consent\.en: is \["Another text\.", '):
        app(CollectSettings(**SMALL, consent=consent), study, database)
    with pytest.raises(InputError, match=r"languages: names en and de, .*write .*consent\.de\.md"):
        app(CollectSettings(**SMALL, consent=consent, languages=("en", "de")), study, database)
    made = app(CollectSettings(**SMALL, consent=consent, collection="second"), study, database).state.collection
    assert made.study_id != first
    assert made.study_name == "second"


def test_visits_that_cannot_be_filled_are_refused_and_nothing_is_launched(
    database: Database, study: xr.Dataset
) -> None:
    texts = [str(name) for name in study["document_name"].to_numpy()]
    with pytest.raises(InputError, match=r"lists\.short: a visit asks 5000 questions of cloze, and \d+ fit"):
        app(CollectSettings(**SMALL | {"n_questions": 5000}, lists={"short": texts[:1]}), study, database)
    drawn = chosen_contexts(study, CollectSettings(game="cloze", contexts=9))
    with pytest.raises(InputError, match=r"lists\.B: names 'nowhere', .* set contexts to None"):
        app(CollectSettings(**SMALL, contexts=9, lists={"B": ("nowhere",)}), drawn, database)
    with database.read() as transaction:
        assert not transaction.scalars(select(Study)).all()
    app(CollectSettings(**SMALL, lists={"short": texts[:1], "other": texts[1:]}), study, database)


@pytest.mark.parametrize("order", ["balanced", "random"])
def test_every_visit_of_a_tight_list_is_asked_what_was_announced(
    database: Database, study: xr.Dataset, order: str
) -> None:
    """All places of a text are open to the first question, and the later ones give the earlier ones away."""
    blocks = [{"game": "cloze", "n_questions": 3, "training_rounds": 1}]
    blocks += [{"game": "comparison", "n_questions": N_TIGHT, "training_rounds": 1}]
    settings: dict[str, Any] = {"blocks": blocks, "attention_share": 0, "before": None, "after": None}
    lists = {"A": ("moby_dick.txt", "alice.txt"), "B": ("bohemia.txt", "peter_pan.txt")}
    alone = items_alone(study)
    # a question that the server answers by itself takes an item
    token = alone["candidate_token"]
    alone["candidate_token"] = token.where(token != alone["target_token"], " zebra")
    blocks[1]["n_questions"] = 50
    with pytest.raises(InputError, match=r"lists\.[AB]: a visit asks 53 questions of cloze and comparison"):
        app(CollectSettings(**settings, lists=lists), alone, database)
    blocks[1]["n_questions"] = N_TIGHT
    made = app(CollectSettings(**settings, lists=lists, questions=order), alone, database)
    for _ in range(8):
        player = Player(made, "cloze")
        player.begin()
        player.post("/consent", agree="yes")
        for player.game, given in (("cloze", "the"), ("comparison", "70")):
            player.post("/instructions", **right_answers(player.game))
            player.play_all(given)
    with database.read() as transaction:
        table = pay_table(transaction, made.state.collection.study_id, PaySettings())
        named = {name: set(items) for name, items in lists.items()}
        query = select(Session.item_list, Question.document, Assignment.training).select_from(Assignment)
        asked = transaction.execute(query.join(Session).join(Question)).all()
    assert table["state"].tolist() == ["done"] * 8
    assert table["n_answers"].tolist() == table["n_announced"].tolist() == [3 + N_TIGHT] * 8
    for name, document, training in asked:
        # people practise on texts of no list
        assert (document in named[name]) != training
        assert not (training and document in named["A"] | named["B"])


def test_a_visit_that_a_quota_ends_is_marked(database: Database, study: xr.Dataset) -> None:
    settings: dict[str, Any] = {"game": "comparison", "n_questions": 4, "training_rounds": 0, "attention_share": 0}
    settings |= {"answers_per_question": 1, "before": None, "after": None, "comprehension": False}
    made = app(CollectSettings(**settings), study.isel(item=slice(0, 6)), database)
    for _ in range(2):
        player = Player(made, "comparison")
        player.begin()
        player.post("/consent", agree="yes")
        player.post("/instructions")
        player.play_all("70")
    with database.read() as transaction:
        table = pay_table(transaction, 1, PaySettings())
        [announced] = tidy_answers(transaction, "comparison", study_ids=[1])["n_announced"].unique()
    assert table["n_announced"].tolist() == [4, 4]
    assert table["n_answers"].iloc[1] < 4
    assert announced == 4


def test_the_plan_of_the_page_is_launched_and_played_as_it_stands(
    database: Database, study: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "collect.md").read_text()
    plan = page.split("```yaml\n# my_plan.yaml;")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("my_plan.yaml").write_text(f"#{plan}")
    Path("consent.md").write_text("What we ask, and what is stored.")
    Path("before.yaml").write_text('- {name: age_years, text: "How old are you?", kind: number}')
    save_comparison_study(study, Path("study.nc"))
    settings = CollectSettings(plan="my_plan.yaml")
    made = app(settings, comparison_file(path=settings.served), database)
    client = TestClient(made, base_url="https://testserver")
    player = Player(made, "cloze", client)
    assert player.get("/").status_code == 403
    player.begin("?PROLIFIC_PID=ann&STUDY_ID=s&SESSION_ID=a")
    for said in ("How old are you?", "after 3 tries", "If you answer 2 of them", "60 days"):
        assert said in player.page.text
    player.post("/consent", agree="yes")
    player.post("/before", **{"q-age_years": "30"})
    for player.game, given in (("cloze", "the"), ("comparison", "0")):
        player.post("/instructions", **right_answers(player.game))
        while player.page.url.path == "/play":
            asked = re.search("all the way to ([AB])", player.page.text)
            player.answer({"A": "-93", "B": "93"}[asked[1]] if asked else given)
            player.get("/play")
    assert 'href="https://app.prolific.com/submissions/complete?cc=C1A2B3"' in player.page.text
    with database.read() as transaction:
        [row] = pay_table(transaction, 1, settings.pay).to_dict("records")
    assert (row["n_answers"], row["n_announced"], row["total"]) == (40, 40, 6.0)
    assert (row["completion_code"], row["game"]) == ("C1A2B3", "cloze and comparison")


def test_a_full_disk_is_no_health_and_loses_no_answer(tmp_path: Path, study: xr.Dataset) -> None:
    opened = open_database(f"sqlite:///{tmp_path / 'c.sqlite'}")
    player = Player(app(CollectSettings(**SMALL, feedback=True), study, opened), "cloze")
    player.to_play()
    asked, before = player.page, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        statuses = player.get("/healthz").status_code, player.client.get("/").status_code
        player.page = asked
        refused = player.answer("the")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (*statuses, refused.status_code) == (503, 200, 503)
    assert player.get("/healthz").text == "ok\n"
    player.page = asked
    assert player.answer("the").url.path == "/feedback"
    opened.close()
