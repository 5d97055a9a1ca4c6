"""A comparison study as one netCDF file: what an experiment built, or what another program wrote.

The file holds the variables that :func:`estimators.comparison.study.validate_comparison_study` documents under their
own names, so that xarray, R or Panoply read it. Strings are lossless: those that netCDF cannot hold (a null character,
half of a surrogate pair) are written with a backslash and the number of the character, and the variable says so in
its attribute ``string_escape``.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from estimators.comparison import validate_comparison_study
from estimators.errors import InputError
from experiments.studies.loader_settings import loader_settings

__all__ = ["DEFAULTS", "load", "save_comparison_study"]

DEFAULTS: Mapping[str, Any] = {"name": "comparison_file", "path": None}
"""Every setting with the value it has when it is not given; explained in ``conf/study/comparison_file.yaml``."""

_SOURCE = "study=comparison_file"
_FORMAT = "format"
_FORMAT_VALUE = "shannon-game comparison study 1"
_ESCAPE = "string_escape"
_ESCAPE_VALUE = "backslash, u, four hexadecimal digits"
_UNHOLDABLE = re.compile("[\x00\ud800-\udfff]")
_TO_ESCAPE = re.compile("[\x00\\\\\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


def save_comparison_study(study: xr.Dataset, path: Path | str) -> Path:
    """Write a comparison study as netCDF, in one step.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study; its attributes are strings or numbers.
    path : Path or str
        Ends in ``.nc``; its folder exists. A file of that name is replaced.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If the study is not valid, or the name does not end in ``.nc``, or its folder does not exist.
    """
    path = Path(path)
    if path.suffix != ".nc" or not path.parent.is_dir():
        raise InputError(f"is {str(path)!r}, should be a name ending in .nc in a folder that exists", field="path")
    validate_comparison_study(study)
    encoded = study.copy()
    for name, variable in study.variables.items():
        if variable.dtype.kind in "OUT":
            encoded[name] = _encoded(variable)
    encoded.attrs[_FORMAT] = _FORMAT_VALUE
    handle, temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=".tmp", dir=path.parent)
    os.close(handle)
    try:
        encoded.to_netcdf(temporary, engine="h5netcdf")
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return path


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load a comparison study from a netCDF file.

    Parameters
    ----------
    config : mapping
        ``path``, the file; ``name``, which is "comparison_file".

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.comparison.study.validate_comparison_study`. ``attrs["data_sha256"]`` is the file's
        hash; ``attrs["name"]`` the study's own name, or the file's where it has none.

    Raises
    ------
    InputError
        If a setting is unknown, the file is missing, damaged or no netCDF, or the study in it is not valid.
    """
    given = loader_settings(config, DEFAULTS, source=_SOURCE)["path"]
    if not isinstance(given, str | Path) or not str(given):
        raise InputError(f"is {given!r}; give study.path=FILE.nc", source=_SOURCE, field="path")
    path = Path(given).expanduser()
    if not path.is_file():
        raise InputError("there is no such file", source=path, field="study.path")
    study = _read(path)
    wanted = study.attrs.pop(_FORMAT, _FORMAT_VALUE)
    if wanted != _FORMAT_VALUE:
        raise InputError(
            f"is {wanted!r}, this version of shannon-game reads {_FORMAT_VALUE!r}", source=path, field=_FORMAT
        )
    for name, variable in study.variables.items():
        if _ESCAPE in variable.attrs or variable.dtype.kind in "OUT":
            study[name] = _decoded(variable, f"{path}, {name}")
    study.attrs["data_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    study.attrs.setdefault("name", path.stem)
    try:
        return validate_comparison_study(study)
    except InputError as problem:
        raise InputError(f"holds no comparison study that can be used: {problem}", source=path) from None


def _read(path: Path) -> xr.Dataset:
    try:
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            return dataset.load()
    except Exception as problem:
        # a file that is damaged or something else makes HDF5 raise nearly anything
        raise InputError(
            f"cannot be read as netCDF ({type(problem).__name__}: {' '.join(str(problem).split())})", source=path
        ) from problem


def _encoded(variable: xr.Variable) -> xr.Variable:
    values = variable.values.astype(object)
    texts: list[str] = values.ravel().tolist()
    attributes = dict(variable.attrs)
    if any(_UNHOLDABLE.search(text) for text in texts):
        texts = [_TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) for text in texts]
        attributes[_ESCAPE] = _ESCAPE_VALUE
    strings = _objects(texts).reshape(values.shape)
    # an empty array of objects has no type of its own, and would come back as numbers
    return xr.Variable(variable.dims, strings if strings.size else strings.astype(str), attributes)


def _decoded(variable: xr.Variable, source: str) -> xr.Variable:
    texts = variable.values.ravel().tolist()
    attributes = dict(variable.attrs)
    escape = attributes.pop(_ESCAPE, None)
    if escape not in (None, _ESCAPE_VALUE):
        raise InputError(f"is {escape!r}, should be {_ESCAPE_VALUE!r} or absent", source=source, field=_ESCAPE)
    if escape is not None:
        texts = [_ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) for text in texts]
    return xr.Variable(variable.dims, _objects(texts).reshape(variable.shape), attributes)


def _objects(texts: list[str]) -> NDArray[np.object_]:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array
