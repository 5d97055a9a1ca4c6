"""An OpenAI-style endpoint over a real causal language model: plain transformers, one question at a time.

Nothing of ``shannon_game.inference.lm`` computes its answers: what comes through it is compared with what the engine
says.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from shannon_game.inference.lm.language_model import LanguageModel
from tests.inference.api.fake_server import FakeEndpoint, never


class ModelEndpoint(FakeEndpoint):
    """Answers ``/v1/completions`` and ``/v1/chat/completions``, with log-probabilities where they are asked for."""

    def __init__(self, model: LanguageModel, name: str = "real") -> None:
        super().__init__(never)
        self.model = model
        self.name = name

    def answer(self, path: str, body: dict[str, Any]) -> bytes:
        is_chat = path.endswith("chat/completions")
        prompt = self.prompt(body["messages"]) if is_chat else self.start + body["prompt"]
        ids: list[int] = self.model.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        if "echo" in body or "prompt_logprobs" in body:
            return self.scored(ids, body)
        n_prompt, n_ranked = len(ids), int((body.get("top_logprobs") if is_chat else body.get("logprobs")) or 0)
        ends = {self.model.tokenizer.eos_token_id, self.model.bos_id}
        generator = torch.Generator().manual_seed(int(body.get("seed", 0)))
        positions: list[tuple[str, list[tuple[str, float]]]] = []
        finished = False
        while not finished and len(ids) - n_prompt < body["max_tokens"]:
            with torch.inference_mode():
                logits = self.model.module(input_ids=torch.tensor([ids])).logits[0, -1].double()
            ranked = torch.log_softmax(logits, dim=-1).topk(max(n_ranked, 1))
            token = int(ranked.indices[0])
            if body["temperature"]:
                weights = torch.softmax(logits / body["temperature"], dim=-1)
                token = int(torch.multinomial(weights, 1, generator=generator))
            best = zip(map(self.text, ranked.indices.tolist()), ranked.values.tolist(), strict=True)
            positions.append((self.text(token), list(best)))
            finished = token in ends
            ids += [] if finished else [token]
        text = self.model.tokenizer.decode(ids[n_prompt:])
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop" if finished else "length"}
        choice |= {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        choice["logprobs"] = (listed_chat if is_chat else listed_plain)(positions) if n_ranked else None
        usage = {"prompt_tokens": n_prompt, "completion_tokens": len(positions)}
        return json.dumps({"model": self.name, "choices": [choice], "usage": usage}).encode()

    def scored(self, ids: list[int], body: dict[str, Any]) -> bytes:
        """A prompt's own tokens, by ``echo`` with one more token, or by ``prompt_logprobs``."""
        with torch.inference_mode():
            logits = self.model.module(input_ids=torch.tensor([ids])).logits[0].double()
        logprob = torch.log_softmax(logits, dim=-1)
        own = [float(logprob[at, token]) for at, token in enumerate(ids[1:])]
        ranks = [int((logprob[at] > value).sum()) + 1 for at, value in enumerate(own)]
        names = list(map(self.text, ids))
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length", "text": self.text(int(logprob[-1].argmax()))}
        if body.get("echo"):
            names.append(choice["text"])
            given = {"tokens": names, "token_logprobs": [None, *own, float(logprob[-1].max())]}
            choice |= {"text": "".join(names), "logprobs": given}
        else:
            entries = zip(ids[1:], own, ranks, names[1:], strict=True)
            choice["prompt_logprobs"] = [
                None,
                *({str(i): {"logprob": p, "rank": r, "decoded_token": name}} for i, p, r, name in entries),
            ]
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1}
        return json.dumps({"model": self.name, "choices": [choice], "usage": usage}).encode()

    def prompt(self, messages: list[dict[str, str]]) -> str:
        """The messages as the model was trained on them; without a template, as texts with an empty line between."""
        if self.model.tokenizer.chat_template:
            return str(self.model.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        said = "\n\n".join(message["content"] for message in messages)
        return f"{self.start}{said}\n"

    @property
    def start(self) -> str:
        """What stands before a text."""
        return "" if self.model.bos_id is None else self.text(self.model.bos_id)

    def text(self, token: int) -> str:
        """A token alone."""
        return str(self.model.tokenizer.decode([token]))


def listed_chat(positions: list[tuple[str, list[tuple[str, float]]]]) -> dict[str, Any]:
    """Log-probabilities as of a chat."""
    return {
        "content": [
            {
                "token": token,
                "logprob": ranked[0][1],
                "top_logprobs": [{"token": other, "logprob": value} for other, value in ranked],
            }
            for token, ranked in positions
        ]
    }


def listed_plain(positions: list[tuple[str, list[tuple[str, float]]]]) -> dict[str, Any]:
    """Log-probabilities as of completions: a mapping, in which tokens of the same text are one."""
    top: list[dict[str, float]] = []
    for _, ranked in positions:
        top.append({})
        for text, value in ranked:
            top[-1].setdefault(text, value)
    return {"tokens": [token for token, _ in positions], "top_logprobs": top}
