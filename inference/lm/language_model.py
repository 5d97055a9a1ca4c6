"""A loaded language model: the module, its tokenizer, and what decides its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.checkpoints import one_line
from shannon_game.inference.lm.settings import ModelSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A causal language model, ready to score: its module is in evaluation mode, on its device.

    Parameters
    ----------
    bos_id : int, optional
        Put before every context; None where there is none.
    max_tokens : int
        Longest sequence that the model takes, ``bos_id`` included.
    vocab_size : int
        Number of logits; may be larger than the tokenizer's vocabulary.
    revision : str
        Commit of a Hub repository; empty otherwise.
    split_head : bool
        Logits are the output embedding times the last hidden state, so that they are computed where they are asked for.
    tree_attention : bool
        The model takes an attention mask and positions as they are, so that continuations share the context's pass.
    """

    settings: ModelSettings
    module: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    device: torch.device
    bos_id: int | None
    max_tokens: int
    vocab_size: int
    weights_sha256: str
    tokenizer_sha256: str
    revision: str = ""
    split_head: bool = True
    tree_attention: bool = False

    @property
    def name(self) -> str:
        """What tables and figures call the model."""
        return self.settings.name

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Tokens that are no text."""
        added = self.tokenizer.added_tokens_decoder.items()
        return frozenset(self.tokenizer.all_special_ids) | {token for token, its in added if its.special}

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the model's numbers, and nothing that does not (batch size, device, name)."""
        return {
            "weights_sha256": self.weights_sha256,
            "tokenizer_sha256": self.tokenizer_sha256,
            "dtype": self.settings.dtype,
            "bos_id": self.bos_id,
            "temperature": float(self.settings.temperature),
            "n_layers": self.settings.n_layers,
            # what was stored of models without an encoder stays
            **({"encoder_text": self.settings.encoder_text} if self.settings.encoder_text else {}),
        }


def encode(
    model: LanguageModel,
    texts: Sequence[str],
    *,
    source: object = None,
    names: Sequence[object] | None = None,
    special: bool = False,
) -> list[list[int]]:
    """Tokenise texts, without any token that the text does not hold (:attr:`LanguageModel.bos_id` comes later).

    A special token that a text spells out, such as ``</s>``, is text like any other, unless `special`. `names` are
    those of the texts in messages.

    Raises
    ------
    InputError
        If a tokenizer has no way of writing a special token as text.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> model = lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> [len(tokens) > 0 for tokens in lm.encode(model, ["The old clock", "Rain fell"])]
    [True, True]
    """
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"text {position} is a {type(text).__name__}, should be a str", source=source)
    if not texts:
        return []
    with one_line(model.settings, "the tokenizer", "cannot take the texts"):
        encoded = model.tokenizer(
            list(texts), add_special_tokens=False, verbose=False, split_special_tokens=not special
        )
    ids: list[list[int]] = encoded["input_ids"]
    # what a tokenizer does not know is a special token too
    never = frozenset() if special else model.special_ids - {model.tokenizer.unk_token_id}
    for position, tokens in enumerate(ids):
        if not never.isdisjoint(tokens):
            token = model.tokenizer.convert_ids_to_tokens(next(token for token in tokens if token in never))
            where = f"text {position}" if names is None else f"document {str(names[position])!r}"
            problem = f"holds {token!r}, a special token of {model.name}, which its tokenizer cannot write as text"
            raise InputError(f"{where} {problem}; spell it otherwise or leave the text out", source=source)
    return ids


def token_strings(model: LanguageModel, ids: Sequence[int]) -> list[str]:
    """Decode tokens one by one; a token that is part of a character gives U+FFFD, as in the public game data."""
    known = len(model.tokenizer)
    decoded = {
        int(token): str(
            model.tokenizer.decode([int(token)], skip_special_tokens=False, clean_up_tokenization_spaces=False)
        )
        if token < known
        # logits may be padded beyond the vocabulary to a round number
        else ""
        for token in set(ids)
    }
    return [decoded[int(token)] for token in ids]


def model_record(model: LanguageModel) -> dict[str, Any]:
    """Everything that should stand in an output made with this model: plain values for attributes or JSON."""
    import torch  # noqa: PLC0415 - only a program with a model has it
    import transformers  # noqa: PLC0415

    return {
        **model.settings.record(),
        **model.identity,
        "device": str(model.device),
        "revision": model.revision,
        "max_tokens": model.max_tokens,
        "split_head": model.split_head,
        "tree_attention": model.tree_attention,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
