"""How a language model is trained or fine-tuned: steps, optimiser, precision, checkpoints."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.inference.settings import Count, Positive, Settings, Text

NotNegative = Annotated[float, Field(ge=0)]


class TrainingSettings(Settings):
    """Settings of :func:`shannon_game.inference.lm.training.train_model`, which hands them to transformers' Trainer."""

    n_epochs: Count = 1
    """How often every example is seen; without effect where n_steps is set."""
    n_steps: Count | None = None
    """Steps of the optimiser; null follows from n_epochs."""
    batch_size: Count = 16
    """Examples of one pass, on every device."""
    n_accumulated: Count = 1
    """Passes whose gradients make one step."""
    learning_rate: Positive = 6e-4
    """The highest of the schedule."""
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = "cosine"
    """How the learning rate falls after the first steps: to zero, or not at all."""
    warmup_steps: Annotated[int, Field(ge=0)] = 10
    """First steps, in which the learning rate rises from zero."""
    weight_decay: NotNegative = 0.1
    """Of AdamW; biases and layer norms have none."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the passes; weights and optimiser stay float32. auto: bfloat16 on a GPU that has it, float32 elsewhere."""
    device: Text = "auto"
    """auto (a GPU where there is one, else the CPU) or cpu."""
    log_every: Count = 10
    """Steps between two points of the loss curve."""
    save_every: Count = 100
    """Steps between two checkpoints, from which a stopped run goes on; a multiple of log_every."""
    evaluate_every: Count | None = None
    """Steps between two losses on held-out examples; null: save_every."""

    @model_validator(mode="after")
    def _curves_go_on(self) -> TrainingSettings:
        if self.device not in ("auto", "cpu"):
            raise InputError(
                f"is {self.device!r}, should be auto or cpu; CUDA_VISIBLE_DEVICES chooses GPUs", field="device"
            )
        if self.save_every % self.log_every:
            raise InputError(
                f"is {self.save_every}, should be a multiple of log_every={self.log_every}, so that a run that goes on "
                "has the loss curve of one that was never stopped",
                field="save_every",
            )
        return self

    def steps(self, n_examples: int) -> int:
        """Steps of the optimiser for so many examples; the last batch of an epoch is filled from the next epoch."""
        if self.n_steps is not None:
            return self.n_steps
        return max(1, -(-self.n_epochs * n_examples // (self.batch_size * self.n_accumulated)))


def example_order(n_examples: int, n_taken: int, *, seed: int) -> NDArray[np.int64]:
    """Order in which examples are seen: one random permutation after another, each with a stream of its own."""
    if n_examples < 1:
        raise InputError("has no example; there is nothing to train on", field="n_examples")
    epochs = range(-(-n_taken // n_examples))
    streams = (np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(epoch,))) for epoch in epochs)
    return np.concatenate([np.zeros(0, dtype=np.int64), *(one.permutation(n_examples) for one in streams)])[:n_taken]
