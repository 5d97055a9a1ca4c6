"""What two samples of words from an unknown vocabulary say about the two distributions behind them.

Two samples of 20 answers from one Zipf distribution over 2,000 words have a TVD of 0.8, and no correction of the raw
number knows which words only one distribution has. What can be known comes from the words that both samples have, and
from how answers repeat: a bivariate compound random measure in the sense of Griffin and Leisen (2017).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.special import expit, gamma, gammainc

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze.distances import align
from shannon_game.estimators.cloze.distributions import WordCounts, relative_frequencies
from shannon_game.estimators.errors import InputError
from shannon_game.models.outside import OutsideLikelihood
from shannon_game.models.priors import check_priors

Ints = NDArray[np.int64]

PARAMETERS = (
    "log_mass_shared",
    "log_mass_first",
    "log_mass_second",
    "logit_d_shared",
    "logit_d_exclusive",
    "log_sigma",
)
"""Parameters of each context, in the order of the dimension ``parameter``."""

NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(11)
"""Nodes of the Gauss-Hermite quadrature over x, the log-ratio of a shared word's two weights in units of sigma."""

NODE_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
"""Logarithms of their weights, which sum to 1."""

WORD_NODES, _WORD_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
"""The same for words that were seen, where the nodes go to each word's counts; right to 2e-3 up to a sigma of 1.5."""

WORD_LOG_WEIGHTS = np.log(_WORD_WEIGHTS / _WORD_WEIGHTS.sum()) + WORD_NODES**2 / 2
"""Logarithms of their weights, over the density at them."""

_MOST_POINTS = 20_000  # of a process that a simulation draws one by one
LARGEST_LOG = 300.0  # of a ratio of weights: beyond it one side has all answers, and floats overflow
LEAST_DISCOUNT = 1e-9  # and 1 minus it the largest


@dataclass(frozen=True)
class WordPairPriors:
    """Weak priors of :func:`word_pair_model`.

    Attributes
    ----------
    mean, sd : mapping of str to float
        By parameter (:data:`PARAMETERS`), on the scale of its name: normals for the population means, or for the
        parameters of each context where contexts are not pooled.
    population_df : float
        Degrees of freedom of the scaled inverse chi-squared prior of the variances over contexts. It keeps them
        away from zero: contexts do differ.
    population_scale : float
        Its scale, as a share of the sd above.
    equal_alpha, equal_beta : float
        Of the beta distribution of the share of contexts whose distributions are equal.
    unseen : float
        Standard deviation of ln of how many times as different the words are that neither sample has, compared with
        what the model makes of those that were seen.
    """

    mean: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType(dict(zip(PARAMETERS, (1.0, -0.5, -0.5, -0.5, 0.0, -0.7), strict=True)))
    )
    sd: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType(dict(zip(PARAMETERS, (1.5, 1.5, 1.5, 1.0, 1.0, 0.8), strict=True)))
    )
    population_df: float = 3.0
    population_scale: float = 0.55
    equal_alpha: float = 0.2
    equal_beta: float = 1.0
    unseen: float = 0.4

    def __post_init__(self) -> None:
        for name in ("mean", "sd"):
            values = getattr(self, name)
            if set(values) != set(PARAMETERS):
                raise InputError(f"names {sorted(values)}, should name {sorted(PARAMETERS)}", field=name)
        check_priors(self, "word pair priors")
        check_priors(SimpleNamespace(**self.sd), "sd of word pair priors")

    def vectors(self) -> tuple[FloatArray, FloatArray]:
        """Means and sds in the order of :data:`PARAMETERS`."""
        mean, sd = (np.array([values[name] for name in PARAMETERS], float) for values in (self.mean, self.sd))
        return mean, sd


@dataclass(frozen=True, eq=False)
class WordPairData:
    """Rows are the different pairs of counts in a context: words with the same pair have the same likelihood."""

    context: Ints  # (row,): position of the context, not decreasing
    a: FloatArray  # answers with the word in the first and second sample; not both 0
    b: FloatArray
    words: Ints  # how many words have this pair
    n_contexts: int
    n_a: FloatArray  # (context,): answers, all 1 or more
    n_b: FloatArray


def word_pair_data(first: WordCounts, second: WordCounts) -> WordPairData:
    """Count the words of both samples.

    Parameters
    ----------
    first, second : WordCounts
        Answers of the same contexts, in one coding of words: people's and a model's, or two halves of people's.

    Examples
    --------
    >>> people, model = cloze.examples.two_samples()
    >>> data = models.word_pair_data(people, model)
    >>> data.a.tolist(), data.b.tolist()
    ([0.0, 2.0, 3.0, 5.0], [4.0, 0.0, 0.0, 6.0])
    """
    both = align(relative_frequencies(first), relative_frequencies(second))
    totals = [first.totals, second.totals]
    for name, total in zip(("first", "second"), totals, strict=True):
        if (total == 0).any():
            raise InputError(f"has no answer in context {int(np.argmin(total))}; leave the context out", field=name)
    a, b = (np.rint(p * total[both.context]) for p, total in zip((both.p, both.q), totals, strict=True))
    cases, words = np.unique(
        np.stack([both.context, a.astype(np.int64), b.astype(np.int64)]), axis=1, return_counts=True
    )
    return WordPairData(
        cases[0],
        cases[1].astype(float),
        cases[2].astype(float),
        words,
        both.n_contexts,
        totals[0].astype(float),
        totals[1].astype(float),
    )


def word_pair_model(  # noqa: PLR0915 - one density, line by line as in the docstring
    data: WordPairData, *, pooled: bool = True, priors: WordPairPriors | None = None
) -> pm.Model:
    r"""Build the model of two samples of words in each of many contexts; docs/mathematics/cloze.md has it.

    Words of a context are the points of three independent generalised gamma processes: shared words, and words of the
    first and of the second distribution only. A shared word of size *z* has weights :math:`z e^{\sigma x / 2}` and
    :math:`z e^{-\sigma x / 2}` with *x* standard normal, so that both distributions differ by the same factor all along
    their ranks; the words of one side, with a discount of their own, let the tails be more (or less) alike than the
    heads. Sizes are integrated out exactly (James, Lijoi and Prünster 2009), and *x* by quadrature, whose nodes are
    moved to where the counts of a word put it. Parameters vary over contexts around population means that are learnt
    from all of them (`pooled`), which is what makes 20 answers per context enough.

    **Equal distributions.** In a share of the contexts (``share_equal``; one half without pooling) both distributions
    are one. Which contexts these are is summed out. The prior of the share has most of its mass near zero and some near
    one: small samples cannot tell equal distributions from different ones, and must not be taken for equal because of
    that. **Words never seen** differ as the seen ones do, but for one factor of the study, whose logarithm is
    ``unseen``. About it no answer says anything; it widens intervals by what the form of the model may be off by.

    Parameters
    ----------
    pooled : bool
        Without it every context has the weak priors only: for a single context, or where contexts have nothing in
        common.

    Returns
    -------
    pymc.Model
        Variables ``population_mean``, ``population_variance`` (parameter) and ``share_equal`` (pooled only), ``theta``
        (parameter, context), ``unseen``, ``log_u`` and ``log_u_equal`` (side, context; of a context whose distributions
        differ, or are equal) and ``log_odds_equal`` (context), of equal distributions given all else. Predicted are
        ``n_words`` (kind, context), how many different words both samples have and one of them alone, and
        ``sample_tvd`` (context), of other contexts with these parameters.

    Examples
    --------
    >>> people, model = cloze.examples.two_samples()
    >>> program = models.word_pair_model(models.word_pair_data(people, model))
    >>> program.named_vars_to_dims["theta"]
    ('parameter', 'context')
    """
    priors = priors or WordPairPriors()
    coords = {
        "parameter": list(PARAMETERS),
        "context": np.arange(data.n_contexts),
        "side": ["first", "second"],
        # which samples have a word
        "kind": ["both", "first", "second"],
    }
    with pm.Model(coords=coords) as model:
        given = {name: pm.Data(name, values) for name, values in _values(data).items()}
        context, a, b = given["row_context"], given["row_a"], given["row_b"]
        centre, spread, logit_equal = _population(priors, pooled=pooled)
        pm.Normal("unseen", 0, priors.unseen)
        unit = pm.Normal("unit", 0, 1, dims=("parameter", "context"))
        theta = pm.Deterministic("theta", centre[:, None] + spread[:, None] * unit, dims=("parameter", "context"))
        d, e = pm.math.sigmoid(theta[3]), pm.math.sigmoid(theta[4])
        tilt = pt.exp(theta[5])[:, None] * NODES / 2
        log_gamma_d, log_gamma_e = pt.gammaln(1 - d), pt.gammaln(1 - e)
        # u is about n over the sum of the weights: coordinates in which it hardly depends on the parameters, and in
        # which what both sums share (loose) is apart from their ratio (tight), halve the steps of the sampler twice.
        # The mean of a shared word's weights is exp(sigma ** 2 / 8); where sigma is large the sum is far below it, and
        # coordinates that follow it run away
        log_shared = theta[0] + log_gamma_d + pt.log1p(pt.exp(2 * theta[5]) / 8)
        sums = [pt.logaddexp(log_shared, theta[side] + log_gamma_e) for side in (1, 2)]  # type: ignore[no-untyped-call]
        start = np.zeros((2, data.n_contexts))
        scale = pm.Flat("scale", dims=("side", "context"), initval=start)
        turned = pt.log(given["answers"]) + pt.stack([scale[0] + scale[1] / 2, scale[0] - scale[1] / 2])
        log_u = pm.Deterministic("log_u", turned - pt.stack(sums), dims=("side", "context"))
        log_u_equal = pm.Deterministic("log_u_equal", turned - theta[0] - log_gamma_d, dims=("side", "context"))
        log_rate = pt.softplus(pt.logaddexp(log_u[0][:, None] + tilt, log_u[1][:, None] - tilt))  # type: ignore[no-untyped-call]
        log_rates = pt.softplus(log_u)

        n = a + b
        left = n - d[context]
        sigma = pt.exp(theta[5])[context]
        # given a + b, a is about binomial with log-odds log(u_1 / u_2) + sigma x; with the prior of x, about normal
        information = sigma**2 * (a + 0.5) * (b + 0.5) / (n + 1)
        ratio = (pt.log(a + 0.5) - pt.log(b + 0.5) - (log_u[0] - log_u[1])[context]) / sigma
        middle, width = information * ratio / (1 + information), 1 / pt.sqrt(1 + information)
        x = middle[:, None] + width[:, None] * WORD_NODES
        half = sigma[:, None] * x / 2
        # one exponential and one logarithm for each row and node: this line is most of the sampler's time
        grown = pt.exp(half)
        u_first, u_second = (pt.exp(log_u[i])[context][:, None] for i in (0, 1))
        rate = pt.log1p(u_first * grown + u_second / grown)
        terms = WORD_LOG_WEIGHTS - x**2 / 2 + (a - b)[:, None] * half - left[:, None] * rate
        shared = pt.logsumexp(terms, axis=1) + pt.log(width) + theta[0][context] + pt.gammaln(left)  # type: ignore[no-untyped-call]
        # of words that both have this is finite and not used, so that its gradient is harmless; rows are gathered
        # along one axis only, as gathering along two leaves Numba's fast path
        is_first = pt.eq(b, 0)
        mass = pt.switch(is_first, theta[1][context], theta[2][context])
        log_rate_of_side = pt.switch(is_first, log_rates[0][context], log_rates[1][context])
        left = n - e[context]
        exclusive = mass + pt.gammaln(left) - left * log_rate_of_side
        rows = pt.switch(pt.eq(a, 0) | pt.eq(b, 0), pt.logaddexp(shared, exclusive), shared)  # type: ignore[no-untyped-call]

        laplace = pt.exp(NODE_LOG_WEIGHTS + d[:, None] * log_rate).sum(axis=1) - 1
        psi = pt.exp(theta[0] + log_gamma_d) / d * laplace
        for i in (0, 1):
            psi += pt.exp(theta[1 + i] + log_gamma_e) / e * pt.expm1(e * log_rates[i])
        none = pt.zeros(data.n_contexts)
        of_words = none[context].inc(given["row_words"] * rows)
        different = of_words + (given["answers"] * log_u).sum(axis=0) - psi
        log_rate_equal = pt.softplus(pt.logaddexp(log_u_equal[0], log_u_equal[1]))  # type: ignore[no-untyped-call]
        left = n - d[context]
        rows = theta[0][context] + pt.gammaln(left) - left * log_rate_equal[context]
        psi = pt.exp(theta[0] + log_gamma_d) / d * pt.expm1(d * log_rate_equal)
        equal = none[context].inc(given["row_words"] * rows) + (given["answers"] * log_u_equal).sum(axis=0) - psi
        pm.Deterministic("log_odds_equal", logit_equal + equal - different, dims="context")
        likelihood = pt.logaddexp(  # type: ignore[no-untyped-call]
            equal - pt.softplus(-logit_equal), different - pt.softplus(logit_equal)
        )
        pm.Potential("counts", likelihood.sum())
    model.outside = OutsideLikelihood(
        log_likelihood={"counts": likelihood},
        observed=partial(_observed, model),
        simulate=partial(_simulate, model),
        parameters=(*(("population_mean", "population_variance", "share_equal") if pooled else ()), "theta", "unseen"),
        dims={"counts": ("context",), "n_words": ("kind", "context"), "sample_tvd": ("context",)},
    )
    return model


def _population(priors: WordPairPriors, *, pooled: bool) -> tuple[Any, Any, Any]:
    """Mean and spread of parameters over contexts, and the log-odds of equal distributions; alone, the weak priors."""
    mean, sd = priors.vectors()
    if not pooled:
        return pt.as_tensor(mean), pt.as_tensor(sd), pt.as_tensor(0.0)
    centre = pm.Normal("population_mean", mean, sd, dims="parameter")
    df, square = priors.population_df, (priors.population_scale * sd) ** 2
    variance = pm.InverseGamma("population_variance", df / 2, df * square / 2, dims="parameter")
    share = pm.Beta("share_equal", priors.equal_alpha, priors.equal_beta)
    return centre, pt.sqrt(variance), pt.log(share) - pt.log1p(-share)


def set_word_pairs(model: pm.Model, data: WordPairData) -> None:
    """Give a model of :func:`word_pair_model` the counts of other contexts, as many as it was built with."""
    built = len(model.coords["context"])
    if data.n_contexts != built:
        raise InputError(f"has {data.n_contexts} contexts, the model was built for {built}", field="data")
    pm.set_data(_values(data), model=model)


def _values(data: WordPairData) -> dict[str, NDArray[np.generic]]:
    return {
        "row_context": data.context,
        "row_a": data.a,
        "row_b": data.b,
        "row_words": data.words.astype(float),
        "answers": np.stack([data.n_a, data.n_b]),
    }


def _counts(model: pm.Model) -> WordPairData:
    """Counts that a model has now."""
    context, a, b, words, answers = (
        model[name].get_value() for name in ("row_context", "row_a", "row_b", "row_words", "answers")
    )
    return WordPairData(context, a, b, words.astype(np.int64), answers.shape[1], *answers)


def _observed(model: pm.Model) -> dict[str, NDArray[Any]]:
    return _statistics(_counts(model))


def _simulate(model: pm.Model, values: Mapping[str, NDArray[Any]], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    n_a, n_b = model["answers"].get_value()
    # of other contexts like these: which of these are equal, their own answers say
    equal = rng.random(n_a.size) < values.get("share_equal", 0.5)
    return _statistics(simulate_with_sums(values["theta"], n_a, n_b, rng, equal=equal)[0])


def _statistics(data: WordPairData) -> dict[str, NDArray[Any]]:
    """Numbers of words of each kind, (kind, context), and distance between the samples, (context,)."""
    kinds = ((data.a > 0) & (data.b > 0), data.b == 0, data.a == 0)
    n = data.n_contexts
    apart = np.abs(data.a / data.n_a[data.context] - data.b / data.n_b[data.context]) / 2
    return {
        "n_words": np.stack([np.bincount(data.context[kind], data.words[kind], n) for kind in kinds]).astype(np.int64),
        "sample_tvd": np.bincount(data.context, data.words * apart, n),
    }


def simulate_with_sums(
    theta: NDArray[np.float64],
    n_a: NDArray[Any],
    n_b: NDArray[Any],
    rng: np.random.Generator,
    *,
    equal: NDArray[np.bool_] | None = None,
) -> tuple[WordPairData, FloatArray]:
    """Draw two samples of words given the model's parameters; and sums of both sides' weights, (side, context)."""
    # words of one side alone that nobody says, and a sigma of 0
    none = np.array([0.0, -np.inf, -np.inf, 0.0, 0.0, -np.inf])
    given = theta.T if equal is None else np.where(equal[:, None], theta.T + none, theta.T)
    drawn = [_one_pair(*one, rng) for one in zip(given, n_a.astype(int), n_b.astype(int), strict=True)]
    cases = [np.unique(row, axis=1, return_counts=True) for row, _ in drawn]
    context = np.repeat(np.arange(len(cases)), [words.size for _, words in cases])
    a, b = np.concatenate([pair for pair, _ in cases], axis=1).astype(float)
    words = np.concatenate([words for _, words in cases])
    data = WordPairData(context, a, b, words, len(cases), n_a.astype(float), n_b.astype(float))
    return data, np.stack([sums for _, sums in drawn], axis=1)


def _one_pair(theta: FloatArray, n_a: int, n_b: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], FloatArray]:
    """Counts (2, word) of one context, and sums of the weights."""
    # at a discount of 0 or 1 within rounding the formulas below divide by zero
    discounts = np.clip(expit(theta[3:5]), LEAST_DISCOUNT, 1 - LEAST_DISCOUNT)
    first, second, dust = [], [], np.zeros(2)
    for process, log_mass in enumerate(theta[:3]):
        size, rest = _sizes(np.exp(log_mass), discounts[min(process, 1)], rng)
        half = np.exp(theta[5]) * rng.normal(size=size.size) / 2 if process == 0 else np.zeros(size.size)
        half = np.clip(half, -LARGEST_LOG, LARGEST_LOG)
        first.append(size * np.exp(half) * (process != 2))
        second.append(size * np.exp(-half) * (process != 1))
        # E e^{sigma x / 2} of the shared words
        tilt = np.exp(min(np.exp(2 * theta[5]) / 8, LARGEST_LOG)) if process == 0 else 1.0
        dust += rest * tilt * np.array([process != 2, process != 1])
    counts, sums = [], []
    for weights, other, n in ((first, dust[0], n_a), (second, dust[1], n_b)):
        weight = np.append(np.concatenate(weights), other)
        sums.append(weight.sum())
        counts.append(rng.multinomial(n, weight / sums[-1]))
    seen = np.stack([count[:-1] for count in counts])
    alone = [np.eye(2, dtype=np.int64)[[side]].T.repeat(counts[side][-1], axis=1) for side in (0, 1)]
    return np.concatenate([seen[:, seen.any(axis=0)], *alone], axis=1), np.array(sums)


# a point larger than any float is thinned out, and above a bound larger than any float there is none: both are right
@np.errstate(over="ignore")
def _sizes(mass: float, discount: float, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """Draw the points of a generalised gamma process that are not tiny; and the expected total of the tiny ones."""
    if mass == 0:
        return np.empty(0), 0.0
    # points between z and z + dz: mass z^(-1-d) e^(-z) dz; below `least` they have a thousandth of the expected total
    least = (1e-3 * gamma(2 - discount)) ** (1 / (1 - discount))
    least = max(least, (mass / (discount * _MOST_POINTS)) ** (1 / discount))
    # thinning: from z^(-1-d) above `least`, kept with probability e^(-z)
    n = rng.poisson(mass * least**-discount / discount)
    size = least * rng.random(n) ** (-1 / discount)
    rest = mass * gamma(1 - discount) * gammainc(1 - discount, least)
    return size[rng.random(n) < np.exp(-size)], float(rest)
