"""Top-1, guess until right and bets: what is taken, what is refused, and what is stored."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from sqlalchemy import select

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import Database, open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.games.bets import Bets, bet_points
from shannon_game.experiments.collect.games.guess_until_right import GuessUntilRight
from shannon_game.experiments.collect.games.protocol import FormError
from shannon_game.experiments.collect.games.top1 import Top1
from shannon_game.experiments.collect.games.vocabulary import read_vocabulary
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.collect.tables import Assignment, Question
from tests.experiments.collect.players import Player, answers, order_of, step_of

SMALL: dict[str, Any] = {"n_questions": 3, "training_rounds": 0, "attention_share": 0, "before": None, "after": None}
ASKED = {"context": "Call me", "target": "Ishmael.", "most_guesses": 3}


@pytest.fixture
def database() -> Iterator[Database]:
    opened = open_database("sqlite://")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    return collect_demo()


def entered(database: Database, study: xr.Dataset, game: str, **settings: Any) -> Player:
    player = Player(app(CollectSettings(game=game, **SMALL | settings), study, database), game)
    player.begin()
    player.post("/consent", agree="yes")
    player.post("/instructions", **right_answers(game))
    return player


def target_of(player: Player, database: Database) -> str:
    """The target of the question that is open, which no page tells."""
    with database.read() as transaction:
        query = select(Question.content).join(Assignment).where(Assignment.state == "open")
        return str(transaction.scalars(query).one()["target"])


def is_last_place(database: Database) -> bool:
    """Whether the text of the question that is open has no later place."""
    with database.read() as transaction:
        query = select(Question).join(Assignment).where(Assignment.state == "open")
        asked = transaction.scalars(query).one()
        later = select(Question.id).where(
            Question.game == asked.game, Question.document == asked.document, Question.position > asked.position
        )
        return transaction.scalars(later).first() is None


# ---- what is refused, in words


@pytest.mark.parametrize(
    ("form", "key"),
    [
        ({}, "error.chips_left"),
        ({"word1": "later", "chips1": "40", "chips_other": "61"}, "error.chips_over"),
        ({"word1": "later", "chips1": "0", "chips_other": "100"}, "error.word_without_chips"),
        ({"chips1": "40", "chips_other": "60"}, "error.chips_without_word"),
        ({"word1": "a", "chips1": "50", "word2": "A,", "chips2": "50"}, "error.bet_twice"),
        ({"word1": "a b", "chips1": "50", "chips_other": "50"}, "error.one_word"),
        ({"word1": "a", "chips1": "-50", "chips_other": "150"}, "error.no_chips"),
        ({"word1": "a", "chips1": "५०", "chips_other": "50"}, "error.no_chips"),
        ({"word1": "a\x00", "chips1": "50", "chips_other": "50"}, "error.strange_word"),
        ({"word1": "a" * 61, "chips1": "50", "chips_other": "50"}, "error.long_word"),
    ],
)
def test_bets_that_are_none_are_refused(form: dict[str, str], key: str) -> None:
    with pytest.raises(FormError) as caught:
        Bets().read(ASKED, {}, [], form)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("form", "hit", "share"),
    [
        ({"word1": "ishmael", "chips1": "100"}, 0, 1.0),
        ({"word2": " Ishmael", "chips2": "25", "word1": "later", "chips1": "75"}, 1, 0.25),
        ({"word1": "later", "chips1": "40", "chips_other": "60"}, None, 0.6 / 50_000),
        ({"word5": "later", "chips5": "100"}, None, 0.005 / 50_000),
    ],
)
def test_the_points_of_a_bet_are_the_log_of_the_share(form: dict[str, str], hit: int | None, share: float) -> None:
    reading = Bets().read(ASKED, {}, [], form)
    assert reading.value["hit"] == hit
    assert reading.correct is (hit is not None)
    assert reading.score == pytest.approx(100 * (1 + math.log(share) / math.log(50_000)))


def test_the_best_bet_is_the_belief() -> None:
    """Of all bets on one word in steps of a chip, the one with the belief's share has the highest expected points."""
    belief = 0.3

    def expected(chips: int) -> float:
        return belief * bet_points(chips, named=True) + (1 - belief) * bet_points(100 - chips, named=False)

    assert max(range(101), key=expected) == 30


@pytest.mark.parametrize(
    ("word", "key"), [("", "error.no_word"), ("a b", "error.one_word"), ("x" * 61, "error.long_word")]
)
def test_guesses_that_are_none_are_refused(word: str, key: str) -> None:
    with pytest.raises(FormError) as caught:
        GuessUntilRight().read(ASKED, {}, [{"word": "later"}], {"word": word})
    assert caught.value.key == key


@pytest.mark.parametrize("token", ["thequick", " The quick", "  the the", "the ", "x" * 500, "<script>x"])
def test_what_is_no_token_is_refused(token: str) -> None:
    content = {"target": " me", "vocabulary": read_vocabulary(CollectSettings().vocabulary).name}
    with pytest.raises(FormError, match=r"error\.not_a_token"):
        Top1().read(content, {}, [], {"token": token})


# ---- vocabularies


def test_a_tokenizer_file_has_the_same_tokens_as_the_list(tmp_path: Path) -> None:
    content = {
        "pre_tokenizer": {"type": "ByteLevel"},
        "added_tokens": [{"content": "<|end|>"}],
        "model": {"vocab": {"<|end|>": 0, "Ġthe": 1, "Ċ": 2, "é": 3, "Ã©": 4}},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "list.jsonl").write_text('" the"\n"\\n"\n"é"\n', encoding="utf-8")
    first, second = (read_vocabulary(tmp_path / name) for name in ("tokenizer.json", "list.jsonl"))
    # a byte that is no whole character is left out
    assert first.tokens == second.tokens == {" the", "\n", "é"}
    assert first.name == second.name


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", b"the\n", "should have one JSON string a line"),
        ("a.jsonl", b"", "has no tokens"),
        ("a.jsonl.gz", gzip.compress(b"x" * 1000, mtime=0)[:20], "cannot be read"),
        ("tokenizer.json", b'{"decoder": "ByteLevel", "model": {}}', "should have one JSON string a line"),
    ],
)
def test_files_that_are_no_vocabulary_are_refused(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_vocabulary(tmp_path / name)


# ---- through the pages


def test_top1_goes_on_place_by_place_and_shows_the_token_of_the_text(database: Database, study: xr.Dataset) -> None:
    player = entered(database, study, "top1")
    # a text is begun at any of its places: another one, where that is the last
    while is_last_place(database):
        player.post("/change-document")
    for given in (" the", None):
        target = target_of(player, database)
        player.answer(target if given is None else given)
        assert player.page.url.path == "/feedback"
        assert ("✓" in player.page.text) == (given in (None, target))
        player.get("/play")
    (_, _, first), (answer, assignment, second) = answers(database)
    assert second.position > first.position
    assert first.document == second.document
    assert assignment.policy == "next"
    assert answer.correct
    assert answer.score == 1.0
    assert second.content["context"].startswith(first.content["context"])


def test_the_document_can_be_changed_at_any_time(database: Database, study: xr.Dataset) -> None:
    player = entered(database, study, "top1")
    first = order_of(player.page)
    player.post("/change-document")
    assert player.page.url.path == "/play"
    assert order_of(player.page) != first
    with database.read() as transaction:
        left, asked = transaction.scalars(select(Assignment).order_by(Assignment.order)).all()
        held = transaction.scalars(select(Question.n_held).where(Question.id == left.question_id)).one()
    assert (left.state, asked.state, asked.policy, held) == ("skipped", "open", "balanced", 0)
    assert entered(open_database("sqlite://"), study, "bets").post("/change-document").status_code == 404


def test_the_page_can_ask_whether_a_text_is_a_token(database: Database, study: xr.Dataset) -> None:
    player = entered(database, study, "top1")
    for text, is_token in ((" the", True), ("the", True), (" thequick", False), ("", False)):
        assert player.client.get("/token", params={"text": text}).json() == {"token": is_token}, text


def test_guesses_stay_until_the_word_is_right_and_each_has_its_time(database: Database, study: xr.Dataset) -> None:
    player = entered(database, study, "guess_until_right", most_guesses=4)
    target = target_of(player, database)
    for number, guess in enumerate(("zebra", "xylophone")):
        assert step_of(player.page) == str(number)
        player.answer(guess)
        assert player.page.url.path == "/play"
        assert guess in player.page.text
    # a reload changes nothing, and the same form sent again neither
    assert step_of(player.get("/play")) == "2"
    again = player.post("/play", order=order_of(player.page), step="1", word="xylophone")
    assert again.url.path == "/play"
    assert player.post("/play", order="0", step="1", word="other").status_code == 409
    player.get("/play")
    player.answer(target)
    assert player.page.url.path == "/feedback"
    [(answer, assignment, _)] = answers(database)
    assert answer.value == {"word": target, "n_guesses": 3, "found": True}
    assert [step["word"] for step in assignment.steps] == ["zebra", "xylophone"]
    times = [*(step["server_ms"] for step in assignment.steps), answer.server_ms]
    assert times == sorted(times)
    assert times[0] >= 0
