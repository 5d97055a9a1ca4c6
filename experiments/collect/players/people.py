"""Simulated people: what each answers, known before any page is asked for.

A person's answer to an item depends on the person's number, the item and what is shown alone: not on the order of the
questions, the side of the target, or the other players. So a collection that was played through HTTP holds the very
numbers that :meth:`People.report` and :meth:`People.word` give without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.bets.simulation import whole_chips
from shannon_game.estimators.comparison import rounding_scheme
from shannon_game.estimators.comparison.simulation.participants import (
    LAPSE_REPORTS,
    Participants,
    draw_participants,
    simulate_reports,
)
from shannon_game.estimators.comparison.simulation.players import sample_rows
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, random_stream
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.games.bets import CHIPS, N_BETS
from shannon_game.experiments.collect.games.comparison import SLIDER
from shannon_game.experiments.collect.games.practice import obvious_words
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.players.forms import Page
from shannon_game.experiments.collect.players.world import World, continued
from shannon_game.experiments.collect.strings import Strings, available

ANY_WORD = "the"
"""What somebody types, with a number, who knows no further word."""
_BOXES = rounding_scheme(SLIDER).values
SLIDER_ENDS = {"A": str(-(len(_BOXES) // 2)), "B": str(len(_BOXES) // 2)}
"""What the form of a slider sends at its ends."""


_SURE = 20
"""Steps of the slider from its middle."""


def nearest_step(probability: float) -> int:
    """Step of the slider, from its middle, whose value is the nearest to a probability."""
    return int(np.abs(np.array(_BOXES) - probability).argmin()) - len(_BOXES) // 2


@dataclass(eq=False)
class People:
    """Everybody who plays."""

    world: World
    people: Participants
    seed: int
    private_sd_nats: float = 0.0
    bots: frozenset[int] = frozenset()

    def report(self, person: int, item: int, candidate: int, scale: str = "interface") -> float:
        """Probability that a person gives to the target, on a scale, when a candidate is shown beside it.

        The same random numbers as :func:`shannon_game.estimators.comparison.simulate_comparison_study` takes for this
        person and item, whatever the candidate.
        """
        world = self.world
        log_odds = np.nan_to_num(world.target_logprob - world.candidate_logprob[:, candidate])
        if self.private_sd_nats:
            own, place = self._private(person, item), world.vocabulary.place
            log_odds[item] += own[place[world.target[item]]] - own[place[world.candidate[item][candidate]]]
        reports = simulate_reports(
            log_odds,
            rng=random_stream(self.seed, "participant", person, 1),
            bias=self.people.bias[person],
            slope=self.people.slope[person],
            noise_sd=self.people.noise_sd[person],
            lapse_rate=self.people.lapse_rate[person],
            rounding=scale,
            clicks=rounding_scheme(scale).values or LAPSE_REPORTS,
        )
        return float(reports[item])

    def word(self, person: int, item: int) -> str:
        """Token that comes to a person's mind: a draw of the person's belief over the whole vocabulary."""
        uniform = random_stream(self.seed, "answer", person, item).random((1, 1))
        [[drawn]] = sample_rows(self.own(person, item)[None], 1.0, uniform)
        return self.world.vocabulary.tokens[int(drawn)]

    def token(self, person: int, item: int) -> str:
        """Token that a person thinks most likely: the top of the belief, with the noise of the person's reports."""
        noisy = np.where(self.world.vocabulary.can_be_guessed, self._noisy(person, item), -np.inf)
        return self.world.vocabulary.tokens[int(noisy.argmax())]

    def guesses(self, person: int, item: int, most: int) -> list[str]:
        """First words that a person guesses: in the order of the belief, with noise."""
        return [word for word, _ in self._words(self._noisy(person, item), most)]

    def bets(self, person: int, item: int) -> tuple[dict[str, int], int]:
        """Chips on the most probable words and on anything else: beliefs to the power of the person's slope."""
        is_bot = person in self.bots
        own = self._noisy(person, item) if is_bot else self.own(person, item)
        top = self._words(own, N_BETS)
        named = np.exp([logprob for _, logprob in top] - np.logaddexp.reduce(own))
        # what the belief leaves for words that were not named
        cells = np.append(named, max(1.0 - named.sum(), 1e-6)) ** (0.0 if is_bot else self.people.slope[person])
        [chips] = whole_chips((cells / cells.sum())[None], CHIPS)
        staked = zip([word for word, _ in top], chips[:-1].tolist(), strict=True)
        return {word: number for word, number in staked if number}, int(chips[-1])

    def own(self, person: int, item: int) -> FloatArray:
        """Own belief of every token, up to a constant; a bot's is that all are alike."""
        shared = self.world.logprob(item)
        if person in self.bots:
            return np.zeros_like(shared)
        return shared + self._private(person, item) if self.private_sd_nats else shared

    def _private(self, person: int, item: int) -> FloatArray:
        """Own belief less the shared one, as in :func:`~shannon_game.estimators.comparison.simulate_designed_study`."""
        normal = random_stream(self.seed, "private", item, person).standard_normal(
            len(self.world.vocabulary.tokens), dtype=np.float32
        )
        return self.private_sd_nats * normal.astype(float)

    def _noisy(self, person: int, item: int) -> FloatArray:
        noise = random_stream(self.seed, "free", item, person).standard_normal(len(self.world.vocabulary.tokens))
        # who answers anything guesses anything
        noise_sd = 1.0 if person in self.bots else self.people.noise_sd[person]
        return self.own(person, item) + noise_sd * noise

    def _words(self, logprob: FloatArray, most: int) -> list[tuple[str, float]]:
        words, found = self.world.vocabulary, dict[int, tuple[str, float]]()
        for at in np.argsort(-logprob, kind="stable").tolist():
            found.setdefault(int(words.key[at]), (words.typed[at], float(logprob[at])))
            if len(found) == most:
                break
        return list(found.values())


@dataclass(eq=False)
class Person:
    """One of them, in front of a page."""

    people: People
    number: int

    def answer(self, game: str, page: Page) -> Mapping[str, str]:
        """Say what to fill into the form: what an instruction asks for, else what the person believes."""
        check = _instruction(game, page)
        if check:
            if self.number in self.people.bots:
                check = self._anything(game, page)
            # the end of a slider that an instruction asks for
            check = SLIDER_ENDS.get(check, check)
            return {GAMES[game].field: check} | ({"chips1": str(CHIPS)} if game == "bets" else {})
        if word := obvious_words().get((page.context or "").strip()):
            return _obvious(game, page, word)
        if game == "comparison":
            return {"report": str(self._report(page))}
        item = self._item(page)
        if game in ("bets", "top1"):
            return self._bets(item) if game == "bets" else {"token": self.people.token(self.number, item)}
        if game == "guess_until_right":
            return {"word": self._guess(item, len(page.tokens))}
        return {"word": continued(self.people.word(self.number, item))}

    def _anything(self, game: str, page: Page) -> str:
        """What somebody answers who does not read the page."""
        rng = random_stream(self.people.seed, "bot", self.number, len(page.text))
        if game != "comparison":
            return str(rng.choice(self.people.world.vocabulary.typed))
        form = page.form("/play")
        slider = [str(step - len(_BOXES) // 2) for step in range(len(_BOXES))]
        return str(rng.choice((form and form.choices.get("report")) or slider))

    def _item(self, page: Page, options: tuple[str, ...] = ()) -> int:
        item = self.people.world.find(page.context or "", options)
        if item is None:
            problem = f"ends with {(page.context or '')[-40:]!r}, of which the study has no item"
            raise InputError(problem, source=f"player {self.number}", field="context")
        return item

    def _report(self, page: Page) -> int:
        """Percentage of A, or steps of the slider from the middle towards B."""
        world, (a, b) = self.people.world, page.tokens[:2]
        item = self._item(page, (a, b))
        target = world.target[item]
        other = b if a == target else a
        form, candidate = page.form("/play"), world.candidate[item].index(other)
        if form is not None and "report" not in form.choices:
            step = nearest_step(self.people.report(self.number, item, candidate, SLIDER))
            return -step if a == target else step
        percent = round(100 * self.people.report(self.number, item, candidate))
        return percent if a == target else 100 - percent

    def _guess(self, item: int, n_before: int) -> str:
        known = self.people.guesses(self.number, item, n_before + 1)
        return known[n_before] if n_before < len(known) else f"{ANY_WORD}{n_before}"

    def _bets(self, item: int) -> dict[str, str]:
        chips, other = self.people.bets(self.number, item)
        fields = {"chips_other": str(other)}
        for at, (word, number) in enumerate(chips.items(), start=1):
            fields |= {f"word{at}": word, f"chips{at}": str(number)}
        return fields


def _obvious(game: str, page: Page, word: str) -> dict[str, str]:
    """Answer a practice question as anybody would."""
    if game == "bets":
        return {"word1": word, "chips1": str(CHIPS - 10), "chips_other": "10"}
    if game != "comparison":
        return {"word": word}
    form, is_a = page.form("/play"), page.tokens[0].strip() == word
    if form is not None and "report" not in form.choices:
        return {"report": str(-_SURE if is_a else _SURE)}
    return {"report": "90" if is_a else "10"}


def simulated_people(
    world: World,
    population: ParticipantPopulation,
    n_people: int,
    seed: int,
    *,
    private_sd_nats: float = 0.0,
    bots: float = 0.0,
) -> People:
    """Draw people; the first ones are the same however many are drawn, but for who of them is a bot."""
    order = random_stream(seed, "bot").permutation(n_people)
    chosen = order[: round(bots * n_people)]
    people = draw_participants(population, n_people, seed)
    people.lapse_rate[chosen] = 1.0
    return People(world, people, seed, private_sd_nats, frozenset(chosen.tolist()))


def exact_people(world: World, n_people: int, seed: int) -> People:
    """Make players who report what they believe, as a language model of the study does."""
    nothing, one = np.zeros(n_people), np.ones(n_people)
    return People(world, Participants(nothing, one, nothing, nothing), seed)


def _instruction(game: str, page: Page) -> str | None:
    for key, before, after in _instructions():
        if (key == "play.check_word") == (game == "comparison"):
            continue
        for text in page.strong:
            if text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after):
                return text[len(before) : len(text) - len(after)]
    return None


@cache
def _instructions() -> list[tuple[str, str, str]]:
    """What attention checks say before and after the answer that they ask for, in every language."""
    strings, keys = Strings(available()), ("play.check_comparison", "play.check_slider", "play.check_word")
    said = [(key, " ".join(strings.say(language, key, value="\0").split())) for language in available() for key in keys]
    return [(key, *text.split("\0")) for key, text in said]  # type: ignore[misc]
