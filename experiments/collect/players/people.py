"""Simulated people: what each answers, known before any page is asked for.

A person's answer to an item depends on the person's number, the item and what is shown alone: not on the order of the
questions, the side of the target, or the other players. So a collection that was played through HTTP holds the very
numbers that :meth:`People.report` and :meth:`People.word` give without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.bets.simulation import whole_chips
from shannon_game.estimators.comparison import rounding_scheme
from shannon_game.estimators.comparison.simulation.participants import Participants, draw_participants, simulate_reports
from shannon_game.estimators.comparison.simulation.players import sample_rows
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, random_stream
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.games.bets import CHIPS, N_BETS
from shannon_game.experiments.collect.games.comparison import SLIDER
from shannon_game.experiments.collect.games.top1 import can_be_guessed
from shannon_game.experiments.collect.players.forms import Page
from shannon_game.experiments.collect.players.world import World
from shannon_game.experiments.collect.strings import Strings

__all__ = ["ANY_WORD", "People", "Person", "exact_people", "simulated_people"]

ANY_WORD = "the"
"""What somebody types where no token of the item is a word."""
_BOXES = rounding_scheme(SLIDER).values


@dataclass(eq=False)
class People:
    """Everybody who plays."""

    world: World
    people: Participants
    seed: int
    _reports: dict[tuple[int, int, str], NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def report(self, person: int, item: int, candidate: int, scale: str = "interface") -> float:
        """Probability that a person gives to the target, on a scale, when a candidate is shown beside it.

        The same random numbers as :func:`shannon_game.estimators.comparison.simulate_comparison_study` takes for this
        person and item, whatever the candidate.
        """
        key = person, candidate, scale
        if key not in self._reports:
            log_odds = self.world.target_logprob - self.world.candidate_logprob[:, candidate]
            self._reports[key] = simulate_reports(
                np.nan_to_num(log_odds),
                rng=random_stream(self.seed, "participant", person, 1),
                bias=self.people.bias[person],
                slope=self.people.slope[person],
                noise_sd=self.people.noise_sd[person],
                lapse_rate=self.people.lapse_rate[person],
                rounding=scale,
            )
        return float(self._reports[key][item])

    def word(self, person: int, item: int) -> str:
        """Token that comes to a person's mind, drawn from the belief over the item's tokens that are one word."""
        tokens = self.world.tokens[item]
        typed = [at for at, token in enumerate(tokens) if len(token.split()) == 1]
        if not typed:
            return ANY_WORD
        uniform = random_stream(self.seed, "answer", person, item).random((1, 1))
        [[drawn]] = sample_rows(self.world.token_logprob[item][typed][None], 1.0, uniform)
        return tokens[typed[int(drawn)]]

    def token(self, person: int, item: int) -> str:
        """Token that a person thinks most likely: the top of the belief, with the noise of the person's reports."""
        tokens = self.world.tokens[item]
        seen = [at for at, token in enumerate(tokens) if can_be_guessed(token)]
        noisy = self._noisy(person, item, self.world.token_logprob[item])
        return tokens[max(seen, key=lambda at: float(noisy[at]))]

    def guesses(self, person: int, item: int) -> list[str]:
        """Words in the order in which a person guesses them: by belief, with noise; then words that nobody says."""
        words, logprob = self.world.words(item)
        order = np.argsort(-self._noisy(person, item, logprob), kind="stable")
        return [words[at] for at in order.tolist()]

    def bets(self, person: int, item: int) -> tuple[dict[str, int], int]:
        """Chips on the most probable words and on anything else: beliefs to the power of the person's slope."""
        words, logprob = self.world.words(item)
        top = np.argsort(-logprob, kind="stable")[:N_BETS].tolist()
        named = np.exp(logprob[top])
        # what the belief leaves for words that were not named
        cells = np.append(named, max(1.0 - named.sum(), 1e-6)) ** self.people.slope[person]
        [chips] = whole_chips((cells / cells.sum())[None], CHIPS)
        return dict(zip([words[at] for at in top], chips[:-1].tolist(), strict=True)), int(chips[-1])

    def _noisy(self, person: int, item: int, logprob: NDArray[np.float64]) -> NDArray[np.float64]:
        noise = random_stream(self.seed, "private", item, person).standard_normal(logprob.size)
        noisy: NDArray[np.float64] = logprob + self.people.noise_sd[person] * noise
        return noisy


@dataclass(eq=False)
class Person:
    """One of them, in front of a page."""

    people: People
    number: int

    def answer(self, game: str, page: Page) -> Mapping[str, str]:
        """Say what to fill into the form: what an instruction asks for, else what the person believes."""
        check = _instruction(game, page)
        if check:
            # the end of a slider that an instruction asks for
            check = {"A": str(-(len(_BOXES) // 2)), "B": str(len(_BOXES) // 2)}.get(check, check)
            fields = {"comparison": "report", "top1": "token", "bets": "word1"}
            return {fields.get(game, "word"): check} | ({"chips1": str(CHIPS)} if game == "bets" else {})
        if game == "comparison":
            return {"report": str(self._report(page))}
        item = self._item(page)
        if game == "bets":
            return self._bets(item)
        if game == "top1":
            return {"token": self.people.token(self.number, item)}
        if game == "guess_until_right":
            return {"word": self._guess(item, len(page.tokens))}
        return {"word": self.people.word(self.number, item).strip()}

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
            report = self.people.report(self.number, item, candidate, SLIDER)
            step = int(np.searchsorted(_BOXES, report - 1e-9)) - len(_BOXES) // 2
            return -step if a == target else step
        percent = round(100 * self.people.report(self.number, item, candidate))
        return percent if a == target else 100 - percent

    def _guess(self, item: int, n_before: int) -> str:
        known = self.people.guesses(self.number, item)
        return known[n_before] if n_before < len(known) else f"{ANY_WORD}{n_before}"

    def _bets(self, item: int) -> dict[str, str]:
        chips, other = self.people.bets(self.number, item)
        fields = {"chips_other": str(other)}
        for at, (word, number) in enumerate(chips.items(), start=1):
            fields |= {f"word{at}": word, f"chips{at}": str(number)}
        return fields


def simulated_people(world: World, population: ParticipantPopulation, n_people: int, seed: int) -> People:
    """Draw people; the first ones are the same however many are drawn."""
    return People(world, draw_participants(population, n_people, seed), seed)


def exact_people(world: World, n_people: int, seed: int) -> People:
    """Make players who report what they believe, as a language model of the study does."""
    nothing, one = np.zeros(n_people), np.ones(n_people)
    return People(world, Participants(nothing, one, nothing, nothing), seed)


def _instruction(game: str, page: Page) -> str | None:
    """Read what an attention check asks for."""
    say = Strings(("en",)).say
    for key in ("play.check_comparison", "play.check_slider") if game == "comparison" else ("play.check_word",):
        before, _, after = " ".join(say("en", key, value="\0").split(" ")).partition("\0")
        for text in page.strong:
            if text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after):
                return text[len(before) : len(text) - len(after)]
    return None
