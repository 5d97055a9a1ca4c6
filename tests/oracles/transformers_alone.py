"""Surprisal of tokens by transformers alone, one pass each."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


@cache
def loaded(folder: Path) -> tuple[Any, Any]:
    """Tokenizer and model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)


def surprisal_nats(folder: Path, before: list[int], ids: list[int]) -> np.ndarray:
    import torch

    module, found = loaded(folder)[1], []
    with torch.inference_mode():
        for at, token in enumerate(ids):
            row = torch.log_softmax(module(torch.tensor([[*before, *ids[:at]]])).logits[0, -1].double(), dim=-1)
            found.append(-float(row[token]))
    return np.array(found)
