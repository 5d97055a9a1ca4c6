"""Tiny models and texts for the experiments that need them, and the overrides that name them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.inference.lm import tiny_models

END = tiny_models.END


def renumbered(tokenizer: Any, seed: int = 0) -> Any:
    """The same tokens under other numbers, as another model's tokenizer may have them."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    content = json.loads(tokenizer.backend_tokenizer.to_str())
    order = np.random.default_rng(seed).permutation(len(content["model"]["vocab"])).tolist()
    content["model"]["vocab"] = {piece: order[number] for piece, number in content["model"]["vocab"].items()}
    content["added_tokens"] = [{**token, "id": order[token["id"]]} for token in content["added_tokens"]]
    made = Tokenizer.from_str(json.dumps(content))
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=END, eos_token=END)


def write_models(root: Path) -> Path:
    """Models ``a`` and ``b`` with one tokenizer, ``c`` with its tokens renumbered, ``d`` with another tokenizer."""
    tokenizer = tiny_models.byte_level()
    tiny_models.save(root / "a", "gpt2", tokenizer, seed=1)
    tiny_models.save(root / "b", "gpt2", tokenizer, seed=2)
    tiny_models.save(root / "c", "gpt2", renumbered(tokenizer), seed=3)
    tiny_models.save(root / "d", "llama", tiny_models.sentencepiece(), seed=4)
    return root


def write_texts(root: Path, n: int = 8) -> Path:
    """Texts of shuffled words in two splits; no two begin alike."""
    words = " ".join(tiny_models.TEXTS[:5]).split(" ")
    for number in range(n):
        shuffled = np.random.default_rng(number).permutation(words).tolist()
        path = root / ("train" if number % 2 else "test") / f"text{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" ".join(shuffled[:30]), encoding="utf-8")
    return root


def named(root: Path, *names: str, bos: str = END) -> list[str]:
    """Overrides that make models of ``root`` the config's."""
    return [
        f"+models.{name}={{source: folder, path: '{root / name}', device: cpu, bos: '{bos if name != 'd' else '<s>'}'}}"
        for name in names
    ]


@contextmanager
def cached_loading(module: str) -> Iterator[None]:
    """Let an experiment's module load every model once: a third of a second each, in tests of many runs."""
    experiment = import_module(module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "load_language_model", lru_cache(experiment.load_language_model))
        yield
