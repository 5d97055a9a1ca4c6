"""Published values beside ours: one format for the values, one rule for the verdict.

A published study holds what papers print, one value an entry, with its source and where a run finds our value.
See :func:`validate_published_study` for the variables and :func:`judge` for the verdicts.
"""

from __future__ import annotations

import math
import operator
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.schema import Range, Schema, Variable

if TYPE_CHECKING:
    import xarray as xr


REPRODUCED = "reproduced to the digit"
WITHIN_TOLERANCE = "within stated tolerance"
READ = "read"
NOT_AVAILABLE = "not available"
EXPLAINED = "differs, explained"
DIFFERS = "differs"
NO_VALUE = "no value of ours"
DATA_MISSING = "data missing"
NOT_RUN = "not run"
PART_FAILED = "part failed"

VERDICTS = (
    *(REPRODUCED, WITHIN_TOLERANCE, READ, NOT_AVAILABLE, EXPLAINED),
    *(DIFFERS, NO_VALUE, PART_FAILED, DATA_MISSING, NOT_RUN),
)
"""Every verdict that a published value can get; it gets exactly one.

The first two are of values computed from responses or models; ``read`` repeats the authors' stored result.
"""

UNEXPECTED = frozenset({DIFFERS, NO_VALUE, PART_FAILED})
"""Verdicts that a run has to answer for with its exit code."""

EXPECTED = ("", NOT_AVAILABLE, EXPLAINED)
"""What the table may say beforehand of a value that ours is not expected to equal; with a reason."""

PRINTED, COUNTED, AGAIN = "printed", "counted", "printed again"
ORIGINS = (PRINTED, COUNTED, AGAIN)
"""Where a published value stands: in the text; in public files alone, counted by us; in the text a second time."""

COMPUTED = "computed"
BASES = (COMPUTED, READ)
"""What ours is: computed from responses or models, or read from the authors' stored results."""

_MEANINGS = {
    "paper": "which publication, a short name",
    "where": "its table, figure or section",
    "quantity": "what the number is; unique within its place",
    "unit": "nats, guesses, ...; empty for pure numbers",
    "printed": 'the number as printed: "0.50" has two digits after the point, and they count; or a bound, "<0.1"',
    "expected": "empty, or the verdict where ours is not expected to agree (:data:`EXPECTED`)",
    "reason": "why; with ``expected`` and only with it",
    "part": "the part of ``+exp=reproduce`` that has our value; empty only if nothing public gives one",
    "table": "CSV file in that part's folder",
    "select": 'its row: "player=human | rounding=none" (:func:`parse_select`)',
    "column": "its column",
    "origin": "``printed`` in the text, ``printed again`` there, or ``counted`` by us from a public file",
    "basis": "``computed`` from responses or models, or ``read`` from the authors' stored results; empty without part",
    "source": "the place in the text (table, appendix or section), or the public file",
}
_TEXT = tuple(_MEANINGS)

PUBLISHED = Schema(
    "published",
    "study=published makes one",
    (
        Variable("value", "value", "str", "name of the value"),
        *(Variable(name, "value", "str", meaning) for name, meaning in _MEANINGS.items()),
        Variable(
            *("tolerance", "value", "float"),
            "largest difference that counts as agreement, in the printed unit; NaN: printed digits only",
            range=Range("larger than zero, or NaN", 0, open_ends=True, nan=True),
        ),
    ),
)
_PRINTED = re.compile(r"(?P<bound>[<>]=?)?(?P<number>[-+]?(\d+(\.\d*)?|\.\d+))")
_KEEPS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# a float may miss the half of a printed unit by a hair: 0.705 is stored as 0.70499999999999996
_HAIR = Decimal("1e-9")


def number_of(printed: str) -> Decimal:
    """Give a printed number, of a bound the bound itself: 0.1 for "<0.1"."""
    return Decimal(_matched(printed)["number"])


def _matched(printed: str) -> re.Match[str]:
    if found := _PRINTED.fullmatch(printed):
        return found
    raise InputError(f"is {printed!r}, should be a plain number such as 0.50, or a bound such as <0.1", field="printed")


def decimals(printed: str) -> int:
    """Digits after the point of a printed number: 2 for "0.50", 0 for "18530"."""
    exponent = number_of(printed).as_tuple().exponent
    return max(-int(exponent), 0)


def judge(
    printed: str,
    ours: float | None,
    *,
    tolerance: float = math.nan,
    expected: str = "",
    reason: str = "",
    basis: str = COMPUTED,
) -> str:
    r"""Give the verdict on one published value that could be computed.

    Ours is reproduced to the digit where :math:`|ours - printed| \le 10^{-d} / 2`, with d the digits printed after
    the point. The bound is closed, so that it does not matter whether the authors round halves up or to even: 0.125 is
    printed as 0.12 or as 0.13. Where the paper prints a bound ("<0.1"), ours is reproduced if it keeps the bound. What
    agrees and was read from the authors' stored results is ``read``.

    Examples
    --------
    >>> judge("0.12", 0.125), judge("<0.1", 0.04), judge("0.12", 0.13)
    ('reproduced to the digit', 'reproduced to the digit', 'differs')
    """
    bound, number = _matched(printed)["bound"], number_of(printed)
    if expected not in EXPECTED or bool(expected) != bool(reason):
        raise InputError(
            f"is {expected!r} with the reason {reason!r}; should be empty, or one of {EXPECTED[1:]} with a reason",
            field="expected",
        )
    if ours is None or not math.isfinite(ours):
        return NOT_AVAILABLE if expected == NOT_AVAILABLE else NO_VALUE
    unit = Decimal(1).scaleb(-decimals(printed))
    # repr has the fewest digits that give the same float: 0.705 is 0.705 again
    exact = Decimal(repr(float(ours)))
    off = abs(exact - number)
    if _KEEPS[bound](exact, number) if bound else off <= unit / 2 + _HAIR * unit:
        return READ if basis == READ else REPRODUCED
    if not math.isnan(tolerance) and off <= Decimal(repr(float(tolerance))):
        return READ if basis == READ else WITHIN_TOLERANCE
    return expected or DIFFERS


def parse_select(select: str) -> dict[str, str]:
    """Read ``"column=cell | column=cell"``: the row of a table that holds our value."""
    found: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in select.split("|"))):
        column, equals, cell = part.partition("=")
        if not equals or not column.strip() or column.strip() in found:
            raise InputError(f"is {select!r}, should be COLUMN=CELL | COLUMN=CELL", field="select")
        found[column.strip()] = cell.strip()
    return found


@PUBLISHED.documented
def validate_published_study(study: xr.Dataset) -> xr.Dataset:
    """Check a published study and return it.

    {variables}

    {sections}
    """
    study, source = PUBLISHED.check(study)
    for at, name in enumerate(study["value"].to_numpy().tolist()):
        row = {key: str(study[key].values[at]) for key in _TEXT}
        check_value(f"{source}, {name}", row, float(study["tolerance"].values[at]))
    return study


def check_value(source: str, row: dict[str, str], tolerance: float) -> None:
    """Refuse a value whose variables (without ``value``) contradict the format; InputError names the variable."""
    for key in ("paper", "where", "quantity", "printed", "source"):
        if not row[key].strip():
            raise InputError("is empty", source=source, field=key)
    if row["origin"] not in ORIGINS:
        raise InputError(f"is {row['origin']!r}, should be {', '.join(ORIGINS)}", source=source, field="origin")
    if tolerance <= 0:
        raise InputError(f"is {tolerance}, should be larger than zero, or empty", source=source, field="tolerance")
    try:
        judge(row["printed"], None, expected=row["expected"], reason=row["reason"])
        parse_select(row["select"])
    except InputError as error:
        raise InputError(str(error), source=source) from None
    if row["basis"] not in (BASES if row["part"] else ("",)):
        wanted = f"{' or '.join(BASES)} where a part has ours, or else empty"
        raise InputError(f"is {row['basis']!r}, should be {wanted}", source=source, field="basis")
    located = [bool(row[key]) for key in ("part", "table", "column")]
    if any(located) and not all(located):
        raise InputError("go together; fill in all three, or none", source=source, field="part, table, column")
    if not any(located) and row["expected"] != NOT_AVAILABLE:
        raise InputError(f"is empty, which only a value that is {NOT_AVAILABLE!r} may be", source=source, field="part")
