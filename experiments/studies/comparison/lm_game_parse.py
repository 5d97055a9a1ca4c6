"""From the files of the next-token game to checked arrays, before any filter.

``multi_comparisons/doc{id}.json`` is one question (context, target, candidates, log-probabilities
under each model); ``results_raw/res_loss_anonym.json`` holds every answer as
``[row_id, user, guess, question id, sample_index]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError
from experiments.studies.cache import Cached, arrays_from_cached, cached_from_arrays
from experiments.studies.lm_game_archive import QUESTION_FOLDER, RESULT_FOLDER, GameFiles
from experiments.studies.parsing import Note, is_number, is_whole, objects, parse_json, shown

__all__ = ["RESPONSE_FILE", "Parsed", "from_cached", "parse", "question_file", "to_cached"]

RESPONSE_FILE = f"{RESULT_FOLDER}/res_loss_anonym.json"

_ROW_FIELDS = ("row_id", "user", "guess", "question_id", "sample_index")
# the stored probabilities are float32 of the same numbers (1.8e-7 apart); this tells another model from rounding
_PROBABILITY_TOLERANCE = 1e-4
# a float32 softmax can round to a hair above one
_LOGPROB_SLACK = 1e-6

_ARRAYS = (
    "item",
    "target_code",
    "candidate_code",
    "target_logprob",
    "candidate_logprob",
    "row_id",
    "participant_code",
    "guess",
    "response_item",
    "response_candidate",
    "context",
    "vocabulary",
    "participants",
)


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


@dataclass(frozen=True)
class _Question:
    context: str
    target: str
    candidates: list[str]
    generator_names: list[str]
    generator_index: int
    target_logprob: NDArray[np.float64]  # (M,)
    candidate_logprob: NDArray[np.float64]  # (M, K)
    probabilities_agree: bool


def question_file(item: int) -> str:
    """Name of one question's file."""
    return f"{QUESTION_FOLDER}/doc{item}.json"


def parse(game: GameFiles, items: Sequence[int], *, answers: bool = True) -> Parsed:
    """Read and check the questions and all answers."""
    questions: list[_Question] = []
    vocabulary: dict[str, int] = {}
    codes: list[list[int]] = []
    rows = _Rows.none()
    item_of = {question_file(item): item for item in items}
    for name, content in game.read([*item_of, *([RESPONSE_FILE] if answers else [])]):
        source = game.where(name)
        if name == RESPONSE_FILE:
            rows = _rows(parse_json(content, source), source)
            continue
        try:
            question = _question(parse_json(content, source), item_of[name], source)
            if questions:
                _check_alike(question, questions[0], game.where(question_file(items[0])), source)
        except InputError as error:
            raise InputError(f"{error}; study.leave_out_questions=[{item_of[name]}] leaves the question out") from None
        questions.append(question)
        codes.append([vocabulary.setdefault(token, len(vocabulary)) for token in question.candidates])
    if not questions:
        raise InputError("no questions were asked for", source=game.files.label)

    disagreeing = [name for name, question in zip(item_of, questions, strict=True) if not question.probabilities_agree]
    targets = [vocabulary.setdefault(question.target, len(vocabulary)) for question in questions]
    return Parsed(
        item=np.array(items, dtype=np.int64),
        context=objects([question.context for question in questions]),
        vocabulary=objects(list(vocabulary)),
        target_code=np.array(targets, dtype=np.int64),
        candidate_code=np.array(codes, dtype=np.int32),
        target_logprob=np.stack([question.target_logprob for question in questions], axis=1),
        candidate_logprob=np.stack([question.candidate_logprob for question in questions], axis=1),
        generator_names=tuple(questions[0].generator_names),
        generator_index=questions[0].generator_index,
        row_id=rows.row_id,
        participants=rows.participants,
        participant_code=rows.participant_code,
        guess=rows.guess,
        response_item=rows.item,
        response_candidate=rows.candidate,
        data_sha256=game.sha256,
        notes=(*game.notes(), *_probability_notes(disagreeing), *_row_notes(rows)),
    )


def to_cached(parsed: Parsed) -> Cached:
    """Lay out parsed data for the cache."""
    values = {
        "generator_names": list(parsed.generator_names),
        "generator_index": parsed.generator_index,
        "data_sha256": parsed.data_sha256,
        "notes": [[note.text, note.count, note.level] for note in parsed.notes],
    }
    return cached_from_arrays({name: getattr(parsed, name) for name in _ARRAYS}, values)


def from_cached(cached: Cached) -> Parsed:
    """Undo :func:`to_cached`."""
    values = cached.values
    return Parsed(
        **arrays_from_cached(cached),
        generator_names=tuple(values["generator_names"]),
        generator_index=values["generator_index"],
        data_sha256=values["data_sha256"],
        notes=tuple(Note(text, count, level) for text, count, level in values["notes"]),
    )


def _question(data: Any, item: int, source: str) -> _Question:
    if not isinstance(data, dict):
        raise InputError(
            f"holds a JSON {_kind(data)}, should be an object with the fields of a question", source=source
        )
    if _integer(data, "id", source) != item:
        raise InputError(f"is {data['id']}, the file name says {item}", source=source, field="id")
    names = _strings(data, "generator_names", source)
    if len(set(names)) < len(names):
        raise InputError(f"is {names}; every model should be named once", source=source, field="generator_names")
    odd = next((name for name in names if not name.isprintable()), None)
    if odd is not None:
        problem = f"holds {shown(odd)}; the name of a model is in every output, and should be printable"
        raise InputError(problem, source=source, field="generator_names")
    index = _integer(data, "generator_index", source)
    if not 0 <= index < len(names):
        raise InputError(
            f"is {index}, should be 0 to {len(names) - 1}, a position in generator_names",
            source=source,
            field="generator_index",
        )
    candidates = _strings(data, "generated_token_strs", source)
    shape = (len(names), len(candidates))
    candidate_logprob = _logprobs(data, "generated_logprobss", shape, source)
    agree = True
    if "generation_probs" in data:
        given = _numbers(data, "generation_probs", shape[1:], source)
        expected = np.exp(candidate_logprob[index])
        # "not within" and not "beyond", so that a NaN counts as disagreeing
        agree = bool((np.abs(given - expected) <= _PROBABILITY_TOLERANCE * expected).all())
    return _Question(
        context=_string(data, "input_str", source),
        target=_string(data, "correct_token_str", source),
        candidates=candidates,
        generator_names=names,
        generator_index=index,
        target_logprob=_logprobs(data, "correct_logprobs", shape[:1], source),
        candidate_logprob=candidate_logprob,
        probabilities_agree=agree,
    )


def _check_alike(question: _Question, first: _Question, first_source: str, source: str) -> None:
    for field, value, wanted in (
        ("generator_names", question.generator_names, first.generator_names),
        ("generator_index", question.generator_index, first.generator_index),
    ):
        if value != wanted:
            raise InputError(
                f"is {value}, but {wanted} in {first_source}; one study has one list of models and one generator",
                source=source,
                field=field,
            )
    if len(question.candidates) != len(first.candidates):
        raise InputError(
            f"has {len(question.candidates)} candidates, but {first_source} has {len(first.candidates)}; "
            "every question of a study has the same number",
            source=source,
            field="generated_token_strs",
        )


def _field(data: dict[str, Any], field: str, source: str) -> Any:
    if field not in data:
        raise InputError("is missing", source=source, field=field)
    return data[field]


def _string(data: dict[str, Any], field: str, source: str) -> str:
    value = _field(data, field, source)
    if not isinstance(value, str):
        raise InputError(f"is {shown(value)}, should be a string", source=source, field=field)
    return value


def _integer(data: dict[str, Any], field: str, source: str) -> int:
    value = _field(data, field, source)
    if type(value) is not int:  # bool is an int to isinstance, and no position
        raise InputError(f"is {shown(value)}, should be an integer", source=source, field=field)
    return value


def _strings(data: dict[str, Any], field: str, source: str) -> list[str]:
    value = _field(data, field, source)
    if not isinstance(value, list):
        raise InputError(f"is {shown(value)}, should be a list of strings", source=source, field=field)
    if not value:
        raise InputError("is empty; at least one is needed", source=source, field=field)
    if set(map(type, value)) != {str}:
        position = next(i for i, part in enumerate(value) if not isinstance(part, str))
        raise InputError(
            f"holds {shown(value[position])} at [{position}], should be a string", source=source, field=field
        )
    return value


def _numbers(data: dict[str, Any], field: str, shape: tuple[int, ...], source: str) -> NDArray[np.float64]:
    value = _field(data, field, source)
    try:
        array = np.array(value)
    except ValueError:  # lists of unequal lengths
        array = np.array(None)
    if array.shape != shape:
        meaning = "one number per " + (
            "generator_names" if field == "correct_logprobs" else "candidate of generated_token_strs"
        )
        if len(shape) == 2:
            meaning = f"one list per generator_names, {meaning}"
        raise InputError(
            f"has shape {_lengths(value)}, should be {' x '.join(map(str, shape))} ({meaning})",
            source=source,
            field=field,
        )
    flat = [part for row in value for part in row] if len(shape) == 2 else value
    # NumPy makes a number of true, and an object of an integer of hundreds of digits
    if not set(map(type, flat)) <= {int, float} or array.dtype.kind not in "iuf":
        bad = next(part for part in flat if not is_number(part))
        raise InputError(f"holds {shown(bad)}, should be numbers only", source=source, field=field)
    return array.astype(np.float64, copy=False)


def _logprobs(data: dict[str, Any], field: str, shape: tuple[int, ...], source: str) -> NDArray[np.float64]:
    array = _numbers(data, field, shape, source)
    bad = ~(np.isfinite(array) & (array <= _LOGPROB_SLACK))
    if bad.any():
        index = tuple(np.argwhere(bad)[0].tolist())
        raise InputError(
            f"is {array[index]} at {''.join(f'[{i}]' for i in index)} ({int(bad.sum())} such); "
            "a log-probability is finite and at most 0",
            source=source,
            field=field,
        )
    return array


@dataclass(frozen=True)
class _Rows:
    row_id: NDArray[np.int64]
    participants: NDArray[np.object_]
    participant_code: NDArray[np.int64]
    guess: NDArray[np.float64]
    item: NDArray[np.int64]
    candidate: NDArray[np.int64]

    @classmethod
    def none(cls) -> _Rows:
        whole = np.zeros(0, dtype=np.int64)
        return cls(whole, objects([]), whole, whole.astype(np.float64), whole, whole)


def _rows(data: Any, source: str) -> _Rows:
    if not isinstance(data, list):
        raise InputError(f"holds a JSON {_kind(data)}, should be a list of [{', '.join(_ROW_FIELDS)}]", source=source)
    if not data:
        raise InputError("holds no answers", source=source)
    participants: dict[str, int] = {}
    codes = []
    for position, row in enumerate(data):
        if not isinstance(row, list) or len(row) != len(_ROW_FIELDS):
            raise InputError(f"row {position} is {shown(row)}, should be [{', '.join(_ROW_FIELDS)}]", source=source)
        for field, value in zip(_ROW_FIELDS, row, strict=True):
            _check_cell(field, value, position, source)
        codes.append(participants.setdefault(str(row[1]), len(participants)))
    return _Rows(
        row_id=np.array([row[0] for row in data], dtype=np.int64),
        participants=objects(list(participants)),
        participant_code=np.array(codes, dtype=np.int64),
        guess=np.array([row[2] for row in data], dtype=np.float64),
        item=np.array([row[3] for row in data], dtype=np.int64),
        candidate=np.array([row[4] for row in data], dtype=np.int64),
    )


def _check_cell(field: str, value: Any, position: int, source: str) -> None:
    if field == "guess":
        right, wanted = is_number(value), "a number (percent)"
    elif field == "user":
        right, wanted = type(value) is int or (isinstance(value, str) and value != ""), "an integer or a name"
    else:
        right, wanted = is_whole(value), "a 64-bit integer"
    if not right:
        raise InputError(f"is {shown(value)} in row {position}, should be {wanted}", source=source, field=field)


def _probability_notes(disagreeing: Sequence[str]) -> list[Note]:
    if not disagreeing:
        return []
    text = (
        f"questions with a generation_probs that is not exp(generated_logprobss) of the generator within "
        f"{_PROBABILITY_TOLERANCE:g}, the first is {disagreeing[0]}; the log-probabilities were used"
    )
    return [Note(text, len(disagreeing), "warning")]


def _row_notes(rows: _Rows) -> list[Note]:
    repeated = len(rows.row_id) - len(np.unique(rows.row_id))
    if not repeated:
        return []
    return [Note(f"rows of {RESPONSE_FILE} with a row_id that was there before; kept", repeated, "warning")]


def _lengths(value: Any) -> str:
    if not isinstance(value, list):
        return shown(value)
    if not any(isinstance(part, list) for part in value):
        return str(len(value))
    inner = sorted({len(part) if isinstance(part, list) else 0 for part in value})
    return f"{len(value)} x {' or '.join(map(str, inner))}"


def _kind(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null"}
    return names.get(type(value), "number")
