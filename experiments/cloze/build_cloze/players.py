"""What a model's draws and exact probabilities become: the words of a player, context by context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.cloze.words import FAILED

# sources of words that were scored because people gave them, and because they stand in the text
ANSWERS, TARGET = "human", "corpus"


@dataclass(frozen=True, eq=False)
class Contexts:
    """What models are asked."""

    texts: Sequence[str]
    answers: Sequence[Sequence[str]]
    targets: Sequence[str]


@dataclass(frozen=True)
class Row:
    """A word of a player in a context."""

    word: str
    source: str
    count: int
    logprob: float = float("nan")


@dataclass(frozen=True, eq=False)
class Player:
    """One way of asking a model."""

    name: str
    model: str
    decoding: str
    rows: Sequence[Sequence[Row]]
    n_draws: int


def drawn_player(name: str, model: str, decoding: str, drawn: Mapping[str, NDArray[Any]], n_draws: int) -> Player:
    """Make a player of draws alone."""
    rows = [
        [Row(str(word), SAMPLES, int(count)) for word, count in zip(words, first + second, strict=True) if count]
        for words, first, second in zip(drawn["word"], drawn["n_first"], drawn["n_second"], strict=True)
    ]
    return Player(name, model, decoding, rows, n_draws)


def ancestral_player(plain: Player, contexts: Contexts, scored: Sequence[Mapping[str, float]]) -> Player:
    """Add log-probabilities to draws from the whole distribution, and words that were not drawn but scored."""
    rows = [
        [
            *(Row(row.word, row.source, row.count, known.get(row.word, np.nan)) for row in drawn),
            *(Row(word, ANSWERS, 0, known[word]) for word in said if word in known),
            *([Row(target, TARGET, 0, known[target])] if target in known else []),
        ]
        for drawn, said, target, known in zip(plain.rows, contexts.answers, contexts.targets, scored, strict=True)
    ]
    return Player(plain.name, plain.model, plain.decoding, rows, plain.n_draws)


def exact_player(
    name: str,
    model: str,
    drawn: Mapping[str, NDArray[Any]],
    contexts: Contexts,
    scored: Sequence[Mapping[str, float]],
    *,
    n_draws: int,
) -> tuple[Player, NDArray[np.float64]]:
    """Let counts stand for exact probabilities."""
    # listed: words of people, of the text and of the first half of the draws. What is left of 1 is spread over draws of
    # the second half that are not listed; where there are none, the listed words take it in proportion
    rows: list[list[Row]] = []
    mass = np.zeros(len(scored))
    for at, known in enumerate(scored):
        words = [str(word) for word in drawn["word"][at]]
        first = [word for word, count in zip(words, drawn["n_first"][at], strict=True) if count]
        wanted = dict.fromkeys([*contexts.answers[at], contexts.targets[at], *first])
        listed = [word for word in wanted if word in known]
        p = np.exp([known[word] for word in listed])
        mass[at] = p.sum()
        second = zip(words, drawn["n_second"][at], strict=True)
        others = {word: int(count) for word, count in second if count and word not in {*listed, FAILED}}
        rest, n_others = max(0.0, 1 - mass[at]), sum(others.values())
        weights = dict(zip(listed, p if others else p / mass[at], strict=True))
        weights |= {word: rest * count / n_others for word, count in others.items()}
        rows.append(
            [
                Row(word, SAMPLES, int(np.rint(weight * n_draws)), known.get(word, np.nan))
                for word, weight in weights.items()
            ]
        )
    return Player(name, model, "exact", rows, n_draws), mass
