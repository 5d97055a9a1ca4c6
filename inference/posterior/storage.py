"""Posteriors on disk."""

from __future__ import annotations

from pathlib import Path

import h5py

from shannon_game.estimators.errors import InputError
from shannon_game.inference.disk import is_as_signed, is_signed, refuse_other, sign, whole
from shannon_game.inference.posterior import arviz_adapter
from shannon_game.inference.posterior.arviz_adapter import InferenceData


def save_posterior(idata: InferenceData, path: Path | str) -> Path:
    """Write a posterior as netCDF, in one step: a reader sees the whole file or none.

    Examples
    --------
    >>> import tempfile
    >>> from shannon_game import inference
    >>> from shannon_game.inference.examples import normal_posterior
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(inference.save_posterior(normal_posterior(), f"{folder}/posterior.nc").name)
    posterior.nc
    """
    path = Path(path)
    if path.suffix != ".nc" or not path.parent.is_dir():
        raise InputError(f"is {str(path)!r}, should be a name ending in .nc in a folder that exists", field="path")
    refuse_other(path, is_signed, "posterior")
    with whole(path) as partial:
        arviz_adapter.write(idata, partial)
        sign(partial)
    return path


def load_posterior(path: Path | str) -> InferenceData:
    """Read what :func:`save_posterior` wrote, every number as it was.

    Examples
    --------
    >>> import tempfile
    >>> from shannon_game import inference
    >>> from shannon_game.inference.examples import normal_posterior
    >>> idata = normal_posterior()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = inference.load_posterior(inference.save_posterior(idata, f"{folder}/posterior.nc"))
    >>> bool((again.posterior["mean"] == idata.posterior["mean"]).all())
    True
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"is {str(path)!r}, which does not exist", field="path")
    try:
        if not is_as_signed(path):
            raise InputError("was damaged after it was written: its hash is another", source=path)
        # where HDF5 refuses a file, h5netcdf leaves a half-made object that complains at its end
        with h5py.File(path, "r") as file:
            file.attrs.get("_nc3_strict")
        return arviz_adapter.read(path)
    except (OSError, ValueError, KeyError, RuntimeError, AttributeError, TypeError) as problem:
        if isinstance(problem, InputError):
            raise
        said = " ".join(str(problem).split())
        raise InputError(f"cannot be read as a posterior ({type(problem).__name__}: {said})", source=path) from problem
