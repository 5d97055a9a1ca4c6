"""Life signs: a line that names all stages, how far they are and how long the rest takes."""

from __future__ import annotations

import threading

import pytest

from shannon_game.inference import progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    now = {"s": 0.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: now["s"])
    return now


def line() -> str:
    return progress._line(progress._display.stages)


def test_a_stage_deep_down_can_count(clock: dict[str, float]) -> None:
    progress.advance("fits")  # nobody counts
    with progress.stage("fits", 2), progress.stage("draws"):
        clock["s"] = 7
        progress.advance("fits")
        assert line() == "fits 1 of 2, about 7 s left, 7 s so far: draws"


def test_the_lines_end_with_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    before = set(threading.enumerate())
    with progress.stage("one step that takes long"):
        (tick,) = set(threading.enumerate()) - before
    tick.join(timeout=60)
    assert not tick.is_alive()
    assert capsys.readouterr().err == ""


def test_a_log_that_is_gone_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress.sys, "stderr", Full())
    progress.say("nobody reads this")
