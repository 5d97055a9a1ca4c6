r"""Decoding: the distribution that a sampler makes of a model's next-token distribution before it draws.

.. math:: q'(y) \propto \mathbb{1}[y \in S]\; q(y)^{1/T}

The temperature :math:`T` comes first. The tokens kept, :math:`S`, are the :math:`k` most probable (top-k; Fan, Lewis
and Dauphin 2018), the fewest that hold a probability of :math:`p` (nucleus; Holtzman et al. 2020), or the best one.
The last two are transformers' own warpers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shannon_game.estimators.errors import InputError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Decoding:
    """How tokens are drawn; the default is ancestral sampling.

    Parameters
    ----------
    temperature : float
        Of the softmax, above 0; multiplies the temperature of the model's settings.
    top_k : int, optional
        Keep so many of the most probable tokens, and those that are as probable as the last of them.
    top_p : float, optional
        Keep the most probable tokens that together reach this probability, after ``temperature`` and ``top_k``.
    greedy : bool
        Take the most probable token, of equal ones the first; nothing else may be set then.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    greedy: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not 0 < self.temperature < float("inf"):
            raise InputError(f"is {self.temperature}, should be above 0 and finite", field="temperature")
        if self.top_k is not None and self.top_k < 1:
            raise InputError(f"is {self.top_k}, should be at least 1", field="top_k")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InputError(f"is {self.top_p}, should be above 0 and at most 1", field="top_p")
        if self.greedy and (self.temperature, self.top_k, self.top_p) != (1, None, None):
            raise InputError("is true; temperature, top_k and top_p say nothing then, leave them out", field="greedy")

    @property
    def label(self) -> str:
        """What names of players end in; "" for ancestral sampling."""
        parts = [f"t{self.temperature:g}"] if self.temperature != 1 else []
        parts += [f"k{self.top_k}"] if self.top_k is not None else []
        parts += [f"p{self.top_p:g}"] if self.top_p is not None else []
        return "greedy" if self.greedy else "-".join(parts)

    def record(self) -> dict[str, Any]:
        """Return plain values, for keys and attributes."""
        return {
            "temperature": float(self.temperature),
            "top_k": self.top_k,
            "top_p": self.top_p,
            "greedy": self.greedy,
        }


def decoded_probabilities(log_probs: torch.Tensor, decoding: Decoding) -> torch.Tensor:
    """Turn log-probabilities into weights of the tokens that a decoder draws from."""
    import torch  # noqa: PLC0415 - importing this module does not need it
    from transformers import TopKLogitsWarper, TopPLogitsWarper  # noqa: PLC0415

    scores: Any = log_probs.double() / decoding.temperature
    if decoding.greedy:
        best = scores.argmax(dim=-1, keepdim=True)
        return torch.zeros_like(scores).scatter_(-1, best, 1.0)
    # the first argument stands for the tokens so far, which are not looked at
    if decoding.top_k is not None:
        scores = TopKLogitsWarper(decoding.top_k)(scores, scores)
    if decoding.top_p is not None:
        scores = TopPLogitsWarper(decoding.top_p)(scores, scores)
    weights: torch.Tensor = scores.softmax(dim=-1)
    return weights
