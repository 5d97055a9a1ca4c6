r"""Linear mixed-effects regression with crossed random effects of readers and words, by restricted likelihood (REML).

.. math::

    y = X \beta + Z_r b + Z_w c + e, \qquad b \sim N(0, \sigma^2 \Lambda \Lambda'), \quad c \sim N(0, \sigma^2 \tau^2),
    \quad e \sim N(0, \sigma^2)

Every reader has an intercept and, where it is asked for, a slope, which may correlate; every word has an intercept
(lme4's ``y ~ x + (1 + x | reader) + (1 | word)``). Words are eliminated first, which leaves a matrix of the readers'
size at each step of the search (Bates, Maechler, Bolker and Walker 2015). No library does it here: statsmodels' MixedLM
takes crossed effects as variance components of one group (20 readers of 100 words: 50 s without convergence, here
0.2 s), bambi samples, and a corpus has a million times, which take a minute here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.documents.clusters import answer_numbers, codes, t_half_width
from shannon_game.estimators.documents.regression import INTERCEPT, Coefficients, design_matrix
from shannon_game.estimators.errors import InputError

# below this share of the residual's standard deviation a random effect is none
_NONE = 1e-3
# where all effects count as fixed
_ALL = 1e3
# share of the mean square, below which a residual is rounding, and of the variance without effects, below which the
# search does not find the variances
_EXACT, _SEARCHED = 1e-12, 4e-6
# numbers of values per word, up to which each keeps a matrix of the readers' size
_COUNTS = 256


@dataclass(frozen=True, repr=False)
class MixedRegression(Coefficients):
    """Fixed effects of a mixed-effects regression, and the standard deviations of its random effects.

    Student's interval has as many degrees of freedom as the smaller number of readers and words, minus 1.

    Attributes
    ----------
    sd_reader, sd_slope, sd_word, sd_residual : float
        `sd_reader` is at the mean of all columns; NaN for what the data do not tell.
    criterion : float
        REML criterion: -2 times the largest restricted log-likelihood.
    singular : bool
        Whether a standard deviation of random effects is 0, or their correlation 1 or -1.
    """

    sd_reader: float
    sd_slope: float
    sd_word: float
    sd_residual: float
    criterion: float
    singular: bool
    n: int
    n_readers: int
    n_words: int


@dataclass(frozen=True, eq=False)
class _Products:
    """Cross-products of readers' columns, fixed columns and values, all that the likelihood needs."""

    gram: FloatArray
    by_word: FloatArray
    n_word: FloatArray
    n: int
    n_readers: int
    n_effects: int

    def without_words(self) -> Callable[[float], FloatArray]:
        """Cross-products once words' intercepts of a given standard deviation are integrated out."""
        counts, which = np.unique(self.n_word, return_inverse=True)
        if not 0 < counts.size <= min(_COUNTS, self.n_word.size / 4):
            return lambda tau: self.gram - (self.by_word * (tau**2 / (1 + tau**2 * self.n_word))) @ self.by_word.T
        # words with as many values share one
        parts = [self.by_word[:, which == at] for at in range(counts.size)]
        shared = np.stack([part @ part.T for part in parts])
        return lambda tau: self.gram - np.tensordot(tau**2 / (1 + tau**2 * counts), shared, axes=1)

    def minus(self, part: _Products) -> _Products:
        """Cross-products of the values that are not in a part."""
        gram, by_word, n_word = self.gram - part.gram, self.by_word - part.by_word, self.n_word - part.n_word
        return replace(self, gram=gram, by_word=by_word, n_word=n_word, n=self.n - part.n)


@dataclass(frozen=True, eq=False)
class _Solved:
    criterion: float
    beta: FloatArray
    covariance: FloatArray
    sigma2: float
    effects: FloatArray
    """Of readers, shape (effect, reader)."""
    spread: FloatArray
    """Their posterior covariances, shape (reader, effect, effect)."""


def mixed_regression(
    values: ArrayLike,
    columns: Mapping[str, ArrayLike],
    reader: ArrayLike,
    word: ArrayLike,
    *,
    slope: str | None = None,
    probability: float = 0.9,
) -> MixedRegression:
    """Regress times on columns, with intercepts of readers and words and every reader's own slope of one column.

    Words that nobody shares have no intercept of their own, as the residual is one.

    Examples
    --------
    >>> x = [0.0, 1.0, 2.0, 3.0] * 3
    >>> y = [1.0, 3.1, 4.9, 7.0, 2.0, 4.0, 6.1, 8.0, 0.0, 2.2, 4.0, 6.0]
    >>> fit = documents.mixed_regression(y, {"x": x}, ["a"] * 4 + ["b"] * 4 + ["c"] * 4, [0, 1, 2, 3] * 3)
    >>> fit.names, round(fit.of("x")["coefficient"], 3)
    (('intercept', 'x'), 1.99)
    """
    design = _Design.of(values, columns, reader, word, slope)
    theta, products = design.fit()
    tau, factor = design.unpacked(theta)
    found = _solve(products, products.without_words()(tau), tau, factor)
    back = np.eye(design.x.shape[1])
    back[0, 1:] = -design.mean / design.scale
    back[1:, 1:] = np.diag(1 / design.scale)
    coefficient = back @ found.beta
    se = np.sqrt(np.diag(back @ found.covariance @ back.T))
    n_readers, n_words = int(design.reader.max()) + 1, int(design.word.max()) + 1
    half = np.array([t_half_width(float(one), min(n_readers, n_words) - 1, probability) for one in se])
    spread, sigma = np.sqrt((factor**2).sum(axis=1)), float(np.sqrt(found.sigma2))
    at = None if slope is None else list(columns).index(slope)
    return MixedRegression(
        names=(INTERCEPT, *columns),
        coefficient=coefficient,
        se=se,
        lower=coefficient - half,
        upper=coefficient + half,
        sd_reader=float(spread[0]) * sigma,
        sd_slope=float("nan") if at is None else float(spread[1] / design.scale[at]) * sigma,
        sd_word=tau * sigma if design.has_words else float("nan"),
        sd_residual=sigma,
        # of the columns as given, not of the standardised ones
        criterion=found.criterion + 2 * float(np.log(design.scale).sum()),
        singular=bool(min(np.diag(factor).min(), tau if design.has_words else np.inf) < _NONE),
        n=design.y.size,
        n_readers=n_readers,
        n_words=n_words,
    )


def held_out_loglik(
    values: ArrayLike,
    columns: Mapping[str, ArrayLike],
    fold: ArrayLike,
    reader: ArrayLike | None = None,
    word: ArrayLike | None = None,
    *,
    slope: str | None = None,
) -> FloatArray:
    """Log-density of every value under the regression of all other folds, shape (value,), in nats.

    Without readers it is least squares. With them it is :func:`mixed_regression`: readers keep the effects that the
    other folds gave them, words are new, and the ratios of the variances are those of the whole.
    """
    x = np.atleast_1d(np.asarray(values))
    if reader is None or word is None:
        design = _Design.of(values, columns, np.zeros(x.size), np.zeros(x.size), None)
        return _each_fold(codes(fold, "fold", x.size), design, _least_squares)
    design = _Design.of(values, columns, reader, word, slope)
    theta, whole = design.fit()
    return _each_fold(codes(fold, "fold", x.size), design, lambda its, out: _mixed(its, out, theta, whole))


@dataclass(frozen=True, eq=False)
class _Design:
    """Values, standardised columns after the intercept, and the numbers of readers and words."""

    y: FloatArray
    x: FloatArray
    mean: FloatArray
    scale: FloatArray
    reader: NDArray[np.int64]
    word: NDArray[np.int64]
    z: FloatArray
    """Columns with an effect of each reader's own, shape (value, effect)."""
    has_words: bool

    @classmethod
    def of(
        cls, values: ArrayLike, columns: Mapping[str, ArrayLike], reader: ArrayLike, word: ArrayLike, slope: str | None
    ) -> _Design:
        y = answer_numbers(values, "values")
        own = design_matrix(y, columns)[0][:, 1:]
        if slope is not None and slope not in columns:
            raise InputError(f"is {slope!r}, should be one of the columns {', '.join(columns)}", field="slope")
        mean, scale = own.mean(axis=0), own.std(axis=0)
        x = np.column_stack([np.ones(y.size), (own - mean) / scale])
        who, which = codes(reader, "reader", y.size), codes(word, "word", y.size)
        effects = [0] if slope is None else [0, 1 + list(columns).index(slope)]
        has_words = int(which.max()) + 1 < y.size
        return cls(y, x, mean, scale, who, which, x[:, effects], has_words)

    def products(self, kept: NDArray[np.bool_]) -> _Products:
        """Of some of the values; readers and words keep their numbers."""
        rows, n_readers, n_effects = np.flatnonzero(kept), int(self.reader.max()) + 1, self.z.shape[1]
        at = np.arange(rows.size)
        shape = (rows.size, n_readers)
        readers = sp.hstack(
            [sp.csr_matrix((self.z[rows, k], (at, self.reader[rows])), shape=shape) for k in range(n_effects)]
        )
        fixed = np.column_stack([self.x[rows], self.y[rows]])
        word, n_words = self.word[rows], int(self.word.max()) + 1
        if not self.has_words:
            word, at, n_words = word[:0], at[:0], 0
        words = sp.csr_matrix((np.ones(at.size), (at, word)), shape=(rows.size, n_words))
        across = np.asarray(readers.T @ fixed)
        return _Products(
            gram=np.block([[(readers.T @ readers).toarray(), across], [across.T, fixed.T @ fixed]]),
            by_word=np.vstack([(readers.T @ words).toarray(), np.asarray(words.T @ fixed).T]),
            n_word=np.bincount(word, minlength=n_words).astype(float),
            n=rows.size,
            n_readers=n_readers,
            n_effects=n_effects,
        )

    def unpacked(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Words' standard deviation and readers' Cholesky factor, both in units of the residual's."""
        factor = np.zeros((self.z.shape[1],) * 2)
        factor[np.tril_indices(len(factor))] = theta[1:]
        return (float(theta[0]) if self.has_words else 0.0), factor

    def fit(self) -> tuple[FloatArray, _Products]:
        """Standard deviations with the largest restricted likelihood, and the cross-products."""
        if (n_readers := int(self.reader.max()) + 1) < 2:
            raise InputError(f"has {n_readers} reader; two are needed for effects of readers", field="reader")
        products = self.products(np.ones(self.y.size, dtype=bool))
        left = lru_cache(maxsize=2)(products.without_words())

        def criterion(theta: FloatArray) -> float:
            tau, factor = self.unpacked(unit * theta)
            return _solve(products, left(tau), tau, factor).criterion

        at = np.array([1.0, 1.0] if self.z.shape[1] == 1 else [1.0, 1.0, 0.0, 1.0])
        ends = map(self.unpacked, (0 * at, _ALL * at))
        without, fixed = (_solve(products, left(tau), tau, factor).sigma2 for tau, factor in ends)
        # the search takes steps of about 1, and ends early where it needs many
        _refuse_exact(without, _EXACT / _SEARCHED * fixed)
        unit = max(1.0, float(np.sqrt(without / fixed)))
        start = np.array([0.3, 0.5] if self.z.shape[1] == 1 else [0.3, 0.5, 0.0, 0.1])
        lowest = np.array([0.0, 0.0] if self.z.shape[1] == 1 else [0.0, 0.0, -np.inf, 0.0])
        found = minimize(
            criterion,
            start,
            method="L-BFGS-B",
            bounds=list(zip(lowest, [np.inf] * lowest.size, strict=True)),
            options={"eps": 1e-6, "ftol": 1e-13, "maxiter": 200},
        )
        return unit * np.asarray(found.x, dtype=float), products


def _solve(products: _Products, left: FloatArray, tau: float, factor: FloatArray) -> _Solved:
    """Coefficients and REML criterion, given the standard deviations and what words leave."""
    k, n_readers = products.n_effects * products.n_readers, products.n_readers
    root = np.kron(factor, np.eye(n_readers))
    chol = cholesky(np.eye(k) + root.T @ left[:k, :k] @ root, lower=True)
    across = solve_triangular(chol, root.T @ left[:k, k:], lower=True)
    normal = left[k:, k:] - across.T @ across
    fixed = cholesky(normal[:-1, :-1], lower=True)
    beta = cho_solve((fixed, True), normal[:-1, -1])
    freedom = products.n - beta.size
    sigma2 = float(normal[-1, -1] - normal[:-1, -1] @ beta) / freedom
    _refuse_exact(products.gram[-1, -1] / products.n, sigma2)
    logdet = np.log1p(tau**2 * products.n_word).sum() + 2 * np.log(np.diag(chol)).sum()
    logdet += 2 * np.log(np.diag(fixed)).sum()
    score = root.T @ (left[:k, -1] - left[:k, k:-1] @ beta)
    effects = root @ cho_solve((chol, True), score)
    half = solve_triangular(chol, root.T, lower=True).reshape(k, products.n_effects, n_readers)
    return _Solved(
        criterion=float(logdet + freedom * (1 + np.log(2 * np.pi * sigma2))),
        beta=beta,
        covariance=sigma2 * cho_solve((fixed, True), np.eye(beta.size)),
        sigma2=sigma2,
        effects=effects.reshape(products.n_effects, n_readers),
        spread=sigma2 * np.einsum("ker,kfr->ref", half, half),
    )


def _refuse_exact(mean_square: float, variance: float) -> None:
    """Refuse values without a residual, from which every error and likelihood follows."""
    if variance <= _EXACT * mean_square:
        problem = "are a sum of the columns and effects, all but exactly, which leaves no residual"
        raise InputError(f"{problem}; give times as they were measured", field="values")


def _each_fold(
    fold: NDArray[np.int64],
    design: _Design,
    predicted: Callable[[_Design, NDArray[np.bool_]], tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """Normal log-densities, each fold under what the others predict: a mean and a variance of its values."""
    if fold.max() < 1:
        raise InputError("has one fold; two are needed to hold one out", field="fold")
    found = np.empty(design.y.size)
    for one in range(int(fold.max()) + 1):
        out = fold == one
        mean, variance = predicted(design, out)
        _refuse_exact(float((design.y**2).mean()), float(variance.min()))
        found[out] = -0.5 * (np.log(2 * np.pi * variance) + (design.y[out] - mean) ** 2 / variance)
    return found


def _least_squares(design: _Design, out: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    train = ~out
    beta, _, rank, _ = np.linalg.lstsq(design.x[train], design.y[train], rcond=None)
    freedom = int(train.sum()) - int(rank)
    if freedom < 1:
        raise InputError(f"leaves {int(train.sum())} values for {int(rank)} coefficients", field="fold")
    residual = design.y - design.x @ beta
    return design.x[out] @ beta, np.full(int(out.sum()), (residual[train] ** 2).sum() / freedom)


def _mixed(
    design: _Design, out: NDArray[np.bool_], theta: FloatArray, whole: _Products
) -> tuple[FloatArray, FloatArray]:
    tau, factor = design.unpacked(theta)
    products = whole.minus(design.products(out))
    found = _solve(products, products.without_words()(tau), tau, factor)
    reader, z = design.reader[out], design.z[out]
    mean = design.x[out] @ found.beta + (z * found.effects.T[reader]).sum(axis=1)
    of_readers = np.einsum("ne,nef,nf->n", z, found.spread[reader], z)
    return mean, found.sigma2 * (1 + tau**2) + of_readers
