"""Loss, perplexity and top-1 accuracy of a model on documents, with intervals clustered by document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, repr=False)
class ClusteredMean(Result):
    """A mean over tokens and its standard error (NaN with a single document), documents being what was sampled."""

    mean: float
    se: float


@dataclass(frozen=True, repr=False)
class CorpusScores(Result):
    r"""Scores of a model on a corpus; natural logarithms.

    Parameters
    ----------
    n_documents, n_tokens : int
        Documents with a scored token, and scored tokens.
    loss_nats : ClusteredMean
        Mean of :math:`-\ln q` over all tokens.
    perplexity_of_token_mean : float
        :math:`\exp` of ``loss_nats``: what most papers print.
    mean_sequence_perplexity : ClusteredMean
        Mean over documents of each one's own perplexity, as in table 1 of Shlegeris et al. (2022): never less than
        the exponential of the mean loss over documents, and led by the worst documents.
    top1_accuracy : ClusteredMean
        Share of tokens that were the model's best guess.
    bits_per_byte : float
        Total loss over the number of UTF-8 bytes of the scored text: comparable across tokenizers. NaN without bytes.
    """

    n_documents: int
    n_tokens: int
    loss_nats: ClusteredMean
    perplexity_of_token_mean: float
    mean_sequence_perplexity: ClusteredMean
    top1_accuracy: ClusteredMean
    bits_per_byte: float


def clustered_mean(values: ArrayLike, cluster: ArrayLike) -> ClusteredMean:
    r"""Mean over all values, with the standard error of a ratio of cluster totals.

    .. math:: \mathrm{se}^2 = \frac{D}{D - 1} \frac{1}{N^2} \sum_d \Big(\sum_{i \in d} (v_i - \bar v)\Big)^2

    for :math:`D` clusters and :math:`N` values (the linearised variance of a cluster sample; Cochran 1977, section
    9A.2, without the finite-population correction).

    Examples
    --------
    >>> documents.clustered_mean([1.0, 2.0, 3.0], cluster=["a", "a", "b"])
    ClusteredMean(mean=2, se=0.6667)
    """
    numbers = np.asarray(values, dtype=float)
    labels = np.asarray(cluster)
    if numbers.ndim != 1 or numbers.shape != labels.shape or numbers.size == 0:
        problem = f"has shape {numbers.shape} for clusters of shape {labels.shape}; one or more, and a cluster for each"
        raise InputError(problem, field="values")
    member = np.unique(labels, return_inverse=True)[1]
    return _ratio(np.bincount(member, weights=numbers).astype(float), np.bincount(member).astype(float))


def _ratio(total: NDArray[np.float64], units: NDArray[np.integer | np.floating]) -> ClusteredMean:
    """Total by unit, and its linearised standard error over clusters."""
    n, size = float(units.sum()), int((units > 0).sum())
    mean = float(total.sum() / n) if n else float("nan")
    if size < 2:
        return ClusteredMean(mean, float("nan"))
    return ClusteredMean(mean, float(np.sqrt(size / (size - 1) * np.sum((total - mean * units) ** 2)) / n))


def corpus_scores(
    logprob: ArrayLike, is_best: ArrayLike, document: ArrayLike, *, n_bytes: float | None = None
) -> CorpusScores:
    """Summarise the scores of every token of some documents: ln p, nats, and whether it was the model's best guess.

    `n_bytes` are the UTF-8 bytes of the scored text.

    Examples
    --------
    >>> scores = documents.corpus_scores(
    ...     [-2.0, -1.0, -3.0], is_best=[True, True, False], document=["a", "a", "b"], n_bytes=12
    ... )
    >>> round(scores.perplexity_of_token_mean, 2), round(scores.bits_per_byte, 2)
    (7.39, 0.72)
    """
    nats = -np.asarray(logprob, dtype=float)
    labels = np.asarray(document)
    if not np.isfinite(nats).all():
        bad = int(np.flatnonzero(~np.isfinite(nats))[0])
        raise InputError(f"is {-nats[bad]} at token {bad}, should be finite", field="logprob")
    best = np.asarray(is_best, dtype=float)
    if nats.ndim != 1 or not nats.shape == labels.shape == best.shape or not nats.size:
        problem = f"has shape {nats.shape} for documents of shape {labels.shape}; one or more, and a document for each"
        raise InputError(problem, field="logprob")
    _, member = np.unique(labels, return_inverse=True)
    total, n_best = (np.bincount(member, weights=its).astype(float) for its in (nats, best))
    return scores_of_documents(total, np.bincount(member), n_best, n_bytes=n_bytes)


def scores_of_documents(
    total_nats: NDArray[np.float64],
    n_tokens: NDArray[np.integer | np.floating],
    n_best: NDArray[np.float64],
    *,
    n_bytes: float | None = None,
) -> CorpusScores:
    """Compute :func:`corpus_scores` from the sums of documents, each of which has a token."""
    loss, sequence_loss = _ratio(total_nats, n_tokens), total_nats / n_tokens
    return CorpusScores(
        n_documents=len(sequence_loss),
        n_tokens=int(n_tokens.sum()),
        loss_nats=loss,
        perplexity_of_token_mean=float(np.exp(loss.mean)),
        mean_sequence_perplexity=clustered_mean(np.exp(sequence_loss), np.arange(len(sequence_loss))),
        top1_accuracy=_ratio(n_best, n_tokens),
        bits_per_byte=float("nan") if n_bytes is None else float(total_nats.sum() / np.log(2) / n_bytes),
    )


@dataclass(frozen=True, repr=False)
class UnitLoss(Result):
    """Loss of a model on some documents, for each unit of text; documents are what was sampled."""

    n_units: float
    nats: ClusteredMean
    bits: ClusteredMean


def unit_loss(total_nats: ArrayLike, n_units: ArrayLike) -> UnitLoss:
    r"""Divide the loss of documents by their tokens, words, characters or bytes.

    Losses a token of two models compare only where both have the same tokens; losses a character or byte of the same
    text always do. With :math:`L_d` the loss and :math:`n_d` the units of document :math:`d`,

    .. math:: \bar\ell = \frac{\sum_d L_d}{\sum_d n_d}, \qquad
        \mathrm{se}^2 = \frac{D}{D - 1} \frac{\sum_d (L_d - \bar\ell n_d)^2}{(\sum_d n_d)^2}

    (the linearised variance of a ratio; Cochran 1977, section 6.3). Without a unit it is NaN. `total_nats` has the sum
    of -ln q over the tokens of each document.

    Examples
    --------
    >>> found = documents.unit_loss([5.0, 4.0], [4, 2])
    >>> found.nats, found.bits
    (ClusteredMean(mean=1.5, se=0.3333), ClusteredMean(mean=2.164, se=0.4809))
    """
    total, units = np.asarray(total_nats, dtype=float), np.asarray(n_units, dtype=float)
    if total.ndim != 1 or total.shape != units.shape or not total.size:
        problem = f"has shape {total.shape} for units of shape {units.shape}; one number for each document"
        raise InputError(problem, field="total_nats")
    if not np.isfinite(total).all():
        bad = int(np.flatnonzero(~np.isfinite(total))[0])
        raise InputError(f"is {total[bad]} for document {bad}, should be finite", field="total_nats")
    if not (units >= 0).all():
        raise InputError(f"is {units.min():g}, should be 0 or more for each document", field="n_units")
    nats, ln2 = _ratio(total, units), float(np.log(2))
    return UnitLoss(float(units.sum()), nats, ClusteredMean(nats.mean / ln2, nats.se / ln2))
