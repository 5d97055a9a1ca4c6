"""The cloze study: people's next words (and models') for many contexts, in one ``xarray.Dataset``, one validator."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import ITEM_ID, item_positions
from shannon_game.estimators.schema import Range, Schema, Variable, optional, owned, refuse

SAMPLES = "samples"
"""Name of the source whose words are a model's unbiased samples: those that make its distribution."""

_COUNT = Range("0 or more", lowest=0)
_SHARE = Range("a share between 0 and 1", 0, 1)
_LOGPROB = Range("a log-probability, at most 0, or NaN if unknown", highest=1e-5, nan=True, infinite=True, unit="nats")

CLOZE = Schema(
    kind="cloze",
    cure="cloze_study(df) makes one of tables (from shannon_game import cloze_study)",
    may_be_empty=("sample", "result", "result_name"),
    variables=(
        Variable("item", "item", "int", "context"),
        ITEM_ID,
        Variable("text_id", "item", "str", "text that the context is from: the group of items"),
        Variable("word_num", "item", "int", "number of the word asked for in its text"),
        Variable("context", "item", "str", "text before the word asked for; need not be unique"),
        Variable("target_word", "item", "str", 'the word of the text, as printed; "" where there is none'),
        Variable("word_text", "word", "str", 'as typed, generated or printed; "" is a blank answer', unique=True),
        Variable("response_item", "response", "int", "the item answered", label_of="item"),
        Variable("response_word", "response", "int", "the answer", position_along="word"),
        optional("response_count", "response", "int", "participants who gave this answer", range=_COUNT),
        optional(
            "response_proportion", "response", "float", "share who gave it, where no count is known", range=_SHARE
        ),
        optional("participant", "response", "str", "who answered; ``response_count`` is 1 then"),
        optional("participant_group", "response", "str", "group of people that the answer is of"),
        optional("oracle_count", "oracle, response", "int", "of the count, those in a published half", range=_COUNT),
        Variable("model", "model", "str", "name of the model", needed="model"),
        Variable("entry_item", "entry", "int", "the item", needed="model", label_of="item"),
        owned("entry_model", "entry", "int", "the model", needed="model", position_along="model"),
        Variable("source", "source", "str", 'how words came about; "samples" are unbiased samples', needed="model"),
        owned("sample_entry", "sample", "int", "the query", needed="model", position_along="entry"),
        Variable("sample_word", "sample", "int", "the word", needed="model", position_along="word"),
        owned("sample_source", "sample", "int", "where it is from", needed="model", position_along="source"),
        Variable("sample_count", "sample", "int", "times drawn; 0: only scored", needed="model", range=_COUNT),
        optional("sample_logprob", "sample", "float", "ln q(word | context)", range=_LOGPROB),
        Variable("result_name", "result_name", "str", "published list of results", needed="result_name"),
        Variable("result_item", "result", "int", "the item", needed="result_name", label_of="item"),
        owned("result_list", "result", "int", "the list", needed="result_name", position_along="result_name"),
        Variable("result_value", "result", "float", "the published value", needed="result_name"),
    ),
)
"""Variables of a cloze study."""


@CLOZE.documented
def validate_cloze_study(study: Dataset) -> Dataset:
    """Check a cloze study, and return it read by its labels: cut or reordered, it is what it says.

    Dimensions are ``item`` (contexts), ``word`` (distinct strings as they stand in the data: every variable that names
    a word holds a position along it), ``response`` (answers in long form: one row per participant, or per context and
    answer with a count). Where there are models: ``model``, ``entry`` (one query of a model on one context), ``source``
    (how words came about) and ``sample`` (a word of an entry from one source). Published results may stand beside the
    data: ``result_name`` and ``result``.

    {variables}

    A study has ``response_count`` or ``response_proportion``. Every item has an answer. Rows stand in the order of
    the data, which the paper's own code depends on. Attribute ``word_rules`` names the rules that make this study's
    strings comparable (:data:`WORD_RULES`).

    Examples
    --------
    >>> cloze.validate_cloze_study(cloze.examples.cloze_study()).sizes["item"]
    12
    """
    study, source = CLOZE.check(study)
    keys = Counter(zip(study["text_id"].values.tolist(), study["word_num"].values.tolist(), strict=True))
    twice = next((key for key, number in keys.items() if number > 1), None)
    if twice is not None:
        raise InputError(f"{twice!r} is there twice", source=source, field="(text_id, word_num)")
    _check_responses(study, source)
    return study


def context_labels(study: Dataset) -> NDArray[np.str_]:
    """Name every context: its ``item_id`` where the study has any, else "TEXT:WORD"."""
    if ITEM_ID.name in study:
        return study[ITEM_ID.name].values.astype(str)
    places = zip(study["text_id"].values.tolist(), study["word_num"].values.tolist(), strict=True)
    return np.array([f"{text}:{number}" for text, number in places])


def model_names(study: Dataset) -> list[str]:
    """Names of the models whose words the study holds, in its order."""
    return [str(name) for name in study["model"].values.tolist()] if "model" in study.dims else []


def entry_positions(study: Dataset, model: str) -> NDArray[np.intp]:
    """Positions along ``entry`` of one model's entries, in the order of its file."""
    study = CLOZE.read(study)
    source, names = CLOZE.source(study), model_names(study)
    if model not in names:
        raise unknown_choice("model", model, names, source=source)
    return np.flatnonzero(study["entry_model"].values == names.index(model))


def _check_responses(study: Dataset, source: str) -> None:
    if "response_count" not in study and "response_proportion" not in study:
        problem = "is missing, and so is response_proportion; one of them is needed"
        raise InputError(problem, source=source, field="response_count")
    weight = np.zeros(study.sizes["response"])
    if "response_count" in study:
        count = study["response_count"].values
        weight += count
        if "participant" in study:
            right = "should be 1, because each row is one participant's answer"
            refuse(study, source, "response_count", count == 1, right)
        if "oracle_count" in study:
            few = study["oracle_count"].values.sum(axis=0) <= count
            right = "should be at most response_count when its sub-samples are added up"
            refuse(study, source, "oracle_count", np.broadcast_to(few, study["oracle_count"].shape), right)
    if "response_proportion" in study:
        weight += study["response_proportion"].values
    answered = np.bincount(item_positions(study, "response_item"), weights=weight, minlength=study.sizes["item"]) > 0
    if not answered.all():
        first = int(np.flatnonzero(~answered)[0])
        item, text, number = (study[name].values[first] for name in ("item", "text_id", "word_num"))
        problem = f"{item} (text {text}, word {number}) has no answer ({int((~answered).sum())} such); leave it out"
        raise InputError(problem, source=source, field="item")
