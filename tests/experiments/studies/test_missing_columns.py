"""A column that is missing is answered the same everywhere: those that there are, and the one that may be meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from shannon_game import bet_study, cloze_study, comparison_study, guess_study, ranking_study
from shannon_game.estimators.errors import InputError

PAIRS = {
    "item": ["q"], "draw": [1], "context": ["a"], "target": ["b"], "candidate": ["c"],
    "target_logprob_g": [-1.0], "candidate_logprob_g": [-2.0],
}  # fmt: skip
ANSWERS = {"item": ["q"], "draw": [1], "participant": ["ann"], "report": [0.5]}
GUESSES = {"participant": ["ann"], "document": ["d"], "position": [0], "target": ["a"], "guess": ["b"]}
BETS = {"participant": ["ann"], "item": ["q"], "target": ["a"], "word": ["b"], "stake": [50]}
RANKS = {
    "model": ["m"], "text": ["t"], "context_length": [1], "window": ["1"], "position": [0], "reference_token": ["a"],
    "rank": [1], "token": ["a"], "logprob_nats": [-1.0],
}  # fmt: skip
CLOZE = {"context": ["a"], "response": ["b"]}

Make = Callable[[pd.DataFrame], Any]


def of_pairs(frame: pd.DataFrame) -> Any:
    return comparison_study(pd.DataFrame(ANSWERS), frame, generator="g")


def of_answers(frame: pd.DataFrame) -> Any:
    return comparison_study(frame, pd.DataFrame(PAIRS), generator="g")


CASES: list[tuple[Make, dict[str, Any], str]] = [
    *((of_pairs, PAIRS, name) for name in PAIRS if "logprob" not in name),
    *((of_answers, ANSWERS, name) for name in ANSWERS),
    *((guess_study, GUESSES, name) for name in GUESSES),
    *((ranking_study, RANKS, name) for name in RANKS),
    *((bet_study, BETS, name) for name in BETS),
    *((cloze_study, CLOZE, name) for name in CLOZE),
]


@pytest.mark.parametrize(("make", "columns", "name"), CASES)
def test_a_column_with_nearly_the_name_is_offered(make: Make, columns: dict[str, Any], name: str) -> None:
    frame = pd.DataFrame(columns)
    make(frame)
    meant = name.upper()
    with pytest.raises(InputError) as caught:
        make(frame.rename(columns={name: meant}))
    message = str(caught.value)
    assert f"is missing; did you mean {meant!r}? the table has " in message
    assert ", ".join(meant if column == name else column for column in columns) in message


@pytest.mark.parametrize(
    ("make", "columns", "gone"),
    [
        (of_pairs, PAIRS, ["item", "target", "candidate"]),
        (of_answers, ANSWERS, ["item", "participant", "report"]),
        (guess_study, GUESSES, ["participant", "position"]),
        (ranking_study, RANKS, ["model", "token"]),
        (bet_study, BETS, ["participant", "word", "stake"]),
    ],
)
def test_every_column_that_is_missing_is_named_at_once(make: Make, columns: dict[str, Any], gone: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make(
            pd.DataFrame(columns).rename(
                columns={name: name.upper() if name == gone[-1] else f"zz{name[::-1]}9" for name in gone}
            )
        )
    message = str(caught.value)
    assert f"{gone[0]}: is missing; " in message
    for name in gone[1:-1]:
        assert f"{name!r}" in message.partition("also missing: ")[2]
    assert f"{gone[-1]!r} (did you mean {gone[-1].upper()!r}?)" in message
