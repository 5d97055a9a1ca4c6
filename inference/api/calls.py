"""One call: its body, its identity, and the ranked tokens in its answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inference.api.settings import ApiSettings

__all__ = ["Call", "Position", "UnusableAnswerError", "call_for", "positions_of", "usage_of"]


class UnusableAnswerError(Exception):
    """The endpoint answered, but not with what was asked for; the message says what is missing."""


@dataclass(frozen=True)
class Call:
    """One request.

    Attributes
    ----------
    path : str
        Below the base URL.
    body : mapping
        JSON.
    key : str
        SHA-256 of endpoint, path and body: the identity under which the answer is stored, and the call's
        ``Idempotency-Key``. Two calls with the same body are one call.
    most_input_tokens, most_output_tokens : int
        No tokenizer of bytes makes more of it.
    """

    path: str
    body: Mapping[str, Any]
    key: str
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
    body: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": settings.tokens_per_call,
        "temperature": settings.temperature,
    }
    n_bytes = len(context.encode("utf-8", "surrogatepass"))
    if settings.kind == "completions":
        path = "completions"
        body |= {"prompt": context, "logprobs": settings.top_logprobs}
    else:
        path = "chat/completions"
        system = [{"role": "system", "content": settings.instruction}] if settings.instruction else []
        body |= {
            "messages": [*system, {"role": "user", "content": context}],
            "logprobs": True,
            "top_logprobs": settings.top_logprobs,
        }
        n_bytes += len(settings.instruction.encode()) + _CHAT_OVERHEAD_TOKENS
    identity = json.dumps([settings.base_url.rstrip("/"), path, body], sort_keys=True)
    key = hashlib.sha256(identity.encode()).hexdigest()
    # one more than the bytes for a token that may stand before every text
    return Call(path, body, key, n_bytes + 1, settings.tokens_per_call)


def positions_of(answer: Any, top_logprobs: int) -> list[Position]:
    """Read the ranked tokens of an answer, of completions or of a chat.

    An endpoint may list the sampled token besides the best ones, and in any order: the list is sorted and cut.

    Raises
    ------
    UnusableAnswerError
        If there is no choice or it has no usable log-probabilities.
    """
    try:
        choice = answer["choices"][0]
    except (KeyError, IndexError, TypeError):
        raise UnusableAnswerError("the answer has no choices") from None
    found = choice.get("logprobs") if isinstance(choice, Mapping) else None
    if not isinstance(found, Mapping):
        raise UnusableAnswerError("the answer has no logprobs; does the endpoint give them for this model?")
    try:
        if found.get("content") is not None:
            return [
                _position(
                    entry["token"],
                    [(other["token"], other["logprob"]) for other in entry["top_logprobs"]],
                    top_logprobs,
                )
                for entry in found["content"]
            ]
        return [
            _position(token, list(ranked.items()), top_logprobs)
            for token, ranked in zip(found["tokens"], found["top_logprobs"], strict=True)
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnusableAnswerError(f"the answer's logprobs cannot be read ({type(error).__name__}: {error})") from None


def _position(sampled: Any, ranked: Sequence[tuple[Any, Any]], top_logprobs: int) -> Position:
    if not isinstance(sampled, str) or not ranked:
        raise ValueError("a position has no token or no ranked tokens")
    values = [(str(token), float(logprob)) for token, logprob in ranked]
    if not all(np.isfinite(logprob) and logprob <= 1e-3 for _, logprob in values):
        raise ValueError("a log-probability is above 0 or not finite")
    # stable, so that equally probable tokens stay as the endpoint lists them
    values = sorted(values, key=lambda pair: -pair[1])[:top_logprobs]
    return Position(sampled, tuple(token for token, _ in values), tuple(min(logprob, 0.0) for _, logprob in values))


def usage_of(answer: Any) -> tuple[int, int] | None:
    """Tokens that the endpoint says were paid for, (input, output); None if it does not say."""
    usage = answer.get("usage") if isinstance(answer, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    values = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if any(isinstance(value, bool) or not isinstance(value, int) or value < 0 for value in values):
        return None
    return int(values[0] or 0), int(values[1] or 0)
