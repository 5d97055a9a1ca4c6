"""Settings of the experiment on players that answer in text."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from shannon_game.experiments.harness.settings import Seeded
from shannon_game.experiments.harness.text_models import TextSettings
from shannon_game.inference.settings import Count

VERBALISED: Final = "verbalised"
BOXES: Final = "boxes"
OPTIONS: Final = "options"

Ways = Annotated[
    tuple[Literal["verbalised", "boxes", "options"], ...],
    Field(min_length=1),
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
]


class TextPlayersSettings(Seeded, TextSettings):
    """Settings of :func:`~shannon_game.experiments.comparison.text_players.experiment.text_players`."""

    ways: Ways = (VERBALISED, OPTIONS)
    """verbalised: the model writes one of the game's eleven values; boxes: the mean of these values by their
    probabilities as its answer (only of models that run here); options: probabilities of A and B as first token of its
    answer."""
    belief: bool = True
    """Compare with what the model believes: its own probabilities of both tokens. Only of models that run here."""
    candidates: Count | None = None
    """Ask about so many of every item's candidates, the first ones; null asks about the pairs that people answered."""
    pairs_per_item: Count | None = None
    """At most so many pairs of an item, drawn at random; null takes all."""
    items_per_batch: Count = 32
    """Most questions of a batch: what a killed run loses."""
