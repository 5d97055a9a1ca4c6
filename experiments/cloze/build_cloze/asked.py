"""Words of models that are asked in text: one word a call, or a list of words in one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.cloze.words import FAILED
from shannon_game.experiments.cloze.build_cloze.players import Player, Row
from shannon_game.experiments.harness.text_models import TextPlayer, ask_texts
from shannon_game.inference.text.prompts import word_question, words_question
from shannon_game.inference.text.reading import read_word, read_words


def asked_player(player: TextPlayer, texts: Sequence[str], n_samples: int) -> tuple[Player, str]:
    """Ask for the next word of every text so many times, and say what it cost."""
    prompt = player.settings.prompt
    asked = [replace(word_question(prompt, text), draw=draw) for text in texts for draw in range(n_samples)]
    answers = ask_texts(player, asked)
    words = [
        (None if text is None else read_word(text, finished=finished)) or FAILED
        for text, finished in zip(answers.text, answers.finished.tolist(), strict=True)
    ]
    rows = [_counted(words[at : at + n_samples]) for at in range(0, len(words), n_samples)]
    return Player(player.name, player.name, "asked", rows, n_samples), answers.said


def listed_player(player: TextPlayer, texts: Sequence[str], n_listed: int) -> tuple[Player, str]:
    """Ask for one list of words after every text; what it has too few of are failed draws."""
    prompt = player.settings.prompt
    # the whole list is one answer
    longer = replace(player, settings=player.settings.changed(max_tokens=n_listed * player.settings.max_tokens))
    answers = ask_texts(longer, [words_question(prompt, text, n_listed) for text in texts])
    lists = [[] if text is None else read_words(text)[:n_listed] for text in answers.text]
    rows = [_counted([*words, *[FAILED] * (n_listed - len(words))]) for words in lists]
    return Player(player.name, player.name, "list", rows, n_listed), answers.said


def _counted(words: Sequence[str]) -> list[Row]:
    return [Row(word, SAMPLES, count) for word, count in Counter(words).items()]
