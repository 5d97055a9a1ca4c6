"""How an endpoint is asked, and what it may cost."""

from __future__ import annotations

import os
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.keys import KeyVariable, may_hold_key
from shannon_game.inference.settings import Count, Names, Settings

Kind = Literal["completions", "chat"]
Amount = Annotated[float, Field(ge=0)]
_PAID = ("usd_per_million_input", "usd_per_million_output", "budget_usd")


class ApiSettings(Settings):
    """One model behind an endpoint: how it is asked, and what it may cost."""

    source: Literal["api"] = "api"
    """Tells an endpoint from a model that runs here."""
    base_url: str = ""
    """Up to the version, such as https://api.openai.com/v1; https, unless the host is this machine."""
    model: str = ""
    """As the endpoint calls it."""
    accept_model_names: Names = ()
    """Other names that answers may give the model (a dated one, such as NAME-2024-08-06, always); '*' for any."""
    kind: Kind = "completions"
    """completions: the text is continued; chat: it is a user's message that the assistant goes on with."""
    top_logprobs: Count = 20
    """Ranked tokens asked for; 20 is the most that OpenAI gives, 5 for its completions."""
    reuse: bool = True
    """Ask for max_tokens tokens at once, and go on with a completion while the SAMPLED tokens are the reference."""
    max_tokens: Count = 8
    """Tokens of a completion where completions are reused; 1 otherwise."""
    calls_per_window: Count | None = None
    """End a window after so many calls, however many tokens they scored (exhaustive); null: after its last token."""
    temperature: Amount = 0.0
    """Of the sampled tokens. At 0 the sampled token is the most probable one, and reuse goes furthest."""
    text_scores: Literal["echo", "prompt_logprobs"] = "echo"
    """How a text is scored by surprisal: by echo with logprobs, or by vLLM's prompt_logprobs, which has ranks."""
    bos: str = ""
    """Token put before a text that is scored, such as ``<|endoftext|>``, where the server itself puts none there."""
    instruction: str = "Continue the user's text. Answer with the continuation only."
    """System message of a chat; '' for none."""
    free: bool | None = None
    """Nothing is paid: prices, budget and key may be left out. null: so it is on this machine and in its network."""
    key_env: KeyVariable | None = None
    """NAME of the environment variable with the key, in capitals; '' for none. null: OPENAI_API_KEY, free: none."""
    concurrency: Count = 4
    """Calls at a time."""
    timeout_s: Annotated[float, Field(ge=1e-3)] = 60.0
    """For one whole answer, from connecting to its last byte, seconds."""
    max_answer_bytes: Count = 10_000_000
    """A longer answer is not read to its end, and not used."""
    max_attempts: Count = 8
    """Of one call, the first included."""
    backoff_s: Amount = 1.0
    """Waits between attempts are random up to backoff_s * 2**attempt; an endpoint's Retry-After is kept to."""
    backoff_max_s: Amount = 60.0
    """The longest wait, seconds."""
    usd_per_million_input: Amount | None = None
    """Price of a million tokens of a context; null where it is free."""
    usd_per_million_output: Amount | None = None
    """Price of a million tokens of an answer; null where it is free."""
    budget_usd: Amount | None = None
    """No call is made that could bring the cost above this; null where it is free."""

    @model_validator(mode="after")
    def _key_is_safe(self) -> ApiSettings:
        if not self.base_url:
            return self
        if may_hold_key(self.base_url):
            raise InputError("has a name, password or query in it; the key comes from key_env", field="base_url")
        parts = urlsplit(self.base_url)
        try:
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            # a port above 65,535
            is_address = False
        if not is_address:
            raise InputError(f"is {self.base_url!r}, should be https://HOST/v1 or the like", field="base_url")
        if parts.scheme == "http" and self.key_variable and not self.is_here:
            raise InputError(
                f"is {self.base_url!r}: a key is not sent over plain http; use https, or key_env=''", field="base_url"
            )
        return self

    @model_validator(mode="after")
    def _is_whole(self) -> ApiSettings:
        """Name all that has no value at once, in the order of the settings."""
        wanted = ("base_url", "model") if self.base_url and self.is_free else ("base_url", "model", *_PAID)
        missing = [name for name in wanted if getattr(self, name) in ("", None)]
        if missing:
            why = "has no value yet; give it one" if len(missing) == 1 else "have no value yet; give each one"
            if set(missing) & set(_PAID):
                why += "; where nothing is paid, as on this machine, free=true is enough"
            if self.key_env is None and not self.is_free and "OPENAI_API_KEY" not in os.environ:
                why += "; nor is the environment variable OPENAI_API_KEY set, for the key (or name another by key_env)"
            raise InputError(why, field=", ".join(missing))
        return self

    @property
    def is_here(self) -> bool:
        """The endpoint is on this machine."""
        address = _address(self.base_url)
        return address == "localhost" if isinstance(address, str) else address.is_loopback

    @property
    def is_free(self) -> bool:
        """Nothing is paid: as said, or where the endpoint is on this machine or in its network."""
        address = _address(self.base_url)
        if self.free is not None or not address:
            return bool(self.free)
        # a name without a dot is none of the internet
        return ("." not in address or address.endswith(".local")) if isinstance(address, str) else address.is_private

    @property
    def key_variable(self) -> str:
        """Environment variable of the key; "" for none."""
        return self.key_env if self.key_env is not None else "" if self.is_free else "OPENAI_API_KEY"

    def record(self) -> dict[str, Any]:
        """Plain values that tell it from others, for outputs: of the address the host alone."""
        own = {"source": "api", "endpoint_model": self.model, "host": urlsplit(self.base_url).hostname}
        return {**own, "text_scores": self.text_scores, "bos": self.bos}

    @property
    def tokens_per_call(self) -> int:
        """Tokens asked for in one call."""
        return self.max_tokens if self.reuse else 1

    def cost_usd(self, input_tokens: float, output_tokens: float) -> float:
        """Price of a call."""
        prices = self.usd_per_million_input or 0.0, self.usd_per_million_output or 0.0
        return (input_tokens * prices[0] + output_tokens * prices[1]) / 1e6


def _address(base_url: str) -> IPv4Address | IPv6Address | str:
    """Host of an address, as a number where it is one; "" where there is none."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return ""
    try:
        return ip_address(host)
    except ValueError:
        return host
