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

from estimators.comparison.simulation.participants import Participants, draw_participants, simulate_reports
from estimators.comparison.simulation.players import sample_rows
from estimators.comparison.simulation.settings import ParticipantPopulation, random_stream
from experiments.collect.players.forms import Page
from experiments.collect.players.world import World
from experiments.collect.strings import Strings

__all__ = ["People", "Person", "exact_people", "simulated_people"]

_ANYTHING = "the"
"""What somebody types who has no idea."""
_CHECKS = {"comparison": "play.check_comparison"}


@dataclass(eq=False)
class People:
    """Everybody who plays.

    Parameters
    ----------
    world : World
    people : Participants
    seed : int
    """

    world: World
    people: Participants
    seed: int
    _reports: dict[tuple[int, int], NDArray[np.float64]] = field(default_factory=dict, repr=False)

    def report(self, person: int, item: int, candidate: int) -> float:
        """Probability that a person gives to the target when a candidate is shown beside it.

        The same random numbers as :func:`estimators.comparison.simulate_comparison_study` takes for this person and
        item, whatever the candidate.

        Parameters
        ----------
        person, item, candidate : int
            Positions.

        Returns
        -------
        float
            One of the eleven values.
        """
        if (person, candidate) not in self._reports:
            log_odds = self.world.target_logprob - self.world.candidate_logprob[:, candidate]
            self._reports[person, candidate] = simulate_reports(
                np.nan_to_num(log_odds),
                rng=random_stream(self.seed, "participant", person, 1),
                bias=self.people.bias[person],
                slope=self.people.slope[person],
                noise_sd=self.people.noise_sd[person],
                lapse_rate=self.people.lapse_rate[person],
            )
        return float(self._reports[person, candidate][item])

    def word(self, person: int, item: int) -> str:
        """Token that comes to a person's mind, drawn from the belief over the tokens that the item knows.

        Parameters
        ----------
        person, item : int

        Returns
        -------
        str
        """
        uniform = random_stream(self.seed, "answer", person, item).random((1, 1))
        [[at]] = sample_rows(self.world.token_logprob[item][None], 1.0, uniform)
        return self.world.tokens[item][int(at)]


@dataclass(eq=False)
class Person:
    """One of them, in front of a page.

    Parameters
    ----------
    people : People
    number : int
    """

    people: People
    number: int

    def answer(self, game: str, page: Page) -> Mapping[str, str]:
        """Say what to fill into the form: what an instruction asks for, else what the person believes."""
        check = _instruction(game, page)
        if game == "comparison":
            return {"report": check or str(self._percent_a(page))}
        return {"word": check or self._typed(page)}

    def _percent_a(self, page: Page) -> int:
        world, (a, b) = self.people.world, page.tokens[:2]
        item = world.find(page.context or "", (a, b))
        if item is None:
            return 50
        target = world.target[item]
        other = b if a == target else a
        percent = round(100 * self.people.report(self.number, item, world.candidate[item].index(other)))
        return percent if a == target else 100 - percent

    def _typed(self, page: Page) -> str:
        item = self.people.world.find(page.context or "")
        typed = "" if item is None else self.people.word(self.number, item).strip()
        # a token may be a blank alone
        return typed if len(typed.split()) == 1 else _ANYTHING


def simulated_people(world: World, population: ParticipantPopulation, n_people: int, seed: int) -> People:
    """Draw people; the first ones are the same however many are drawn.

    Parameters
    ----------
    world : World
    population : ParticipantPopulation
    n_people : int
    seed : int

    Returns
    -------
    People
    """
    return People(world, draw_participants(population, n_people, seed), seed)


def exact_people(world: World, n_people: int, seed: int) -> People:
    """Make players who report what they believe, as a language model of the study does.

    Parameters
    ----------
    world : World
    n_people : int
    seed : int

    Returns
    -------
    People
    """
    nothing, one = np.zeros(n_people), np.ones(n_people)
    return People(world, Participants(nothing, one, nothing, nothing), seed)


def _instruction(game: str, page: Page) -> str | None:
    """Read what an attention check asks for."""
    before, _, after = _check_text(game).partition("\0")
    for text in page.strong:
        if text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after):
            return text[len(before) : len(text) - len(after)]
    return None


def _check_text(game: str) -> str:
    return " ".join(Strings(("en",)).say("en", _CHECKS.get(game, "play.check_word"), value="\0").split(" "))
