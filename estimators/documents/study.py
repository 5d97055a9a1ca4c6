"""The documents study: plain texts, from which comparison studies are built and on which models are scored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.schema import Schema, Variable, owned

DOCUMENTS = Schema(
    kind="documents",
    cure="texts(path=...) makes one of text files (from shannon_game import texts)",
    may_be_empty=("position",),
    variables=(
        Variable("document", "document", "str", "name of the document"),
        Variable("text", "document", "str", "the text, with more than white space in it, in whole characters"),
        Variable("given", "document", "str", "the text as it was given, where line ends were changed", needed=False),
        Variable("split", "document", "str", 'part of the corpus that it belongs to, "all" where there are none'),
        Variable("group", "document", "str", "text of which the documents are parts, in order", needed=False),
        Variable("pair", "document", "str", "minimal pair of which it is a text", "is_good"),
        Variable("is_good", "document", "bool", "whether it is the better text of its pair", "pair"),
        Variable("prefix", "document", "str", "what stands before it and is not scored", needed=False),
        owned("region_document", "region", "int", "of a region of interest", "region", position_along="document"),
        Variable("region_start", "region", "int", "its first character", "region"),
        Variable("region_stop", "region", "int", "the character after its last", "region"),
        Variable("token", "position", "str", "its tokens, which joined give its text", "token_document"),
        owned(
            "token_document", "position", "int", "the document, never decreasing", "token", position_along="document"
        ),
    ),
)
"""Variables of a documents study."""


@DOCUMENTS.documented
def validate_documents_study(study: Dataset) -> Dataset:
    """Check a documents study, and return it read by its labels: cut or reordered, it is what it says.

    Dimensions are ``document`` and, where the texts come cut into tokens, ``position`` (tokens of all documents, one
    document after the other).

    {variables}

    Attribute ``data_sha256`` is the hash of what was read.

    Examples
    --------
    >>> documents.validate_documents_study(documents.examples.documents_study())["split"].values.tolist()
    ['all']
    """
    number = study["document_number"].values if "group" in study and "document_number" in study else np.zeros(0)
    study, source = DOCUMENTS.check(study)
    if (np.diff(number) < 0).any():
        problem = "falls, and the documents are parts of texts (group); sortby('document_number') restores their order"
        raise InputError(problem, source=source, field="document_number")
    for name in ("document", "text", "split"):
        for document, value in zip(study["document"].values.tolist(), study[name].values.tolist(), strict=True):
            what = _string_problem(value)
            if what is not None:
                raise InputError(f"{what} at document {document!r}", source=source, field=name)
    if "token" in study:
        _check_tokens(study, source)
    return study


def document_tokens(study: Dataset, document: int) -> list[str]:
    """Tokens of one document, by its position, of a study that has them."""
    study, source = DOCUMENTS.read(study), DOCUMENTS.source(study)
    if "token" not in study:
        problem = "is missing; the texts of this study did not come cut into tokens"
        raise InputError(problem, source=source, field="token")
    first, last = np.searchsorted(study["token_document"].values, [document, document + 1])
    tokens: list[str] = study["token"].values[first:last].tolist()
    return tokens


def _string_problem(value: str) -> str | None:
    if not value.strip():
        return f"is {value[:20]!r}, should hold more than white space"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as problem:
        return f"holds half of a surrogate pair, {value[problem.start]!r} in place {problem.start}, which no file can"
    return None


def _check_tokens(study: Dataset, source: str) -> None:
    documents = study["token_document"].values
    if not _are_groups(documents, study.sizes["document"]):
        problem = (
            f"should go through the documents 0 to {study.sizes['document'] - 1} in order, with a token or more each"
        )
        raise InputError(problem, source=source, field="token_document")
    for position, text in enumerate(study["text"].values.tolist()):
        if "".join(document_tokens(study, position)) != text:
            problem = f"of document {study['document'].values[position]!r} do not give its text when joined"
            raise InputError(problem, source=source, field="token")


def _are_groups(documents: NDArray[np.integer], n_documents: int) -> bool:
    """Whether every document has tokens, all of them together, in the order of the documents."""
    if not len(documents) or documents[0] != 0 or documents[-1] != n_documents - 1:
        return False
    return bool(np.isin(np.diff(documents), (0, 1)).all())
