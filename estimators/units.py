"""Losses in other units, and perplexity."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["bits_from_nats", "loss_from_perplexity", "nats_from_bits", "perplexity_from_loss"]


def perplexity_from_loss(loss_nats: ArrayLike) -> NDArray[np.float64]:
    """Perplexity exp(L) of a mean loss in nats a token.

    Parameters
    ----------
    loss_nats : array_like of float

    Returns
    -------
    ndarray of float
    """
    perplexity: NDArray[np.float64] = np.exp(np.asarray(loss_nats, dtype=float))
    return perplexity


def loss_from_perplexity(perplexity: ArrayLike) -> NDArray[np.float64]:
    """Mean loss ln(PPL) in nats a token.

    Parameters
    ----------
    perplexity : array_like of float

    Returns
    -------
    ndarray of float
    """
    loss: NDArray[np.float64] = np.log(np.asarray(perplexity, dtype=float))
    return loss


def bits_from_nats(nats: ArrayLike) -> NDArray[np.float64]:
    """Nats divided by ln 2.

    Parameters
    ----------
    nats : array_like of float

    Returns
    -------
    ndarray of float
    """
    bits: NDArray[np.float64] = np.asarray(nats, dtype=float) / np.log(2)
    return bits


def nats_from_bits(bits: ArrayLike) -> NDArray[np.float64]:
    """Bits times ln 2.

    Parameters
    ----------
    bits : array_like of float

    Returns
    -------
    ndarray of float
    """
    nats: NDArray[np.float64] = np.asarray(bits, dtype=float) * np.log(2)
    return nats
