"""Strings after contexts, in the model's own tokens: how probable they are, and whether they are its best guess."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import asked_log_probs, with_bos
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.vocabulary import vocabulary
from shannon_game.inference.lm.words import word_tokens


def continuation_log_probs(
    model: LanguageModel,
    contexts: Sequence[Sequence[int]],
    continuations: Sequence[Sequence[str]],
    *,
    bos: bool = True,
    progress: Callable[[int], None] | None = None,
) -> list[NDArray[np.float64]]:
    r"""Compute how probable it is that texts go on with given strings.

    .. math:: \ln q(s \mid c) = \sum_i \ln q(s_i \mid c\, s_1 \dots s_{i-1})

    over the tokens :math:`s_i` in which the model's tokenizer writes the string. Other ways of writing it are left out.

    Parameters
    ----------
    contexts : sequence of sequence of int
        The model's own tokens of each context, without BOS; or prompts, which have it (``bos=False``).
    continuations : sequence of sequence of str, shape (context,)
        Strings after each context, of any number.

    Returns
    -------
    list of ndarray of float, by context, each of shape (continuation,)
        Nats.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> model = lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> [found] = lm.continuation_log_probs(model, lm.encode(model, ["The old clock"]), [[" in", " in the"]])
    >>> bool(found[1] < found[0] < 0)
    True
    """
    if len(contexts) != len(continuations):
        raise InputError(f"has {len(continuations)} entries for {len(contexts)} contexts", field="continuations")
    for position, texts in enumerate(continuations):
        if not all(texts):
            raise InputError(f"has an empty string at context {position}", field="continuations")
    tokens = {
        text: word_tokens(model, text) for text in dict.fromkeys(text for texts in continuations for text in texts)
    }
    full = with_bos(model, contexts) if bos else [[int(token) for token in context] for context in contexts]
    if not all(full):
        raise InputError("has an empty prompt", field="contexts")
    asked: dict[tuple[int, ...], set[int]] = {}
    for context, texts in zip(full, continuations, strict=True):
        for text in texts:
            for step, token in enumerate(tokens[text]):
                asked.setdefault((*context, *tokens[text][:step]), set()).add(token)
    # a continuation may reach beyond the longest sequence that the model takes
    too_long = next((prefix for prefix in asked if len(prefix) > model.max_tokens), None)
    if too_long is not None:
        raise InputError(
            f"a context with a continuation has {len(too_long)} tokens, {model.name} takes {model.max_tokens}; "
            "shorten it",
            field="contexts",
        )
    logprob, _ = asked_log_probs(model, asked, progress=progress)

    def of(context: Sequence[int], text: str) -> float:
        steps = enumerate(tokens[text])
        return sum(logprob[(*context, *tokens[text][:step]), token] for step, token in steps)

    return [
        np.array([of(context, text) for text in texts], dtype=np.float64)
        for context, texts in zip(full, continuations, strict=True)
    ]


def play_top1(
    model: LanguageModel,
    contexts: Sequence[Sequence[int]],
    targets: Sequence[str],
) -> Dataset:
    """Guess the next token of texts, and compare strings with the tokens that the texts are cut into.

    Where the model has not the target as a token, its most probable tokens are taken one after the other until they are
    as long as the target. By context: ``hit``, the guess is the target (" the" for " the", not " them");
    ``begins_alike``, it begins with the target; ``n_tokens`` in which the model writes the target, and
    ``surprisal_nats`` of the target in those.
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
