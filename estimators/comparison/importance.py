r"""Importance sampling from several proposals at once, and which responses it can use.

A sample of an item holds :math:`n_k` draws of each proposal :math:`p_k`: the generator, a mixture, a tempered
generator. Every draw is weighed by how often the whole sample was expected to hold its token (the balance heuristic,
Veach & Guibas 1995):

.. math:: Z = \sum_x r(x) \approx \sum_j \frac{r(x_j)}{m(x_j)}, \qquad m(x) = \sum_k n_k\, p_k(x), \quad
          r(x) = \frac{h(x|c)}{h(y|c)}

For distinct draws m is the inclusion probability (Horvitz & Thompson 1952). With draws of the generator alone these are
the terms of eqs. 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray, IntArray
from shannon_game.estimators.comparison.study import COMPARISON, generator_logprobs
from shannon_game.estimators.comparison.study_sources import (
    ANSWER,
    DISTINCT,
    GENERATOR,
    PADDING,
    PROPOSAL,
    TARGET_POSITION,
    all_from_generator,
    candidate_sources,
    response_references,
)
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import response_positions

_DRAWN = (GENERATOR, PROPOSAL, DISTINCT)
_LOGPROBS = ("candidate_logprob", "proposal_logprob", "inclusion_logprob")


@dataclass(frozen=True, eq=False)
class Proposals:
    """Row of the proposal that drew each candidate, -1 for none; ln of what each gives to it, (3, item, candidate)."""

    source: IntArray
    candidate: FloatArray


def mixture_logprob(logprob: FloatArray, n_draws: IntArray) -> FloatArray:
    r""":math:`\ln \sum_k n_k p_k / \sum_k n_k` of (proposal, token); NaN where a proposal that was used is unknown."""
    n = n_draws.astype(float)
    used = n > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(used, logprob + np.log(n / n.sum(axis=0)), -np.inf)
        mixture: FloatArray = np.logaddexp.reduce(share, axis=0)
    # where one alone was used, its own value to the bit
    alone = used.sum(axis=0) == 1
    return np.where(alone, np.take_along_axis(logprob, used.argmax(axis=0)[None], axis=0)[0], mixture)


def balanced_logprob(logprob: FloatArray, proposal: IntArray, item: IntArray) -> FloatArray:
    """Ln of the density by which each draw is divided; item by item the mixture's, or where unknown each draw's own."""
    own = logprob[proposal, np.arange(proposal.size)]
    if np.isnan(own).any():
        first = int(np.flatnonzero(np.isnan(own))[0])
        problem = f"is unknown (NaN) at draw {first}, which comes from proposal {proposal[first]}"
        raise InputError(problem, field="logprob")
    size = int(item.max()) + 1
    draws = np.bincount(proposal * size + item, minlength=len(logprob) * size).reshape(-1, size)
    balanced = mixture_logprob(logprob, draws[:, item])
    unknown = np.bincount(item, np.isnan(balanced)) > 0
    return np.where(unknown[item], own, balanced)


def study_proposals(study: Dataset) -> Proposals:
    """Read from a study what each proposal gives to its candidates."""
    study, of_study = COMPARISON.read(study), COMPARISON.source(study)
    shape = study["candidate_token"].shape
    source, distinct = np.zeros(shape, dtype=np.intp), np.zeros(shape[0], dtype=np.intp)
    if not all_from_generator(study):
        kind = candidate_sources(study)
        source.fill(-1)
        for row, drawn in enumerate(_DRAWN):
            source[kind == drawn] = row
        distinct = (kind == DISTINCT).sum(axis=1)
    candidate = np.full((len(_DRAWN), *shape), np.nan)
    candidate[0] = generator_logprobs(study)[1]
    for row, name in enumerate(_LOGPROBS[1:], start=1):
        if name in study:
            candidate[row] = study[name].values
    candidate[2] -= np.log(np.maximum(distinct, 1))[:, None]
    unknown = (source >= 0) & np.isnan(np.take_along_axis(candidate, np.maximum(source, 0)[None], axis=0)[0])
    if unknown.any():
        item, column = np.argwhere(unknown)[0]
        row = int(source[item, column])
        where = f"at item {study['item'].values[item]}, candidate {column} ({int(unknown.sum())} such)"
        problem = f"is unknown {where}; importance sampling needs the probability of each {_DRAWN[row]!r} draw"
        raise InputError(problem, source=of_study, field=_LOGPROBS[row])
    return Proposals(source, candidate)


def pair_logprob(proposals: Proposals, position: IntArray, column: IntArray) -> FloatArray:
    """Ln of the density by which the term of each drawn pair is divided, (pair,)."""
    if not (proposals.source > 0).any():
        drawn: FloatArray = proposals.candidate[0, position, column]
        return drawn
    return balanced_logprob(proposals.candidate[:, position, column], proposals.source[position, column], position)


def drawn_response_mask(study: Dataset) -> BoolArray:
    """Which responses compare a drawn candidate with the target: those that equations 3 to 5 can use.

    Left out are responses on people's free answers, which nobody drew with a known probability, and those that compare
    two candidates.
    """
    if all_from_generator(study):
        drawn = np.ones(study.sizes["response"], dtype=bool)
    else:
        rows, columns = response_positions(study), study["response_candidate"].values
        drawn = ~np.isin(candidate_sources(study)[rows, columns], (ANSWER, PADDING))
    drawn &= response_references(study) == TARGET_POSITION
    return drawn


def drawn_responses(study: Dataset) -> Dataset:
    """Keep the responses of :func:`drawn_response_mask`; the study itself where these are all."""
    study = COMPARISON.read(study)
    drawn = drawn_response_mask(study)
    if drawn.all():
        return study
    if not drawn.any():
        problem = f"has {drawn.size} responses, and none compares a drawn candidate with the target"
        raise InputError(problem, source=COMPARISON.source(study))
    return study.isel(response=np.flatnonzero(drawn))
