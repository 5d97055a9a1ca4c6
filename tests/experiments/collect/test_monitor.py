"""What the experimenter sees while people play."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from shannon_game.experiments.collect.deck import Card, Deck
from shannon_game.experiments.collect.monitor import FEWEST, session_flags


@dataclass
class Row:
    id: int
    question_id: int
    value: dict[str, Any]
    score: float | None = None
    game: str = "comparison"
    automatic: bool = False
    correct: bool | None = True
    server_ms: int = 5000
    layout: Any = None


def deck(n: int = 40) -> Deck:
    return Deck(
        Card(at, "comparison", str(at), "", at, True, False, at >= 30, {"context": "", "target": ""}) for at in range(n)
    )


def usual(session: int, **changes: Any) -> list[Row]:
    """A session that nobody would flag; its mean score is near those of others."""
    rng = np.random.default_rng(session)
    return [
        Row(session, at, {"percent_a": int(rng.choice([20, 50, 80, 99]))}, float(rng.normal(5, 1)), **changes)
        for at in range(FEWEST)
    ]


@pytest.mark.parametrize(
    ("rows", "flags"),
    [
        ([], {}),
        (usual(1), {}),
        (usual(1, server_ms=900), {1: ["too_fast"]}),
        (usual(1, server_ms=900)[:-1], {}),
        ([Row(1, at, {"percent_a": 50}, 0.0) for at in range(FEWEST)], {1: ["one_key"]}),
        ([Row(1, at, {"percent_a": 50 if at < 8 else 60}, 0.0) for at in range(FEWEST)], {}),
        ([Row(1, at, {"percent_a": 50}, 0.0, automatic=True) for at in range(FEWEST)], {}),
        ([Row(1, 30, {"percent_a": 50}, correct=False)], {1: ["failed_check"]}),
        ([Row(1, 30, {"percent_a": 99}, correct=True)], {}),
        ([Row(1, at, {"word": "The" if at % 2 else "the"}, game="cloze") for at in range(FEWEST)], {1: ["one_key"]}),
    ],
)
def test_sessions_are_flagged_by_the_rules(rows: list[Row], flags: dict[int, list[str]]) -> None:
    assert session_flags(rows, deck()) == flags
