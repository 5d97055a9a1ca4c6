"""What games without options have in common: nothing to lay out, no question that answers itself, a word to check."""

from __future__ import annotations

from typing import Any

import numpy as np

from shannon_game.experiments.collect.games.protocol import CHECK, Content, Steps

CHECK_WORDS = ("river", "window", "garden", "bread", "summer")
"""What attention checks ask for, one after the other."""


def attention_check(content: Content, number: int) -> Content:
    """Ask for a certain word."""
    return {**content, CHECK: CHECK_WORDS[number % len(CHECK_WORDS)]}


def layout(content: Content, n_served: int, rng: np.random.Generator) -> dict[str, Any]:
    """Nothing is to be chosen."""
    del content, n_served, rng
    return {}


def automatic(content: Content, layout: Content) -> None:
    """Every question is asked."""
    del content, layout


def view(content: Content, layout: Content, steps: Steps) -> dict[str, Any]:
    """The context."""
    del layout, steps
    return {"context": content["context"], "check": content.get(CHECK)}
