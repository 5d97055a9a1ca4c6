"""A small top-1 game in the public layout, to load and to break; and a larger one with a known truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

RESPONSES = "results_raw/res_accuracy_anonym.json"
ANNA, BORIS, TESTER, ANON = 11, -22, 3056584949900737159, 1812031566398576187
DOCUMENTS = {3: ["The", " cat", " sat", ".", "\n", "\ufffd", " Dogs", "y"], 7: ["A", " dog", " ran", " fast"]}


def contents() -> dict[str, Any]:
    """Data of every file by name. Rows are not in the order of their ids, as in the public file."""
    rows: list[list[Any]] = [
        [6, BORIS, " cat", "?", 2, 3],  # right, word
        [1, ANNA, " dog", "?", 2, 3],  # wrong, word
        [2, ANNA, " sat", "?", 3, 3],  # right; no word, because "." follows
        [3, ANNA, " ", "?", 5, 3],  # a line break: not visible
        [4, ANNA, "x", "?", 6, 3],  # half a character: not visible
        [5, ANNA, " cat", "?", 2, 3],  # again at the same place, now right
        [7, TESTER, " cat", "?", 2, 3],
        [8, ANON, " dog", "?", 2, 7],  # right, word
        [9, BORIS, " ran", "?", 99, 7],  # past the end
        [10, BORIS, " ran", "?", 3, 10_500],  # no such document
        [11, BORIS, " runs", "?", 3, 7],  # wrong, word
        [12, BORIS, " slow", "?", 4, 7],  # wrong; last token, so that no space follows
        [13, BORIS, "x", "?", 0, 7],  # before the start
    ]
    return {
        **{f"docs/doc{number}.json": list(tokens) for number, tokens in DOCUMENTS.items()},
        RESPONSES: rows,
        "results_raw/model_perfs.json": {"davinci": 0.56},
        "results_raw/model_perfs_new_new.json": {"fairseq-125m": 0.314},
    }


def write_folder(root: Path, data: dict[str, Any] | None = None) -> Path:
    for name, value in (contents() if data is None else data).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode("ascii"))
    return root


def played(root: Path, *, n_participants: int = 8, n_documents: int = 6, n_tokens: int = 40, seed: int = 0) -> Path:
    """A game that people play with abilities from .2 to .6, two documents each; two language models."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array([" cat", " dog", " sat", " ran", ",", " the"])
    documents = {number: rng.choice(vocabulary, n_tokens).tolist() for number in range(n_documents)}
    rows: list[list[Any]] = []
    for person in range(n_participants):
        for number in rng.choice(n_documents, 2, replace=False).tolist():
            for at in range(1, n_tokens):
                right = rng.random() < 0.2 + 0.4 * person / n_participants
                guess = documents[number][at] if right else " none"
                rows.append([len(rows), person + 100, guess, "?", at + 1, number])
    return write_folder(
        root,
        {
            **{f"docs/doc{number}.json": tokens for number, tokens in documents.items()},
            RESPONSES: rows,
            "results_raw/model_perfs.json": {"davinci": 0.56, "ada": 0.42},
            "results_raw/model_perfs_new_new.json": {"fairseq-125m": 0.314},
        },
    )
