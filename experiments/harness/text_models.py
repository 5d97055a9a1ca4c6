"""Language models that are asked in text: those that run here and those behind an endpoint, by the same questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.language_models import (
    StoreSettings,
    Work,
    batches_in_order,
    by_name,
    keys_are_names,
    open_work,
)
from shannon_game.inference.api.chat import ChatAnswer, ChatQuestion, ask_questions
from shannon_game.inference.api.client import UnusableCallError
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.lm.continuations import continuation_log_probs
from shannon_game.inference.lm.generation import generate, option_log_probs
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.prompting import prompt_tokens
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.progress import stage
from shannon_game.inference.settings import Count, UserPath
from shannon_game.inference.store.keys import OperationKey, context_seed, operation_key, result_key
from shannon_game.inference.text.prompts import PromptSettings, Question

_Compute = Callable[[list[tuple[Question, str]]], Mapping[str, NDArray[Any]]]


_Either = Annotated[ModelSettings | ApiSettings, Field(discriminator="source")]
TextModels = Annotated[Mapping[str, _Either], BeforeValidator(keys_are_names), AfterValidator(by_name)]
"""Models that answer in text, by name."""


class EndpointSettings(StoreSettings):
    """What an experiment takes whose models may be behind an endpoint."""

    models: TextModels = Field(default_factory=dict)
    """Language models, by name; on the command line model=[smollm2], or model=[api] for one behind an endpoint."""
    api_store: UserPath = Path("api_answers.db")
    """SQLite file with the paid answers, to go on with and never to pay twice."""


class TextSettings(EndpointSettings):
    """What an experiment takes whose models answer in text."""

    prompt: PromptSettings = PromptSettings()
    """Texts of the questions."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """Of answers in text; 0 takes the most probable token every time."""
    max_tokens: Count = 12
    """Most tokens of an answer; what is cut off cannot be read."""


@dataclass(frozen=True, eq=False)
class TextAnswers:
    """What a model answered, by question; None where an endpoint gave no usable answer."""

    text: list[str | None]
    finished: NDArray[np.bool_]
    """The model ended the answer."""
    said: str = ""
    """For the report: what it cost, or nothing."""


@dataclass(frozen=True, eq=False)
class OptionLogProbs:
    """How probable a model finds the options as first token of its answer."""

    logprob: FloatArray
    """Shape (question, option): nats, not renormalised; NaN where an endpoint named none of the options."""
    said: str = ""


@dataclass(frozen=True, eq=False)
class TextPlayer:
    """A model that is asked in text; `model` is None for one behind an endpoint."""

    name: str
    settings: TextSettings
    seed: int
    """Of the draws, above temperature 0."""
    work: Work
    model: LanguageModel | None


def text_players(settings: TextSettings, seed: int) -> Iterator[TextPlayer]:
    """Give the models of the settings, each loaded when it is its turn."""
    if not settings.models:
        raise InputError(
            f"names none; choose some, such as {Set('model', ['smollm2'])} or {Set('model', ['api'])}", field="model"
        )
    work = open_work(settings)
    for name, its in settings.models.items():
        yield TextPlayer(name, settings, seed, work, None if isinstance(its, ApiSettings) else load_language_model(its))


def ask_texts(player: TextPlayer, questions: Sequence[Question]) -> TextAnswers:
    """Ask a model questions that it answers in text; answers come from the store where they are there."""
    settings, model = player.settings, player.model
    if model is None:
        given, said = _through_endpoint(player, questions, ranked=False)
        texts = [its.text if isinstance(its, ChatAnswer) else None for its in given]
        finished = np.array([isinstance(its, ChatAnswer) and its.finished for its in given], dtype=np.bool_)
        return TextAnswers(texts, finished, said)
    parameters: dict[str, Any] = {"max_tokens": settings.max_tokens, "temperature": settings.temperature}

    def compute(batch: list[tuple[Question, str]]) -> dict[str, NDArray[Any]]:
        seeds = [context_seed(player.seed, key) for _, key in batch]
        with _prompts(model, batch) as (prompts, done):
            found = generate(model, prompts, seeds=seeds, progress=done, **parameters)
        return {"text": np.array(found.text, dtype=object), "finished": found.finished}

    # without draws the seed decides nothing
    seed = {"seed": player.seed} if settings.temperature else {}
    key = operation_key("text_answers", model=model.identity, parameters=parameters | seed, compute=compute)
    found = _computed(player, model, key, questions, compute)
    return TextAnswers([str(text) for text in found["text"]], np.asarray(found["finished"], dtype=np.bool_))


def ask_options(player: TextPlayer, questions: Sequence[Question], options: Sequence[str]) -> OptionLogProbs:
    """Ask a model how probable it finds options as the first token of its answer.

    A model that runs gives exact probabilities. An endpoint lists the most probable tokens: an option that is not
    among them counts with the probability of the last one listed, which is the most that it can have.
    """
    model = player.model
    if model is None:
        given, said = _through_endpoint(player, questions, ranked=True)
        return OptionLogProbs(np.array([_listed(its, options) for its in given]).reshape(-1, len(options)), said)

    def compute(batch: list[tuple[Question, str]]) -> dict[str, NDArray[Any]]:
        with _prompts(model, batch) as (prompts, done):
            return {"logprob": option_log_probs(model, prompts, options, progress=done)}

    key = operation_key("text_options", model=model.identity, parameters={"options": [*options]}, compute=compute)
    found = _computed(player, model, key, questions, compute)
    return OptionLogProbs(np.asarray(found["logprob"], dtype=np.float64).reshape(-1, len(options)))


def ask_values(player: TextPlayer, questions: Sequence[Question], values: Sequence[str]) -> FloatArray:
    """Ask a model that runs here how probable it finds each of some values as the beginning of its answer."""
    model = player.model
    if model is None:
        problem = "is behind an endpoint, which says no probability of a given answer; leave 'boxes' out of the ways"
        raise InputError(problem, source=f"model {player.name!r}", field="ways")

    def compute(batch: list[tuple[Question, str]]) -> dict[str, NDArray[Any]]:
        with _prompts(model, batch) as (prompts, done):
            found = continuation_log_probs(model, prompts, [values] * len(prompts), bos=False, progress=done)
        return {"logprob": np.stack(found)}

    key = operation_key("text_values", model=model.identity, parameters={"values": [*values]}, compute=compute)
    found = _computed(player, model, key, questions, compute)
    return np.asarray(found["logprob"], dtype=np.float64).reshape(-1, len(values))


@contextmanager
def _prompts(model: LanguageModel, batch: list[tuple[Question, str]]) -> Iterator[tuple[Any, Callable[[int], None]]]:
    """Give a batch as tokens, and show how far it is: on a processor one batch takes minutes."""
    prompts = prompt_tokens(model, [(question.system, question.user) for question, _ in batch])
    done = 0
    with stage("of this batch", len(prompts)) as show:

        def more(count: int) -> None:
            nonlocal done
            done = min(done + count, len(prompts))
            show(done)

        show(0)
        yield prompts, more


def _computed(
    player: TextPlayer, model: LanguageModel, operation: OperationKey, questions: Sequence[Question], compute: _Compute
) -> Mapping[str, NDArray[Any]]:
    work = player.work
    keys = [result_key(question.system, question.user, question.draw) for question in questions]
    # questions that begin alike share that part of their passes
    alike = batches_in_order(work.items_per_batch, lambda item: (item[0].system, item[0].user))
    items, what = list(zip(questions, keys, strict=True)), f"{player.name} answers"
    return work.compute(what, operation, items, keys, compute, batches=alike, provenance=model_record(model))


def _through_endpoint(
    player: TextPlayer, questions: Sequence[Question], *, ranked: bool
) -> tuple[list[ChatAnswer | UnusableCallError], str]:
    settings, chosen = player.settings, player.settings.models[player.name]
    if not isinstance(chosen, ApiSettings):
        raise TypeError(player.name)
    asked = [
        ChatQuestion(
            question.system,
            question.user,
            max_tokens=1 if ranked else settings.max_tokens,
            temperature=0.0 if ranked else settings.temperature,
            draw=question.draw,
            ranked=ranked,
        )
        for question in questions
    ]
    with stage(f"{player.name} answers", announced=True) as show:
        found, ledger = ask_questions(asked, chosen, settings.api_store, progress=show)
    return found, ledger.said(settings.api_store)


def _listed(answer: ChatAnswer | UnusableCallError, options: Sequence[str]) -> FloatArray:
    first = answer.first if isinstance(answer, ChatAnswer) else None
    found = np.full(len(options), np.nan)
    if first is None:
        return found
    for number, option in enumerate(options):
        its = [value for token, value in zip(first.token, first.logprob, strict=True) if token.strip() == option]
        found[number] = np.logaddexp.reduce(its) if its else np.nan
    if np.isfinite(found).any():
        found[np.isnan(found)] = first.logprob[-1]
    return found
