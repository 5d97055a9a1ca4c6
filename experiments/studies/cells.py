"""How cells are read: names that differ only in how they were typed, numbers with separators, and their scale.

On a scale of 100 a value is small if it is above 0 and below 1, as a fraction is and a whole percentage or chip never.
Refused are a participant with :data:`ENOUGH` values or more, none above 1 and one of them small, and a table a quarter
of whose values are small. Fewer values of a participant are noted: 0.5 % may be what somebody meant. On a scale of 1
small values are honest; refused is a table none of whose values, :data:`ENOUGH` or more, is above a hundredth.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.display import INVISIBLE
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.parsing import Note, objects, shown

if TYPE_CHECKING:
    from shannon_game.experiments.studies.plain_table import Table

# joiners matter inside a name only
_EDGES = re.compile(r"^[\s\u200c\u200d]+|[\s\u200c\u200d]+$")
_SPACE = re.compile(r"[^\S\x00-\x7f]")
_WHOLE = re.compile(r"0*([0-9]+)(?:\.0*)?")
# the marks with which the vocabularies of language models write a space
_LEADS = " \u0120\u2581"
# a point or a comma of a decimal number, or of thousands
_EITHER = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}")
_FRACTION = re.compile(r"[+-]?(?:[0-9]+([.,])[0-9]*|([.,])[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:([,. '_])[0-9]{3})(?:\1[0-9]{3})*(?:((?!\1)[.,])[0-9]+)?")
_OTHER = {".": ",", ",": "."}
_SIGNS = str.maketrans({"\u2212": "-", "\u2019": "'"})


def folded(text: str) -> str:
    """A name without what a reader cannot see: outer and unusual spaces, invisible characters, decomposed letters."""
    if text.isascii():
        return text.strip()
    return _EDGES.sub("", _SPACE.sub(" ", INVISIBLE.sub("", unicodedata.normalize("NFC", text))))


def fold_names(texts: NDArray[np.object_], column: str) -> tuple[NDArray[np.object_], list[Note]]:
    """Fold the names of a column, and note which were changed, which became one, and which differ in case or zeros."""
    code, given = pd.factorize(texts)
    names = [folded(text) for text in given]
    notes = []
    changed = {raw: name for raw, name in zip(given, names, strict=True) if raw != name and name}
    if changed:
        # a name and its decomposed form look the same
        (raw, name), *_ = changed.items()
        spelt = repr(raw) if unicodedata.is_normalized("NFC", raw) else ascii(raw)
        text = f"cells of column {column} read without outer or invisible spaces, letters composed: {spelt} is {name!r}"
        joined = len(set(given)) - len(set(names))
        text += f"; {joined} names thereby are one with another" if joined else ""
        n_cells = int(np.isin(code, [at for at, each in enumerate(given) if each in changed]).sum())
        notes.append(Note(text, n_cells, "warning" if joined else "info"))
    cases: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        whole = _WHOLE.fullmatch(name)
        cases.setdefault(whole[1] if whole else name.casefold(), []).append(name)
    alike = [group for group in cases.values() if len(group) > 1]
    if alike:
        what = "in zeros" if alike[0][0][:1].isdecimal() else "in case"
        text = f"names of column {column} that differ only {what}, kept apart: {' and '.join(map(repr, alike[0][:2]))}"
        notes.append(Note(text, len(alike), "warning"))
    return objects(names)[code] if names else texts, notes


def read_numbers(
    texts: NDArray[np.object_], where: Callable[[int], str], *, decimal: str, whole: bool
) -> tuple[NDArray[np.float64], list[tuple[str, int]], tuple[int, str, str] | None]:
    """Numbers as people write them, NaN for what is none; what was read how; the first cell that may be two.

    Such a cell has a place, what is wrong, and the setting that says which number it is.
    """
    plain = [text.strip() if text.isascii() else _plain(text) for text in texts.tolist()]
    found = np.array(pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce"), dtype=float)
    signed = {at: text for at, text in enumerate(plain) if text and not text.isdecimal()}
    either = {at: text[-4] for at, text in signed.items() if _EITHER.fullmatch(text)}
    fraction = {at: match[1] or match[2] for at, text in signed.items() if (match := _FRACTION.fullmatch(text))}
    grouped = {at: match.groups() for at, text in signed.items() if (match := _GROUPED.fullmatch(text))}
    certain = {at: sign for at, sign in fraction.items() if at not in either}
    certain |= {at: rest or _OTHER[sign] for at, (sign, rest) in grouped.items() if at not in either and sign in _OTHER}
    shown_by = {sign: at for at, sign in certain.items()}
    if decimal == "auto" and len(shown_by) == 2:
        other = f"{shown(texts[shown_by['.']])} in {where(shown_by['.'])}"
        return found, [], (shown_by[","], f" and {other}; write all numbers with a point, or all with a comma", "")
    point = {"point": ".", "comma": ","}.get(decimal) or next(iter(shown_by), None)
    if either and point is None:
        at, sign = next(iter(either.items()))
        # a program writes as many zeros in every cell
        usual = len(either) == sum(map(bool, plain)) or not any(plain[each].endswith("0") for each in either)
        if whole or "," in either.values() or not usual:
            two = f"{plain[at].replace(sign, '')} or {float(plain[at].replace(sign, '.')):g}"
            return found, [], (at, f", which may be {two}", f"; {Set('study.decimal', 'point')} or comma says which")
        point = "."
    for at, sign in fraction.items():
        if sign == point:
            found[at] = float(plain[at].replace(sign, "."))
        elif at not in either:
            problem = f", has a {'point' if sign == '.' else 'comma'}, but {Set('study.decimal')} is {decimal}"
            return found, [], (at, problem, "")
    thousands = [at for at, (sign, rest) in grouped.items() if sign != point and rest in (None, point)]
    for at in thousands:
        found[at] = float(plain[at].replace(grouped[at][0], "").replace(",", "."))
    commas = list(fraction.values()).count(",")
    notes = [("numbers with a decimal comma", commas)] if commas and point == "," else []
    if thousands:
        example = f"{shown(texts[thousands[0]])} is {found[thousands[0]]:.15g}"
        notes.append((f"numbers with separators of thousands ({example})", len(thousands)))
    return found, notes, None


def _plain(text: str) -> str:
    return " ".join(text.translate(_SIGNS).split())


def same_words(table: Table, said: NDArray[np.object_], target: NDArray[np.object_], match: str) -> NDArray[np.bool_]:
    """Which words are their targets; a space before all words of one side and none of the other makes no difference."""
    if match == "folded":
        said, target = bare(said), bare(target)
        return np.asarray(said == target, dtype=bool)
    said, target = one_mark(composed(said), composed(target))
    if other_lead(said.tolist(), target.tolist()):
        said, target = without_lead(said), without_lead(target)
        text = "answers, or their targets, begin with a space throughout and the others do not; compared without it"
        table.note(text, len(said), "warning")
    same = np.asarray(said == target, dtype=bool)
    text = "answers that differ from their target only in outer spaces or case, taken for wrong (match=folded)"
    table.note(text, ~same & (bare(said) == bare(target)), "warning")
    return same


def composed(texts: NDArray[np.object_]) -> NDArray[np.object_]:
    """Words whose letters are one character each (NFC)."""
    return objects([unicodedata.normalize("NFC", text) for text in texts.tolist()])


def bare(texts: NDArray[np.object_]) -> NDArray[np.object_]:
    """Words without outer spaces, or marks of one, and letter case."""
    return objects([folded(text.lstrip(_LEADS)).casefold() for text in texts.tolist()])


def one_mark(*columns: NDArray[np.object_]) -> tuple[NDArray[np.object_], ...]:
    """Tokens whose first space is a space, where some have the mark of one vocabulary and others a space or another."""
    if len({text[0] for each in columns for text in each.ravel().tolist() if text and text[0] in _LEADS}) < 2:
        return columns
    return tuple(
        objects([" " + text[1:] if text and text[0] in _LEADS else text for text in each.ravel().tolist()]).reshape(
            each.shape
        )
        for each in columns
    )


def other_lead(given: Sequence[str], tokens: Sequence[str], *, share: float = 0) -> bool:
    """Whether more than a share of one side begin with a space, or a mark of one, and none of the other."""
    leads = [sum(text[:1] in _LEADS for text in texts if text) / max(len(texts), 1) for texts in (given, tokens)]
    return min(leads) == 0 and max(leads) > share


def without_lead(texts: NDArray[np.object_]) -> NDArray[np.object_]:
    """Tokens without the space before them."""
    return objects([text.lstrip(_LEADS) for text in texts.ravel().tolist()]).reshape(texts.shape)


ENOUGH = 3
"""Values of one participant that are not all small by chance."""

_PART = 0.25
_SMALLEST_WIDE = 10


def check_scale(
    table: Table,
    column: str,
    values: NDArray[np.float64],
    rows: NDArray[np.intp],
    *,
    top: float,
    cure: str,
    least: NDArray[np.float64] | None = None,
) -> None:
    """Refuse values, in some rows of the table, that are on another scale than from 0 to `top`."""
    wide = top >= _SMALLEST_WIDE
    right = f"should be on a scale from 0 to {top:g}; {cure}"
    low = values <= (1.0 if wide else top / 100) * (1 + 1e-9)
    if low.all() and values.size >= ENOUGH and not wide and (values > 0).any():
        raise table.error(f"is at most {values.max():g}, {right}", column)
    parts = values if least is None else least
    small = low & (parts > 0) & (parts < 1)
    if not wide or not small.any():
        return
    names, code = np.unique(table.texts("participant")[rows].astype(str), return_inverse=True)
    n = np.bincount(code)
    odd = (np.bincount(code, low) == n) & (np.bincount(code, small) > 0)
    sure = odd & (n >= ENOUGH)
    first = int(np.flatnonzero(small & sure[code] if sure.any() else small)[0])
    where = table.where(rows[first])
    if sure.any() or small.mean() >= _PART:
        whose = f"none of the {n[code[first]]} of {shown(str(names[code[first]]))} is above 1"
        found = whose if sure.any() else f"{int(small.sum())} of {small.size} are below 1"
        raise table.error(f"is {parts[first]:g} in {where} ({found}), {right}", column)
    if odd.any():
        text = f"participants with too few values to tell, none above 1 on a scale from 0 to {top:g}; taken as they are"
        table.note(text, odd, "warning")
    elif small.sum() > 1:
        text = f"values of {column} between 0 and 1 on a scale from 0 to {top:g}, taken as they are (first: {where})"
        table.note(text, small, "warning")
