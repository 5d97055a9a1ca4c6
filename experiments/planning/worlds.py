"""Worlds of known truth: contexts of the study, a belief that people may have, and what that makes true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.bets.simulation import expected_bet_losses
from shannon_game.estimators.comparison import ParticipantPopulation
from shannon_game.estimators.comparison.planning.questions import KnownContexts, assumed_belief, known_contexts
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Ask, Load, Set
from shannon_game.estimators.rankings import guess_bounds
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.planning.settings import AssumedPeople, DesignSettings
from shannon_game.inference.settings import to_dataclass

_NEEDED = ("slope_sd", "bias_sd", "log_noise", "noise_sd", "logit_lapse")
_LAPSE_CONCENTRATION = 40.0


def pilot_populations(path: Path, n: int, rng: np.random.Generator) -> list[ParticipantPopulation]:
    """Draw populations of participants from the posterior of a pilot."""
    if not path.is_file():
        raise InputError(f"{path} is no file; should be a posterior that a run wrote", field="pilot")
    try:
        with xr.open_dataset(path, group="posterior", engine="h5netcdf") as opened:
            draws = opened.load()
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} has no group 'posterior' that can be read: {reason}", field="pilot") from error
    missing = [name for name in _NEEDED if name not in draws]
    if missing:
        raise InputError(
            f"{path} has no {', '.join(missing)}; should be posterior_human.nc of {Ask('human_loss')}", field="pilot"
        )
    flat = draws.stack(draw_number=("chain", "draw"))
    chosen = rng.choice(flat.sizes["draw_number"], n, replace=flat.sizes["draw_number"] < n)
    drawn = {str(name): flat[name].to_numpy()[chosen].tolist() for name in flat.data_vars if name in (*_NEEDED, "k0")}
    drawn.setdefault("k0", [1.0] * n)
    return [
        ParticipantPopulation(
            bias_sd_nats=drawn["bias_sd"][at],
            slope_median=drawn["k0"][at],
            slope_log_sd=drawn["slope_sd"][at],
            noise_median_nats=float(np.exp(drawn["log_noise"][at])),
            noise_log_sd=drawn["noise_sd"][at],
            lapse_mean=float(1 / (1 + np.exp(-drawn["logit_lapse"][at]))),
            lapse_concentration=_LAPSE_CONCENTRATION,
        )
        for at in range(n)
    ]


N_TRIED = 20
"""Guesses at one token before it is given up."""
_KINDS_OF_PEOPLE = 9  # equally frequent values of what differs between people who bet or guess
_RANKS_TRUTH = 40  # people who guess every context, for the true distribution of ranks


@dataclass(frozen=True, eq=False)
class StudyContexts:
    """What a study says of its contexts: ln g of every token, target, loss of a model less the generator's."""

    generator: FloatArray
    target: IntArray
    against: str
    against_gap_nats: FloatArray
    name: str

    def first(self, n: int) -> StudyContexts:
        """Some contexts alone."""
        arrays = {key: getattr(self, key)[:n] for key in ("generator", "target", "against_gap_nats")}
        return replace(self, **arrays)


@dataclass(frozen=True, eq=False)
class PlannedWorld:
    """One belief that people may have, and everything that is true then."""

    known: KnownContexts
    people: ParticipantPopulation
    against_gap_nats: FloatArray
    bet_gap_nats: FloatArray
    """Loss of bets less the generator's, the generator filling in, shape (kind of people, context)."""
    p_hit: FloatArray
    """Probability that a guess is right, shape (kind of people, context)."""
    model_hit: NDArray[np.bool_]
    guess_exponents: FloatArray
    tvd: FloatArray
    rank_bound_nats: float
    guesses_a_token: float
    tvd_at: dict[int, float] = field(default_factory=dict)
    """Mean corrected TVD of samples of a size; filled when asked for."""


def study_contexts(study: xr.Dataset, against: str | None = None) -> StudyContexts:
    """Read from a comparison study what the planner needs."""
    source = f"study {study.attrs['name']!r}"
    if "reference_logprob" not in study:
        raise InputError(
            f"is missing; planning needs the generator's whole distribution in every context: {Load('designed')}, "
            f"{Load('simulated', {'store_reference': True})}, or a study of your texts that {Ask('build_study')} "
            f"wrote with {Set('experiment.reference', True)}",
            source=source,
            field="reference_logprob",
        )
    kept = study["in_reference"].to_numpy() & study["selected"].to_numpy()
    logprob = study["reference_logprob"].transpose("item", "token").to_numpy().astype(float)
    kept &= np.isfinite(logprob).all(axis=1)
    if "target_id" in study:  # halves of characters are one string
        target = study["target_id"].to_numpy().astype(np.intp)
    else:
        place = {token: number for number, token in enumerate(study["token"].to_numpy().tolist())}
        target = np.array([place.get(token, -1) for token in study["target_token"].to_numpy().tolist()], dtype=np.intp)
    kept &= target >= 0
    if kept.sum() < 2:
        raise InputError(
            f"{int(kept.sum())} items have a whole distribution that holds their target; two at least are needed",
            source=source,
        )
    logprob, target = logprob[kept], target[kept]
    logprob = logprob - np.logaddexp.reduce(logprob, axis=1, keepdims=True)
    models = study["model"].to_numpy().tolist()
    generator = str(study.attrs["generator"])
    losses = -study["target_logprob"].transpose("model", "item").to_numpy()[:, kept]
    others = [name for name in models if name != generator]
    if against is None:
        against = min(others, key=lambda name: losses[models.index(name)].mean()) if others else generator
    elif against not in models:
        raise unknown_choice("against", against, models, source=source)
    gap = losses[models.index(against)] - losses[models.index(generator)]
    return StudyContexts(logprob, target, str(against), gap, str(study.attrs["name"]))


def draw_worlds(contexts: StudyContexts, settings: DesignSettings, purpose: str = "worlds") -> list[PlannedWorld]:
    """Draw what people may believe and how they may report."""
    assumed = settings.assumed
    rng = rng_for(settings.seed, f"design {purpose}")
    if settings.pilot is None:
        people = _populations(assumed, rng)
    else:
        people = pilot_populations(settings.pilot, assumed.n_beliefs, rng)
    # evenly spread values, in random order: a few worlds then stand for all of the prior
    exponents = assumed.exponent * np.exp(assumed.exponent_log_sd * rng.permutation(_normal_nodes(assumed.n_beliefs)))
    return [_world(contexts, float(each), own, assumed, rng) for each, own in zip(exponents, people, strict=True)]


def guessed_ranks(
    known: KnownContexts, context: IntArray, exponent: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Number of guesses until each target was found, ``inf`` beyond :data:`N_TRIED`.

    A guesser draws tokens from the belief to a power, one after the other, none twice.
    """
    key = known.own(context, exponent, rng)
    own = np.take_along_axis(key, known.target[context][:, None], axis=1)
    rank = 1.0 + (key > own).sum(axis=1)
    return np.where(rank > N_TRIED, np.inf, rank)


def _normal_nodes(n: int) -> FloatArray:
    """Equally probable values of a standard normal."""
    return np.array([NormalDist().inv_cdf((i + 0.5) / n) for i in range(n)])


def _populations(assumed: AssumedPeople, rng: np.random.Generator) -> list[ParticipantPopulation]:
    base = to_dataclass(ParticipantPopulation, assumed.people)
    slopes = base.slope_median * np.exp(assumed.slope_log_sd * rng.permutation(_normal_nodes(assumed.n_beliefs)))
    return [replace(base, slope_median=float(slope)) for slope in slopes]


def _own_beliefs(h: FloatArray, private_sd_nats: float, rng: np.random.Generator) -> Iterator[FloatArray]:
    for _ in range(_KINDS_OF_PEOPLE):
        own = h + private_sd_nats * rng.standard_normal(h.shape) if private_sd_nats else h
        yield own - np.logaddexp.reduce(own, axis=1, keepdims=True)


def _world(
    contexts: StudyContexts,
    exponent: float,
    people: ParticipantPopulation,
    assumed: AssumedPeople,
    rng: np.random.Generator,
) -> PlannedWorld:
    g, target = contexts.generator, contexts.target
    h = assumed_belief(
        g, exponent=exponent, unigram_share=assumed.unigram_share, noise_nats=assumed.noise_nats, rng=rng
    )
    private = assumed.people.private_sd_nats
    known = known_contexts(g, h, target, private_sd_nats=private, bots=assumed.people.bots)
    row = np.arange(target.size)
    nodes = _normal_nodes(_KINDS_OF_PEOPLE)
    sharpness = assumed.sharpness * np.exp(assumed.sharpness_log_sd * nodes)
    guess = assumed.guess_exponent * np.exp(assumed.guess_log_sd * nodes)
    losses, hits = [], []
    for own, stake, power in zip(_own_beliefs(h, private, rng), sharpness.tolist(), guess.tolist(), strict=True):
        losses.append(expected_bet_losses(own, g, target, [stake], n_named=min(5, g.shape[1] - 2))[0])
        hits.append(np.exp(power * own[row, target] - np.logaddexp.reduce(power * own, axis=1)))
    everybody = np.tile(row, _RANKS_TRUTH)
    ranks = np.concatenate(
        [guessed_ranks(known, row, guess[rng.integers(0, guess.size, row.size)], rng) for _ in range(_RANKS_TRUTH)]
    )
    bounds = guess_bounds(ranks, item=everybody, n_tried=N_TRIED, vocab_size=g.shape[1])
    return PlannedWorld(
        known=known,
        people=people,
        against_gap_nats=contexts.against_gap_nats,
        bet_gap_nats=np.stack(losses) + g[row, target],
        p_hit=np.stack(hits),
        model_hit=g.argmax(axis=1) == target,
        guess_exponents=guess,
        tvd=np.abs(np.exp(h) - np.exp(g)).sum(axis=1) / 2,
        rank_bound_nats=bounds.upper_plug_in_nats,
        guesses_a_token=float(np.minimum(ranks, N_TRIED).mean()),
    )
