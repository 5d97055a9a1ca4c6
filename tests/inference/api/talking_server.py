"""An endpoint that answers in text, by a function of the question, with the fake endpoint's books and faults."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from tests.inference.api.fake_server import FakeEndpoint, never


class TalkingEndpoint(FakeEndpoint):
    """`says` takes what system and user say, and gives the answer and the probabilities of its first token."""

    def __init__(
        self,
        says: Callable[[str, str], tuple[str, Mapping[str, float]]],
        *,
        fault: Callable[[int], str | None] = never,
        finish: str = "stop",
        ranks: bool = True,
    ) -> None:
        super().__init__(fault)
        self.says = says
        self.finish = finish
        self.ranks = ranks

    def answer(self, path: str, body: dict[str, Any]) -> bytes:
        by_role = {message["role"]: message["content"] for message in body.get("messages", [])}
        user = by_role.get("user", body.get("prompt", ""))
        text, first = self.says(by_role.get("system", ""), user)
        is_chat = path.endswith("chat/completions")
        choice: dict[str, Any] = {"finish_reason": self.finish}
        choice |= {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        ranked = sorted(first.items(), key=lambda pair: -pair[1])
        if body.get("logprobs") and self.ranks and is_chat:
            listed = [{"token": token, "logprob": math.log(p)} for token, p in ranked]
            choice["logprobs"] = {"content": [{"token": ranked[0][0], "logprob": -1.0, "top_logprobs": listed}]}
        elif body.get("logprobs") and self.ranks:
            choice["logprobs"] = {
                "tokens": [ranked[0][0]],
                "top_logprobs": [{token: math.log(p) for token, p in ranked}],
            }
        return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}).encode()
