"""One call: its body, its identity, and the ranked tokens in its answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.inference.api.settings import ApiSettings

# OpenAI writes -9999 for what is very improbable; no softmax gives less
_LEAST_LOGPROB = -1e4
# endpoints round, and some compute with 8 bits
_SUM_SLACK = 0.01
# a million contexts of the longest kind; a number above it is none that anybody counted
_MOST_TOKENS = 10**12
_CHARACTERS_A_TOKEN = 8
_LONGEST_NAME = 80


class UnusableAnswerError(Exception):
    """The endpoint answered, but not with what was asked for; the message says what is missing."""


class WrongAnswerError(UnusableAnswerError):
    """The answer is whole and cannot be used, so that it is likely to come again."""


@dataclass(frozen=True)
class Call:
    """One request; two calls with the same body are one call, and have one key."""

    path: str
    body: Mapping[str, Any]
    # SHA-256 of endpoint, path and body: the answer's place in the store, and the call's Idempotency-Key
    key: str
    # no tokenizer of bytes makes more
    most_input_tokens: int
    most_output_tokens: int


@dataclass(frozen=True)
class Position:
    """One position of a completion: the token that was sampled, and the ranked ones, most probable first."""

    sampled: str
    token: tuple[str, ...]
    logprob: tuple[float, ...]


# roles and separators of a chat's messages are tokens too
_CHAT_OVERHEAD_TOKENS = 32


def call_for(settings: ApiSettings, context: str) -> Call:
    """Build the call that asks how a text goes on."""
    return build_call(
        settings,
        prompt=context,
        messages=[*([("system", settings.instruction)] if settings.instruction else []), ("user", context)],
        max_tokens=settings.tokens_per_call,
        temperature=settings.temperature,
        ranked=True,
    )


def build_call(
    settings: ApiSettings,
    *,
    prompt: str,
    messages: Sequence[tuple[str, str]],
    max_tokens: int,
    temperature: float,
    ranked: bool = False,
    seed: int = 0,
    more: Mapping[str, Any] | None = None,
) -> Call:
    """Build a call of either kind: completions take `prompt`, a chat takes `messages`, each a role and a text."""
    # 1 and 1.0 are one setting
    body: dict[str, Any] = {"model": settings.model, "max_tokens": max_tokens, "temperature": float(temperature)}
    body |= ({"seed": seed} if seed else {}) | dict(more or {})
    if settings.kind == "completions":
        path, texts, overhead = "completions", [prompt], 0
        body |= {"prompt": prompt} | ({"logprobs": settings.top_logprobs} if ranked else {})
    else:
        path, texts, overhead = "chat/completions", [text for _, text in messages], _CHAT_OVERHEAD_TOKENS
        body["messages"] = [{"role": role, "content": text} for role, text in messages]
        body |= {"logprobs": True, "top_logprobs": settings.top_logprobs} if ranked else {}
    identity = json.dumps([settings.base_url.rstrip("/"), path, body], sort_keys=True)
    try:
        n_bytes = sum(len(text.encode()) for text in texts)
    except UnicodeEncodeError:
        raise InputError("holds half a character (a lone surrogate)", field="text") from None
    # one more than the bytes for a token that may stand before every text
    return Call(path, body, hashlib.sha256(identity.encode()).hexdigest(), n_bytes + overhead + 1, max_tokens)


def scoring_call(settings: ApiSettings, text: str) -> Call:
    """Build the call that asks how probable a text's tokens are; some servers have to write a token as well."""
    if settings.kind != "completions":
        problem = "is 'chat', whose template stands around a text; kind=completions scores texts"
        raise InputError(problem, source=Set("model", ["api"]), field="kind")
    more = {"echo": True, "logprobs": 1} if settings.text_scores == "echo" else {"prompt_logprobs": 0}
    return build_call(settings, prompt=settings.bos + text, messages=[], max_tokens=1, temperature=0.0, more=more)


def text_of(content: bytes, encoding: str | None, most: int) -> str:
    """Read an answer's bytes; UnusableAnswerError where they are too many, compressed, or no UTF-8."""
    if len(content) > most:
        raise WrongAnswerError(f"the answer is longer than max_answer_bytes={most}")
    if encoding not in (None, "", "identity"):
        raise WrongAnswerError(f"the answer is compressed ({encoding}), though it was asked for as it is")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnusableAnswerError("the answer is not JSON") from None


def answer_of(text: str) -> Any:
    """Read an answer's JSON; UnusableAnswerError where it is none, or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise WrongAnswerError("the answer is nested too deeply") from None
    except ValueError:
        raise UnusableAnswerError("the answer is not JSON") from None


def model_of(answer: Any, settings: ApiSettings) -> str:
    """Name of an answer's model, which is the one asked for where it names none; another one is refused."""
    named = answer.get("model") if isinstance(answer, Mapping) else None
    if named is None:
        return settings.model
    accepted = (settings.model, *settings.accept_model_names)
    # what an alias stands for, such as gpt-4o-2024-08-06 for gpt-4o
    dated = re.escape(settings.model) + r"-[0-9]{4}(-?[0-9]{2}){0,2}"
    if isinstance(named, str) and (named in accepted or "*" in accepted or re.fullmatch(dated, named)):
        # it goes into a study's notes
        return named.encode("utf-8", "replace").decode()[:_LONGEST_NAME]
    raise WrongAnswerError(
        f"the answer is of the model {str(named)[:_LONGEST_NAME]!r}, not of {settings.model!r}; if that is its name "
        "there, put it in accept_model_names"
    )


def choice_of(answer: Any) -> Mapping[str, Any]:
    """The first choice of an answer."""
    try:
        choice = answer["choices"][0]
    except (KeyError, IndexError, TypeError):
        raise UnusableAnswerError("the answer has no choices") from None
    if not isinstance(choice, Mapping):
        raise WrongAnswerError("the answer's choice is no object")
    return choice


def positions_of(answer: Any, call: Call) -> list[Position]:
    """Read the ranked tokens of an answer, of completions or of a chat."""
    found = choice_of(answer).get("logprobs")
    most = call.body.get("top_logprobs", call.body.get("logprobs"))
    if not isinstance(found, Mapping):
        raise UnusableAnswerError("the answer has no logprobs; does the endpoint give them for this model?")
    with readable():
        if found.get("content") is not None:
            pairs = [
                (entry["token"], [(other["token"], other["logprob"]) for other in entry["top_logprobs"]])
                for entry in listed(found["content"])
            ]
        else:
            both = zip(listed(found["tokens"]), listed(found["top_logprobs"]), strict=True)
            pairs = [(token, list(ranked.items())) for token, ranked in both]
        return [_position(token, ranked, most) for token, ranked in pairs]


@contextmanager
def readable() -> Iterator[None]:
    """Refuse logprobs of another shape than they should have."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WrongAnswerError(f"the answer's logprobs cannot be read ({type(error).__name__}: {error})") from None


def listed(value: Any) -> list[Any]:
    """A list of tokens or their logprobs."""
    if not isinstance(value, list):
        raise TypeError("tokens or their logprobs are not a list")
    return value


def token_of(value: Any) -> str:
    """A token's text."""
    if not isinstance(value, str):
        raise TypeError("a token is not a text")
    if has_half_character(value):
        raise ValueError("a token holds half a character (a lone surrogate)")
    return value


def has_half_character(text: str) -> bool:
    """Whether a text holds a lone surrogate, which no file can."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def logprob_of(value: Any) -> float:
    """A token's log-probability, at most 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a log-probability is not a number")
    if not _LEAST_LOGPROB <= value <= 1e-3:
        raise ValueError(f"a log-probability is above 0, below {_LEAST_LOGPROB:.0f} or not finite")
    return min(float(value), 0.0)


def _position(sampled: Any, ranked: Sequence[tuple[Any, Any]], most: int | None) -> Position:
    if not ranked:
        raise ValueError("a position has no ranked tokens")
    own = [(token_of(token), logprob_of(logprob)) for token, logprob in ranked]
    total = float(np.exp([logprob for _, logprob in own]).sum())
    if total > 1 + _SUM_SLACK:
        raise ValueError(f"the probabilities of one list add up to {total:.4g}")
    # stable, so that equally probable tokens stay as the endpoint lists them
    values = sorted(own, key=lambda pair: -pair[1])[:most]
    return Position(token_of(sampled), tuple(token for token, _ in values), tuple(logprob for _, logprob in values))


def tokens_paid(call: Call, answer: Any) -> tuple[int, int]:
    """Tokens to be booked, (input, output): what the endpoint says, or the most where that cannot be."""
    # a count below a token for every eight characters (languages have three to five) is not believed
    usage = answer.get("usage") if isinstance(answer, Mapping) else None
    told = usage if isinstance(usage, Mapping) else {}
    messages = call.body.get("messages") or [{"content": call.body.get("prompt", "")}]
    sent = _fewest("".join(message["content"] for message in messages))
    choice = answer["choices"][0]
    message, logprobs = choice.get("message"), choice.get("logprobs")
    text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
    lists = [logprobs.get("content"), logprobs.get("tokens")] if isinstance(logprobs, Mapping) else []
    received = max([_fewest(text), *(len(tokens) for tokens in lists if isinstance(tokens, list))])
    # what comes back of the text is no output
    received = 0 if call.body.get("echo") else received

    def believed(name: str, least: int, most: int) -> int:
        value = told.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and max(least, 1) <= value <= _MOST_TOKENS:
            return value
        return max(least, most)

    return (
        believed("prompt_tokens", sent, call.most_input_tokens),
        believed("completion_tokens", received, call.most_output_tokens),
    )


def _fewest(text: Any) -> int:
    return -(-len(text) // _CHARACTERS_A_TOKEN) if isinstance(text, str) else 0
