r"""Ranks of reference tokens at growing context lengths: a proportional-odds model with random effects of windows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.models.rankings.slope_priors import RankPriors

if TYPE_CHECKING:
    import xarray as xr

_MOST_CATEGORIES = 201


@dataclass(frozen=True, eq=False)
class RankData:
    """How often each rank occurred, by cell; a cell is one window scored by one model."""

    model: NDArray[np.str_]
    text: NDArray[np.str_]
    window: NDArray[np.str_]  # "TEXT, LENGTH, NAME", with its text's position and its tokens of context
    window_text: NDArray[np.int64]
    window_length: NDArray[np.int64]
    cell_model: NDArray[np.int64]
    cell_window: NDArray[np.int64]
    # (cell, category): 0 is a token outside the list, j the rank k + 1 - j, so that the last one is rank 1
    count: NDArray[np.int64]

    @property
    def k(self) -> int:
        """Ranks in a list."""
        return int(self.count.shape[1]) - 1

    @property
    def category_rank(self) -> NDArray[np.float64]:
        """Rank of every category, ``inf`` for the first."""
        return np.concatenate([[np.inf], np.arange(self.k, 0, -1)])

    @property
    def centre(self) -> float:
        """Mean of log2 length over windows: where the models' intercepts are."""
        return float(np.log2(self.window_length).mean())

    def with_counts(self, count: NDArray[np.int64]) -> RankData:
        """Return the same design with other counts."""
        if count.shape != self.count.shape:
            raise InputError(f"have shape {count.shape}, should have {self.count.shape}", field="counts")
        return replace(self, count=count)


def rank_data(study: xr.Dataset, rank: ArrayLike, k: int) -> RankData:
    """Count the ranks of a ranking study.

    Parameters
    ----------
    rank : array_like, shape (token,)
        From 1 to `k`, ``inf`` for a token that is not ranked; half ranks of ties are rounded down.

    Examples
    --------
    >>> study = rankings.examples.ranking_study()
    >>> data = models.rank_data(study, study["reference_rank"], 3)
    >>> data.count.shape, data.category_rank.tolist()
    ((12, 4), [inf, 3.0, 2.0, 1.0])
    """
    if k + 1 > _MOST_CATEGORIES:
        raise InputError(f"is {k}, should be at most {_MOST_CATEGORIES - 1}: every rank is a category", field="top_k")
    ranks = np.asarray(rank, dtype=float)
    category = np.where(np.isinf(ranks), 0, k + 1 - np.floor(np.where(np.isinf(ranks), 1, ranks))).astype(np.int64)
    model, model_at = np.unique(study["model"].values.astype(str), return_inverse=True)
    keys = list(
        zip(
            study["text"].values.tolist(),
            study["context_length"].values.tolist(),
            study["window"].values.tolist(),
            strict=True,
        )
    )
    places = sorted(set(keys))
    lengths = np.array([length for _, length, _ in places], dtype=np.int64)
    if len(set(lengths.tolist())) < 2:
        raise InputError(
            f"is {lengths[0]} everywhere; a slope needs at least two lengths",
            source="rank data",
            field="context_length",
        )
    at = {place: number for number, place in enumerate(places)}
    window_at = np.array([at[key] for key in keys])
    text, text_at = np.unique([name for name, _, _ in places], return_inverse=True)
    cells, cell_at = np.unique(np.stack([window_at, model_at], axis=1), axis=0, return_inverse=True)
    count = np.zeros((len(cells), k + 1), dtype=np.int64)
    np.add.at(count, (np.ravel(cell_at), category), 1)
    return RankData(
        model=model,
        text=text,
        window=np.array([f"{name}, {length}, {label}" for name, length, label in places]),
        window_text=text_at.astype(np.int64),
        window_length=lengths,
        cell_model=cells[:, 1].astype(np.int64),
        cell_window=cells[:, 0].astype(np.int64),
        count=count,
    )


def rank_slope_model(data: RankData, priors: RankPriors | None = None) -> pm.Model:
    """Build the hierarchical model of ranks against context length; docs/mathematics/guesses_ranks_bets.md has it.

    All rank scores are functions of the rank, so that one model, of proportional odds (McCullagh 1980), serves them
    all. A window is a random effect that all models share: it is one place of a text, and easy or hard for all of them.
    A second effect is what a window is to one model beyond that. Tokens of a cell are taken as independent given the
    two; models' agreement on single tokens is left out, so that intervals of differences between models err on the wide
    side.

    Returns
    -------
    pymc.Model
        Dims ``model``, ``text``, ``window``, ``cell``, ``category``; ``slope`` (model) in log-odds per doubling,
        ``intercept`` (model) at the mean log2 length, observed ``count`` (cell, category).

    Examples
    --------
    >>> study = rankings.examples.ranking_study()
    >>> model = models.rank_slope_model(models.rank_data(study, study["reference_rank"], 3))
    >>> model.named_vars_to_dims["slope"], model.named_vars_to_dims["count"]
    (('model',), ('cell', 'category'))
    """
    p = priors or RankPriors()
    x = np.log2(data.window_length) - data.centre
    n_models, n_texts = data.model.size, data.text.size
    coords = {
        "model": data.model,
        "text": data.text,
        "window": data.window,
        "cell": np.arange(len(data.count)),
        "category": np.arange(data.k + 1),
    }
    with pm.Model(coords=coords) as model:
        count = pm.Data("count_data", data.count, dims=("cell", "category"))
        baseline = pm.Dirichlet("baseline", np.full(data.k + 1, p.baseline), dims="category")
        mean_slope = pm.Normal("slope_mean", 0, p.slope)
        slope = mean_slope * pt.ones(n_models)
        intercept = pt.zeros(n_models)
        if n_models > 1:
            spread = pm.HalfNormal("slope_spread", p.slope_spread)
            slope = slope + spread * pm.Normal("slope_unit", 0, 1, dims="model")
            intercept = pm.ZeroSumNormal("model_effect", p.model, dims="model")
        slope = pm.Deterministic("slope", slope, dims="model")
        intercept = pm.Deterministic("intercept", intercept, dims="model")
        window_spread = pm.HalfNormal("window_spread", p.window_spread)
        # centred: a window has tokens enough to place it, and chains mix twice as well
        window = pm.Normal("window_effect", 0, window_spread, dims="window")
        own = window
        if n_texts > 1:
            own = own + pm.ZeroSumNormal("text_effect", p.text, dims="text")[data.window_text]
        eta = (intercept + slope * x[:, None] + own[:, None])[data.cell_window, data.cell_model]
        if n_models > 1:
            cell_spread = pm.HalfNormal("model_window_spread", p.model_window_spread)
            eta = eta + cell_spread * pm.Normal("model_window_unit", 0, 1, dims="cell")
        eta = pm.Deterministic("log_odds", eta, dims="cell")
        pm.CustomDist(
            "count",
            eta,
            baseline,
            count.sum(axis=1),
            logp=_log_probability,
            random=_random,
            observed=count,
            signature="(),(k),()->(k)",
            dtype="int64",
            dims=("cell", "category"),
        )
    return model


def set_counts(model: pm.Model, data: RankData) -> None:
    """Put other counts of the same design into a model of :func:`rank_slope_model`, without compiling it again."""
    model.set_data("count_data", data.count)


def log_category_probability(log_odds: ArrayLike, baseline: ArrayLike) -> NDArray[np.float64]:
    """Log-probability of every category, without cancellation: a product, not a difference of cumulated ones."""
    # p_j = pi_j e^eta / (F_j + S_j e^eta) / (F_{j-1} + S_{j-1} e^eta) with S = 1 - F
    eta, share = np.asarray(log_odds, dtype=float)[..., None], np.asarray(baseline, dtype=float)
    below = np.log(np.cumsum(share, axis=-1)[..., :-1])
    above = np.log(np.cumsum(share[..., ::-1], axis=-1)[..., ::-1][..., 1:])
    between = np.logaddexp(below, above + eta)
    edge = np.zeros((*between.shape[:-1], 1))
    # before the first category everything is above (e^eta), after the last everything is below (1)
    lower = np.concatenate([edge + eta, between], axis=-1)
    upper = np.concatenate([between, edge], axis=-1)
    found: NDArray[np.float64] = np.log(share) + eta - lower - upper
    return found


def _log_probability(value: Any, eta: Any, baseline: Any, n: Any) -> Any:
    """The same, summed over a cell's tokens; the multinomial coefficient is left out, as no parameter changes it."""
    below = baseline.cumsum()[:-1]
    log_below, log_above = pt.log(below), pt.log1p(-below)
    between = log_below + pt.softplus(log_above - log_below + eta[..., None])
    own = (value * pt.log(baseline)).sum(axis=-1) + (n - value[..., 0]) * eta
    return own - ((value[..., :-1] + value[..., 1:]) * between).sum(axis=-1)


def _random(
    log_odds: NDArray[np.float64],
    baseline: NDArray[np.float64],
    n: NDArray[np.int64],
    rng: np.random.Generator,
    size: tuple[int, ...] | None = None,
) -> NDArray[np.int64]:
    probability = np.exp(log_category_probability(log_odds, baseline))
    shape = np.broadcast_shapes(np.shape(log_odds), np.shape(n), () if size is None else tuple(size))
    total = np.broadcast_to(np.asarray(n, dtype=np.int64), shape)
    drawn = rng.multinomial(total, probability / probability.sum(axis=-1, keepdims=True))
    return drawn.astype(np.int64)
