"""Questions to an endpoint that answers in text: the calls, what is read, what is paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from shannon_game.inference.api.calls import UnusableAnswerError, WrongAnswerError
from shannon_game.inference.api.chat import ChatAnswer, ChatQuestion, ask_questions, chat_call, read_answer
from shannon_game.inference.api.client import UnusableCallError
from shannon_game.inference.api.settings import ApiSettings
from tests.inference.api.fake_server import KEY, serving, three_in_ten
from tests.inference.api.talking_server import TalkingEndpoint
from tests.inference.api.test_api import settings


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")


CALL = chat_call(settings("http://localhost"), ChatQuestion("", "Hello", max_tokens=5))


def echo(system: str, user: str) -> tuple[str, dict[str, float]]:
    return f"{system}|{user}", {"A": 0.6, " A": 0.1, "B": 0.2}


def questions(n: int, **changes) -> list[ChatQuestion]:
    return [ChatQuestion("Be brief.", f"Question {number}", max_tokens=5, **changes) for number in range(n)]


@pytest.mark.parametrize("kind", ["chat", "completions"])
def test_every_question_has_its_answer(tmp_path: Path, kind: str) -> None:
    with serving(TalkingEndpoint(echo)) as endpoint:
        found, ledger = ask_questions(questions(5, ranked=True), settings(endpoint.url, kind=kind), tmp_path / "s.db")
    for number, answer in enumerate(found):
        said = f"Be brief.|Question {number}" if kind == "chat" else f"|Be brief.\n\nQuestion {number}\n"
        assert isinstance(answer, ChatAnswer)
        assert answer.text == said
        assert answer.finished
        assert answer.first is not None
        assert answer.first.token == ("A", "B", " A")
    assert ledger.n_answers == 5
    assert all(body["max_tokens"] == 5 for body in endpoint.bodies)


def test_the_key_of_a_question_stays() -> None:
    """Another one would pay again for every answer on disk."""
    question = ChatQuestion("Be brief.", "Hello", max_tokens=5, draw=2, ranked=True)
    call = chat_call(ApiSettings(base_url="https://host/v1", model="m", kind="chat"), question)
    assert call.key == "15fe93a6ab4c78f9d4916146567ff23784eb5be9c1561b6f81e6c2d68676ee6f"


def test_nothing_is_paid_twice_whatever_fails(tmp_path: Path) -> None:
    asked = questions(12)
    with serving(TalkingEndpoint(echo, fault=three_in_ten(3, ("429", "500", "truncated")))) as endpoint:
        first, _ = ask_questions(asked, settings(endpoint.url), tmp_path / "s.db")
        n_requests = endpoint.n_requests
        assert sum(endpoint.faults.values()) > 0
        again, ledger = ask_questions(asked + asked[:3], settings(endpoint.url), tmp_path / "s.db")
        assert endpoint.n_requests == n_requests
    assert set(endpoint.charged.values()) == {1}
    assert again == first + first[:3]
    assert ledger.n_answers == 12


def test_a_question_without_a_usable_answer_does_not_end_the_others(tmp_path: Path) -> None:
    def says(system: str, user: str) -> tuple[str, dict[str, float]]:
        # half a character
        return ("\ud83d" if user.endswith("2") else "yes"), {}

    with serving(TalkingEndpoint(says)) as endpoint:
        found, ledger = ask_questions(
            questions(4), settings(endpoint.url, concurrency=1, kind="chat"), tmp_path / "s.db"
        )
    assert [isinstance(its, UnusableCallError) for its in found] == [False, False, True, False]
    assert ledger.n_apart == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({}, UnusableAnswerError),
        ({"choices": ["yes"]}, WrongAnswerError),
        ({"choices": [{"message": {"content": None}}]}, WrongAnswerError),
        ({"choices": [{"text": "a", "logprobs": {"tokens": ["a"], "top_logprobs": [{"a": 1.0}]}}]}, WrongAnswerError),
    ],
)
def test_answers_that_cannot_be_used(answer, error) -> None:
    with pytest.raises(error):
        read_answer(answer, CALL)
