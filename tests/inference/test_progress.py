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
