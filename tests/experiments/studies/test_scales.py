"""Values on two scales are refused wherever a setting scales a column; honest small ones are read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.bets.table import bet_study
from shannon_game.experiments.studies.cells import check_scale
from shannon_game.experiments.studies.plain_table import table_of

LARGE = st.one_of(st.integers(2, 100).map(float), st.floats(1.01, 100))
WHOLE = st.integers(0, 100).map(float)


def check(values: list[list[float]], top: float = 100) -> list[str]:
    """Check the values of some people; what was noted."""
    flat = [value for own in values for value in own]
    who = [f"p{at}" for at, own in enumerate(values) for _ in own]
    table = table_of(pd.DataFrame({"x": flat, "participant": who}), "mine", of="answer", once=False)
    check_scale(table, "x", np.array(flat), np.arange(len(flat)), top=top, cure="cure")
    return [note.text for note in table.notes]


@given(st.lists(st.lists(WHOLE, min_size=1, max_size=8), min_size=1, max_size=8))
def test_whole_percentages_are_never_refused(values: list[list[float]]) -> None:
    assert check(values) == []


@given(st.lists(st.lists(LARGE, min_size=4, max_size=8), min_size=1, max_size=8), st.floats(0.001, 0.999))
def test_half_a_percent_once_is_never_refused(values: list[list[float]], small: float) -> None:
    assert check([[small, *values[0]], *values[1:]]) == []


@given(
    st.lists(st.lists(LARGE, min_size=3, max_size=8), min_size=1, max_size=8),
    st.lists(st.floats(0.01, 0.99), min_size=3, max_size=8),
)
def test_a_participant_who_reports_fractions_is_refused(values: list[list[float]], own: list[float]) -> None:
    with pytest.raises(InputError, match="cure"):
        check([*values, own])


@given(st.lists(st.tuples(LARGE, st.booleans()), min_size=4, max_size=30))
def test_rows_of_two_scales_are_refused_whoever_reported_them(rows: list[tuple[float, bool]]) -> None:
    values = [value / 101 if fraction else value for value, fraction in rows]
    if np.mean([fraction for _, fraction in rows]) >= 0.25:
        with pytest.raises(InputError, match="cure"):
            check([values])


def test_too_few_values_are_noted_and_probabilities_a_hundredth_refused() -> None:
    (note,) = check([[50.0] * 9, [0.5, 0.7]])
    assert "too few values to tell" in note
    assert check([[0.001, 0.4], [0.005, 0.001]], top=1) == []
    with pytest.raises(InputError, match="from 0 to 1; cure"):
        check([[0.007, 0.004], [0.0099]], top=1)


def bets(*stakes: tuple[str, float, float]) -> pd.DataFrame:
    """Answers of two words: who, and the two stakes."""
    rows = [
        {"participant": who, "item": f"q{at}", "target": "x", "word": word, "stake": stake}
        for at, (who, *both) in enumerate(stakes)
        for word, stake in zip("xy", both, strict=True)
    ]
    return pd.DataFrame(rows)


def test_stakes_are_of_their_total() -> None:
    shares = bets(*[("ann", 0.5, 0.3)] * 3, ("bo", 0.5, 0.5))
    with pytest.raises(InputError, match=r"stake: is 0\.3 in row 1 .* shares take total=1"):
        bet_study(shares)
    np.testing.assert_allclose(bet_study(shares, total=1)["other_stake"], [0.2, 0.2, 0.2, 0], atol=1e-12)
    chips = bets(*[("ann", 50, 30)] * 20, *[("bo", 0.5, 0.5)] * 3)
    with pytest.raises(InputError, match="of 'bo' is above 1"):
        bet_study(chips)
    with pytest.raises(InputError, match="adds up to 80"):
        bet_study(bets(*[("ann", 50, 30)] * 4), total=1)
    # one chip of a hundred, and half of one once
    cautious = bet_study(bets(*[("ann", 50, 30)] * 9, *[("bo", 1, 0)] * 9, ("cy", 0.5, 0.2)))
    assert [note["count"] for note in notes(cautious) if "too few values" in note["text"]] == [1]
