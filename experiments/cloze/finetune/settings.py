"""Settings of ``+exp=finetune``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from shannon_game.experiments.cloze.settings import ComparableSettings
from shannon_game.experiments.harness.language_models import SMOLLM2, LiveModels, StoreFolder
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.inference.lm.training_settings import TrainingSettings
from shannon_game.inference.settings import Count, Positive, Probability

Label = Literal["majority", "sampled", "soft", "multi"]
Labels = Annotated[tuple[Label, ...], Field(min_length=1), BeforeValidator(lambda n: (n,) if isinstance(n, str) else n)]


class FineTuneSettings(Seeded, ComparableSettings, StoreFolder, TrainingSettings):
    """Settings of :func:`~shannon_game.experiments.cloze.finetune.experiment.finetune`."""

    models: LiveModels = Field(default_factory=lambda: {"smollm2": SMOLLM2})
    """Language models that are fine-tuned, each by itself; on the command line model=[smollm2,...]."""
    labels: Labels = ("soft",)
    """What a context's label is, one model for each. majority: the word that most people gave; sampled: one person's
    answer, at random; soft: people's shares; multi: every word that anybody gave, each as much as any other."""
    trainable: Literal["all", "last_blocks", "last_norms"] = "all"
    """Which parameters train: all; the last blocks and the last norm; the layer norms of these alone, as in appendix F
    of the paper on the Provo answers."""
    n_last_blocks: Count = 2
    """Blocks that count as the last ones."""
    n_texts: Count | None = None
    """Texts at random; null takes all."""
    n_folds: Annotated[int, Field(ge=2)] = 4
    """Parts into which texts are cut at random; each is held out once while the others train."""
    fold: Count | None = None
    """Hold out this part alone, 1 being the first; null: one after another, which trains n_folds models a label."""
    contexts_together: Count = 16
    """Neighbouring contexts of a text that make one example: they share its passes."""
    n_held_out_examples: Count = 8
    """Most held-out examples whose loss is computed while the model trains."""
    max_forms: Count = 6
    """Most strings that count as one of people's words, each looked up."""
    n_bootstrap: Annotated[int, Field(ge=100)] = 10_000
    """Bootstrap samples of texts."""
    level: Probability = 0.9
    """Of the intervals."""
    batch_size: Count = 1
    """Examples of one pass, on every device."""
    learning_rate: Positive = 3e-5
    """The highest of the schedule."""
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = "linear"
    """How the learning rate falls after the first steps: to zero, or not at all."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Of AdamW; biases and layer norms have none."""
    log_every: Count = 5
    """Steps between two points of the loss curve."""
