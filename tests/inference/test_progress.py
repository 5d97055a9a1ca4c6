"""Life signs: a line that names all stages, how far they are and how long the rest takes."""

from __future__ import annotations

import pytest

from shannon_game.inference import progress


def test_a_log_that_is_gone_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress.sys, "stderr", Full())
    progress.say("nobody reads this")


def test_the_time_left_is_that_of_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.time, "monotonic", lambda: 60.0)
    run = progress._Stage("human_loss", None, start=0.0)
    fits = progress._Stage("fits", 11, start=0.0)
    draws = progress._Stage("draws", 4000, start=50.0, done=2000)
    assert progress._line([run, fits, draws]) == "human_loss, 1 min so far: fits 0 of 11: draws 2,000 of 4,000"
    fits.done = 1
    # 9.5 of 11 are to be done, 1.5 took a minute
    assert progress._line([run, fits, draws]).split(": ")[1] == "fits 1 of 11, about 6 min left"
    assert "draws 2,000 of 4,000, about 10 s left" in progress._line([run, draws])
