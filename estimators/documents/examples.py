"""A small study, for the examples of the documentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def documents_study() -> xr.Dataset:
    """Documents study of one text of three tokens."""
    import xarray as xr  # noqa: PLC0415 - importing estimators needs no xarray

    variables = {
        "text": ("document", ["The cat."]),
        "split": ("document", ["all"]),
        "token": ("position", ["The", " cat", "."]),
        "token_document": ("position", [0, 0, 0]),
    }
    return xr.Dataset(variables, coords={"document": ["a"]}, attrs={"name": "small"})
