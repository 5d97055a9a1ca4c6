r"""Parameter recovery: how far estimates fall from a known truth over many fresh studies.

A *study* here is one replicate; the *truth* of a study is that of its own items, so that errors are those of the
method and not of which items a study happens to have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import beta

from estimators.comparison import response_positions, same_token, validate_comparison_study
from estimators.comparison.gap import estimate_gap
from estimators.comparison.perplexity import true_loss
from estimators.comparison.rounding import RoundingScheme
from estimators.comparison.terms import log_terms, response_pairs
from estimators.display import Result
from estimators.errors import InputError, unknown_choice
from inference.comparison.belief_gap import belief_gap, compile_belief
from inference.posterior.arviz_adapter import group, thin
from inference.posterior.convergence import Convergence, GateThresholds, check_convergence
from inference.posterior.replicates import Row
from inference.posterior.sampling import CompiledModel, sample
from models.comparison.belief import BeliefPriors, set_answers
from models.comparison.belief_data import BeliefData, belief_data

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "ASKS",
    "CLASSICAL",
    "RecoverySummary",
    "classical_rows",
    "fresh_items",
    "fresh_study",
    "player_rows",
    "posterior_row",
    "summarise",
    "summarise_rows",
]

CLASSICAL = ("importance", "jackknife")
"""Estimators of :data:`estimators.comparison.gap.ESTIMATORS` beside the belief model; the first is equation
5."""

ASKS = ("draws", "distinct")
"""What a fresh study asks about: the generator's draws as they come, or distinct tokens other than the target."""

_SHARE_INTERVAL = 0.95

_compiled: dict[tuple[object, ...], CompiledModel] = {}


@dataclass(frozen=True, repr=False)
class RecoverySummary(Result):
    r"""How well an estimator found the truth in one cell of a recovery study.

    Attributes
    ----------
    n_studies : int
        Studies counted, those whose sampler did not converge among them.
    truth_mean : float
    bias : float
        Mean error.
    rmse, rmse_se : float
        Root of the mean squared error, and its Monte-Carlo standard error
        :math:`\mathrm{sd}(e^2) / (2\,\mathrm{rmse}\sqrt N)`; NaN with one study.
    coverage : float
        Share of studies whose interval holds the truth.
    coverage_lower, coverage_upper : float
        95% Jeffreys interval of that share: quantiles of Beta(k + 1/2, N - k + 1/2), 0 for k = 0 and 1 for k = N
        (Brown, Cai and DasGupta 2001).
    width_mean : float
        Mean width of the interval.
    n_unconverged : int
    n_longer : int
        Posteriors that were drawn again, with more draws.
    """

    n_studies: int
    truth_mean: float
    bias: float
    rmse: float
    rmse_se: float
    coverage: float
    coverage_lower: float
    coverage_upper: float
    width_mean: float
    n_unconverged: int
    n_longer: int = 0

    def headline(self) -> str:
        """Say bias, error and coverage."""
        return f"{self.n_studies} studies, bias {self.bias:.3f}, RMSE {self.rmse:.3f}, coverage {self.coverage:.0%}"


def summarise(
    estimate: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    truth: ArrayLike,
    *,
    converged: ArrayLike = True,
    times_draws: ArrayLike = 1,
) -> RecoverySummary:
    """Summarise estimates of many studies.

    Parameters
    ----------
    estimate, lower, upper, truth : array_like, shape (study,)
        Point estimate, ends of its interval, and what is true, in one unit.
    converged : array_like of bool, shape (study,)
        Those that did not converge are counted, and stay in every other number: to drop them would make the method
        look better than it is.
    times_draws : array_like of int, shape (study,)
        How many times the draws of the settings each posterior has.

    Returns
    -------
    RecoverySummary

    Raises
    ------
    InputError
        If the shapes differ, there is no study, a value is not finite, or an interval ends before it starts.

    Examples
    --------
    >>> import inference
    >>> inference.summarise([0.9, 1.2], [0.5, 1.1], [1.3, 1.3], [1.0, 1.0])
    RecoverySummary(2 studies, bias 0.050, RMSE 0.158, coverage 50%)
    """
    shape = np.shape(estimate)
    values = {"estimate": estimate, "lower": lower, "upper": upper, "truth": truth}
    arrays = {name: np.asarray(value, dtype=float) for name, value in values.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or array.shape != shape or array.size == 0:
            raise InputError(
                f"has shape {array.shape}, should be (study,) as the others: {shape}", source="recovery", field=name
            )
        if not np.isfinite(array).all():
            raise InputError(f"is {array[~np.isfinite(array)][0]}, should be finite", source="recovery", field=name)
    if (arrays["lower"] > arrays["upper"]).any():
        raise InputError("is below the lower end", source="recovery", field="upper")
    n = int(arrays["truth"].size)
    error = arrays["estimate"] - arrays["truth"]
    rmse = float(np.sqrt(np.mean(error**2)))
    spread = float(np.std(error**2, ddof=1)) if n > 1 else float("nan")
    inside = (arrays["lower"] <= arrays["truth"]) & (arrays["truth"] <= arrays["upper"])
    k = int(inside.sum())
    tail = (1 - _SHARE_INTERVAL) / 2
    return RecoverySummary(
        n_studies=n,
        truth_mean=float(arrays["truth"].mean()),
        bias=float(error.mean()),
        rmse=rmse,
        rmse_se=float(np.divide(spread, 2 * rmse * np.sqrt(n))) if rmse > 0 or n == 1 else 0.0,
        coverage=k / n,
        coverage_lower=0.0 if k == 0 else float(beta.ppf(tail, k + 0.5, n - k + 0.5)),
        coverage_upper=1.0 if k == n else float(beta.ppf(1 - tail, k + 0.5, n - k + 0.5)),
        width_mean=float(np.mean(arrays["upper"] - arrays["lower"])),
        n_unconverged=int(np.sum(~np.broadcast_to(np.asarray(converged, dtype=bool), shape))),
        n_longer=int(np.sum(np.broadcast_to(np.asarray(times_draws) > 1, shape))),
    )


def summarise_rows(
    rows: Iterable[Row], by: Sequence[str]
) -> list[tuple[Mapping[str, str | int | float], RecoverySummary]]:
    """Summarise the rows of replicates (:func:`inference.posterior.replicates.run_replicates`), cell by cell."""
    cells: dict[tuple[str | int | float, ...], list[Row]] = {}
    needed = (*by, "estimate", "lower", "upper", "truth", "converged")
    for row in rows:
        missing = [name for name in needed if name not in row]
        if missing:
            raise InputError(f"lacks {', '.join(missing)}", source="recovery", field="row")
        cells.setdefault(tuple(row[name] for name in by), []).append(row)
    return [
        (
            dict(zip(by, key, strict=True)),
            summarise(
                *([row[name] for row in found] for name in ("estimate", "lower", "upper", "truth")),
                converged=[row["converged"] is not False for row in found],
                times_draws=[row.get("times_draws", 1) for row in found],
            ),
        )
        for key, found in cells.items()
    ]


def fresh_items(study: xr.Dataset) -> list[int]:
    """Labels of the items that nobody was asked, and that pass the study's item filter."""
    free = study["selected"].values.copy()
    free[response_positions(study)] = False
    labels: list[int] = study["item"].values[free].tolist()
    return labels


def fresh_study(study: xr.Dataset, *, n_items: int, n: int, rng: np.random.Generator, ask: str = "draws") -> xr.Dataset:
    """Make a new study for language models as players, from the items of a study that nobody was asked.

    Items are drawn without replacement, and so are the n candidates of each that are asked about; the candidates that
    are stored but not asked stay in the study, as they are in the study it is made from. With the same `rng` and
    `n_items` a smaller `n` asks about the first of the same candidates.

    Draws are what equation 5 needs, but where the generator is nearly certain they are the target again and again,
    and tell nothing. With ``ask="distinct"`` no token is asked about twice and the target never, so that every question
    counts; equation 5 does not hold then, and the belief model does not mind: it is conditional on which tokens are
    asked about.
    """
    if ask not in ASKS:
        raise unknown_choice("ask", ask, ASKS)
    free = fresh_items(study)
    source = f"study {study.attrs.get('name')!r}"
    n_candidates = study.sizes["candidate"]
    for name, value, most, what in (
        ("n_items", n_items, len(free), "items without responses"),
        ("n", n, n_candidates, "candidates an item"),
    ):
        if not 1 <= value <= most:
            raise InputError(
                f"is {value}, should be from 1 to {most}: there are {most} {what}", source=source, field=name
            )
    chosen = np.sort(rng.choice(np.asarray(free), n_items, replace=False))
    asked = np.argsort(rng.random((n_items, n_candidates)), axis=1)
    labels = study["item"].values
    order = np.argsort(labels, kind="stable")
    where = order[np.searchsorted(labels, chosen, sorter=order)]
    columns = _distinct_columns(study, where, asked, n) if ask == "distinct" else list(asked[:, :n])
    counts = [len(each) for each in columns]
    item, position, column = np.repeat(chosen, counts), np.repeat(where, counts), np.concatenate(columns)
    question = [f"draw {j}" for count in counts for j in range(count)]
    # `drop_dims` keeps the other items, whose candidates tell how frequent tokens are
    fresh = study.drop_dims("response").drop_dims("participant_truth", errors="ignore")
    sets = np.where(np.isin(labels, chosen), "fresh", "").astype(object)
    return validate_comparison_study(
        fresh.assign(
            item_set=("item", sets),
            participant=("response", np.array(question, dtype=object)),
            response_item=("response", item),
            response_candidate=("response", column),
            report=("response", np.full(column.size, 0.5)),
            automatic=("response", same_token(study)[position, column]),
        )
    )


def _distinct_columns(
    study: xr.Dataset, item: NDArray[np.intp], asked: NDArray[np.intp], n: int
) -> list[NDArray[np.intp]]:
    """First n columns of every item, in the order of `asked`, that hold distinct tokens other than the target."""
    tokens, same = study["candidate_token"].values[item].astype(str), same_token(study)[item]
    columns = []
    for row, mine, target in zip(asked, tokens, same, strict=True):
        other = row[~target[row]]
        _, first = np.unique(mine[other], return_index=True)
        columns.append(other[np.sort(first)][:n] if other.size else row[:1])
    return columns


def player_rows(
    study: xr.Dataset,
    player: str,
    rounding: RoundingScheme,
    *,
    interval: float,
    sampler: Mapping[str, int | float | str | None],
    thresholds: GateThresholds,
    priors: BeliefPriors,
    rng: np.random.Generator,
    classical: bool = True,
    longer: int = 1,
) -> list[Row]:
    """Estimate the loss gap of a player without noise in every way, beside the truth.

    The belief model gives its posterior median and equal-tailed interval; the classical estimators of
    :data:`CLASSICAL` their value and, for want of anything better, a normal interval from the paper's standard error
    over items (source (i)). One compiled model serves all calls in a process that have as many items, the same grid
    and the same priors.
    """
    pairs = response_pairs(study)
    asked = np.isin(study["item"].values, pairs.item)
    truth = true_loss(study, player, asked) - true_loss(study, study.attrs["generator"], asked)
    rows = classical_rows(study, player, rounding, truth=truth, interval=interval) if classical else []
    data = belief_data(study, player, rounding)
    model = _with_answers(data, priors)
    for times in dict.fromkeys([1, longer]):
        settings: dict[str, Any] = {**sampler, "draws": times * int(sampler.get("draws") or 1000)}
        idata = sample(model, seed=int(rng.integers(2**31)), progress=False, **settings)
        verdict = check_convergence(idata, thresholds)
        if verdict.passed:
            break
    # every draw of the gap costs hundreds of tokens
    idata = thin(idata, 4000)
    # a model that was compiled for other items keeps their labels
    gap_draws = belief_gap(group(idata, "posterior").assign_coords(item=data.item), data, rng)
    found = posterior_row("belief", gap_draws.gap_nats, truth=truth, interval=interval, verdict=verdict)
    rows.append(found | {"times_draws": times})
    return rows


def classical_rows(
    study: xr.Dataset, player: str, rounding: RoundingScheme | str, *, truth: float, interval: float
) -> list[Row]:
    """Rows of the estimators of :data:`CLASSICAL`, with normal intervals from the standard error over items."""
    pairs = response_pairs(study)
    terms = log_terms(pairs, player, rounding)
    no_sampler = {"converged": None, "r_hat_max": None, "ess_bulk_min": None, "n_divergent": None, "times_draws": 0}
    rows: list[Row] = []
    for name in CLASSICAL:
        gap = estimate_gap(terms, pairs.item, estimator=name)
        half = float(ndtri((1 + interval) / 2)) * gap.se_items_nats
        found = {"estimate": gap.gap_nats, "lower": gap.gap_nats - half, "upper": gap.gap_nats + half}
        rows.append({"estimator": name, **found, "truth": truth, **no_sampler})
    return rows


def posterior_row(estimator: str, draws: ArrayLike, *, truth: float, interval: float, verdict: Convergence) -> Row:
    """Row of a posterior of the gap: median and equal-tailed interval."""
    tail = (1 - interval) / 2
    median, lower, upper = (float(value) for value in np.quantile(np.asarray(draws), [0.5, tail, 1 - tail]))
    return {
        "estimator": estimator,
        "estimate": median,
        "lower": lower,
        "upper": upper,
        "truth": truth,
        "converged": verdict.passed,
        "r_hat_max": verdict.r_hat_max,
        "ess_bulk_min": verdict.ess_bulk_min,
        "n_divergent": verdict.n_divergent,
        "times_draws": 1,
    }


def _with_answers(data: BeliefData, priors: BeliefPriors) -> CompiledModel:
    key = (data.item.size, data.is_raw, data.box_edges.tobytes(), priors)
    if key not in _compiled:
        _compiled[key] = compile_belief(data, priors)
    set_answers(_compiled[key].model, data)
    return _compiled[key]
