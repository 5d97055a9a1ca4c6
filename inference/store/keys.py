"""What identifies a result: the operation and the context, by a hash of their content.

The seed of a context's random numbers and the shard that computes it come from its key, never from its position.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.code_identity import code_hash, package_version, source_hash, work_hash
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import word

SCHEMA_VERSION = 1
"""Of a store's files; raised whenever they are written in another way, and a store of another version is refused."""

KEY_LENGTH = 32
"""Hexadecimal digits of a key: 128 bits, where two among a billion contexts agree with probability 1e-21."""


def canonical_json(value: Any, *, field: str = "value") -> str:
    """Write a value as JSON that is the same for equal values, whatever the order of a mapping's keys."""
    try:
        return json.dumps(
            value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=_plain
        )
    except (TypeError, ValueError) as problem:
        raise InputError(f"cannot be written as JSON ({problem})", field=field) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON type")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True)
class OperationKey:
    """What was done by which model: results of two operations never mix. Made by :func:`operation_key`."""

    name: str
    description: str

    @cached_property
    def digest(self) -> str:
        """The first 32 hexadecimal digits of the description's SHA-256."""
        return _sha256(self.description)[:KEY_LENGTH]


def operation_key(
    name: str, *, model: Mapping[str, Any], parameters: Mapping[str, Any], compute: Callable[..., Any] | None = None
) -> OperationKey:
    """Build the key of an operation from everything that decides its results, apart from the context."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        raise InputError(f"is {name!r}, should be lower-case letters, digits and underscores", field="operation")
    # closures of one module are told apart by their own source
    code = [
        code_hash("shannon_game.inference.lm"),
        *([] if compute is None else [work_hash(compute), source_hash(compute)]),
    ]
    description = canonical_json(
        {"operation": name, "model": dict(model), "parameters": dict(parameters), "code": [*code, *model_versions()]},
        field="operation",
    )
    return OperationKey(name, description)


def model_versions() -> list[str]:
    """Packages that compute what a model says; a build for another device (``+cu124``) is the same version."""
    versions = {name: package_version(name).partition("+")[0] for name in ("torch", "transformers", "tokenizers")}
    return [f"{name} {version}" for name, version in versions.items()]


def result_key(*content: Any) -> str:
    """Hash what an operation is applied to."""
    return _sha256(canonical_json(list(content), field="key"))[:KEY_LENGTH]


def context_seed(seed: int, key: str) -> int:
    """Seed for the random numbers of one context: 64 bits of SHA-256 over the run's seed and the key."""
    return int(_sha256(canonical_json(["seed", int(seed), key]))[:16], 16)


@dataclass(frozen=True)
class Shard:
    """One of `count` equal parts of the work; every key belongs to exactly one of them."""

    index: int
    count: int

    def __post_init__(self) -> None:
        if not (self.count >= 1 and 0 <= self.index < self.count):
            raise InputError(
                f"is {self.index}/{self.count}, should be i/n with i from 0 to n - 1, such as 0/8", field="shard"
            )

    def holds(self, keys: Sequence[str]) -> NDArray[np.bool_]:
        """Which of the keys belong to this shard."""
        return np.fromiter((int(key[:15], 16) % self.count == self.index for key in keys), dtype=bool, count=len(keys))


def parse_shard(text: str | None) -> Shard | None:
    """Read ``"0/8"``; None stays None, which is all of the work."""
    if text is None:
        return None
    # a config gives a number for "1"
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(text))
    if found is None:
        raise InputError(
            f"is {text!r}, should be i/n with i from 0 to n - 1, such as 0/8, or {word(None)}", field="shard"
        )
    return Shard(int(found[1]), int(found[2]))
