"""Tables by chance: each is read as what it states, or refused in one line; never silently as another."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from tests.experiments.studies.hostile.fuzz import CHANGES, READ, REFUSE, Change, Changed
from tests.experiments.studies.hostile.tables import KINDS, Kind, frame, written
from tests.experiments.studies.hostile.test_hostile_inputs import in_time


def read(kind: Kind, changed: Changed, folder: Path, *, in_file: bool) -> xr.Dataset:
    fed = changed.fed
    if callable(fed):
        return kind.of_file(fed(folder), **changed.settings)
    if in_file:
        content = written(fed).encode() if isinstance(fed, list) else fed
        (folder / changed.name).write_bytes(content)
        return kind.of_file(folder / changed.name, **changed.settings)
    return kind.of_frame(frame(fed) if isinstance(fed, list) else fed, **changed.settings)


def outcome(kind: Kind, change: Change, rng: random.Random, folder: Path) -> str:
    """What came of a case: left out, refused, read, told (read with a note), or what was wrong."""
    rows = kind.make(rng)
    changed = change(rng, kind, rows)
    if changed is None:
        return "left out"
    in_file, fed = isinstance(changed.fed, bytes), changed.fed
    if isinstance(fed, list):
        # a DataFrame has rows of one length, and a file no half of a character
        half = any("\ud800" <= one <= "\udfff" for row in fed for cell in row for one in cell)
        ragged = len({len(row) for row in fed}) > 1
        in_file = not half and (ragged or kind.of_frame is None or rng.random() < 0.5)
    if not (in_file or callable(fed)) and kind.of_frame is None:
        return "left out"
    try:
        with in_time():
            study = read(kind, changed, folder, in_file=in_file)
    except InputError as error:
        if not str(error).isprintable() or len(str(error)) > 8000:
            return f"wrong: no line: {str(error)!r}"
        return f"wrong: refused: {error}" if changed.must == READ else "refused"
    except BaseException as error:
        return f"wrong: {type(error).__name__}: {str(error)[:300]}"
    if changed.must == REFUSE:
        return "wrong: accepted"
    said, before = (
        {note["text"] for note in notes(each)} for each in (study, read(kind, Changed(rows), folder, in_file=in_file))
    )
    found = Counter(kind.found(study))
    right = [told for means, told in changed.means if kind.truth(means) == found]
    if isinstance(fed, bytes) and any("were not read" in text for text in said - before):
        return "told"
    if not right:
        return f"wrong: accepted as another: {found}, {said - before}"
    if all(right) and said <= before:
        return "wrong: silent"
    return "read" if said <= before else "told"


QUICK = ("names", "cells", "rows", "columns", "files")


@pytest.mark.parametrize("which", KINDS)
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=() if part in QUICK else pytest.mark.slow) for part in CHANGES]
)
def test_a_changed_table_is_read_as_what_it_states_or_refused(
    part: str, which: str, tmp_path: Path, seed_offset: int
) -> None:
    found = {}
    for number, (name, change) in enumerate(CHANGES[part].items()):
        (folder := tmp_path / str(number)).mkdir()
        seed = crc32(f"{part} {number} {which} {seed_offset}".encode())
        found[name] = outcome(KINDS[which], change, random.Random(seed), folder)
    assert {name: said for name, said in found.items() if said.startswith("wrong")} == {}
