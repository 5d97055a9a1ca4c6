"""The documents study: plain texts, from which comparison studies are built and on which models are scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError
from estimators.layout import check_layout, study_source

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["document_tokens", "validate_documents_study"]

_REQUIRED: dict[str, tuple[str, ...]] = {"document": ("document",), "text": ("document",), "split": ("document",)}
_OPTIONAL: dict[str, tuple[str, ...]] = {"token": ("position",), "token_document": ("position",)}


def validate_documents_study(study: xr.Dataset) -> xr.Dataset:
    """Check a documents study and return it unchanged.

    Dimensions are ``document`` and, where the texts come cut into tokens, ``position`` (tokens of all documents, one
    document after the other).

    ==================  ==========  ==========================================================================
    variable            dims        meaning
    ==================  ==========  ==========================================================================
    ``document``        document    name of the document, each once (str; coordinate)
    ``text``            document    the text, with more than white space in it, in whole characters (str)
    ``split``           document    part of the corpus that it belongs to, ``"all"`` where there are none (str)
    ``token``           position    optional: the document's tokens, which joined give its text (str)
    ``token_document``  position    with ``token``: position along ``document``, never decreasing (int)
    ==================  ==========  ==========================================================================

    Attributes: ``name``; ``data_sha256``, the hash of what was read; ``notes``, see
    :func:`estimators.notes.notes`.

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
        Names the variable, the document, the value found and what would be right.
    """
    source = study_source(study, "documents")
    _check_layout(study, source)
    _check_strings(study, source)
    _check_tokens(study, source)
    return study


def document_tokens(study: xr.Dataset, document: int) -> list[str]:
    """Tokens of one document of a study that has them.

    Parameters
    ----------
    study : xarray.Dataset
    document : int
        Position along ``document``.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        If the study has no tokens.
    """
    if "token" not in study:
        raise InputError("is missing; the texts of this study did not come cut into tokens", field="token")
    first, last = np.searchsorted(study["token_document"].values, [document, document + 1])
    tokens: list[str] = study["token"].values[first:last].tolist()
    return tokens


def _check_layout(study: xr.Dataset, source: str) -> None:
    check_layout(study, source, required=_REQUIRED, optional=_OPTIONAL, dtypes={}, not_empty=["document"])
    for one, other in (("token", "token_document"), ("token_document", "token")):
        if one in study and other not in study:
            raise InputError(f"is missing; it goes with {one}", source=source, field=other)


def _check_strings(study: xr.Dataset, source: str) -> None:
    for name in ("document", "text", "split", "token"):
        if name not in study:
            continue
        values = study[name].values
        where = study["document"].values if name != "token" else np.arange(len(values))
        unit = "document" if name != "token" else "position"
        for place, value in zip(where.tolist(), values.tolist(), strict=True):
            problem = _string_problem(name, value)
            if problem is not None:
                raise InputError(f"{problem} at {unit} {place!r}", source=source, field=name)
    names, counts = np.unique(study["document"].values.astype(str), return_counts=True)
    if (counts > 1).any():
        raise InputError(f"{str(names[counts > 1][0])!r} is there twice", source=source, field="document")


def _string_problem(name: str, value: object) -> str | None:
    if not isinstance(value, str):
        return f"is {value!r}, should be a str"
    if name == "token":
        return None
    if not value.strip():
        return f"is {value[:20]!r}, should hold more than white space"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as problem:
        return f"holds half of a surrogate pair, {value[problem.start]!r} in place {problem.start}, which no file can"
    return None


def _check_tokens(study: xr.Dataset, source: str) -> None:
    if "token" not in study:
        return
    documents = study["token_document"].values
    if documents.dtype.kind not in "iu":
        raise InputError(f"has dtype {documents.dtype}, should be an integer", source=source, field="token_document")
    if not _are_groups(documents, study.sizes["document"]):
        raise InputError(
            f"should go through the documents 0 to {study.sizes['document'] - 1} one after the other, each with at "
            "least one token",
            source=source,
            field="token_document",
        )
    for position, text in enumerate(study["text"].values.tolist()):
        if "".join(document_tokens(study, position)) != text:
            raise InputError(
                f"of document {study['document'].values[position]!r} do not give its text when joined",
                source=source,
                field="token",
            )


def _are_groups(documents: NDArray[np.integer], n_documents: int) -> bool:
    """Whether every document has tokens, all of them together, in the order of the documents."""
    if not len(documents) or documents[0] != 0 or documents[-1] != n_documents - 1:
        return False
    return bool(np.isin(np.diff(documents), (0, 1)).all())
