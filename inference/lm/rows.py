"""Vocabulary-sized rows: made from last hidden states, normalised, and reduced while a cache holds them.

Work is cut into batches that fit in memory, with little padding; those that did not fit are halved.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.language_model import LanguageModel

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

# the largest batches that memory sufficed for, by kind; what did not fit once is not tried again
_SUFFICED: WeakKeyDictionary[LanguageModel, dict[str, int]] = WeakKeyDictionary()

# exp of it is 0, and 0 times it is 0, where 0 times minus infinity is no number
_LEAST_LOGPROB = -1e4
# of rows that are reduced at once on a CPU
_CACHE_BYTES = 3 << 20
# of an output embedding in 16 bits that are widened at once
_HEAD_ROWS = 1 << 14


def reduce_rows(
    model: LanguageModel,
    numbers: NDArray[np.intp],
    state: torch.Tensor,
    reduce: Callable[[NDArray[np.intp], torch.Tensor], None],
) -> None:
    """Compute distributions of the next token from last hidden states and hand them to a function, block by block."""
    on_cpu = state.device.type == "cpu"
    # asking a GPU for each block would have it wait
    are_bad: list[torch.Tensor] = []

    def one_block(block: NDArray[np.intp]) -> None:
        import torch  # noqa: PLC0415

        # the product with the output embedding wants many rows, what is taken from them a cache that holds them
        logits = _logits_of(model, state[torch.as_tensor(block, device=state.device)])
        at_once = max(1, _CACHE_BYTES // (4 * logits.shape[1])) if on_cpu else len(block)
        parts = np.split(block, range(at_once, len(block), at_once))
        for its, part in zip(parts, logits.split(at_once), strict=True):
            log_probs = _log_softmax(model, part)
            # one number that is none makes a row of them
            are_bad.append(log_probs[:, 0].isnan().any())
            if on_cpu:
                _check_numbers(model, are_bad)
            reduce(numbers[its], log_probs)

    per_block = max(1, (model.settings.logits_mib << 20) // (4 * model.vocab_size))
    for _ in run_batches([1] * len(numbers), per_block, one_block, of=(model, "rows")):
        pass
    _check_numbers(model, are_bad)


def _check_numbers(model: LanguageModel, are_bad: list[torch.Tensor]) -> None:
    import torch  # noqa: PLC0415

    if are_bad and bool(torch.stack(are_bad).any()):
        advice = "; use dtype float32 or bfloat16" if model.settings.dtype == "float16" else ""
        raise InputError(f"gives numbers that are none (NaN){advice}", source=f"model {model.name!r}")
    are_bad.clear()


def to_device(model: LanguageModel, numbers: NDArray[np.generic]) -> torch.Tensor:
    """Hand an array to the model's device; a GPU does not wait for it."""
    import torch  # noqa: PLC0415

    there = torch.from_numpy(numbers)
    return there.pin_memory().to(model.device, non_blocking=True) if model.device.type == "cuda" else there


class TokenScores:
    """Log-probability, rank and entropy of one token a row, and more; they stay on the device until all are there."""

    def __init__(self, model: LanguageModel, target: NDArray[np.int64]) -> None:
        self.target, self._model = target, model
        self._rows: list[NDArray[np.intp]] = []
        self._columns: list[torch.Tensor] = []

    def at(self, rows: NDArray[np.intp]) -> torch.Tensor:
        """Targets of rows, shape (row, 1)."""
        return to_device(self._model, self.target[rows])[:, None]

    def take(
        self, rows: NDArray[np.intp], log_probs: torch.Tensor, *more: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        """Score rows, and keep more numbers of theirs."""
        import torch  # noqa: PLC0415

        own = log_probs.gather(1, self.at(rows))
        columns = (own[:, 0], ranks_above(log_probs, own), entropies(log_probs), *(its(log_probs) for its in more))
        self._rows.append(rows)
        # whole numbers are exact up to 2**24
        self._columns.append(torch.stack([column.float() for column in columns]))

    def found(self, n_more: int = 0) -> list[NDArray[np.float32]]:
        """Columns of all rows in one transfer: log-probability, rank, entropy, and more."""
        import torch  # noqa: PLC0415

        columns = np.full((3 + n_more, self.target.size), np.nan, dtype=np.float32)
        columns[1] = 0
        if self._rows:
            columns[:, np.concatenate(self._rows)] = torch.cat(self._columns, dim=1).cpu().numpy()
            columns[1] += 1
        return list(columns)


def _logits_of(model: LanguageModel, state: torch.Tensor) -> torch.Tensor:
    """Logits in float32: of weights in 16 bits the product is not rounded to 16 bits again."""
    import torch  # noqa: PLC0415

    if not model.split_head:
        return state.float()
    head: torch.nn.Module = model.module.get_output_embeddings()
    logits: torch.Tensor
    # a layer that is loaded or replaced when it is called is called
    if type(head) is not torch.nn.Linear or hasattr(head, "_hf_hook") or state.dtype == torch.float32:
        logits = head(state).float()
        return logits
    if state.device.type == "cuda":
        logits = torch.mm(state, head.weight.T, out_dtype=torch.float32)
    else:
        # a part of the vocabulary at a time: twice the memory of all of it may not be there
        logits = torch.cat([state.float() @ part.float().T for part in head.weight.split(_HEAD_ROWS)], dim=1)
    bias: torch.Tensor | None = head.bias
    return logits if bias is None else logits.add_(bias)


def normalised(model: LanguageModel, logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities, in the place of the logits; numbers that are none are refused."""
    log_probs = _log_softmax(model, logits)
    _check_numbers(model, [log_probs[:, 0].isnan().any()])
    return log_probs


def _log_softmax(model: LanguageModel, logits: torch.Tensor) -> torch.Tensor:
    if model.settings.temperature != 1:
        logits /= model.settings.temperature
    # torch.log_softmax adds up a vocabulary one after another on a CPU, to 1e-5; this adds in pairs, to 1e-7
    logits -= logits.amax(dim=-1, keepdim=True)
    # the largest is 0 now: logsumexp would look for it again
    log_probs: torch.Tensor = logits.sub_(logits.exp().sum(dim=-1, keepdim=True).log_())
    return log_probs


def ranks_above(log_probs: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Count the tokens that are more probable than one of them."""
    import torch  # noqa: PLC0415 - importing this module does not need it

    # on a CPU zeros and ones as numbers take a fifth of the time of booleans and their sum
    return torch.gt(log_probs, own, out=torch.empty_like(log_probs)).sum(dim=-1).int()


def entropies(log_probs: torch.Tensor) -> torch.Tensor:
    r"""Compute :math:`-\sum_y q(y) \ln q(y)` of rows."""
    # the logarithms are there: torch.special.entr would take them again, four times as slow
    if log_probs.device.type == "cpu":
        found = log_probs.exp().mul_(log_probs).sum(dim=-1).neg_()
        # asking a GPU would have it wait
        if not bool(found.isnan().any()):
            return found
    return log_probs.exp().mul_(log_probs.clamp(min=_LEAST_LOGPROB)).sum(dim=-1).neg_()


def run_batches(
    lengths: Sequence[int],
    tokens_per_batch: int,
    compute: Callable[[NDArray[np.intp]], _Result],
    *,
    tokens_per_pass: int = 0,
    of: tuple[LanguageModel, str] | None = None,
) -> Iterator[tuple[NDArray[np.intp], _Result]]:
    """Compute sequences in batches of similar length; where memory does not suffice, in smaller ones.

    Later calls for the same model and kind of batch, `of`, begin with the smaller ones.
    """
    sufficed = {} if of is None else _SUFFICED.setdefault(of[0], {})
    kind = "" if of is None else of[1]
    budget = min(tokens_per_batch, sufficed.get(kind, tokens_per_batch))
    length = np.asarray(lengths, dtype=np.intp)
    order = np.argsort(-length, kind="stable")
    sizes = cut_batches(length[order], budget, tokens_per_pass)
    start = 0
    while start < len(order):
        batch = order[start : start + sizes[0]]
        try:
            result = compute(batch)
        except RuntimeError as error:
            if len(batch) == 1 or not _out_of_memory(error):
                raise
            # the frames in the traceback hold the tensors that were too much
            error.__traceback__ = None
            half = (len(batch) + 1) // 2
            budget = sufficed[kind] = half * max(int(length[batch[0]]), 1)
            sizes = cut_batches(length[order[start:]], budget, tokens_per_pass)
            log.warning("a batch of %d sequences did not fit in memory; trying %d at a time", len(batch), half)
        else:
            yield batch, result
            # the next batch may need its memory
            del result
            start += sizes.pop(0)
            continue
        _free()


def cut_batches(lengths: NDArray[np.intp], tokens_per_batch: int, tokens_per_pass: int = 0) -> list[int]:
    """Cut sorted sequences into batches, so that the passes cost least."""
    length = np.maximum(lengths, 1)
    n = len(length)
    if tokens_per_pass == 0 or n == 0 or length[0] == length[-1]:
        sizes, start = [], 0
        while start < n:
            sizes.append(min(max(1, tokens_per_batch // int(length[start])), n - start))
            start += sizes[-1]
        return sizes
    # cost of the first sequences, and where the last batch of them begins: the shortest path over all cuts
    cost = np.zeros(n + 1, dtype=np.int64)
    begins = np.zeros(n + 1, dtype=np.intp)
    first = 0
    for end in range(1, n + 1):
        while first < end - 1 and (end - first) * length[first] > tokens_per_batch:
            first += 1
        its = cost[first:end] + np.arange(end - first, 0, -1) * length[first:end]
        best = int(its.argmin())
        cost[end], begins[end] = its[best] + tokens_per_pass, first + best
    sizes = []
    end = n
    while end > 0:
        sizes.append(int(end - begins[end]))
        end = int(begins[end])
    return sizes[::-1]


def _out_of_memory(error: RuntimeError) -> bool:
    # torch.OutOfMemoryError is a RuntimeError; the allocators of mps and of the CPU raise a plain one
    told = str(error).lower()
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in told or "can't allocate memory" in told


def _free() -> None:
    import torch  # noqa: PLC0415 - whoever got here has it

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
