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


def test_a_line_names_every_stage_and_the_time_left(clock: dict[str, float]) -> None:
    with progress.stage("human_loss"), progress.stage("fits", 4) as fits:
        fits(0)
        assert line() == "human_loss, 0 s so far: fits 0 of 4"
        clock["s"] = 100
        fits(1)
        with progress.stage("draws", 1000) as draws:
            draws(0)
            clock["s"] = 150
            draws(500)
            # one fit and a half in 150 s; half of the draws in 50 s
            assert line() == (
                "human_loss, 2 min so far: fits 1 of 4, about 4 min left: draws 500 of 1,000, about 50 s left"
            )
    assert not progress._display.stages


def test_what_was_done_before_says_nothing_of_the_time_left(
    clock: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.stage("fits", announced=True) as show:
        show(90, 100)
        clock["s"] = 10
        show(91, 100, now="bloom")
        assert line() == "fits 91 of 100 (bloom), about 1 min left, 10 s so far"
    assert capsys.readouterr().err == "fits: 10 to do, 90 were done before\n"


def test_a_stage_deep_down_can_count(clock: dict[str, float]) -> None:
    progress.advance("fits")  # nobody counts
    with progress.stage("fits", 2), progress.stage("draws"):
        clock["s"] = 7
        progress.advance("fits")
        assert line() == "fits 1 of 2, about 7 s left, 7 s so far: draws"


@pytest.mark.parametrize(("seconds", "said"), [(0.0, 4), (90.0, 1)])
def test_lines_come_by_themselves_and_after_a_minute_none_comes_twice(
    seconds: float, said: int, clock: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four ticks, as many as the stand-in for the clock's event lets through."""
    lines: list[str] = []
    ticks = iter([False] * 4)
    ended = threading.Event()
    monkeypatch.setattr(ended, "wait", lambda _: next(ticks, True))
    monkeypatch.setattr(progress, "say", lines.append)
    with progress.stage("one step that takes long"):
        clock["s"] = seconds
        progress._tick(ended)
    assert lines == [f"one step that takes long, {progress.duration(seconds)} so far"] * said


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
