r"""Leave-one-group-out prediction of an item or a participant by PSIS.

For group :math:`g` of rows, :math:`\mathrm{elpd}_g = \ln p(y_g \mid y_{-g})` is estimated from draws of the full
posterior, reweighted by the inverse of the joint likelihood of the group's rows with Pareto-smoothed weights (Vehtari,
Gelman and Gabry 2017; Vehtari and others 2024). Its shape :math:`\hat k` above 0.7 says not to believe it.

Under a hierarchical model a group often has parameters of its own. The likelihood is conditional on them, so that
:math:`\hat k` is large and the estimate too good. Right would be to integrate them out (Merkle, Furr and Rabe-Hesketh
2019) or to fit again without the group; here such groups are counted and named in the warning of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.inference.posterior.arviz_adapter import InferenceData, group, psis_loo

K_BAD = 0.7
"""Pareto k above which the estimate of a group is not to be believed."""

MIN_DRAWS = 25
"""Of all chains: a fifth of the draws is smoothed, by a distribution fitted to at least five of them."""


@dataclass(frozen=True, eq=False, repr=False)
class LooByGroup(Result):
    """Expected log predictive density of groups of rows, each left out in turn; nats.

    Attributes
    ----------
    label, n_rows, elpd_nats, pareto_k : ndarray, shape (group,)
        Groups are sorted, or in the order of the dim.
    p_loo : float
        Effective number of parameters: how much better the groups are predicted when they are seen.
    """

    label: NDArray[np.generic]
    n_rows: NDArray[np.intp]
    elpd_nats: FloatArray
    pareto_k: FloatArray
    p_loo: float

    @property
    def is_bad(self) -> NDArray[np.bool_]:
        """Groups whose estimate is not to be believed, (group,)."""
        bad: NDArray[np.bool_] = ~(self.pareto_k <= K_BAD)
        return bad

    @property
    def total_nats(self) -> float:
        """Sum over the groups."""
        return float(self.elpd_nats.sum())

    @property
    def se_nats(self) -> float:
        """Standard error of the sum over groups that could have been others; NaN with one group."""
        return se_of_sum(self.elpd_nats)

    @property
    def warning(self) -> str:
        """What to doubt; empty if every k is good."""
        bad = self.is_bad
        if not bad.any():
            return ""
        named = ", ".join(str(name) for name in self.label[bad][:5]) + (", ..." if bad.sum() > 5 else "")
        return (
            f"{bad.sum()} of {bad.size} groups have a Pareto k above {K_BAD:g} (largest {np.max(self.pareto_k):.2f}; "
            f"{named}): do not use the sum, which is probably too large. Where groups have parameters of their "
            "own, integrate them out of the likelihood, or fit again without the group."
        )


def loo_by(idata: InferenceData, by: ArrayLike | str, *, variable: str | None = None) -> LooByGroup:
    """Leave out one group of rows at a time.

    Parameters
    ----------
    idata : arviz.InferenceData
        With ``posterior`` and ``log_likelihood`` (see :func:`shannon_game.inference.complete`).
    by : str or array_like, shape (row,)
        A dim of the log-likelihood, each of whose entries is a group; or the group of every row.
    variable : str, optional
        Of the log-likelihood; needed where there is more than one.

    Examples
    --------
    >>> from shannon_game import inference
    >>> from shannon_game.inference.examples import normal_posterior
    >>> inference.loo_by(normal_posterior(), "row").label.tolist()
    [0, 1, 2, 3]
    """
    rows = _log_likelihood(idata, variable)
    dims = [str(dim) for dim in rows.dims if dim not in {"chain", "draw"}]
    source = f"log-likelihood {rows.name!r}"
    if isinstance(by, str):
        if by not in dims:
            raise unknown_choice("dim", by, dims, source=source)
        n_other = int(np.prod([rows.sizes[dim] for dim in dims if dim != by]))
        summed = rows.sum([dim for dim in dims if dim != by])
        label, n_rows = summed[by].to_numpy(), np.full(rows.sizes[by], n_other)
        values = summed.transpose("chain", "draw", by).to_numpy()
    else:
        values = rows.transpose("chain", "draw", ...).to_numpy().reshape(rows.sizes["chain"], rows.sizes["draw"], -1)
        given = np.asarray(by).ravel()
        if given.size != values.shape[2]:
            raise InputError(f"are {given.size}, the model has {values.shape[2]} rows", source=source, field="by")
        label, code = np.unique(given, return_inverse=True)
        order = np.argsort(code, kind="stable")
        n_rows = np.bincount(code)
        start = np.concatenate([[0], np.cumsum(n_rows)[:-1]])
        values = np.add.reduceat(values[:, :, order], start, axis=2)
    if not np.isfinite(values).all():
        raise InputError("is not finite at every draw", source=source)
    n_draws = values.shape[0] * values.shape[1]
    if n_draws < MIN_DRAWS:
        raise InputError(f"has {n_draws} draws, Pareto smoothing needs {MIN_DRAWS} or more", source=source)
    elpd, pareto_k, p_loo = psis_loo(values, group(idata, "posterior"))
    return LooByGroup(label=label, n_rows=n_rows.astype(np.intp), elpd_nats=elpd, pareto_k=pareto_k, p_loo=p_loo)


def _log_likelihood(idata: InferenceData, variable: str | None) -> xr.DataArray:
    found = group(idata, "log_likelihood")
    names = [str(name) for name in found.data_vars]
    if variable is None and len(names) > 1:
        raise InputError(f"has several variables; name one of {', '.join(names)}", source="log-likelihood")
    chosen = names[0] if variable is None else variable
    if chosen not in names:
        raise unknown_choice("variable", chosen, names, source="log-likelihood")
    return found[chosen]


def comparison_table(loos: Mapping[str, LooByGroup]) -> pd.DataFrame:
    """Set models of the same groups side by side, the best first.

    Returns
    -------
    pandas.DataFrame
        ``difference_nats`` is to the best model (0 or negative), ``difference_se_nats`` its standard error over groups,
        paired; ``warning`` is of this model or of the best one, as either spoils the difference.

    Examples
    --------
    >>> from shannon_game import inference
    >>> from shannon_game.inference.examples import normal_posterior
    >>> inference.comparison_table({"normal": inference.loo_by(normal_posterior(), "row")})["n_groups"].tolist()
    [4]
    """
    if not loos:
        raise InputError("is empty", field="models")
    first_name, first = next(iter(loos.items()))
    for name, loo in loos.items():
        if not (np.array_equal(loo.label, first.label) and np.array_equal(loo.n_rows, first.n_rows)):
            raise InputError(f"of model {name!r} are not those of {first_name!r}", field="groups")
    best_name = max(loos, key=lambda name: loos[name].total_nats)
    best = loos[best_name]
    rows = []
    for name, loo in sorted(loos.items(), key=lambda pair: -pair[1].total_nats):
        difference = loo.elpd_nats - best.elpd_nats
        said = [f"{who}: {found.warning}" for who, found in {name: loo, best_name: best}.items() if found.warning]
        rows.append(
            {
                "model": name,
                "elpd_nats": loo.total_nats,
                "se_nats": loo.se_nats,
                "difference_nats": float(difference.sum()),
                "difference_se_nats": se_of_sum(difference),
                "p_loo": loo.p_loo,
                "n_groups": loo.label.size,
                "n_bad_k": int(loo.is_bad.sum()),
                "pareto_k_max": float(np.max(loo.pareto_k)),
                "warning": " ".join(said),
            }
        )
    return pd.DataFrame(rows)


def se_of_sum(values: FloatArray) -> float:
    """Standard error of a sum of values that were sampled; NaN for one value."""
    return float(np.sqrt(values.size * values.var(ddof=1))) if values.size > 1 else float("nan")
