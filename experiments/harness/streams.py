"""Standard streams that outlive their readers: `head` goes early, a scheduler closes them, a disk is full."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO, cast


class _Kept:
    """A text stream that goes on as a null stream once it cannot be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):
            self._lose()
            return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self._lose()

    def isatty(self) -> bool:
        return not self._stream.closed and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _lose(self) -> None:
        null = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process
        # what is in the buffer goes there too, or Python complains of it at its end
        with suppress(OSError, ValueError):
            os.dup2(null.fileno(), self._stream.fileno())
        self._stream = null


def keep_streams() -> None:
    """Let a stream that was closed, or whose reader has gone, lose no more than what it would have shown."""
    # else a file of results takes the number of a closed stream, and what C code prints goes into it
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, _Kept):
            if stream is None:
                stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as above
            setattr(sys, name, cast("TextIO", _Kept(stream)))
