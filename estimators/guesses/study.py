"""The guess study: people guess the next token of a document, and each guess is right or wrong.

One ``xarray.Dataset``, one validator, and what estimators and models read from it. See :func:`validate_guess_study` for
the variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.documents.tokens import is_word_token
from estimators.errors import InputError, unknown_choice
from estimators.layout import check_layout, response_positions, study_source

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "STORED_TOKENS",
    "guess_contexts",
    "is_word_position",
    "prior_guesses",
    "repeated_guesses",
    "validate_guess_study",
    "with_model_answers",
]

STORED_TOKENS = ("visible", "word")
"""Which tokens a stored accuracy may be of."""

_REQUIRED: dict[str, tuple[str, ...]] = {
    "item_document": ("item",),
    "item_position": ("item",),
    "word_token": ("item",),
    "participant": ("response",),
    "response_item": ("response",),
    "correct": ("response",),
    "n_before": ("response",),
}
_OPTIONAL: dict[str, tuple[str, ...]] = {
    "target_token": ("item",),
    "target_start": ("item",),
    "text": ("document",),
    "guess": ("response",),
    "model_hit": ("model", "item"),
    "target_surprisal_nats": ("model", "item"),
    "stored_accuracy": ("stored",),
    "stored_model": ("stored",),
    "stored_n": ("stored",),
    "stored_tokens": ("stored",),
    "stored_source": ("stored",),
}
_DTYPES = {
    **dict.fromkeys(
        ("item", "item_position", "response_item", "n_before", "target_start", "stored_n"), ("iu", "an integer")
    ),
    **dict.fromkeys(("word_token", "correct"), ("b", "bool")),
    **dict.fromkeys(("document", "item_document", "participant", "target_token", "guess", "text"), ("OUT", "str")),
    **dict.fromkeys(("stored_model", "stored_tokens", "stored_source"), ("OUT", "str")),
    **dict.fromkeys(("model_hit", "target_surprisal_nats", "stored_accuracy"), ("f", "float")),
}
_STORED = ("stored_model", "stored_accuracy", "stored_n", "stored_tokens", "stored_source")


def validate_guess_study(study: xr.Dataset) -> xr.Dataset:
    """Check a guess study and return it unchanged.

    Dimensions are ``document``, ``item`` (a position of a document that was asked about), ``response`` (guesses, in
    long form, each participant's in the order in which they were given), and where there are any ``model`` (language
    models that played the same items) and ``stored`` (accuracies that others have published).

    ========================= =============== =======================================================================
    variable                  dims            meaning
    ========================= =============== =======================================================================
    ``document``              document        name of the document (str, coordinate)
    ``item``                  item            integer label of the position asked (coordinate)
    ``item_document``         item            name of its document
    ``item_position``         item            number of tokens before the target: 0 is the document's first token
    ``word_token``            item            the target passes the study's filter for words (bool)
    ``participant``           response        who guessed (str)
    ``response_item``         response        label of the item
    ``correct``               response        the guess is the target (bool)
    ``n_before``              response        guesses that the participant had given before, whatever became of them
    ``target_token``          item            optional: the token of the text (str)
    ``guess``                 response        optional: the token guessed (str)
    ``text``                  document        optional: the whole document (str); needs ``target_start``
    ``target_start``          item            optional: characters of ``text`` before the target
    ``model_hit``             model, item     optional: 1 the model's most probable next token is the target, 0 it is
                                              not, NaN not asked; between 0 and 1 the share of a tie
    ``target_surprisal_nats`` model, item     optional: -ln p(target | the text before it); NaN not asked
    ``stored_model``          stored          optional: name of a language model whose accuracy is known as a number
    ``stored_accuracy``       stored          that number
    ``stored_n``              stored          on how many guesses; 0 is unknown
    ``stored_tokens``         stored          of which tokens: "visible" or "word"
    ``stored_source``         stored          the file it is from
    ========================= =============== =======================================================================

    A participant may guess at an item more than once; every guess counts, loaders decide what to keep, and
    :func:`repeated_guesses` finds them.

    Attributes: ``name``; ``notes``, see :func:`estimators.notes.notes`.

    Parameters
    ----------
    study : xarray.Dataset

    Returns
    -------
    xarray.Dataset
        The same object.

    Raises
    ------
    InputError
        Names the variable, the item or response, the value found and what would be right.
    """
    source = study_source(study, "guess")
    check_layout(
        study,
        source,
        required=_REQUIRED,
        optional=_OPTIONAL,
        dtypes=_DTYPES,
        not_empty=("document", "item", "response"),
        labelled=("document", "item", *(["model"] if "model" in study.dims else [])),
    )
    _check_items(study, source)
    _check_responses(study, source)
    _check_text(study, source)
    _check_models(study, source)
    _check_stored(study, source)
    return study


def _check_items(study: xr.Dataset, source: str) -> None:
    labels = study["item"].values
    document, position = study["item_document"].values.astype(str), study["item_position"].values
    unknown = ~np.isin(document, study["document"].values.astype(str))
    if unknown.any():
        first = int(np.flatnonzero(unknown)[0])
        raise InputError(
            f"is {str(document[first])!r} at item {labels[first]}; the study has no such document",
            source=source,
            field="item_document",
        )
    if (position < 0).any():
        first = int(np.flatnonzero(position < 0)[0])
        raise InputError(
            f"is {position[first]} at item {labels[first]}, should be at least 0", source=source, field="item_position"
        )
    order = np.lexsort((position, document))
    twice = (document[order][1:] == document[order][:-1]) & (position[order][1:] == position[order][:-1])
    if twice.any():
        first = int(order[int(np.flatnonzero(twice)[0])])
        raise InputError(
            f"is {position[first]} for two items of document {str(document[first])!r}; one item a position",
            source=source,
            field="item_position",
        )


def _check_responses(study: xr.Dataset, source: str) -> None:
    response_positions(study, source=source)
    people = study["participant"].values.tolist()
    nameless = [who for who in people if not isinstance(who, str) or not who]
    if nameless:
        raise InputError(
            f"is {nameless[0]!r} ({len(nameless)} such); every guess needs the name of its participant",
            source=source,
            field="participant",
        )
    before = study["n_before"].values
    code = np.unique(study["participant"].values.astype(str), return_inverse=True)[1]
    order = np.argsort(code, kind="stable")
    bad = np.zeros(before.size, dtype=bool)
    bad[order[1:]] = (code[order][1:] == code[order][:-1]) & (before[order][1:] <= before[order][:-1])
    bad |= before < 0
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"is {before[first]} at response {first} (participant {people[first]!r}, {int(bad.sum())} such); it counts "
            "a participant's guesses from 0 and rises from each one to the next",
            source=source,
            field="n_before",
        )


def _check_text(study: xr.Dataset, source: str) -> None:
    if "target_start" not in study or "text" not in study:
        if "target_start" in study or "text" in study:
            raise InputError(
                "go together: the texts, and where in them each target starts",
                source=source,
                field="text, target_start",
            )
        return
    text = dict(zip(study["document"].values.astype(str).tolist(), study["text"].values.tolist(), strict=True))
    documents = study["item_document"].values.astype(str).tolist()
    tokens = study["target_token"].values.tolist() if "target_token" in study else [""] * len(documents)
    starts = study["target_start"].values.tolist()
    for label, document, start, token in zip(study["item"].values.tolist(), documents, starts, tokens, strict=True):
        if not 0 <= start <= len(text[document]) or not text[document].startswith(token, start):
            raise InputError(
                f"is {start} at item {label}, but the text of document {document!r} has no {token!r} there",
                source=source,
                field="target_start",
            )


def _check_models(study: xr.Dataset, source: str) -> None:
    for name, highest in (("model_hit", 1.0), ("target_surprisal_nats", np.inf)):
        if name not in study:
            continue
        values = study[name].values
        bad = (values < 0) | (values > highest) | np.isinf(values)
        if bad.any():
            model, item = (int(i) for i in np.argwhere(bad)[0])
            right = "from 0 to 1" if name == "model_hit" else "finite and at least 0"
            raise InputError(
                f"is {values[model, item]} for model {str(study['model'].values[model])!r} at item "
                f"{study['item'].values[item]}, should be {right}, or NaN where it was not asked",
                source=source,
                field=name,
            )


def _check_stored(study: xr.Dataset, source: str) -> None:
    if "stored" not in study.dims:
        return
    for name in _STORED:
        if name not in study:
            raise InputError("is missing; stored accuracies need it", source=source, field=name)
    accuracy = study["stored_accuracy"].values
    bad = ~((accuracy >= 0) & (accuracy <= 1))
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"is {accuracy[first]} for {str(study['stored_model'].values[first])!r}, should be a share from 0 to 1",
            source=source,
            field="stored_accuracy",
        )
    if (study["stored_n"].values < 0).any():
        raise InputError("should be at least 0 (unknown)", source=source, field="stored_n")
    for tokens in study["stored_tokens"].values.tolist():
        if tokens not in STORED_TOKENS:
            raise unknown_choice("stored_tokens", tokens, STORED_TOKENS, source=source)


def is_word_position(token: str, following: str | None) -> bool:
    """Whether a token is a whole word: a space, then letters only, and the token that follows starts with a space.

    Parameters
    ----------
    token : str
    following : str or None
        None at the end of the document, where no space is left to be seen.

    Returns
    -------
    bool
    """
    return is_word_token(token) and following is not None and following.startswith(" ")


def prior_guesses(participant: ArrayLike) -> NDArray[np.int64]:
    """Count the guesses that each one's participant had given before.

    Parameters
    ----------
    participant : array_like, shape (response,)
        Names or codes in the order in which guesses were given.

    Returns
    -------
    ndarray of int, shape (response,)
        0 for everybody's first.
    """
    code = np.unique(np.asarray(participant), return_inverse=True)[1]
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    before = np.empty(code.size, dtype=np.int64)
    before[order] = np.arange(code.size) - np.repeat(starts, np.diff(starts, append=code.size))
    return before


def repeated_guesses(study: xr.Dataset) -> NDArray[np.bool_]:
    """Which guesses are a participant's second or later one at the same item.

    Games that show the right token after a guess make every later one no guess at all.

    Parameters
    ----------
    study : xarray.Dataset
        A guess study.

    Returns
    -------
    ndarray of bool, shape (response,)
    """
    person = np.unique(study["participant"].values.astype(str), return_inverse=True)[1]
    keys = np.stack([person, study["response_item"].values], axis=1)
    again = np.ones(len(keys), dtype=bool)
    again[np.unique(keys, axis=0, return_index=True)[1]] = False
    return again


def guess_contexts(study: xr.Dataset) -> list[str]:
    """Return the text before every item's target, in the order of the items: what a language model is asked to go on.

    Parameters
    ----------
    study : xarray.Dataset
        A guess study with ``text`` and ``target_start``.

    Returns
    -------
    list of str, one an item

    Raises
    ------
    InputError
        If the study has no texts.
    """
    if "text" not in study or "target_start" not in study:
        raise InputError(
            "are not in the study, so that no language model can play it",
            source=f"guess study {study.attrs.get('name', '(unnamed)')!r}",
            field="text, target_start",
        )
    text: Mapping[str, str] = dict(
        zip(study["document"].values.astype(str).tolist(), study["text"].values.tolist(), strict=True)
    )
    documents, starts = study["item_document"].values.astype(str).tolist(), study["target_start"].values.tolist()
    return [text[document][:start] for document, start in zip(documents, starts, strict=True)]


def with_model_answers(
    study: xr.Dataset, model: str, hit: ArrayLike, target_surprisal_nats: ArrayLike | None = None
) -> xr.Dataset:
    """Add a language model that played the same items.

    Parameters
    ----------
    study : xarray.Dataset
        A guess study.
    model : str
        Its name; a model of that name must not be there yet.
    hit : array_like of float, shape (item,)
        1 where its most probable next token is the target, 0 where it is not, NaN where it was not asked.
    target_surprisal_nats : array_like of float, shape (item,), optional
        -ln p(target | the text before it), NaN where it was not asked.

    Returns
    -------
    xarray.Dataset
        A new study, validated, with one model more.

    Raises
    ------
    InputError
        If the name is taken, the arrays do not have one value an item, or a value is out of range.
    """
    source = f"guess study {study.attrs.get('name', '(unnamed)')!r}"
    n_items = study.sizes["item"]
    there = study["model"].values.tolist() if "model" in study.coords else []
    if model in there:
        raise InputError(f"{model!r} is there already", source=source, field="model")
    columns = {"model_hit": hit, "target_surprisal_nats": target_surprisal_nats}
    added = {}
    for name, column in columns.items():
        values = np.full(n_items, np.nan) if column is None else np.asarray(column, dtype=float)
        if values.shape != (n_items,):
            raise InputError(
                f"has shape {values.shape}, should be ({n_items},), one an item", source=source, field=name
            )
        before = study[name].values if name in study else np.full((len(there), n_items), np.nan)
        added[name] = (("model", "item"), np.concatenate([before, values[None]]))
    others = study.drop_vars([name for name in (*columns, "model") if name in study])
    wider: xr.Dataset = others.assign(added).assign_coords(model=np.array([*there, model], dtype=object))
    return validate_guess_study(wider)
