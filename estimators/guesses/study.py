"""The guess study: people guess the next token of a document, and each guess is right or wrong."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.documents.tokens import is_word_token
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.schema import Range, Schema, Variable, optional, refuse

STORED_TOKENS = ("visible", "word")
"""Which tokens a stored accuracy may be of."""

_COUNT = Range("at least 0", lowest=0)
_SHARE = Range("a share from 0 to 1", 0, 1)
_HIT = Range("from 0 to 1, or NaN where it was not asked", 0, 1, nan=True)
_SURPRISAL = Range("finite and at least 0, or NaN where it was not asked", lowest=0, nan=True, unit="nats")

GUESSES = Schema(
    kind="guess",
    cure="guess_study(df) makes one of tables (from shannon_game import guess_study)",
    variables=(
        Variable("document", "document", "str", "name of the document"),
        Variable("item", "item", "int", "position of a document that was asked about"),
        Variable("item_document", "item", "str", "its document", label_of="document"),
        Variable("item_position", "item", "int", "tokens of the document before the target", range=_COUNT),
        Variable("word_token", "item", "bool", "the target passes the study's filter for words"),
        Variable("participant", "response", "str", "who guessed", filled=True),
        Variable("response_item", "response", "int", "the item", label_of="item"),
        Variable("correct", "response", "bool", "the guess is the target"),
        Variable("n_before", "response", "int", "guesses that the participant gave before, whatever became of them"),
        optional("target_token", "item", "str", "the token of the text"),
        optional("guess", "response", "str", "the token guessed"),
        Variable("text", "document", "str", "the whole document", needed="target_start"),
        Variable("target_start", "item", "int", "characters of ``text`` before the target", needed="text"),
        Variable("model", "model", "str", "name of a language model that played the items", needed="model"),
        optional("model_hit", "model, item", "float", "1: its best token is the target; a share for a tie", range=_HIT),
        optional("target_surprisal_nats", "model, item", "float", "-ln p(target | text before it)", range=_SURPRISAL),
        Variable("stored_model", "stored", "str", "a language model whose accuracy others published", needed="stored"),
        Variable("stored_accuracy", "stored", "float", "that number", needed="stored", range=_SHARE),
        Variable("stored_n", "stored", "int", "on how many guesses; 0 is unknown", needed="stored", range=_COUNT),
        Variable("stored_tokens", "stored", "str", 'of which tokens: "visible" or "word"', needed="stored"),
        Variable("stored_source", "stored", "str", "the file it is from", needed="stored"),
    ),
)
"""Variables of a guess study."""


@GUESSES.documented
def validate_guess_study(study: Dataset) -> Dataset:
    """Check a guess study, and return it read by its labels: cut or reordered, it is what it says.

    Dimensions are ``document``, ``item`` (a position of a document that was asked about), ``response`` (guesses, in
    long form, each participant's in the order in which they were given), and where there are any ``model`` (language
    models that played the same items) and ``stored`` (accuracies that others have published).

    {variables}

    A participant may guess at an item more than once; every guess counts, loaders decide what to keep, and
    :func:`repeated_guesses` finds them.

    Examples
    --------
    >>> guesses.validate_guess_study(guesses.examples.guess_study()).sizes["response"]
    192
    """
    study, source = GUESSES.check(study)
    _check_positions(study, source)
    _check_numbers_before(study, source)
    if "text" in study:
        _check_starts(study, source)
    for tokens in study["stored_tokens"].values.tolist() if "stored_tokens" in study else []:
        if tokens not in STORED_TOKENS:
            raise unknown_choice("stored_tokens", tokens, STORED_TOKENS, source=source)
    return study


def _check_positions(study: Dataset, source: str) -> None:
    document, position = study["item_document"].values.astype(str), study["item_position"].values
    order = np.lexsort((position, document))
    once = np.ones(order.size, dtype=bool)
    once[order[1:]] = (np.diff(position[order]) != 0) | (document[order][1:] != document[order][:-1])
    refuse(study, source, "item_position", once, "there is another item at this position of its document")


def _check_numbers_before(study: Dataset, source: str) -> None:
    before = study["n_before"].values
    code = np.unique(study["participant"].values.astype(str), return_inverse=True)[1]
    order = np.argsort(code, kind="stable")
    good = before >= 0
    good[order[1:]] &= (np.diff(code[order]) != 0) | (np.diff(before[order].astype(np.int64)) > 0)
    right = "counts the guesses of its participant from 0 and rises from each one to the next"
    refuse(study, source, "n_before", good, right)


def _check_starts(study: Dataset, source: str) -> None:
    text = dict(zip(study["document"].values.astype(str).tolist(), study["text"].values.tolist(), strict=True))
    texts = [text[document] for document in study["item_document"].values.astype(str).tolist()]
    tokens = study["target_token"].values.tolist() if "target_token" in study else [""] * len(texts)
    starts = study["target_start"].values.tolist()
    good = [
        0 <= start <= len(whole) and whole.startswith(token, start)
        for whole, start, token in zip(texts, starts, tokens, strict=True)
    ]
    refuse(study, source, "target_start", good, "the document's text does not have the target there")


def is_word_position(token: str, following: str | None) -> bool:
    """Whether a token is a whole word: a space, then letters only, and the token that follows starts with a space."""
    return is_word_token(token) and following is not None and following.startswith(" ")


def prior_guesses(participant: ArrayLike) -> NDArray[np.int64]:
    """Count the guesses, in the order in which they were given, that each one's participant had given before."""
    code = np.unique(np.asarray(participant), return_inverse=True)[1]
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    before = np.empty(code.size, dtype=np.int64)
    before[order] = np.arange(code.size) - np.repeat(starts, np.diff(starts, append=code.size))
    return before


def repeated_guesses(study: Dataset) -> NDArray[np.bool_]:
    """Which guesses, (response,), are a participant's second or later one at the same item."""
    study = GUESSES.read(study)
    person = np.unique(study["participant"].values.astype(str), return_inverse=True)[1]
    keys = np.stack([person, study["response_item"].values], axis=1)
    again = np.ones(len(keys), dtype=bool)
    again[np.unique(keys, axis=0, return_index=True)[1]] = False
    return again


def guess_contexts(study: Dataset) -> list[str]:
    """Return the text before every item's target, in the order of the items: what a language model is asked to go on.

    Examples
    --------
    >>> guesses.guess_contexts(guesses.examples.guess_study())[:2]
    ['w0', 'w0 w1']
    """
    study, source = GUESSES.read(study), GUESSES.source(study)
    if "text" not in study or "target_start" not in study:
        problem = "are not in the study, so that no language model can play it"
        raise InputError(problem, source=source, field="text, target_start")
    text: Mapping[str, str] = dict(
        zip(study["document"].values.astype(str).tolist(), study["text"].values.tolist(), strict=True)
    )
    documents, starts = study["item_document"].values.astype(str).tolist(), study["target_start"].values.tolist()
    return [text[document][:start] for document, start in zip(documents, starts, strict=True)]


def with_model_answers(
    study: Dataset, model: str, hit: ArrayLike, target_surprisal_nats: ArrayLike | None = None
) -> Dataset:
    """Add a language model that played the same items, and return the new study, validated.

    `hit`, (item,), is 1 where its most probable next token is the target, 0 where it is not, and NaN where it was not
    asked; `target_surprisal_nats` is -ln p(target | the text before it).

    Examples
    --------
    >>> study = guesses.examples.guess_study()
    >>> wider = guesses.with_model_answers(study, "always right", hit=[1] * study.sizes["item"])
    >>> wider["model_hit"].mean("item").values.round(2)
    array([0.38, 1.  ])
    """
    study, source = GUESSES.read(study), GUESSES.source(study)
    n_items = study.sizes["item"]
    there = study["model"].values.tolist() if "model" in study.coords else []
    if model in there:
        raise InputError(f"{model!r} is there already", source=source, field="model")
    columns = {"model_hit": hit, "target_surprisal_nats": target_surprisal_nats}
    added = {}
    for name, column in columns.items():
        values = np.full(n_items, np.nan) if column is None else np.asarray(column, dtype=float)
        if values.shape != (n_items,):
            problem = f"has shape {values.shape}, should be ({n_items},), one an item"
            raise InputError(problem, source=source, field=name)
        before = study[name].values if name in study else np.full((len(there), n_items), np.nan)
        added[name] = (("model", "item"), np.concatenate([before, values[None]]))
    others = study.drop_vars([name for name in (*columns, "model") if name in study])
    wider: Dataset = others.assign(added).assign_coords(model=np.array([*there, model], dtype=object))
    return validate_guess_study(wider)
