"""People of a designed study: what each believes, is asked, answers freely, and reports of two tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from shannon_game.estimators.arrays import BoolArray, FloatArray, IntArray
from shannon_game.estimators.comparison.rounding import RoundingScheme, rounding_scheme
from shannon_game.estimators.comparison.simulation.language import draw_tokens
from shannon_game.estimators.comparison.simulation.participants import Participants, draw_participants, reports_of
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, QuestionDesign, random_stream
from shannon_game.estimators.comparison.study_sources import ANSWER, GENERATOR, PADDING, TARGET_POSITION

Logprob = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Beliefs that people mix, each with weights of the participant's own."""

    logprob: Logprob
    weights: FloatArray

    def shared(self) -> Logprob:
        """The mixture with the mean weights, (item, vocab)."""
        return mixed(self.logprob, self.weights.mean(axis=0))

    def of_tokens(self, who: IntArray, item: IntArray, token: IntArray) -> FloatArray:
        """Participants' own ln h of tokens; all arguments broadcast to one shape, that of what is returned."""
        who, item, token = np.broadcast_arrays(who, item, token)
        found: FloatArray = logsumexp(
            self.logprob[:, item, token].astype(float), b=np.moveaxis(self.weights[who], -1, 0), axis=0
        )
        return found

    def of_item(self, who: int, item: int) -> Logprob:
        """A participant's own ln h of all tokens, (vocab,)."""
        return mixed(self.logprob[:, item], self.weights[who])


def mixed(logprob: Logprob, weights: FloatArray) -> Logprob:
    """Log-probabilities of a mixture of components along the first axis, as precise as they are."""
    top = logprob.max(axis=0)
    total = sum(weight * np.exp(part - top) for weight, part in zip(weights.tolist(), logprob, strict=True))
    found: Logprob = np.log(total) + top
    return found


@dataclass(frozen=True, eq=False)
class Players:
    """People who answer, and what they believe."""

    people: Participants
    bot: BoolArray
    belief: Logprob
    generator: Logprob
    private_sd_nats: float
    posterior_weight: float
    seed: int
    mixture: Mixture | None = None


def draw_players(
    population: ParticipantPopulation,
    n_participants: int,
    belief: Logprob,
    generator: Logprob,
    *,
    bots: float,
    private_sd_nats: float,
    posterior_weight: float,
    seed: int,
    mixture: Mixture | None = None,
) -> Players:
    """Draw participants, and make a share of them bots."""
    people = draw_participants(population, n_participants, seed)
    order = random_stream(seed, "bot").permutation(n_participants)
    bot = np.zeros(n_participants, dtype=bool)
    bot[order[: round(bots * n_participants)]] = True
    people = replace(people, lapse_rate=np.where(bot, 1.0, people.lapse_rate))
    return Players(people, bot, belief, generator, private_sd_nats, posterior_weight, seed, mixture)


def sample_rows(logprob: Logprob, exponent: float, uniform: FloatArray) -> IntArray:
    """Draw tokens with probabilities proportional to p^exponent, by inversion."""
    return np.stack([_sample(exponent * row, u) for row, u in zip(logprob, uniform, strict=True)])


def free_answers(players: Players, who: IntArray, exponent: float) -> IntArray:
    """Draw what participants answer freely: from h^exponent, each from the own h; a bot from all tokens alike."""
    uniform = random_stream(players.seed, "answer").random(who.shape)
    if players.private_sd_nats == 0 and players.mixture is None:
        token = sample_rows(players.belief, exponent, uniform)
    else:
        token = np.empty(who.shape, dtype=np.intp)
        for q, j in np.ndindex(*who.shape):
            own = _own(players, q, int(who[q, j]))
            token[q, j] = _sample(exponent * own, uniform[q, j : j + 1])[0]
    anything = (uniform * players.belief.shape[1]).astype(np.intp)
    return np.where(players.bot[who], anything, token)


def report_comparisons(
    players: Players, who: IntArray, candidate: IntArray, reference: IntArray, scale: RoundingScheme, *, occasion: int
) -> FloatArray:
    """Report the probability of the reference, one comparison per item."""
    row = np.arange(who.size)
    if players.mixture is None:
        log_odds = players.belief[row, reference].astype(float) - players.belief[row, candidate]
    else:
        log_odds = players.mixture.of_tokens(who, row, reference) - players.mixture.of_tokens(who, row, candidate)
    if players.private_sd_nats > 0:
        for q in np.flatnonzero(reference != candidate).tolist():
            own = _private(players, q, int(who[q]))
            log_odds[q] += own[reference[q]] - own[candidate[q]]
    if players.posterior_weight != 0:
        shift = players.generator[row, candidate].astype(float) - players.generator[row, reference]
        log_odds += players.posterior_weight * shift
    return reports_of(players.people, who, log_odds, scale, random_stream(players.seed, "report", occasion))


def own_losses(players: Players, target: IntArray) -> FloatArray:
    """-ln h_u(y) of every participant whose belief is not the shared one, nats, (participant, item)."""
    shape = players.bot.size, target.size
    if players.mixture is not None and players.private_sd_nats == 0:
        return -players.mixture.of_tokens(np.arange(shape[0])[:, None], np.arange(shape[1]), target)
    found: FloatArray = np.empty(shape)
    for person, q in np.ndindex(*shape):
        own = _own(players, q, person)
        found[person, q] = logsumexp(own.astype(float)) - own[target[q]]
    return found


def _own(players: Players, item: int, person: int) -> Logprob:
    """What a participant believes of an item, up to a constant, (vocab,)."""
    shared = players.belief[item] if players.mixture is None else players.mixture.of_item(person, item)
    return shared if players.private_sd_nats == 0 else shared + _private(players, item, person)


def _private(players: Players, item: int, person: int) -> NDArray[np.float32]:
    """Own belief less the shared one, (vocab,): made again from its seed, as nobody could keep all of them."""
    rng = random_stream(players.seed, "private", item, person)
    vocab = players.belief.shape[1]
    own: NDArray[np.float32] = np.empty(vocab, dtype=np.float32)
    rng.standard_normal(dtype=np.float32, out=own)
    own *= np.float32(players.private_sd_nats)
    return own


def _sample(log_weight: Logprob, uniform: FloatArray) -> IntArray:
    cumulated = np.cumsum(np.exp(log_weight - log_weight.max(), dtype=float))
    drawn: IntArray = np.searchsorted(cumulated, uniform * cumulated[-1], side="right")
    # a product that rounds up to the whole mass would fall off the end
    np.minimum(drawn, log_weight.size - 1, out=drawn)
    return drawn


NO_TOKEN = -1
"""Token of an empty cell."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Candidates and free answers of every item."""

    token: IntArray
    source: NDArray[np.object_]
    batch: IntArray
    answer_batch: IntArray
    answer_cell: IntArray


@dataclass(frozen=True, eq=False)
class Asked:
    """Comparisons, in long form; every array has shape (response,), in the order of asking."""

    item: IntArray
    participant: IntArray
    candidate: IntArray
    report: FloatArray


def who_is_asked(design: QuestionDesign, n_items: int, seed: int) -> tuple[IntArray, IntArray]:
    """Choose who answers an item freely and who compares: different people where there are enough, all alike often."""
    rng = random_stream(seed, "who")
    n = design.n_participants
    turn = np.arange(n_items * design.n_comparing).reshape(n_items, -1) % n
    comparing = np.repeat(rng.permuted(rng.permutation(n)[turn], axis=1), design.n_comparisons_each, axis=1)
    answering = np.empty((n_items, design.n_answers), dtype=np.intp)
    answered = np.zeros(n, dtype=np.intp)
    for q in range(n_items):
        compares = np.isin(np.arange(n), comparing[q])
        order = np.lexsort((rng.random(n), answered, compares))
        answering[q] = order[: design.n_answers]
        answered[answering[q]] += 1
    return answering, comparing


def candidate_cells(
    players: Players, target: IntArray, design: QuestionDesign, answering: IntArray, answer_exponent: float
) -> Cells:
    """Draw candidates and free answers."""
    n_items, seed = target.size, players.seed
    drawn = draw_tokens(players.generator, design.n_draws, random_stream(seed, "candidate"))
    answer = free_answers(players, answering, answer_exponent)
    batch_of_answer = 1 + np.arange(design.n_answers) * design.n_batches // max(design.n_answers, 1)
    shape = n_items, design.n_draws + design.n_answers
    token, source = np.full(shape, NO_TOKEN, dtype=np.intp), np.full(shape, PADDING, dtype=object)
    batch, cell = np.zeros(shape, dtype=np.intp), np.full(answer.shape, TARGET_POSITION, dtype=np.intp)
    token[:, : design.n_draws], source[:, : design.n_draws] = drawn, GENERATOR
    for q in range(n_items):
        columns = {int(target[q]): TARGET_POSITION}
        for column, x in enumerate(drawn[q].tolist()):
            columns.setdefault(x, column)
        free = design.n_draws
        for j, x in enumerate(answer[q].tolist()):
            if x not in columns:
                columns[x] = free
                token[q, free], source[q, free], batch[q, free] = x, ANSWER, batch_of_answer[j]
                free += 1
            cell[q, j] = columns[x]
    return Cells(token, source, batch, batch_of_answer, cell)


def ask_comparisons(
    players: Players, target: IntArray, design: QuestionDesign, cells: Cells, comparing: IntArray
) -> Asked:
    """Compare each item's tokens with its target, in random order and again from the start."""
    scale, rng = rounding_scheme(design.scale), random_stream(players.seed, "order")
    item, at = np.arange(target.size), np.arange(design.n_comparisons)
    chosen = np.full(comparing.shape, TARGET_POSITION)
    for q in item.tolist():
        order = rng.permutation(_columns(cells.token[q], int(target[q])))
        if order.size:
            chosen[q] = order[at % order.size]
    token = np.where(chosen == TARGET_POSITION, target[:, None], cells.token[item[:, None], chosen])
    report = np.column_stack(
        [report_comparisons(players, comparing[:, k], token[:, k], target, scale, occasion=k) for k in at.tolist()]
    )
    occasion, row = np.nonzero(chosen.T != TARGET_POSITION)
    cell = row, occasion
    return Asked(row, comparing[cell], chosen[cell], report[cell])


def _columns(token: IntArray, target: int) -> list[int]:
    """First columns of an item's tokens other than the target."""
    first: dict[int, int] = {}
    for column, x in enumerate(token.tolist()):
        first.setdefault(x, column)
    return [column for x, column in first.items() if x not in (NO_TOKEN, target)]
