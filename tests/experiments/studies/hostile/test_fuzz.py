"""Tables by chance: each is read as what it states, or refused in one line; never silently as another."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from zlib import crc32

import pandas as pd
import pytest
import xarray as xr

from estimators.errors import InputError
from estimators.layout import notes
from tests.experiments.studies.hostile.fuzz import CHANGES, EITHER, READ, REFUSE, Changed
from tests.experiments.studies.hostile.tables import KINDS, Kind, estimates_frame, frame, written
from tests.experiments.studies.hostile.test_hostile_inputs import in_time

REPEATS = 1


def said(study: xr.Dataset) -> set[str]:
    return {note["text"] for note in notes(study)}


def read(kind: Kind, changed: Changed, folder: Path, *, in_file: bool) -> xr.Dataset:
    fed = changed.fed
    if isinstance(fed, list) and in_file:
        fed = written(fed).encode()
    if isinstance(fed, bytes):
        (folder / changed.name).write_bytes(fed)
        return kind.of_file(folder / changed.name, **changed.settings)
    if callable(fed) and not isinstance(fed, pd.DataFrame):
        return kind.of_file(fed(folder), **changed.settings)
    return kind.of_frame(frame(fed) if isinstance(fed, list) else fed, **changed.settings)


def outcome(kind: Kind, change: object, rng: random.Random, folder: Path) -> str:
    """What came of a case: left out, refused, read, told, or what was wrong."""
    rows = kind.make(rng)
    changed = change(rng, kind, rows)
    if changed is None:
        return "left out"
    in_file = rng.random() < 0.5 or kind.of_frame is estimates_frame
    in_file = (
        in_file and not isinstance(changed.fed, pd.DataFrame) or isinstance(changed.fed, bytes) or callable(changed.fed)
    )
    if isinstance(changed.fed, list):
        # a DataFrame has rows of one length, and a file no half of a character
        in_file |= len({len(row) for row in changed.fed}) > 1
        if any("\ud800" <= one <= "\udfff" for row in changed.fed for cell in row for one in cell):
            in_file = False
    if not in_file and kind.of_frame is estimates_frame:
        return "left out"
    try:
        with in_time():
            study = read(kind, changed, folder, in_file=in_file)
    except InputError as error:
        line = str(error)
        if not line.isprintable() or len(line) > 1500:
            return f"wrong: no line: {line!r}"
        return f"wrong: refused: {line}" if changed.must == READ else "refused"
    except BaseException as error:  # noqa: BLE001 - a hang or an unexpected error is what is looked for
        return f"wrong: {type(error).__name__}: {str(error)[:300]}"
    if changed.must == REFUSE:
        return "wrong: accepted"
    new = said(study) - said(read(kind, Changed(rows), folder, in_file=in_file))
    found = kind.found(study)
    right = [told for rows, told in changed.means if kind.truth(rows) == found]
    if not right:
        truths = [truth for each, _ in changed.means if (truth := kind.truth(each)) is not None]
        return f"wrong: accepted as another: {list((found - truths[0]).items())[:2] if truths else 'no plain table'}; {new}"
    if all(right) and not new:
        return "wrong: silent"
    return "told" if new else "read"


CASES = [(part, name, which) for part, changes in CHANGES.items() for name in changes for which in KINDS]


@pytest.mark.slow
@pytest.mark.parametrize("part", CHANGES)
def test_a_changed_table_is_read_as_what_it_states_or_refused(part: str, tmp_path: Path, seed_offset: int) -> None:
    wrong = {}
    for number, (own, name, which) in enumerate(CASES):
        if own == part:
            seed = crc32(f"{own} {name} {which} {seed_offset}".encode())
            (folder := tmp_path / str(number)).mkdir()
            found = outcome(KINDS[which], CHANGES[own][name], random.Random(seed), folder)
            if found.startswith("wrong"):
                wrong[name, which] = found
    assert wrong == {}
