"""Settings of ``+exp=train``."""

from __future__ import annotations

from shannon_game.experiments.harness.language_models import StoreFolder
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.inference.lm.minimal_model import ShapeSettings
from shannon_game.inference.lm.training_settings import TrainingSettings
from shannon_game.inference.settings import Count, Probability, Text

__all__ = ["TrainSettings"]


class TrainSettings(Seeded, StoreFolder, TrainingSettings):
    """Settings of :func:`~shannon_game.experiments.documents.train.experiment.train`."""

    name: Text = "trained"
    """What tables and figures call the model."""
    shape: ShapeSettings = ShapeSettings()
    """The model and its tokenizer."""
    train_split: Text | None = None
    """Split of the study that is trained on, all others being held out; null: "train" where the study has one, else
    documents at random."""
    held_out: Probability = 0.1
    """Share of the documents that is held out where the study has no splits."""
    n_held_out_blocks: Count = 64
    """Most blocks of held-out text whose loss is computed while the model trains."""
    n_scored: Count | None = 200
    """Documents of each split, at random, that the trained model is scored on; null scores all."""
    ngram: Count = 13
    """Words of a sequence for which held-out documents are looked through: does it stand in training documents too?"""
