"""What the validators of every kind of study check first: variables, their dimensions and types, and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["HUMAN", "Dims", "Dtypes", "check_layout", "response_positions", "study_source"]

HUMAN = "human"
"""Name of the player whose answers are the study's responses."""

Dims = Mapping[str, tuple[str, ...]]
"""Variable -> its dimensions."""

Dtypes = Mapping[str, tuple[str, str]]
"""Variable -> the kinds of its dtype (NumPy's letters), and their name in plain words."""


def study_source(study: xr.Dataset, kind: str) -> str:
    """Name a study in messages, for example ``comparison study 'simulated'``.

    Raises
    ------
    InputError
        If it is no Dataset.
    """
    if not (hasattr(study, "data_vars") and hasattr(study, "attrs")):
        raise InputError(f"is a {type(study).__name__}, should be an xarray.Dataset", field="study")
    return f"{kind} study {study.attrs.get('name', '(unnamed)')!r}"


def check_layout(
    study: xr.Dataset,
    source: str,
    *,
    required: Dims,
    optional: Dims,
    dtypes: Dtypes,
    not_empty: Iterable[str],
    labelled: Iterable[str] = (),
) -> None:
    """Check that a study's variables are there, and are what they should be.

    Parameters
    ----------
    study : xarray.Dataset
    source : str
        Its name in messages.
    required, optional : mapping of str to tuple of str
        Dimensions of the variables that have to be there, and of those that may be.
    dtypes : mapping of str to (str, str)
        Of those variables whose type matters.
    not_empty : iterable of str
        Dimensions that have at least one entry.
    labelled : iterable of str
        Dimensions whose entries have labels, all different.

    Raises
    ------
    InputError
        Names the variable, what was found and what would be right.
    """
    for name, dims in required.items():
        if name not in study:
            raise InputError(f"is missing; the study needs it with dims {dims}", source=source, field=name)
    for name, dims in {**required, **optional}.items():
        if name in study and study[name].dims != dims:
            raise InputError(f"has dims {study[name].dims}, should be {dims}", source=source, field=name)
    for name in not_empty:
        if study.sizes.get(name, 0) == 0:
            raise InputError("is empty; at least one is needed", source=source, field=name)
    for name, (kinds, should) in dtypes.items():
        if name in study and study[name].dtype.kind not in kinds:
            raise InputError(f"has dtype {study[name].dtype}, should be {should}", source=source, field=name)
    for name in labelled:
        if name not in study.coords:
            raise InputError("has no coordinate values", source=source, field=name)
        labels, counts = np.unique(study[name].values, return_counts=True)
        if (counts > 1).any():
            raise InputError(f"{labels[counts > 1].tolist()[0]!r} is there twice", source=source, field=name)


def response_positions(study: xr.Dataset, *, source: object = None) -> NDArray[np.intp]:
    """Positions along ``item`` of every response's item.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study or a guess study.
    source : object, optional
        Named in the error.

    Returns
    -------
    ndarray of int, shape (response,)

    Raises
    ------
    InputError
        If a response names an item that the study does not have.
    """
    labels = study["item"].values
    wanted = study["response_item"].values
    order = np.argsort(labels, kind="stable")
    slot = np.minimum(np.searchsorted(labels, wanted, sorter=order), len(labels) - 1)
    positions = order[slot]
    missing = labels[positions] != wanted
    if missing.any():
        first = int(np.flatnonzero(missing)[0])
        raise InputError(
            f"is {wanted[first]} at response {first}; the study has no such item",
            source=source,
            field="response_item",
        )
    return positions.astype(np.intp, copy=False)
