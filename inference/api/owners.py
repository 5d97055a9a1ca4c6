"""Who asks a call: a process, by its machine and number."""

from __future__ import annotations

import os
import secrets
import socket

__all__ = ["has_ended", "this_owner"]


def this_owner() -> str:
    """Name an owner of claims in this process; each call gives another one."""
    return f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"


def has_ended(owner: str) -> bool:
    """Tell whether an owner's process has ended; of those on other machines, and on Windows, nothing is known."""
    host, number, _ = owner.rsplit(" ", 2)
    if os.name != "posix" or host != socket.gethostname():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        # it is another user's
        return False
    return False
