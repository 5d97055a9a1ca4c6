"""Small language models with random weights and tokenizers trained on the spot, as folders in the Hub's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.minimal_model import ShapeSettings, make_tokenizer
from shannon_game.inference.lm.settings import ModelSettings

TEXTS = [
    "The old clock in the hall struck nine, and nobody moved.",
    "She asked the baker for bread; the baker gave her a cake instead.",
    "Rain fell on the roof, on the road, and on the river behind the road.",
    "They walked and talked until the lamps were lit. Then they walked home.",
    "A reader reads; a writer writes. The readers wrote to the writer.",
    "Naïve café-goers don't well-known things like “quotes” — 日本語 too.",
]
END = "<|endoftext|>"
MAX_TOKENS = 96


def byte_level(size: int = 400, texts: list[str] = TEXTS) -> Any:
    """A byte-level BPE tokenizer in the manner of GPT-2: no BOS token of its own before a text."""
    return make_tokenizer(ShapeSettings(vocab_size=size), texts)


def sentencepiece(size: int = 320, texts: list[str] = TEXTS) -> Any:
    """A BPE tokenizer in the manner of Llama 1 and 2: a space before every text, bytes as <0x41>, <s> before it all."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizer
    # pieces do not cross spaces in the training alone
    marked = [piece for text in texts for piece in text.replace(" ", " \n").split("\n")]
    trained.train_from_iterator(
        [piece.rstrip(" ") for piece in marked], trainers.BpeTrainer(vocab_size=size, show_progress=False)
    )
    model = json.loads(trained.to_str())["model"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *model["vocab"]]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: index for index, piece in enumerate(pieces)},
            merges=[tuple(pair) for pair in model["merges"]],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def by_hand(pieces: list[str], merges: list[tuple[str, str]] = []) -> Any:  # noqa: B006 - never changed
    """A byte-level tokenizer with exactly these pieces (a space is written Ġ) after the end-of-text token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocab = {piece: index for index, piece in enumerate([END, *pieces])}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=END, eos_token=END)


def config(family: str, vocab_size: int) -> Any:
    """A configuration of two blocks of width 32 whose random weights give distributions that are far from uniform."""
    import transformers as t

    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
    rotary = {
        "vocab_size": vocab_size,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": MAX_TOKENS,
        "initializer_range": 0.4,
        **ids,
    }
    neox = {key: value for key, value in rotary.items() if key not in {"num_key_value_heads", "head_dim"}}
    absolute = {"vocab_size": vocab_size, "initializer_range": 0.4, **ids}
    return {
        "gpt2": lambda: t.GPT2Config(n_positions=MAX_TOKENS, n_embd=32, n_layer=2, n_head=2, **absolute),
        "llama": lambda: t.LlamaConfig(**rotary),
        "gpt_neox": lambda: t.GPTNeoXConfig(**neox),
        "opt": lambda: t.OPTConfig(
            hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=2, word_embed_proj_dim=32,
            max_position_embeddings=MAX_TOKENS, init_std=0.4, vocab_size=vocab_size, **ids,
        ),
        # logits are capped or scaled after the output embedding
        "gemma2": lambda: t.Gemma2Config(**rotary, final_logit_softcapping=5.0, sliding_window=4096),
        # positions are distances in the row
        "bloom": lambda: t.BloomConfig(hidden_size=32, n_layer=2, n_head=2, **absolute),
        # attention does not reach back to the beginning of a long context
        "mistral": lambda: t.MistralConfig(**rotary, sliding_window=24),
        "gpt_neo": lambda: t.GPTNeoConfig(
            hidden_size=32, num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]], window_size=24,
            max_position_embeddings=MAX_TOKENS, intermediate_size=48, **absolute,
        ),
        # no attention at all
        "mamba": lambda: t.MambaConfig(hidden_size=32, num_hidden_layers=2, state_size=4, **absolute),
    }[family]()  # fmt: skip


def save(folder: Path, family: str, tokenizer: Any, *, padded: int = 0, seed: int = 0) -> Path:
    """Write a model with random weights and its tokenizer; ``padded`` logits stand for no token."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = AutoModelForCausalLM.from_config(config(family, len(tokenizer) + padded))
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_gguf(path: Path, folder: Path, *, epsilon: float = 1e-5) -> Path:
    """Write a model of the family llama with a byte-level tokenizer as a GGUF file."""
    import gguf
    from safetensors.numpy import load_file

    weights = load_file(folder / "model.safetensors")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())["model"]
    pieces = sorted(tokenizer["vocab"], key=tokenizer["vocab"].get)
    writer = gguf.GGUFWriter(path, "llama")
    for add, value in (
        (writer.add_name, "tiny"),
        (writer.add_block_count, 2),
        (writer.add_context_length, MAX_TOKENS),
        (writer.add_embedding_length, 32),
        (writer.add_feed_forward_length, 48),
        (writer.add_head_count, 2),
        (writer.add_head_count_kv, 2),
        (writer.add_layer_norm_rms_eps, epsilon),
        (writer.add_rope_dimension_count, 16),
        (writer.add_rope_freq_base, 10000.0),
        (writer.add_vocab_size, len(pieces)),
        (writer.add_tokenizer_model, "gpt2"),
        (writer.add_token_list, pieces),
        (writer.add_token_types, [3] + [1] * (len(pieces) - 1)),
        (writer.add_token_merges, [" ".join(pair) for pair in tokenizer["merges"]]),
        (writer.add_bos_token_id, 0),
        (writer.add_eos_token_id, 0),
    ):
        add(value)
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    parts = {
        **{f"self_attn.{part}_proj": f"attn_{part}" for part in "qkv"},
        **{f"mlp.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")},
        "self_attn.o_proj": "attn_output",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    names |= {f"model.layers.{i}.{part}": f"blk.{i}.{name}" for i in range(2) for part, name in parts.items()}
    for part, name in names.items():
        numbers = weights[f"{part}.weight"]
        if name.endswith(("attn_q", "attn_k")):
            # llama.cpp turns neighbours, transformers the halves of a head
            numbers = numbers.reshape(2, 2, 8, 32).swapaxes(1, 2).reshape(32, 32)
        writer.add_tensor(f"{name}.weight", numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def load(folder: Path, **settings: Any) -> LanguageModel:
    """Load a saved model; ``bos`` is the token that every tokenizer here has."""
    given = {"name": folder.name, "source": "folder", "path": str(folder), "device": "cpu", "bos": "tokenizer"}
    return load_language_model(ModelSettings(**(given | settings)))


def contexts(n: int, vocab_size: int, *, longest: int = 40, seed: int = 0) -> list[list[int]]:
    """Random contexts: unrelated ones, prefixes of one another, with common beginnings, and twice the same."""
    rng = np.random.default_rng(seed)
    found: list[list[int]] = []
    while len(found) < n:
        long = rng.integers(0, vocab_size, size=rng.integers(2, longest + 1)).tolist()
        half = long[: len(long) // 2 + 1]
        found += [long, long[: rng.integers(1, len(long))], [*half, int(rng.integers(vocab_size))], long]
    return [found[i] for i in rng.permutation(len(found))[:n]]


def save_masked(folder: Path, family: str, *, seed: int = 0) -> Path:
    """Write a masked model with random weights: BERT with word pieces, or RoBERTa with pieces of bytes."""
    import torch
    import transformers as t
    from tokenizers import processors, trainers

    if family == "bert":
        tokenizer: Any = t.BertTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=150, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False
        )
        tokenizer.backend_tokenizer.train_from_iterator(TEXTS, trainer)
        tokenizer = t.BertTokenizer(vocab=tokenizer.backend_tokenizer.get_vocab())
        kind, more = t.BertConfig, {"pad_token_id": tokenizer.pad_token_id}
    else:
        tokenizer = byte_level()
        tokenizer.add_special_tokens(
            {"pad_token": "<pad>", "mask_token": "<mask>", "cls_token": "<s>", "sep_token": "</s>"}
        )
        ids = [(piece, tokenizer.get_vocab()[piece]) for piece in ("<s>", "</s>")]
        tokenizer.backend_tokenizer.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ids),
            ]
        )
        kind, more = t.RobertaConfig, {"pad_token_id": tokenizer.pad_token_id, "position_embedding_type": "absolute"}
    made = kind(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=600, initializer_range=0.4, **more,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = t.AutoModelForMaskedLM.from_config(made)
    module.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
