"""A comparison study of one's own from two plain tables: the pairs with models' log-probabilities, and the answers.

The settings and their defaults are in ``conf/study/comparison_table.yaml``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from estimators.comparison import validate_comparison_study
from estimators.errors import InputError, unknown_choice
from estimators.notes import add_note
from experiments.studies.loader_settings import check_switches, loader_settings
from experiments.studies.plain_table import numbers, read_table

__all__ = ["DEFAULTS", "load", "write_comparison_tables"]

_PAIRS = ("item", "draw", "context", "target", "candidate")
_ANSWERS = ("item", "draw", "participant", "report")
_COLUMNS = tuple(dict.fromkeys((*_PAIRS, *_ANSWERS)))
_TARGET, _CANDIDATE = "target_logprob_", "candidate_logprob_"
_ITEM_SET = "answered"

DEFAULTS: Mapping[str, Any] = {
    "name": "comparison_table",
    "pairs": None,
    "answers": None,
    "generator": None,
    "percent": False,
    "columns": {name: name for name in _COLUMNS},
}
"""Every setting with the value it has when it is not given."""

_SOURCE = "study=comparison_table"


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load a comparison study from two tables.

    Parameters
    ----------
    config : mapping
        Settings, see ``conf/study/comparison_table.yaml``; one that is absent has its default (:data:`DEFAULTS`).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.comparison.study.validate_comparison_study`. Items are numbered in the order of the
        pairs; ``item_name`` (item) is what the table calls them. All items are reference items. An answer on a
        candidate that is the target's very string counts as ``automatic``: it says nothing of a belief.

    Raises
    ------
    InputError
        For an unknown setting, a table that cannot be read, a missing column, or a bad cell; names file, column, row.
    """
    given = _settings(config)
    path = Path(given["pairs"]).expanduser()
    pairs, digests = _pairs(path, given["columns"])
    variables, names, draws = _questions(pairs, path)
    models = _models(pairs, path, variables, shape=draws.shape)
    answered = np.zeros(len(names), dtype=bool)
    if given["answers"] is None:
        variables |= _answers(None, names, draws, given, Path())
        answered[:] = True
    else:
        answers_path = Path(given["answers"]).expanduser()
        answers, digest = read_table(answers_path, of="answer")
        digests += digest
        variables |= _answers(
            _named(answers, _ANSWERS, given["columns"], answers_path), names, draws, given, answers_path
        )
        answered[variables["response_item"][1]] = True
        item, draw = variables["response_item"][1], variables["response_candidate"][1]
        same = variables["candidate_token"][1][item, draw] == variables["target_token"][1][item]
        variables["automatic"] = ("response", same.astype(bool))
    variables["item_set"] = ("item", np.where(answered, _ITEM_SET, "").astype(object))
    study = xr.Dataset(
        variables,
        coords={"item": np.arange(len(names)), "model": np.array(models, dtype=object)},
        attrs={
            "name": path.stem,
            "generator": given["generator"],
            "data_sha256": hashlib.sha256(digests.encode()).hexdigest(),
        },
    )
    _add_notes(study, answered)
    return validate_comparison_study(study)


def write_comparison_tables(study: xr.Dataset, pairs: Path | str, answers: Path | str | None = None) -> None:
    """Write a comparison study as the tables that :func:`load` reads: what to ask people, and what they answered.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study, such as ``study.nc`` of ``+exp=build_study``. Which of its items are reference items is not
        written.
    pairs : Path or str
        One row an item and candidate; ends in ``.csv``.
    answers : Path or str, optional
        One row a response; ends in ``.csv``.

    Raises
    ------
    InputError
        If the study is not valid, a name does not end in ``.csv``, or a string of the study cannot stand in a text file
        (a null character, half of a surrogate pair); names it.
    """
    validate_comparison_study(study)
    n_items, n_candidates = study.sizes["item"], study.sizes["candidate"]
    of = np.repeat(np.arange(n_items), n_candidates)
    asked = pd.DataFrame(
        {
            "item": study["item"].to_numpy()[of],
            "draw": np.tile(np.arange(n_candidates), n_items),
            "context": study["context"].to_numpy()[of],
            "target": study["target_token"].to_numpy()[of],
            "candidate": study["candidate_token"].to_numpy().ravel(),
        }
    )
    for m, model in enumerate(study["model"].to_numpy().tolist()):
        asked[_TARGET + model] = study["target_logprob"].to_numpy()[m][of]
        asked[_CANDIDATE + model] = study["candidate_logprob"].to_numpy()[m].ravel()
    _write(asked, Path(pairs))
    if answers is not None:
        given = {
            "participant": "participant",
            "item": "response_item",
            "draw": "response_candidate",
            "report": "report",
        }
        _write(pd.DataFrame({name: study[variable].to_numpy() for name, variable in given.items()}), Path(answers))


def _write(table: pd.DataFrame, path: Path) -> None:
    if path.suffix != ".csv":
        raise InputError(f"is {str(path)!r}, should be a name ending in .csv", field="path")
    for name in table.select_dtypes(exclude="number"):
        for text in dict.fromkeys(table[name].tolist()):
            if "\0" in text or text.encode("utf-8", "replace").decode("utf-8") != text:
                raise InputError(f"is {text!r}, which a text file cannot hold; leave the item out", field=name)
    table.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    given = loader_settings(config, DEFAULTS, source=_SOURCE)
    if not isinstance(given["pairs"], str | Path) or not str(given["pairs"]):
        raise InputError(f"is {given['pairs']!r}; give the table: study.pairs=FILE", source=_SOURCE, field="pairs")
    answers = given["answers"]
    if answers is not None and (not isinstance(answers, str | Path) or not str(answers)):
        raise InputError(f"is {answers!r}, should be a table or null", source=_SOURCE, field="answers")
    check_switches(given, ["percent"], source=_SOURCE)
    if not isinstance(given["columns"], Mapping):
        raise InputError(f"is {given['columns']!r}, should be a mapping", source=_SOURCE, field="columns")
    for name in given["columns"]:
        if name not in _COLUMNS:
            raise unknown_choice("column", name, _COLUMNS, source=_SOURCE)
    given["columns"] = {**dict(DEFAULTS["columns"]), **given["columns"]}
    return given


def _named(
    table: pd.DataFrame, wanted: tuple[str, ...], columns: Mapping[str, str], path: Path, *, may_be_empty: str = ""
) -> pd.DataFrame:
    """Columns of a table under the names of the settings, every cell filled."""
    for name in wanted:
        if columns[name] not in table.columns:
            raise InputError(
                f"is missing; the table has {', '.join(map(str, table.columns))}; study.columns.{name}=NAME says "
                "which one it is",
                source=path,
                field=columns[name],
            )
        empty = (table[columns[name]] == "").to_numpy()
        if empty.any() and name != may_be_empty:
            row = int(np.flatnonzero(empty)[0])
            raise InputError(
                f"is empty in row {row + 1} ({int(empty.sum())} such rows)", source=path, field=columns[name]
            )
    return table[[columns[name] for name in wanted]].set_axis(list(wanted), axis=1)


def _pairs(path: Path, columns: Mapping[str, str]) -> tuple[pd.DataFrame, str]:
    table, digest = read_table(path, of="pair")
    # a text may begin with the target: nothing stands before it
    pairs = _named(table, _PAIRS, columns, path, may_be_empty="context")
    twice = pairs.duplicated(["item", "draw"]).to_numpy()
    if twice.any():
        row = int(np.flatnonzero(twice)[0])
        raise InputError(
            f"is {pairs['draw'].iloc[row]!r} in row {row + 1}, which item {pairs['item'].iloc[row]!r} has before; "
            "number every draw of an item, those that gave the same token too",
            source=path,
            field=columns["draw"],
        )
    logprobs = [name for name in table.columns if str(name).startswith((_TARGET, _CANDIDATE))]
    return pairs.join(table[logprobs]), digest


def _questions(pairs: pd.DataFrame, path: Path) -> tuple[dict[str, Any], list[str], NDArray[np.object_]]:
    """Strings of the study, names of its items, and the tables' name of every (item, candidate)."""
    code, names = pd.factorize(pairs["item"])
    size = np.bincount(code)
    if (size != size[0]).any():
        item = int(np.flatnonzero(size != size[0])[0])
        raise InputError(
            f"{names[item]!r} has {size[item]} candidates, {names[0]!r} has {size[0]}; every item needs as many",
            source=path,
            field="item",
        )
    order = np.argsort(code, kind="stable")
    shape = (len(names), int(size[0]))
    variables: dict[str, Any] = {}
    for name, variable in (("context", "context"), ("target", "target_token")):
        cells = pairs[name].to_numpy(dtype=object)[order].reshape(shape)
        differs = (cells != cells[:, :1]).any(axis=1)
        if differs.any():
            item = int(np.flatnonzero(differs)[0])
            raise InputError(f"differs between the rows of item {names[item]!r}", source=path, field=name)
        variables[variable] = ("item", cells[:, 0])
    variables["candidate_token"] = (
        ("item", "candidate"),
        pairs["candidate"].to_numpy(dtype=object)[order].reshape(shape),
    )
    variables["item_name"] = ("item", np.asarray(names, dtype=object))
    variables["selected"] = ("item", np.ones(shape[0], dtype=bool))
    variables["in_reference"] = ("item", np.ones(shape[0], dtype=bool))
    return variables, [str(name) for name in names], pairs["draw"].to_numpy(dtype=object)[order].reshape(shape)


def _models(pairs: pd.DataFrame, path: Path, variables: dict[str, Any], *, shape: tuple[int, ...]) -> list[str]:
    """Add the log-probabilities of every model that has both columns; returns the models' names."""
    targets = [name.removeprefix(_TARGET) for name in pairs.columns if name.startswith(_TARGET)]
    candidates = [name.removeprefix(_CANDIDATE) for name in pairs.columns if name.startswith(_CANDIDATE)]
    for model in dict.fromkeys((*targets, *candidates)):
        for prefix, found in ((_TARGET, targets), (_CANDIDATE, candidates)):
            if model not in found:
                raise InputError(f"is missing; model {model!r} needs it", source=path, field=prefix + model)
    if not targets:
        raise InputError(
            "names no language model: it needs the columns target_logprob_NAME and candidate_logprob_NAME of at least "
            "the generator",
            source=path,
        )
    order = np.argsort(pd.factorize(pairs["item"])[0], kind="stable")
    target, candidate = [], []
    for model in targets:
        its = numbers(pairs[_TARGET + model], path, _TARGET + model)[order].reshape(shape)
        if (its != its[:, :1]).any():
            item = int(np.flatnonzero((its != its[:, :1]).any(axis=1))[0])
            name = variables["item_name"][1][item]
            raise InputError(f"differs between the rows of item {name!r}", source=path, field=_TARGET + model)
        target.append(its[:, 0])
        candidate.append(numbers(pairs[_CANDIDATE + model], path, _CANDIDATE + model)[order].reshape(shape))
    variables["target_logprob"] = (("model", "item"), np.stack(target), {"units": "nats"})
    variables["candidate_logprob"] = (("model", "item", "candidate"), np.stack(candidate), {"units": "nats"})
    return targets


def _answers(
    table: pd.DataFrame | None, names: list[str], draws: NDArray[np.object_], given: Mapping[str, Any], path: Path
) -> dict[str, Any]:
    if table is None:
        return {
            "participant": ("response", np.empty(0, dtype=object)),
            "response_item": ("response", np.empty(0, dtype=np.int64)),
            "response_candidate": ("response", np.empty(0, dtype=np.int64)),
            "report": ("response", np.empty(0)),
            "automatic": ("response", np.empty(0, dtype=bool)),
        }
    place = {(name, str(draw)): (i, j) for i, name in enumerate(names) for j, draw in enumerate(draws[i].tolist())}
    asked = list(zip(table["item"].tolist(), table["draw"].tolist(), strict=True))
    for row, key in enumerate(asked):
        if key not in place:
            raise InputError(
                f"row {row + 1} answers draw {key[1]!r} of item {key[0]!r}, which the pairs do not have",
                source=path,
                field=given["columns"]["draw"],
            )
    found = np.array([place[key] for key in asked], dtype=np.int64)
    report = numbers(table["report"], path, given["columns"]["report"])
    if given["percent"]:
        report = report / 100
    bad = ~((report > 0) & (report < 1))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        should = (
            "a percentage strictly between 0 and 100" if given["percent"] else "a probability strictly between 0 and 1"
        )
        raise InputError(
            f"is {table['report'].iloc[row]!r} in row {row + 1} ({int(bad.sum())} such rows), should be {should}: 0 "
            f"and {100 if given['percent'] else 1} mean an infinite ratio, so say what stands for them, such as "
            + ("1 and 99" if given["percent"] else ".01 and .99 (study.percent=true reads percentages)"),
            source=path,
            field=given["columns"]["report"],
        )
    return {
        "participant": ("response", table["participant"].to_numpy(dtype=object)),
        "response_item": ("response", found[:, 0]),
        "response_candidate": ("response", found[:, 1]),
        "report": ("response", report),
    }


def _add_notes(study: xr.Dataset, answered: NDArray[np.bool_]) -> None:
    if not answered.all():
        add_note(study, "items that nobody answered: reference items only", count=int((~answered).sum()))
    same = int(study["automatic"].sum())
    if same:
        add_note(study, "answers on two equal strings, which say nothing of a belief (automatic)", count=same)
    pairs = pd.DataFrame(
        {name: study[name].to_numpy() for name in ("participant", "response_item", "response_candidate")}
    )
    again = int(pairs.duplicated().sum())
    if again:
        add_note(study, "answers of a participant to a pair answered before; kept", count=again)
