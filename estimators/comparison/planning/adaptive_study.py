"""Simulated studies whose questions are chosen one batch after the other, and that stop at a width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.checks import check_numbers, named
from shannon_game.estimators.comparison.planning.adaptive import question_probabilities, question_state
from shannon_game.estimators.comparison.planning.questions import KnownContexts, report_log_ratios
from shannon_game.estimators.comparison.rounding import RoundingScheme
from shannon_game.estimators.comparison.scaled_bridge import ScaledBridge, scaled_bridge
from shannon_game.estimators.comparison.simulation.participants import Participants, draw_participants
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.comparison.token_pool import TokenPool
from shannon_game.estimators.display import Result
from shannon_game.estimators.documents.clusters import t_half_width
from shannon_game.estimators.errors import unknown_choice

Rule = Literal["gain", "fixed"]


@dataclass(frozen=True)
class QuestionPlan:
    """How questions are chosen, and when they end.

    Parameters
    ----------
    n_answers, n_comparisons : int
        Free answers and comparisons per item at the start, before the first look.
    questions_a_look : int
        Questions between two looks.
    rule : {"gain", "fixed"}
        ``gain``: each by what it is expected to say in its time (:func:`next_question`); ``fixed``: every item alike,
        as at the start.
    floor : float
        Share of the probability that is the same for every question.
    width_nats, interval : float
        Questions end at the second look in a row whose interval of this coverage, for the items asked, is as narrow.
    max_minutes : float
        Of people's time, after which they end in any case.
    """

    n_draws: int = 8
    n_answers: int = 3
    n_comparisons: int = 4
    questions_a_look: int = 120
    rule: Rule = "gain"
    floor: float = 0.1
    width_nats: float = 0.4
    interval: float = 0.9
    max_minutes: float = 3000.0
    comparison_seconds: float = 15.0
    answer_seconds: float = 10.0

    def __post_init__(self) -> None:
        sizes = named(self, "n_draws", "n_answers", "n_comparisons", "questions_a_look")
        check_numbers(sizes, "plan", at_least=1)
        times = named(self, "width_nats", "max_minutes", "comparison_seconds", "answer_seconds")
        check_numbers(times, "plan", above=0)
        if self.rule not in get_args(Rule):
            raise unknown_choice("rule", self.rule, get_args(Rule), source="plan")
        check_numbers(named(self, "floor"), "plan", above=0, at_most=1)
        check_numbers(named(self, "interval"), "plan", above=0, below=1)


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveStudy(Result):
    """A study whose questions ended by themselves.

    Attributes
    ----------
    truth_nats : float
        Mean gap of the items asked.
    half_width_nats : float
        Of the interval at the end.
    probability : ndarray, shape (question,)
        With which every question after the start was chosen; 1 in a fixed study.
    """

    estimate: ScaledBridge
    truth_nats: float
    half_width_nats: float
    minutes: float
    n_looks: int
    reached: bool
    probability: FloatArray

    @property
    def covers(self) -> bool:
        """Whether the interval holds the truth."""
        return abs(self.estimate.gap_nats - self.truth_nats) <= self.half_width_nats


class _Course:
    """What was asked so far; grows by batches."""

    def __init__(
        self,
        known: KnownContexts,
        context: IntArray,
        people: Participants,
        n_draws: int,
        *,
        scale: RoundingScheme | str,
        rng: np.random.Generator,
    ) -> None:
        self.known, self.context, self.people, self.scale, self.rng = known, context, people, scale, rng
        self.n_people = people.bias.size
        drawn = known.draw("generator", context, n_draws, rng)
        self.draw_key = (np.arange(context.size)[:, None] * known.belief.shape[1] + drawn).ravel()
        empty = np.empty(0, dtype=np.intp)
        self.answer_key, self.answer_person, self.report_key, self.report_person = empty, empty, empty, empty
        self.report_value = np.empty(0)
        self.turn = 0

    def persons(self, n: int) -> IntArray:
        """People in turn: everybody is asked alike often."""
        turn = (self.turn + np.arange(n)) % self.n_people
        self.turn += n
        return self.rng.permutation(turn).astype(np.intp)

    def answer(self, item: IntArray) -> IntArray:
        token = self.known.draw("belief", self.context[item], 1, self.rng)[:, 0]
        who = self.persons(item.size)
        if self.known.bots:
            token = self.known.of_bots(token, who, self.n_people, self.rng)
        key: IntArray = item * self.known.belief.shape[1] + token
        self.answer_key = np.concatenate([self.answer_key, key])
        self.answer_person = np.concatenate([self.answer_person, who])
        return key

    def compare(self, key: IntArray) -> None:
        vocab = self.known.belief.shape[1]
        context, token = self.context[key // vocab], key % vocab
        fine = token != self.known.target[context]
        key, context, token = key[fine], context[fine], token[fine]
        who = self.persons(key.size)
        value = report_log_ratios(self.known, context, token, who, self.people, scale=self.scale, rng=self.rng)
        self.report_key = np.concatenate([self.report_key, key])
        self.report_person = np.concatenate([self.report_person, who])
        self.report_value = np.concatenate([self.report_value, value])

    def pool(self) -> tuple[TokenPool, IntArray]:
        vocab = self.known.belief.shape[1]
        key, place = np.unique(np.concatenate([self.draw_key, self.answer_key]), return_inverse=True)
        item, token = key // vocab, key % vocab
        row, n = self.context[item], self.draw_key.size
        target = self.known.target[row]
        return TokenPool(
            item=item,
            offset_nats=self.known.generator[row, target] - self.known.generator[row, token],
            is_target=token == target,
            n_drawn=np.bincount(place[:n], minlength=key.size),
            answer_token=place[n:].astype(np.intp),
            answer_person=self.answer_person,
            report_token=np.searchsorted(key, self.report_key),
            report_person=self.report_person,
            report_log_ratio=self.report_value,
        ), key

    def minutes(self, plan: QuestionPlan) -> float:
        seconds = self.answer_key.size * plan.answer_seconds + self.report_key.size * plan.comparison_seconds
        return float(seconds) / 60


def simulate_adaptive(
    known: KnownContexts,
    context: NDArray[np.integer],
    population: ParticipantPopulation,
    plan: QuestionPlan,
    *,
    n_people: int,
    scale: RoundingScheme | str = "slider",
    rng: np.random.Generator,
) -> AdaptiveStudy:
    """Simulate a study that chooses its questions, or asks a fixed course of them, and stops at a width.

    Between two looks, questions are drawn with the probabilities of :func:`next_question` at the last look, none twice.
    The width decides when to stop, the estimate does not (Chow and Robbins 1965); asking for two looks in a row keeps
    an error that is small by chance from ending the study.
    """
    KnownContexts.require(known=known)
    check_numbers({"n_people": n_people}, at_least=2)
    place = np.asarray(context, dtype=np.intp)
    everybody = known.with_bots(draw_participants(population, n_people, int(rng.integers(2**31))))
    course = _Course(known, place, everybody, plan.n_draws, scale=scale, rng=rng)
    _fixed(course, plan.n_answers, plan.n_comparisons)
    recorded: list[FloatArray] = []
    narrow = looks = 0
    while True:
        looks += 1
        pool, key = course.pool()
        found = scaled_bridge(pool, n_groups=n_people)
        half, minutes = t_half_width(found.se_asked_nats, found.freedom, plan.interval), course.minutes(plan)
        narrow = narrow + 1 if 2 * half <= plan.width_nats else 0
        if narrow == 2 or minutes >= plan.max_minutes:
            truth = float(known.gap_nats[place[found.item]].mean())
            probability = np.concatenate(recorded) if recorded else np.empty(0)
            return AdaptiveStudy(found, truth, half, minutes, looks, narrow == 2, probability)
        if plan.rule == "gain":
            recorded.append(_by_gain(course, pool, key, plan))
        else:
            recorded.append(np.ones(_fixed_batch(course, plan)))


def _fixed(course: _Course, n_answers: int, n_comparisons: int) -> None:
    """Ask every item alike: free answers, then its tokens in random order, those compared least first."""
    items = np.arange(course.context.size)
    for _ in range(n_answers):
        course.answer(items)
    for _ in range(n_comparisons):
        pool, key = course.pool()
        course.compare(key[_least_compared(pool, course.rng)])


def _least_compared(pool: TokenPool, rng: np.random.Generator) -> IntArray:
    """One token of every item that has one: the least compared, by lot among equals."""
    n = pool.n_reports + rng.random(pool.item.size)
    order = np.lexsort((n, pool.is_target, pool.item))
    first = order[np.flatnonzero(np.diff(pool.item[order], prepend=-1))]
    return first[~pool.is_target[first]]


def _fixed_batch(course: _Course, plan: QuestionPlan) -> int:
    """Ask about as many questions as an adaptive study does between two looks, in the proportions of the start."""
    before = course.answer_key.size + course.report_key.size
    items = course.rng.permutation(course.context.size)
    pattern = plan.n_answers + plan.n_comparisons
    block = items[: max(plan.questions_a_look // pattern, 1)]
    # whole items in turn: those with the fewest answers so far
    answers = np.bincount(course.answer_key // course.known.belief.shape[1], minlength=course.context.size)
    block = items[np.argsort(answers[items], kind="stable")][: block.size]
    for _ in range(plan.n_answers):
        course.answer(block)
    for _ in range(plan.n_comparisons):
        pool, key = course.pool()
        least = _least_compared(pool, course.rng)
        course.compare(key[least[np.isin(pool.item[least], block)]])
    return course.answer_key.size + course.report_key.size - before


def _by_gain(course: _Course, pool: TokenPool, key: IntArray, plan: QuestionPlan) -> FloatArray:
    """Ask one batch of questions by what they are expected to say; their probabilities are given back."""
    both = plan.answer_seconds + plan.comparison_seconds
    probability = question_probabilities(
        question_state(pool), floor=plan.floor, comparison_seconds=plan.comparison_seconds, answer_seconds=both
    )
    size = min(plan.questions_a_look, int((probability > 0).sum()))
    chosen = course.rng.choice(probability.size, size, replace=False, p=probability / probability.sum())
    course.compare(key[chosen[chosen < key.size]])
    answered = course.answer((chosen[chosen >= key.size] - key.size).astype(np.intp))
    # the token of an answer is compared where nobody compared it yet
    course.compare(np.setdiff1d(answered, course.report_key))
    return probability[chosen]
