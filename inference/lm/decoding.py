r"""Decoding: the distribution that a sampler makes of a model's next-token distribution before it draws.

.. math:: q'(y) \propto \mathbb{1}[y \in S]\; q(y)^{1/T}

The temperature :math:`T` comes first. The tokens kept, :math:`S`, are the :math:`k` most probable (top-k; Fan, Lewis
and Dauphin 2018), the fewest that hold a probability of :math:`p` (nucleus; Holtzman et al. 2020), or the best one.
Transformers' own warpers sort the whole vocabulary for it, which takes ten times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shannon_game.estimators.errors import InputError

if TYPE_CHECKING:
    import torch

# tokens that a nucleus is first looked for among
_FIRST_LOOK = 512
_MORE = 16


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
    exact = log_probs.double()
    if decoding.temperature != 1:
        exact = exact / decoding.temperature
        exact -= exact.logsumexp(dim=-1, keepdim=True)
    # out of place where `double` gave the caller's own tensor
    probabilities = exact.exp()
    if decoding.greedy:
        best = probabilities.argmax(dim=-1, keepdim=True)
        return probabilities.new_zeros(probabilities.shape).scatter_(-1, best, probabilities.gather(-1, best))
    if decoding.top_k is not None and decoding.top_k < probabilities.shape[-1]:
        least = probabilities.topk(decoding.top_k, dim=-1).values[..., -1:]
        probabilities = probabilities.masked_fill_(probabilities < least, 0.0)
    if decoding.top_p is not None and decoding.top_p < 1:
        probabilities = _nucleus(probabilities, decoding.top_p)
    return probabilities


def _nucleus(probabilities: torch.Tensor, top_p: float) -> torch.Tensor:
    """Keep the fewest tokens that hold ``top_p`` of each row's sum."""
    wanted = top_p * probabilities.sum(dim=-1, keepdim=True)
    n_tokens = probabilities.shape[-1]
    kept = probabilities.new_zeros(probabilities.shape)
    size = min(_FIRST_LOOK, n_tokens)
    while True:
        best = probabilities.topk(size, dim=-1)
        before = best.values.cumsum(dim=-1) - best.values
        # the token that reaches the probability is the last one kept
        kept.scatter_(-1, best.indices, best.values.masked_fill(before >= wanted, 0.0))
        if size == n_tokens or bool((before[:, -1:] + best.values[:, -1:] >= wanted).all()):
            return kept
        size = min(size * _MORE, n_tokens)
