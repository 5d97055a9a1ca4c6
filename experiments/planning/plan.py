"""The plan of a design, as ``+exp=collect`` runs it: ``experiment.plan=plan_GAME.yaml``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

from shannon_game.experiments.planning.settings import ADAPTIVE
from shannon_game.inference.disk import write_whole

SCALES = ("interface", "slider")
"""Scales that the comparison game has."""

_BLOCKS = {
    "comparison": {"comparison": "n_comparisons"},
    "bridge": {"cloze": "n_answers", "comparison": "n_comparisons"},
    ADAPTIVE: {"cloze": "n_answers", "comparison": "n_comparisons"},
    "mixed": {"cloze": "n_answers", "comparison": "n_comparisons", "bets": "n_bets"},
    "bets": {"bets": "n_bets"},
    "cloze": {"cloze": "n_answers"},
    "accuracy": {"top1": "n_guesses"},
    "ranks": {"guess_until_right": "n_guesses"},
}
"""Game of a design -> games of a visit, with the size per context that each asks."""


def plan_of(row: Any, width_nats: float, served: str | None = None) -> dict[str, Any]:
    """Settings of a collection: its study, how many questions of each game a person answers, and how many people."""
    share = 0.5 if row.game == "mixed" else 1.0
    blocks = [
        {"game": game, "n_questions": math.ceil(share * row.n_contexts * getattr(row, size) / row.n_people)}
        for game, size in _BLOCKS[row.game].items()
    ]
    plan: dict[str, Any] = {} if served is None else {"served": served}
    plan |= {"blocks": blocks, "n_sessions": int(row.n_people), "contexts": int(row.n_contexts)}
    if row.scale:
        plan["scale"] = row.scale
    return plan | ({"questions": "adaptive", "width_nats": width_nats} if row.game == ADAPTIVE else {})


def write_plan(plan: dict[str, Any], path: Path, *, recommended: bool = True) -> None:
    """Write a plan as YAML; its first line says if it is not recommended."""
    said = "" if recommended else "# not recommended: the narrowest within the budget\n"
    write_whole(path, said + yaml.safe_dump(plan, sort_keys=False))
