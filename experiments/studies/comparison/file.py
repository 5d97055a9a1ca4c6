"""A comparison study in one netCDF file: ``study.nc`` of ``+exp=build_study``, or one that another program wrote."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.comparison.checks import check_contradictions
from shannon_game.experiments.studies.study_file import read_valid_study, write_study
from shannon_game.inference.settings import Settings, UserPath

_KIND = "comparison"


class ComparisonFileSettings(Settings):
    """Settings of a comparison study in one file."""

    path: UserPath
    """The netCDF file."""


def save_comparison_study(study: xr.Dataset, path: Path | str) -> Path:
    """Write a comparison study as netCDF, in one step."""
    return write_study(validate_comparison_study(study), path, kind=_KIND)


@loader(ComparisonFileSettings)
def comparison_file(settings: ComparisonFileSettings) -> xr.Dataset:
    """Load a comparison study from a netCDF file.

    ``attrs["name"]`` is the study's own name, or the file's where it has none.

    Examples
    --------
    >>> from shannon_game import comparison_file, simulated
    >>> from shannon_game.experiments.studies.comparison.file import save_comparison_study
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> study = simulated(n_items=5, n_reference_items=10, vocab_size=100, n_candidates=4)
    >>> with TemporaryDirectory() as folder:
    ...     comparison_file(path=save_comparison_study(study, Path(folder) / "study.nc")).sizes["item"]
    10
    """
    return read_valid_study(settings.path, _KIND, _checked)


def _checked(study: xr.Dataset) -> xr.Dataset:
    if "item_name" in study and "item_id" not in study:
        # what files of earlier versions call it
        study = study.rename(item_name="item_id")
    return check_contradictions(validate_comparison_study(study), None)
