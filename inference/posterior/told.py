"""How many draws nutpie has: it says so itself to terminals and notebooks alone."""

from __future__ import annotations

import re
from typing import Any

from shannon_game.inference.progress import Show

_TOLD_MS = 500


class Told:
    """A nutpie program whose sampler tells a function how many draws all chains have."""

    def __init__(self, program: Any, show: Show) -> None:
        self._program, self._show = program, show

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def _make_sampler(self, *arguments: Any) -> Any:
        try:
            from nutpie._lib import ProgressType  # noqa: PLC0415 - one sampler of several

            told = ProgressType.template_callback(_TOLD_MS, "{{ total_finished_draws }}", 1, self._tell)
        except (ImportError, AttributeError, TypeError):
            # no public part of nutpie: another version has the draws, if not their number
            return self._program._make_sampler(*arguments)
        return self._program._make_sampler(*(told if isinstance(value, ProgressType) else value for value in arguments))

    def _tell(self, text: str) -> None:
        if found := re.search(r"\d+", text):
            self._show(int(found[0]))
