"""Reports on candidates, free answers, and whole distributions of a comparison study from their tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison import validate_forecast_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.cells import check_scale, composed, one_mark
from shannon_game.experiments.studies.comparison.table_columns import (
    ANSWERS,
    DISTRIBUTIONS,
    FORECASTS,
    FREE_ANSWERS,
    OPTIONS,
    ComparisonColumns,
    ComparisonLayout,
)
from shannon_game.experiments.studies.parsing import add_notes, shown
from shannon_game.experiments.studies.plain_table import Table

_OFF_MASS, _OFF_NATS = 0.01, 1e-3
"""How far a sum of probabilities may be from one, and a log-probability from that of the same token in the pairs."""


@dataclass(frozen=True, eq=False)
class Asked:
    """The items by name; the name of each draw, (item, candidate); the targets; and the candidates."""

    names: list[str]
    draws: NDArray[np.object_]
    target: NDArray[np.object_]
    candidate: NDArray[np.object_]


def answers_of(given: Table, asked: Asked, settings: ComparisonLayout) -> dict[str, Any]:
    """Make the variables of the responses from the table of answers; what is left out or moved is in its notes."""
    table = settings.columns.read(given, "answers", ANSWERS, ("reference",))
    blank = {name: table.blank(name) for name in ("report", "participant")}
    table = table.without(blank, settings.missing, of="answer")
    place = {(name, draw): (i, j) for i, name in enumerate(asked.names) for j, draw in enumerate(asked.draws[i])}
    pairs = list(zip(table["item"].tolist(), table["draw"].tolist(), strict=True))
    where = np.array([place.get(pair, (-1, -1)) for pair in pairs], dtype=np.int64)
    table.refuse(where[:, 0] < 0, "draw", lambda row: f"which item {shown(pairs[row][0])} does not have in the pairs")
    variables = {
        "participant": ("response", table["participant"]),
        "response_item": ("response", where[:, 0]),
        "response_candidate": ("response", where[:, 1]),
        "report": ("response", _reports(table, settings)),
    }
    if "reference" in table:
        # an empty cell is the target
        reference = [
            -1 if name == "" else place.get((item, name), (0, -2))[1]
            for (item, _), name in zip(pairs, table["reference"].tolist(), strict=True)
        ]
        variables["response_reference"] = ("response", np.array(reference, dtype=np.int64))
        table.refuse(np.array(reference) == -2, "reference", "should be a draw of the item, or empty for the target")
    return variables


def forecasts_of(given: Table | None, settings: ComparisonLayout, name: str) -> xr.Dataset:
    """Make a forecast study of the table of answers, which say themselves what came true."""
    if given is None or settings.generator is not None:
        raise InputError("is missing: it holds candidates and their log-probabilities", field=Set("study.pairs"))
    table = settings.columns.read(given, "answers", FORECASTS, OPTIONS)
    table = table.without({name: table.blank(name) for name in table.names if name not in OPTIONS}, settings.missing)
    tokens = {name: table[name] for name in OPTIONS if name in table}
    report, outcome, of = _reports(table, settings), _outcomes(table), table.groups("item", what="item")
    equal = np.full(len(table), len(tokens) == 2) & (tokens.get("option") == tokens.get("other"))
    again = pd.DataFrame({name: table[name] for name in ("item", "participant", *tokens)}).duplicated().to_numpy()
    table.note("answers of a participant to what they had answered before; kept", again, "warning")
    table.note("answers on two equal tokens, which say nothing of a belief (automatic)", equal)
    responses = {
        "participant": table["participant"],
        "response_item": of.of_row.astype(np.int64),
        "report": np.where(outcome, report, 1 - report),
        "outcome": outcome,
        "automatic": equal,
        **tokens,
    }
    study = xr.Dataset(
        {"item_id": ("item", table["item"][of.first])} | {name: ("response", its) for name, its in responses.items()},
        coords={"item": np.arange(len(of))},
        attrs={"name": name, "data_sha256": table.sha256},
    )
    add_notes(study, table.notes)
    return validate_forecast_study(study)


def _outcomes(table: Table) -> NDArray[np.bool_]:
    """Whether what a report is of came true: as the table says, or as the token that did."""
    if "outcome" not in table:
        return np.ones(len(table), dtype=bool)
    if not all(name in table for name in OPTIONS):
        return table.flags("outcome")
    came, option, other = one_mark(*(composed(table[name]) for name in ("outcome", *OPTIONS)))
    first, named = came == option, (came == option) | (came == other)
    if not named.any():
        return table.flags("outcome", ", or the token that came true")
    right = "should be the token that came true,"
    table.refuse(~named, "outcome", lambda row: f"{right} {shown(option[row])} or {shown(other[row])}")
    both = np.isin(came, ("0", "1")) & (first != (came == "1"))
    table.refuse(both, "outcome", "which names a token and says yes or no: write true or false")
    return np.asarray(first, dtype=bool)


def _reports(table: Table, settings: ComparisonLayout) -> NDArray[np.float64]:
    percent, top = settings.percent, 100 if settings.percent else 1
    report = table.shares("report", percent=percent)
    # a cell with a percent sign says its scale itself
    plain = np.flatnonzero([not text.rstrip().endswith("%") for text in table.texts("report").tolist()])
    cure = "write all reports on one scale" + (f": as probabilities, without {Set('study.percent')}" if percent else "")
    check_scale(table, "report", report[plain] * top, plain, top=top, cure=cure)
    beyond = (report < 0) | (report > 1)
    kind = "percentage" if percent else "probability"
    more = "" if percent else f"; {Set('study.percent', True)} reads percentages"
    table.refuse(beyond, "report", f"should be a {kind} from 0 to {top}: correct the cell, or empty it{more}")
    if settings.extremes is not None:
        low, high = (value / top for value in settings.extremes)
        ends = " and ".join(f"{value:g}" for value in settings.extremes)
        moved = (report < low) | (report > high)
        table.note(f"reports moved to {ends}, which stand for 0 and {top} (extremes)", moved)
        report = np.clip(report, low, high)
    should = f"a {kind} strictly between 0 and {top}: 0 and {top} mean an "
    instead = Set("study.extremes", [1, 99] if percent else [0.01, 0.99])
    should += f"infinite ratio, so say what stands for them, such as {instead}{more}"
    table.refuse((report <= 0) | (report >= 1), "report", f"should be {should}")
    return report


def free_answers_of(
    given: Table, asked: Asked, columns: ComparisonColumns, variables: dict[str, Any]
) -> dict[str, Any]:
    """Make the variables along ``answer``; a token is found among the target and the candidates by its string."""
    table = columns.read(given, "free_answers", FREE_ANSWERS, ("batch",))
    position = {name: at for at, name in enumerate(asked.names)}
    at = np.array([position.get(name, -1) for name in table["item"].tolist()], dtype=np.int64)
    table.refuse(at < 0, "item", "should be an item of the pairs")
    answer, target, candidate = one_mark(table["answer"], asked.target, asked.candidate)
    table.refuse_other_lead("answer", answer[:, None], np.column_stack([target, candidate])[at])
    made: dict[str, Any] = {}
    if "candidate_batch" not in variables:
        answered = variables["candidate_source"][1] == "answer" if "candidate_source" in variables else False
        made["candidate_batch"] = (("item", "candidate"), np.zeros(asked.candidate.shape, dtype=np.int64) + answered)
    batch = (made or variables)["candidate_batch"][1]
    # of a token that is there twice, the cell that was there first
    place: dict[tuple[int, str], int] = {}
    for i, j in zip(*np.unravel_index(np.argsort(batch, axis=None, kind="stable"), batch.shape), strict=True):
        place.setdefault((int(i), candidate[i, j]), int(j))
    found = np.array([place.get((int(i), text), -2) for i, text in zip(at, answer.tolist(), strict=True)])
    found[answer == target[at]] = -1
    text = "free answers that are neither the target nor a candidate: no report can value them"
    table.note(text, found == -2, "warning")
    return made | {
        "answer_item": ("answer", at),
        "answer_participant": ("answer", table["participant"]),
        "answer_candidate": ("answer", found),
        "answer_batch": ("answer", table["batch"].astype(np.int64) if "batch" in table else np.ones_like(at)),
    }


def distributions_of(
    given: Table, asked: Asked, columns: ComparisonColumns, study: xr.Dataset, answered: NDArray[np.bool_]
) -> dict[str, Any]:
    """Make the generator's whole distribution, (item, token); tokens that an item does not list have probability 0."""
    table = columns.read(given, "distributions", DISTRIBUTIONS)
    at = pd.Index(asked.names).get_indexer(pd.Index(table["item"]))
    table.refuse(at < 0, "item", "should be an item of the pairs")
    token, *named = one_mark(table["token"], asked.target, asked.candidate)
    # tokens of one string, such as halves of a character, are different ones
    again = pd.DataFrame({"item": at, "token": token}).groupby(["item", "token"]).cumcount()
    column, every = pd.factorize(pd.MultiIndex.from_arrays([token, again]))
    whole = np.full((len(asked.names), len(every)), -np.inf)
    whole[at, column] = table["logprob"]
    mass = np.exp(whole).sum(axis=1)
    off = (np.abs(mass - 1) > _OFF_MASS) & (answered | (mass > 0))
    if off.any():
        problem = (
            f"of item {shown(asked.names[int(np.argmax(off))])} gives probabilities that sum to {mass[off][0]:.4g}"
        )
        right = "should hold every token of the generator's vocabulary, with ln p in nats"
        raise table.error(f"{problem} ({int(off.sum())} such items), {right}", "logprob")
    logprob = study.sel(model=study.attrs["generator"])
    own = [logprob["target_logprob"].to_numpy()[:, None], logprob["candidate_logprob"].to_numpy()]
    strings = np.array([text for text, _ in every.tolist()], dtype=object)
    places = pd.Series(np.arange(strings.size)).groupby(strings).agg(list)
    for text, value in zip((named[0][:, None], named[1]), own, strict=True):
        for i, j in np.argwhere(np.isfinite(value) & (mass > 0)[:, None]).tolist():
            there = whole[i, places.get(text[i, j], [])]
            if not (np.abs(there - value[i, j]) < _OFF_NATS).any():
                said = f"{there[0]:.6g}" if there.size and np.isfinite(there[0]) else "missing"
                problem = f"of token {shown(text[i, j])} of item {shown(asked.names[i])} is {said}"
                right = f"should be {value[i, j]:.6g}, as in the pairs: whole distributions are the generator's"
                raise table.error(f"{problem}, {right}", "logprob")
    return {"reference_logprob": (("item", "token"), whole, {"units": "nats"}), "token": ("token", strings)}
