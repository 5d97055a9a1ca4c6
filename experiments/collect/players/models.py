"""``experiment.players=model``: language models in front of the pages, who see what a page shows and answer in text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shannon_game.experiments.collect.games.bets import CHIPS, N_BETS
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.games.vocabulary import read_vocabulary
from shannon_game.experiments.collect.players.browser import Played
from shannon_game.experiments.collect.players.forms import Page
from shannon_game.experiments.collect.players.people import SLIDER_ENDS, nearest_step
from shannon_game.experiments.harness.text_models import TextPlayer, TextSettings, ask_texts, text_players
from shannon_game.inference.lm.engine import TextAnswers
from shannon_game.inference.text.prompts import Question, percent_question, word_question
from shannon_game.inference.text.reading import read_percent, read_word

if TYPE_CHECKING:
    from shannon_game.experiments.collect.settings import CollectSettings

_RETRY_TEMPERATURE = 1.0
_N_DRAWS = 20
"""Words that a model draws for its bets: chips are their shares."""
_AROUND_A_WORD = re.compile(r"^\W+|\W+$")


class UnreadableError(Played):
    """No answer of a model to a page could be read; like a person who gives up, it leaves."""

    def __init__(self, page: Page, texts: list[str | None]) -> None:
        super().__init__(page)
        self.texts = texts

    def __str__(self) -> str:
        """Say what it answered last."""
        return f"left after {len(self.texts)} answers to one page that cannot be read, the last: {self.texts[-1]!r}"


@dataclass(eq=False)
class ModelPerson:
    """One session of a language model."""

    player: TextPlayer
    number: int
    tries: int
    tokens: frozenset[str]
    n_asked: int = 0
    unreadable: Counter[str] = field(default_factory=Counter)

    def answer(self, game: str, page: Page) -> Mapping[str, str]:
        """Say what to fill into the form; an attention check is read like the rest of the page."""
        if game == "bets":
            return self._bets(page)
        return {GAMES[game].field: self._answer(game, page)}

    def _answer(self, game: str, page: Page, draw: int = 0) -> str:
        texts: list[str | None] = []
        for attempt in range(self.tries):
            answers = self._ask(_question(self.player, game, page), draw * self.tries + attempt)
            [text], finished = answers.text, bool(answers.finished[0])
            self.n_asked += 1
            value = None if text is None else self._read(game, page, text, finished=finished)
            if value is not None:
                return value
            texts.append(text)
            self.unreadable["(no usable answer)" if text is None else text] += 1
        raise UnreadableError(page, texts)

    def _bets(self, page: Page) -> dict[str, str]:
        drawn = Counter(self._answer("bets", page, draw) for draw in range(1 if page.strong else _N_DRAWS))
        fields: dict[str, str] = {}
        for at, (word, n) in enumerate(drawn.most_common(N_BETS), start=1):
            fields |= {f"word{at}": word, f"chips{at}": str(n * CHIPS // drawn.total())}
        staked = sum(int(chips) for name, chips in fields.items() if name.startswith("chips"))
        return fields | {"chips_other": str(CHIPS - staked)}

    def _ask(self, question: Question, attempt: int) -> TextAnswers:
        player, settings = self.player, self.player.settings
        if attempt:
            hotter = settings.changed(temperature=max(settings.temperature, _RETRY_TEMPERATURE))
            player = replace(player, settings=hotter)
        # without draws every session gives the same answer to the same page
        if player.settings.temperature:
            question = replace(question, draw=1 + self.number * self.tries * _N_DRAWS + attempt)
        # pages are fetched in an event loop, and an endpoint is asked in another one
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(ask_texts, player, [question]).result()

    def _read(self, game: str, page: Page, text: str, *, finished: bool) -> str | None:
        if game == "comparison":
            form = page.form("/play")
            offered = [int(value) for value in (form and form.choices.get("report")) or ()]
            ends = {} if offered else SLIDER_ENDS
            percent = read_percent(text, finished=finished, percents=offered or range(1, 100))
            # a slider has steps from its middle towards B
            step = None if percent is None or offered else nearest_step(1 - percent / 100)
            said = percent if step is None else step
            return ends.get(text.strip(), None if said is None else str(said))
        word = read_word(text, finished=finished)
        # the page takes words, without the comma or period that may follow them
        bare = None if word is None else _AROUND_A_WORD.sub("", word) or word
        if game == "top1" and bare is not None and not page.strong:
            # a word begins with a blank, a sign that follows a word does not
            return next((token for token in (f" {bare}", bare) if token in self.tokens), None)
        return None if bare in page.tokens else bare


def model_people(settings: CollectSettings) -> dict[str, ModelPerson]:
    """Make the sessions that the settings ask for, by the name of the player."""
    asked = TextSettings(
        models=settings.models,
        prompt=settings.prompt,
        temperature=settings.temperature,
        store=settings.store,
        api_store=settings.api_store,
    )
    tokens = read_vocabulary(settings.vocabulary).tokens if "top1" in settings.game else frozenset[str]()
    return {
        f"{player.name}-{settings.seed}-{number:04d}": ModelPerson(player, number, settings.tries, tokens)
        for player in text_players(asked, settings.seed)
        for number in range(settings.n_players)
    }


def _question(player: TextPlayer, game: str, page: Page) -> Question:
    prompt, context = player.settings.prompt, page.context or ""
    instruction = page.strong[0] if page.strong else None
    if game == "comparison":
        a, b = page.tokens[:2]
        return percent_question(prompt, context, a, b, question=instruction)
    question = word_question(prompt, context)
    if instruction is None and game == "guess_until_right" and page.tokens:
        instruction = f"It is not: {', '.join(word.strip() for word in page.tokens)}"
    return question if instruction is None else replace(question, user=f"{question.user}\n\n{instruction}".strip())
