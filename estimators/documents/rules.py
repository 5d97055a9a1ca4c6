"""Texts with rules spread in noise: whoever has read the rules knows the last word, and nobody else does.

A text holds rules ("Every dax is a wug.", "Every wug is red.") in a random order among sentences that have nothing to
do with them, and ends with what follows from some of the rules ("The colour of the dax is red"). A control is the same
text without the rules that the last word follows from. The truth is known: a reader of the rules is right in every text
with them, and right in one of as many as there are colours without.

Source of the idea: de Jong (2024), An Alternative to Perplexity for the Evaluation of Long-context LLMs, section 6.3,
which names no rules; these are the toolkit's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

COLOURS = ("red", "blue", "green", "black", "white", "brown", "pink", "grey")
"""Answers."""

_THINGS = ("dax", "wug", "blick", "toma", "fep", "zorp", "kiv", "modi", "gazzer", "tulver", "pim", "rell")
_WHO = ("Anna", "Peter", "My uncle", "The teacher", "Her brother", "Our neighbour", "The doctor", "Maria")
_DID = ("walked to", "came from", "drove past", "waited at", "wrote about", "remembered", "looked for", "found")
_WHERE = ("the station", "the old bridge", "the market", "the library", "the harbour", "a small hotel", "the school")
_WHEN = ("on Monday", "in the morning", "last year", "after lunch", "before the rain", "at night", "in spring")


@dataclass(frozen=True, repr=False)
class RulesText(Result):
    """One text, which ends with the answer, one of :data:`COLOURS`.

    Attributes
    ----------
    n_noise : int
        Sentences of noise.
    has_rule : bool
        Whether the rules that the answer follows from are in it.
    """

    text: str
    answer: str
    n_noise: int
    has_rule: bool


def rules_texts(
    n_texts: int, *, n_noise: Sequence[int], n_rules: int = 4, n_steps: int = 1, seed: int = 0
) -> list[RulesText]:
    """Make texts with rules spread in noise, `n_texts` of each number of sentences of noise, a control after each.

    A text tells `n_rules` colours, one of which is asked for; `n_steps` are the rules from which the answer follows: 1
    says it, with 2 the thing asked for is a thing of that colour.
    """
    check_numbers({"n_texts": n_texts, "n_rules": n_rules, "n_steps": n_steps}, at_least=1)
    if not n_noise or min(n_noise) < 0:
        raise InputError(f"is {list(n_noise)}, should be numbers of 0 or more", field="n_noise")
    if n_rules * n_steps > len(_THINGS):
        problem = f"is {n_rules}; with {n_steps} steps it takes {n_rules * n_steps} names, and there are {len(_THINGS)}"
        raise InputError(problem, field="n_rules")
    rng = np.random.default_rng(seed)
    found: list[RulesText] = []
    for noise in n_noise:
        for _ in range(n_texts):
            found += _pair(rng, noise, n_rules, n_steps)
    return found


def _pair(rng: np.random.Generator, n_noise: int, n_rules: int, n_steps: int) -> list[RulesText]:
    """A text and its control, which differ in the rules alone."""
    names = rng.permutation(_THINGS)[: n_rules * n_steps].reshape(n_rules, n_steps).tolist()
    colours = rng.choice(COLOURS, size=n_rules).tolist()
    needed = [True] * n_steps + [False] * (n_steps * (n_rules - 1))
    sentences = [
        f"Every {thing} is {f'a {chain[step + 1]}' if step + 1 < n_steps else colour}."
        for chain, colour in zip(names, colours, strict=True)
        for step, thing in enumerate(chain)
    ]
    noise = [" ".join(str(rng.choice(part)) for part in (_WHO, _DID, _WHERE, _WHEN)) + "." for _ in range(n_noise)]
    order = rng.permutation(len(sentences) + n_noise).tolist()
    every = [*zip(sentences, needed, strict=True), *((text, False) for text in noise)]
    end = f"The colour of the {names[0][0]} is {colours[0]}"
    return [
        RulesText(
            " ".join([*(every[at][0] for at in order if has_rule or not every[at][1]), end]),
            colours[0],
            n_noise,
            has_rule,
        )
        for has_rule in (True, False)
    ]
