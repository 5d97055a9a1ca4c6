"""Bet studies whose truth is known: what people believe, how they distort it into stakes, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from shannon_game.estimators.arrays import Dataset, FloatArray
from shannon_game.estimators.checks import check_numbers, named
from shannon_game.estimators.errors import InputError, check_memory


@dataclass(frozen=True)
class BetSimulation:
    """Settings of a simulated bet study.

    Parameters
    ----------
    n_answers : int
        Items that each participant bets on, drawn at random; at most `n_items`.
    n_chips : int
        Whole chips to spread; one at least lies on every word named and on anything else.
    spread : float
        Standard deviation of the text's log-probabilities over words: 3 leaves a few words likely in most contexts.
    generator_noise, participant_noise : float
        Standard deviation of a word's log-probability around the text's, for the generator and for each participant.
    sharpness, sharpness_spread : float
        Stakes are beliefs to this power, made a sum of 1: median over participants, standard deviation of its
        logarithm. Above 1 people stake too boldly; their calibration curve is then too flat.
    """

    n_items: int = 120
    n_participants: int = 20
    n_answers: int = 40
    n_named: int = 5
    n_chips: int = 100
    vocab_size: int = 500
    spread: float = 3.0
    generator_noise: float = 1.0
    participant_noise: float = 1.0
    sharpness: float = 1.4
    sharpness_spread: float = 0.3

    def __post_init__(self) -> None:
        source = "simulation"
        check_numbers(named(self, "n_items", "n_participants", "n_answers", "n_named"), source, at_least=1)
        spreads = named(self, "spread", "generator_noise", "participant_noise", "sharpness_spread")
        check_numbers(spreads, source, at_least=0)
        check_numbers(named(self, "sharpness"), source, above=0)
        for name, least in (("n_chips", self.n_named + 1), ("vocab_size", self.n_named + 2)):
            if getattr(self, name) < least:
                problem = f"is {getattr(self, name)}, should be at least {least} for {self.n_named} words named"
                raise InputError(problem, source=source, field=name)
        if self.n_answers > self.n_items:
            problem = f"is {self.n_answers}, should be at most the {self.n_items} items"
            raise InputError(problem, source=source, field="n_answers")
        n_cells = float(self.vocab_size) * (self.n_items + self.n_participants * self.n_answers)
        check_memory(8 * n_cells, source=source, field="vocab_size")


def simulate_bet_study(simulation: BetSimulation, rng: np.random.Generator) -> Dataset:
    """Simulate people who bet on next words.

    In every item the text's distribution has log-probabilities that are normal over words; the generator's and each
    participant's are the text's plus normal noise of their own. A participant names the most probable words and stakes
    chips on the cells (words named, anything else) in proportion to the belief in each to the power
    :math:`s_u`, their sharpness. The study has the models ``generator`` and ``text`` and, of what no real study knows,
    ``true_loss_nats`` (response: -ln of the participant's own belief in the target), ``sharpness`` (participant_label)
    and the attribute ``vocab_size``.
    """
    import xarray as xr  # noqa: PLC0415 - importing estimators needs no xarray

    sizes = simulation
    text = log_softmax(sizes.spread * rng.normal(size=(sizes.n_items, sizes.vocab_size)), axis=1)
    generator = log_softmax(text + sizes.generator_noise * rng.normal(size=text.shape), axis=1)
    target = (np.exp(text).cumsum(axis=1) > rng.random((sizes.n_items, 1))).argmax(axis=1)
    sharpness = sizes.sharpness * np.exp(sizes.sharpness_spread * rng.normal(size=sizes.n_participants))
    person = np.repeat(np.arange(sizes.n_participants), sizes.n_answers)
    item = np.concatenate(
        [np.sort(rng.permutation(sizes.n_items)[: sizes.n_answers]) for _ in range(sizes.n_participants)]
    )
    belief = log_softmax(text[item] + sizes.participant_noise * rng.normal(size=(item.size, sizes.vocab_size)), axis=1)
    named = np.argsort(-belief, axis=1, kind="stable")[:, : sizes.n_named]
    cells = np.take_along_axis(belief, named, axis=1)
    rest = np.log1p(-np.minimum(np.exp(cells).sum(axis=1), 1 - 1e-12))
    wanted = sharpness[person, None] * np.column_stack([rest, cells])
    stake = whole_chips(softmax(wanted, axis=1), sizes.n_chips) / sizes.n_chips
    words = np.array([f"w{word}" for word in range(sizes.vocab_size)], dtype=object)
    answer = np.repeat(np.arange(item.size), sizes.n_named)
    flat = named.ravel()
    models = np.stack([generator, text])
    width = len(str(sizes.n_participants))
    people = np.array([f"p{number + 1:0{width}d}" for number in range(sizes.n_participants)], dtype=object)
    return xr.Dataset(
        {
            "target": ("item", words[target]),
            "participant": ("response", people[person]),
            "response_item": ("response", item),
            "other_stake": ("response", stake[:, 0]),
            "true_loss_nats": ("response", -belief[np.arange(item.size), target[item]]),
            "bet_response": ("bet", answer),
            "bet_word": ("bet", words[flat]),
            "bet_stake": ("bet", stake[:, 1:].ravel()),
            "bet_hit": ("bet", flat == target[item[answer]]),
            "target_logprob": (("model", "item"), models[:, np.arange(sizes.n_items), target]),
            "bet_logprob": (("model", "bet"), models[:, item[answer], flat]),
            "sharpness": ("participant_label", sharpness),
        },
        coords={
            "item": np.arange(sizes.n_items),
            "model": np.array(["generator", "text"], dtype=object),
            "participant_label": people,
        },
        attrs={"name": "simulated bets", "generator": "generator", "vocab_size": sizes.vocab_size},
    )


def whole_chips(share: FloatArray, n_chips: int) -> NDArray[np.int64]:
    """Spread whole chips in proportion to shares: one at least a cell, the rest by largest remainders."""
    free = n_chips - share.shape[1]
    exact = share * free
    chips = np.floor(exact).astype(np.int64)
    missing = free - chips.sum(axis=1)
    order = np.argsort(chips - exact, axis=1, kind="stable").argsort(axis=1, kind="stable")
    whole: NDArray[np.int64] = chips + (order < missing[:, None]) + 1
    return whole


def expected_bet_losses(
    belief_logprob: ArrayLike,
    back_off_logprob: ArrayLike,
    target: ArrayLike,
    sharpness: ArrayLike,
    *,
    n_named: int = 5,
    n_chips: int = 100,
) -> FloatArray:
    """Loss of people who name their most probable words and stake whole chips, by their sharpness.

    As in :func:`simulate_bet_study`: stakes on the cells (words named, anything else) are proportional to the belief in
    each to the power s, one chip at least on each; a back-off spreads the stake on anything else over unnamed words.
    Log-probabilities are (item, vocab), targets (item,), sharpness (s,), and losses, nats, (s, item).
    """
    h, m = np.asarray(belief_logprob, dtype=float), np.asarray(back_off_logprob, dtype=float)
    place, power = np.asarray(target), np.asarray(sharpness, dtype=float)
    if h.ndim != 2 or m.shape != h.shape or place.shape != h.shape[:1]:
        problem = f"have shapes {h.shape}, {m.shape}, {place.shape}; should be (item, vocab) twice, and (item,)"
        raise InputError(problem, field="belief_logprob, back_off_logprob, target")
    if not (0 < n_named < h.shape[1] - 1 and n_chips > n_named):
        problem = f"is {n_named}, should be at least 1, below the {h.shape[1]} words less one and the {n_chips} chips"
        raise InputError(problem, field="n_named")
    if power.ndim != 1 or not (power > 0).all():
        raise InputError("should be a list of numbers above 0", field="sharpness")
    named = np.argpartition(-h, n_named, axis=1)[:, :n_named]
    cells = np.take_along_axis(h, named, axis=1)
    rest = np.log(np.maximum(1 - np.exp(cells).sum(axis=1), 1e-12))
    hit = named == place[:, None]
    left = np.maximum(1 - np.exp(np.take_along_axis(m, named, axis=1)).sum(axis=1), np.exp(m[np.arange(len(m)), place]))
    spread = np.where(hit.any(axis=1), 0.0, np.log(left) - m[np.arange(len(m)), place])
    wanted = power[:, None, None] * np.column_stack([rest, cells])
    share = softmax(wanted, axis=2)
    chips = whole_chips(share.reshape(-1, n_named + 1), n_chips).reshape(share.shape)
    at = np.where(hit.any(axis=1), 1 + hit.argmax(axis=1), 0)
    stake = np.take_along_axis(chips, np.broadcast_to(at[None, :, None], (power.size, at.size, 1)), axis=2)[..., 0]
    return spread - np.log(stake / n_chips)
