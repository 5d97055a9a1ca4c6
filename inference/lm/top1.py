"""A language model in the top-1 game: whether its best guess is the next token of a text that others cut up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import asked_log_probs, with_bos
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.vocabulary import vocabulary
from shannon_game.inference.lm.words import word_tokens

if TYPE_CHECKING:
    import xarray as xr


def play_top1(
    model: LanguageModel,
    contexts: Sequence[Sequence[int]],
    targets: Sequence[str],
) -> xr.Dataset:
    r"""Guess the next token of texts, and compare strings with the tokens that the texts are cut into.

    Where the model has not the target as a token, its most probable tokens are taken one after the other until they are
    as long as the target. A guess is a hit when it is the target: " the" for " the", not " them".

    ====================  =======  ==============================================================================
    variable              dims     meaning
    ====================  =======  ==============================================================================
    ``hit``               context  the guess is the target
    ``begins_alike``      context  the guess begins with the target
    ``n_tokens``          context  tokens in which the model writes the target
    ``surprisal_nats``    context  :math:`-\ln` of the probability of the target in those tokens
    ====================  =======  ==============================================================================
    """
    if len(targets) != len(contexts):
        raise InputError(f"has {len(targets)} entries for {len(contexts)} contexts", field="targets")
    for position, target in enumerate(targets):
        if not target:
            raise InputError(f"is empty at context {position}; a token has at least one character", field="targets")
    ways = {target: word_tokens(model, target) for target in dict.fromkeys(targets)}
    vocab = vocabulary(model)
    full = with_bos(model, contexts)
    surprisal = np.zeros(len(full))
    guessed: list[list[int]] = [[] for _ in full]
    guess = [b""] * len(full)
    still_guessing = set(range(len(full)))
    longest = max((len(way) for way in ways.values()), default=0)
    step = 0
    # a guess may take more tokens for the target than the tokenizer would
    while step < longest or still_guessing:
        # the target's own tokens so far, and the guess so far: nearly always the same, and then one row
        on_target = {i: (*full[i], *ways[targets[i]][:step]) for i in range(len(full)) if step < len(ways[targets[i]])}
        on_guess = {i: (*full[i], *guessed[i]) for i in sorted(still_guessing)}
        asked: dict[tuple[int, ...], set[int]] = {tokens: set() for tokens in on_guess.values()}
        for i, tokens in on_target.items():
            asked.setdefault(tokens, set()).add(ways[targets[i]][step])
        logprob, best = asked_log_probs(model, asked, branching=False)
        for i, tokens in on_target.items():
            surprisal[i] -= logprob[tokens, ways[targets[i]][step]]
        for i, tokens in on_guess.items():
            wanted, added = targets[i].encode(), vocab.token_bytes[best[tokens]]
            guessed[i].append(best[tokens])
            guess[i] += added
            # over when it is as long as the target, can no longer become it, or the model would end the text
            if not added or len(guess[i]) >= len(wanted) or not wanted.startswith(guess[i]):
                still_guessing.discard(i)
        step += 1
    encoded = [target.encode() for target in targets]
    import xarray as xr  # noqa: PLC0415 - half a second that only results should cost

    return xr.Dataset(
        {
            "hit": ("context", np.array([a == b for a, b in zip(guess, encoded, strict=True)], dtype=bool)),
            "begins_alike": (
                "context",
                np.array([a.startswith(b) for a, b in zip(guess, encoded, strict=True)], dtype=bool),
            ),
            "n_tokens": ("context", np.array([len(ways[target]) for target in targets], dtype=np.int64)),
            "surprisal_nats": ("context", surprisal, {"units": "nats"}),
        },
        attrs={"model": json.dumps(model_record(model), sort_keys=True)},
    )
