"""A cloze study in one netCDF file: ``study.nc`` of ``+exp=build_cloze``, or one that another program wrote."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from shannon_game.estimators.cloze import validate_cloze_study
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.study_file import StudyFileSettings, read_valid_study, write_study

_KIND = "cloze"


def save_cloze_study(study: xr.Dataset, path: Path | str) -> Path:
    """Write a cloze study as netCDF, in one step."""
    return write_study(validate_cloze_study(study), path, kind=_KIND)


@loader(StudyFileSettings)
def cloze_file(settings: StudyFileSettings) -> xr.Dataset:
    """Load a cloze study from a netCDF file.

    ``attrs["name"]`` is the study's own name, or the file's where it has none.

    Examples
    --------
    >>> from shannon_game import cloze_file, cloze_simulated
    >>> from shannon_game.experiments.studies.cloze.file import save_cloze_study
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cloze_file(path=save_cloze_study(cloze_simulated(n_items=6), Path(folder) / "study.nc")).sizes["item"]
    6
    """
    return read_valid_study(settings.path, _KIND, validate_cloze_study)
