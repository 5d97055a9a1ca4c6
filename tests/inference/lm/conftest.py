"""Models that several modules of tests use, written and loaded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="language models need the extra lm")
pytest.importorskip("transformers", reason="language models need the extra lm")

from shannon_game.inference.lm.language_model import LanguageModel
from tests.inference.lm import tiny_models

SENTENCEPIECE = ("llama", "mistral", "gemma2")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny models lose more by handing work to threads than they gain."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a family's model, with the kind of tokenizer that the family has."""
    folders: dict[str, Path] = {}
    tokenizers = {}

    def folder(family: str) -> Path:
        kind = tiny_models.sentencepiece if family in SENTENCEPIECE else tiny_models.byte_level
        if kind not in tokenizers:
            tokenizers[kind] = kind()
        if family not in folders:
            # logits beyond the vocabulary, as in models whose sizes are round numbers
            padded = 6 if family == "gpt_neox" else 0
            place = tmp_path_factory.mktemp("models") / family
            folders[family] = tiny_models.save(place, family, tokenizers[kind], padded=padded)
        return folders[family]

    return folder


@pytest.fixture(scope="session")
def model_of(folder_of: Callable[[str], Path]) -> Callable[..., LanguageModel]:
    """Load a family's model; the same settings give the same object, which no test may change."""
    models: dict[Any, LanguageModel] = {}

    def model(family: str, **settings: Any) -> LanguageModel:
        key = (family, *sorted(settings.items()))
        if key not in models:
            models[key] = tiny_models.load(folder_of(family), **settings)
        return models[key]

    return model
