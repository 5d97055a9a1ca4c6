"""Processes that work for another one, and have nobody to work for once it is gone."""

from __future__ import annotations

import os
import threading
import time
from functools import cache

_EVERY_SECONDS = 1.0


@cache
def end_with(parent: int) -> None:
    """End this process soon after its parent: a parent that is killed outright cannot end its children."""
    if os.getppid() == parent:
        threading.Thread(target=_watch, args=(parent,), daemon=True, name=f"ends with {parent}").start()


def _watch(parent: int) -> None:
    # whoever inherits orphans has another number
    while os.getppid() == parent:
        time.sleep(_EVERY_SECONDS)
    # no exception would reach the other threads, and there is nobody to clean up for
    os._exit(1)
