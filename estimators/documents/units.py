"""Loss by the token, word, character and byte, in nats and in bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from estimators.display import Result
from estimators.documents.corpus import ClusteredMean
from estimators.errors import InputError

__all__ = ["UnitLoss", "unit_loss"]


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

    (the linearised variance of a ratio; Cochran 1977, section 6.3). Without a unit it is NaN.

    Parameters
    ----------
    total_nats : array_like of float, shape (document,)
        Sum of -ln q over the tokens of each document.
    n_units : array_like of float, shape (document,)

    Raises
    ------
    InputError
        If there is no document, the shapes differ, a loss is not finite, or a number of units is negative.

    Examples
    --------
    >>> from estimators import documents
    >>> found = documents.unit_loss([5.0, 4.0], [4, 2])
    >>> found.nats, found.bits
    (ClusteredMean(mean=1.5, se=0.3333), ClusteredMean(mean=2.164, se=0.4809))
    """
    total, units = np.asarray(total_nats, dtype=float), np.asarray(n_units, dtype=float)
    if total.ndim != 1 or total.shape != units.shape or not total.size:
        raise InputError(
            f"has shape {total.shape} for units of shape {units.shape}; one or more documents, and a number for each",
            field="total_nats",
        )
    if not np.isfinite(total).all():
        bad = int(np.flatnonzero(~np.isfinite(total))[0])
        raise InputError(f"is {total[bad]} for document {bad}, should be finite", field="total_nats")
    n = float(units.sum())
    if not (units >= 0).all():
        raise InputError(f"is {units.min():g}, should be 0 or more for each document", field="n_units")
    mean = float(total.sum() / n) if n else float("nan")
    se = float("nan")
    size = int((units > 0).sum())
    if size > 1:
        se = float(np.sqrt(size / (size - 1) * np.sum((total - mean * units) ** 2)) / n)
    ln2 = float(np.log(2))
    return UnitLoss(n, ClusteredMean(mean, se), ClusteredMean(mean / ln2, se / ln2))
