"""From the files of the next-token game to checked arrays, before any filter.

``multi_comparisons/doc{id}.json`` is one question (context, target, candidates, log-probabilities
under each model); ``results_raw/res_loss_anonym.json`` holds every answer as
``[row_id, user, guess, question id, sample_index]``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Annotated, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.lm_game_archive import QUESTION_FOLDER, RESULT_FOLDER, GameFiles
from shannon_game.experiments.studies.parsing import (
    Name,
    Note,
    Real,
    Text,
    Whole,
    checked,
    objects,
    parse_json,
    shown,
    whole_characters,
)

__all__ = ["RESPONSE_FILE", "Parsed", "from_cached", "parse", "question_file", "to_cached"]

RESPONSE_FILE = f"{RESULT_FOLDER}/res_loss_anonym.json"

_ROW_FIELDS = ("row_id", "user", "guess", "question_id", "sample_index")
# the stored probabilities are float32 of the same numbers (1.8e-7 apart); this tells another model from rounding
_PROBABILITY_TOLERANCE = 1e-4
# a float32 softmax can round to a hair above one
_LOGPROB_SLACK = 1e-6

_VALUES = ("generator_names", "generator_index", "data_sha256")


@dataclass(frozen=True)
class Parsed:
    """Questions and answers as they are in the files.

    Letters: N questions, K candidates a question, M models, R answers. Strings are kept once, in
    ``vocabulary`` and ``participants``; arrays hold their positions. Log-probabilities in nats.
    """

    item: NDArray[np.int64]  # (N,)
    context: NDArray[np.object_]  # (N,)
    vocabulary: NDArray[np.object_]
    target_code: NDArray[np.int64]  # (N,)
    candidate_code: NDArray[np.int32]  # (N, K)
    target_logprob: NDArray[np.float64]  # (M, N)
    candidate_logprob: NDArray[np.float64]  # (M, N, K)
    generator_names: tuple[str, ...]  # (M,) as in the files
    generator_index: int
    row_id: NDArray[np.int64]  # (R,)
    participants: NDArray[np.object_]
    participant_code: NDArray[np.int64]  # (R,)
    guess: NDArray[np.float64]  # (R,), percent
    response_item: NDArray[np.int64]  # (R,)
    response_candidate: NDArray[np.int64]  # (R,)
    data_sha256: str
    notes: tuple[Note, ...]


_ARRAYS = tuple(one.name for one in fields(Parsed) if one.name not in (*_VALUES, "notes"))


_Names = Annotated[list[Text], Field(min_length=1)]
_LogProb = Annotated[Real, Field(le=_LOGPROB_SLACK)]


class _Question(BaseModel):
    """One question's file; M models, K candidates."""

    id: Whole
    input_str: Text
    correct_token_str: Text
    generated_token_strs: _Names  # (K,)
    generator_names: _Names  # (M,)
    generator_index: Whole
    correct_logprobs: list[_LogProb]  # (M,)
    generated_logprobss: list[list[_LogProb]]  # (M, K)
    generation_probs: list[Real] | None = None  # (K,)

    def probabilities_agree(self) -> bool:
        """Whether the stored probabilities are those of the generator's log-probabilities."""
        if self.generation_probs is None:
            return True
        expected = np.exp(self.generated_logprobss[self.generator_index])
        return bool((np.abs(self.generation_probs - expected) <= _PROBABILITY_TOLERANCE * expected).all())


_ROWS = TypeAdapter(list[tuple[Whole, Name, Real, Whole, Whole]])


def question_file(item: int) -> str:
    """Name of one question's file."""
    return f"{QUESTION_FOLDER}/doc{item}.json"


def parse(game: GameFiles, items: Sequence[int], *, answers: bool = True) -> Parsed:
    """Read and check the questions and all answers."""
    questions: list[_Question] = []
    vocabulary: dict[str, int] = {}
    rows: list[tuple[int, int | str, float, int, int]] = []
    item_of = {question_file(item): item for item in items}
    for name, content in game.read([*item_of, *([RESPONSE_FILE] if answers else [])]):
        source = game.where(name)
        if name == RESPONSE_FILE:
            rows = checked(_ROWS.validate_python, parse_json(content, source), source, _ROW_FIELDS)
            if not rows:
                raise InputError("holds no answers", source=source)
            continue
        try:
            question = checked(_Question.model_validate, parse_json(content, source), source)
            first = questions[0] if questions else question
            _check(question, item_of[name], first, game.where(question_file(items[0])), source)
        except InputError as error:
            raise InputError(f"{error}; study.leave_out_questions=[{item_of[name]}] leaves the question out") from None
        questions.append(question)
    if not questions:
        raise InputError("no questions were asked for", source=game.files.label)
    codes = [[vocabulary.setdefault(token, len(vocabulary)) for token in one.generated_token_strs] for one in questions]
    targets = [vocabulary.setdefault(one.correct_token_str, len(vocabulary)) for one in questions]
    participants: dict[str, int] = {}
    row_id, user, guess, item, candidate = zip(*rows, strict=True) if rows else ((),) * 5
    people = [participants.setdefault(str(who), len(participants)) for who in user]
    # two strings that are one thereby stay two in the codes
    texts = [*(one.input_str for one in questions), *vocabulary]
    whole = objects(list(map(whole_characters, texts)))
    repaired = sum(text != new for text, new in zip(texts, whole, strict=True))
    odd = [name for name, question in zip(item_of, questions, strict=True) if not question.probabilities_agree()]
    return Parsed(
        item=np.array(items, dtype=np.int64),
        context=whole[: len(questions)],
        vocabulary=whole[len(questions) :],
        target_code=np.array(targets, dtype=np.int64),
        candidate_code=np.array(codes, dtype=np.int32),
        target_logprob=np.stack([np.array(one.correct_logprobs) for one in questions], axis=1),
        candidate_logprob=np.stack([np.array(one.generated_logprobss) for one in questions], axis=1),
        generator_names=tuple(questions[0].generator_names),
        generator_index=questions[0].generator_index,
        row_id=np.array(row_id, dtype=np.int64),
        participants=objects(list(participants)),
        participant_code=np.array(people, dtype=np.int64),
        guess=np.array(guess, dtype=np.float64),
        response_item=np.array(item, dtype=np.int64),
        response_candidate=np.array(candidate, dtype=np.int64),
        data_sha256=game.sha256,
        notes=(*game.notes(), *_notes(odd, len(row_id) - len(set(row_id)), repaired)),
    )


def _check(question: _Question, item: int, first: _Question, first_source: str, source: str) -> None:
    """Refuse a question of another number, models or lengths than the file's name and the first question say."""

    def wrong(field: str, problem: str) -> InputError:
        return InputError(problem, source=source, field=field)

    names, n = question.generator_names, len(question.generated_token_strs)
    if question.id != item:
        raise wrong("id", f"is {question.id}, the file name says {item}")
    if len(set(names)) < len(names):
        raise wrong("generator_names", f"is {names}; every model should be named once")
    odd = next((name for name in names if not name.isprintable()), None)
    if odd is not None:
        problem = f"holds {shown(odd)}; the name of a model is in every output, and should be printable"
        raise wrong("generator_names", problem)
    if not 0 <= question.generator_index < len(names):
        right = f"should be 0 to {len(names) - 1}, a position in generator_names"
        raise wrong("generator_index", f"is {question.generator_index}, {right}")
    if len(question.correct_logprobs) != len(names):
        raise wrong("correct_logprobs", f"has {len(question.correct_logprobs)} numbers for {len(names)} models")
    lengths = [len(row) for row in question.generated_logprobss]
    if lengths != [n] * len(names):
        problem = f"has lists of {lengths} numbers, should have one of {n} for each of {len(names)} models"
        raise wrong("generated_logprobss", problem)
    if question.generation_probs is not None and len(question.generation_probs) != n:
        raise wrong("generation_probs", f"has {len(question.generation_probs)} numbers for {n} candidates")
    for field in ("generator_names", "generator_index"):
        value, wanted = getattr(question, field), getattr(first, field)
        if value != wanted:
            right = "one study has one list of models and one generator"
            raise wrong(field, f"is {value}, but {wanted} in {first_source}; {right}")
    if n != len(first.generated_token_strs):
        problem = f"has {n} candidates, but {first_source} has {len(first.generated_token_strs)}"
        raise wrong("generated_token_strs", f"{problem}; every question of a study has the same number")


def _notes(disagreeing: Sequence[str], repeated: int, repaired: int) -> list[Note]:
    found = []
    if repaired:
        text = "strings with half of a surrogate pair, which no file can hold; shown as U+FFFD"
        found.append(Note(text, repaired))
    if disagreeing:
        text = (
            f"questions with a generation_probs that is not exp(generated_logprobss) of the generator within "
            f"{_PROBABILITY_TOLERANCE:g}, the first is {disagreeing[0]}; the log-probabilities were used"
        )
        found.append(Note(text, len(disagreeing), "warning"))
    if repeated:
        text = f"rows of {RESPONSE_FILE} with a row_id that was there before; kept"
        found.append(Note(text, repeated, "warning"))
    return found


def to_cached(parsed: Parsed) -> xr.Dataset:
    """Lay out parsed data for the cache."""
    values = {name: getattr(parsed, name) for name in _VALUES} | {"notes": [astuple(note) for note in parsed.notes]}
    arrays = {name: getattr(parsed, name) for name in _ARRAYS}
    variables = {name: (tuple(f"{name}_{axis}" for axis in range(array.ndim)), array) for name, array in arrays.items()}
    return xr.Dataset(variables, attrs={"values": json.dumps(values)})


def from_cached(cached: xr.Dataset) -> Parsed:
    """Undo :func:`to_cached`."""
    values: dict[str, Any] = json.loads(cached.attrs["values"])
    values |= {"generator_names": tuple(values["generator_names"])}
    values |= {"notes": tuple(Note(text, count, level) for text, count, level in values["notes"])}
    return Parsed(**values | {name: cached[name].to_numpy() for name in _ARRAYS})
