"""From the files of the next-token game to checked arrays, before any filter.

``multi_comparisons/doc{id}.json`` is one question (context, target, candidates, log-probabilities
under each model); ``results_raw/res_loss_anonym.json`` holds every answer as
``[row_id, user, guess, question id, sample_index]``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import xarray as xr
from pydantic import BaseModel, Field, TypeAdapter

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.lm_game_archive import QUESTION_FOLDER, RESULT_FOLDER, GameFiles
from shannon_game.experiments.studies.parsing import (
    Name,
    Note,
    Real,
    Text,
    Whole,
    add_notes,
    checked,
    objects,
    parse_json,
    shown,
    whole_characters,
)

RESPONSE_FILE = f"{RESULT_FOLDER}/res_loss_anonym.json"

_ROW_FIELDS = ("row_id", "user", "guess", "question_id", "sample_index")
# the stored probabilities are float32 of the same numbers (1.8e-7 apart); this tells another model from rounding
_PROBABILITY_TOLERANCE = 1e-4
# a float32 softmax can round to a hair above one
_LOGPROB_SLACK = 1e-6

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


def parse(game: GameFiles, items: Sequence[int], *, answers: bool = True) -> xr.Dataset:
    """Read and check the questions (along ``item``) and all answers (along ``row``), as they are in the files.

    Strings of tokens are kept once, in ``vocabulary``; the codes are their positions.
    """
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
        raise InputError("no questions were asked for", source=game.files.root)
    codes = [[vocabulary.setdefault(token, len(vocabulary)) for token in one.generated_token_strs] for one in questions]
    targets = [vocabulary.setdefault(one.correct_token_str, len(vocabulary)) for one in questions]
    row_id, user, guess, asked, shown_index = zip(*rows, strict=True) if rows else ((),) * 5
    # two strings that are one thereby stay two in the codes
    texts = [*(one.input_str for one in questions), *vocabulary]
    whole = objects(list(map(whole_characters, texts)))
    repaired = sum(text != new for text, new in zip(texts, whole, strict=True))
    odd = [name for name, question in zip(item_of, questions, strict=True) if not question.probabilities_agree()]
    first = questions[0]
    parsed = xr.Dataset(
        {
            "context": ("item", whole[: len(questions)]),
            "vocabulary": ("word", whole[len(questions) :]),
            "target_code": ("item", np.array(targets, dtype=np.int64)),
            "candidate_code": (("item", "candidate"), np.array(codes, dtype=np.int32)),
            "target_logprob": (("model", "item"), np.array([one.correct_logprobs for one in questions]).T),
            "candidate_logprob": (
                ("model", "item", "candidate"),
                np.stack([np.array(one.generated_logprobss) for one in questions], axis=1),
            ),
            "participant": ("row", objects(list(map(str, user)))),
            "guess": ("row", np.array(guess, dtype=np.float64)),
            **{
                name: ("row", np.array(values, dtype=np.int64))
                for name, values in (("row_id", row_id), ("question", asked), ("sample_index", shown_index))
            },
        },
        coords={"item": np.array(items, dtype=np.int64)},
        attrs={
            "generator_names": json.dumps(first.generator_names),
            "generator_index": first.generator_index,
            "files_sha256": game.sha256,
        },
    )
    add_notes(parsed, (*game.notes(), *_notes(odd, len(row_id) - len(set(row_id)), repaired)))
    return parsed


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
