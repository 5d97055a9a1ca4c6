"""Loaders: each reads one layout of data and gives a comparison study.

What lives here: one module per layout and what they share. What does not: estimates, figures.
A loader raises :class:`~estimators.errors.InputError` for data that cannot be used, and adds a counted note to the
study (``estimators.comparison.add_note``) for everything that it drops, repairs or keeps in spite of doubts.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from omegaconf import OmegaConf

from estimators.comparison import validate_comparison_study
from estimators.errors import unknown_choice

if TYPE_CHECKING:
    import xarray as xr
    from omegaconf import DictConfig

__all__ = ["STUDIES", "load_study"]

STUDIES: Mapping[str, str] = MappingProxyType(
    {
        "simulated": "experiments.studies.simulated:load",
        "lm_game": "experiments.studies.lm_game:load",
    }
)
"""Name of every study -> ``module:function``; the function takes the mapping of ``conf/study/NAME.yaml``."""


def load_study(cfg: DictConfig) -> xr.Dataset:
    """Load the study that a config asks for, validated.

    Parameters
    ----------
    cfg : DictConfig
        The run's config: ``study.name`` says which loader, the other keys of ``study`` are its settings.

    Returns
    -------
    xarray.Dataset
        See :func:`estimators.comparison.validate_comparison_study`.

    Raises
    ------
    InputError
        If there is no such study, or its loader or the validator rejects the data.
    """
    settings = cast("dict[str, Any]", OmegaConf.to_container(cfg.study, resolve=True, throw_on_missing=True))
    name = settings.pop("name", None)
    if name not in STUDIES:
        raise unknown_choice("study", name, STUDIES)
    # a simulation can draw its candidates from any of its models; a study that was read has drawn them already
    if name == "simulated" and cfg.generator.name is not None and not cfg.generator.control_only:
        settings["generator"] = cfg.generator.name
    module, function = STUDIES[name].split(":")
    study: xr.Dataset = getattr(import_module(module), function)(settings)
    return validate_comparison_study(study)
