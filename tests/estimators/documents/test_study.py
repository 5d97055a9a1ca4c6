"""The documents study's validator, one malformed study at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.documents import validate_documents_study
from shannon_game.estimators.documents.study import document_tokens
from shannon_game.estimators.errors import InputError


def objects(*values: object) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def documents() -> xr.Dataset:
    return xr.Dataset(
        {
            "text": ("document", objects("The cat.", "Zürich\x00 !")),
            "split": ("document", objects("train", "test")),
            "token": ("position", objects("The", " cat", ".", "Zürich\x00", " !")),
            "token_document": ("position", np.array([0, 0, 0, 1, 1])),
        },
        coords={"document": objects("a", "b")},
        attrs={"name": "two"},
    )


def test_a_good_study_is_returned_unchanged() -> None:
    study = documents()
    assert all(validate_documents_study(study)[name].variable.equals(study[name].variable) for name in study.variables)
    assert document_tokens(study, 1) == ["Zürich\x00", " !"]
    plain = study.drop_vars(["token", "token_document"])
    read = validate_documents_study(plain)
    assert all(read[name].variable.equals(plain[name].variable) for name in plain.variables)
    assert validate_documents_study(read) is read
    with pytest.raises(InputError, match="token: is missing"):
        document_tokens(plain, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.drop_vars("token"), "token: is missing; it goes with token_document"),
        (lambda s: s.assign(text=("document", objects(" \n", "a"))), "text: is ' .n', should hold more than white"),
        (lambda s: s.assign(text=("document", np.array(["a", "b\ud83d"]))), "text: holds half of a surrogate pair"),
        (lambda s: s.assign(text=("document", objects("The cat", "?"))), "token: of document 'a' do not give its text"),
        (lambda s: s.drop_vars("text").drop_attrs(), r"^documents study '\(unnamed\)', text: is missing"),
        (lambda s: s.assign(token_document=("position", [0, 0, 1, 0, 1])), "should go through the documents 0 to 1"),
    ],
)
def test_malformed_studies(change: Callable[[xr.Dataset], xr.Dataset], message: str) -> None:
    given = change(documents())
    with pytest.raises(InputError, match=message) as raised:
        validate_documents_study(given)
    if isinstance(given, xr.Dataset):
        assert str(raised.value).startswith(f"documents study {given.attrs.get('name', '(unnamed)')!r}, ")
