"""A model whose numbers depend on more than the tokens before is refused, whatever its configuration says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as t

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.generation import generate
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.next_token import next_token_distributions
from shannon_game.inference.lm.probes import check_causal
from shannon_game.inference.lm.scoring import score_documents
from tests.inference.lm import tiny_models

pytestmark = pytest.mark.torch

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
END = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}


def save(folder: Path, config: Any, change: Callable[[Any], object] = lambda _: None) -> Path:
    """Write a model, with its weights changed, and a tokenizer whose tokens it has."""
    tokenizer = tiny_models.byte_level()
    config.vocab_size = len(tokenizer)
    torch.manual_seed(0)
    module = t.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        change(module)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("config", "dtype", "spread"),
    [
        *((t.BertConfig, *how) for how in (("float32", 0.02), ("float32", 0.4), ("bfloat16", 0.2), ("float16", 0.2))),
        *((config, "float32", 0.4) for config in (t.RobertaConfig, t.ElectraConfig, t.RoFormerConfig)),
    ],
)
def test_a_masked_model_is_refused(config: Any, spread: float, dtype: str, tmp_path: Path) -> None:
    save(tmp_path, config(**SIZES, initializer_range=spread, is_decoder=False))
    with pytest.raises(InputError, match="when later tokens change"):
        tiny_models.load(tmp_path, bos=tiny_models.END, dtype=dtype)
    # the same architecture that looks back alone
    save(tmp_path, config(**SIZES, initializer_range=spread, is_decoder=True))
    model = tiny_models.load(tmp_path, bos=tiny_models.END, dtype=dtype)
    assert next_token_distributions(model, [[1, 2]]).sizes["context"] == 1


def test_a_model_that_knows_no_context_is_told_and_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def change(module: Any) -> None:
        for name, weight in module.named_parameters():
            if "wte" not in name:
                weight.zero_()
        module.transformer.ln_f.bias.fill_(1.0)

    tiny_models.load(save(tmp_path, tiny_models.config("gpt2", 1), change), bos=tiny_models.END)
    assert "the same distribution" in caplog.text


@pytest.mark.parametrize("text", [None, "Rain fell on the river."])
@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_the_decoder_of_an_encoder_decoder_is_scored_after_a_source(
    kind: str, text: str | None, tmp_path: Path
) -> None:
    tokenizer, ids = tiny_models.byte_level(), {"eos_token_id": 0, "pad_token_id": 1, "decoder_start_token_id": 2}
    size: dict[str, Any] = {"d_model": 32, "vocab_size": len(tokenizer), **ids}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "init_std": 0.4}
    torch.manual_seed(0)
    if kind == "t5":
        module: Any = t.T5ForConditionalGeneration(t.T5Config(d_kv=16, d_ff=48, num_layers=2, num_heads=2, **size))
    else:
        module = t.BartForConditionalGeneration(
            t.BartConfig(encoder_layers=1, decoder_layers=2, encoder_ffn_dim=48, decoder_ffn_dim=48, **heads, **size)
        )
    module.eval().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = tiny_models.load(tmp_path, bos="auto", encoder_text=text)
    documents = encode(model, ["The old clock struck nine.", "Nobody moved, and the lamps were lit."])
    found = score_documents(model, documents)["logprob"].values
    expected = []
    for tokens in documents:
        source = torch.tensor([tokenizer(text or "")["input_ids"] or [0]])
        with torch.inference_mode():
            logits = module(input_ids=source, decoder_input_ids=torch.tensor([[2, *tokens[:-1]]])).logits[0]
        expected += torch.log_softmax(logits.double(), -1)[range(len(tokens)), tokens].tolist()
    # sums in float32
    np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(InputError, match="writes no answers"):
        generate(model, documents, max_tokens=2)


def test_a_text_for_an_encoder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no encoder"):
        tiny_models.load(save(tmp_path, tiny_models.config("gpt2", 400)), encoder_text="a")


class PrefixModel(t.GPT2LMHeadModel):  # type: ignore[misc]
    """Reads its first three tokens in both directions."""

    def forward(self, input_ids: Any, **more: Any) -> Any:
        n = input_ids.shape[1]
        seen = torch.ones(n, n, dtype=torch.bool).tril()
        seen[:3, :3] = True
        mask = torch.zeros(1, 1, n, n).masked_fill(~seen, torch.finfo(torch.float32).min)
        return super().forward(input_ids=input_ids, attention_mask=mask.expand(len(input_ids), -1, -1, -1), **more)


class LeakingModel(t.GPT2LMHeadModel):  # type: ignore[misc]
    """Lets the other rows of a batch have their say."""

    def forward(self, input_ids: Any, **more: Any) -> Any:
        output = super().forward(input_ids=input_ids, **more)
        output.logits = output.logits + 0.1 * output.logits.mean(dim=0)
        return output


class LateModel(t.GPT2LMHeadModel):  # type: ignore[misc]
    """Gives one logit more weight the longer the text is."""

    def forward(self, input_ids: Any, **more: Any) -> Any:
        output = super().forward(input_ids=input_ids, **more)
        output.logits[..., 0] += 5 * input_ids.shape[1]
        return output


@pytest.mark.parametrize(
    ("kind", "says"), [(PrefixModel, "when later tokens"), (LeakingModel, "other texts"), (LateModel, "more tokens")]
)
def test_what_no_configuration_tells(
    kind: Any, says: str, model_of: Callable[..., LanguageModel], caplog: pytest.LogCaptureFixture
) -> None:
    model = model_of("gpt2")
    check_causal(model)
    module = kind(model.module.config)
    module.load_state_dict(model.module.state_dict())
    with pytest.raises(InputError, match=says):
        check_causal(replace(model, module=module.eval(), split_head=False))
    assert not caplog.records
