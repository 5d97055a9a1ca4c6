"""Perplexity of a loss that was estimated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def perplexity_of_loss(loss_nats: ArrayLike) -> Any:
    r"""Perplexity of a loss, or of the ends of its interval, kept where a perplexity can be."""
    with np.errstate(over="ignore"):
        found = np.maximum(np.exp(np.asarray(loss_nats, dtype=float)), 1.0)
    return float(found) if found.ndim == 0 else found
