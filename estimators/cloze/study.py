"""The cloze study: people's next words (and models') for many contexts, in one ``xarray.Dataset``, one validator.

See :func:`validate_cloze_study` for the variables, and ``estimators.cloze.words`` for how strings become words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError, unknown_choice
from estimators.layout import check_layout, study_source

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["SAMPLES", "entry_positions", "item_positions", "model_names", "validate_cloze_study"]

SAMPLES = "samples"
"""Name of the source whose words are a model's unbiased samples: those that make its distribution."""

_REQUIRED: dict[str, tuple[str, ...]] = {
    "text_id": ("item",),
    "word_num": ("item",),
    "context": ("item",),
    "target_word": ("item",),
    "word_text": ("word",),
    "response_item": ("response",),
    "response_word": ("response",),
}
_MODELS: dict[str, tuple[str, ...]] = {
    "entry_item": ("entry",),
    "entry_model": ("entry",),
    "sample_entry": ("sample",),
    "sample_word": ("sample",),
    "sample_source": ("sample",),
    "sample_count": ("sample",),
}
_RESULTS: dict[str, tuple[str, ...]] = {
    "result_item": ("result",),
    "result_list": ("result",),
    "result_value": ("result",),
}
_OPTIONAL: dict[str, tuple[str, ...]] = {
    "response_count": ("response",),
    "response_proportion": ("response",),
    "participant": ("response",),
    "oracle_count": ("oracle", "response"),
    "sample_logprob": ("sample",),
}
_INTEGER = (
    *("item", "word_num", "response_item", "response_word", "response_count", "oracle_count"),
    *("entry_item", "entry_model", "sample_entry", "sample_word", "sample_source", "sample_count"),
    *("result_item", "result_list"),
)
_STRING = ("text_id", "context", "target_word", "word_text", "participant")
_FLOAT = ("response_proportion", "sample_logprob", "result_value")
_DTYPES = {
    **dict.fromkeys(_INTEGER, ("iu", "an integer")),
    **dict.fromkeys(_STRING, ("OUT", "str")),
    **dict.fromkeys(_FLOAT, ("f", "float")),
}
_LOGPROB_SLACK = 1e-5


def validate_cloze_study(study: xr.Dataset) -> xr.Dataset:
    """Check a cloze study and return it unchanged.

    Dimensions are ``item`` (contexts), ``word`` (distinct strings as they stand in the data, before any
    normalisation: every variable that names a word holds a position along it), ``response`` (answers in long form:
    one row per participant, or per context and answer with a count). Where there are models: ``model``, ``entry``
    (one query of a model on one context; a context may have several, or none), ``source`` (how words came about)
    and ``sample`` (a word of an entry from one source). Published results may stand beside the data:
    ``result_name`` and ``result``.

    =======================  =================  ==================================================================
    variable                 dims               meaning
    =======================  =================  ==================================================================
    ``item``                 item               integer label of the context (coordinate)
    ``text_id``              item               text that the context is from: the group of items (str)
    ``word_num``             item               number of the word asked for in its text (int);
                                                (``text_id``, ``word_num``) is there once
    ``context``              item               text before the word asked for (str); need not be unique
    ``target_word``          item               the word of the text, as printed; "" where there is none (str)
    ``word_text``            word               the string, as typed, generated or printed; "" is a blank answer (str)
    ``response_item``        response           label of the item answered (int)
    ``response_word``        response           position along ``word`` (int)
    ``response_count``       response           how many participants gave this answer, 0 or more (int)
    ``response_proportion``  response           share of participants who gave it, for studies without counts; within
                                                an item they need not sum to one (float in [0, 1])
    ``participant``          response           optional: who answered; ``response_count`` is 1 then (str)
    ``oracle_count``         oracle, response   optional: of the count, how many are in a sub-sample published with
                                                the study, for example one of two halves (int)
    ``model``                model              name of the model (coordinate)
    ``entry_item``           entry              label of the item (int)
    ``entry_model``          entry              position along ``model`` (int)
    ``source``               source             name (coordinate); "samples" are a model's unbiased samples
    ``sample_entry``         sample             position along ``entry`` (int)
    ``sample_word``          sample             position along ``word`` (int)
    ``sample_source``        sample             position along ``source`` (int)
    ``sample_count``         sample             how often it was drawn, 0 where it was only scored (int)
    ``sample_logprob``       sample             optional: ln q(word | context) under the model, nats; NaN: unknown
    ``result_name``          result_name        name of a published list of results (coordinate)
    ``result_item``          result             label of the item (int)
    ``result_list``          result             position along ``result_name`` (int)
    ``result_value``         result             the published value (float)
    =======================  =================  ==================================================================

    A study has ``response_count`` or ``response_proportion``. Every item has an answer. Rows stand in the order of
    the data, which the paper's own code depends on.

    Attributes: ``name``; ``word_rules``, the name of the rules that make this study's strings comparable
    (:data:`estimators.cloze.words.WORD_RULES`); ``notes``, see :func:`estimators.notes.notes`.

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
        Names the variable, the item or row, the value found and what would be right.
    """
    source = study_source(study, "cloze")
    _check_variables(study, source)
    _check_items(study, source)
    _check_positions(study, source)
    _check_responses(study, source)
    if "model" in study.dims:
        _check_models(study, source)
    return study


def model_names(study: xr.Dataset) -> list[str]:
    """Names of the models whose words the study holds, in its order."""
    return [str(name) for name in study["model"].values.tolist()] if "model" in study.dims else []


def item_positions(study: xr.Dataset, variable: str) -> NDArray[np.intp]:
    """Positions along ``item`` of the labels that a variable holds (``response_item``, ``entry_item``, ...).

    Raises
    ------
    InputError
        If a label is no item of the study.
    """
    labels, wanted = study["item"].values, study[variable].values
    order = np.argsort(labels, kind="stable")
    slot = np.minimum(np.searchsorted(labels, wanted, sorter=order), len(labels) - 1)
    positions = order[slot]
    missing = labels[positions] != wanted
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"is {wanted[first]} at row {first}; the study has no such item",
            source=f"cloze study {study.attrs.get('name', '(unnamed)')!r}",
            field=variable,
        )
    return positions.astype(np.intp, copy=False)


def entry_positions(study: xr.Dataset, model: str) -> NDArray[np.intp]:
    """Positions along ``entry`` of one model's entries, in the order of its file.

    Raises
    ------
    InputError
        If the study has no such model.
    """
    names = model_names(study)
    if model not in names:
        raise unknown_choice("model", model, names, source=f"cloze study {study.attrs.get('name', '(unnamed)')!r}")
    return np.flatnonzero(study["entry_model"].values == names.index(model))


def _check_variables(study: xr.Dataset, source: str) -> None:
    has_models = "model" in study.dims
    check_layout(
        study,
        source,
        required=_REQUIRED | (_MODELS if has_models else {}) | (_RESULTS if "result_name" in study.dims else {}),
        optional=_MODELS | _RESULTS | _OPTIONAL,
        dtypes=_DTYPES,
        not_empty=("item", "word", "response", *(("model", "entry", "source") if has_models else ())),
    )
    if "response_count" not in study and "response_proportion" not in study:
        raise InputError(
            "is missing, and so is response_proportion; one of them is needed", source=source, field="response_count"
        )


def _check_items(study: xr.Dataset, source: str) -> None:
    for name in ("item", "model", "source", "result_name"):
        if name in study.dims:
            if name not in study.coords:
                raise InputError("has no coordinate values", source=source, field=name)
            _check_unique(study[name].values.tolist(), source, name)
    keys = list(zip(study["text_id"].values.tolist(), study["word_num"].values.tolist(), strict=True))
    _check_unique(keys, source, "(text_id, word_num)")
    for name in _STRING:
        if name in study:
            # strings come as objects, and an object may be anything
            for row, value in enumerate(study[name].values.tolist()):
                if not isinstance(value, str):
                    raise InputError(f"is {value!r} at row {row}, should be a string", source=source, field=name)
    _check_unique(study["word_text"].values.tolist(), source, "word_text")


def _check_unique(values: list[Any], source: str, name: str) -> None:
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            raise InputError(f"{value!r} is there twice", source=source, field=name)
        seen.add(value)


def _check_positions(study: xr.Dataset, source: str) -> None:
    for name, dim in (
        ("response_word", "word"),
        ("entry_model", "model"),
        ("sample_entry", "entry"),
        ("sample_word", "word"),
        ("sample_source", "source"),
        ("result_list", "result_name"),
    ):
        if name in study:
            values = study[name].values
            _check_rows(
                (values >= 0) & (values < study.sizes[dim]), values, source, name, f"0 to {study.sizes[dim] - 1}"
            )
    for name in ("response_item", "entry_item", "result_item"):
        if name in study:
            item_positions(study, name)


def _check_rows(good: NDArray[np.bool_], values: NDArray[Any], source: str, name: str, right: str) -> None:
    if not good.all():
        first = int(np.flatnonzero(~good)[0])
        raise InputError(
            f"is {values[first]!r} at row {first} ({int((~good).sum())} such); should be {right}",
            source=source,
            field=name,
        )


def _check_responses(study: xr.Dataset, source: str) -> None:
    weight = np.zeros(study.sizes["response"])
    if "response_count" in study:
        count = study["response_count"].values
        _check_rows(count >= 0, count, source, "response_count", "0 or more")
        weight += count
        if "participant" in study:
            _check_rows(count == 1, count, source, "response_count", "1, because each row is one participant's answer")
        if "oracle_count" in study:
            oracle = study["oracle_count"].values
            _check_rows(oracle.min(0) >= 0, oracle.min(0), source, "oracle_count", "0 or more")
            _check_rows(oracle.sum(0) <= count, oracle.sum(0), source, "oracle_count", "at most response_count in sum")
    if "response_proportion" in study:
        share = study["response_proportion"].values
        _check_rows((share >= 0) & (share <= 1), share, source, "response_proportion", "a share between 0 and 1")
        weight += share
    answered = np.bincount(item_positions(study, "response_item"), weights=weight, minlength=study.sizes["item"]) > 0
    if not answered.all():
        first = int(np.flatnonzero(~answered)[0])
        raise InputError(
            f"{study['item'].values[first]} (text {study['text_id'].values[first]}, word "
            f"{study['word_num'].values[first]}) has no answer ({int((~answered).sum())} such); leave the item out",
            source=source,
            field="item",
        )


def _check_models(study: xr.Dataset, source: str) -> None:
    count = study["sample_count"].values
    _check_rows(count >= 0, count, source, "sample_count", "0 or more")
    if "sample_logprob" in study:
        logprob = study["sample_logprob"].values
        good: NDArray[np.bool_] = np.isnan(logprob) | (logprob <= _LOGPROB_SLACK)
        _check_rows(good, logprob, source, "sample_logprob", "a log-probability, at most 0, or NaN")
