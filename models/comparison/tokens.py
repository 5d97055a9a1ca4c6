r"""The tokens of the items that were asked: their generator log-probabilities, their frequency, and the tail.

What every model of a comparison study needs before it looks at an answer: the distinct candidates of each item, which
of them a response was about, and Good-Turing stand-ins for undrawn tokens.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimators.comparison import response_positions, same_token
from estimators.comparison.study_sources import require_generator_draws
from estimators.errors import InputError
from estimators.layout import item_labels

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["StudyTokens", "clipped_logit", "study_tokens", "token_frequency"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_LOGIT_RANGE = (-16.0, 9.0)
_DEFAULT_SURPRISAL = 4.0
_KEY_DECIMALS = 5
_SAME_LOG_G = 1e-3
_BIN_NATS = 0.25


@dataclass(frozen=True, eq=False)
class StudyTokens:
    r"""Distinct candidates of the items that were asked; the target itself is left out.

    All log-probabilities are the generator's, in nats; ``*_item`` are positions along ``item``, increasing.

    Attributes
    ----------
    position : ndarray of int, shape (item,)
        Along the study's ``item``.
    label : ndarray of int or str, shape (item,)
        What the study's owner calls the items, else their labels.
    target_log_g : ndarray, shape (item,)
        ln g(y).
    surprisal : ndarray, shape (item,)
        E_q, mean of -ln g over the candidates drawn that are not the target.
    item, log_g, frequency, count : ndarray, shape (token,)
        Item, ln g(x), frequency beyond the target's (see :func:`token_frequency`) and times drawn.
    column : ndarray of int, shape (token,)
        A position along ``candidate`` at which the token stands.
    code : ndarray of int, shape (item, candidate)
        Token of every candidate drawn; -1 for the target.
    response_token, response_item : ndarray of int, shape (response,)
        Token of every response (-1: both were the target), and its item's position along ``item``.
    unseen_mass : ndarray, shape (item,)
        Probability that g gives to tokens that are neither the target nor among the stored candidates.
    tail_item, tail_log_g, tail_frequency, tail_mass : ndarray, shape (tail,)
        Good-Turing stand-ins for undrawn tokens: item, ln g and frequency at which a model is evaluated, and the
        probability under g that each stands for.
    """

    position: IntArray
    label: NDArray[Any]
    target_log_g: FloatArray
    surprisal: FloatArray
    item: IntArray
    log_g: FloatArray
    frequency: FloatArray
    count: IntArray
    column: IntArray
    code: IntArray
    response_token: IntArray
    response_item: IntArray
    unseen_mass: FloatArray
    tail_item: IntArray
    tail_log_g: FloatArray
    tail_frequency: FloatArray
    tail_mass: FloatArray


def study_tokens(study: xr.Dataset) -> StudyTokens:
    """Gather the tokens of the items that have responses.

    Tokens that were never drawn are known where the study has the generator's whole distribution
    (``reference_logprob``): all of them enter, gathered in bins of ln g and of frequency that are 0.25 nats wide, each
    at its means. Elsewhere their mass is spread evenly over the item's candidates drawn once (Good-Turing); where an
    item has none, over all of its distinct ones; where it has not even those, it is one token of that mass.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.

    Returns
    -------
    StudyTokens

    Raises
    ------
    InputError
        If candidates are not draws of the generator, responses compare two of them, the generator's whole distribution
        lacks one of the candidates, or its tokens have no strings.
    """
    require_generator_draws(study, f"study {study.attrs.get('name')!r}", "the models of beliefs and of participants")
    items, row_item = np.unique(response_positions(study), return_inverse=True)
    sampler = study["model"].values.tolist().index(study.attrs["generator"])
    target_log_g = study["target_logprob"].values[sampler, items].astype(float)
    log_g = study["candidate_logprob"].values[sampler, items].astype(float)
    is_target = same_token(study)[items]
    n_items = items.size

    first, count, drawn_at, token_of = _distinct(study["candidate_token"].values[items], log_g, ~is_target)
    code = np.full(log_g.shape, -1, dtype=np.intp)
    code.ravel()[drawn_at] = token_of
    token_item, column = np.divmod(first, log_g.shape[1])
    token_log_g = log_g[token_item, column]

    drawn = study["candidate_token"].values[items].astype(str)[token_item, column]
    target = study["target_token"].values[items].astype(str)
    # of targets and candidates at once, as it counts the whole study's candidates
    every = token_frequency(
        study, items, np.concatenate([np.arange(n_items), token_item]), np.concatenate([target, drawn])
    )
    own = every[:n_items]
    frequency = every[n_items:] - own[token_item]

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
        tail = replace(tail, frequency=tail.frequency - own[tail.item])
        unseen_mass = np.bincount(tail.item, tail.mass, n_items)
    else:
        tail = _stand_ins(_Tail(token_item, token_log_g, frequency, count), unseen_mass)
    return StudyTokens(
        position=items.astype(np.intp),
        label=item_labels(study)[items],
        target_log_g=target_log_g,
        surprisal=surprisal,
        item=token_item.astype(np.intp),
        log_g=token_log_g,
        frequency=frequency,
        count=count,
        column=column.astype(np.intp),
        code=code,
        response_token=code[row_item, study["response_candidate"].values],
        response_item=row_item.astype(np.intp),
        unseen_mass=unseen_mass,
        tail_item=tail.item,
        tail_log_g=tail.log_g,
        tail_frequency=tail.frequency,
        tail_mass=tail.mass,
    )


def clipped_logit(log_g: FloatArray) -> FloatArray:
    """Logit of a probability given its logarithm, clipped to [-16, 9]."""
    log_g = np.minimum(log_g, -1e-12)
    logit: FloatArray = np.clip(log_g - np.log(-np.expm1(log_g)), *_LOGIT_RANGE)
    return logit


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


def _distinct(
    string: NDArray[np.object_], log_g: FloatArray, kept: NDArray[np.bool_]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Distinct tokens by item: first place each was drawn (flat), how often; places drawn, and the token of each.

    Tokens are told apart by string and log-probability, as one string can stand for many tokens.
    """
    drawn = np.flatnonzero(kept)
    _, spelling = np.unique(string.astype(str).ravel()[drawn], return_inverse=True)
    key = np.stack([drawn // log_g.shape[1], spelling, np.rint(log_g.ravel()[drawn] * 10**_KEY_DECIMALS)], axis=1)
    _, first, code, count = np.unique(
        key.astype(np.int64), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return drawn[first].astype(np.intp), count.astype(np.intp), drawn, code.ravel().astype(np.intp)


@dataclass(frozen=True, eq=False)
class _Tail:
    """Tokens of items with their ln g, their frequency, and how often or with which probability they come."""

    item: IntArray
    log_g: FloatArray
    frequency: FloatArray
    mass: NDArray[Any]


def _stand_ins(token: _Tail, unseen_mass: FloatArray) -> _Tail:
    """Good-Turing stand-ins for undrawn tokens, and the mass of each."""
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
        label = item_labels(study)[items[seen_item[at]]]
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
