"""One simulated study of each game: what it estimates, its interval, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from estimators.cloze import count_words, tvd_with_baseline
from estimators.comparison import (
    PoolImportance,
    ScaledBridge,
    pool_importance,
    scaled_bridge,
    simulate_questions,
)
from estimators.documents import CrossedMean, crossed_mean
from estimators.rankings import guess_bounds
from experiments.design.points import DesignPoint
from experiments.design.settings import DesignSettings
from experiments.design.worlds import N_TRIED, World, guessed_ranks

__all__ = ["PLAYED", "Outcome", "play"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_GROUPS = 12  # of people, left out in turn
_TVD_REPEATS = 20  # samples of every context, for what samples of that size have on average


@dataclass(frozen=True)
class Outcome:
    """What one simulated study found.

    Parameters
    ----------
    value, se : float
        Estimate and standard error, nats or a share.
    freedom : int
        Of Student's t.
    truth : float
    belief : float
        What the truth would be if people's belief were asked itself: their gap, where the game is about a loss, or the
        TVD of whole distributions; NaN elsewhere.
    right_order : float
        Whether people and the named model are put in the right order: 1 or 0; NaN where the game says nothing of it.
    """

    value: float
    se: float
    freedom: int
    truth: float
    belief: float = float("nan")
    right_order: float = float("nan")

    def width(self, interval: float) -> float:
        """Width of the interval."""
        return float(2 * self.se * stdtrit(self.freedom, (1 + interval) / 2))


def play(world: World, point: DesignPoint, people: int, settings: DesignSettings, rng: np.random.Generator) -> Outcome:
    """Simulate one study of a design in its game.

    Parameters
    ----------
    world : World
    point : DesignPoint
    people : int
        Number of participants.
    settings : DesignSettings
    rng : numpy.random.Generator

    Returns
    -------
    Outcome
    """
    return PLAYED[point.game](world, point, people, settings, rng)


def _contexts(world: World, n: int, rng: np.random.Generator) -> IntArray:
    """Items are contexts drawn with replacement: the study's own are the population."""
    return rng.integers(0, world.known.target.size, n)


def _order(world: World, value: float, truth: FloatArray, context: IntArray) -> float:
    """Whether people's estimate lies on the right side of the model's loss on the same items."""
    right = np.sign(truth.mean() - world.against_gap_nats.mean())
    return float(np.sign(value - world.against_gap_nats[context].mean()) == right)


def _pool_outcome(
    world: World, found: ScaledBridge | PoolImportance, context: IntArray, settings: DesignSettings
) -> Outcome:
    gap = world.known.gap_nats
    asked = settings.loss_of == "asked"
    truth = float(gap[context].mean() if asked else gap.mean())
    se = found.se_asked_nats if asked else found.se_contexts_nats
    return Outcome(found.gap_nats, se, found.freedom, truth, truth, _order(world, found.gap_nats, gap, context))


def _pool_game(
    estimate: Callable[..., ScaledBridge | PoolImportance], **settled: float
) -> Callable[[World, DesignPoint, int, DesignSettings, np.random.Generator], Outcome]:
    def run(
        world: World, point: DesignPoint, people: int, settings: DesignSettings, rng: np.random.Generator
    ) -> Outcome:
        context = _contexts(world, point.n_contexts, rng)
        pool = simulate_questions(
            world.known,
            context,
            world.people,
            n_people=people,
            n_draws=point.n_draws,
            n_answers=point.n_answers,
            n_comparisons=point.n_comparisons,
            scale=point.scale,
            rng=rng,
        )
        return _pool_outcome(world, estimate(pool, n_groups=_GROUPS, **settled), context, settings)

    return run


def _crossed(
    of_kind: FloatArray, context: IntArray, n_each: int, people: int, interval: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Who answers which item: people in turn, each of a kind of people; and the values that were looked up."""
    item = np.repeat(np.arange(context.size), n_each)
    person = np.arange(item.size) % people
    kind = rng.integers(0, of_kind.shape[0], people)
    return item, person, kind, of_kind[kind[person], context[item]]


def _clustered(
    values: FloatArray, person: IntArray, item: IntArray, settings: DesignSettings
) -> tuple[CrossedMean, float]:
    found = crossed_mean(values, person, item, probability=settings.interval)
    return found, found.se_participants if settings.loss_of == "asked" else found.se


def _bets(world: World, point: DesignPoint, people: int, settings: DesignSettings, rng: np.random.Generator) -> Outcome:
    context = _contexts(world, point.n_contexts, rng)
    item, person, _, gap = _crossed(world.bet_gap_nats, context, point.n_bets, people, settings.interval, rng)
    found, se = _clustered(gap, person, item, settings)
    of_context = world.bet_gap_nats.mean(axis=0)
    asked = settings.loss_of == "asked"
    own = of_context[context] if asked else of_context
    belief = world.known.gap_nats[context] if asked else world.known.gap_nats
    right = _order(world, found.mean, of_context, context)
    freedom = min(found.n_participants, found.n_items) - 1
    return Outcome(found.mean, se, freedom, float(own.mean()), float(belief.mean()), right)


def _mixed(
    world: World, point: DesignPoint, people: int, settings: DesignSettings, rng: np.random.Generator
) -> Outcome:
    """Half of the contexts in each game; the estimates weighed by their variances, for the belief's gap."""
    half = DesignPoint(**point.row() | {"n_contexts": max(point.n_contexts // 2, 2)})
    bridge = PLAYED["bridge"](world, half, people, settings, rng)
    bets = PLAYED["bets"](world, half, people, settings, rng)
    weight = np.array([1 / bridge.se**2, 1 / bets.se**2])
    value = float(weight @ [bridge.value, bets.value] / weight.sum())
    truth = float(world.known.gap_nats.mean()) if settings.loss_of == "contexts" else (bridge.belief + bets.belief) / 2
    right = np.sign(world.known.gap_nats.mean() - world.against_gap_nats.mean())
    order = float(np.sign(value - world.against_gap_nats.mean()) == right)
    return Outcome(value, float(weight.sum() ** -0.5), min(bridge.freedom, bets.freedom), truth, truth, order)


def _cloze(
    world: World, point: DesignPoint, people: int, settings: DesignSettings, rng: np.random.Generator
) -> Outcome:
    context = _contexts(world, point.n_contexts, rng)
    tvd = _corrected_tvd(world, context, point, rng)
    if point.n_answers not in world.tvd_at:
        everything = np.tile(np.arange(world.known.target.size), _TVD_REPEATS)
        world.tvd_at[point.n_answers] = float(np.nanmean(_corrected_tvd(world, everything, point, rng)))
    # the same people answer other contexts too, but an answer says nothing of them: what contexts differ by is all
    found = tvd[np.isfinite(tvd)]
    se = float(found.std(ddof=1) / np.sqrt(found.size))
    return Outcome(
        float(found.mean()), se, found.size - 1, world.tvd_at[point.n_answers], belief=float(world.tvd.mean())
    )


def _corrected_tvd(world: World, context: IntArray, point: DesignPoint, rng: np.random.Generator) -> FloatArray:
    """Corrected TVD between people's answers and as many samples of the generator, (item,)."""
    counts = []
    for what, n in (("belief", point.n_answers), ("generator", point.n_draws)):
        token = world.known.draw(what, context, n, rng)
        item = np.repeat(np.arange(context.size), n)
        counts.append(count_words(item, token.ravel(), np.ones(token.size), n_contexts=context.size))
    return tvd_with_baseline(*counts).corrected


def _accuracy(
    world: World, point: DesignPoint, people: int, settings: DesignSettings, rng: np.random.Generator
) -> Outcome:
    context = _contexts(world, point.n_contexts, rng)
    item, person, _, chance = _crossed(world.p_hit, context, point.n_guesses, people, settings.interval, rng)
    found = crossed_mean((rng.random(chance.size) < chance) * 1.0, person, item, probability=settings.interval)
    truth = float(world.p_hit.mean())
    right = np.sign(truth - world.model_hit.mean())
    order = float(np.sign(found.mean - world.model_hit[context].mean()) == right)
    freedom = min(found.n_participants, found.n_items) - 1
    return Outcome(found.mean, found.se, freedom, truth, right_order=order)


def _ranks(
    world: World, point: DesignPoint, people: int, settings: DesignSettings, rng: np.random.Generator
) -> Outcome:
    context = _contexts(world, point.n_contexts, rng)
    item = np.repeat(np.arange(context.size), point.n_guesses)
    person = np.arange(item.size) % people
    exponent = world.guess_exponents[rng.integers(0, world.guess_exponents.size, people)]
    ranks = guessed_ranks(world.known, context[item], exponent[person], rng)
    found = guess_bounds(
        ranks, item=item, participant=person, n_tried=N_TRIED, vocab_size=world.known.generator.shape[1]
    )
    freedom = min(found.n_participants, found.n_items) - 1
    return Outcome(found.upper_nats, found.upper_se_nats, max(freedom, 1), world.rank_bound_nats)


PLAYED: Mapping[str, Callable[[World, DesignPoint, int, DesignSettings, np.random.Generator], Outcome]] = {
    "comparison": _pool_game(pool_importance),
    "bridge_as_reported": _pool_game(scaled_bridge, slope=1.0),
    "bridge": _pool_game(scaled_bridge),
    "bets": _bets,
    "mixed": _mixed,
    "cloze": _cloze,
    "accuracy": _accuracy,
    "ranks": _ranks,
}
"""Game -> one simulated study."""
