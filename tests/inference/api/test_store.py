"""The file of paid answers: damaged, full, foreign, not to be written; and answers in it that cannot be used."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.inference.api.calls import call_for
from shannon_game.inference.api.scoring import score_windows
from shannon_game.inference.api.store import AnswerStore
from tests.inference.api.fake_server import KEY
from tests.inference.api.hostile_server import Say, answer, hostile, says, then
from tests.inference.api.test_hostile import asked, settings, windows

OTHER = says(answer(model="else"))


@pytest.fixture
def url() -> Iterator[str]:
    with hostile({"good": says(), "other": OTHER, "mixed": then(says(), OTHER, OTHER, says())}) as (address, _):
        yield address


def change(store: Path, command: str, *values: object) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute(command, values)
    connection.close()


def one_line(problem: Callable[[], object], *says: str) -> None:
    with pytest.raises(InputError) as caught:
        problem()
    said = str(caught.value)
    assert said.isprintable()
    for text in says:
        assert text in said


@pytest.mark.parametrize("damage", ["", "{}", None, b"\xff\xfe"])
def test_a_damaged_answer(url: str, tmp_path: Path, damage: object) -> None:
    store = tmp_path / "s.db"
    assert asked(settings(url, "good"), store) is None
    change(store, "UPDATE answers SET answer = ?", damage)
    one_line(lambda: score_windows(windows(), settings(url, "good"), store), str(store), "is damaged")


@pytest.mark.parametrize("at", [0, 20, 4096, 8192])
def test_a_damaged_file(url: str, tmp_path: Path, at: int) -> None:
    store = tmp_path / "s.db"
    assert asked(settings(url, "good"), store, 8) is None
    content = bytearray(store.read_bytes())
    content[at : at + 3000] = b"\xa5" * 3000
    store.write_bytes(content)
    one_line(lambda: score_windows(windows(8), settings(url, "good"), store), str(store))


def test_a_full_disk(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer that came is lost, and in the books; nothing else is."""
    store = tmp_path / "s.db"
    assert asked(settings(url, "good"), store, 8) is None
    begin = AnswerStore.begin

    def full_after(self: AnswerStore, *given: object) -> int | None:
        attempt = begin(self, *given)  # type: ignore[arg-type]
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        self._connection.execute(f"PRAGMA max_page_count = {pages}")
        return attempt

    monkeypatch.setattr(AnswerStore, "begin", full_after)
    one_line(
        lambda: score_windows(windows(60), settings(url, "good"), store),
        str(store),
        "cannot be read or written (database or disk is full)",
    )
    monkeypatch.undo()
    monkeypatch.setenv("FAKE_KEY", KEY)
    with AnswerStore(store) as answers:
        ledger = answers.ledger()
    assert 8 <= ledger.n_answers < 60
    # what was in flight, and what began before the others heard of it
    assert ledger.n_unsure <= 8
    assert asked(settings(url, "good"), store, 60) is None


def test_a_database_of_another_kind(tmp_path: Path) -> None:
    change(tmp_path / "s.db", "CREATE TABLE bookmarks (url TEXT)")
    before = (tmp_path / "s.db").read_bytes()
    one_line(lambda: AnswerStore(tmp_path / "s.db"), "is a database, but not a store of answers")
    assert (tmp_path / "s.db").read_bytes() == before
    with AnswerStore(tmp_path / "t.db"):
        pass
    change(tmp_path / "t.db", "UPDATE about SET format = 'shannon-game answers 9'")
    one_line(lambda: AnswerStore(tmp_path / "t.db"), "is of another format, 'shannon-game answers 9'")


@pytest.mark.parametrize("poison", [answer(sampled="\ud83d"), answer(text=KEY), [1]])
def test_a_stored_answer_that_cannot_be_used_does_not_stop_a_resume(url: str, tmp_path: Path, poison: object) -> None:
    store = tmp_path / "s.db"
    assert asked(settings(url, "good"), store, 2) is None
    chosen = settings(url, "good")
    key, text = call_for(chosen, "once 0").key, json.dumps(poison)
    change(store, "UPDATE answers SET answer = ? WHERE key = ?", text, key)
    change(store, "UPDATE sums SET sum = ? WHERE key = ?", hashlib.sha256(text.encode()).hexdigest(), key)
    assert asked(chosen, store, 2) is None
    with AnswerStore(store) as answers:
        assert (answers.ledger().n_answers, answers.ledger().n_apart) == (2, 1)
    assert KEY.encode() not in store.read_bytes()


def test_an_answer_kept_apart_is_used_when_the_settings_allow_it(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with hostile({"other": OTHER}) as (url, counted):
        said = asked(settings(url, "other"), store)
        assert said is not None
        assert "2 answers to one call cannot be used" in said
        assert str(store) in said
        assert counted["other"] == 2
        assert asked(settings(url, "other", accept_model_names=["else", "more"]), store) is None
        assert asked(settings(url, "other", accept_model_names="*"), store) is None
        assert counted["other"] == 2


def test_a_window_without_a_usable_answer_is_left_out_and_counted(url: str, tmp_path: Path) -> None:
    chosen = settings(url, "mixed", concurrency=1)
    for _ in range(2):
        study = score_windows(windows(4), chosen, tmp_path / "s.db")
        assert study["window"].values.tolist() == ["0", "2", "3"]
        left_out = [note for note in notes(study) if note["text"].startswith("windows left out")]
        assert [(note["count"], note["level"]) for note in left_out] == [(1, "warning")]
        assert "of the model 'else'" in left_out[0]["text"]


def test_a_proxy_does_not_see_calls_to_this_machine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def proxy(_: object, number: int) -> None:
        seen.append(number)

    say: Say = proxy
    with hostile({"": say}) as (address, _):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, address)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        assert asked(settings(url, "good"), tmp_path / "s.db") is None
    assert seen == []


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_a_store_and_its_folder_are_its_owners_alone(url: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    store = tmp_path / "new" / "s.db"
    modes = []

    def progress(*_: int) -> None:
        modes.extend(path.stat().st_mode & 0o777 for path in store.parent.iterdir())

    score_windows(windows(), settings(url, "good"), store, progress=progress)
    assert modes == [0o600] * 3
    assert store.parent.stat().st_mode & 0o777 == 0o700
    store.chmod(0o644)
    assert asked(settings(url, "good"), store) is None
    assert store.stat().st_mode & 0o777 == 0o600
    # what others made keeps its mode: a folder, and a database that is none of ours
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE a (b)")
    foreign.chmod(0o644)
    one_line(lambda: AnswerStore(foreign), "not a store of answers")
    assert foreign.stat().st_mode & 0o777 == 0o644
