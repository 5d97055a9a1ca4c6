"""Data of the participant model by hand, and simulated studies of known beliefs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison import ParticipantPopulation, QuestionDesign, simulate_designed_study
from shannon_game.estimators.comparison.rounding import rounding_scheme
from shannon_game.models.comparison.participant_data import ParticipantData, report_box_edges

Row = tuple[int, int, int]


def by_hand(target_g: list[float], tokens: list[tuple[int, float]], rows: list[Row], **changed: Any) -> ParticipantData:
    """Items' g(y), tokens as (item, g), reports as (token, participant, box) of the site's eleven values."""
    n, item = len(target_g), np.array([q for q, _ in tokens], dtype=int)
    people = 1 + max((p for _, p, _ in rows), default=0)
    edges, half = report_box_edges(rounding_scheme("interface"))
    token, person, box = (np.array(x, dtype=int) for x in (zip(*rows, strict=True) if rows else ([], [], [])))
    fields: dict[str, Any] = {
        "study": "by hand",
        "generator": "g",
        "item": np.arange(n),
        "position": np.arange(n),
        "target_log_g": np.log(target_g),
        "token_item": item,
        "token_log_g": np.log([g for _, g in tokens]),
        "whole": True,
        "answer_item": np.zeros(0, dtype=int),
        "answer_token": np.zeros(0, dtype=int),
        "answer_participant": np.zeros(0, dtype=str),
        "box_value": np.asarray(rounding_scheme("interface").values),
        "participant": np.array([f"p{p}" for p in range(people)]),
        "is_player": False,
        "row_token": token,
        "row_participant": person,
        "row_response": np.arange(len(rows)),
        "row_box": box,
        "row_low": np.zeros(len(rows)),
        "row_high": np.zeros(len(rows)),
        "box_edges": edges,
        "half_box": half,
        "n_other_reference": 0,
        "rest_drawn": np.zeros(len(changed.get("rest_item", [])), dtype=bool),
    }
    for name in ("n_answers", "target_answers", "other_answers", "target_shown"):
        fields[name] = np.zeros(n, dtype=int)
    for name in ("token_answers", "token_column", "token_shown"):
        fields[name] = np.zeros(len(tokens), dtype=int)
    for name in ("rest_item", "rest_log_g", "rest_count"):
        fields[name] = np.zeros(0, dtype=int if name == "rest_item" else float)
    data = ParticipantData(**(fields | changed))
    return with_reports(data, box) if rows else data


def with_reports(data: ParticipantData, row_box: np.ndarray[Any, Any]) -> ParticipantData:
    """Put other reports in the places of people's."""
    low, high = np.clip(data.box_edges[row_box], -1e4, 1e4).T
    return replace(data, row_box=row_box.astype(np.intp), row_low=low.copy(), row_high=high.copy())


def believers(
    n_items: int = 20,
    *,
    vocabulary: int = 150,
    temperature: float = 1.0,
    seed: int = 0,
    n_comparing: int = 10,
    **given: Any,
) -> xr.Dataset:
    """People who believe the generator at a temperature; ``human_target_logprob`` has the truth."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 2.5, (n_items, vocabulary))
    log_g, log_h = (x - np.logaddexp.reduce(x, axis=1, keepdims=True) for x in (logit, logit / temperature))
    target = (log_g + rng.gumbel(size=log_g.shape)).argmax(axis=1)
    design = {"n_draws": 10, "n_answers": 10, "n_comparisons": n_comparing, "n_participants": 20} | given
    people = design.pop("people", ParticipantPopulation())
    return simulate_designed_study(log_g, log_h, target, QuestionDesign(**design), people, seed=seed)
