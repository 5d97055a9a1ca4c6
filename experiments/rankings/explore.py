"""Places of a ranking study for the explorer: the rank that every model gave to the token of the text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.rankings import score_study
from shannon_game.experiments.harness.exploration import BETTER, Cell, Exploration, ItemTable, best_of, fill_labels
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.result import ExperimentResult

_PLACE = ["text", "context_length", "window", "position"]
_BEFORE = 60
"""Tokens of the same window that are shown before the place."""
_TOP = 10

_LABELS = {
    "item": "place",
    "context": "tokens before it, of the same window",
    "target": "target",
    "text": "text",
    "context_length": "tokens that the model saw",
    "window": "window",
    "position": "place in the window",
    "rank_": "{}: rank of the target (1 is the best)",
    BETTER: "lowest rank",
}


def ranking_exploration(study: xr.Dataset, result: ExperimentResult | None = None) -> Exploration:  # noqa: ARG001 - as of the other kinds
    """Describe every place of a ranking study, with every model's ranks and most probable tokens."""
    whole = "reference_rank" in study and bool(np.isfinite(study["reference_rank"].to_numpy()).any())
    rank = study["reference_rank"].to_numpy() if whole else score_study(study).rank
    table = pd.DataFrame({name: study[name].to_numpy() for name in ("model", *_PLACE)})
    table["target"], table["rank"] = study["reference_token"].to_numpy().astype(str), rank
    table["row"] = np.arange(len(table))
    models = list(dict.fromkeys(table["model"].astype(str)))
    places = table.drop_duplicates(_PLACE)[[*_PLACE, "target"]].reset_index(drop=True)
    keys = pd.MultiIndex.from_frame(places[_PLACE])
    by_model = {name: part.set_index(_PLACE) for name, part in table.groupby("model", sort=False)}
    rows = {name: by_model[name]["row"].reindex(keys).to_numpy() for name in models}
    items = places.copy()
    items.insert(0, "item", [", ".join(map(str, key)) for key in keys])
    items.insert(1, "context", _contexts(places))
    for name in models:
        items[f"rank_{name}"] = by_model[name]["rank"].reindex(keys).to_numpy()
    items[BETTER] = best_of({name: items[f"rank_{name}"].to_numpy() for name in models})
    ranks = [f"rank_{name}" for name in models]
    return Exploration(
        kind="ranking",
        items=items,
        tables=[_tables(study, {name: rows[name][at] for name in models}, rank) for at in range(len(items))],
        labels=fill_labels([str(name) for name in items.columns], _LABELS),
        shown=("item", "context", "target", "context_length", *ranks[:3], BETTER),
        axes=("position", ranks[0]) if len(ranks) == 1 else (ranks[0], ranks[1]),
        first=(ranks[0], True),
        about=(
            "The target is the token of the text. Who was better: the model that ranks the target highest. A target "
            "that is not among the tokens listed has the rank \N{INFINITY}."
        ),
        players=tuple(models),
    )


def _contexts(places: pd.DataFrame) -> list[str]:
    found = [""] * len(places)
    for _, part in places.groupby(_PLACE[:3], sort=False):
        ordered = part.sort_values("position")
        tokens = ordered["target"].tolist()
        for number, at in enumerate(ordered.index):
            found[int(at)] = "".join(tokens[max(0, number - _BEFORE) : number])
    return found


def _tables(study: xr.Dataset, rows: dict[str, float], rank: NDArray[np.float64]) -> list[ItemTable]:
    token, logprob = study["ranked_token"].to_numpy(), study["ranked_logprob"].to_numpy()
    there = {name: int(row) for name, row in rows.items() if not np.isnan(row)}
    n_listed = min(_TOP, token.shape[1])
    listed: list[list[Cell]] = []
    for place in range(n_listed):
        cells: list[Cell] = [place + 1]
        for row in there.values():
            known = token[row, place] is not None
            cells += [str(token[row, place]), float(np.exp(logprob[row, place]))] if known else [None, None]
        listed.append(cells)
    head = ["rank"]
    for name, row in there.items():
        place_of = "not listed" if np.isinf(rank[row]) else f"rank {rank[row]:g}"
        head += [f"{player_label(name)} ({place_of})", "probability"]
    return [ItemTable("Most probable tokens", tuple(head), listed)]
