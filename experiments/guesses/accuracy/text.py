"""Language models in the top-1 game that are asked for the next token in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.harness.text_models import TextPlayer, ask_texts
from inference.lm.language_model import LanguageModel, encode
from inference.lm.prompting import prompt_tokens
from inference.text.prompts import PromptSettings, word_question
from inference.text.reading import read_word

__all__ = ["TextGuesses", "guess_in_text"]

# what tokenising a text anew, after its beginning was cut off, may add
_SLACK_TOKENS = 8


@dataclass(frozen=True, eq=False)
class TextGuesses:
    """Guesses of one model.

    Attributes
    ----------
    hit : ndarray of bool, shape (position,)
        The answer is the target, up to blanks around both: a space that no answer shows is forgiven.
    n_no_token : int
        Answers that are no token: none, or several words. They are misses.
    n_cut : int
        Positions at which the model saw only the end of its text.
    said : str
        For the report.
    """

    hit: NDArray[np.bool_]
    n_no_token: int
    n_cut: int
    said: str


def guess_in_text(player: TextPlayer, asked: Sequence[tuple[str, str]]) -> TextGuesses:
    """Ask a model for the next word of texts."""
    prompt, contexts, n_cut = player.settings.prompt, [context for context, _ in asked], 0
    if player.model is not None:
        shortened = _ends(player.model, prompt, contexts, player.settings.max_tokens)
        n_cut = sum(len(short) < len(context) for short, context in zip(shortened, contexts, strict=True))
        contexts = shortened
    answers = ask_texts(player, [word_question(prompt, context) for context in contexts])
    words = [
        None if text is None else read_word(text, finished=finished)
        for text, finished in zip(answers.text, answers.finished.tolist(), strict=True)
    ]
    hit = np.array([word == target.strip() for word, (_, target) in zip(words, asked, strict=True)], dtype=np.bool_)
    return TextGuesses(hit, words.count(None), n_cut, answers.said)


def _ends(model: LanguageModel, prompt: PromptSettings, contexts: list[str], max_tokens: int) -> list[str]:
    """Of a text that is longer than the model takes, its end."""
    shortest = word_question(prompt, "a")
    [around] = prompt_tokens(model, [(shortest.system, shortest.user)])
    room = model.max_tokens - len(around) - max_tokens - _SLACK_TOKENS
    return [
        context if len(tokens) <= room else str(model.tokenizer.decode(tokens[-room:]))
        for context, tokens in zip(contexts, encode(model, contexts), strict=True)
    ]
