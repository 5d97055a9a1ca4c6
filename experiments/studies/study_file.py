"""A study as one netCDF file: what an experiment built or another program wrote.

The file holds the variables that the validator of the study's kind documents under their own names, so that xarray, R
or Panoply read it. Strings are lossless: those that netCDF cannot hold (a null character, half of a surrogate pair) are
written with a backslash and the number of the character, and the variable says so in its attribute ``string_escape``.
After the end of the netCDF, where readers do not look, stands the hash of all before:
HDF5 may wait for ever in a damaged file, so that one of ours is checked before it is opened.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import h5py
import xarray as xr
from pydantic import TypeAdapter

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.files import read_bytes
from shannon_game.experiments.studies.parsing import Note, checked, objects, parse_json, shown
from shannon_game.inference.disk import is_as_signed, is_signed, make_room, refuse_other, sign, whole
from shannon_game.inference.settings import Settings, UserPath

_FORMAT = "format"
_NOTES = TypeAdapter(list[Note])
_ESCAPE = "string_escape"
_ESCAPE_VALUE = "backslash, u, four hexadecimal digits"
_UNHOLDABLE = re.compile("[\x00\ud800-\udfff]")
_TO_ESCAPE = re.compile("[\x00\\\\\ud800-\udfff]")
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})")


class StudyFileSettings(Settings):
    path: UserPath
    """The netCDF file."""


def write_study(study: xr.Dataset, path: Path | str, *, kind: str) -> Path:
    """Write a study that was validated as netCDF, in one step."""
    path = Path(path)
    if path.suffix != ".nc" or not path.parent.is_dir():
        raise InputError(f"is {str(path)!r}, should be a name ending in .nc in a folder that exists", field="path")
    encoded = study.copy()
    for name, variable in study.variables.items():
        if variable.dtype.kind in "OUT":
            encoded[name] = _encoded(variable)
    encoded.attrs[_FORMAT] = _format(kind)
    refuse_other(path, is_signed, "study")
    with whole(path, private="participant" in study.variables) as partial:
        make_room(partial, encoded.nbytes)
        encoded.to_netcdf(partial, engine="h5netcdf")
        sign(partial)
    return path


def read_valid_study(path: Path, kind: str, validate: Callable[[xr.Dataset], xr.Dataset]) -> xr.Dataset:
    """Read a study of a kind as :func:`read_study` does, and validate it."""
    study = read_study(path, kind=kind)
    try:
        return validate(study)
    except InputError as problem:
        raise InputError(f"holds no {kind} study that can be used: {problem}", source=path) from None


def read_study(path: Path, *, kind: str) -> xr.Dataset:
    """Read a study that :func:`write_study` or another program wrote; not validated."""
    content = read_bytes(path, field=Set("study.path"))
    if not is_as_signed(path):
        raise InputError("was damaged after it was written: its hash is another", source=path)
    study = _read(path)
    _check_attributes(study, path)
    wanted = study.attrs.pop(_FORMAT, _format(kind))
    if wanted != _format(kind):
        raise InputError(
            f"is {shown(wanted)}, this version of shannon-game reads {_format(kind)!r}", source=path, field=_FORMAT
        )
    for name, variable in study.variables.items():
        if _ESCAPE in variable.attrs or variable.dtype.kind in "OUT":
            study[name] = _decoded(variable, f"{path}, {name}")
    study.attrs["data_sha256"] = hashlib.sha256(content).hexdigest()
    study.attrs.setdefault("name", path.stem)
    return study


def _format(kind: str) -> str:
    return f"shannon-game {kind} study 1"


def _read(path: Path) -> xr.Dataset:
    try:
        # where HDF5 refuses a file or its attributes, h5netcdf leaves a half-made object that complains at its end
        with h5py.File(path, "r") as file:
            file.attrs.get("_nc3_strict")
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            return dataset.load()
    except Exception as problem:
        # a file that is damaged or something else makes HDF5 raise nearly anything
        raise InputError(
            f"cannot be read as netCDF ({type(problem).__name__}: {' '.join(str(problem).split())})", source=path
        ) from problem


def _check_attributes(study: xr.Dataset, path: Path) -> None:
    for name in (_FORMAT, "name", "generator", "notes"):
        value = study.attrs.get(name, "")
        if not isinstance(value, str):
            raise InputError(f"is {shown(value)}, should be a text", source=path, field=name)
    notes = parse_json(study.attrs.get("notes", "[]"), path, "notes")
    checked(_NOTES.validate_python, notes, f"{path}, notes")


def _encoded(variable: xr.Variable) -> xr.Variable:
    values = variable.values.astype(object)
    texts: list[str] = values.ravel().tolist()
    attributes = dict(variable.attrs)
    if any(_UNHOLDABLE.search(text) for text in texts):
        texts = [_TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) for text in texts]
        attributes[_ESCAPE] = _ESCAPE_VALUE
    strings = objects(texts).reshape(values.shape)
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
    return xr.Variable(variable.dims, objects(texts).reshape(variable.shape), attributes)
