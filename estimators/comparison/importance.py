r"""Importance sampling from several proposals at once, and which responses it can use.

A sample of an item holds :math:`n_k` draws of each proposal :math:`p_k`: the generator, a mixture, a tempered
generator. Every draw is weighed by how often the whole sample was expected to hold its token (the balance heuristic of
multiple importance sampling, Veach & Guibas 1995):

.. math:: Z = \sum_x r(x) \approx \sum_j \frac{r(x_j)}{m(x_j)}, \qquad m(x) = \sum_k n_k\, p_k(x), \quad
          r(x) = \frac{h(x|c)}{h(y|c)}

Distinct draws fit in: what is expected of a token is its inclusion probability (Horvitz & Thompson 1952). With draws of
the generator alone these are the terms of eqs. 4 and 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.comparison.study import COMPARISON
from estimators.comparison.study_sources import (
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
from estimators.display import Result
from estimators.errors import InputError
from estimators.layout import response_positions

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "DRAWN",
    "Proposals",
    "balanced_log_terms",
    "drawn_response_mask",
    "drawn_responses",
    "mixture_logprob",
    "study_proposals",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

DRAWN = (GENERATOR, PROPOSAL, DISTINCT)
"""Sources whose tokens were drawn with a probability, in the order of the rows of :class:`Proposals`."""


@dataclass(frozen=True, eq=False, repr=False)
class Proposals(Result):
    """What each proposal of a study gives to its candidates.

    Attributes
    ----------
    source : ndarray of int, shape (item, candidate)
        Row of the proposal that drew the candidate (0 generator, 1 proposal, 2 distinct draws); -1 for free answers
        and empty cells, which were not drawn.
    candidate : ndarray, shape (3, item, candidate)
        ln of what one draw of the proposal gives to the token; for distinct draws ln of the inclusion probability
        over the number of them. Nats; NaN where unknown.
    """

    source: IntArray
    candidate: FloatArray


def balanced_log_terms(log_ratio: ArrayLike, item: ArrayLike, logprob: ArrayLike, proposal: ArrayLike) -> FloatArray:
    r"""Log-terms whose mean over an item's draws is :math:`Z = \sum_x r(x)`, by the balance heuristic.

    .. math:: \ln w_j = \ln r(x_j) - \ln \sum_k \frac{n_k}{n}\, p_k(x_j)

    An item whose draws have no common proposals (a probability that is needed is NaN) takes every draw's own
    proposal, :math:`\ln r - \ln p_k`, which is unbiased too and has the larger variance.

    Parameters
    ----------
    log_ratio : array_like of float, shape (draw,)
        ln r = ln h(x|c) - ln h(y|c), nats; the terms of a loss gap take ln r + ln g(y|c).
    item : array_like, shape (draw,)
        Label of the item, integers or strings.
    logprob : array_like of float, shape (proposal, draw)
        ln p_k of the draw's token under every proposal, nats; NaN where unknown.
    proposal : array_like of int, shape (draw,)
        Row of `logprob` from which the token was drawn.

    Returns
    -------
    ndarray of float, shape (draw,)
        Nats, in the order given.

    Raises
    ------
    InputError
        If shapes disagree, a proposal has no row, or a draw's own probability is unknown.

    Examples
    --------
    Two draws of a fair coin's faces and one of a proposal that is sure of heads; h is (.8, .2) and y is heads, so
    that Z is 1.25:

    >>> from estimators import comparison
    >>> logprob = np.log([[0.5, 0.5, 0.5], [1.0, 1e-9, 1.0]])
    >>> terms = comparison.balanced_log_terms(np.log([1, 0.25, 1]), [0, 0, 0], logprob, [0, 0, 1])
    >>> round(float(np.exp(terms).mean()), 6)
    1.25
    """
    ratio = np.asarray(log_ratio, dtype=float)
    labels, p, row = np.asarray(item), np.asarray(logprob, dtype=float), np.asarray(proposal)
    if ratio.ndim != 1 or labels.shape != ratio.shape or row.shape != ratio.shape:
        raise InputError(
            f"have shapes {ratio.shape}, {labels.shape}, {row.shape}; should be (draw,)",
            field="log_ratio, item, proposal",
        )
    if p.ndim != 2 or p.shape[1] != ratio.size:
        raise InputError(f"has shape {p.shape}, should be (proposal, {ratio.size})", field="logprob")
    if row.dtype.kind not in "iu" or not ((row >= 0) & (row < p.shape[0])).all():
        raise InputError(f"should be integers, 0 to {p.shape[0] - 1}", field="proposal")
    _, code = np.unique(labels, return_inverse=True)
    return ratio - _drawn_logprob(p, row.astype(np.intp), code)


def mixture_logprob(logprob: ArrayLike, n_draws: ArrayLike) -> FloatArray:
    r"""Ln of what one draw of a sample of several proposals gives to a token, :math:`\ln \sum_k n_k p_k / \sum_k n_k`.

    Parameters
    ----------
    logprob : array_like of float, shape (proposal, token)
        ln p_k, nats; may be NaN where a proposal was not used.
    n_draws : array_like of int, shape (proposal, token)
        Draws of each proposal in the token's item.

    Returns
    -------
    ndarray of float, shape (token,)
        NaN where a proposal that was used does not know the token. Where one alone was used, its own value to the bit.

    Examples
    --------
    >>> from estimators import comparison
    >>> np.exp(comparison.mixture_logprob(np.log([[0.2, 0.5], [0.4, 0.1]]), [[1, 3], [1, 0]])).round(2)
    array([0.3, 0.5])
    """
    p, n = np.asarray(logprob, dtype=float), np.asarray(n_draws, dtype=float)
    used = n > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(used, p + np.log(n / n.sum(axis=0)), -np.inf)
        mixture: FloatArray = np.logaddexp.reduce(share, axis=0)
    alone = used.sum(axis=0) == 1
    return np.where(alone, np.take_along_axis(p, used.argmax(axis=0)[None], axis=0)[0], mixture)


def _drawn_logprob(logprob: FloatArray, proposal: IntArray, item: IntArray) -> FloatArray:
    """Ln of the density by which each draw is divided; item by item the mixture's, or where unknown each draw's own."""
    own = logprob[proposal, np.arange(proposal.size)]
    if np.isnan(own).any():
        first = int(np.flatnonzero(np.isnan(own))[0])
        raise InputError(
            f"is unknown (NaN) at draw {first}, which comes from proposal {proposal[first]}", field="logprob"
        )
    balanced = mixture_logprob(logprob, draws_by_item(proposal, item, logprob.shape[0])[:, item])
    unknown = np.bincount(item, np.isnan(balanced)) > 0
    return np.where(unknown[item], own, balanced)


def draws_by_item(proposal: IntArray, item: IntArray, n_proposals: int) -> IntArray:
    """Count the draws of every proposal in every item, (proposal, item), items numbered from 0."""
    size = int(item.max()) + 1
    return np.bincount(proposal * size + item, minlength=n_proposals * size).reshape(n_proposals, size)


def study_proposals(study: xr.Dataset) -> Proposals:
    """Read from a study what each proposal gives to its candidates.

    Raises
    ------
    InputError
        If the probability with which a candidate was drawn is unknown.

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import comparison_study
    >>> comparison.study_proposals(comparison_study()).candidate[0, 0, :2].round(2)
    array([-0.29, -3.79])
    """
    of_study = COMPARISON.source(study)
    shape = study["candidate_token"].shape
    source, distinct = np.zeros(shape, dtype=np.intp), np.zeros(shape[0], dtype=np.intp)
    if not all_from_generator(study):
        kind = candidate_sources(study)
        source.fill(-1)
        for row, drawn in enumerate(DRAWN):
            source[kind == drawn] = row
        distinct = (kind == DISTINCT).sum(axis=1)
    generator = study["model"].values.tolist().index(study.attrs["generator"])
    candidate = np.full((len(DRAWN), *shape), np.nan)
    candidate[0] = study["candidate_logprob"].values[generator]
    for row, name in ((1, "proposal_logprob"), (2, "inclusion_logprob")):
        if name in study:
            candidate[row] = study[name].values
    candidate[2] -= np.log(np.maximum(distinct, 1))[:, None]
    unknown = (source >= 0) & np.isnan(np.take_along_axis(candidate, np.maximum(source, 0)[None], axis=0)[0])
    if unknown.any():
        item, column = np.argwhere(unknown)[0]
        row = int(source[item, column])
        field = ("candidate_logprob", "proposal_logprob", "inclusion_logprob")[row]
        raise InputError(
            f"is unknown at item {study['item'].values[item]}, candidate {column} ({int(unknown.sum())} such), which "
            f"is a {DRAWN[row]!r} draw; importance sampling needs the probability with which it was drawn",
            source=of_study,
            field=field,
        )
    return Proposals(source, candidate)


def pair_logprob(proposals: Proposals, position: IntArray, column: IntArray) -> FloatArray:
    """Ln of the density by which the term of each drawn pair is divided, (pair,); see :func:`balanced_log_terms`."""
    if not (proposals.source > 0).any():
        drawn: FloatArray = proposals.candidate[0, position, column]
        return drawn
    return _drawn_logprob(proposals.candidate[:, position, column], proposals.source[position, column], position)


def drawn_response_mask(study: xr.Dataset) -> NDArray[np.bool_]:
    """Which responses compare a drawn candidate with the target; see :func:`drawn_responses`.

    Returns
    -------
    ndarray of bool, shape (response,)

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import answered_study
    >>> drawn = comparison.drawn_response_mask(answered_study())
    >>> int(drawn.sum()), drawn.size
    (48, 71)
    """
    if all_from_generator(study):
        drawn = np.ones(study.sizes["response"], dtype=bool)
    else:
        rows, columns = response_positions(study), study["response_candidate"].values
        drawn = ~np.isin(candidate_sources(study)[rows, columns], (ANSWER, PADDING))
    drawn &= response_references(study) == TARGET_POSITION
    return drawn


def drawn_responses(study: xr.Dataset) -> xr.Dataset:
    """Keep the responses that equations 3 to 5 can use: those that compare a drawn candidate with the target.

    Left out are responses on people's free answers, which nobody drew with a known probability, and those that compare
    two candidates.

    Returns
    -------
    xarray.Dataset
        The study itself where all can be used.

    Raises
    ------
    InputError
        If there are responses, and none can be used.

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import comparison_study
    >>> study = comparison_study()
    >>> comparison.drawn_responses(study) is study
    True
    """
    source = COMPARISON.source(study)
    drawn = drawn_response_mask(study)
    if drawn.all():
        return study
    if not drawn.any():
        raise InputError(
            f"has {drawn.size} responses, and none compares a drawn candidate with the target",
            source=source,
        )
    return study.isel(response=np.flatnonzero(drawn))
