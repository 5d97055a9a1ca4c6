"""Texts that a model writes after prompts, and how probable it finds the options of a question.

Transformers' own ``generate`` draws from one stream for a whole batch, trusts every cache, and shares no beginning of
prompts; here an answer depends on its own seed alone, and a cache is held to a whole pass first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import common_start, reduce_last
from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.probes import mean_difference
from shannon_game.inference.lm.prompting import end_tokens, option_tokens
from shannon_game.inference.lm.rows import log_probs_of

if TYPE_CHECKING:
    import torch

# of kept states against a whole pass, on average over the vocabulary: rounding alone, of 32 bits or 16
_MOST_NATS, _MOST_NATS_HALF = 1e-4, 0.2


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

    What prompts begin with alike is computed once, where the model's cache allows it. An answer ends with a token that
    ends a text, with a line break after something visible, or after `max_tokens` tokens.

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
    >>> prompts = lm.prompt_tokens(model, [("", "The old clock"), ("", "Rain fell")])
    >>> lm.generate(model, prompts, max_tokens=3).text == lm.generate(model, prompts[::-1], max_tokens=3).text[::-1]
    True
    """
    _check(model, prompts, max_tokens=max_tokens, temperature=temperature, seeds=seeds)
    ends = end_tokens(model)
    texts, finished = [""] * len(prompts), np.zeros(len(prompts), dtype=np.bool_)
    passes = _Passes(model)
    # in lexicographic order, neighbours have most in common
    for index in sorted(range(len(prompts)), key=lambda i: tuple(prompts[i])):
        tokens = [int(token) for token in prompts[index]]
        n_prompt = len(tokens)
        draws = np.zeros(max_tokens)
        if temperature > 0 and seeds is not None:
            draws = np.random.default_rng(int(seeds[index])).random(max_tokens)
        for draw in draws.tolist():
            token = _next(passes.after(tokens), temperature, draw)
            if token in ends:
                finished[index] = True
                break
            tokens.append(token)
            texts[index] = _decoded(model, tokens[n_prompt:])
            if "\n" in texts[index].lstrip():
                finished[index] = True
                break
        if progress is not None:
            progress(1)
    return Generated(tuple(texts), finished)


def _check(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    temperature: float,
    seeds: Sequence[int] | None,
) -> None:
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


def _next(log_probs: torch.Tensor, temperature: float, draw: float) -> int:
    if temperature == 0:
        return int(log_probs.argmax())
    values = log_probs.double().cpu().numpy() / temperature
    cumulative = np.exp(values - values.max()).cumsum()
    return int(min(np.searchsorted(cumulative, draw * cumulative[-1], side="right"), len(cumulative) - 1))


def _decoded(model: LanguageModel, tokens: Sequence[int]) -> str:
    known = [token for token in tokens if token < len(model.tokenizer)]
    return str(model.tokenizer.decode(known, skip_special_tokens=True, clean_up_tokenization_spaces=False))


class _Passes:
    """Distributions after sequences; states of a shared beginning are kept where they prove right."""

    def __init__(self, model: LanguageModel) -> None:
        from transformers import DynamicCache  # noqa: PLC0415

        self._model = model
        self._tokens: list[int] = []
        self._new = DynamicCache
        self._cache = self._new()
        # models that take no tree attend in ways of their own, and some have no cache that could be cut
        self._keeps = model.tree_attention
        self._tried: set[bool] = set()

    def after(self, tokens: list[int]) -> torch.Tensor:
        """Log-probabilities of the next token, shape (token,)."""
        if not self._keeps:
            return self._whole(tokens)
        shared = min(common_start(self._tokens, tokens), len(tokens) - 1)
        cut = shared < len(self._tokens)
        found = self._going_on(tokens, shared)
        if shared and cut not in self._tried:
            self._tried.add(cut)
            whole = self._whole(tokens)
            most = _MOST_NATS if self._model.settings.dtype == "float32" else _MOST_NATS_HALF
            self._keeps = mean_difference(found.cpu().numpy(), whole.cpu().numpy()) <= most
            return whole
        return found

    def _whole(self, tokens: list[int]) -> torch.Tensor:
        found: list[torch.Tensor] = []
        reduce_last(self._model, [tokens], lambda _, log_probs: found.append(log_probs[0]))
        return found[0]

    def _going_on(self, tokens: list[int], shared: int) -> torch.Tensor:
        import torch  # noqa: PLC0415

        model = self._model
        if shared == 0:
            self._cache = self._new()
        elif shared < len(self._tokens):
            self._cache.crop(shared - len(self._tokens))
        self._tokens = []
        run = model.module.base_model if model.split_head else model.module
        with torch.inference_mode():
            rest = torch.tensor([tokens[shared:]], dtype=torch.int64, device=model.device)
            output = run(input_ids=rest, past_key_values=self._cache, use_cache=True)
            state = (output.last_hidden_state if model.split_head else output.logits)[:, -1]
            log_probs = log_probs_of(model, state.clone())
        self._tokens = list(tokens)
        return log_probs[0]


def option_log_probs(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    options: Sequence[str],
    *,
    progress: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """Compute how probable it is that the first token of an answer is an option.

    Parameters
    ----------
    prompts : sequence of sequence of int
        With the BOS token (:func:`~shannon_game.inference.lm.prompting.prompt_tokens`).
    options : sequence of str
        Such as "A" and "B": each a token of the model, whose probability with a space before it is added.

    Returns
    -------
    ndarray of float, shape (prompt, option)
        Nats; not renormalised, so that the sum of the probabilities says how often an option is the answer.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> model = lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> lm.option_log_probs(model, lm.prompt_tokens(model, [("", "The old clock")]), ["A", "B"]).shape
    (1, 2)
    """
    import torch  # noqa: PLC0415

    ids = [option_tokens(model, option) for option in options]
    _check(model, prompts, max_tokens=1, temperature=0.0, seeds=None)
    found = np.zeros((len(prompts), len(ids)))

    def reduce(at: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        for number, tokens in enumerate(ids):
            chosen = log_probs[:, torch.tensor(tokens, dtype=torch.int64, device=log_probs.device)]
            found[at, number] = chosen.double().logsumexp(dim=-1).cpu().numpy()

    reduce_last(model, [list(tokens) for tokens in prompts], reduce, progress=progress)
    return found
