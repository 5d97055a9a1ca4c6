"""The files of a model, looked at before any is loaded: which are read, and whether they can be what they say.

What loads a model believes its files. A header of some bytes can ask for all memory there is, and an index can name
a pickled file, or one of another folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shannon_game.estimators.errors import InputError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
"""Says which of several files holds which weight."""
ADAPTER = "adapter_config.json"
_OBJECTS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json")

_SHARD = re.compile(r"[\w-][\w.-]*\.safetensors", re.ASCII)
_LARGEST_JSON = 1 << 26
# numbers of parts, each of which costs time to build; embeddings and widths cost memory alone
_COUNT = re.compile("layer|head|expert|block_count")
# of a small model some are left as its family has them
_SMALL = 1024


@dataclass(frozen=True)
class ModelFiles:
    """Files that decide what a model is."""

    paths: tuple[Path, ...]
    n_elements: int


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    if not path.is_file():
        raise InputError("is not a file", source=path)
    if path.stat().st_size > _LARGEST_JSON:
        raise InputError(f"has {path.stat().st_size:,} bytes, should have at most {_LARGEST_JSON:,}", source=path)
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON ({error}); take a whole copy", source=path) from None
    if not isinstance(found, dict):
        raise InputError(f"holds a {type(found).__name__}, should hold a JSON object", source=path)
    return found


def model_files(folder: Path) -> ModelFiles:
    """Name the files that transformers will read from a folder, after checking what they say of themselves."""
    if not folder.is_dir():
        raise InputError("there is no such folder", source=folder)
    if not (folder / CONFIG).exists():
        raise InputError(f"has no {CONFIG}; a folder in the Hub's layout is needed", source=folder)
    for path in folder.iterdir():
        # whoever reads a pipe waits for ever
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError("is not a file", source=path)
    config = read_object(folder / CONFIG)
    for name in _OBJECTS:
        if (folder / name).exists():
            read_object(folder / name)
    # transformers reads the files that these name instead
    if config.get("transformers_weights") is not None:
        raise InputError(
            f"names other weights; only {WEIGHTS} and {INDEX} are read",
            source=folder / CONFIG,
            field="transformers_weights",
        )
    if (folder / ADAPTER).exists():
        base = read_object(folder / ADAPTER).get("base_model_name_or_path")
        problem = f"belongs to an adapter: let path name its model ({base!r} there) and adapter={folder} the folder"
        raise InputError(problem, source=folder / ADAPTER)
    weights = weight_files(folder)
    shapes = _tensor_shapes(weights)
    check_counts(config, len(shapes), folder / CONFIG)
    index = [] if weights == [folder / WEIGHTS] else [folder / INDEX]
    return ModelFiles((*weights, folder / CONFIG, *index), sum(map(math.prod, shapes.values())))


def adapter_files(folder: Path) -> list[Path]:
    """Name the files of a LoRA adapter, after checking that it is one."""
    kind = read_object(folder / ADAPTER).get("peft_type")
    if kind != "LORA":
        raise InputError(
            f"is {kind!r}, should be 'LORA': no other is merged", source=folder / ADAPTER, field="peft_type"
        )
    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        raise InputError("is no file; pickled weights (.bin) are not read: convert them first", source=weights)
    return [folder / ADAPTER, weights]


def weight_files(folder: Path) -> list[Path]:
    """Name the files of weights, all of them safetensors of this folder."""
    # transformers, too, prefers the one file
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    index = folder / INDEX
    if not index.exists():
        raise InputError(
            f"has neither {WEIGHTS} nor {INDEX}; pickled weights (.bin, .pt) are not read, because reading them runs "
            "what they hold: convert them first",
            source=folder,
        )
    found = read_object(index)
    for field in ("metadata", "weight_map"):
        if not isinstance(found.get(field), dict):
            raise InputError(f"is {str(found.get(field))[:80]!r}, should be an object", source=index, field=field)
    if not found["weight_map"]:
        raise InputError("is empty, should name the file of each weight", source=index, field="weight_map")
    for weight, name in found["weight_map"].items():
        if not isinstance(name, str) or not _SHARD.fullmatch(name):
            raise InputError(
                f"names {str(name)[:80]!r}, should name a .safetensors file of this folder; no other is read",
                source=index,
                field=weight[:80],
            )
    return [folder / name for name in sorted(set(found["weight_map"].values()))]


def _tensor_shapes(files: Sequence[Path]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights, and none of their numbers."""
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - comes with the extra lm

    shapes: dict[str, tuple[int, ...]] = {}
    for path in files:
        if not path.is_file():
            raise InputError("is not a file", source=path)
        try:
            with safe_open(path, framework="numpy") as opened:
                own = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, ValueError) as error:
            raise InputError(
                f"is damaged or no safetensors file ({' '.join(str(error).split())[:200]})", source=path
            ) from error
        for name in own.keys() & shapes.keys():
            raise InputError("is in two files of this model", source=path, field=name)
        shapes |= own
    return shapes


def check_counts(config: Mapping[str, Any], n_tensors: int, source: Path) -> None:
    """Refuse a configuration of so many layers, heads or experts that only building the model would take hours."""
    largest = max(n_tensors, _SMALL)
    for field, value in _numbers(config):
        if _COUNT.search(field) and value > largest:
            raise InputError(
                f"is {value:.6g}; the files hold {n_tensors} weights, and no more than {largest} is built",
                source=source,
                field=field,
            )


def _numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, int | float]]:
    """Numbers with their names, however deep they are."""
    left: list[tuple[str, Any]] = list(config.items())
    while left:
        name, value = left.pop()
        if isinstance(value, Mapping):
            left.extend(value.items())
        elif isinstance(value, list):
            left.extend((name, part) for part in value)
        elif isinstance(value, int | float) and math.isfinite(value):
            yield name, value


def hash_files(paths: Iterable[Path]) -> str:
    """SHA-256 of the contents of files, in this order."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
