"""Estimates of one quantity from several studies, to be pooled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from estimators.schema import Range, Schema, Variable

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ESTIMATES", "validate_estimates_study"]

ESTIMATES = Schema(
    kind="estimates",
    cure="the command's study=estimates makes one of a table",
    variables=(
        Variable("source", "source", "str", "name of the study that the estimate is from", filled=True),
        Variable("estimate", "source", "float", "in one unit for all studies", range=Range("finite")),
        Variable(
            "se", "source", "float", "standard error, in the same unit", range=Range("above 0", 0, open_ends=True)
        ),
        Variable("group", "source", "str", 'what is pooled apart, such as a model; "all" where nothing is'),
    ),
)
"""Variables of a study of estimates."""


@ESTIMATES.documented
def validate_estimates_study(study: xr.Dataset) -> xr.Dataset:
    """Check a study of estimates and return it unchanged.

    The dimension is ``source``: one estimate a study (and group).

    {variables}

    Attribute ``units`` says the unit, where it is known.

    {sections}

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from estimators import documents
    >>> columns = {"estimate": [1.3, 1.2], "se": [0.05, 0.04], "group": ["all", "all"]}
    >>> variables = {name: ("source", np.array(values)) for name, values in columns.items()}
    >>> study = xr.Dataset(variables, coords={"source": ["a", "b"]}, attrs={"name": "small"})
    >>> documents.validate_estimates_study(study) is study
    True
    """
    ESTIMATES.check(study)
    return study
