"""Texts that a model writes after prompts, and how probable it finds the options of a question.

Transformers' ``generate`` draws from one stream for a whole batch. Here every answer has a stream of its own: a logits
processor draws its next token by inversion, and leaves ``generate`` this one token to take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import LARGEST_TREE, asked_log_probs
from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.prompting import end_tokens, option_tokens
from shannon_game.inference.lm.rows import normalised, run_batches

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class Generated:
    """What a model wrote.

    Parameters
    ----------
    text : tuple of str
        By prompt, without the token that ends an answer.
    finished : ndarray of bool, shape (prompt,)
        The model ended the answer, or the first line of it; otherwise it was cut off after the most tokens.
    """

    text: tuple[str, ...]
    finished: NDArray[np.bool_]


def generate(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    temperature: float = 0.0,
    seeds: Sequence[int] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Generated:
    """Write the first line of an answer to every prompt.

    An answer ends with a token that ends a text, with a line break after something visible, or after `max_tokens`
    tokens.

    Parameters
    ----------
    prompts : sequence of sequence of int
        With the BOS token (:func:`~shannon_game.inference.lm.prompting.prompt_tokens`).
    temperature : float
        0 takes the most probable token; otherwise draws are from the distribution to the power of 1 / temperature.
    seeds : sequence of int, shape (prompt,), optional
        Of the draws; needed above temperature 0.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> model = lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> from shannon_game.inference.lm.prompting import prompt_tokens
    >>> prompts = prompt_tokens(model, [("", "The old clock"), ("", "Rain fell")])
    >>> lm.generate(model, prompts, max_tokens=3).text == lm.generate(model, prompts[::-1], max_tokens=3).text[::-1]
    True
    """
    _check(model, prompts, max_tokens=max_tokens, temperature=temperature, seeds=seeds)
    uniform = np.zeros((len(prompts), max_tokens))
    if temperature > 0 and seeds is not None:
        uniform = np.stack([np.random.default_rng(int(seed)).random(max_tokens) for seed in seeds])
    texts, finished = [""] * len(prompts), np.zeros(len(prompts), dtype=np.bool_)

    def write(batch: NDArray[np.intp]) -> list[list[int]]:
        return _written(model, [prompts[i] for i in batch], uniform[batch], temperature)

    lengths = [len(prompt) + max_tokens for prompt in prompts]
    budget = model.settings.tokens_per_batch or LARGEST_TREE
    for batch, answers in run_batches(lengths, budget, write, of=(model, "answers")):
        for index, answer in zip(batch, answers, strict=True):
            texts[index], finished[index] = _read(model, answer)
        if progress is not None:
            progress(len(batch))
    return Generated(tuple(texts), finished)


def _written(
    model: LanguageModel, prompts: Sequence[Sequence[int]], uniform: NDArray[np.float64], temperature: float
) -> list[list[int]]:
    """Tokens of an answer to each prompt; after its end, whatever token fills the batch."""
    import torch  # noqa: PLC0415 - importing this module does not need it
    from transformers import GenerationConfig  # noqa: PLC0415

    longest = max(map(len, prompts))
    padding = getattr(model.module.config.get_text_config(), "pad_token_id", None) or 0
    tokens = torch.full((len(prompts), longest), padding, dtype=torch.int64)
    mask = torch.zeros_like(tokens)
    for row, prompt in enumerate(prompts):
        tokens[row, longest - len(prompt) :] = torch.tensor([int(token) for token in prompt])
        mask[row, longest - len(prompt) :] = 1

    def draw(before: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        log_probs = normalised(model, logits.float())
        chosen = log_probs.argmax(dim=-1, keepdim=True)
        if temperature > 0:
            weights = torch.softmax(log_probs.cpu().double() / temperature, dim=-1).cumsum(dim=-1)
            wanted = torch.from_numpy(uniform[:, before.shape[1] - longest, None]) * weights[:, -1:]
            drawn = torch.searchsorted(weights, wanted, right=True).clamp(max=weights.shape[1] - 1)
            chosen = drawn.to(log_probs.device)
        return torch.full_like(logits, -torch.inf).scatter_(1, chosen, 0.0)

    def ended(before: torch.Tensor, _scores: object, **_: object) -> torch.Tensor:
        return torch.tensor([_read(model, answer)[1] for answer in before[:, longest:].tolist()], device=before.device)

    settings = GenerationConfig(max_new_tokens=uniform.shape[1], do_sample=False, pad_token_id=padding)
    module: Any = model.module
    found = module.generate(
        input_ids=tokens.to(model.device),
        attention_mask=mask.to(model.device),
        generation_config=settings,
        logits_processor=[draw],
        stopping_criteria=[ended],
    )
    answers: list[list[int]] = found[:, longest:].tolist()
    return answers


def _check(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    temperature: float,
    seeds: Sequence[int] | None,
) -> None:
    if model.module.config.is_encoder_decoder:
        problem = "writes no answers here, as its encoder reads one text for all; use a causal model, such as gpt2"
        raise InputError(problem, source=f"model {model.name!r}")
    if max_tokens < 1:
        raise InputError(f"is {max_tokens}, should be at least 1", field="max_tokens")
    if not (np.isfinite(temperature) and temperature >= 0):
        raise InputError(f"is {temperature}, should be 0 or a number above it", field="temperature")
    if temperature > 0 and (seeds is None or len(seeds) != len(prompts)):
        given = "None" if seeds is None else f"{len(seeds)} numbers"
        raise InputError(f"is {given}, should be one number for each of the {len(prompts)} prompts", field="seeds")
    for position, tokens in enumerate(prompts):
        if not len(tokens):
            raise InputError(f"is empty at position {position}", field="prompts")
        if len(tokens) + max_tokens > model.max_tokens:
            raise InputError(
                f"prompt {position} has {len(tokens)} tokens, and {model.name} takes {model.max_tokens} with an answer "
                f"of {max_tokens}; shorten it",
                field="prompts",
            )


def _decoded(model: LanguageModel, tokens: Sequence[int]) -> str:
    known = [token for token in tokens if token < len(model.tokenizer)]
    return str(model.tokenizer.decode(known, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def _read(model: LanguageModel, answer: Sequence[int]) -> tuple[str, bool]:
    """Text of an answer up to its end, and whether it has one."""
    ends, text = end_tokens(model), ""
    for size, token in enumerate(answer, start=1):
        if token in ends:
            return text, True
        text = _decoded(model, answer[:size])
        if "\n" in text.lstrip():
            return text, True
    return text, False


def option_log_probs(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    options: Sequence[str],
    *,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """Log-probability that the first token of an answer is an option, with a space before it or without."""
    ids = [option_tokens(model, option) for option in options]
    _check(model, prompts, max_tokens=1, temperature=0.0, seeds=None)
    keys = [tuple(map(int, prompt)) for prompt in prompts]
    wanted = [token for its in ids for token in its]
    logprob, _ = asked_log_probs(model, dict.fromkeys(keys, wanted), progress=progress)
    found = [[np.logaddexp.reduce([logprob[key, token] for token in its]) for its in ids] for key in keys]
    return np.array(found).reshape(len(keys), len(ids))
