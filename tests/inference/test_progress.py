"""Life signs: a line that names all stages, how far they are and how long the rest takes."""

from __future__ import annotations

import threading

import pytest

from shannon_game.inference import progress


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
