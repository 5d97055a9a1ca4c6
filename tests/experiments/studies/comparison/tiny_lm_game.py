"""A small study in the layout of the next-token game, to load and to break."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

ITEMS = range(100, 106)
CANDIDATES = 5
CONFIG: dict[str, Any] = {"sets": {"first": [100, 101], "second": [103, 105]}, "reference": [100, 102]}
"""Question 102 is in the reference only, 103 to 105 are asked only."""

TOKENS = [" cat", " dog", ",", "\ufffd", "s", "\x00", " Zürich"]
RESPONSES = "results_raw/res_loss_anonym.json"
ANNA, BORIS, CLARA, DORA = 11, -22, 33, "dora"


def question_name(item: int) -> str:
    return f"multi_comparisons/doc{item}.json"


def question(item: int) -> dict[str, Any]:
    rng = np.random.default_rng(item)
    models = [np.log(rng.dirichlet(np.ones(len(TOKENS)))) for _ in range(3)]
    target = item % 100
    # only candidate 0 is the target, so that only who saw it answered automatically
    others = [token for token in range(len(TOKENS)) if token != target]
    drawn = [target, *rng.choice(others, size=CANDIDATES - 1)]
    return {
        "id": item,
        "input_str": f"context {item} \ud83d",
        "correct_token_str": TOKENS[target],
        "generated_token_strs": [TOKENS[i] for i in drawn],
        "generator_names": ["gelu_two_layers/", "gelu_twelve_layers/", "gelu_twenty_four_layers/"],
        "generator_index": 1,
        "correct_logprobs": [float(model[target]) for model in models],
        "generated_logprobss": [[float(model[i]) for i in drawn] for model in models],
        "generation_probs": [math.exp(models[1][i]) for i in drawn],
    }


def contents() -> dict[str, Any]:
    """Data of every file by name. Anna and Boris pass the paper's rule, Clara answered too often, Dora too little."""
    rows: list[tuple[Any, float, int, int]] = [
        (ANNA, 10.0, 100, 1),
        (ANNA, 90.0, 101, 1),
        (BORIS, 50.0, 103, 0),
        (BORIS, 70, 104, 2),
        (BORIS, 20.0, 105, 2),
        (BORIS, 1.0, 100, 2),
        (CLARA, 60.0, 100, 3),
        (CLARA, 30.0, 101, 3),
        (CLARA, 99.0, 100, 3),
        (DORA, 80.0, 104, 4),
        (DORA, 80.0, 999, 4),
    ]
    data: dict[str, Any] = {question_name(item): question(item) for item in ITEMS}
    data[RESPONSES] = [[number, *row] for number, row in enumerate(rows)]
    return data


def encode(data: dict[str, Any]) -> dict[str, bytes]:
    return {
        name: value if isinstance(value, bytes) else json.dumps(value).encode("ascii") for name, value in data.items()
    }


def write_folder(root: Path, data: dict[str, Any] | None = None) -> Path:
    for name, content in encode(contents() if data is None else data).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def write_archive(path: Path, data: dict[str, Any] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in encode(contents() if data is None else data).items():
            archive.writestr(name, content)
    return path


def write_manifest(root: Path, names: Iterable[str], path: Path) -> None:
    lines = [f"{name},{hashlib.sha256((root / name).read_bytes()).hexdigest()}\n" for name in sorted(names)]
    path.write_text("name,sha256\n" + "".join(lines), newline="")


def broken(name: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    """The study with one file changed."""
    data = contents()
    change(data[name])
    return data
