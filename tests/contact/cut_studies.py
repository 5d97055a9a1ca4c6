"""Operations of xarray on every kind of study, and what is left of it by plain indexing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from shannon_game.estimators import bets, cloze, comparison, guesses, rankings

Numbers = Mapping[str, float]
Kept = dict[str, list[int]]
"""Dimension -> positions of the whole study that are left along it."""


def gaps(study: xr.Dataset) -> Numbers:
    names = ["human", *study["model"].values.tolist()] if "model" in study else ["human"]
    return {name: comparison.estimate_perplexity(study, name).gap.gap_nats for name in names}


def distances(study: xr.Dataset) -> Numbers:
    """TVD of each model's words from people's, over all contexts."""
    words = cloze.study_words(study, human="clean", model="clean", corpus="clean")
    people = cloze.relative_frequencies(words.human)
    return {
        name: float(np.nanmean(cloze.total_variation(people, cloze.relative_frequencies(counts.counts))))
        for name, counts in words.models.items()
    }


def shares_right(study: xr.Dataset) -> Numbers:
    """Share of right guesses by person and model; how many a person needed."""
    study = guesses.validate_guess_study(study)
    people = guesses.participant_accuracy(study["correct"].values, study["participant"].values)
    of_models = study["model_hit"].mean("item").to_series() if "model" in study else {}
    ranks = guesses.guess_ranks(study)
    at_once = {
        f"{name} at once": float((ranks.rank[ranks.participant == name] == 1).mean()) for name in ranks.participant
    }
    shares = dict(zip(people.participant.tolist(), (people.n_hits / people.n_guesses).tolist(), strict=True))
    return {**shares, **at_once, **{str(name): float(share) for name, share in of_models.items()}}


def mean_scores(study: xr.Dataset) -> Numbers:
    scores, model = rankings.score_study(study), study["model"].values
    return {str(name): float(scores.linear[model == name].mean()) for name in np.unique(model)}


def bet_loss(study: xr.Dataset) -> Numbers:
    return {"people": float(bets.bet_losses(study, "floor").mean())}


Validator = Callable[[xr.Dataset], xr.Dataset]
KINDS: Mapping[str, tuple[Callable[[], xr.Dataset], Validator, Callable[[xr.Dataset], Numbers]]] = {
    "comparison": (comparison.examples.comparison_study, comparison.validate_comparison_study, gaps),
    "cloze": (cloze.examples.cloze_study, cloze.validate_cloze_study, distances),
    "guess": (guesses.examples.guess_study, guesses.validate_guess_study, shares_right),
    "ranking": (rankings.examples.ranking_study, rankings.validate_ranking_study, mean_scores),
    "bet": (bets.examples.bet_study, bets.validate_bet_study, bet_loss),
}

_ALONG = {
    "response_candidate": "candidate",
    "response_word": "word",
    "sample_word": "word",
    "entry_model": "model",
    "sample_entry": "entry",
    "sample_source": "source",
    "bet_response": "response",
}
_OWNED = {"entry_model", "sample_entry", "sample_source", "bet_response"}
"""What points to what was cut goes with it."""
_LABELLED = ("item", "model", "source", "document")
OPERATIONS = [
    *["transpose", "order", "cut", "again", "drop", "extra", "type", "stack", "scalar", "unset", "netcdf", "rename"]
]


def changed(study: xr.Dataset, draw: random.Random, operations: list[str] = OPERATIONS) -> tuple[xr.Dataset, Kept]:
    """A study after one to three operations of xarray's, and what is left of it."""
    kept = {str(dim): list(range(size)) for dim, size in study.sizes.items()}
    for _ in range(draw.randint(1, 3)):
        if not study.sizes or not study.coords or "both" in study.dims:
            break
        dim = draw.choice(sorted(map(str, study.sizes)))
        at = list(range(study.sizes[dim]))
        match draw.choice(operations):
            case "transpose":
                study = study.transpose(*draw.sample(list(study.sizes), len(study.sizes)))
            case "order" | "cut" | "again" as how:
                n = len(at) if how == "order" else draw.randint(1, len(at))
                taken = draw.choices(at, k=n) if how == "again" else draw.sample(at, n)
                study, kept[dim] = study.isel({dim: taken}), [kept[dim][one] for one in taken]
            case "scalar":
                one = draw.choice(at)
                study, kept[dim] = study.isel({dim: one}), [kept[dim][one]]
            case "drop":
                study = study.drop_vars(draw.choice(sorted(map(str, study.coords))))
            case "extra":
                study = study.assign_coords(note=(dim, at))
            case "type":
                small = {"i": np.int32, "f": np.float32, "O": str}
                name = draw.choice(sorted(map(str, study.data_vars)))
                values = study[name]
                if values.dtype.kind in small and None not in values.values.ravel().tolist():
                    study = study.assign({name: values.astype(small[values.dtype.kind])})
            case "unset":
                study = study.reset_coords(
                    draw.choice(sorted(set(map(str, study.coords)) - set(study.indexes)) or [[]])
                )
            case "netcdf":
                study = xr.Dataset.from_dict(study.to_dict())
            case "rename":
                return study.rename({dim: f"{dim}_2"}), kept
            case _:
                study = study.stack(both=[dim])
    return study, kept


def left(study: xr.Dataset, kept: Kept) -> xr.Dataset | None:
    """What is left of a whole study by plain indexing; None if that is no study."""
    columns = {str(name): (variable.dims, variable.values) for name, variable in study.variables.items()}
    rows, attrs = {dim: list(places) for dim, places in kept.items()}, dict(study.attrs)
    if any(len(set(places)) < len(places) for dim, places in rows.items() if dim in study.indexes and dim in _LABELLED):
        return None
    if rows.get("rank", []) != list(range(len(rows.get("rank", [])))):
        return None
    order = ["model", "source", "response", "entry", "sample", "bet"]
    for name in sorted(_ALONG, key=lambda name: order.index(name.partition("_")[0])):
        if name not in columns:
            continue
        (own,), values = columns[name]
        places = rows[_ALONG[name]]
        there = [place for place in rows[str(own)] if values[place] in places]
        if len(there) < len(rows[str(own)]) and name not in _OWNED:
            return None
        if len(set(places)) < len(places):
            return None
        rows[str(own)] = there
        new = {place: number for number, place in enumerate(places)}
        columns[name] = ((own,), np.array([new.get(int(value), 0) for value in values.tolist()], dtype=np.int64))
    found: dict[str, Any] = {"rank_number": ("rank", rows["rank"])} if "rank" in rows else {}
    for name, (dims, values) in columns.items():
        if not name.endswith("_number"):
            found[name] = (dims, values[np.ix_(*(rows[str(dim)] for dim in dims))])
    coords = [name for name in (*study.indexes, "rank_number") if name in found]
    return xr.Dataset(found, attrs=attrs).set_coords(coords)
