"""Questions to an endpoint that answers in text: the call, what its answer says, and many of them side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.calls import (
    CHAT_OVERHEAD_TOKENS,
    Call,
    Position,
    UnusableAnswerError,
    WrongAnswerError,
    call_key,
    positions_of,
)
from shannon_game.inference.api.client import ApiClient, UnusableCallError
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.stopping import first_signal_waits, gathered
from shannon_game.inference.api.store import AnswerStore, Ledger


@dataclass(frozen=True)
class ChatQuestion:
    """A question to an endpoint; an empty text is left out.

    Attributes
    ----------
    draw : int
        The same question is asked once for every number, which above 0 is sent as ``seed``.
    ranked : bool
        Ask for the most probable first tokens too.
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
    said = {"system": question.system, "user": question.user}
    messages = [{"role": role, "content": text} for role, text in said.items() if text]
    if not messages:
        raise InputError("is empty", field="question")
    body: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": question.max_tokens,
        "temperature": float(question.temperature),
    }
    if question.draw:
        body["seed"] = question.draw
    if settings.kind == "completions":
        path = "completions"
        body["prompt"] = "\n\n".join(message["content"] for message in messages) + "\n"
        body |= {"logprobs": settings.top_logprobs} if question.ranked else {}
    else:
        path = "chat/completions"
        body["messages"] = messages
        body |= {"logprobs": True, "top_logprobs": settings.top_logprobs} if question.ranked else {}
    n_bytes = sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in messages)
    most = n_bytes + CHAT_OVERHEAD_TOKENS
    return Call(path, body, call_key(settings, path, body), most, question.max_tokens)


def answer_reader(settings: ApiSettings) -> Callable[[Any], ChatAnswer]:
    """Make what reads an answer's text, and its first token's ranking where it has one."""

    def read(answer: Any) -> ChatAnswer:
        try:
            choice = answer["choices"][0]
        except (KeyError, IndexError, TypeError):
            raise UnusableAnswerError("the answer has no choices") from None
        if not isinstance(choice, Mapping):
            raise WrongAnswerError("the answer's choice is no object")
        message = choice.get("message")
        text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
        if text is None and isinstance(message, Mapping) and message.get("refusal") is not None:
            # a refusal is an answer, and none that can be read
            text = str(message["refusal"])
        if not isinstance(text, str):
            raise WrongAnswerError("the answer has no text")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise WrongAnswerError("the answer's text holds half a character (a lone surrogate)")
        ranked = positions_of(answer, settings.top_logprobs) if choice.get("logprobs") else []
        return ChatAnswer(
            text,
            finished=choice.get("finish_reason") == "stop",
            first=ranked[0] if ranked else None,
        )

    return read


def ask_questions(
    questions: Sequence[ChatQuestion],
    settings: ApiSettings,
    store: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[ChatAnswer | UnusableCallError], Ledger]:
    """Ask an endpoint many questions, each once.

    Every answer is in the store before it is used: the same call resumes a stopped run and pays nothing twice. Ctrl-C
    and SIGTERM let the calls in flight end first.

    Parameters
    ----------
    store : Path
        SQLite file of :class:`~shannon_game.inference.api.store.AnswerStore`.
    progress : callable, optional
        Takes how many questions are answered, and of how many.

    Returns
    -------
    answers : list of ChatAnswer or UnusableCallError
        By question; the error where two whole answers cannot be used, once any other question had a usable one.
    ledger : Ledger

    Raises
    ------
    InputError
        As :meth:`shannon_game.inference.api.client.ApiClient.answer`.
    StoppedError
        After a signal whose handler raises nothing.
    """
    done = 0

    async def one(client: ApiClient[ChatAnswer], question: ChatQuestion) -> ChatAnswer:
        nonlocal done
        found = await client.answer(chat_call(settings, question))
        done += 1
        if progress is not None:
            progress(done, len(questions))
        return found

    async def all_of(store: AnswerStore) -> list[ChatAnswer | UnusableCallError]:
        async with ApiClient(settings, store, answer_reader(settings)) as client:
            return await gathered(client, [one(client, question) for question in questions], when_asked)

    with AnswerStore(store) as answers:
        with first_signal_waits() as when_asked:
            found = asyncio.run(all_of(answers))
        return found, answers.ledger()
