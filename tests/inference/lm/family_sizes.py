"""Sizes of the models of ``conf/model``, as their papers state them: blocks, width, heads, vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def _gpt2(width: int, blocks: int, heads: int) -> Any:
    import transformers as t

    return t.GPT2Config(n_embd=width, n_layer=blocks, n_head=heads)


def _gpt_neo(width: int, blocks: int, heads: int) -> Any:
    import transformers as t

    kinds = [[["global", "local"], blocks // 2]]
    return t.GPTNeoConfig(hidden_size=width, num_layers=blocks, num_heads=heads, attention_types=kinds)


def _gptj(width: int, blocks: int, heads: int) -> Any:
    import transformers as t

    return t.GPTJConfig(n_embd=width, n_layer=blocks, n_head=heads)


def _opt(width: int, blocks: int, heads: int, projected: int | None = None) -> Any:
    import transformers as t

    return t.OPTConfig(
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=heads,
        ffn_dim=4 * width,
        word_embed_proj_dim=projected or width,
        do_layer_norm_before=projected is None,
    )


def _bloom(width: int, blocks: int, heads: int) -> Any:
    import transformers as t

    return t.BloomConfig(hidden_size=width, n_layer=blocks, n_head=heads)


def _xglm(width: int, blocks: int, heads: int, inner: int, vocabulary: int = 256_008) -> Any:
    import transformers as t

    return t.XGLMConfig(d_model=width, num_layers=blocks, attention_heads=heads, ffn_dim=inner, vocab_size=vocabulary)


def _pythia(width: int, blocks: int, heads: int, vocabulary: int = 50_304) -> Any:
    import transformers as t

    return t.GPTNeoXConfig(
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        vocab_size=vocabulary,
    )


def _rotary(
    kind: str, width: int, blocks: int, heads: int, key_heads: int, inner: int, vocabulary: int, *, tied: bool
) -> Any:
    import transformers as t

    return getattr(t, kind)(
        hidden_size=width,
        num_hidden_layers=blocks,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        intermediate_size=inner,
        vocab_size=vocabulary,
        tie_word_embeddings=tied,
    )


def _llama(*sizes: int, tied: bool = True) -> Any:
    return _rotary("LlamaConfig", *sizes, tied=tied)  # type: ignore[arg-type]


def _qwen(*sizes: int, tied: bool = True) -> Any:
    return _rotary("Qwen2Config", *sizes, tied=tied)  # type: ignore[arg-type]


FAIRSEQ = 50_264
SIZES: Mapping[str, Callable[[], Any]] = {
    "gpt2": lambda: _gpt2(768, 12, 12),
    "gpt2_medium": lambda: _gpt2(1024, 24, 16),
    "gpt2_large": lambda: _gpt2(1280, 36, 20),
    "gpt2_xl": lambda: _gpt2(1600, 48, 25),
    "gpt_neo_125m": lambda: _gpt_neo(768, 12, 12),
    "gpt_neo_1b3": lambda: _gpt_neo(2048, 24, 16),
    "gpt_neo_2b7": lambda: _gpt_neo(2560, 32, 20),
    "gpt_j_6b": lambda: _gptj(4096, 28, 16),
    "opt_125m": lambda: _opt(768, 12, 12),
    "opt_350m": lambda: _opt(1024, 24, 16, 512),
    "opt_1b3": lambda: _opt(2048, 24, 32),
    "opt_2b7": lambda: _opt(2560, 32, 32),
    "opt_6b7": lambda: _opt(4096, 32, 32),
    "bloom_560m": lambda: _bloom(1024, 24, 16),
    "bloom_1b1": lambda: _bloom(1536, 24, 16),
    "bloom_1b7": lambda: _bloom(2048, 24, 16),
    "bloom_3b": lambda: _bloom(2560, 30, 32),
    "bloom_7b1": lambda: _bloom(4096, 30, 32),
    "xglm_564m": lambda: _xglm(1024, 24, 16, 4096),
    "xglm_1b7": lambda: _xglm(2048, 24, 16, 8192),
    "xglm_2b9": lambda: _xglm(2048, 48, 16, 8192),
    "xglm_4b5": lambda: _xglm(2048, 48, 16, 16_384),
    "xglm_7b5": lambda: _xglm(4096, 32, 32, 16_384),
    "fairseq_125m": lambda: _xglm(768, 12, 12, 3072, FAIRSEQ),
    "fairseq_355m": lambda: _xglm(1024, 24, 16, 4096, FAIRSEQ),
    "fairseq_1b3": lambda: _xglm(2048, 24, 32, 8192, FAIRSEQ),
    "fairseq_2b7": lambda: _xglm(2560, 32, 32, 10_240, FAIRSEQ),
    "fairseq_6b7": lambda: _xglm(4096, 32, 32, 16_384, FAIRSEQ),
    "pythia_14m": lambda: _pythia(128, 6, 4),
    "pythia_70m": lambda: _pythia(512, 6, 8),
    "pythia_160m": lambda: _pythia(768, 12, 12),
    "pythia_410m": lambda: _pythia(1024, 24, 16),
    "pythia_1b": lambda: _pythia(2048, 16, 8),
    "pythia_1b4": lambda: _pythia(2048, 24, 16),
    "pythia_2b8": lambda: _pythia(2560, 32, 32),
    "pythia_6b9": lambda: _pythia(4096, 32, 32, 50_432),
    "pythia_12b": lambda: _pythia(5120, 36, 40, 50_688),
    "llama2_7b": lambda: _llama(4096, 32, 32, 32, 11_008, 32_000, tied=False),
    "llama3_1b": lambda: _llama(2048, 16, 32, 8, 8192, 128_256),
    "llama3_3b": lambda: _llama(3072, 28, 24, 8, 8192, 128_256),
    "llama3_8b": lambda: _llama(4096, 32, 32, 8, 14_336, 128_256, tied=False),
    "qwen2_0b5": lambda: _qwen(896, 24, 14, 2, 4864, 151_936),
    "qwen2_1b5": lambda: _qwen(1536, 28, 12, 2, 8960, 151_936),
    "qwen2_3b": lambda: _qwen(2048, 36, 16, 2, 11_008, 151_936),
    "qwen2_7b": lambda: _qwen(3584, 28, 28, 4, 18_944, 152_064, tied=False),
    "smollm2_135m": lambda: _llama(576, 30, 9, 3, 1536, 49_152),
    "smollm2_360m": lambda: _llama(960, 32, 15, 5, 2560, 49_152),
    "smollm2_1b7": lambda: _llama(2048, 24, 32, 32, 8192, 49_152),
}
"""Name in ``conf/model`` -> configuration."""
