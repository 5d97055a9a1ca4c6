"""Loaders: each reads one layout of data and gives a study of one kind.

What lives here: one module per layout and what they share. What does not: estimates, figures.
A loader raises :class:`~estimators.errors.InputError` for data that cannot be used, and adds a counted note to the
study (``estimators.notes.add_note``) for everything that it drops, repairs or keeps in spite of doubts.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from omegaconf import OmegaConf

from estimators.errors import InputError, unknown_choice

if TYPE_CHECKING:
    import xarray as xr
    from omegaconf import DictConfig

__all__ = ["STUDIES", "VALIDATORS", "StudyLoader", "load_study"]


class StudyLoader(NamedTuple):
    """Where a study is loaded, and what kind of study it is."""

    kind: str
    """A key of :data:`VALIDATORS`."""
    target: str
    """``module:function``; the function takes the mapping of ``conf/study/NAME.yaml``."""


VALIDATORS: Mapping[str, str] = MappingProxyType(
    {
        "comparison": "estimators.comparison.study:validate_comparison_study",
        "guess": "estimators.guesses.study:validate_guess_study",
        "documents": "estimators.documents.study:validate_documents_study",
        "ranking": "estimators.rankings.study:validate_ranking_study",
        "cloze": "estimators.cloze.study:validate_cloze_study",
        "published": "experiments.papers.published_study:validate_published_study",
    }
)
"""Every kind of study -> ``module:function`` of its validator, whose docstring says what such a study holds."""

STUDIES: Mapping[str, StudyLoader] = MappingProxyType(
    {
        "simulated": StudyLoader("comparison", "experiments.studies.comparison.simulated:load"),
        "lm_game": StudyLoader("comparison", "experiments.studies.comparison.lm_game:load"),
        "lm_game_top1": StudyLoader("guess", "experiments.studies.guesses.lm_game_top1:load"),
        "guess_table": StudyLoader("guess", "experiments.studies.guesses.table:load"),
        "comparison_table": StudyLoader("comparison", "experiments.studies.comparison.table:load"),
        "comparison_file": StudyLoader("comparison", "experiments.studies.comparison.file:load"),
        "texts": StudyLoader("documents", "experiments.studies.documents.texts:load"),
        "lm_game_documents": StudyLoader("documents", "experiments.studies.documents.lm_game_documents:load"),
        "rank_perplexity": StudyLoader("ranking", "experiments.studies.rankings.rank_perplexity:load"),
        "ranking_table": StudyLoader("ranking", "experiments.studies.rankings.table:load"),
        "cloze_simulated": StudyLoader("cloze", "experiments.studies.cloze.simulated:load"),
        "cloze_table": StudyLoader("cloze", "experiments.studies.cloze.table:load"),
        "provo": StudyLoader("cloze", "experiments.studies.cloze.provo:load"),
        "published": StudyLoader("published", "experiments.papers.published:load"),
    }
)
"""Name of every study -> its loader."""


def load_study(cfg: DictConfig, *, kind: str | None = None) -> xr.Dataset:
    """Load the study that a config asks for, validated.

    Parameters
    ----------
    cfg : DictConfig
        The run's config: ``study.name`` says which loader, the other keys of ``study`` are its settings.
    kind : str, optional
        The kind of study that the experiment can use; any by default.

    Returns
    -------
    xarray.Dataset
        Passes the validator of its kind, see :data:`VALIDATORS`.

    Raises
    ------
    InputError
        If there is no such study, it is of another kind, or its loader or the validator rejects the data.
    """
    settings = cast("dict[str, Any]", OmegaConf.to_container(cfg.study, resolve=True, throw_on_missing=True))
    name = settings.pop("name", None)
    if name not in STUDIES:
        raise unknown_choice("study", name, STUDIES)
    loader = STUDIES[name]
    if kind is not None and loader.kind != kind:
        fitting = ", ".join(other for other, its in STUDIES.items() if its.kind == kind)
        raise InputError(
            f"is {name!r}, a {loader.kind} study; {cfg.experiment.name} needs a {kind} study: {fitting}",
            source="settings",
            field="study",
        )
    # a simulation can draw its candidates from any of its models; a study that was read has drawn them already
    if name == "simulated" and cfg.generator.name is not None and not cfg.generator.control_only:
        settings["generator"] = cfg.generator.name
    study: xr.Dataset = _function(loader.target)(settings)
    validated: xr.Dataset = _function(VALIDATORS[loader.kind])(study)
    return validated


def _function(target: str) -> Any:
    module, function = target.split(":")
    return getattr(import_module(module), function)
