"""Rows of the table: people by the model and by the classical estimators, and the language models' exact gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.special import ndtri

from estimators.comparison import HUMAN, PerplexityEstimate, estimate_perplexity, reference_loss, true_loss
from estimators.errors import InputError
from estimators.layout import item_labels
from estimators.perplexity import perplexity_of_loss
from experiments.comparison.caveats import caveats
from experiments.harness.bayes import CONVERGENCE_COLUMNS, convergence_columns

if TYPE_CHECKING:
    from experiments.comparison.free_answers.settings import FreeAnswersSettings
    from inference.posterior.convergence import Convergence
    from models.comparison.free_answer_data import FreeAnswerData

__all__ = ["FREE_ANSWER_COLUMNS", "MODEL_METHOD", "OUTCOMES", "People", "classical_estimates", "item_table", "table_of"]

FloatArray = NDArray[np.float64]

MODEL_METHOD = "free_answers"
"""What the column ``method`` says of the model's own row; ``exact`` where nothing was estimated."""
OUTCOMES = "outcomes"
"""The same posterior at the scale at which belief fits the outcomes best, whatever the free answers say."""

FREE_ANSWER_COLUMNS = (
    *("player", "method", "generator", "n_items", "n_responses", "n_answers"),
    *("gap_nats", "gap_lower_nats", "gap_upper_nats", "reference_loss_nats"),
    *("perplexity", "perplexity_lower", "perplexity_upper", "true_gap_nats", "error_nats", "p_people_worse"),
    *("k0_median", "k0_lower", "k0_upper", "k0_true", "verdict", "caveat"),
    *("scale_median", "scale_lower", "scale_upper", "agrees"),
    *CONVERGENCE_COLUMNS,
)
"""Columns of the table.

People's gap by the model is the posterior median with an equal-tailed interval for the items asked; by the bridge and
equation 5 it is the estimate with as many standard errors on both sides as ``estimator.n_se`` says.
``p_people_worse``, of a language model: posterior probability that people's mean loss on these items is above its own;
none where a ``caveat`` (:func:`~experiments.comparison.caveats.caveats`) is known against the posterior's intervals.
``scale_*``, of the outcomes: the log-odds of belief that fit best which token was the text's, over those that the free
answers say. ``agrees``: 1 lies within their interval; for a gap by other means, 0 within that of the difference.
"""


@dataclass(frozen=True, eq=False)
class People:
    """What the posterior says of people, in the terms of the table.

    Attributes
    ----------
    data : FreeAnswerData
    item_gap_nats : ndarray, shape (draw, item)
        To the control model.
    k0 : ndarray, shape (draw,)
    scale : ndarray, shape (draw,), optional
        Factor of the log-odds at which they fit the outcomes best; None where nothing was drawn from the generator.
    outcome_gap_nats : ndarray, shape (draw,), optional
        Mean over the items at that scale.
    asked : ndarray of bool, shape (item of the study,)
        The items of the model.
    control : str
    convergence : Convergence
    """

    data: FreeAnswerData
    item_gap_nats: FloatArray
    k0: FloatArray
    scale: FloatArray | None
    outcome_gap_nats: FloatArray | None
    asked: NDArray[np.bool_]
    control: str
    convergence: Convergence

    @property
    def gap_nats(self) -> FloatArray:
        """Mean over the items, (draw,)."""
        mean: FloatArray = self.item_gap_nats.mean(axis=1)
        return mean


def classical_estimates(
    study: xr.Dataset, settings: FreeAnswersSettings
) -> tuple[list[PerplexityEstimate], tuple[str, ...]]:
    """People by the bridge and by the estimator of the settings; what the study does not allow is a warning."""
    found, problems = [], []
    for name in dict.fromkeys(("bridge", settings.estimator.function)):
        try:
            found.append(
                estimate_perplexity(
                    study,
                    HUMAN,
                    rounding=settings.rounding.scheme,
                    estimator=name,
                    generator=settings.generator.name,
                    control_only=settings.generator.control_only,
                    uncertainty=settings.estimator.uncertainty,
                    n_se=settings.estimator.n_se,
                    reference=settings.estimator.reference,
                )
            )
        except InputError as problem:
            label = name if isinstance(name, str) else settings.estimator.log_mean
            problems.append(f"no estimate of people by {label}: {problem}")
    return found, tuple(problems)


def table_of(
    study: xr.Dataset,
    people: People,
    classical: Sequence[PerplexityEstimate],
    models: Sequence[str],
    settings: FreeAnswersSettings,
) -> pd.DataFrame:
    """Make the table: people by the model, people by the classical estimators, language models."""
    base = reference_loss(study, people.control, settings.estimator.reference, people.asked)
    truth = true_loss(study, HUMAN, people.asked) - true_loss(study, people.control, people.asked)
    rows = [_people_row(study, people, settings.tail, truth), *_anchor_rows(people, settings, truth)]
    rows += [_classical_row(result, settings.estimator.n_se, settings.estimator.uncertainty) for result in classical]
    caveat = caveats(study, people.data.participant.size, compared=False)
    own = true_loss(study, people.control, people.asked)
    for name in models:
        exact = true_loss(study, name, people.asked) - own
        rows.append(
            {
                "player": name,
                "method": "exact",
                "n_items": people.data.item.size,
                "gap_nats": exact,
                "p_people_worse": np.nan if caveat else float(np.mean(people.gap_nats > exact)),
            }
        )
    table = pd.DataFrame([{**convergence_columns(None), **row} for row in rows])
    table["generator"] = people.control
    table["reference_loss_nats"] = table.get("reference_loss_nats", pd.Series(np.nan, table.index)).fillna(base)
    for end in ("", "_lower", "_upper"):
        gap = "gap_nats" if not end else f"gap{end}_nats"
        table[f"perplexity{end}"] = perplexity_of_loss(table["reference_loss_nats"] + table[gap])
    table["error_nats"] = table["gap_nats"] - table["true_gap_nats"]
    table["caveat"] = np.where(table["method"].isin([MODEL_METHOD, OUTCOMES]), caveat, "")
    table["verdict"] = table.get("verdict", pd.Series("", table.index)).fillna("")
    return table.reindex(columns=list(FREE_ANSWER_COLUMNS))


def _people_row(study: xr.Dataset, people: People, tail: float, truth: float) -> dict[str, Any]:
    gap = np.quantile(people.gap_nats, [0.5, tail, 1 - tail])
    k0 = np.quantile(people.k0, [0.5, tail, 1 - tail])
    return {
        "player": HUMAN,
        "method": MODEL_METHOD,
        "n_items": people.data.item.size,
        "n_responses": people.data.row_box.size,
        "n_answers": int(people.data.n_answers.sum()),
        **dict(zip(("gap_nats", "gap_lower_nats", "gap_upper_nats"), gap.tolist(), strict=True)),
        "true_gap_nats": truth,
        **dict(zip(("k0_median", "k0_lower", "k0_upper"), k0.tolist(), strict=True)),
        "k0_true": _true_k0(study, people.data),
        **convergence_columns(people.convergence),
    }


def _anchor_rows(people: People, settings: FreeAnswersSettings, truth: float) -> list[dict[str, Any]]:
    """What outcomes and other means say, and whether that agrees with the free answers."""
    levels = [0.5, settings.tail, 1 - settings.tail]
    rows: list[dict[str, Any]] = []
    if people.scale is not None and people.outcome_gap_nats is not None:
        row: dict[str, Any] = {"method": OUTCOMES, "n_responses": people.data.row_box.size}
        for name, draws in (("scale", people.scale), ("k0", people.k0 / people.scale)):
            found = np.quantile(draws, levels).tolist()
            row |= dict(zip((f"{name}_median", f"{name}_lower", f"{name}_upper"), found, strict=True))
        gap = np.quantile(people.outcome_gap_nats, levels).tolist()
        row |= dict(zip(("gap_nats", "gap_lower_nats", "gap_upper_nats"), gap, strict=True))
        row |= {"agrees": row["scale_lower"] <= 1 <= row["scale_upper"], **convergence_columns(people.convergence)}
        rows.append(row)
    z = float(ndtri(1 - settings.tail))
    for name, other in settings.other_gaps.items():
        arm = z * other.se_nats
        # the posterior's own spread and the other's error, taken for independent
        reach = z * float(np.hypot(people.gap_nats.std(), other.se_nats))
        rows.append(
            {
                "method": name,
                "gap_nats": other.gap_nats,
                "gap_lower_nats": other.gap_nats - arm,
                "gap_upper_nats": other.gap_nats + arm,
                "agrees": bool(abs(other.gap_nats - people.gap_nats.mean()) <= reach),
            }
        )
    common = {"player": HUMAN, "n_items": people.data.item.size, "true_gap_nats": truth}
    return [{**common, **row} for row in rows]


def _true_k0(study: xr.Dataset, data: FreeAnswerData) -> float:
    """Geometric mean of the slopes of those who compared, where a simulation knows them; bots have none."""
    if "true_slope" not in study:
        return float("nan")
    known = study[["true_slope", *(["true_bot"] if "true_bot" in study else [])]].sel(
        participant_truth=data.participant
    )
    slope = known["true_slope"].to_numpy()
    slope = slope[~known["true_bot"].to_numpy()] if "true_bot" in known else slope
    return float(np.exp(np.log(slope).mean())) if slope.size else float("nan")


def _classical_row(result: PerplexityEstimate, n_se: float, uncertainty: str) -> dict[str, Any]:
    gap = result.gap
    arm = n_se * (gap.se_items_nats if uncertainty == "items" else gap.se_samples_nats)
    return {
        "player": HUMAN,
        "method": gap.estimator,
        "n_items": gap.n_items,
        "n_responses": gap.n_responses,
        "n_answers": getattr(gap, "n_answers", np.nan),
        "gap_nats": gap.gap_nats,
        "gap_lower_nats": gap.gap_nats - arm,
        "gap_upper_nats": gap.gap_nats + arm,
        "reference_loss_nats": result.reference_loss_nats,
        "true_gap_nats": result.true_gap_nats,
        "verdict": gap.diagnostics.verdict,
    }


def item_table(
    study: xr.Dataset, people: People, classical: Sequence[PerplexityEstimate], models: Sequence[str], tail: float
) -> pd.DataFrame:
    """One row an item, with its owner's id: answers, comparisons, people's gap, the models' exact gaps."""
    data = people.data
    here = study.assign_coords(item=item_labels(study)).sel(item=data.item)
    median, lower, upper = np.quantile(people.item_gap_nats, [0.5, tail, 1 - tail], axis=0)
    control = here["target_logprob"].sel(model=people.control).to_numpy()
    columns: dict[str, Any] = {
        "item": data.item,
        "context": here["context"].to_numpy(),
        "target": here["target_token"].to_numpy(),
        "n_answers": data.n_answers,
        "n_target_answers": data.target_answers,
        "n_comparisons": np.bincount(_row_item(data), minlength=data.item.size),
        "gap_median_nats": median,
        "gap_lower_nats": lower,
        "gap_upper_nats": upper,
    }
    for result in classical:
        own = pd.Series(result.gap.item_gap_nats, result.gap.item)
        columns[f"gap_{result.gap.estimator}_nats"] = own.reindex(data.item).to_numpy()
    if "human_target_logprob" in here:
        columns["true_gap_nats"] = control - here["human_target_logprob"].to_numpy()
    for name in models:
        columns[f"gap_nats_{name}"] = control - here["target_logprob"].sel(model=name).to_numpy()
    return pd.DataFrame(columns)


def _row_item(data: FreeAnswerData) -> NDArray[np.intp]:
    """Item of every comparison."""
    item: NDArray[np.intp] = np.concatenate([np.arange(data.item.size), data.token_item])[data.row_token]
    return item
