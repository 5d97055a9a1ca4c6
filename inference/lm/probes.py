"""What a loaded model can do, found out by asking it twice in different ways."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.inference.lm.forward import LARGEST_TREE, TokenTree, reduce_last, reduce_log_probs
from shannon_game.inference.lm.language_model import LanguageModel

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)

# any tokens do
_PROBE_LENGTH = 8
# what later tokens may move, in parts of what a token moves after itself. Passes of one shape round alike: 0 seen in
# 16 causal families on a CPU. Sums in no fixed order, as of experts on a GPU, may round by 1e-7 of a number in float32,
# by 4e-3 in bfloat16. Masked models of random weights: 0.003 at width 32, 0.1 at 512; 1 where attention is sharp
_LATER = {"float32": 1e-3}
_LATER_HALF = 0.02
# of passes of different shapes, which round differently
_ALONE = 10
_LEAST_NATS = 1e-5
# how configurations call the number of tokens that attention reaches back
_REACH = re.compile("window(_size)?$|chunk_size$")


def check_causal(model: LanguageModel) -> None:
    """Refuse a model whose distributions depend on anything but the tokens before them, on the path that scores."""
    n = min(_PROBE_LENGTH, model.max_tokens)
    if n < 2 or model.vocab_size < 2:
        return
    # of a quantised model activations may be rounded too, whatever type its numbers have
    is_rounded = getattr(model.module, "hf_quantizer", None) is not None
    later = _LATER_HALF if is_rounded else _LATER.get(model.settings.dtype, _LATER_HALF)
    for one, other in _pairs(model, n):
        rows = _log_probs(model, [one, *(np.concatenate([one[:at], other[at:]]) for at in range(1, n))])
        changed = rows.reshape(n, n, -1)
        moved = np.array([[mean_difference(changed[row, at], changed[0, at]) for at in range(n)] for row in range(n)])
        before = float(moved[np.tril_indices(n, -1)].mean())
        own = float(np.diag(moved)[1:].mean())
        alone = mean_difference(_log_probs(model, [one[: n // 2]]), changed[0, : n // 2])
        for nats, share, what in (
            (before, later, "later tokens change: it reads in both directions, as masked models do"),
            (alone, _ALONE * later, "its batch holds more tokens or other texts"),
        ):
            most = max(share * own, _LEAST_NATS)
            if not nats <= most:
                raise InputError(
                    f"{type(model.module).__name__} moves log-probabilities by {nats:.2g} nats, expected at most "
                    f"{most:.2g}, when {what}; use a causal model, such as gpt2, or "
                    f"{Set('experiment.method', 'pll')} for the pseudo-log-likelihood of a masked one",
                    source=f"model {model.name!r}",
                )
        if own > _LEAST_NATS:
            return
    log.warning("%s gives the same distribution after all tokens that were tried", model.name)


def _pairs(model: LanguageModel, n: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Two texts that differ everywhere but at the BOS token; where they say the same, those of farthest embeddings."""
    rng = np.random.default_rng(0)
    one = rng.integers(model.vocab_size, size=n)
    start = [] if model.bos_id is None else [model.bos_id]
    one[: len(start)] = start
    yield one, (one + rng.integers(1, model.vocab_size, size=n)) % model.vocab_size
    weight: Any = model.module.get_input_embeddings().weight
    far = int((weight - weight[0]).abs().amax(dim=1).argmax())
    yield np.zeros(n, dtype=np.int64), np.full(n, far)


def _log_probs(model: LanguageModel, sequences: Sequence[NDArray[np.int64]]) -> NDArray[np.float32]:
    """Log-probabilities after every token of sequences."""
    trees = [TokenTree(tokens, np.arange(-1, len(tokens) - 1)) for tokens in sequences]
    found = np.empty((sum(map(len, sequences)), model.vocab_size), dtype=np.float32)

    def keep(at: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        found[at] = log_probs.cpu().numpy()

    reduce_log_probs(model, trees, [np.arange(len(tokens)) for tokens in sequences], keep)
    return found


def mean_difference(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Mean difference of log-probabilities: single ones are off by rounding, all together are not."""
    both = np.isneginf(first) & np.isneginf(second)
    return float(np.abs(np.subtract(first, second, out=np.zeros_like(first), where=~both)).mean())


def splits_head(model: LanguageModel) -> bool:
    """Whether logits are the output embedding times the last hidden state: not so with soft caps or scales."""
    import torch  # noqa: PLC0415

    module = model.module
    tokens = torch.arange(min(_PROBE_LENGTH, model.vocab_size, model.max_tokens), device=model.device)[None]
    with torch.inference_mode():
        whole = module(input_ids=tokens, use_cache=False).logits.float()
        hidden = module.base_model(input_ids=tokens, use_cache=False).last_hidden_state
        head = module.get_output_embeddings()
        if hidden.shape[-1] != head.weight.shape[1]:
            return False
        split = head(hidden).float()
    tolerance = 1e-4 if model.settings.dtype == "float32" else 1e-2
    return bool((whole - split).abs().max() <= tolerance * max(1.0, float(whole.abs().max())))


def takes_trees(model: LanguageModel) -> bool:
    """Whether a branching tree in one row gives what its branches give alone."""
    takes_positions = "position_ids" in inspect.signature(model.module.base_model.forward).parameters
    if not takes_positions or _reach(model) is not None or model.max_tokens < 3:
        return False
    tokens = [number % model.vocab_size for number in range(3, 3 + min(_PROBE_LENGTH, model.max_tokens - 2))]
    branches = [[*tokens, 1, 2 % model.vocab_size], [*tokens, 2 % model.vocab_size], tokens]
    results = []
    for candidate in (replace(model, tree_attention=True), replace(model, tree_attention=False)):
        rows = np.full((len(branches), model.vocab_size), np.nan, dtype=np.float32)

        def keep(at: NDArray[np.intp], log_probs: torch.Tensor, rows: NDArray[np.float32] = rows) -> None:
            rows[at] = log_probs.cpu().numpy()

        try:
            reduce_last(candidate, branches, keep)
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError) as error:
            log.info("%s takes no tree mask: %s", model.name, error)
            return False
        results.append(rows)
    return mean_difference(results[0], results[1]) <= (1e-4 if model.settings.dtype == "float32" else 0.05)


def _reach(model: LanguageModel) -> int | None:
    """Tokens that attention reaches back in some layer, where that is less than a tree may be long."""
    config = model.module.config.get_text_config().to_dict()
    reaches = [value for name, value in config.items() if _REACH.search(name) and type(value) is int]
    return min((reach for reach in reaches if 0 < reach < LARGEST_TREE), default=None)
