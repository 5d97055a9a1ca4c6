"""Probabilities of continuations: of a text going on with given strings, in the model's own tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import asked_log_probs, with_bos
from shannon_game.inference.lm.language_model import LanguageModel
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
