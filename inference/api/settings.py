"""How an endpoint is asked, and what it may cost."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.keys import KeyVariable, may_hold_key
from shannon_game.inference.settings import Count, Names, Settings, Text

Kind = Literal["completions", "chat"]
Amount = Annotated[float, Field(ge=0)]


class ApiSettings(Settings):
    """One model behind an endpoint: how it is asked, and what it may cost."""

    source: Literal["api"] = "api"
    """Tells an endpoint from a model that runs here."""
    base_url: str
    """Up to the version, such as https://api.openai.com/v1; https, unless the host is this machine."""
    model: Text
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
    key_env: KeyVariable = "OPENAI_API_KEY"
    """NAME of the environment variable with the key, in capitals; '' for an endpoint without one."""
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
    usd_per_million_input: Amount = 0.0
    """Price of a million tokens of a context."""
    usd_per_million_output: Amount = 0.0
    """Price of a million tokens of an answer."""
    budget_usd: Amount = 0.0
    """No call is made that could bring the cost above this."""

    @model_validator(mode="after")
    def _key_is_safe(self) -> ApiSettings:
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
        if parts.scheme == "http" and self.key_env and not self.is_here:
            raise InputError(
                f"is {self.base_url!r}: a key is not sent over plain http; use https, or key_env=''", field="base_url"
            )
        return self

    @property
    def is_here(self) -> bool:
        """The endpoint is on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def tokens_per_call(self) -> int:
        """Tokens asked for in one call."""
        return self.max_tokens if self.reuse else 1

    def cost_usd(self, input_tokens: float, output_tokens: float) -> float:
        """Price of a call."""
        return (input_tokens * self.usd_per_million_input + output_tokens * self.usd_per_million_output) / 1e6
