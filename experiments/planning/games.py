"""One simulated study of each game: what it estimates, its interval, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.cloze import count_words, tvd_with_baseline
from shannon_game.estimators.comparison import TokenPool, estimate_gap, scaled_bridge
from shannon_game.estimators.comparison.planning.adaptive_study import QuestionPlan, simulate_adaptive
from shannon_game.estimators.comparison.planning.questions import simulate_questions
from shannon_game.estimators.documents import crossed_mean
from shannon_game.estimators.documents.clusters import t_half_width
from shannon_game.estimators.rankings import guess_bounds
from shannon_game.experiments.planning.settings import ADAPTIVE, DesignPoint, DesignSettings, people_minutes
from shannon_game.experiments.planning.worlds import N_TRIED, PlannedWorld, guessed_ranks

_BOTS_LOSE = float(np.log(6))  # chips alike on five words that never come and on anything else
_GROUPS = 12  # of people, left out in turn
_TVD_REPEATS = 20  # samples of every context, for what samples of that size have on average


@dataclass(frozen=True, eq=False)
class Planned:
    """A study to be simulated."""

    world: PlannedWorld
    point: DesignPoint
    n_people: int
    settings: DesignSettings

    @property
    def asked(self) -> bool:
        """Whether the loss is that on the items asked."""
        return self.settings.loss_of == "asked"

    def contexts(self, rng: np.random.Generator) -> IntArray:
        """Items: contexts drawn with replacement, as the study's own are the population."""
        return rng.integers(0, self.world.known.target.size, self.point.n_contexts)


@dataclass(frozen=True)
class Outcome:
    """What one simulated study found, nats or a share; NaN where a game says nothing of something."""

    value: float
    se: float
    freedom: int
    """Of Student's t."""
    truth: float
    belief: float = float("nan")
    """What the truth would be if people's belief were asked itself: their gap, or the TVD of whole distributions."""
    right_order: float = float("nan")
    """Whether people and the named model are put in the right order: 1 or 0."""
    minutes: float = float("nan")
    """People's time, where the study itself decides when to stop."""

    def width(self, interval: float) -> float:
        """Width of the interval."""
        return 2 * t_half_width(self.se, self.freedom, interval)


def play(planned: Planned, rng: np.random.Generator) -> Outcome:
    """Simulate one study in its game."""
    return PLAYED[planned.point.game](planned, rng)


def _order(world: PlannedWorld, value: float, truth: FloatArray, context: IntArray) -> float:
    right = np.sign(truth.mean() - world.against_gap_nats.mean())
    return float(np.sign(value - world.against_gap_nats[context].mean()) == right)


def _pool_game(
    estimate: Callable[[TokenPool, bool], tuple[float, float, int]],
) -> Callable[[Planned, np.random.Generator], Outcome]:
    """Make a game of an estimator that takes a pool, and whether the loss is that on the items asked."""

    def run(planned: Planned, rng: np.random.Generator) -> Outcome:
        world, point, context = planned.world, planned.point, planned.contexts(rng)
        pool = simulate_questions(
            world.known,
            context,
            world.people,
            n_people=planned.n_people,
            n_draws=point.n_draws,
            n_answers=point.n_answers,
            n_comparisons=point.n_comparisons,
            scale=point.scale,
            rng=rng,
        )
        value, se, freedom = estimate(pool, planned.asked)
        gap = world.known.gap_nats
        truth = float(gap[context].mean() if planned.asked else gap.mean())
        return Outcome(value, se, freedom, truth, truth, _order(world, value, gap, context))

    return run


def equation_5(pool: TokenPool, asked: bool) -> tuple[float, float, int]:
    """Equation 5 on every draw; several reports on one token are averaged as log-ratios first."""
    total = np.bincount(pool.report_token, pool.report_log_ratio, pool.item.size)
    term = pool.offset_nats + total / np.maximum(pool.n_reports, 1)
    known = pool.is_target | (pool.n_reports > 0)
    draw = np.repeat(np.arange(pool.item.size), np.where(known, pool.n_drawn, 0))
    found = estimate_gap(term[draw], pool.item[draw])
    return found.gap_nats, found.se_samples_nats if asked else found.se_items_nats, max(found.n_items - 1, 1)


def _bridge(pool: TokenPool, asked: bool) -> tuple[float, float, int]:
    found = scaled_bridge(pool, n_groups=_GROUPS)
    return found.gap_nats, found.se_asked_nats if asked else found.se_contexts_nats, found.freedom


def _adaptive(planned: Planned, rng: np.random.Generator) -> Outcome:
    world, settings, context = planned.world, planned.settings, planned.contexts(rng)
    plan = QuestionPlan(
        n_draws=planned.point.n_draws,
        width_nats=settings.width_nats,
        interval=settings.interval,
        max_minutes=people_minutes(planned.point, settings.costs, 1.0),
        comparison_seconds=settings.costs.comparison_seconds,
        answer_seconds=settings.costs.answer_seconds,
    )
    study = simulate_adaptive(
        world.known, context, world.people, plan, n_people=planned.n_people, scale=planned.point.scale, rng=rng
    )
    found, gap = study.estimate, world.known.gap_nats
    order = _order(world, found.gap_nats, gap, context)
    truth = study.truth_nats
    return Outcome(found.gap_nats, found.se_asked_nats, found.freedom, truth, truth, order, study.minutes)


def _in_turn(n_items: int, n_each: int, n_people: int) -> tuple[IntArray, IntArray]:
    item = np.repeat(np.arange(n_items), n_each)
    return item, np.arange(item.size) % n_people


def _freedom(n_participants: int, n_items: int) -> int:
    return max(min(n_participants, n_items) - 1, 1)


def _bets(planned: Planned, rng: np.random.Generator) -> Outcome:
    world, context = planned.world, planned.contexts(rng)
    item, person = _in_turn(context.size, planned.point.n_bets, planned.n_people)
    kind = rng.integers(0, world.bet_gap_nats.shape[0], planned.n_people)
    bot = world.known.is_bot(planned.n_people)[person]
    found = crossed_mean(np.where(bot, _BOTS_LOSE, world.bet_gap_nats[kind[person], context[item]]), person, item)
    of_context, belief = world.bet_gap_nats.mean(axis=0), world.known.gap_nats
    right = _order(world, found.mean, of_context, context)
    se = found.se
    if planned.asked:
        se, of_context, belief = found.se_participants, of_context[context], belief[context]
    freedom = _freedom(found.n_participants, found.n_items)
    return Outcome(found.mean, se, freedom, float(of_context.mean()), float(belief.mean()), right)


def _mixed(planned: Planned, rng: np.random.Generator) -> Outcome:
    """Half of the contexts in each game; the estimates weighed by their variances, for the belief's gap."""
    half = replace(planned, point=replace(planned.point, n_contexts=max(planned.point.n_contexts // 2, 2)))
    bridge, bets = PLAYED["bridge"](half, rng), PLAYED["bets"](half, rng)
    weight = np.array([1 / bridge.se**2, 1 / bets.se**2])
    value = float(weight @ [bridge.value, bets.value] / weight.sum())
    world = planned.world
    truth = (bridge.belief + bets.belief) / 2 if planned.asked else float(world.known.gap_nats.mean())
    right = np.sign(world.known.gap_nats.mean() - world.against_gap_nats.mean())
    order = float(np.sign(value - world.against_gap_nats.mean()) == right)
    return Outcome(value, float(weight.sum() ** -0.5), min(bridge.freedom, bets.freedom), truth, truth, order)


def _cloze(planned: Planned, rng: np.random.Generator) -> Outcome:
    world, n = planned.world, planned.point.n_answers
    tvd = _corrected_tvd(world, planned.contexts(rng), n, rng, planned.n_people if world.known.bots else 0)
    if n not in world.tvd_at:
        everything = np.tile(np.arange(world.known.target.size), _TVD_REPEATS)
        world.tvd_at[n] = float(np.nanmean(_corrected_tvd(world, everything, n, rng)))
    # the same people answer other contexts too, but an answer says nothing of them: what contexts differ by is all
    found = tvd[np.isfinite(tvd)]
    se = float(found.std(ddof=1) / np.sqrt(found.size)) if found.size > 1 else np.nan
    return Outcome(float(found.mean()), se, found.size - 1, world.tvd_at[n], belief=float(world.tvd.mean()))


def _corrected_tvd(
    world: PlannedWorld, context: IntArray, n: int, rng: np.random.Generator, people: int = 0
) -> FloatArray:
    """Corrected TVD between n answers of some people, bots among them, and as many samples of the generator."""
    counts = []
    item = np.repeat(np.arange(context.size), n)
    for what in ("belief", "generator"):
        token = world.known.draw(what, context, n, rng).ravel()
        if what == "belief" and people:
            token = world.known.of_bots(token, np.arange(token.size) % people, people, rng)
        counts.append(count_words(item, token, np.ones(token.size), n_contexts=context.size))
    return tvd_with_baseline(*counts).corrected


def _accuracy(planned: Planned, rng: np.random.Generator) -> Outcome:
    world, context = planned.world, planned.contexts(rng)
    item, person = _in_turn(context.size, planned.point.n_guesses, planned.n_people)
    kind = rng.integers(0, world.p_hit.shape[0], planned.n_people)
    p_hit = np.where(
        world.known.is_bot(planned.n_people)[person],
        1 / world.known.belief.shape[1],
        world.p_hit[kind[person], context[item]],
    )
    hit = rng.random(item.size) < p_hit
    found = crossed_mean(hit * 1.0, person, item)
    truth = float(world.p_hit.mean())
    right = np.sign(truth - world.model_hit.mean())
    order = float(np.sign(found.mean - world.model_hit[context].mean()) == right)
    return Outcome(found.mean, found.se, _freedom(found.n_participants, found.n_items), truth, right_order=order)


def _ranks(planned: Planned, rng: np.random.Generator) -> Outcome:
    world, context = planned.world, planned.contexts(rng)
    item, person = _in_turn(context.size, planned.point.n_guesses, planned.n_people)
    exponent = world.guess_exponents[rng.integers(0, world.guess_exponents.size, planned.n_people)]
    # a bot's guesses are draws of a flat belief
    bot, vocab = world.known.is_bot(planned.n_people), world.known.generator.shape[1]
    ranks = guessed_ranks(world.known, context[item], np.where(bot, 0.0, exponent)[person], rng)
    found = guess_bounds(ranks, item=item, participant=person, n_tried=N_TRIED, vocab_size=vocab)
    freedom = _freedom(found.n_participants, found.n_items)
    return Outcome(found.upper_nats, found.upper_se_nats, freedom, world.rank_bound_nats)


PLAYED: Mapping[str, Callable[[Planned, np.random.Generator], Outcome]] = {
    "comparison": _pool_game(equation_5),
    "bridge": _pool_game(_bridge),
    ADAPTIVE: _adaptive,
    "bets": _bets,
    "mixed": _mixed,
    "cloze": _cloze,
    "accuracy": _accuracy,
    "ranks": _ranks,
}
"""Game -> one simulated study."""
