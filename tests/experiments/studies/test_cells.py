"""What every reader makes of cells that were typed, pasted or exported wrongly; no study is silently another."""

from __future__ import annotations

import unicodedata

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game import bet_study, comparison_study, guess_study, ranking_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.cells import folded, read_numbers
from shannon_game.experiments.studies.parsing import objects

CANDIDATES = pd.DataFrame(
    {
        "item": ["Ü1", "Ü1", "q2", "q2"],
        "draw": ["a", "b", "a", "b"],
        "context": ["C", "C", "D", "D"],
        "target": [" s"] * 4,
        "candidate": [" t", " u", " t", " v"],
        "target_logprob_lm": [-2.0] * 4,
        "candidate_logprob_lm": [-1.0] * 4,
    }
)


BETS = pd.DataFrame(
    [["Jürg", "Ü1", "x", "x", 40], ["bo", "Ü1", "x", "y", 30]],
    columns=["participant", "item", "target", "word", "stake"],
)
GUESSES = pd.DataFrame(
    [["Jürg", "Ü1", 1, "x", "x"], ["Jürg", "Ü1", 2, "y", "x"], ["bo", "Ü1", 1, "x", "z"]],
    columns=["participant", "document", "position", "target", "guess"],
)
RANKS = pd.DataFrame(
    [["Jürg", "Ü1", 8, "w", 0, " a", 1, " a", -1.0], ["Jürg", "Ü1", 8, "w", 0, " a", 2, " b", -1.5]],
    columns=[
        *("model", "text", "context_length", "window", "position"),
        *("reference_token", "rank", "token", "logprob_nats"),
    ],
)


@given(
    numbers=st.lists(st.integers(0, 10**9), min_size=1, max_size=6),
    sign=st.sampled_from([",", ".", " ", "\u00a0", "\u202f", "'", "\u2019", "_"]),
    whole=st.booleans(),
    decimal=st.sampled_from(["auto", "point", "comma"]),
)
def test_thousands_are_read_or_refused(numbers: list[int], sign: str, whole: bool, decimal: str) -> None:
    texts = objects([f"{number:,}".replace(",", sign) for number in numbers])
    found, _, problem = read_numbers(texts, str, decimal=decimal, whole=whole)
    # a point alone is that of a decimal number where nothing in the column says otherwise, and where the setting does
    if (
        problem is None
        and not (sign == "." and (decimal == "point" or not whole))
        and (sign, decimal) != (",", "comma")
    ):
        assert [value for value in found.tolist() if value == value] == numbers


@pytest.mark.parametrize(
    ("cells", "decimal", "expected"),
    [
        (["1,000", "5"], "auto", None),
        (["12.000", "88.000"], "auto", [12, 88]),
        (["1.234.567", "1.000"], "auto", [1234567, 1000]),
        (["1,234.5", "1,000"], "auto", [1234.5, 1000]),
        (["1,000"], "point", [1000]),
        (["1,000"], "comma", [1]),
        (["\u22125", "1e3"], "auto", [-5, 1000]),
    ],
)
def test_signs_of_numbers(cells: list[str], decimal: str, expected: list[float] | None) -> None:
    found, _, problem = read_numbers(objects(cells), str, decimal=decimal, whole=False)
    assert (problem is None) == (expected is not None)
    assert expected is None or found.tolist() == expected


@given(st.text(st.characters(codec="utf-8"), max_size=8))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert folded(folded(text)) == folded(text)
    assert folded(f"\u00a0{unicodedata.normalize('NFD', text)}\u200b ") == folded(text)


def test_a_space_before_the_words_of_one_side() -> None:
    spaced = guess_study(GUESSES.assign(target=" " + GUESSES["target"]))
    assert spaced["correct"].to_numpy().tolist() == guess_study(GUESSES)["correct"].to_numpy().tolist()
    assert any(note["level"] == "warning" and "compared without it" in note["text"] for note in notes(spaced))
    assert bet_study(BETS.assign(target="\u0120x"))["bet_hit"].to_numpy().tolist() == [True, False]
    bare = CANDIDATES.assign(candidate=["s", "u", "s", "v"])
    with pytest.raises(InputError, match=r"candidate: is 's' where the same token is ' s' \(2 such"):
        comparison_study(None, bare, generator="lm")
    two = pd.concat([RANKS, RANKS.assign(position=1)]).assign(token=["a", "b", "a", "b"])
    with pytest.raises(InputError, match=r"token: is 'a' where the same token is ' a' \(2 such"):
        ranking_study(two)
