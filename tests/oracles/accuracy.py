"""The accuracy model guess by guess, in plain loops."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr


def logit_of_guess(
    point: Mapping[str, Any], person: str, document: str, position: int, n_before: int, centre: float
) -> float:
    """Log-odds of one guess; `point` has names for keys of its effects, and bands as powers of two."""
    block = math.floor(50 * math.log(1 + n_before / 100) / math.log(11))
    amount = (block + 0.5) / 50 - centre
    band = 0 if position == 0 else int(math.log2(position)) + 1
    return float(
        point["intercept"]
        + point["ability"][person]
        + point["practice"][person] * amount
        + point["context_effect"][band]
        + point["document_effect"][document]
    )


def log_likelihood(study: xr.Dataset, point: Mapping[str, Any], centre: float) -> float:
    """Sum over the guesses of ln p or ln(1 - p)."""
    total = 0.0
    for at in range(study.sizes["response"]):
        row = study.isel(response=at)
        item = study.sel(item=int(row["response_item"]))
        logit = logit_of_guess(
            point,
            str(row["participant"].item()),
            str(item["item_document"].item()),
            int(item["item_position"]),
            int(row["n_before"]),
            centre,
        )
        probability = 1 / (1 + math.exp(-logit))
        total += math.log(probability if bool(row["correct"]) else 1 - probability)
    return total


def simulated_study(
    *,
    n_participants: int,
    n_documents: int,
    n_guesses: int,
    seed: int,
    intercept: float = -1.0,
    ability_spread: float = 0.5,
    practice: float = 0.6,
    document_spread: float = 0.3,
    steps: tuple[float, ...] = (0.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.05, 0.0),
) -> tuple[xr.Dataset, dict[str, Any]]:
    """People read documents one after the other, each from its second token, `n_guesses` in each; and the truth."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, ability_spread, n_participants)
    place_effect = rng.normal(0, document_spread, n_documents)
    context_effect = np.cumsum(steps)
    per_person = max(2, n_documents // 3)
    rows = []
    for u in range(n_participants):
        order = rng.choice(n_documents, per_person, replace=False)
        for turn, d in enumerate(order.tolist()):
            for at in range(1, n_guesses + 1):
                # five guesses for each one kept: a game long enough to learn in, a study small enough to fit
                before = 5 * (turn * n_guesses + at - 1)
                amount = math.log(1 + before / 100) / math.log(11)
                band = min(int(math.log2(at)) + 1, len(steps) - 1)
                logit = intercept + ability[u] + practice * amount + context_effect[band] + place_effect[d]
                rows.append((u, d, at, before, rng.random() < 1 / (1 + math.exp(-logit))))
    person, document, position, before, correct = (np.array(column) for column in zip(*rows, strict=True))
    items, item = np.unique(np.stack([document, position], axis=1), axis=0, return_inverse=True)
    study = xr.Dataset(
        {
            "item_document": ("item", np.array([f"d{d:03}" for d in items[:, 0]], dtype=object)),
            "item_position": ("item", items[:, 1]),
            "word_token": ("item", np.ones(len(items), dtype=bool)),
            "participant": ("response", np.array([f"p{u:03}" for u in person], dtype=object)),
            "response_item": ("response", item.ravel().astype(np.int64)),
            "correct": ("response", correct.astype(bool)),
            "n_before": ("response", before.astype(np.int64)),
        },
        coords={
            "document": np.array([f"d{d:03}" for d in range(n_documents)], dtype=object),
            "item": np.arange(len(items)),
        },
        attrs={"name": "simulated guesses", "tokens": "all"},
    )
    return study, {"ability": ability, "practice": practice, "document_effect": place_effect, "context": context_effect}
