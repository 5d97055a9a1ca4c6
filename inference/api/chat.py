"""Questions to an endpoint that answers in text: the call, and what its answer says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.calls import (
    Call,
    Position,
    WrongAnswerError,
    build_call,
    choice_of,
    has_half_character,
    positions_of,
)
from shannon_game.inference.api.settings import ApiSettings


@dataclass(frozen=True)
class ChatQuestion:
    """A question to an endpoint; an empty text is left out.

    It is asked once for every number `draw`, which above 0 is sent as ``seed``; `ranked` asks for the most probable
    first tokens too.
    """

    system: str
    user: str
    max_tokens: int
    temperature: float = 0.0
    draw: int = 0
    ranked: bool = False


@dataclass(frozen=True)
class ChatAnswer:
    """An endpoint's answer: ``finished`` where the model ended it, ``first`` the ranked first tokens if asked for."""

    text: str
    finished: bool
    first: Position | None = None


def chat_call(settings: ApiSettings, question: ChatQuestion) -> Call:
    """Build the call of a question."""
    messages = [(role, text) for role, text in (("system", question.system), ("user", question.user)) if text]
    if not messages:
        raise InputError("is empty", field="question")
    return build_call(
        settings,
        prompt="\n\n".join(text for _, text in messages) + "\n",
        messages=messages,
        max_tokens=question.max_tokens,
        temperature=question.temperature,
        ranked=question.ranked,
        seed=question.draw,
    )


def read_answer(answer: Any, call: Call) -> ChatAnswer:
    """Read an answer's text, and its first token's ranking where it was asked for."""
    choice = choice_of(answer)
    message = choice.get("message")
    text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
    if text is None and isinstance(message, Mapping) and message.get("refusal") is not None:
        # a refusal is an answer, and none that can be read
        text = str(message["refusal"])
    if not isinstance(text, str):
        raise WrongAnswerError("the answer has no text")
    if has_half_character(text):
        raise WrongAnswerError("the answer's text holds half a character (a lone surrogate)")
    ranked = positions_of(answer, call) if choice.get("logprobs") else []
    finished = choice.get("finish_reason") == "stop"
    return ChatAnswer(text, finished, first=ranked[0] if ranked else None)
