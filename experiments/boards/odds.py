"""Odds between two tokens: what models' log-probabilities would report of the pairs that people were shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import HUMAN, score
from shannon_game.estimators.comparison.reports import report_from_log_ratio
from shannon_game.estimators.comparison.terms import ResponsePairs, log_terms, response_pairs
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards.abilities import (
    Asked,
    Measured,
    UnitScores,
    of_each,
    seen_in_part,
    with_people_drawn,
)
from shannon_game.experiments.harness.text_models import AnyModel
from shannon_game.inference.lm.engine import EngineBase, open_engine
from shannon_game.inference.lm.stored import Work

_EVEN = "(always 50%)"


def odds(study: xr.Dataset, models: Mapping[str, AnyModel], asked: Asked) -> Measured:
    """Score models' odds on the pairs of every item, beside people's reports and beside always saying 50%."""
    if not study.sizes.get("response"):
        raise InputError("has no answer of people", source=f"study {study.attrs.get('name')!r}")
    pairs = response_pairs(study)
    items = np.unique(pairs.item)
    items = items[asked.chosen(len(items), "questions")]
    pairs = _of_items(pairs, items)
    place = {label: at for at, label in enumerate(study["item"].to_numpy().tolist())}
    positions = np.array([place[item] for item in items.tolist()])
    ratios = {name: pairs.model_log_ratio[pairs.models.index(name)] for name in asked.stored(list(pairs.models))}
    surprisal = {name: -study["target_logprob"].sel(model=name).to_numpy()[positions] for name in ratios}
    ask = partial(_live, study, pairs, positions, asked.work)
    live, left_out = of_each(models, lambda name, chosen: ask(open_engine(name, chosen)))
    notes = [seen_in_part(name, n_cut) for name, (_, _, n_cut) in live.items() if n_cut]
    for name, (ratio, nats, _) in live.items():
        ratios[name], surprisal[name] = ratio, nats
        if n := np.unique(pairs.item[np.isnan(ratio)]).size:
            left_out[name] = (
                f"{n:,} of {len(items):,} questions: a string begins within a token, or has no usable answer"
            )
    pairs = replace(pairs, models=(*ratios, _EVEN), model_log_ratio=np.stack([*ratios.values(), pairs.report * 0]))
    item = np.unique(pairs.item, return_inverse=True)[1]
    control = np.bincount(item, weights=pairs.control_logprob) / np.bincount(item)

    def drawn(values: FloatArray, finish: Callable[[FloatArray], FloatArray] = lambda mean: mean) -> FloatArray:
        return with_people_drawn(values, item, pairs.participant, asked, finish)

    terms = {name: np.exp(log_terms(pairs, name)) for name in (*ratios, _EVEN, HUMAN)}
    loss = {name: drawn(its, lambda mean: np.log(mean) - control) for name, its in terms.items()}
    reports = {name: report_from_log_ratio(np.where(pairs.equal, 0.0, its)) for name, its in ratios.items()}
    reports |= {HUMAN: np.where(pairs.equal, 0.5, pairs.report)}
    over = {name: _overconfidence(pairs, its) for name, its in reports.items()}
    points = {name: drawn(_points(its, pairs.control_logprob)) for name, its in reports.items()}
    group = np.array([f"{item}" for item in items])
    where = {"unit": group, "group": group}
    given = {name: loss[name] for name in ratios}
    return Measured(
        (
            UnitScores(
                "points",
                {name: points[name] for name in ratios},
                floor=np.zeros((1, len(items))),
                ceiling=points[HUMAN],
                **where,
            ),
            UnitScores("loss", given, floor=loss[_EVEN], ceiling=loss[HUMAN], **where),
            UnitScores("true_loss", {name: values[None] for name, values in surprisal.items()}, **where),
            UnitScores("overconfidence", {name: values[None] for name, values in over.items()}, **where),
        ),
        left_out,
        tuple(notes),
    )


def _of_items(pairs: ResponsePairs, items: NDArray[Any]) -> ResponsePairs:
    """Pairs of some items."""
    kept = np.isin(pairs.item, items)
    cut: dict[str, Any] = {
        each.name: getattr(pairs, each.name)[..., kept]
        for each in fields(pairs)
        if isinstance(getattr(pairs, each.name), np.ndarray)
    }
    return replace(pairs, **cut)


def _points(report: FloatArray, control: FloatArray) -> FloatArray:
    """Score of reports; NaN where there is none."""
    return np.where(np.isnan(report), np.nan, score(np.where(np.isnan(report), 0.5, report), control))


def _overconfidence(pairs: ResponsePairs, report: FloatArray) -> FloatArray:
    """Confidence minus accuracy of each item; answers on two different tokens count as the game pays them."""
    item = np.unique(pairs.item, return_inverse=True)[1]
    right = np.where(report == 0.5, 0.5, report > 0.5)
    paid = np.exp(pairs.control_logprob) * ~pairs.equal
    mean_paid = np.bincount(item, weights=paid).sum() / len(item)
    over = paid * (np.maximum(report, 1 - report) - right) / mean_paid
    n = np.bincount(item)
    return np.asarray(np.bincount(item, weights=over) / n * (n / n.mean()))


def _live(
    study: xr.Dataset, pairs: ResponsePairs, positions: NDArray[np.intp], work: Work, engine: EngineBase
) -> tuple[FloatArray, FloatArray, int]:
    """Log-ratio of the pairs, (response,), surprisal of the texts' tokens, (item,), and number of contexts cut."""
    item = np.unique(pairs.item, return_inverse=True)[1]
    target = study["target_token"].to_numpy()[positions].astype(str).tolist()
    contexts = study["context"].to_numpy()[positions].astype(str).tolist()
    shown = [list(dict.fromkeys([target[at], *map(str, pairs.candidate[item == at])])) for at in range(len(positions))]
    found, n_cut = engine.strings_after(work, contexts, shown)
    logprob = [dict(zip(some, values, strict=True)) for some, values in zip(shown, found, strict=True)]
    ratio = [logprob[at][str(token)] - logprob[at][target[at]] for at, token in zip(item, pairs.candidate, strict=True)]
    own = -np.array([its[token] for its, token in zip(logprob, target, strict=True)])
    return np.array(ratio), own, n_cut
