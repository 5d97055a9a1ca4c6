"""A game of somebody's own, three files and one line, through the pages, to an export and to a study."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import Database, open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.export import chosen_study, write_exports
from shannon_game.experiments.collect.games.cloze import same_word, typed_word
from shannon_game.experiments.collect.games.protocol import CHECK, Content, FormError, Reading, Steps
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.games.texts import WordGame
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.studies.collected.loader import collected_study
from tests.experiments.collect.players import Player, order_of, step_of

PAGE = """\
{% extends "base.html" %}{% from "parts.html" import play_fields, progress, standing, passage, problem_line %}
{% block main %}
<h1>{{ t("game.sure_word.name") }}</h1>
{{ progress(t, training, n_done + 1, n_all, n_done, standing(t, session.game, points, n_done)) }}
{{ passage(t, visible, view.context, signs=false, gap=true, cut=cut) }}
{{ problem_line(t, problem) }}
<form method="post" action="/play" class="play">{{ play_fields(csrf, order, step) }}
<label>{{ t("play.question_sure_word") }} <input name="word" required></label>
<label>{{ t("game.sure_word.sure") }} <input name="sure" type="number" min="0" max="10"></label>
<button>{{ t("play.submit") }}</button></form>
{% endblock %}
"""
TEXTS = """\
columns:
  sure: {type: integer, meaning: "how sure the participant is, from 0 to 10"}
en:
  name: A word and how sure
  about: Type the next word and say how sure you are.
  unit: whole words
  text: Type the next word.
  score: Ten points for a sure word that is right.
  rules: What do you type? | A sentence. | *One word. | Nothing.
  question: Which word is next?
  keys: Enter submits.
  sure: How sure are you?
  unsure: Say how sure you are, from 0 to 10.
"""


class SureWord(WordGame):
    """Type the next word, and say how sure you are."""

    name = "sure_word"
    columns = ("word", "sure")
    earns = "points"

    def read(self, content: Content, _layout: Content, _steps: Steps, form: Mapping[str, str], /) -> Reading:
        word, sure = typed_word(form.get("word", "")), form.get("sure", "")
        if CHECK in content:
            return Reading({"word": word, "sure": 0}, correct=same_word(word, content[CHECK]))
        if not sure.isdecimal():
            raise FormError("game.sure_word.unsure")
        right = same_word(word, content["target"])
        return Reading({"word": word, "sure": int(sure)}, correct=right, score=float(right) * int(sure))

    def rows(self, _content: Content, _layout: Content, value: Content, _steps: Steps, /) -> list[dict[str, Any]]:
        return [{name: value[name] for name in self.columns}]

    def feedback(self, content: Content, _layout: Content, _steps: Steps, value: Content, /) -> dict[str, Any]:
        right = same_word(value["word"], content["target"])
        return {"target": content["target"], "word": value["word"], "correct": right}


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The game, registered."""
    (tmp_path / "play_sure_word.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "sure_word.yaml").write_text(TEXTS, encoding="utf-8")
    monkeypatch.setattr(SureWord, "folder", tmp_path)
    monkeypatch.setitem(GAMES, "sure_word", SureWord())
    return "sure_word"


@pytest.fixture
def database(tmp_path: Path) -> Any:
    opened = open_database(f"sqlite:///{tmp_path / 'own.sqlite'}")
    yield opened
    opened.close()


def place(player: Player) -> dict[str, str]:
    return {"order": order_of(player.page), "step": step_of(player.page)}


SHORT: dict[str, Any] = {"training_rounds": 0, "attention_share": 0, "before": None, "after": None}


def test_a_game_of_ones_own_is_played_exported_and_analysed(game: str, database: Database, tmp_path: Path) -> None:
    player = Player(app(CollectSettings(game=game, n_questions=3, **SHORT), collect_demo(), database), game)
    player.begin("?PROLIFIC_PID=ann&STUDY_ID=s&SESSION_ID=a")
    player.post("/consent", agree="yes")
    assert "Ten points for a sure word" in player.page.text
    player.post("/instructions", **right_answers(game))
    fields = {"word": "the", "sure": "7"}
    for number in range(3):
        hidden = place(player)
        if number == 0:
            refused = player.post("/play", **hidden, word="the")
            assert refused.status_code == 422
            assert "from 0 to 10" in refused.text
        assert "the" in player.post("/play", **hidden, **fields).text
        player.get("/play")
    assert player.page.url.path == "/thanks"
    with database.read() as transaction:
        write_exports(transaction, chosen_study(transaction), tmp_path / "export")
    table = pd.read_csv(tmp_path / "export" / "answers_sure_word.csv")
    assert table[["game", "word", "sure"]].drop_duplicates().to_numpy().tolist() == [[game, "the", 7]]
    assert len(table) == 3
    package = json.loads((tmp_path / "export" / "datapackage.json").read_text(encoding="utf-8"))
    told = {one["name"]: one for one in package["resources"][0]["schema"]["fields"]}
    assert told["sure"]["description"] == "how sure the participant is, from 0 to 10"
    assert game in told["game"]["constraints"]["enum"]
    study = collected_study(url=f"sqlite:///{tmp_path / 'own.sqlite'}", game=game)
    assert study.attrs["kind"] == "cloze"
    assert study.sizes["response"] == 3


def test_answers_of_a_game_that_is_not_registered_are_not_left_out(
    game: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = Player(app(CollectSettings(game=game, n_questions=1, **SHORT), collect_demo(), database), game)
    player.begin("?PROLIFIC_PID=ann&STUDY_ID=s&SESSION_ID=a")
    player.post("/consent", agree="yes")
    player.post("/instructions", **right_answers(game))
    player.post("/play", **place(player), word="the", sure="7")
    monkeypatch.delitem(GAMES, game)
    with pytest.raises(InputError, match="sure_word"), database.read() as transaction:
        write_exports(transaction, chosen_study(transaction), tmp_path / "export")
    with pytest.raises(InputError, match="sure_word"):
        CollectSettings(game=game)
