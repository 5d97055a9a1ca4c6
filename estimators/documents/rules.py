"""Texts with rules spread in noise: whoever has read the rules knows the last word, and nobody else does.

A text holds rules ("Every dax is a wug.", "Every wug is red.") in a random order among sentences that have nothing to
do with them, and ends with what follows from some of the rules ("The colour of the dax is red"): by a chain of them, by
exclusion ("Every wug is red or blue.", "No wug is blue.") or by a condition ("If the bell rings, every wug is red.",
"The bell rings."). A control is the same text without the rules that the last word follows from. The truth is known: a
reader of the rules is right in every text with them, and right in one of as many as there are colours without.

Source of the idea: de Jong (2024), An Alternative to Perplexity for the Evaluation of Long-context LLMs, section 6.3,
which names no rules; these are the toolkit's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice

COLOURS = ("red", "blue", "green", "black", "white", "brown", "pink", "grey")
"""Answers."""

Inference = Literal["chain", "exclusion", "condition"]
Place = Literal["spread", "first", "last"]

_THINGS = ("dax", "wug", "blick", "toma", "fep", "zorp", "kiv", "modi", "gazzer", "tulver", "pim", "rell")
_WHO = ("Anna", "Peter", "My uncle", "The teacher", "Her brother", "Our neighbour", "The doctor", "Maria")
_DID = ("walked to", "came from", "drove past", "waited at", "wrote about", "remembered", "looked for", "found")
_WHERE = ("the station", "the old bridge", "the market", "the library", "the harbour", "a small hotel", "the school")
_WHEN = ("on Monday", "in the morning", "last year", "after lunch", "before the rain", "at night", "in spring")
_IF = (
    "bell rings",
    "lamp is on",
    "door is open",
    "river is low",
    "flag is up",
    "oven is hot",
    "train is late",
    "cat sleeps",
)


@dataclass(frozen=True, repr=False)
class RulesText(Result):
    """One text, which ends with the answer, one of :data:`COLOURS`.

    Attributes
    ----------
    n_noise : int
        Sentences of noise.
    inference : str
        The last step: chain, exclusion or condition.
    distance : int
        Sentences between the last rule that is needed and the end; in a control, those there would be.
    has_rule : bool
        Whether the rules that the answer follows from are in it.
    """

    text: str
    answer: str
    n_noise: int
    inference: str
    distance: int
    has_rule: bool


def rules_texts(
    n_texts: int,
    *,
    n_noise: Sequence[int],
    n_rules: int = 4,
    n_steps: int = 1,
    inferences: Sequence[str] = ("chain",),
    place: str = "spread",
    seed: int = 0,
) -> list[RulesText]:
    """Make texts with rules spread in noise, `n_texts` of each inference and number of sentences, a control after each.

    A text tells `n_rules` colours, one of which is asked for. `n_steps` are the things from the one asked for to that
    of the colour: 1 says it, with 2 the thing asked for is a thing of that colour. The rules that are needed are
    spread at random, or come first or last.
    """
    check_numbers({"n_texts": n_texts, "n_rules": n_rules, "n_steps": n_steps}, at_least=1)
    if not n_noise or min(n_noise) < 0:
        raise InputError(f"is {list(n_noise)}, should be numbers of 0 or more", field="n_noise")
    if n_rules * n_steps > len(_THINGS):
        problem = f"is {n_rules}; with {n_steps} steps it takes {n_rules * n_steps} names, and there are {len(_THINGS)}"
        raise InputError(problem, field="n_rules")
    if n_rules > len(_IF) and "condition" in inferences:
        raise InputError(f"is {n_rules}; there are {len(_IF)} conditions", field="n_rules")
    for name, values, known in (("inferences", inferences, get_args(Inference)), ("place", [place], get_args(Place))):
        for value in values:
            if value not in known:
                raise unknown_choice(name, value, known)
    rng = np.random.default_rng(seed)
    found: list[RulesText] = []
    for inference in inferences:
        for noise in n_noise:
            for _ in range(n_texts):
                found += _pair(rng, noise, n_rules, n_steps, inference, place)
    return found


def _rules(rng: np.random.Generator, chains: list[list[str]], colours: list[str], inference: str) -> list[list[str]]:
    """The sentences from which each colour follows."""
    found = [[f"Every {one} is a {other}." for one, other in pairwise(chain)] for chain in chains]
    conditions = rng.permutation(_IF).tolist() if inference == "condition" else []
    for at, (chain, colour) in enumerate(zip(chains, colours, strict=True)):
        if inference == "chain":
            found[at].append(f"Every {chain[-1]} is {colour}.")
        elif inference == "condition":
            found[at] += [f"If the {conditions[at]}, every {chain[-1]} is {colour}.", f"The {conditions[at]}."]
        else:
            other = str(rng.choice([one for one in COLOURS if one != colour]))
            either = rng.permutation([colour, other]).tolist()
            found[at] += [f"Every {chain[-1]} is {either[0]} or {either[1]}.", f"No {chain[-1]} is {other}."]
    return found


def _pair(  # noqa: PLR0917
    rng: np.random.Generator, n_noise: int, n_rules: int, n_steps: int, inference: str, place: str
) -> list[RulesText]:
    """A text and its control, which differ in the rules alone."""
    names = rng.permutation(_THINGS)[: n_rules * n_steps].reshape(n_rules, n_steps).tolist()
    colours = rng.choice(COLOURS, size=n_rules).tolist()
    rules = _rules(rng, names, colours, inference)
    sentences = [sentence for one in rules for sentence in one]
    needed = [at < len(rules[0]) for at in range(len(sentences))]
    noise = [" ".join(str(rng.choice(part)) for part in (_WHO, _DID, _WHERE, _WHEN)) + "." for _ in range(n_noise)]
    order = rng.permutation(len(sentences) + n_noise).tolist()
    every = [*zip(sentences, needed, strict=True), *((text, False) for text in noise)]
    if place != "spread":
        order.sort(key=lambda at: every[at][1] == (place == "last"))
    distance = [every[at][1] for at in reversed(order)].index(True)
    end = f"The colour of the {names[0][0]} is {colours[0]}"
    return [
        RulesText(
            " ".join([*(every[at][0] for at in order if has_rule or not every[at][1]), end]),
            colours[0],
            n_noise,
            inference,
            distance,
            has_rule,
        )
        for has_rule in (True, False)
    ]
