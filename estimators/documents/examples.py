"""A small study, for the examples of the documentation."""

from __future__ import annotations

from shannon_game.estimators.arrays import Dataset


def documents_study() -> Dataset:
    """Documents study of one text of three tokens."""
    import xarray as xr  # noqa: PLC0415 - importing estimators needs no xarray

    variables = {
        "text": ("document", ["The cat."]),
        "split": ("document", ["all"]),
        "token": ("position", ["The", " cat", "."]),
        "token_document": ("position", [0, 0, 0]),
    }
    return xr.Dataset(variables, coords={"document": ["a"]}, attrs={"name": "small"})
