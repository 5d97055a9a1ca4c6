"""Perplexity of a loss that was estimated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["perplexity_of_loss"]


def perplexity_of_loss(loss_nats: ArrayLike) -> Any:
    r"""Perplexity of a loss, or of the ends of its interval, kept where a perplexity can be.

    .. math:: \mathrm{PPL} = \max(1, e^{\mathrm{loss}})

    No loss is below 0, but an estimate of one can be, and the lower end of its interval more often. There the
    perplexity is 1. The cut is one of the interval with the values that are possible: the truth is never cut off, so
    that the interval holds it as often as before. The loss itself stays as estimated, as a cut would bias its mean.

    Parameters
    ----------
    loss_nats : array_like
        Nats a token; NaN stays NaN.

    Returns
    -------
    float or ndarray
        At least 1; infinite where it is beyond every number.

    Examples
    --------
    >>> [round(float(each), 2) for each in perplexity_of_loss([-0.3, 0.0, 2.0])]
    [1.0, 1.0, 7.39]
    """
    with np.errstate(over="ignore"):
        found = np.maximum(np.exp(np.asarray(loss_nats, dtype=float)), 1.0)
    return float(found) if found.ndim == 0 else found
