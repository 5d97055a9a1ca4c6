r"""Log-ratios to the target from comparisons of any two tokens of an item: generalised least squares on a graph.

A report that compares the candidate *a* with the reference *b* states :math:`d = \ln h(a)/h(b)`. The tokens of an item
are the nodes of a graph, its reports the edges. With :math:`\ell_x = \ln h(x)/h(y)`, and :math:`\ell_y = 0`,

.. math:: \hat\ell = \arg\min \sum_e w_e (\ell_{a_e} - \ell_{b_e} - d_e)^2 = L^{-1} B^T W d, \qquad
          \mathrm{cov}(\hat\ell) = \sigma^2 L^{-1}, \quad L = B^T W B

where B has a row an edge and a column a token (without the target), and L is the weighted Laplacian of the graph,
grounded at the target. Where every token is compared with the target alone, this is the mean of its log-ratios.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.comparison.reports import log_ratio_from_report
from estimators.comparison.rounding import RoundingScheme, round_reports, rounding_scheme
from estimators.comparison.study import COMPARISON
from estimators.comparison.study_sources import TARGET_POSITION
from estimators.comparison.study_tokens import candidate_tokens, compared_tokens
from estimators.display import Result
from estimators.errors import InputError
from estimators.layout import response_positions

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["TokenLogRatios", "combine_comparisons", "token_log_ratios"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

_RESTS_ON = 1e-9  # a coefficient of least squares below it is none


@dataclass(frozen=True, eq=False, repr=False)
class TokenLogRatios(Result):
    """Log-ratio of every compared token to its item's target.

    Attributes
    ----------
    item, token : ndarray of int, shape (token,)
        Label of the item, and code of the token within it (for a study, its first position along ``candidate``);
        sorted by both. The target is not listed.
    log_ratio : ndarray, shape (token,)
        ln h(x|c) - ln h(y|c), nats; NaN where no chain of comparisons leads to the target.
    se : ndarray, shape (token,)
        Its standard error, nats; NaN where the variance is not known.
    n_comparisons : ndarray of int, shape (token,)
        Comparisons that the token is in.
    connected : ndarray of bool, shape (token,)
        Whether a chain of comparisons leads to the target.
    censored : ndarray of bool, shape (token,)
        Whether the log-ratio rests on a report at an end of the scale, which bounds it and does not say it.
    variance : float
        sigma squared, the variance of a comparison of weight one, square nats: given, or of the residuals; NaN where
        no item has more comparisons than tokens.
    n_unconnected, n_censored, n_equal : int
        Tokens without a chain to the target, tokens that rest on an end of the scale, and comparisons of a token with
        itself, which say nothing and are left out.
    covariance : tuple of ndarray
        Covariance of every item's connected tokens, square nats, in the order of the items.

    Examples
    --------
    >>> from estimators import comparison
    >>> comparison.combine_comparisons([0, 0, 0], candidate=[1, 2, 2], reference=[-1, 1, -1], log_ratio=[-2, -3, -5.3])
    TokenLogRatios(2 tokens of 1 items, 0 without a chain to the target, 0 on an end of the scale)
    """

    made_by = "combine_comparisons(item, candidate, reference, log_ratio) or token_log_ratios(study)"

    item: IntArray
    token: IntArray
    log_ratio: FloatArray
    se: FloatArray
    n_comparisons: IntArray
    connected: BoolArray
    censored: BoolArray
    variance: float
    n_unconnected: int
    n_censored: int
    n_equal: int
    covariance: tuple[FloatArray, ...] = field(repr=False)

    def headline(self) -> str:
        """How many tokens there are, and what is wrong with some."""
        return (
            f"{self.token.size} tokens of {np.unique(self.item).size} items, {self.n_unconnected} without a chain to "
            f"the target, {self.n_censored} on an end of the scale"
        )


def combine_comparisons(
    item: ArrayLike,
    candidate: ArrayLike,
    reference: ArrayLike,
    log_ratio: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    variance: float | None = None,
    censored: ArrayLike | None = None,
    drop_ends: bool = False,
) -> TokenLogRatios:
    """Combine the comparisons of each item into log-ratios to its target.

    Parameters
    ----------
    item, candidate, reference : array_like of int, shape (comparison,)
        The item, and codes of the two tokens compared; -1 is the target.
    log_ratio : array_like of float, shape (comparison,)
        ln h(candidate) - ln h(reference), nats.
    weight : array_like of float, shape (comparison,), optional
        Inverse of the comparison's variance, up to a common factor; equal by default.
    variance : float, optional
        Variance of a comparison of weight one, square nats; by default that of the residuals of all items.
    censored : array_like of bool, shape (comparison,), optional
        Which comparisons lie at an end of the scale; none by default.
    drop_ends : bool
        Whether a comparison at an end of the scale is left out where others, inside the scale, connect both of its
        tokens with the target: it says that a ratio is beyond the end, and would draw it towards the end.

    Returns
    -------
    TokenLogRatios

    Raises
    ------
    InputError
        If shapes disagree, a code is below -1, or a number is not finite (weights and the variance: not positive).

    Examples
    --------
    Token 2 was never compared with the target; 1 : 50 and again 1 : 50 make 1 : 2,500:

    >>> import numpy as np
    >>> from estimators import comparison
    >>> steps = -np.log([50, 50])
    >>> found = comparison.combine_comparisons([0, 0], candidate=[1, 2], reference=[-1, 1], log_ratio=steps)
    >>> np.exp(-found.log_ratio).round()
    array([  50., 2500.])
    """
    edges = _edges(item, candidate, reference, log_ratio, weight=weight, censored=censored, variance=variance)
    if drop_ends:
        edges = _without_ends(edges)
    labels, start = np.unique(edges.item, return_index=True)
    parts = [_solve(edges, slice(a, b)) for a, b in zip(start, [*start[1:], edges.item.size], strict=True)]
    free = sum(part.n_free for part in parts)
    residual = sum(part.residual for part in parts)
    sigma2 = variance if variance is not None else residual / free if free > 0 else float("nan")
    inverse = [part.inverse for part in parts]
    connected = np.concatenate([part.connected for part in parts])
    se = np.full(connected.size, np.nan)
    se[connected] = np.sqrt(sigma2 * np.concatenate([np.diag(one) for one in inverse]))
    on_end = np.concatenate([part.censored for part in parts])
    return TokenLogRatios(
        item=np.repeat(labels, [part.token.size for part in parts]),
        token=np.concatenate([part.token for part in parts]),
        log_ratio=np.concatenate([part.log_ratio for part in parts]),
        se=se,
        n_comparisons=np.concatenate([part.n_comparisons for part in parts]),
        connected=connected,
        censored=on_end,
        variance=float(sigma2),
        n_unconnected=int((~connected).sum()),
        n_censored=int(on_end.sum()),
        n_equal=edges.n_equal,
        covariance=tuple(sigma2 * one for one in inverse),
    )


def token_log_ratios(
    study: xr.Dataset,
    *,
    rounding: RoundingScheme | str = "none",
    ends: tuple[float, float] | None = None,
    variance: float | None = None,
    drop_ends: bool = False,
) -> TokenLogRatios:
    """Combine the reports of a study into one log-ratio a token, whatever each was compared with.

    Several reports on a token are averaged as log-ratios: the mean of their noise is noise of the same sign both ways,
    where the mean of the ratios themselves is too high by the noise's variance over two.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    rounding : RoundingScheme or str
        Applied to the reports.
    ends : tuple of float, optional
        Lowest and highest report of the scale; by default those of the rounding, none where nothing is rounded.
    variance : float, optional
        See :func:`combine_comparisons`.
    drop_ends : bool
        See :func:`combine_comparisons`.

    Returns
    -------
    TokenLogRatios
        Its tokens are first positions along ``candidate``, as in
        :func:`~estimators.comparison.study_tokens.candidate_tokens`.

    Raises
    ------
    InputError
        If nobody answered, or every answer compares a token with itself.

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import comparison_study
    >>> found = comparison.token_log_ratios(comparison_study(), rounding="interface")
    >>> len(found.token), found.n_censored, found.n_equal
    (16, 10, 11)
    """
    source = COMPARISON.source(study)
    scheme = rounding_scheme(rounding)
    if not study.sizes["response"]:
        raise InputError("has no entry; nobody compared tokens", source=source, field="response")
    if ends is None and scheme.values:
        ends = scheme.values[0], scheme.values[-1]
    position, code = response_positions(study), candidate_tokens(study)
    report = round_reports(study["report"].values, scheme)
    candidate, reference = compared_tokens(study, code)
    return combine_comparisons(
        study["item"].values[position],
        candidate,
        reference,
        log_ratio_from_report(report),
        variance=variance,
        drop_ends=drop_ends,
        censored=None if ends is None else (report <= ends[0]) | (report >= ends[1]),
    )


@dataclass(frozen=True, eq=False)
class _Edges:
    item: IntArray
    candidate: IntArray
    reference: IntArray
    log_ratio: FloatArray
    weight: FloatArray
    censored: BoolArray
    n_equal: int


@dataclass(frozen=True, eq=False)
class _Item:
    token: IntArray
    log_ratio: FloatArray
    n_comparisons: IntArray
    connected: BoolArray
    censored: BoolArray
    inverse: FloatArray  # of the grounded Laplacian, connected tokens
    residual: float  # weighted sum of squares
    n_free: int  # comparisons beyond the tokens they settle


def _edges(
    item: ArrayLike,
    candidate: ArrayLike,
    reference: ArrayLike,
    log_ratio: ArrayLike,
    *,
    weight: ArrayLike | None,
    censored: ArrayLike | None,
    variance: float | None,
) -> _Edges:
    """Check the comparisons, leave out those of a token with itself, and sort them by item."""
    d = np.asarray(log_ratio, dtype=float)
    w = np.ones(d.shape) if weight is None else np.asarray(weight, dtype=float)
    ends = np.zeros(d.shape, dtype=bool) if censored is None else np.asarray(censored, dtype=bool)
    codes = {"item": np.asarray(item), "candidate": np.asarray(candidate), "reference": np.asarray(reference)}
    for name, values in {**codes, "weight": w, "censored": ends}.items():
        if d.ndim != 1 or values.shape != d.shape:
            raise InputError(f"has shape {values.shape}, log_ratio {d.shape}; both should be (comparison,)", field=name)
    for name in ("candidate", "reference"):
        if codes[name].dtype.kind not in "iu" or (codes[name] < TARGET_POSITION).any():
            raise InputError("should be integers of at least 0, or -1 for the target", field=name)
    if not np.isfinite(d).all():
        raise InputError(f"is {d[~np.isfinite(d)][0]}; should be finite", field="log_ratio")
    if not (np.isfinite(w) & (w > 0)).all():
        raise InputError("should be positive and finite", field="weight")
    if variance is not None and not (np.isfinite(variance) and variance > 0):
        raise InputError(f"is {variance}, should be positive and finite", field="variance")
    two = codes["candidate"] != codes["reference"]
    if not two.any():
        raise InputError("no comparison is of two tokens", field="candidate, reference")
    order = np.flatnonzero(two)[np.argsort(codes["item"][two], kind="stable")]
    return _Edges(
        item=codes["item"][order],
        candidate=codes["candidate"][order].astype(np.intp),
        reference=codes["reference"][order].astype(np.intp),
        log_ratio=d[order],
        weight=w[order],
        censored=ends[order],
        n_equal=int((~two).sum()),
    )


def _without_ends(edges: _Edges) -> _Edges:
    """Leave out comparisons at an end of the scale between tokens that others connect with the target."""
    kept = np.ones(edges.item.size, dtype=bool)
    for label in np.unique(edges.item[edges.censored]):
        here = edges.item == label
        codes = np.stack([edges.candidate[here], edges.reference[here]])
        nodes, ends = np.unique(np.append(TARGET_POSITION, codes), return_inverse=True)
        ends, censored = ends[1:].reshape(codes.shape), edges.censored[here]
        reached = _reached(ends[:, ~censored], nodes.size)
        kept[here] = ~(censored & reached[ends].all(axis=0))
    return _Edges(
        item=edges.item[kept],
        candidate=edges.candidate[kept],
        reference=edges.reference[kept],
        log_ratio=edges.log_ratio[kept],
        weight=edges.weight[kept],
        censored=edges.censored[kept],
        n_equal=edges.n_equal,
    )


def _solve(edges: _Edges, part: slice) -> _Item:
    """Weighted least squares of one item, grounded at the target."""
    codes = np.stack([edges.candidate[part], edges.reference[part]])
    nodes, ends = np.unique(np.append(TARGET_POSITION, codes), return_inverse=True)
    ends = ends[1:].reshape(codes.shape)
    reached = _reached(ends, nodes.size)
    used = reached[ends[0]]
    rows = np.arange(int(used.sum()))
    design = np.zeros((rows.size, nodes.size))
    design[rows, ends[0, used]], design[rows, ends[1, used]] = 1.0, -1.0
    design = design[:, reached][:, 1:]
    w, d = edges.weight[part][used], edges.log_ratio[part][used]
    inverse = np.linalg.inv((design.T * w) @ design)
    coefficient = inverse @ (design.T * w)
    found = coefficient @ d
    n_comparisons = np.bincount(ends.ravel(), minlength=nodes.size)[1:]
    log_ratio, censored = np.full(nodes.size - 1, np.nan), np.zeros(nodes.size - 1, dtype=bool)
    log_ratio[reached[1:]] = found
    censored[reached[1:]] = (np.abs(coefficient[:, edges.censored[part][used]]) > _RESTS_ON).any(axis=1)
    return _Item(
        token=nodes[1:],
        log_ratio=log_ratio,
        n_comparisons=n_comparisons,
        connected=reached[1:],
        censored=censored,
        inverse=inverse,
        residual=float(np.sum(w * (d - design @ found) ** 2)),
        n_free=rows.size - found.size,
    )


def _reached(ends: IntArray, n_nodes: int) -> BoolArray:
    """Which nodes a chain of edges (2, edge) connects with node 0."""
    reached = np.zeros(n_nodes, dtype=bool)
    reached[0] = True
    while True:
        beside = reached[ends].any(axis=0)
        more = reached.copy()
        more[ends[:, beside]] = True
        if (more == reached).all():
            return reached
        reached = more
