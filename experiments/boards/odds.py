"""Odds between two tokens: what models' log-probabilities would report of the pairs that people were shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import HUMAN, score
from shannon_game.estimators.comparison.reports import report_from_log_ratio
from shannon_game.estimators.comparison.terms import ResponsePairs, log_terms, response_pairs
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards.abilities import Asked, Measured, UnitScores, seen_in_part, with_people_drawn
from shannon_game.experiments.harness.language_models import Work, batches_in_order
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
    notes: list[str] = []
    ratios = {name: pairs.model_log_ratio[pairs.models.index(name)] for name in asked.stored(list(pairs.models))}
    surprisal = {name: -study["target_logprob"].sel(model=name).to_numpy()[positions] for name in ratios}
    for name, chosen in models.items():
        if chosen.source == "ngram":
            left_out[name] = "an n-gram model of words has no probabilities of tokens"
            continue
        try:
            ratios[name], surprisal[name], n_cut = _live(study, pairs, positions, chosen, asked.work)
        except InputError as problem:
            left_out[name] = str(problem)
            continue
        if n_cut:
            notes.append(seen_in_part(name, n_cut))
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
    points = {name: drawn(score(its, pairs.control_logprob)) for name, its in reports.items()}
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
) -> tuple[FloatArray, FloatArray, int]:
    """Log-ratio of the pairs, (response,), surprisal of the texts' tokens, (item,), and number of contexts cut."""
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
        tokens = encode(model, [context for context, _ in batch])
        logprob = continuation_log_probs(model, [each[-longest:] for each in tokens], [some for _, some in batch])
        return {"logprob": ragged(logprob), "is_cut": np.array([len(each) > longest for each in tokens])}

    asked = list(zip(contexts, shown, strict=True))
    found = work.compute(
        f"{model.name}, odds of tokens",
        operation_key("continuations", model=model.identity, parameters={"longest": longest}, compute=compute),
        asked,
        [result_key(context, some) for context, some in asked],
        compute,
        batches=batches_in_order(work.items_per_batch),
        provenance=model_record(model),
    )
    logprob = [dict(zip(some, values, strict=True)) for some, values in zip(shown, found["logprob"], strict=True)]
    ratio = [logprob[at][str(token)] - logprob[at][target[at]] for at, token in zip(item, pairs.candidate, strict=True)]
    own = -np.array([its[token] for its, token in zip(logprob, target, strict=True)])
    return np.array(ratio), own, int(found["is_cut"].sum())


_ROOM = 32
"""Tokens that a string may take after the longest context."""
