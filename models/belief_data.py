r"""What the belief model is fitted to: the pairs one noise-free player answered, and the tokens it was not asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimators.comparison import HUMAN, response_positions, same_token
from estimators.errors import InputError, unknown_choice
from estimators.perplexity import candidate_log_terms
from estimators.reports import report_from_log_ratio
from estimators.rounding import RoundingScheme, report_boxes, round_reports, rounding_scheme

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["BeliefData", "belief_data", "token_frequency"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_LOGIT_RANGE = (-16.0, 9.0)
_DEFAULT_SURPRISAL = 4.0
_KEY_DECIMALS = 5
_SAME_LOG_G = 1e-3
_BIN_NATS = 0.25


@dataclass(frozen=True)
class BeliefData:
    r"""One noise-free player's answers, with what the study knows of the tokens not asked about.

    A *pair* is a distinct (item, candidate) that was asked, the target itself left out; :math:`v_{qx}` is
    :math:`\ln\frac{h(x) g(y)}{h(y) g(x)}`. All log-probabilities are the generator's, in nats; the ``*_item`` fields
    are positions along ``item``, increasing.

    Attributes
    ----------
    study, player, generator, rounding : str
    item : ndarray of int, shape (item,)
        Labels of the items asked.
    target_log_g : ndarray, shape (item,)
        ln g(y).
    surprisal : ndarray, shape (item,)
        E_q, mean of -ln g over the candidates drawn that are not the target.
    unseen_mass : ndarray, shape (item,)
        Probability that g gives to tokens that are neither the target nor among the stored candidates.
    pair_item, pair_log_g, pair_lower, pair_upper : ndarray, shape (pair,)
        Item, ln g(x), and the edges of the box in which v lies (infinite at the ends of the scale). Both edges are v
        itself where reports are not rounded.
    pair_box : ndarray of int, shape (pair,)
        Which of the values that can be reported was given, from the lowest; 0 where reports are not rounded.
    box_edges : ndarray, shape (box + 1,)
        Edges of the boxes in log-odds of the report, -inf and inf first and last; empty where reports are not rounded.
    pair_frequency, rest_frequency, tail_frequency : ndarray, shape (pair,), (rest,), (tail,)
        How much more frequent the token is than the item's target in the study's other items, nats; see
        :func:`token_frequency`.
    rest_item, rest_log_g : ndarray, shape (rest,)
        The distinct stored candidates that were not asked.
    tail_item, tail_log_g, tail_mass : ndarray, shape (tail,)
        The tokens that stand for those never drawn: item, ln g at which the model is evaluated, and the probability
        under g that each stands for.
    """

    study: str
    player: str
    generator: str
    rounding: str
    item: IntArray
    target_log_g: FloatArray
    surprisal: FloatArray
    unseen_mass: FloatArray
    pair_item: IntArray
    pair_log_g: FloatArray
    pair_lower: FloatArray
    pair_upper: FloatArray
    pair_frequency: FloatArray
    pair_box: IntArray
    box_edges: FloatArray
    rest_item: IntArray
    rest_log_g: FloatArray
    rest_frequency: FloatArray
    tail_item: IntArray
    tail_log_g: FloatArray
    tail_frequency: FloatArray
    tail_mass: FloatArray

    @property
    def is_raw(self) -> bool:
        """Whether v is known exactly."""
        return bool(np.array_equal(self.pair_lower, self.pair_upper))

    @property
    def is_generator_itself(self) -> bool:
        """Whether v is zero everywhere: the gap is then exactly 0 and there is nothing to fit."""
        return self.is_raw and not self.pair_lower.any()

    @property
    def target_logit(self) -> FloatArray:
        """L = logit g(y) clipped to [-16, 9], shape (item,)."""
        log_g = np.minimum(self.target_log_g, -1e-12)
        logit: FloatArray = np.clip(log_g - np.log(-np.expm1(log_g)), *_LOGIT_RANGE)
        return logit


def belief_data(study: xr.Dataset, player: str, rounding: RoundingScheme | str = "none") -> BeliefData:
    """Read one player's answers from a comparison study.

    A player without noise gives the same answer every time, so repeated (item, candidate) pairs count once.

    Tokens that were never drawn are known where the study has the generator's whole distribution
    (``reference_logprob``): all of them enter, gathered in bins of ln g and of frequency that are 0.25 nats wide, each
    at its means.
    Elsewhere their mass is spread evenly over the item's candidates drawn once (Good-Turing); where an item has none,
    over all of its distinct ones; where it has not even those, it is one token of that mass.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    player : str
        A language model of the study.
    rounding : RoundingScheme or str
        What the player's reports are rounded to.

    Returns
    -------
    BeliefData

    Raises
    ------
    InputError
        For the participants (their answers are noisy), an unknown player or rounding, a study without any response
        on a candidate that is not the target, or a candidate that the generator's whole distribution does not have.
    """
    models = study["model"].values.tolist()
    source = f"study {study.attrs.get('name')!r}"
    if player == HUMAN:
        raise InputError(
            f"is {HUMAN!r}, but the belief model is for players without noise; take one of {', '.join(models)}",
            source=source,
            field="player",
        )
    if player not in models:
        raise unknown_choice("player", player, models, source=source)
    scheme = rounding_scheme(rounding) if isinstance(rounding, str) else rounding

    position = response_positions(study)
    items, row = np.unique(position, return_inverse=True)
    sampler = models.index(study.attrs["generator"])
    target_log_g = study["target_logprob"].values[sampler, items].astype(float)
    log_g = study["candidate_logprob"].values[sampler, items].astype(float)
    log_term = candidate_log_terms(study.isel(item=items), player)
    is_target = same_token(study)[items]
    was_asked = np.zeros(log_g.shape, dtype=bool)
    was_asked[row, study["response_candidate"].values] = True

    token = _distinct_tokens(study["candidate_token"].values[items], log_g, ~is_target)
    asked = np.zeros(token.first.size, dtype=bool)
    np.logical_or.at(asked, token.code, was_asked.ravel()[token.drawn])
    if not asked.any():
        raise InputError("has no response on a candidate that is not the target", source=source)
    token_item, column = np.divmod(token.first, log_g.shape[1])
    token_log_g = log_g[token_item, column]
    v = log_term[token_item, column]
    shift = target_log_g[token_item[asked]] - token_log_g[asked]
    box, edges = _boxes(v[asked] - shift, scheme)
    lower, upper = (shift - edges[box + 1], shift - edges[box]) if edges.size else (v[asked], v[asked])

    drawn = study["candidate_token"].values[items].astype(str)[token_item, column]
    target = study["target_token"].values[items].astype(str)
    frequency = token_frequency(study, items, np.arange(items.size), target)
    token_frequencies = token_frequency(study, items, token_item, drawn) - frequency[token_item]

    n_items = items.size
    seen_mass = np.exp(target_log_g) + np.bincount(token_item, np.exp(token_log_g), n_items)
    unseen_mass = np.maximum(1 - seen_mass, 0.0)
    n_drawn = (~is_target).sum(axis=1)
    surprisal = np.where(
        n_drawn > 0, -np.where(is_target, 0.0, log_g).sum(axis=1) / np.maximum(n_drawn, 1), _DEFAULT_SURPRISAL
    )
    if "reference_logprob" in study:
        seen = (
            np.concatenate([np.arange(n_items), token_item]),
            np.concatenate([target, drawn]),
            np.concatenate([target_log_g, token_log_g]),
        )
        tail = _known_tail(study, items, *seen)
        tail = replace(tail, frequency=tail.frequency - frequency[tail.item])
        unseen_mass = np.bincount(tail.item, tail.mass, n_items)
    else:
        tail = _stand_ins(_Tail(token_item, token_log_g, token_frequencies, token.count), unseen_mass)
    return BeliefData(
        study=str(study.attrs.get("name")),
        player=player,
        generator=str(study.attrs["generator"]),
        rounding=scheme.name,
        item=study["item"].values[items].astype(np.intp),
        target_log_g=target_log_g,
        surprisal=surprisal,
        unseen_mass=unseen_mass,
        pair_item=token_item[asked],
        pair_log_g=token_log_g[asked],
        pair_lower=lower,
        pair_upper=upper,
        pair_frequency=token_frequencies[asked],
        pair_box=box,
        box_edges=edges,
        rest_item=token_item[~asked],
        rest_log_g=token_log_g[~asked],
        rest_frequency=token_frequencies[~asked],
        tail_item=tail.item,
        tail_log_g=tail.log_g,
        tail_frequency=tail.frequency,
        tail_mass=tail.mass,
    )


@dataclass(frozen=True)
class _Tokens:
    """Distinct tokens, by item: first place each was drawn (flat), how often, and the token of every draw."""

    first: IntArray
    count: IntArray
    drawn: IntArray
    code: IntArray


def _distinct_tokens(string: NDArray[np.object_], log_g: FloatArray, kept: NDArray[np.bool_]) -> _Tokens:
    """Tell tokens apart by string and log-probability, as one string can stand for many tokens."""
    drawn = np.flatnonzero(kept)
    _, spelling = np.unique(string.astype(str).ravel()[drawn], return_inverse=True)
    key = np.stack([drawn // log_g.shape[1], spelling, np.rint(log_g.ravel()[drawn] * 10**_KEY_DECIMALS)], axis=1)
    _, first, code, count = np.unique(
        key.astype(np.int64), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return _Tokens(drawn[first].astype(np.intp), count.astype(np.intp), drawn, code.ravel().astype(np.intp))


def _boxes(log_ratio: FloatArray, scheme: RoundingScheme) -> tuple[IntArray, FloatArray]:
    """Box of every report 1 / (1 + e^D), given D = ln h(x)/h(y), and the edges of all boxes, log-odds of the report."""
    if not scheme.values:
        return np.zeros(log_ratio.size, dtype=np.intp), np.empty(0)
    value = round_reports(report_from_log_ratio(log_ratio), scheme)
    probability = report_boxes(scheme)
    edge = np.append(probability[:, 0], probability[-1, 1])
    with np.errstate(divide="ignore"):
        log_odds = np.log(edge) - np.log1p(-edge)
    return np.searchsorted(np.asarray(scheme.values), value).astype(np.intp), log_odds


@dataclass(frozen=True)
class _Tail:
    """Tokens of items with their ln g, their frequency, and how often or with which probability they come."""

    item: IntArray
    log_g: FloatArray
    frequency: FloatArray
    mass: NDArray[Any]


def token_frequency(study: xr.Dataset, items: IntArray, token_item: IntArray, token: NDArray[np.str_]) -> FloatArray:
    r"""How often tokens are drawn in the study's other items, which tells rare words from words out of place.

    .. math:: f_{qx} = \ln \left( 2 + \sum_{q' \ne q} \#\{\text{candidates of } q' \text{ that are } x\} \right)

    The item's own candidates are left out: they say what ln g(x) says. All items of the study count, whether or not
    anybody was asked about them. Two draws are added, so that tokens that are not drawn elsewhere have a finite place
    not far below those drawn once.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    items : ndarray of int
        Positions of items along ``item``.
    token_item : ndarray of int, shape (token,)
        Position along `items` of every token's item.
    token : ndarray of str, shape (token,)

    Returns
    -------
    ndarray, shape (token,)
        Nats.
    """
    candidate = study["candidate_token"].values
    total = Counter(candidate.ravel().tolist())
    own = [Counter(row) for row in candidate[items].tolist()]
    count = [total[word] - own[q][word] for q, word in zip(token_item.tolist(), token.tolist(), strict=True)]
    return _log_frequency(count)


def _log_frequency(count: list[int]) -> FloatArray:
    log_count: FloatArray = np.log(np.array(count, dtype=float) + 2)
    return log_count


def _stand_ins(token: _Tail, unseen_mass: FloatArray) -> _Tail:
    """Tokens that stand for those never drawn, and the mass that each stands for."""
    n_items = unseen_mass.size
    has_once = np.bincount(token.item, token.mass == 1, n_items) > 0
    has_any = np.bincount(token.item, minlength=n_items) > 0
    chosen = np.where(has_once[token.item], token.mass == 1, True) & (unseen_mass[token.item] > 0)
    alone = np.flatnonzero(~has_any & (unseen_mass > 0))
    item = np.concatenate([token.item[chosen], alone])
    log_g = np.concatenate([token.log_g[chosen], np.log(unseen_mass[alone])])
    # a token that nobody saw is as frequent as the target, for want of anything better
    frequency = np.concatenate([token.frequency[chosen], np.zeros(alone.size)])
    order = np.argsort(item, kind="stable")
    item = item[order].astype(np.intp)
    share = unseen_mass[item] / np.bincount(item, minlength=n_items)[item]
    return _Tail(item, log_g[order], frequency[order], share)


def _known_tail(
    study: xr.Dataset, items: IntArray, seen_item: IntArray, seen_token: NDArray[np.str_], seen_log_g: FloatArray
) -> _Tail:
    """Tokens of the whole distribution that were not seen, in bins of ln g and of frequency."""
    source = f"study {study.attrs.get('name')!r}"
    if "token" not in study.coords:
        raise InputError("has no coordinate 'token' with the tokens' strings", source=source, field="reference_logprob")
    log_g = study["reference_logprob"].values[items].astype(float)
    vocabulary = study["token"].values.astype(str)
    order = np.argsort(vocabulary, kind="stable")
    first = np.searchsorted(vocabulary[order], seen_token)
    last = np.searchsorted(vocabulary[order], seen_token, side="right")
    column = order[np.minimum(first, vocabulary.size - 1)]
    for at in np.flatnonzero(last - first > 1).tolist():  # one string can stand for many tokens
        among = order[first[at] : last[at]]
        column[at] = among[np.abs(log_g[seen_item[at], among] - seen_log_g[at]).argmin()]
    off = (first == last) | ~(np.abs(log_g[seen_item, column] - seen_log_g) < _SAME_LOG_G)
    if off.any():
        at = int(np.flatnonzero(off)[0])
        label = study["item"].values[items[seen_item[at]]]
        raise InputError(
            f"does not have token {str(seen_token[at])!r} of item {label} with ln g {seen_log_g[at]:.5f}",
            source=source,
            field="reference_logprob",
        )
    mass = np.exp(log_g)
    mass[seen_item, column] = 0.0
    item, token = np.nonzero(mass)
    log_g, mass = log_g[item, token], mass[item, token]
    # none of these is a candidate of its own item, so that one count serves all items
    everywhere = Counter(study["candidate_token"].values.ravel().tolist())
    frequency = _log_frequency([everywhere[word] for word in vocabulary.tolist()])[token]
    # what a bin contributes is off by about (width * slope)^2 / 24 of itself
    bins = np.stack([item, *(np.floor(x / _BIN_NATS).astype(np.intp) for x in (log_g, frequency))], axis=1)
    found, code = np.unique(bins, axis=0, return_inverse=True)
    total = np.bincount(code.ravel(), mass).astype(float)
    means = [np.bincount(code.ravel(), mass * x).astype(float) / total for x in (log_g, frequency)]
    return _Tail(found[:, 0].astype(np.intp), means[0], means[1], total)
