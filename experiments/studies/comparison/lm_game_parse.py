"""From the files of the next-token game to checked arrays, before any filter.

``multi_comparisons/doc{id}.json`` is one question (context, target, candidates, log-probabilities
under each model); ``results_raw/res_loss_anonym.json`` holds every answer as
``[row_id, user, guess, question id, sample_index]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.lm_game_archive import QUESTION_FOLDER, RESULT_FOLDER, GameFiles
from shannon_game.experiments.studies.parsing import (
    Name,
    Note,
    Real,
    Text,
    Whole,
    add_notes,
    checked,
    counting,
    objects,
    parse_json,
    shown,
    whole_characters,
)

RESPONSE_FILE = f"{RESULT_FOLDER}/res_loss_anonym.json"

_ROW_FIELDS = ("row_id", "user", "guess", "question_id", "sample_index")
# the stored probabilities are float32 of the same numbers (1.8e-7 apart); this tells another model from rounding
_PROBABILITY_TOLERANCE = 1e-4
_MODEL_NAMES = {
    "gelu_two_layers": "14M",
    "gelu_twelve_layers": "gpt2-small",
    "gelu_twenty_four_layers": "gpt2-medium",
}
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
    """Read and check the questions (along ``item``) and all answers (along ``row``), as they are in the files."""
    questions: list[_Question] = []
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
            cure = f"{Set('study.leave_out_questions', [item_of[name]])} leaves the question out"
            raise InputError(f"{error}; {cure}") from None
        questions.append(question)
    if not questions:
        raise InputError("no questions were asked for", source=game.files.root)
    candidate = [token for one in questions for token in one.generated_token_strs]
    # strings with different halves of characters are different, and are both shown as U+FFFD
    same = [[token == one.correct_token_str for token in one.generated_token_strs] for one in questions]
    row_id, user, guess, asked, shown_index = zip(*rows, strict=True) if rows else ((),) * 5
    numbers = {"row_id": row_id, "question": asked, "sample_index": shown_index}
    names = [name.strip("/") for name in questions[0].generator_names]
    models = [_MODEL_NAMES.get(name, name) for name in names]
    nats = {"units": "nats"}
    parsed = xr.Dataset(
        {
            "context": ("item", _whole([one.input_str for one in questions])),
            "target_token": ("item", _whole([one.correct_token_str for one in questions])),
            "candidate_token": (("item", "candidate"), _whole(candidate).reshape(len(items), -1)),
            "same": (("item", "candidate"), np.array(same)),
            "target_logprob": (("model", "item"), np.array([one.correct_logprobs for one in questions]).T, nats),
            "candidate_logprob": (
                ("model", "item", "candidate"),
                np.stack([np.array(one.generated_logprobss) for one in questions], axis=1),
                nats,
            ),
            "participant": ("row", objects(list(map(str, user)))),
            "guess": ("row", np.array(guess, dtype=np.float64)),
            **{name: ("row", np.array(values, dtype=np.int64)) for name, values in numbers.items()},
        },
        coords={"item": np.array(items, dtype=np.int64), "model": models},
        attrs={"name": "lm_game", "generator": models[questions[0].generator_index], "data_sha256": game.sha256},
    )
    texts = {*candidate, *(one.correct_token_str for one in questions)}
    repaired = sum(whole_characters(text) != text for text in [*texts, *(one.input_str for one in questions)])
    odd = [name for name, question in zip(item_of, questions, strict=True) if not question.probabilities_agree()]
    unknown = [name for name in models if name not in _MODEL_NAMES.values()]
    found = counting(
        Note("strings with half of a surrogate pair, which no file can hold; shown as U+FFFD", repaired),
        Note(
            "questions with a generation_probs that is not exp(generated_logprobss) of the generator within "
            f"{_PROBABILITY_TOLERANCE:g}, the first is {', '.join(odd[:1])}; the log-probabilities were used",
            len(odd),
            "warning",
        ),
        Note(
            f"rows of {RESPONSE_FILE} with a row_id that was there before; kept",
            len(row_id) - len(set(row_id)),
            "warning",
        ),
        Note(
            f"models that this loader does not know and calls by the names in the files: {', '.join(unknown)}",
            len(unknown),
            "warning",
        ),
    )
    add_notes(parsed, (*game.notes(), *found))
    return parsed


def _whole(texts: list[str]) -> NDArray[np.object_]:
    return objects(list(map(whole_characters, texts)))


def _check(question: _Question, item: int, first: _Question, first_source: str, source: str) -> None:
    """Refuse a question of another number, models or lengths than the file's name and the first question say."""
    names, index, n = question.generator_names, question.generator_index, len(question.generated_token_strs)
    lengths, n_models = [len(row) for row in question.generated_logprobss], len(names)
    n_correct, odd = len(question.correct_logprobs), [name for name in names if not name.isprintable()]
    n_probabilities = n if question.generation_probs is None else len(question.generation_probs)
    as_first = f"in {first_source}; one study has one list of models, one generator and one number of candidates"
    before = first.generator_names, first.generator_index, len(first.generated_token_strs)
    for field, right, problem in (
        ("id", question.id == item, f"is {question.id}, the file name says {item}"),
        ("generator_names", len(set(names)) == n_models, f"is {names}; every model should be named once"),
        ("generator_names", not odd, f"holds {shown(''.join(odd[:1]))}, should be printable: it is in every output"),
        ("generator_index", 0 <= index < n_models, f"is {index}, should be 0 to {n_models - 1}, the place of a name"),
        ("correct_logprobs", n_correct == n_models, f"has {n_correct} numbers for {n_models} models"),
        ("generated_logprobss", lengths == [n] * n_models, f"has lists of {lengths} numbers, should have {n} a model"),
        ("generation_probs", n_probabilities == n, f"has {n_probabilities} numbers for {n} candidates"),
        ("generator_names", names == before[0], f"is {names}, but {before[0]} {as_first}"),
        ("generator_index", index == before[1], f"is {index}, but {before[1]} {as_first}"),
        ("generated_token_strs", n == before[2], f"has {n} candidates, but {before[2]} {as_first}"),
    ):
        if not right:
            raise InputError(problem, source=source, field=field)
