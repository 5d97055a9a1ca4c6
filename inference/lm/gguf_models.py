"""Loading a GGUF file, and keeping what it was converted to, as the conversion takes half a minute.

The header is checked against the file's length before anything reads it. The reader of the package gguf goes through as
many values as a count in the file says, whether the file has them or not: eight bytes can keep it busy for years.
"""

from __future__ import annotations

import logging
import math
import mmap
import struct
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from shannon_game.estimators.code_identity import code_hash, package_version
from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.inference.disk import cache_folder
from shannon_game.inference.lm.checkpoints import from_pretrained
from shannon_game.inference.lm.model_files import check_counts, hash_files, model_files
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.manifest import SCRATCH, is_sealed, remove_scratch, seal
from shannon_game.inference.store.keys import model_versions, result_key

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

log = logging.getLogger(__name__)

_PARTIAL = f"{SCRATCH}partial-"
_ABANDONED_SECONDS = 3600.0

_STRING, _ARRAY = 8, 9
# format of struct by the type's number: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_DEEPEST_ARRAY = 4


def load_gguf(settings: ModelSettings, path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, str]:
    """Load a GGUF file, or the copy in the Hub's layout that is kept of it."""
    require_packages(("gguf", "accelerate"), "lm", source=f"model {settings.name!r}", field="path (a GGUF file)")
    header = read_gguf_header(path)
    check_counts(header.numbers, header.n_tensors, path)
    digest = hash_files([path])
    converted = _converted_folder(digest) if settings.cache else None
    if converted is not None and _is_as_it_was(converted):
        module, tokenizer = from_pretrained(settings, converted, model_files(converted).n_elements)
        return module, tokenizer, digest
    log.warning("%s: reading %s takes about half a minute", settings.name, path.name)
    with tempfile.TemporaryDirectory() as alone:
        # what lies beside the file is none of its model: a tokenizer's settings, an adapter
        (Path(alone) / path.name).symlink_to(path.resolve())
        # weights come out in float32 whatever is asked for, so that the copy kept serves every dtype
        module, tokenizer = from_pretrained(
            settings.changed(dtype="float32"), Path(alone), header.n_elements, gguf_file=path
        )
    module = _plain(module)
    if converted is not None:
        _keep_converted(module, tokenizer, converted)
    import torch  # noqa: PLC0415

    return module.to(getattr(torch, settings.dtype)), tokenizer, digest


def _plain(module: PreTrainedModel) -> PreTrainedModel:
    """Return the same weights in a model that does not think of itself as quantised (and so can be saved)."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    config = type(module.config).from_dict(
        {key: value for key, value in module.config.to_dict().items() if key != "quantization_config"}
    )
    # the only place where transformers keeps it
    attention = module.config._attn_implementation
    plain = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32)
    plain.load_state_dict(module.state_dict())
    plain.tie_weights()
    checked: PreTrainedModel = plain
    return checked


def _converted_folder(digest: str) -> Path:
    # a tokenizer is converted by transformers' own rules, weights by gguf's, which change between versions
    of = [digest, code_hash("shannon_game.inference.lm"), *model_versions(), package_version("gguf")]
    return cache_folder() / "models" / result_key(of)


def _keep_converted(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    from safetensors import SafetensorError  # noqa: PLC0415 - comes with the extra lm

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # of a process that was killed: hundreds of megabytes, to which nobody comes back
        for left in folder.parent.glob(f"{_PARTIAL}*"):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                remove_scratch(left)
        staging = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
        try:
            new = staging / "new"
            module.save_pretrained(new)
            tokenizer.save_pretrained(new)
            seal(new)
            # another process may have made it meanwhile, and read it now
            if folder.is_dir() and not _is_as_it_was(folder):
                folder.rename(staging / "damaged")
            new.rename(folder)
        finally:
            remove_scratch(staging)
    except (OSError, SafetensorError) as error:
        if not folder.is_dir():
            log.warning("the converted model could not be kept in %s: %s", folder, error)


def _is_as_it_was(folder: Path) -> bool:
    """Whether a converted model is there, with every file as it was written."""
    if not folder.is_dir():
        return False
    try:
        same = is_sealed(folder)
    except OSError:
        same = False
    if not same:
        log.warning("the converted model in %s was changed since, and is made anew", folder)
    return same


@dataclass(frozen=True)
class GgufHeader:
    """What a GGUF file says of itself."""

    numbers: dict[str, int | float] = field(default_factory=dict)
    n_tensors: int = 0
    n_elements: int = 0


def read_gguf_header(path: Path) -> GgufHeader:
    """Read the header of a GGUF file."""
    if not path.is_file() or not path.stat().st_size:
        raise InputError("is not a file with anything in it", source=path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return _Walk(path, content).header()


class _Walk:
    """A place in the file that only moves forward."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.path = path
        self.content = content
        self.at = 0

    def header(self) -> GgufHeader:
        if self.content[:4] != b"GGUF":
            raise self.wrong("is no GGUF file: it does not begin with GGUF")
        self.at = 4
        version = self.number("I")
        if version not in (2, 3):
            raise self.wrong(f"is {version}, should be 2 or 3 (little-endian)", "version")
        n_tensors, n_fields = (self.count("Q", 8, what) for what in ("tensor_count", "kv_count"))
        numbers = {}
        for _ in range(n_fields):
            name = self.string("name of a field")
            value = self.value(self.number("I"), name)
            if value is not None:
                numbers[name] = value
        n_elements = n_bytes = 0
        for _ in range(n_tensors):
            elements, size = self.tensor()
            n_elements, n_bytes = n_elements + elements, n_bytes + size
        if n_bytes > len(self.content) - self.at:
            raise self.wrong(f"take {n_bytes:,} bytes; {len(self.content) - self.at:,} follow the header", "tensors")
        return GgufHeader(numbers, n_tensors, n_elements)

    def tensor(self) -> tuple[int, int]:
        """Numbers and bytes of a weight."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType  # noqa: PLC0415 - comes with the extra lm

        name = self.string("name of a tensor")
        shape = [int(self.number("Q")) for _ in range(self.count("I", 8, name))]
        kind = int(self.number("I"))
        # where it begins, which the reader checks
        self.number("Q")
        if kind not in set(GGMLQuantizationType):
            raise self.wrong(f"has type {kind}, which the package gguf does not know", name)
        per_block, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        elements = math.prod(shape)
        return elements, -(-elements // per_block) * block_bytes

    def value(self, kind: int | float, name: str, depth: int = 0) -> int | float | None:
        """Pass over a value; a single number is given back."""
        if kind in _SCALARS:
            return self.number(_SCALARS[int(kind)])
        if kind == _STRING:
            self.string(name)
        elif kind == _ARRAY and depth < _DEEPEST_ARRAY:
            inner = int(self.number("I"))
            if inner in _SCALARS:
                size = struct.calcsize(_SCALARS[inner])
                self.move(self.count("Q", size, name) * size, name)
            else:
                for _ in range(self.count("Q", 8, name)):
                    self.value(inner, name, depth + 1)
        else:
            raise self.wrong(f"has type {kind}, should be one of 0 to 12", name)
        return None

    def string(self, what: str) -> str:
        size = self.count("Q", 1, what)
        start = self.at
        self.move(size, what)
        return self.content[start : start + size].decode("utf-8", "replace")[:80]

    def count(self, form: str, bytes_each: int, what: str) -> int:
        """Read a count of things that take so many bytes each at least."""
        found = int(self.number(form))
        if found * bytes_each > len(self.content) - self.at:
            raise self.wrong(f"has length {found}, for which the file is too short", what)
        return found

    def number(self, form: str) -> int | float:
        start = self.at
        self.move(struct.calcsize(form), "header")
        found: int | float = struct.unpack_from(f"<{form}", self.content, start)[0]
        return found

    def move(self, n_bytes: int, what: str) -> None:
        if n_bytes > len(self.content) - self.at:
            raise self.wrong(f"is cut off after {len(self.content):,} bytes", what)
        self.at += n_bytes

    def wrong(self, problem: str, what: str | None = None) -> InputError:
        return InputError(problem, source=self.path, field=what)
