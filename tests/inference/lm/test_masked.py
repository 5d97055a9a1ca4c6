"""Pseudo-log-likelihoods against one plain pass per token; who is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers as t

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.masked import MaskedModel, load_masked_model, masked_texts, pseudo_log_likelihoods
from shannon_game.inference.lm.settings import ModelSettings
from tests.inference.lm import tiny_models

pytestmark = pytest.mark.torch

TEXTS = [*tiny_models.TEXTS[:3], "Rain", "unhappily naïve readers"]
FAMILIES = ("bert", "roberta")


@pytest.fixture(scope="module")
def masked_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., MaskedModel]:
    root = tmp_path_factory.mktemp("masked")
    folders = {family: tiny_models.save_masked(root / family, family) for family in FAMILIES}

    def load(family: str, tokens_per_batch: int = 64) -> MaskedModel:
        how: dict[str, Any] = {"path": str(folders[family]), "tokens_per_batch": tokens_per_batch, "device": "cpu"}
        return load_masked_model(ModelSettings(name=family, source="folder", **how))

    return load


def one_by_one(masked: MaskedModel, text: str, *, within_word: bool) -> list[float]:
    """A pass for each token, with all logits."""
    import torch

    tokenizer, module = masked.model.tokenizer, masked.model.module
    encoded = tokenizer(text)
    ids, words = encoded["input_ids"], encoded.word_ids(0)
    found = []
    for place in [place for place, word in enumerate(words) if word is not None]:
        hidden = [k for k in range(place, len(ids)) if k == place or (within_word and words[k] == words[place])]
        given = [tokenizer.mask_token_id if k in hidden else token for k, token in enumerate(ids)]
        with torch.inference_mode():
            row = torch.log_softmax(module(torch.tensor([given])).logits[0, place].double(), dim=-1)
        found.append(float(row[ids[place]]))
    return found


@pytest.mark.parametrize("within_word", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_match_a_pass_for_each_token(
    family: str, within_word: bool, masked_of: Callable[..., MaskedModel]
) -> None:
    masked = masked_of(family)
    items = masked_texts(masked, TEXTS, within_word=within_word)
    for text, found in zip(TEXTS, pseudo_log_likelihoods(masked, items), strict=True):
        np.testing.assert_allclose(found, one_by_one(masked, text, within_word=within_word), atol=1e-5)
    one_pass = masked_of(family, tokens_per_batch=10_000)
    for few, many in zip(pseudo_log_likelihoods(masked, items), pseudo_log_likelihoods(one_pass, items), strict=True):
        np.testing.assert_allclose(few, many, atol=1e-5)


def test_who_fills_no_masks_is_refused(tmp_path: Path) -> None:
    def load(folder: Path) -> MaskedModel:
        return load_masked_model(ModelSettings(name="m", source="folder", path=str(folder), device="cpu"))

    tiny_models.save(tmp_path / "gpt2", "gpt2", tiny_models.byte_level())
    with pytest.raises(InputError, match=r"gpt2\) that fills no masks"):
        load(tmp_path / "gpt2")
    folder = tiny_models.save_masked(tmp_path / "bert", "bert")
    config = t.AutoConfig.from_pretrained(folder)
    config.is_decoder = True
    config.save_pretrained(folder)
    with pytest.raises(InputError, match="does not read what stands after"):
        load(folder)
    with pytest.raises(InputError, match="fills no masks"):
        load_masked_model(ModelSettings(name="smollm2", source="smollm2"))
