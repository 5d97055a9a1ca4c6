"""Vocabulary-sized rows: made from last hidden states, normalised, and reduced while a cache holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.batching import run_batches
from shannon_game.inference.lm.language_model import LanguageModel

if TYPE_CHECKING:
    import torch

# exp of it is 0, and 0 times it is 0, where 0 times minus infinity is no number
_LEAST_LOGPROB = -1e4
# of rows that are reduced at once on a CPU
_CACHE_BYTES = 3 << 20


def reduce_rows(
    model: LanguageModel,
    numbers: NDArray[np.intp],
    state: torch.Tensor,
    reduce: Callable[[NDArray[np.intp], torch.Tensor], None],
) -> None:
    """Compute distributions of the next token from last hidden states and hand them to a function, block by block."""

    def one_block(block: NDArray[np.intp]) -> None:
        import torch  # noqa: PLC0415

        # the product with the output embedding wants many rows, what is taken from them a cache that holds them
        logits = _logits_of(model, state[torch.as_tensor(block, device=state.device)])
        on_cpu = logits.device.type == "cpu"
        at_once = max(1, _CACHE_BYTES // (4 * logits.shape[1])) if on_cpu else len(block)
        parts = np.split(block, range(at_once, len(block), at_once))
        for its, part in zip(parts, logits.split(at_once), strict=True):
            reduce(numbers[its], normalised(model, part))

    per_block = max(1, (model.settings.logits_mib << 20) // (4 * model.vocab_size))
    for _ in run_batches([1] * len(numbers), per_block, one_block):
        pass


class TokenScores:
    """Log-probability, rank and entropy of one token a row, filled in block by block."""

    def __init__(self, target: NDArray[np.int64]) -> None:
        self.target = target
        self.logprob, self.entropy = (np.full(target.shape, np.nan, dtype=np.float32) for _ in range(2))
        self.rank = np.zeros(target.shape, dtype=np.int64)

    def take(self, rows: NDArray[np.intp], log_probs: torch.Tensor) -> torch.Tensor:
        """Score rows; gives their targets, shape (row, 1)."""
        import torch  # noqa: PLC0415

        at = torch.from_numpy(self.target[rows]).to(log_probs.device)[:, None]
        own = log_probs.gather(1, at)
        self.logprob[rows] = own[:, 0].cpu().numpy()
        self.rank[rows] = 1 + ranks_above(log_probs, own).cpu().numpy()
        self.entropy[rows] = entropies(log_probs).cpu().numpy()
        return at


def _logits_of(model: LanguageModel, state: torch.Tensor) -> torch.Tensor:
    return (model.module.get_output_embeddings()(state) if model.split_head else state).float()


def normalised(model: LanguageModel, logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities, in the place of the logits."""
    if model.settings.temperature != 1:
        logits /= model.settings.temperature
    # torch.log_softmax adds up a vocabulary one after another on a CPU, to 1e-5; this adds in pairs, to 1e-7
    logits -= logits.amax(dim=-1, keepdim=True)
    # the largest is 0 now: logsumexp would look for it again
    log_probs: torch.Tensor = logits.sub_(logits.exp().sum(dim=-1, keepdim=True).log_())
    # one number that is none makes a row of them
    if bool(log_probs[:, 0].isnan().any()):
        advice = "; use dtype float32 or bfloat16" if model.settings.dtype == "float16" else ""
        raise InputError(f"gives numbers that are none (NaN){advice}", source=f"model {model.name!r}")
    return log_probs


def ranks_above(log_probs: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Count the tokens that are more probable than one of them."""
    import torch  # noqa: PLC0415 - importing this module does not need it

    # on a CPU zeros and ones as numbers take a fifth of the time of booleans and their sum
    return torch.gt(log_probs, own, out=torch.empty_like(log_probs)).sum(dim=-1).int()


def entropies(log_probs: torch.Tensor) -> torch.Tensor:
    r"""Compute :math:`-\sum_y q(y) \ln q(y)` of rows."""
    # the logarithms are there: torch.special.entr would take them again, four times as slow
    found = log_probs.exp().mul_(log_probs).sum(dim=-1).neg_()
    if bool(found.isnan().any()):
        return log_probs.exp().mul_(log_probs.clamp(min=_LEAST_LOGPROB)).sum(dim=-1).neg_()
    return found
