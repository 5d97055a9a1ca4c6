"""Questions to an endpoint that answers in text: the calls, what is read, what is paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from shannon_game.inference.api.calls import UnusableAnswerError, WrongAnswerError
from shannon_game.inference.api.chat import ChatAnswer, ChatQuestion, chat_call, read_answer
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.stopping import ask_each
from tests.inference.api.fake_server import serving
from tests.inference.api.talking_server import TalkingEndpoint
from tests.inference.api.test_api import settings

CALL = chat_call(settings("http://localhost"), ChatQuestion("", "Hello", max_tokens=5))


def echo(system: str, user: str) -> tuple[str, dict[str, float]]:
    return f"{system}|{user}", {"A": 0.6, " A": 0.1, "B": 0.2}


def questions(n: int, **changes) -> list[ChatQuestion]:
    return [ChatQuestion("Be brief.", f"Question {number}", max_tokens=5, **changes) for number in range(n)]


@pytest.mark.parametrize("kind", ["chat", "completions"])
def test_every_question_has_its_answer(tmp_path: Path, kind: str) -> None:
    with serving(TalkingEndpoint(echo)) as endpoint:
        its = settings(endpoint.url, kind=kind)
        calls = [chat_call(its, question) for question in questions(5, ranked=True)]
        found, ledger = ask_each(calls, its, tmp_path / "s.db", read_answer)
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
