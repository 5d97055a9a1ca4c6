"""Odds between two tokens: what models' log-probabilities would report of the pairs that people were shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import HUMAN, group_terms, score
from shannon_game.estimators.comparison.log_means import plain_log_mean
from shannon_game.estimators.comparison.reports import report_from_log_ratio
from shannon_game.estimators.comparison.terms import ResponsePairs, log_terms, response_pairs
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards.abilities import Asked, Measured, UnitScores
from shannon_game.experiments.harness.language_models import Work, batches_in_order
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.store.keys import operation_key, result_key
from shannon_game.inference.store.store import ragged

_EVEN = "(always 50%)"


def odds(study: xr.Dataset, models: Mapping[str, ModelSettings], asked: Asked) -> Measured:
    """Score models' odds on the pairs of every item, beside people's reports and beside always saying 50%."""
    if not study.sizes.get("response"):
        raise InputError("has no answer of people", source=f"study {study.attrs.get('name')!r}")
    pairs = response_pairs(study)
    items = np.unique(pairs.item)
    items = items[asked.chosen(len(items), "questions")]
    pairs = _of_items(pairs, items)
    place = {label: at for at, label in enumerate(study["item"].to_numpy().tolist())}
    positions = np.array([place[item] for item in items.tolist()])
    left_out: dict[str, str] = {}
    ratios = {name: pairs.model_log_ratio[pairs.models.index(name)] for name in asked.stored(list(pairs.models))}
    surprisal = {name: -study["target_logprob"].sel(model=name).to_numpy()[positions] for name in ratios}
    for name, chosen in models.items():
        if chosen.source == "ngram":
            left_out[name] = "an n-gram model of words has no probabilities of tokens"
            continue
        ratios[name], surprisal[name] = _live(study, pairs, positions, chosen, asked.work)
    pairs = replace(pairs, models=(*ratios, _EVEN), model_log_ratio=np.stack([*ratios.values(), pairs.report * 0]))
    players = (*ratios, _EVEN, HUMAN)
    loss = _losses(pairs, {name: log_terms(pairs, name) for name in players}, asked)
    reports = {name: report_from_log_ratio(np.where(pairs.equal, 0.0, its)) for name, its in ratios.items()}
    reports |= {HUMAN: np.where(pairs.equal, 0.5, pairs.report)}
    over = {name: _overconfidence(pairs, its) for name, its in reports.items()}
    points = _points(pairs, reports, asked)
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
    )


def _of_items(pairs: ResponsePairs, items: NDArray[Any]) -> ResponsePairs:
    """Pairs of some items."""
    kept = np.isin(pairs.item, items)
    return replace(
        pairs,
        **{
            name: value[..., kept]
            for name, value in vars(pairs).items()
            if isinstance(value, np.ndarray) and name in ResponsePairs.__dataclass_fields__
        },
    )


def _losses(pairs: ResponsePairs, terms: Mapping[str, FloatArray], asked: Asked) -> dict[str, FloatArray]:
    """Loss of each item, (draw, item), with participants drawn with replacement; means over draws are the estimates.

    A log-mean of fewer participants is lower: draws are moved so that their mean is the loss of all.
    """
    item, times = np.unique(pairs.item, return_inverse=True)[1], _times_drawn(pairs, asked)
    n_items = int(item.max()) + 1
    reference = np.zeros(n_items)
    reference[item] = -pairs.control_logprob
    found = {}
    for name, term in terms.items():
        grouped = group_terms(term, pairs.item)
        whole = plain_log_mean(grouped).value + reference
        weight, largest = np.exp(term - grouped.weights.largest[item]), grouped.weights.largest
        draws = np.tile(whole, (len(times), 1))
        for row, drawn in zip(draws, times, strict=True):
            total = np.bincount(item, weights=drawn, minlength=n_items)
            mass = np.bincount(item, weights=drawn * weight, minlength=n_items)
            some = total > 0
            row[some] = np.log(mass[some] / total[some]) + largest[some] + reference[some]
        found[name] = draws - draws.mean(axis=0) + whole
    return found


def _points(pairs: ResponsePairs, reports: Mapping[str, FloatArray], asked: Asked) -> dict[str, FloatArray]:
    """Points of each item, (draw, item), as the game gives them for reports, with participants drawn."""
    item, times = np.unique(pairs.item, return_inverse=True)[1], _times_drawn(pairs, asked)
    n = np.bincount(item)
    found = {}
    for name, report in reports.items():
        earned = np.where(pairs.equal, 0.0, score(report, pairs.control_logprob))
        whole = np.bincount(item, weights=earned) / n
        draws = np.tile(whole, (len(times), 1))
        for row, drawn in zip(draws, times, strict=True):
            total = np.bincount(item, weights=drawn)
            row[total > 0] = (np.bincount(item, weights=drawn * earned) / np.maximum(total, 1))[total > 0]
        found[name] = draws - draws.mean(axis=0) + whole
    return found


def _times_drawn(pairs: ResponsePairs, asked: Asked) -> NDArray[np.int64]:
    """How often the participant of each pair was drawn with replacement, (draw, pair); the same for all players."""
    people = np.unique(pairs.participant, return_inverse=True)[1]
    n = int(people.max()) + 1
    rng = rng_for(asked.settings.seed, "participants")
    return rng.multinomial(n, np.full(n, 1 / n), size=asked.settings.n_splits)[:, people]


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
    study: xr.Dataset, pairs: ResponsePairs, positions: NDArray[np.intp], chosen: ModelSettings, work: Work
) -> tuple[FloatArray, FloatArray]:
    """Log-ratio of the pairs, (response,), and surprisal of the tokens of the text, (item,), by their strings."""
    from shannon_game.inference.lm.continuations import continuation_log_probs  # noqa: PLC0415
    from shannon_game.inference.lm.language_model import encode, model_record  # noqa: PLC0415 - the extra lm
    from shannon_game.inference.lm.loading import load_language_model  # noqa: PLC0415

    model = load_language_model(chosen)
    item = np.unique(pairs.item, return_inverse=True)[1]
    target = study["target_token"].to_numpy()[positions].astype(str).tolist()
    contexts = study["context"].to_numpy()[positions].astype(str).tolist()
    shown = [list(dict.fromkeys([target[at], *map(str, pairs.candidate[item == at])])) for at in range(len(positions))]
    longest = model.max_tokens - _ROOM

    def compute(batch: list[tuple[str, Sequence[str]]]) -> Mapping[str, NDArray[Any]]:
        tokens = [each[-longest:] for each in encode(model, [context for context, _ in batch])]
        return {"logprob": ragged(continuation_log_probs(model, tokens, [some for _, some in batch]))}

    asked = list(zip(contexts, shown, strict=True))
    found = work.compute(
        f"{model.name}, odds of tokens",
        operation_key("continuations", model=model.identity, parameters={"longest": longest}, compute=compute),
        asked,
        [result_key(context, some) for context, some in asked],
        compute,
        batches=batches_in_order(work.items_per_batch),
        provenance=model_record(model),
    )["logprob"]
    logprob = [dict(zip(some, values, strict=True)) for some, values in zip(shown, found, strict=True)]
    ratio = [logprob[at][str(token)] - logprob[at][target[at]] for at, token in zip(item, pairs.candidate, strict=True)]
    return np.array(ratio), -np.array([its[token] for its, token in zip(logprob, target, strict=True)])


_ROOM = 32
"""Tokens that a string may take after the longest context."""
