"""Tokens of a language model as strings, for a game that takes nothing else.

A file is one JSON string a line (``data/vocabulary.jsonl.gz`` has the tokens of SmolLM2), or the ``tokenizer.json`` of
a byte-level tokenizer. Tokens that are no whole characters cannot be typed, and are left out.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.parsing import parse_json

_LOADED: dict[str, Vocabulary] = {}


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """All tokens that can be typed."""

    name: str
    tokens: frozenset[str]


@cache
def read_vocabulary(path: Path) -> Vocabulary:
    """Read the tokens of a file."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        tokens = _of_tokenizer(parse_json(text, path, "vocabulary")) if path.suffix == ".json" else _of_lines(text)
    except InputError:
        raise
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", source=path, field="vocabulary") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = "should have one JSON string a line, or be the tokenizer.json of a byte-level tokenizer"
        raise InputError(problem, source=path, field="vocabulary") from error
    if not tokens:
        raise InputError("has no tokens", source=path, field="vocabulary")
    name = hashlib.sha256("\0".join(sorted(tokens)).encode()).hexdigest()[:12]
    return _LOADED.setdefault(name, Vocabulary(name, tokens))


def vocabulary_of(name: str) -> Vocabulary:
    """Return a vocabulary that was read before, by its name."""
    return _LOADED[name]


def _of_lines(text: str) -> frozenset[str]:
    tokens = [json.loads(line) for line in text.split("\n") if line]
    if not all(isinstance(token, str) for token in tokens):
        raise TypeError
    return frozenset(tokens) - {""}


def _of_tokenizer(content: dict[str, Any]) -> frozenset[str]:
    steps = json.dumps([content.get("pre_tokenizer"), content.get("decoder")])
    if "ByteLevel" not in steps:
        raise ValueError
    byte_of = _byte_level_table()
    special = {added["content"] for added in content.get("added_tokens", ())}
    found = set()
    for piece in content["model"]["vocab"]:
        try:
            found.add(bytes(byte_of[sign] for sign in piece).decode("utf-8"))
        except (KeyError, UnicodeDecodeError):
            continue
    return frozenset(found - special - {""})


def _byte_level_table() -> dict[str, int]:
    """Signs as which byte-level vocabularies write bytes: those one can see as themselves, the rest from U+0100 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in set(seen)]
    return {chr(byte): byte for byte in seen} | {chr(0x100 + at): byte for at, byte in enumerate(rest)}
