"""What a loaded model can do, found out by asking it twice in different ways."""

from __future__ import annotations

import inspect
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inference.lm.forward import LARGEST_TREE, reduce_last
from inference.lm.language_model import LanguageModel

if TYPE_CHECKING:
    import torch

__all__ = ["splits_head", "takes_trees"]

log = logging.getLogger(__name__)

# any tokens do
_PROBE_LENGTH = 8
# what configurations call the number of tokens that attention reaches back
_REACHES = ("sliding_window", "window_size", "attention_window", "attention_chunk_size")


def splits_head(model: LanguageModel) -> bool:
    """Whether logits are the output embedding times the last hidden state: not so with soft caps or scales.

    Parameters
    ----------
    model : LanguageModel

    Returns
    -------
    bool
    """
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
    """Whether a branching tree in one row gives what its branches give alone.

    Not so with, say, ALiBi positions, which are distances in the row, or where attention does not reach back as far
    as a tree is long: such models make a mask of their own from places in the row, or take the tree's as it is.

    Parameters
    ----------
    model : LanguageModel

    Returns
    -------
    bool
    """
    if "position_ids" not in inspect.signature(model.module.base_model.forward).parameters or _reach(model) is not None:
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
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            log.info("%s takes no tree mask: %s", model.name, error)
            return False
        results.append(rows)
    # single logits are off by rounding, all together are not
    tolerance = 1e-4 if model.settings.dtype == "float32" else 0.05
    return bool(np.abs(results[0] - results[1]).mean() <= tolerance)


def _reach(model: LanguageModel) -> int | None:
    """Tokens that attention reaches back in some layer, where that is less than a tree may be long."""
    config = model.module.config.get_text_config()
    reaches = [getattr(config, name, None) for name in _REACHES]
    short = [int(reach) for reach in reaches if reach is not None and 0 < int(reach) < LARGEST_TREE]
    return min(short, default=None)
