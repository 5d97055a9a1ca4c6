"""Language models that are asked in text: those that run here and those behind an endpoint, by the same questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.language_models import (
    StoreFolder,
    StoreSettings,
    by_name,
    keys_are_names,
    open_work,
)
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.lm.engine import EngineBase, TextAnswers, open_engine
from shannon_game.inference.lm.settings import ModelSettings, OwnSettings
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.settings import Count, UserPath
from shannon_game.inference.text.prompts import PromptSettings, Question

AnyModel = ModelSettings | ApiSettings | OwnSettings
_Any = Annotated[AnyModel, Field(discriminator="source")]
TextModels = Annotated[Mapping[str, _Any], BeforeValidator(keys_are_names), AfterValidator(by_name)]
"""Models that answer in text, by name."""


class EndpointModels(StoreFolder):
    """Models, of which some may be behind an endpoint."""

    models: TextModels = Field(default_factory=dict)
    """Language models, by name; on the command line model=[smollm2], or model=[api] for one behind an endpoint."""
    api_store: UserPath = Path("api_answers.db")
    """SQLite file with the paid answers, to go on with and never to pay twice."""


class EndpointSettings(EndpointModels, StoreSettings):
    """What an experiment takes whose models may be behind an endpoint."""


class TextSettings(EndpointSettings):
    """What an experiment takes whose models answer in text."""

    prompt: PromptSettings = PromptSettings()
    """Texts of the questions."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """Of answers in text; 0 takes the most probable token every time."""
    max_tokens: Count = 12
    """Most tokens of an answer; what is cut off cannot be read."""


@dataclass(frozen=True, eq=False)
class TextPlayer:
    """A model that is asked in text."""

    name: str
    settings: TextSettings
    seed: int
    """Of the draws, above temperature 0."""
    work: Work
    engine: EngineBase


def text_players(settings: TextSettings, seed: int) -> Iterator[TextPlayer]:
    """Give the models of the settings, each loaded when it is its turn."""
    if not settings.models:
        raise InputError(
            f"names none; choose some, such as {Set('model', ['smollm2'])} or {Set('model', ['api'])}", field="model"
        )
    work = open_work(settings)
    for name, its in settings.models.items():
        yield TextPlayer(name, settings, seed, work, open_engine(name, its))


def ask_texts(player: TextPlayer, questions: Sequence[Question]) -> TextAnswers:
    """Ask a model questions that it answers in text; answers come from the store where they are there."""
    how = {"max_tokens": player.settings.max_tokens, "seed": player.seed}
    return player.engine.answers(player.work, questions, temperature=player.settings.temperature, **how)
