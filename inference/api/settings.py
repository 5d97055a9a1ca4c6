"""How an endpoint is asked, and what it may cost."""

from __future__ import annotations

import os
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from estimators.errors import InputError
from inference.settings import Count, Settings, Text

__all__ = ["ApiSettings", "Kind", "key_of"]

Kind = Literal["completions", "chat"]
Amount = Annotated[float, Field(ge=0)]
_LOCAL = ("localhost", "127.0.0.1", "::1")


class ApiSettings(Settings):
    """One model behind an endpoint: how it is asked, and what it may cost."""

    source: Literal["api"] = "api"
    """Tells an endpoint from a model that runs here."""
    base_url: str
    """Up to the version, such as https://api.openai.com/v1; https, unless the host is this machine."""
    model: Text
    """As the endpoint calls it."""
    kind: Kind = "completions"
    """completions: the text is continued; chat: it is a user's message that the assistant goes on with."""
    top_logprobs: Count = 20
    """Ranked tokens asked for; 20 is the most that OpenAI gives, 5 for its completions."""
    reuse: bool = True
    """Ask for max_tokens tokens at once, and go on with a completion while the SAMPLED tokens are the reference."""
    max_tokens: Count = 8
    """Tokens of a completion where completions are reused; 1 otherwise."""
    temperature: Amount = 0.0
    """Of the sampled tokens. At 0 the sampled token is the most probable one, and reuse goes furthest."""
    instruction: str = "Continue the user's text. Answer with the continuation only."
    """System message of a chat; '' for none."""
    key_env: str = "OPENAI_API_KEY"
    """Environment variable with the key, which is in no log and no output; '' for an endpoint without one."""
    concurrency: Count = 4
    """Calls at a time."""
    timeout_s: Annotated[float, Field(ge=1e-3)] = 60.0
    """For one answer, seconds."""
    max_attempts: Count = 8
    """Of one call, the first included."""
    backoff_s: Amount = 1.0
    """Waits between attempts are random up to backoff_s * 2**attempt; an endpoint's Retry-After is kept to."""
    backoff_max_s: Amount = 60.0
    """The longest wait, seconds."""
    usd_per_million_input: Amount = 0.0
    """Price of a million tokens of a context."""
    usd_per_million_output: Amount = 0.0
    """Price of a million tokens of an answer."""
    budget_usd: Amount = 0.0
    """No call is made that could bring the cost above this."""

    @model_validator(mode="after")
    def _key_is_safe(self) -> ApiSettings:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"is {self.base_url!r}, should start with https://", field="base_url")
        if parts.username or parts.password or parts.query:
            raise InputError("has a name, password or query in it; the key comes from key_env", field="base_url")
        if parts.scheme == "http" and parts.hostname not in _LOCAL and self.key_env:
            raise InputError(
                f"is {self.base_url!r}: a key is not sent over plain http; use https, or key_env=''", field="base_url"
            )
        return self

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
