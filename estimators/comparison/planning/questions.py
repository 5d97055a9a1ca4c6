"""Simulated questions, as arrays: who answers what about draws of the generator and free answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import BoolArray, FloatArray, IntArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.comparison.reports import log_ratio_from_report
from shannon_game.estimators.comparison.rounding import RoundingScheme, rounding_scheme
from shannon_game.estimators.comparison.simulation.participants import Participants, draw_participants, reports_of
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.comparison.token_pool import TokenPool
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


def simulate_questions(
    known: KnownContexts,
    context: NDArray[np.integer],
    people: ParticipantPopulation,
    *,
    n_people: int,
    n_draws: int,
    n_answers: int,
    n_comparisons: int,
    scale: RoundingScheme | str = "slider",
    rng: np.random.Generator,
) -> TokenPool:
    """Simulate a study of one design, fast enough to be repeated thousands of times.

    What :func:`simulate_designed_study` simulates, as arrays: an item's distinct tokens other than the target are
    compared with it, in random order and again from the start; questions are dealt to people in turn. A context may be
    asked more than once; numbers of draws, answers and comparisons are per item.
    """
    KnownContexts.require(known=known)
    sizes = {"n_people": n_people, "n_draws": n_draws, "n_comparisons": n_comparisons}
    check_numbers(sizes, "design", at_least=1)
    check_numbers({"n_answers": n_answers}, "design", at_least=0)
    if max(n_answers, n_comparisons) > n_people:
        problem = f"is {n_people}, should be at least {max(n_answers, n_comparisons)}: nobody is asked a question twice"
        raise InputError(problem, source="design", field="n_people")
    place, n_items = np.asarray(context, dtype=np.intp), context.size
    drawn = known.draw("generator", place, n_draws, rng)
    answered = known.draw("belief", place, n_answers, rng)
    answering = _dealt(n_items, n_answers, n_people, rng) if known.bots else None
    if answering is not None:
        answered = known.of_bots(answered, answering, n_people, rng)
    item, token, of_draw, of_answer = token_table(drawn, answered)
    is_target = token == known.target[place[item]]
    order = np.flatnonzero(~is_target)
    order = order[np.lexsort((rng.random(order.size), item[order]))]
    count = np.bincount(item[order], minlength=n_items)
    start = np.cumsum(count) - count
    asked = np.flatnonzero(count)
    turn = np.arange(n_comparisons)
    report_token = order[start[asked, None] + turn % count[asked, None]].ravel()
    report_person = _dealt(n_items, n_comparisons, n_people, rng)[asked].ravel()
    everybody = known.with_bots(draw_participants(people, n_people, int(rng.integers(2**31))))
    log_ratio = report_log_ratios(
        known, place[item[report_token]], token[report_token], report_person, everybody, scale=scale, rng=rng
    )
    row = place[item]
    return TokenPool(
        item=item,
        offset_nats=known.generator[row, known.target[row]] - known.generator[row, token],
        is_target=is_target,
        n_drawn=np.bincount(of_draw.ravel(), minlength=item.size),
        answer_token=of_answer.ravel(),
        answer_person=(_dealt(n_items, n_answers, n_people, rng) if answering is None else answering).ravel(),
        report_token=report_token,
        report_person=report_person,
        report_log_ratio=log_ratio,
    )


def token_table(drawn: IntArray, answered: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Distinct tokens of every item."""
    both = np.concatenate([drawn, answered], axis=1)
    vocab = int(both.max()) + 1
    key, row = np.unique(np.arange(both.shape[0])[:, None] * vocab + both, return_inverse=True)
    row = row.reshape(both.shape)
    return key // vocab, key % vocab, row[:, : drawn.shape[1]], row[:, drawn.shape[1] :]


def report_log_ratios(
    known: KnownContexts,
    context: IntArray,
    token: IntArray,
    who: IntArray,
    people: Participants,
    *,
    scale: RoundingScheme | str,
    rng: np.random.Generator,
) -> FloatArray:
    """Reports on tokens against their contexts' targets, as log-ratios ln h(x)/h(y), nats; shape (report,)."""
    log_odds = known.belief[context, known.target[context]] - known.belief[context, token]
    if known.private_sd_nats:
        # of the target and of the token; nobody is asked about an item twice
        log_odds = log_odds + np.sqrt(2) * known.private_sd_nats * rng.standard_normal(log_odds.shape)
    return log_ratio_from_report(reports_of(people, who, log_odds, rounding_scheme(scale), rng))


def _dealt(n_items: int, n_questions: int, n_people: int, rng: np.random.Generator) -> IntArray:
    """Who is asked what, (item, question): in turn, in an order of each item's own."""
    turn = np.arange(n_items * n_questions).reshape(n_items, n_questions) % n_people
    return rng.permuted(rng.permutation(n_people)[turn], axis=1)


_MASS_TOLERANCE = 1e-3  # of the probabilities of 50,000 tokens in single precision


@dataclass(frozen=True, eq=False, repr=False)
class KnownContexts(Result):
    """Contexts from which simulated studies take their items.

    Attributes
    ----------
    generator, belief : ndarray, shape (context, token)
        ln g and ln h, nats.
    gap_nats : ndarray, shape (context,)
        ln g(y) - ln h(y): people's loss less the generator's.
    drawing : mapping of str to ndarray, shape (context * token,)
        Cumulated probabilities plus the number of the context, of ``generator`` and ``belief``.
    private_sd_nats : float
        How far a person's own ln h of a token is from the shared one, normal.
    bots : float
        Share of the people who answer anything; the first ones.
    """

    made_by = "known_contexts(generator_logprob, belief_logprob, target)"

    generator: FloatArray
    belief: FloatArray
    target: IntArray
    gap_nats: FloatArray
    drawing: dict[str, FloatArray] = field(repr=False)
    private_sd_nats: float = 0.0
    bots: float = 0.0

    def draw(self, what: str, context: IntArray, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` tokens of each context from ``generator`` or ``belief``, each by somebody else, (context, n)."""
        if what == "belief" and self.private_sd_nats:
            drawn = [self.own(context, 1.0, rng).argmax(axis=1) for _ in range(n)]
            return np.stack(drawn, axis=1).astype(np.intp) if n else np.empty((context.size, 0), dtype=np.intp)
        vocab = self.generator.shape[1]
        place = rng.random((context.size, n)) + context[:, None]
        found = np.searchsorted(self.drawing[what], place, side="right") - context[:, None] * vocab
        # a sum that rounds to less than one leaves a hair above the last token
        tokens: IntArray = np.clip(found, 0, vocab - 1).astype(np.intp)
        return tokens

    def own(self, context: IntArray, exponent: FloatArray | float, rng: np.random.Generator) -> FloatArray:
        """Keys of all tokens, (context, token), by whose order own beliefs to a power are drawn from, none twice."""
        belief = self.belief[context]
        if self.private_sd_nats:
            belief = belief + self.private_sd_nats * rng.standard_normal(belief.shape)
        keys: FloatArray = np.asarray(exponent)[..., None] * belief + rng.gumbel(size=belief.shape)
        return keys

    def is_bot(self, n_people: int) -> BoolArray:
        """Who of some people answers anything."""
        return np.arange(n_people) < round(self.bots * n_people)

    def with_bots(self, people: Participants) -> Participants:
        """Let the bots' reports have nothing to do with a belief."""
        return replace(people, lapse_rate=np.where(self.is_bot(people.bias.size), 1.0, people.lapse_rate))

    def of_bots(self, token: IntArray, who: IntArray, n_people: int, rng: np.random.Generator) -> IntArray:
        """Put any token in the place of those that bots answered."""
        return np.where(self.is_bot(n_people)[who], rng.integers(0, self.belief.shape[1], token.shape), token)


def known_contexts(
    generator_logprob: ArrayLike,
    belief_logprob: ArrayLike,
    target: ArrayLike,
    *,
    private_sd_nats: float = 0.0,
    bots: float = 0.0,
) -> KnownContexts:
    """Check and prepare contexts whose ln g and ln h, (context, token), nats, and targets, (context,), are known."""
    found = {}
    for name, given in (("generator_logprob", generator_logprob), ("belief_logprob", belief_logprob)):
        logprob = np.asarray(given, dtype=float)
        if logprob.ndim != 2:
            raise InputError(f"has shape {logprob.shape}, should be (context, token)", field=name)
        mass = np.exp(logprob).sum(axis=1)
        if not (np.abs(mass - 1) < _MASS_TOLERANCE).all():
            worst = int(np.argmax(np.where(np.isfinite(mass), np.abs(mass - 1), np.inf)))
            raise InputError(f"sums to {mass[worst]:.4g} in context {worst}, should be 1", field=name)
        found[name.removesuffix("_logprob")] = logprob
    generator, belief = found["generator"], found["belief"]
    if belief.shape != generator.shape:
        raise InputError(f"has shape {belief.shape}, the generator's is {generator.shape}", field="belief_logprob")
    place = np.asarray(target)
    n, vocab = generator.shape
    if place.shape != (n,) or place.dtype.kind not in "iu" or not ((place >= 0) & (place < vocab)).all():
        raise InputError(f"should be {n} whole numbers, 0 to {vocab - 1}", field="target")
    row = np.arange(n)
    gap = generator[row, place] - belief[row, place]
    if not np.isfinite(gap).all():
        raise InputError("has no probability in some context", field="target")
    drawing = {}
    for name, logprob in found.items():
        cumulated = np.cumsum(np.exp(logprob), axis=1)
        drawing[name] = (cumulated / cumulated[:, -1:] + row[:, None]).ravel()
    check_numbers({"private_sd_nats": private_sd_nats, "bots": bots}, "contexts", at_least=0)
    return KnownContexts(generator, belief, place.astype(np.intp), gap, drawing, private_sd_nats, bots)


def assumed_belief(
    generator_logprob: ArrayLike,
    *,
    exponent: float = 1.0,
    unigram_share: float = 0.0,
    noise_nats: float = 0.0,
    rng: np.random.Generator | None = None,
) -> FloatArray:
    r"""What people might believe, ln h, (context, token), made of what the generator believes.

    .. math:: h(x|c) \propto (1 - w)\, g_s(x|c) + w\, \bar g(x), \qquad g_s \propto g^{s}\, e^{\sigma L_x}

    with L standard Laplace (variance one), and :math:`\bar g` the mean of g over contexts. With an exponent s above 1
    people are surer than the generator; w is `unigram_share`, :math:`\sigma` `noise_nats`, which needs `rng`.
    """
    source = "assumed belief"
    check_numbers({"exponent": exponent}, source, above=0)
    check_numbers({"unigram_share": unigram_share}, source, at_least=0, below=1)
    check_numbers({"noise_nats": noise_nats}, source, at_least=0)
    g = np.asarray(generator_logprob, dtype=float)
    h = exponent * g
    if noise_nats > 0:
        if rng is None:
            raise InputError("is missing; noise is drawn", source=source, field="rng")
        h = h + noise_nats * rng.laplace(scale=np.sqrt(0.5), size=g.shape)
    h = h - np.logaddexp.reduce(h, axis=1, keepdims=True)
    if unigram_share > 0:
        unigram = np.log(np.exp(g).mean(axis=0))
        h = np.logaddexp(np.log1p(-unigram_share) + h, np.log(unigram_share) + unigram)
    return h - np.logaddexp.reduce(h, axis=1, keepdims=True)
