"""Pseudonyms for the people of a study, given before anything is computed: no text has to be searched for ids later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shannon_game.inference.settings import Settings

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

PEOPLE_SETTINGS = ("exclude_participants", "leave_out")
"""Settings of loaders and experiments that name people."""

_MARK = "participants"
_PSEUDONYMS = "pseudonyms"
_NO_PERSON = "participant_group"


def pseudonymous(study: xr.Dataset) -> tuple[xr.Dataset, pd.DataFrame]:
    """Call the people of a study P1, P2, ...; what is computed from it then has no id in it, and the same numbers.

    The pseudonyms sort as the ids do, so that every estimate and every draw is that of the study itself. Whoever has
    the list of all ids can therefore tell who is who.

    Parameters
    ----------
    study : xarray.Dataset
        Of any kind.

    Returns
    -------
    study : xarray.Dataset
    key : pandas.DataFrame
        ``participant`` and ``pseudonym``, one row per person.

    Examples
    --------
    >>> from shannon_game.estimators.guesses.examples import guess_study
    >>> study, key = pseudonymous(guess_study())
    >>> key.head(2)
      participant pseudonym
    0          p0        P1
    1          p1        P2
    """
    variables = _variables(study)
    ids = sorted({str(value) for name in variables for value in study[name].to_numpy().ravel()} - {""})
    width = len(str(len(ids)))
    names = {text: f"P{number:0{width}d}" for number, text in enumerate(ids, start=1)}
    renamed = {}
    for name in variables:
        values = np.array([names.get(str(value), "") for value in study[name].to_numpy().ravel()], dtype=object)
        values = values.astype(study[name].dtype.kind).reshape(study[name].shape)
        renamed[name] = (study[name].dims, values, study[name].attrs)
    coords = {name: renamed.pop(name) for name in variables if name in study.coords}
    found = study.assign_coords(coords).assign(renamed).assign_attrs({_MARK: _PSEUDONYMS})
    import pandas as pd  # noqa: PLC0415 - the command itself makes no table

    return found, pd.DataFrame({"participant": ids, "pseudonym": list(names.values())})


def settings_with_pseudonyms(settings: Settings, key: pd.DataFrame) -> Settings:
    """Settings of an experiment that name people by their pseudonyms."""
    names = dict(zip(key["participant"], key["pseudonym"], strict=True))
    given: dict[str, Any] = {name: getattr(settings, name, None) for name in PEOPLE_SETTINGS}
    people = {name: value for name, value in given.items() if isinstance(value, tuple)}
    return settings.changed(**{name: tuple(names.get(each, each) for each in value) for name, value in people.items()})


def people_of(study: xr.Dataset) -> list[str] | None:
    """Pseudonyms of a study, none for a study without people; None where it has people by their ids."""
    found = {str(value) for name in _variables(study) for value in study[name].to_numpy().ravel()} - {""}
    return None if found and study.attrs.get(_MARK) != _PSEUDONYMS else sorted(found)


def _variables(study: xr.Dataset) -> list[str]:
    with_people = (str(name) for name in study.variables if "participant" in str(name) and name != _NO_PERSON)
    return [name for name in with_people if study[name].dtype.kind in "OU"]
