"""The documents study's validator, one malformed study at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from estimators.documents import document_tokens, validate_documents_study
from estimators.errors import InputError


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
    assert validate_documents_study(study) is study
    assert document_tokens(study, 1) == ["Zürich\x00", " !"]
    plain = study.drop_vars(["token", "token_document"])
    assert validate_documents_study(plain) is plain
    with pytest.raises(InputError, match="token: is missing"):
        document_tokens(plain, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.drop_vars("text"), "text: is missing; a documents study needs it"),
        (lambda s: s.drop_vars("split"), "split: is missing"),
        (lambda s: s.drop_vars("document"), "document: is missing"),
        (lambda s: s.drop_vars("token"), "token: is missing; it goes with token_document"),
        (lambda s: s.drop_vars("token_document"), "token_document: is missing; it goes with token"),
        (lambda s: s.assign(text=("other", objects("a", "b"))), r"text: has dims \('other',\), should be"),
        (lambda s: s.isel(document=slice(0)), "document: is empty"),
        (lambda s: s.assign_coords(document=objects("a", "a")), "document: 'a' is there twice"),
        (lambda s: s.assign_coords(document=objects("a", 3)), "document: is 3, should be a str"),
        (lambda s: s.assign(text=("document", objects("a", 3))), "text: is 3, should be a str at document 'b'"),
        (lambda s: s.assign(text=("document", objects(" \n", "a"))), "text: is ' .n', should hold more than white"),
        (lambda s: s.assign(text=("document", np.array(["a", "b\ud83d"]))), "text: holds half of a surrogate pair"),
        (lambda s: s.assign(token_document=("position", [0.0] * 5)), "token_document: has dtype float64"),
        (lambda s: s.assign(token_document=("position", [0, 0, 1, 0, 1])), "should go through the documents 0 to 1"),
        (lambda s: s.assign(token_document=("position", [0, 0, 0, 0, 0])), "should go through the documents 0 to 1"),
        (lambda s: s.assign(token_document=("position", [0, 0, 1, 1, 1])), "of document 'a' do not give its text"),
        (lambda s: s.text, "documents study 'text'|study: is a DataArray"),
    ],
)
def test_malformed_studies(change: Callable[[xr.Dataset], xr.Dataset], message: str) -> None:
    with pytest.raises(InputError, match=message):
        validate_documents_study(change(documents()))
