"""Verdicts in closed cases, and every way in which a table of published values can be malformed."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.papers.published_study import (
    DIFFERS,
    EXPLAINED,
    NO_VALUE,
    NOT_REPRODUCIBLE,
    REPRODUCED,
    UNEXPECTED,
    VERDICTS,
    WITHIN_TOLERANCE,
    decimals,
    judge,
    parse_select,
    validate_published_study,
)


@pytest.mark.parametrize(
    ("printed", "ours", "verdict"),
    [
        ("0.42", 0.4155791564, REPRODUCED),
        ("0.42", 0.4149, DIFFERS),
        ("0.41", 0.4155791564, DIFFERS),
        # 0.50 has two digits, .5 one
        ("0.50", 0.496, REPRODUCED),
        ("0.50", 0.46, DIFFERS),
        (".5", 0.46, REPRODUCED),
        # exact halves: both rules print a neighbour
        ("0.12", 0.125, REPRODUCED),
        ("0.13", 0.125, REPRODUCED),
        ("0.12", 0.12500001, DIFFERS),
        ("2", 2.5, REPRODUCED),
        ("3", 2.5, REPRODUCED),
        # halves that a float misses by a hair: 2.675 is stored as 2.67499999999999982
        ("2.68", 2.675, REPRODUCED),
        ("2.67", 2.675, REPRODUCED),
        ("0.71", 0.705, REPRODUCED),
        ("-0.34", -0.345, REPRODUCED),
        ("-0.35", -0.345, REPRODUCED),
        ("0.345", -0.345, DIFFERS),
        ("18530", 18530.0, REPRODUCED),
        ("18530", 18029.0, DIFFERS),
        ("3.193813847884036", 3.193813847884036, REPRODUCED),
        ("0.000000", 4.9e-7, REPRODUCED),
        ("0.000000", 5.1e-7, DIFFERS),
        # bounds
        ("<0.1", 0.09999, REPRODUCED),
        ("<0.1", 0.1, DIFFERS),
        ("<=0.1", 0.1, REPRODUCED),
        (">=-0.5", -0.474, REPRODUCED),
        (">=-0.5", -0.684, DIFFERS),
        (">3", 3, DIFFERS),
        ("0", None, NO_VALUE),
        ("0", math.nan, NO_VALUE),
        ("0", math.inf, NO_VALUE),
    ],
)
def test_closed_cases(printed: str, ours: float | None, verdict: str) -> None:
    assert judge(printed, ours) == verdict


def test_tolerance_comes_after_the_digits_and_before_reasons() -> None:
    assert judge("0.000000", 9e-7, tolerance=1e-6) == WITHIN_TOLERANCE
    assert judge("0.000000", 1.1e-6, tolerance=1e-6) == DIFFERS
    # the bound itself is within; one printed unit away is not within half of one
    assert judge("0.10", 0.11, tolerance=0.01) == WITHIN_TOLERANCE
    assert judge("0.10", 0.104, tolerance=0.001) == REPRODUCED
    assert judge("1", 2.0, tolerance=0.5, expected=EXPLAINED, reason="a misprint") == EXPLAINED
    assert judge("1", 1.6, tolerance=0.7, expected=EXPLAINED, reason="a misprint") == WITHIN_TOLERANCE


@pytest.mark.parametrize("expected", [NOT_REPRODUCIBLE, EXPLAINED])
def test_what_was_not_expected_to_agree(expected: str) -> None:
    assert judge(".30", 0.41, expected=expected, reason="why") == expected
    # agreement is said, whatever was expected
    assert judge(".30", 0.3, expected=expected, reason="why") == REPRODUCED


def test_a_missing_value_excuses_only_what_cannot_be_computed() -> None:
    assert judge("1", None, expected=NOT_REPRODUCIBLE, reason="not public") == NOT_REPRODUCIBLE
    assert judge("1", math.nan, expected=EXPLAINED, reason="a misprint") == NO_VALUE
    assert {DIFFERS, NO_VALUE} < UNEXPECTED < set(VERDICTS)


@given(
    st.floats(-1e6, 1e6, allow_nan=False),
    st.integers(0, 9),
    st.sampled_from([ROUND_HALF_UP, ROUND_HALF_EVEN]),
)
def test_whatever_is_printed_of_ours_is_reproduced(value: float, places: int, rule: str) -> None:
    printed = format(Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding=rule), "f")
    assert decimals(printed) == places
    assert judge(printed, value) == REPRODUCED
    off = value + 1.01 * 10.0**-places
    if abs(Decimal(repr(off)) - Decimal(printed)) > Decimal("0.51").scaleb(-places):
        assert judge(printed, off) == DIFFERS


@pytest.mark.parametrize(
    "printed", ["", "29%", "1,640", "1e-3", "nan", "about 3", "0.1 ", "--1", ".", "<", "=1", "< 1"]
)
def test_what_is_no_plain_number(printed: str) -> None:
    with pytest.raises(InputError, match="plain number"):
        judge(printed, 1.0)


@pytest.mark.parametrize(
    ("expected", "reason"), [("differs", "why"), (EXPLAINED, ""), ("", "why"), (NOT_REPRODUCIBLE, "")]
)
def test_expectations_need_reasons(expected: str, reason: str) -> None:
    with pytest.raises(InputError, match="expected"):
        judge("1", 1.0, expected=expected, reason=reason)


def test_parse_select() -> None:
    assert parse_select("a=1 | b = x=y; z|") == {"a": "1", "b": "x=y; z"}
    assert parse_select("") == {}
    for bad in ("a", "=1", "a=1|a=2"):
        with pytest.raises(InputError, match=r"COLUMN=CELL"):
            parse_select(bad)


def good() -> dict[str, str]:
    return {
        "paper": "p",
        "where": "table 1",
        "quantity": "a number",
        "unit": "",
        "printed": "0.50",
        "expected": "",
        "reason": "",
        "part": "perplexity",
        "table": "table.csv",
        "select": "a=1",
        "column": "x",
        "source": "s",
    }


def study_of(*rows: dict[str, str], tolerance: object = math.nan, names: list[str] | None = None) -> xr.Dataset:
    cells = {name: ("value", np.array([row[name] for row in rows], dtype=object)) for name in good()}
    values = names or [str(number) for number in range(len(rows))]
    return xr.Dataset(
        {**cells, "tolerance": ("value", np.array([tolerance] * len(rows)))},
        coords={"value": np.array(values, dtype=object)},
        attrs={"name": "mine"},
    )


def test_a_good_study_passes() -> None:
    none = good() | {"part": "", "table": "", "select": "", "column": "", "expected": NOT_REPRODUCIBLE, "reason": "why"}
    study = study_of(good(), none)
    assert validate_published_study(study) is study


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"printed": "29%"}, r"'mine', 0: printed: is '29%'"),
        ({"quantity": " "}, r"'mine', 0, quantity: is empty"),
        ({"source": ""}, r"source: is empty"),
        ({"expected": "differs"}, r"expected: is 'differs'"),
        ({"reason": "why"}, r"expected: is '' with the reason 'why'"),
        ({"select": "a"}, r"select: is 'a'"),
        ({"table": ""}, r"go together"),
        ({"part": "", "table": "", "column": ""}, r"part: is empty, which only"),
    ],
)
def test_malformed_values(change: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        validate_published_study(study_of(good() | change))


def test_malformed_studies() -> None:
    with pytest.raises(InputError, match=r"'same' is there twice"):
        validate_published_study(study_of(good(), good(), names=["same", "same"]))
    for tolerance in (-1.0, 0.0):
        with pytest.raises(InputError, match=r"tolerance: is .*larger than zero"):
            validate_published_study(study_of(good(), tolerance=tolerance))
    with pytest.raises(InputError, match=r"unit: is missing"):
        validate_published_study(study_of(good()).drop_vars("unit"))
