"""From a composed config to a study, an experiment and its settings: the last place that sees Hydra's config."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, get_args

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import for_command
from shannon_game.estimators.schema import KIND
from shannon_game.experiments.harness.kinds import checked_study, lacking
from shannon_game.experiments.harness.registry import Entry, entry_of, given_to, known, load_target, to_plain
from shannon_game.experiments.harness.replication import PARTS, REPLICATES
from shannon_game.experiments.harness.result import Experiment, ExperimentResult
from shannon_game.experiments.harness.settings import OutputSettings
from shannon_game.inference.posterior.thresholds import SamplerName
from shannon_game.inference.settings import Settings, settings_from

if TYPE_CHECKING:
    import xarray as xr

SHARED = ("seed", "n", "players", "estimator", "rounding", "generator", "sampler", "models", "prompt", "data")
"""Settings at the root of the config; each experiment takes those that its class has."""

# settings that name a file or folder to go on with, and their name in the output folder
_IN_FOLDER = {"replicates": REPLICATES, "folder": PARTS}

_GROUP_OF_FIELD = {"models": "model"}


@dataclass(frozen=True)
class Job:
    """An experiment, ready to be run."""

    entry: Entry
    experiment: Experiment[Any]
    settings: Settings
    study: xr.Dataset

    @for_command()
    def run(self) -> ExperimentResult:
        """Answer the question."""
        return self.experiment(self.study, self.settings)


def _drawn_by(name: str | None, control_only: bool, default: str) -> str:
    """Model that draws the candidates of a simulated study: the run's generator, unless it only controls."""
    return default if name is None or control_only else name


# any name can be set below these: their classes check it, with better words
_OPEN = ("experiment", "study", *(name for name in SHARED if name not in {"seed", "n", "players"}), "output")
_DEFAULTS = {"output": OutputSettings().model_dump()}
_NODES = {name: DictConfig(_DEFAULTS.get(name, {}), flags={"struct": False}) for name in _OPEN}
ConfigStore.instance().store(name="open_nodes", node=DictConfig(_NODES))
# options that are a name and nothing else; that of the naive estimator is a file
_NAMED = {"rounding": "SCHEMES", "estimator": "ESTIMATORS"}
_options = {group: resolve_name(f"shannon_game.estimators.comparison:{name}") for group, name in _NAMED.items()}
for _group, _names in (*_options.items(), ("sampler", get_args(SamplerName))):
    for _name in set(_names) - {"naive"}:
        ConfigStore.instance().store(group=_group, name=_name, node={"name": _name})
OmegaConf.register_new_resolver("drawn_by", _drawn_by, replace=True)


@for_command()
def prepare(
    cfg: DictConfig, overrides: Iterable[str] = (), *, folder: Path | None = None, study: xr.Dataset | None = None
) -> Job:
    """Import the experiment, check its settings, load its study if none is given; the cheap mistakes first."""
    entry = entry_of(cfg.experiment, what="experiment")
    function: Any = load_target(entry, what="experiment")
    given = given_to(cfg.experiment)
    for name, default in _IN_FOLDER.items():
        if name in function.settings_class.model_fields and folder is not None and given.get(name) is None:
            given |= {name: folder / default, **({"set_aside": True} if name == "replicates" else {})}
    settings = experiment_settings(function, cfg, given, overrides)
    if study is None:
        study = load_study(cfg.study, kind=entry.kinds, wanted_by=entry.name)
    # a plan of a collection names its study itself: report and status are of that one
    study_of = getattr(settings, "study_of", None)
    if study_of is not None:
        study = study_of(study)
    return Job(entry, function, settings, study)


@for_command()
def experiment_settings(
    function: Experiment[Any], cfg: DictConfig, given: dict[str, Any], overrides: Iterable[str] = ()
) -> Settings:
    """Settings of an experiment: its own node, and the shared ones that its class has."""
    cls: type[Settings] = function.settings_class
    read = shared_by(cls)
    shared = [name for name in read if name in cfg]
    _refuse_unread(cls, cfg, overrides)
    for name in given:
        if name in SHARED and (name in read or name not in cls.model_fields):
            raise InputError(f"is a setting of the run: write {name}=", field=f"experiment.{name}")
    return settings_from(
        cls,
        {name: to_plain(cfg, name) for name in shared} | given,
        prefix=lambda name: before(name, cls),
    )


def shared_by(cls: type[Settings]) -> list[str]:
    """Settings of the run that an experiment reads: those of its class, but for what means something else there.

    ``OWN`` of the class names the latter: ``experiment.players`` of ``+exp=collect`` says who plays a game.
    """
    own = getattr(cls, "OWN", ())
    return [name for name in SHARED if name in cls.model_fields and name not in own]


def read_of_the_run(cls: type[Settings]) -> str:
    """Name the settings and groups of the run that an experiment reads, as on the command line."""
    return ", ".join(_GROUP_OF_FIELD.get(name, name) for name in shared_by(cls)) or "none"


def before(name: str, cls: type[Settings] | None = None) -> str:
    """What stands before a setting of an experiment on the command line."""
    return "" if name in SHARED and name not in getattr(cls, "OWN", ()) else "experiment."


def _refuse_unread(cls: type[Settings], cfg: DictConfig, overrides: Iterable[str]) -> None:
    """A setting that would do nothing is a mistake."""
    study = str(OmegaConf.to_container(cfg.study, resolve=False)) if cfg.study is not None else ""
    for text in overrides:
        root = re.split(r"[.=/@]", text.lstrip("+~"), maxsplit=1)[0]
        field = next((name for name, group in _GROUP_OF_FIELD.items() if group == root), root)
        if field in SHARED and field not in shared_by(cls) and f"${{{field}" not in study:
            raise InputError(
                f"does nothing: {cfg.experiment.name} reads of the run's settings {read_of_the_run(cls)}",
                source="command line",
                field=root,
            )


@for_command()
def load_study(node: DictConfig, *, kind: str | Sequence[str] = (), wanted_by: str = "") -> xr.Dataset:
    """Load the study that a config asks for."""
    entry = entry_of(node, what="study")
    kinds = (kind,) if isinstance(kind, str) else kind
    needed = f"{wanted_by} needs a {' or '.join(kinds)} study"
    if kinds and not set(entry.kinds) & set(kinds):
        options = ", ".join(known("study", kinds=kinds))
        problem = f"is {entry.name!r}, a {' or '.join(entry.kinds)} study; {needed}: {options}"
        raise InputError(problem, source="settings", field="study")
    function: Any = load_target(entry, what="study")
    study = function(settings_from(function.settings_class, given_to(node), prefix="study."))
    study = checked_study(study, entry.kinds, f"study={entry.name}")
    if kinds and (gave := study.attrs[KIND]) not in kinds:
        problem = f"is {entry.name!r}, which gave a {gave} study; {needed}{lacking(gave, kinds)}"
        raise InputError(problem, source="settings", field="study")
    return study
