"""Whatever is in a file, a loader answers: one line that names the file, or a study that says what was done."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from tests.experiments.studies.hostile.attacks import ATTACKS, INPUTS, REFUSED, SAME, TOLD, Attack

SECONDS = 20
"""A loader that takes longer with a tiny file waits for ever."""

MEMORY_BYTES = 16 * 2**30
"""Of addresses: a loader that asks for more reads without end."""


@contextmanager
def in_time() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_BYTES if limits[1] == resource.RLIM_INFINITY else min(MEMORY_BYTES, limits[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@lru_cache
def valid(name: str) -> xr.Dataset:
    with TemporaryDirectory() as folder:
        INPUTS[name].write(Path(folder))
        return INPUTS[name].load(Path(folder))


def said(study: xr.Dataset) -> set[tuple[str, int | None]]:
    return {(note["text"], note["count"]) for note in notes(study)}


@pytest.mark.parametrize("name", INPUTS)
def test_what_is_attacked_is_valid(name: str, tmp_path: Path) -> None:
    assert valid(name).sizes
    INPUTS[name].write(tmp_path)
    assert [file for file in INPUTS[name].files if not (tmp_path / file).is_file()] == []


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_a_loader_answers(attack: Attack, tmp_path: Path) -> None:
    one = INPUTS[attack.input]
    one.write(tmp_path)
    attack.change(tmp_path / attack.file)
    try:
        with in_time():
            found = one.load(tmp_path)
    except InputError as error:
        message = str(error)
        assert attack.outcome != SAME, message
        file = Path(attack.file)
        assert file.name in message or f"study {file.stem!r}" in message
        assert message.isprintable()
        assert len(message.replace(str(tmp_path), "")) < 800
        return
    assert attack.outcome != REFUSED, "it was accepted"
    is_same = found.drop_attrs().identical(valid(attack.input).drop_attrs())
    if attack.outcome == SAME:
        assert is_same
    if attack.outcome == TOLD:
        assert is_same or said(found) - said(valid(attack.input))
