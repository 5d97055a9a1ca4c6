"""Words of models that are asked in text: one word a call, or a list of words in one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.cloze.words import FAILED
from shannon_game.experiments.cloze.build_cloze.players import BuiltPlayer, BuiltWord
from shannon_game.experiments.harness.text_models import TextPlayer, ask_texts
from shannon_game.inference.text.prompts import word_question, words_question
from shannon_game.inference.text.reading import read_word, read_words


def asked_player(
    player: TextPlayer, texts: Sequence[str], n_samples: int, n_listed: int | None
) -> tuple[BuiltPlayer, str]:
    """Ask for the next word of every text so many times, or for one list of words; say what it cost.

    An answer that is no word, and what a list has too few of, are failed draws.
    """
    prompt, settings = player.settings.prompt, player.settings
    if n_listed is None:
        asked = [replace(word_question(prompt, text), draw=draw) for text in texts for draw in range(n_samples)]
    else:
        asked = [words_question(prompt, text, n_listed) for text in texts]
        player = replace(player, settings=settings.changed(max_tokens=n_listed * settings.max_tokens))
    answers = ask_texts(player, asked)
    read = [
        read_words(text or "") if n_listed else [read_word(text or "", finished=finished)]
        for text, finished in zip(answers.text, answers.finished.tolist(), strict=True)
    ]
    n_draws = n_listed or n_samples
    each = len(asked) // len(texts)
    rows = []
    for at in range(0, len(read), each):
        words = [word for some in read[at : at + each] for word in some if word][:n_draws]
        counts = Counter([*words, *[FAILED] * (n_draws - len(words))])
        rows.append([BuiltWord(word, SAMPLES, count) for word, count in counts.items()])
    return BuiltPlayer(player.name, player.name, "list" if n_listed else "asked", rows, n_draws), answers.said
