"""Training of a language model written out: one example after another, AdamW by hand, no Trainer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def rate(step: int, *, n_steps: int, warmup: int, highest: float, schedule: str) -> float:
    """Learning rate of a step, 0 being the first."""
    if step < warmup:
        return highest * step / warmup
    share = (step - warmup) / (n_steps - warmup)
    return highest * ((1 - share) if schedule == "linear" else (1 + math.cos(math.pi * share)) / 2)


def train_plainly(
    module: Any,
    blocks: Sequence[Any],
    order: Sequence[int],
    *,
    n_steps: int,
    batch_size: int,
    warmup: int,
    highest: float,
    schedule: str,
    weight_decay: float,
    max_norm: float = 1.0,
    epsilon: float = 1e-8,
) -> list[float]:
    """Loss of every step, each before the weights change; the module is changed."""
    import torch

    parameters = dict(module.named_parameters())
    moments = {name: (torch.zeros_like(its), torch.zeros_like(its)) for name, its in parameters.items()}
    losses = []
    for step in range(n_steps):
        batch = [blocks[i] for i in order[step * batch_size : (step + 1) * batch_size]]
        tokens = torch.from_numpy(np.stack(batch).astype(np.int64))
        logits = module(tokens).logits
        total = 0.0
        for row in range(len(batch)):
            log_probs = logits[row, :-1].log_softmax(-1)
            total = total - log_probs[torch.arange(tokens.shape[1] - 1), tokens[row, 1:]].mean()
        loss = total / len(batch)
        module.zero_grad()
        loss.backward()
        losses.append(loss.item())
        norm = math.sqrt(sum(float((its.grad.double() ** 2).sum()) for its in parameters.values()))
        scale = min(1.0, max_norm / (norm + 1e-6))
        at = rate(step, n_steps=n_steps, warmup=warmup, highest=highest, schedule=schedule)
        with torch.no_grad():
            for name, its in parameters.items():
                first, second = moments[name]
                gradient = its.grad * scale
                first.mul_(0.9).add_(gradient, alpha=0.1)
                second.mul_(0.999).add_(gradient**2, alpha=0.001)
                if its.dim() > 1:
                    # biases and layer norms are not drawn to zero
                    its.mul_(1 - at * weight_decay)
                up = first / (1 - 0.9 ** (step + 1))
                down = (second / (1 - 0.999 ** (step + 1))).sqrt() + epsilon
                its.sub_(at * up / down)
    return losses
