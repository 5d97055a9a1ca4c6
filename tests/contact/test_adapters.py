"""A LoRA adapter in the layout that peft saves: two files beside the model that they are of."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="language models need the extra lm")

from shannon_game.estimators.errors import InputError
from tests.inference.lm import tiny_models

pytestmark = pytest.mark.torch

LAYER = "model.layers.0.self_attn.q_proj"


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing")
def test_an_adapter_is_merged_into_the_weights_of_its_model(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    base, adapter, rng = tmp_path / "base", tmp_path / "adapter", np.random.default_rng(0)
    tiny_models.save(base, "llama", tiny_models.sentencepiece())
    adapter.mkdir()
    down, up = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 32), (32, 2)))
    weights = {f"base_model.model.{LAYER}.lora_A.weight": down, f"base_model.model.{LAYER}.lora_B.weight": up}
    save_file(weights, adapter / "adapter_model.safetensors")
    told = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "base", "r": 2, "lora_alpha": 6}
    told |= {"target_modules": "model.layers.0.self_attn.q_proj"}
    (adapter / "adapter_config.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match="let path name its model"):
        tiny_models.load(_beside(base, adapter, tmp_path / "both"))
    if find_spec("peft") is None:
        with pytest.raises(InputError, match="pip install peft"):
            tiny_models.load(base, adapter=str(adapter))
        return
    plain, found = tiny_models.load(base), tiny_models.load(base, adapter=str(adapter))
    one, other = (model.module.get_submodule(LAYER).weight.numpy() for model in (plain, found))
    np.testing.assert_allclose(other, one + 3 * up @ down, atol=1e-6)
    assert plain.identity != found.identity


def _beside(base: Path, adapter: Path, folder: Path) -> Path:
    folder.mkdir()
    for path in (*base.iterdir(), adapter / "adapter_config.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder
