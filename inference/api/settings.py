"""How an endpoint is asked, and what it may cost."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

import numpy as np

from estimators.errors import InputError, unknown_choice

__all__ = ["ApiSettings", "Kind", "key_of"]

Kind = Literal["completions", "chat"]
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ApiSettings:
    """Settings of one model behind an endpoint.

    Attributes
    ----------
    base_url : str
        Up to the version, such as ``https://api.openai.com/v1``; https, unless the host is this machine.
    model : str
        As the endpoint calls it.
    kind : {"completions", "chat"}
        The text is continued (``/completions``), or is a user's message that the assistant goes on with
        (``/chat/completions``).
    top_logprobs : int
        Ranked tokens asked for; 20 is the most that OpenAI gives, 5 for its completions.
    reuse : bool
        Ask for `max_tokens` tokens at once, and go on with a completion while the SAMPLED tokens are the reference.
    max_tokens : int
        Tokens of a completion where completions are reused; 1 otherwise.
    temperature : float
        Of the sampled tokens. At 0 the sampled token is the most probable one, and reuse goes furthest.
    instruction : str
        System message of a chat; "" for none.
    key_env : str
        Environment variable with the key; "" for an endpoint without one.
    concurrency : int
        Calls at a time.
    timeout_s : float
        For one answer, seconds.
    max_attempts : int
        Of one call, the first included.
    backoff_s, backoff_max_s : float
        Waits between attempts are random up to ``backoff_s * 2**attempt``, at most `backoff_max_s`; an endpoint's
        ``Retry-After`` is kept to.
    usd_per_million_input, usd_per_million_output : float
        Price of a million tokens.
    budget_usd : float
        No call is made that could bring the cost above this.
    """

    base_url: str
    model: str
    kind: Kind = "completions"
    top_logprobs: int = 20
    reuse: bool = True
    max_tokens: int = 8
    temperature: float = 0.0
    instruction: str = "Continue the user's text. Answer with the continuation only."
    key_env: str = "OPENAI_API_KEY"
    concurrency: int = 4
    timeout_s: float = 60.0
    max_attempts: int = 8
    backoff_s: float = 1.0
    backoff_max_s: float = 60.0
    usd_per_million_input: float = 0.0
    usd_per_million_output: float = 0.0
    budget_usd: float = 0.0

    def __post_init__(self) -> None:
        source = "model=api"
        if self.kind not in get_args(Kind):
            raise unknown_choice("kind", self.kind, get_args(Kind), source=source)
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"is {self.base_url!r}, should start with https://", source=source, field="base_url")
        if parts.username or parts.password or parts.query:
            raise InputError(
                "has a name, password or query in it; the key comes from key_env", source=source, field="base_url"
            )
        if parts.scheme == "http" and parts.hostname not in _LOCAL and self.key_env:
            raise InputError(
                f"is {self.base_url!r}: a key is not sent over plain http; use https, or key_env=''",
                source=source,
                field="base_url",
            )
        if not self.model:
            raise InputError("is empty; name the endpoint's model", source=source, field="model")
        for name in ("top_logprobs", "max_tokens", "concurrency", "max_attempts"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"is {value!r}, should be a whole number of at least 1", source=source, field=name)
        for name, lowest in (
            *(("timeout_s", 1e-3), ("backoff_s", 0.0), ("backoff_max_s", 0.0), ("temperature", 0.0)),
            *(("usd_per_million_input", 0.0), ("usd_per_million_output", 0.0), ("budget_usd", 0.0)),
        ):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not np.isfinite(value)
                or value < lowest
            ):
                raise InputError(f"is {value!r}, should be a number of at least {lowest:g}", source=source, field=name)

    @property
    def tokens_per_call(self) -> int:
        """Tokens asked for in one call."""
        return self.max_tokens if self.reuse else 1

    def cost_usd(self, input_tokens: float, output_tokens: float) -> float:
        """Price of a call."""
        return (input_tokens * self.usd_per_million_input + output_tokens * self.usd_per_million_output) / 1e6


def key_of(settings: ApiSettings) -> str:
    """Read the key from the environment; "" where the endpoint needs none.

    Raises
    ------
    InputError
        If the variable is not set.
    """
    if not settings.key_env:
        return ""
    key = os.environ.get(settings.key_env, "").strip()
    if not key:
        raise InputError(
            f"the environment variable {settings.key_env} is not set; put the endpoint's key there, or set key_env='' "
            "where none is needed",
            source="model=api",
            field="key_env",
        )
    return key
