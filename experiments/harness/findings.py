"""What a checklist says of one thing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was found, what is wrong with it, and what to do."""

    name: str
    value: str
    problem: str = ""
    cure: str = ""
