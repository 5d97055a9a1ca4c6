"""``study=corpora``: the data sets on which models are scored beside people, each an entry of YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import xarray as xr
import yaml
from pydantic import BeforeValidator

import shannon_game.experiments
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.schema import Schema, Variable
from shannon_game.experiments.cloze.reading_words import TimesColumns, with_times
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.cloze.norms import CORPORA as NORMS
from shannon_game.experiments.studies.parsing import objects
from shannon_game.inference.settings import Names, Settings, Text, UserPath, settings_from

Ability = Literal["next_words", "odds", "first_guesses", "reading_times"]
KINDS_OF: Mapping[str, tuple[str, ...]] = {
    "next_words": ("cloze",),
    "odds": ("comparison",),
    "first_guesses": ("guess",),
    "reading_times": ("documents", "cloze"),
}
"""Kinds of study that an ability takes."""
_SUFFIXES = (".yaml", ".yml")
_HERE = Path(__file__).with_suffix(".yaml")

SCHEMA = Schema(
    kind="corpora",
    cure="corpora() makes one",
    variables=(
        Variable("corpus", "corpus", "str", "name of the data set"),
        Variable("entry", "corpus", "str", "its entry, as JSON: ability, loader and settings, licence, citation"),
    ),
)


class Source(Settings):
    """A loader and its settings."""

    study: Text
    """Loader, as in study=NAME."""
    settings: Mapping[str, Any] = {}
    """Its settings."""

    def load(self) -> xr.Dataset:
        """Load the study."""
        function: Any = getattr(shannon_game.experiments, self.study, None)
        if function is None or "settings_class" not in vars(function):
            raise unknown_choice("loader", self.study, ["cloze_table", "comparison_table", "guess_table", "norms"])
        found: xr.Dataset = function(settings_from(function.settings_class, dict(self.settings), prefix="settings."))
        return found


class TimesTable(Settings):
    """Reading times of one's own."""

    path: UserPath
    """Table with a row per time."""
    columns: TimesColumns = TimesColumns()
    """Names of its columns."""


class Corpus(Source):
    """A data set, what it measures, and whose it is."""

    name: Text
    """What tables call it."""
    ability: Ability
    """What people did: next_words, odds (between two tokens), first_guesses or reading_times."""
    otherwise: Source | None = None
    """Where the same answers are, if the first loader does not find them."""
    times: TimesTable | None = None
    """Reading times of a study of texts."""
    licence: Text
    """Of the data."""
    citation: Text
    """Who collected it, and where it is described."""

    def study_of(self) -> xr.Dataset:
        """Load the study, or where it is not there the other one."""
        try:
            found = self.load()
            return found if self.times is None else with_times(found, self.times.path, self.times.columns)
        except InputError as missing:
            if self.otherwise is None:
                raise
            try:
                return self.otherwise.load()
            except InputError as error:
                raise InputError(f"{missing}; nor {self.otherwise.study}: {error}") from None


class CorporaSettings(Settings):
    names: Annotated[Names | None, BeforeValidator(lambda given: str(given) if isinstance(given, Path) else given)] = (
        None
    )
    """Data sets: names of the toolkit's list, and YAML files of your own; null takes the whole list."""


@loader(CorporaSettings)
def corpora(settings: CorporaSettings) -> xr.Dataset:
    """List data sets on which models are scored beside people; each is loaded when it is used.

    Examples
    --------
    >>> from shannon_game import corpora
    >>> corpora(names=["provo", "lm_game"])["corpus"].to_numpy().tolist()
    ['provo', 'lm_game']
    """
    shipped = {str(each["name"]): partial(_entry, each, _HERE) for each in _read(_HERE)}
    found: list[Corpus] = []
    for name in shipped if settings.names is None else settings.names:
        if name.endswith(_SUFFIXES):
            content = _read(Path(name).expanduser())
            found += [_entry(each, Path(name).expanduser()) for each in content]
        elif name in shipped:
            found.append(shipped[name]())
        else:
            raise unknown_choice("corpus", name, [*shipped, "or a YAML file of your own"], source="corpora")
    return validate_corpora(
        xr.Dataset(
            {"entry": ("corpus", objects([each.model_dump_json() for each in found]))},
            coords={"corpus": objects([each.name for each in found])},
            attrs={"name": "corpora", "kind": SCHEMA.kind},
        )
    )


@SCHEMA.documented
def validate_corpora(study: xr.Dataset) -> xr.Dataset:
    """Check a list of data sets and return it.

    {variables}
    """
    study, _ = SCHEMA.check(study)
    entries_of(study)
    return study


def entries_of(study: xr.Dataset) -> list[Corpus]:
    """Entries of a list of data sets, in its order."""
    return [settings_from(Corpus, json.loads(str(text))) for text in np.ravel(study["entry"].to_numpy())]


def _read(path: Path) -> list[Mapping[str, Any]]:
    """Entries of a YAML file: one, or a list."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("no such file", source=path) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"is no YAML: {' '.join(str(error).split())}", source=path) from None
    entries = content if isinstance(content, list) else [content]
    if not all(isinstance(each, Mapping) for each in entries) or not entries:
        raise InputError("should have name, ability, study, settings, licence, citation", source=path)
    return entries


def _entry(given: Mapping[str, Any], path: Path) -> Corpus:
    """Entry of a file, its paths beside the file, the licence and citation of norms those of the data set."""
    its = dict(given)
    settings = its.get("settings")
    data = settings.get("data") if isinstance(settings, Mapping) else None
    if its.get("study") == "norms" and data in NORMS:
        its = {"licence": NORMS[data].licence, "citation": NORMS[data].citation} | its
    if path != _HERE:
        its |= {part: _beside(its[part], path.absolute().parent) for part in ("settings", "times") if part in its}
    try:
        return settings_from(Corpus, its)
    except InputError as error:
        raise InputError(error.problem, source=path, field=error.field) from None


def _beside(value: Any, folder: Path) -> Any:
    """Settings whose texts name files beside the YAML file."""
    if isinstance(value, Mapping):
        return {key: _beside(each, folder) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_beside(each, folder) for each in value]
    return str(folder / value) if isinstance(value, str) and value and (folder / value).is_file() else value
