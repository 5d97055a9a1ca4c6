"""Settings that questions about ranks share."""

from __future__ import annotations

from typing import Literal

from shannon_game.inference.settings import Count, Settings


class ListSettings(Settings):
    """How tokens are found in the lists of a ranking study."""

    match: Literal["stripped", "exact", "id"] = "stripped"
    """How the reference token is found in a list: without outer blanks (the thesis), as it is, or by its number."""
    tie: Literal["listed", "best", "middle", "worst"] = "listed"
    """Place of a token among equally probable ones; listed is the thesis's."""
    top_k: Count | None = None
    """Tokens of a list to look at; null takes all."""
