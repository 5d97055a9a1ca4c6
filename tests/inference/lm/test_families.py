"""The models of ``conf/model``: sizes as the papers state them, and settings that their architectures take."""

from __future__ import annotations

import pytest
import torch
import transformers
import yaml

from shannon_game.experiments.harness.language_models import SMOLLM2
from shannon_game.inference.lm.loading import DOCUMENT_SEPARATORS
from shannon_game.inference.lm.settings import ModelSettings
from tests.experiments.command import ROOT
from tests.inference.lm.conftest import EAGER
from tests.inference.lm.family_sizes import SIZES
from tests.inference.lm.test_forward import FAMILIES
from tests.inference.lm.test_words import WORD_FAMILIES

pytestmark = pytest.mark.torch

FOLDER = ROOT / "conf" / "model"
HUB = sorted(path.stem for path in FOLDER.glob("*.yaml") if "\nsource: hub\n" in path.read_text(encoding="utf-8"))


def given(name: str) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def test_every_model_of_the_hub_has_a_size() -> None:
    assert sorted(SIZES) == HUB
    assert len({given(name)["name"] for name in HUB}) == len(HUB)


SMALLEST = (
    "gpt2",
    "gpt_neo_125m",
    "gpt_j_6b",
    "opt_350m",
    "bloom_560m",
    "xglm_564m",
    "pythia_14m",
    "llama3_1b",
    "qwen2_0b5",
)


@pytest.mark.parametrize(
    "name", [name if name in SMALLEST else pytest.param(name, marks=pytest.mark.slow) for name in HUB]
)
def test_sizes_are_those_of_the_shapes(name: str) -> None:
    with torch.device("meta"):
        module = transformers.AutoModelForCausalLM.from_config(SIZES[name]())
    assert given(name)["n_parameters"] == module.num_parameters()


@pytest.mark.parametrize("name", HUB)
def test_settings_fit_the_architecture(name: str) -> None:
    settings, family = ModelSettings(**given(name)), SIZES[name]().model_type
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith(f"# @package models.{name}\n")
    assert f"{settings.n_parameters:,} parameters" in text
    # the engine is held to one context at a time, and to products of tokens, with a model of each architecture
    assert family in FAMILIES
    assert family in WORD_FAMILIES
    assert settings.attention == ("eager" if family in EAGER else "sdpa")
    if name.startswith("smollm2"):
        # an instruct model of the same family opens a turn with its BOS token
        assert settings.bos == SMOLLM2.bos
    else:
        assert settings.bos == "family"
        assert DOCUMENT_SEPARATORS[family] in text
