"""Vocabulary-sized rows: made from last hidden states, normalised, and reduced while a cache holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError
from inference.lm.batching import run_batches
from inference.lm.language_model import LanguageModel

if TYPE_CHECKING:
    import torch

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
            reduce(numbers[its], _normalised(model, part))

    per_block = max(1, (model.settings.logits_mib << 20) // (4 * model.vocab_size))
    for _ in run_batches([1] * len(numbers), per_block, one_block):
        pass


def log_probs_of(model: LanguageModel, state: torch.Tensor) -> torch.Tensor:
    """Compute distributions of the next token from last hidden states, or from logits."""
    return _normalised(model, _logits_of(model, state))


def _logits_of(model: LanguageModel, state: torch.Tensor) -> torch.Tensor:
    return (model.module.get_output_embeddings()(state) if model.split_head else state).float()


def _normalised(model: LanguageModel, logits: torch.Tensor) -> torch.Tensor:
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
