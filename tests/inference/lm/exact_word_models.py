"""Models of words whose probability of a text does not depend on how it is cut into tokens: known to the digit.

A text is words of two letters, each after a space and drawn independently. One model has a token a word, the other one
a character, whose distribution follows from the last one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.inference.lm import tiny_models

WORDS: Mapping[str, float] = {" ac": 0.4, " ad": 0.1, " bc": 0.2, " bd": 0.3}
"""Words with the space before them, and their probabilities."""

_MERGED = ("Ġa", "Ġb", "Ġac", "Ġad", "Ġbc", "Ġbd")
_LEAST = 1e-9


def text(n_words: int, seed: int = 0) -> str:
    """A text of the distribution."""
    rng = np.random.default_rng(seed)
    return "".join(rng.choice(list(WORDS), size=n_words, p=list(WORDS.values())))


def loss_nats(some: str) -> float:
    """Loss of a text that begins with the space before a word and ends with one."""
    return -float(sum(np.log(WORDS[some[i : i + 3]]) for i in range(0, len(some), 3)))


def save_by_word(folder: Path) -> Path:
    """Write the model that has a token a word."""
    merges = [("Ġ", "a"), ("Ġ", "b"), ("Ġa", "c"), ("Ġa", "d"), ("Ġb", "c"), ("Ġb", "d")]
    pieces = ["Ġ", "a", "b", "c", "d", *_MERGED]
    return _save(folder, pieces, merges, lambda last: {word.replace(" ", "Ġ"): p for word, p in WORDS.items()})


def save_by_character(folder: Path) -> Path:
    """Write the model that has a token a character."""
    first = {letter: sum(p for word, p in WORDS.items() if word[1] == letter) for letter in "ab"}

    def after(last: str) -> Mapping[str, float]:
        if last == "Ġ":
            return first
        if last in first:
            return {word[2]: p / first[last] for word, p in WORDS.items() if word[1] == last}
        return {"Ġ": 1.0}

    return _save(folder, ["Ġ", "a", "b", "c", "d"], [], after)


def _save(
    folder: Path, pieces: list[str], merges: list[tuple[str, str]], after: Callable[[str], Mapping[str, float]]
) -> Path:
    """A model whose blocks add nothing, and whose head knows the distribution after each token."""
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = tiny_models.by_hand(pieces, merges)
    vocabulary = [tiny_models.END, *pieces]
    width = 32
    module: Any = AutoModelForCausalLM.from_config(tiny_models.config("llama", len(vocabulary)))
    with torch.no_grad():
        for name, numbers in module.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                numbers.zero_()
        embedding = torch.eye(width)[: len(vocabulary)]
        module.get_input_embeddings().weight.copy_(embedding)
        head = torch.zeros(len(vocabulary), width)
        for place, last in enumerate(vocabulary):
            p = np.array([after(last).get(piece, 0.0) for piece in vocabulary]) + _LEAST
            # a state of one feature has this size after normalisation
            head[:, place] = torch.from_numpy(np.log(p / p.sum()) / np.sqrt(width)).float()
        module.get_output_embeddings().weight.copy_(head)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
