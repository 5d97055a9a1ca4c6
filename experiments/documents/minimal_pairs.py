"""``+exp=minimal_pairs``: how often a language model gives the better text of a pair the higher probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.documents.clusters import t_half_width, wilson_interval
from shannon_game.estimators.documents.corpus import clustered_mean
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Load
from shannon_game.experiments.documents.surprisal import ScoringSettings, scored_by
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.language_models import open_work
from shannon_game.experiments.harness.plots import declared_forest
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.studies.documents.pairs import pair_study
from shannon_game.inference.lm.scored import Scored
from shannon_game.inference.settings import Probability

_EVERY = "all"
_SCORES = {"accuracy": "", "accuracy_per_token": "n_tokens", "accuracy_per_word": "n_words"}
"""What the log-probability of a text is divided by."""


class MinimalPairsRow(column.Row):
    """One model and phenomenon; the interval of one is Wilson's, that over several is clustered by phenomenon."""

    model: str = column.key("model", players=True)
    phenomenon: str = column.key("what the pairs are of")
    accuracy: float = column.headline(
        "share of pairs whose good text is the more probable, ties half", label="accuracy", interval="accuracy_{}"
    )
    accuracy_per_token: float = column.estimate("the same by the mean per token", interval="accuracy_per_token_{}")
    accuracy_per_word: float = column.estimate("the same by the sum over words", interval="accuracy_per_word_{}")
    n_pairs: int = column.context("pairs scored")
    n_ties: int = column.context("pairs with equal log-probabilities")
    bos: str = column.detail("token before each text")
    revision: str = column.detail("revision of the model")


class MinimalPairsSettings(ScoringSettings):
    interval: Probability = 0.9
    """Probability inside the intervals."""


@experiment(MinimalPairsSettings, reads=pair_study, row=MinimalPairsRow)
def minimal_pairs(study: xr.Dataset, settings: MinimalPairsSettings) -> ExperimentResult:
    """Share of minimal pairs whose good text a language model gives the higher probability, by phenomenon.

    ``pairs.csv`` has a row per pair and model, with the log-probabilities of both texts.

    Examples
    --------
    >>> import pandas as pd
    >>> from shannon_game import minimal_pairs
    >>> pairs = pd.DataFrame({"good": ["Rain fell."], "bad": ["Rain falled."]})
    >>> minimal_pairs(pairs, models=["tiny"]).table["n_pairs"].item()
    1
    """
    name = str(study.attrs.get("name", "pairs"))
    if "pair" not in study:
        raise InputError(f"is missing; {Load('pairs', {'path': 'FILE'})} makes a study of pairs", field="pair")
    texts, work = study["text"].to_numpy().tolist(), open_work(settings)
    if work.shard is not None:
        raise InputError("cuts pairs in two; leave it out", field="shard")
    prefixes = None
    if "prefix" in study or settings.prefix is not None:
        own = study["prefix"].to_numpy().tolist() if "prefix" in study else [""] * len(texts)
        prefixes = [" ".join(part for part in (settings.prefix, its) if part) for its in own]
    names = study["document"].to_numpy().tolist()
    parts, rows, doubts = [], list[dict[str, Any]](), list[str]()
    for model, its in settings.chosen_models().items():
        scored = scored_by(work, model, its, texts, names=names, settings=settings, prefixes=prefixes)
        pairs = _pairs(model, scored, study)
        doubts += [f"{model}: {note}" for note in scored.notes]
        n_lost = int(pairs["difference_nats"].isna().sum())
        if n_lost:
            doubts.append(f"{model}: {n_lost} pairs have a text without a log-probability, and are left out")
        known = pairs[pairs["difference_nats"].notna()]
        if known.empty:
            raise InputError(f"have no pair that {model} can score", source=f"study {name!r}", field="text")
        kinds = {str(kind): own for kind, own in known.groupby("phenomenon", sort=False)}
        kinds |= {_EVERY: known} if len(kinds) > 1 else {}
        about = {"model": model, "bos": scored.bos, "revision": scored.revision}
        rows += [{**about, "phenomenon": kind, **_accuracy(own, settings.interval)} for kind, own in kinds.items()]
        parts.append(pairs)
    table = MinimalPairsRow.table(rows)
    said = "; ".join(
        f"{row.accuracy:.1%} [{row.accuracy_lower:.1%}, {row.accuracy_upper:.1%}] of {row.n_pairs:,} for {row.model}"
        for row in rows_of(table.drop_duplicates("model", keep="last"))
    )
    return ExperimentResult(
        table=table,
        tables={"pairs": pd.concat(parts, ignore_index=True)},
        dataset=xr.Dataset(MinimalPairsRow.variables(table, "row")),
        figures={"accuracy": declared_forest(table, MinimalPairsRow.columns, "Is the better text preferred?", name)},
        text=f"**The good text is the more probable of a pair in {said}.** Ties count as half; the table also has "
        f"accuracies by the mean per token and the sum over words. {settings.interval:.0%} intervals are Wilson's for "
        f"one phenomenon, and clustered by phenomenon over several. {work.said()}",
        warnings=tuple(doubts),
    )


def _pairs(model: str, scored: Scored, study: xr.Dataset) -> pd.DataFrame:
    """Log-probabilities of both texts of each pair; none of a text with a token that has none."""
    n = study.sizes["document"]
    total, n_tokens, n_words = np.full(n, np.nan), np.zeros(n, dtype=int), np.zeros(n, dtype=int)
    nats = scored.scores["logprob"]
    total[scored.document] = [row.sum(dtype=float) for row in nats]
    n_tokens[scored.document], n_words[scored.document] = nats.sizes, scored.units[:, 0]
    is_good, pair = study["is_good"].to_numpy(), study["pair"].to_numpy()
    frame = pd.DataFrame({"pair": pair, "phenomenon": study["split"].to_numpy(), "model": model})
    found = frame.drop_duplicates("pair", ignore_index=True)
    for name, values in {"sum_nats": total, "n_tokens": n_tokens, "n_words": n_words}.items():
        for side, rows in (("good", is_good), ("bad", ~is_good)):
            # of a part of a study one text may be missing
            found[f"{side}_{name}"] = pd.Series(values[rows], index=pair[rows]).reindex(found["pair"]).to_numpy()
    return found.assign(difference_nats=found["good_sum_nats"] - found["bad_sum_nats"])


def _accuracy(pairs: pd.DataFrame, interval: float) -> dict[str, Any]:
    """Accuracies by the three scores, with their intervals."""
    found: dict[str, Any] = {"n_pairs": len(pairs), "n_ties": int((pairs["difference_nats"] == 0).sum())}
    code, kinds = pd.factorize(pairs["phenomenon"])
    for name, unit in _SCORES.items():
        nats = {side: pairs[f"{side}_sum_nats"] for side in ("good", "bad")}
        good, bad = (its / pairs[f"{side}_{unit}"] if unit else its for side, its in nats.items())
        right = np.where(good > bad, 1.0, np.where(good == bad, 0.5, 0.0))
        mean = clustered_mean(right, code)
        half = t_half_width(mean.se, len(kinds) - 1, interval)
        ends = np.clip([mean.mean - half, mean.mean + half], 0, 1)
        # phenomena that agree wholly say nothing of how they differ
        if len(kinds) == 1 or mean.se == 0:
            ends = np.array(wilson_interval(right.sum(), right.size, probability=interval))
        found |= {name: mean.mean, f"{name}_lower": float(ends[0]), f"{name}_upper": float(ends[1])}
    return found
