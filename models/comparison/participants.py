r"""Participants as noisy, miscalibrated, rounded views of one belief, which sums to one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import shared
from scipy.special import gammaln

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.errors import InputError
from shannon_game.models.comparison.latent_words import Items, LatentWords, Reports, Words
from shannon_game.models.comparison.participant_data import ParticipantData
from shannon_game.models.comparison.reports import REPORTS, Asked, People, ReportLikelihood, player, report_likelihood
from shannon_game.models.priors import check_priors

if TYPE_CHECKING:
    import pandas as pd


_KEPT = 1e-4
"""Part of the largest probability below which a place of a grid is left out, beside a margin."""
_FAR = 1e4
_LAW_BIN_NATS = 0.5
_ENTROPY_CLASSES = 3
RATIOS, LEVELS = np.arange(-3.0, 4.5), np.arange(-9.0, 2.0, 2.0)
"""Centres of the bumps of the words' law: along arcsinh(2 e), and along ln g + e in nats."""
_BUMP, _LEVEL_BUMP, _LIGHTER = 0.7, 1.2, 1.2


@dataclass(frozen=True)
class Grid:
    """Grids of log-ratios e of words and t of targets, and of ln lambda less ln of the number of free answers; nats."""

    step: float = 0.3
    e: tuple[float, float] = (-9.0, 13.0)
    t: tuple[float, float] = (-10.0, 8.0)
    log_sum: tuple[float, float] = (-5.0, 6.0)
    log_sum_step: float = 0.8

    @property
    def narrowest_nats(self) -> float:
        """Least standard deviation of a law, of which sums over the grid do not depend on where its places lie."""
        return 0.7 * self.step

    @property
    def e_values(self) -> FloatArray:
        """Grid of e."""
        return _grid(*self.e, self.step)

    @property
    def t_values(self) -> FloatArray:
        """Grid of t."""
        return _grid(*self.t, self.step)

    def reaching(self, data: ParticipantData) -> Grid:
        """Grid on which the rarest token that was answered can have all of an item's belief."""
        top = -data.token_log_g.min(initial=0.0, where=data.token_answers > 0)
        return replace(self, e=(self.e[0], max(self.e[1], top)))

    def log_lambda(self, n_answers: IntArray) -> FloatArray:
        """Grid of ln lambda; one place where nobody answered freely."""
        if not n_answers.any():
            return np.array([-np.inf])
        least, most = np.log(n_answers[n_answers > 0].min()), np.log(n_answers.max())
        # given the sum the standard deviation of ln lambda is 1 / sqrt(n)
        step = min(self.log_sum_step, 1.5 / np.sqrt(n_answers.max()))
        return np.arange(least - self.log_sum[1], most - self.log_sum[0] + 1e-9, step)


def _grid(low: float, high: float, step: float) -> FloatArray:
    return low + step * np.arange(round((high - low) / step) + 1, dtype=float)


GRID = Grid()


@dataclass(frozen=True)
class ParticipantPriors:
    """Priors of :func:`participant_model`; places and standard deviations of normals in nats, unless said otherwise.

    Attributes
    ----------
    spread, log_spread : float
        Median of the standard deviation of most words' log-ratios, and standard deviation of its logarithm.
    slope, slope_change : float
        Standard deviations of the slope of log-ratios on ln g, and of its changes among the most common words
        (ln g > -2.5) and the rarest (ln g < -7).
    entropy_slope, entropy_weight, entropy_target : float
        Standard deviations of what a nat of the generator's entropy changes: the slope on ln g, the logit of the
        weight of words that people expect more, and targets' mean log-ratio.
    spread_slope : float
        Standard deviation of the change of ln spread per nat of ln g.
    ratio, ratio_slope : float
        Standard deviations of the bumps of words' log-density along their log-ratio, and of their changes per nat of
        ln g.
    level : float
        Standard deviation of the bumps along ln g + e, the log-probability that people give to a word but for ln Z.
    target, target_slope : float
        Standard deviations of the mean log-ratio of targets and of its slope on ln g.
    target_spread, log_target_spread : float
        Median and standard deviation of the logarithm of the targets' spread, a Student t with 4 degrees of freedom.
    log_k0 : float
        Standard deviation of ln k0 around 0.
    slope_sd, bias_sd, noise_sd, log_sd : float
        Medians of the standard deviations over participants of ln slope, bias and ln noise, and standard deviation of
        their logarithms.
    noise, log_noise : float
        Median of the typical noise, nats of log-odds, and standard deviation of its logarithm.
    lapse, logit_lapse : float
        Median of the lapse rate, and standard deviation of its logit.
    half_alpha, half_beta : float
        Beta prior of the share of lapses that are "50%".
    lapse_sd : float
        Median of the standard deviation over participants of the lapse rate's logit, where each has one.
    bias_mean, bias_mean_alone : float
        Standard deviation of the mean of the biases, where it is a parameter, with free answers and without, nats.
    covariate : float
        Standard deviation of the effect of a covariate of participants on ln slope, bias and ln noise.
    form : float
        By how much the mean gap can be off because the law has not the form of people's beliefs, standard deviation.
    uninformed : float
        By how much the mean gap of items without any report or free answer can be off, standard deviation.
    """

    spread: float = 0.5
    log_spread: float = 0.6
    slope: float = 0.3
    slope_change: float = 0.3
    entropy_slope: float = 0.1
    entropy_weight: float = 0.3
    entropy_target: float = 0.3
    spread_slope: float = 0.1
    ratio: float = 0.7
    ratio_slope: float = 0.1
    level: float = 0.7
    target: float = 1.5
    target_slope: float = 0.5
    target_spread: float = 1.0
    log_target_spread: float = 0.5
    log_k0: float = 1.0
    slope_sd: float = 0.5
    bias_sd: float = 0.5
    noise_sd: float = 0.3
    log_sd: float = 0.3
    noise: float = 0.9
    log_noise: float = 0.5
    lapse: float = 0.05
    logit_lapse: float = 0.7
    half_alpha: float = 2.0
    half_beta: float = 2.0
    lapse_sd: float = 1.0
    bias_mean: float = 0.25
    bias_mean_alone: float = 0.5
    covariate: float = 0.5
    form: float = 0.1
    uninformed: float = 1.2

    def __post_init__(self) -> None:
        check_priors(self, "participant priors", shares=("lapse",))

    def of(self, data: ParticipantData) -> ParticipantPriors:
        """Those for a study: without free answers less is known of the mean bias."""
        return self if data.has_answers else replace(self, bias_mean=self.bias_mean_alone)


def participant_model(
    data: ParticipantData,
    priors: ParticipantPriors | None = None,
    *,
    k0: float | None = None,
    covariates: pd.DataFrame | None = None,
    grid: Grid = GRID,
    report: str | ReportLikelihood = "linear",
    law: Law | None = None,
) -> pm.Model:
    """Build the participant model; docs/mathematics/participant_model.md has it.

    **Belief.** People share one distribution over the vocabulary, which sums to one whatever its log-ratios to the
    generator are; these are independent draws of one law, a smooth curve. **Reports** are of its log-odds with a slope,
    a bias and noise of each participant, rounded to a box of the scale, or lapses. **Free answers** are draws of it.
    Every token of the vocabulary is in their likelihood, and candidates are draws of g or people's answers, so that how
    a token came to be asked about is ignorable. Log-ratios are summed out on grids
    (:mod:`shannon_game.models.comparison.latent_words`).

    **Identification.** Reports give the log-ratios up to one factor, k0: slopes twice as steep of a belief half as
    strong give the same reports. Free answers give the factor; without them it is a constant here. A bias toward the
    target that all participants share moves all gaps by as much: only free answers speak against it.

    Parameters
    ----------
    k0 : float, optional
        Geometric mean of the slopes, which the model's data ``scale`` holds; by default it is a parameter, which needs
        free answers.
    covariates : pandas.DataFrame, optional
        Columns of numbers by participant, whose effects on ln slope, bias and ln noise are parameters; see
        :func:`shannon_game.inference.comparison.participant_fit.design_matrix`.

    report : str or callable
        How reports come from the belief's log-odds: a name of :data:`~shannon_game.models.comparison.reports.REPORTS`,
        or a function of yours as that module describes.
    law : callable, optional
        Law of words' log-ratios: a function of their ln g, (bin,), of their items' entropy less its mean, (bin,), of
        the priors, whose numbers are tensors (:func:`set_priors`), and of the grid of log-ratios, (e,), that gives
        probabilities, (bin, e).

    Returns
    -------
    pymc.Model
        Dims ``participant`` and ``covariate``. Its log-likelihood is the potential ``likelihood``; ``outside`` says to
        :func:`shannon_game.inference.complete` what it is of. ``latent_words`` is the operation, ``latent_inputs`` are
        its inputs; ``words_data`` is `data`, ``grid`` and ``table`` its grids and constants.

    Examples
    --------
    >>> from shannon_game import models
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> model = models.participant_model(models.participant_data(comparison_study()), k0=1.0)
    >>> model.named_vars_to_dims["slope"]
    ('participant',)
    """
    numbers = {
        one: _shared(value, f"prior_{one}") for one, value in vars((priors or ParticipantPriors()).of(data)).items()
    }
    p: Any = SimpleNamespace(**numbers)
    if k0 is None and not (data.has_answers or data.is_player):
        raise InputError(
            "is not given, and without free answers reports do not say it", source=f"study {data.study!r}", field="k0"
        )
    if k0 is not None and not (np.isfinite(k0) and k0 > 0):
        raise InputError(f"is {k0}, should be a positive number", field="k0")
    grid = grid.reaching(data)
    table = _Table.of(data, grid)
    people = report_likelihood(report)
    names = [] if covariates is None else [str(name) for name in covariates]
    coords = {"participant": data.participant, "covariate": names, "ratio": RATIOS, "level": LEVELS}
    coords |= {"item": data.item, "report": data.row_response, "answer": single_answers(data)}
    with pm.Model(coords=coords) as model:
        of_words = (law or johnson_law)(table.bin_log_g, table.entropy[table.bin_class], p, grid)
        target = _target(data.target_log_g, table.entropy[table.item_class], p, grid)
        log_k0 = None if data.is_player else _log_k0(p, k0)
        who = People(data.participant.size, p, log_k0, grid.narrowest_nats, _centred(data, covariates))
        probability: Any = (player if data.is_player else people)(who)
        if not callable(probability):
            problem = f"returns a {type(probability).__name__}, should return a function of what was asked"
            raise InputError(problem, field="report")
        quiet, never = _unanswered(of_words, table) if data.has_answers else (pt.zeros((data.item.size, 1)), None)
        words = LatentWords(*words_of(data, grid, token_bin=table.token_bin))
        rows = {name: _shared(value, f"report_{name}") for name, value in row_values(data, words).items()}
        here = _asked(rows, len(data.box_edges))
        inputs = [of_words, target, quiet, probability(here)]
        found: Any = words(*inputs)
        pm.Potential("likelihood", found[0])
        at = _shared(np.zeros(data.row_box.size), "drawn_log_odds")
        low, high = np.clip(data.box_edges, -_FAR, _FAR).T
        half = (np.arange(low.size) == data.half_box).astype(float)
        boxes = probability(replace(here, log_odds=at[:, None], low=low, high=high, at_half=half))
        if people not in REPORTS.values() and not data.is_player:
            _check_chances(model, boxes, (at.get_value().size, low.size))
    model.latent_words, model.latent_inputs, model.report_rows, model.prior_numbers = words, inputs, rows, numbers
    model.grid, model.words_data, model.table, model.spreads = grid, data, table, tuple(who.spreads)
    model.box_chance, model.drawn_log_odds, model.report_name = boxes, at, getattr(people, "__name__", str(people))
    model.pointwise = _pointwise(found, data, table, never)
    return model


def _check_chances(model: pm.Model, boxes: Any, shape: tuple[int, int]) -> None:
    """Refuse a report likelihood that gives no probabilities of the values of the scale, such as their logarithms."""
    (boxes,) = model.replace_rvs_by_values([pt.broadcast_to(boxes, shape)])
    chance_of = model.compile_fn(
        boxes, inputs=model.value_vars, point_fn=False, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    start = model.initial_point()
    chance = np.asarray(chance_of(*(start[str(var.name)] for var in model.value_vars)))
    if not ((chance >= 0).all() and np.allclose(chance.sum(axis=1), 1, atol=0.01)):
        problem = (
            f"gives values of the scale from {chance.min():.3g} to {chance.max():.3g}, in all {chance.sum(1)[0]:.3g}"
        )
        raise InputError(f"{problem}; should give probabilities that sum to 1 (asked.box does)", field="report")


Law = Callable[[FloatArray, FloatArray, Any, Grid], Any]


def set_priors(model: pm.Model, priors: ParticipantPriors, data: ParticipantData) -> None:
    """Give a model that was built, and perhaps compiled, other priors, for data."""
    for name, value in vars(priors.of(data)).items():
        model.prior_numbers[name].set_value(np.float64(value))


def _log_k0(p: Any, k0: float | None) -> Any:
    log_k0 = pm.Normal("log_k0", 0, p.log_k0) if k0 is None else pt.log(pm.Data("scale", np.float64(k0)))
    pm.Deterministic("k0", pt.exp(log_k0))
    return log_k0


def _centred(data: ParticipantData, covariates: pd.DataFrame | None) -> FloatArray | None:
    if covariates is None or data.is_player:
        return None
    x: FloatArray = covariates.loc[data.participant.tolist()].to_numpy(float)
    centred: FloatArray = x - x.mean(axis=0)
    return centred


def _shared(value: Any, name: str) -> Any:
    """What windows and other priors change: no data of the model, which belong to the posterior."""
    return shared(np.asarray(value), name=name)  # type: ignore[no-untyped-call]


def row_values(data: ParticipantData, op: LatentWords) -> dict[str, Any]:
    """Arrays by report, within the windows of the operation: what :class:`~.reports.Asked` is made of."""
    values = {"log_odds": op.reports.log_odds, "place": op.items.step * np.arange(op.widest), "low": data.row_low}
    values |= {"high": data.row_high, "at_half": (data.row_box == data.half_box).astype(float)}
    ratio = data.target_log_g[data.row_item] - data.token_log_g[data.row_token]
    return values | {"person": data.row_participant.astype(np.int64), "log_g_ratio": ratio}


def _asked(rows: dict[str, Any], n_boxes: int) -> Asked:
    columns = {name: rows[name][:, None] for name in ("low", "high", "at_half", "log_g_ratio")}
    log_odds = rows["log_odds"][:, None] + rows["place"]
    return Asked(log_odds=log_odds, person=rows["person"], n_boxes=n_boxes, **columns)


def single_answers(data: ParticipantData) -> IntArray:
    """Answers that can be left out one by one: those on items with another one."""
    return np.flatnonzero(data.n_answers[data.answer_item] > 1)


def _pointwise(found: Any, data: ParticipantData, table: _Table, never: Any) -> dict[str, Any]:
    """Log-probability of each report and answer given the rest of its item, and of every item, given what all share."""
    terms = {"reports": -pt.log(found[4].sum(axis=1)), "items": found[5]}
    if not (kept := single_answers(data)).size:
        return terms
    item, token = data.answer_item[kept], data.answer_token[kept]
    both = [data.token_log_g - pt.log(found[6]), data.target_log_g - pt.log(found[7])]
    named = pt.concatenate(both)  # type: ignore[no-untyped-call]
    by_token = named[np.where(token >= 0, token, data.token_item.size + item)]
    if never is not None and (token < -1).any():
        # the inverse of the rate of answers on tokens never drawn, under the posterior of ln lambda
        other = -pt.log((found[3] * pt.exp(-table.log_lambda) / (never + 1e-30)).sum(axis=1))
        by_token = pt.switch(token < -1, other[item], by_token)
    return terms | {"answers": by_token - np.log(data.n_answers[item] - 1)}


def johnson_law(log_g: FloatArray, entropy: FloatArray, p: Any, grid: Grid) -> Any:
    """Law of e on its grid for every bin of ln g and of the item's entropy, (bin, e); the default."""
    spread = pm.LogNormal("spread", pt.log(p.spread), p.log_spread)
    slope = pm.Normal("law_slope", 0, p.slope)
    common = pm.Normal("law_slope_common", 0, p.slope_change)
    rare = pm.Normal("law_slope_rare", 0, p.slope_change)
    spread_slope = pm.Normal("spread_slope", 0, p.spread_slope)
    entropy_slope = pm.Normal("entropy_slope", 0, p.entropy_slope)
    off, within = log_g + 4, np.clip(log_g, -12, 0) + 4
    middle = (slope + entropy_slope * entropy) * off
    middle = middle + common * np.maximum(log_g + 2.5, 0) + rare * np.maximum(-log_g - 7, 0)
    narrow = pt.sqrt((spread * pt.exp(-spread_slope * within)) ** 2 + grid.narrowest_nats**2)[:, None]
    off_middle = grid.e_values - middle[:, None]
    z = off_middle / (np.sqrt(2) * narrow)
    # a Johnson SU, of which e^e has no expectation, with a lighter tail at words that people expect more
    log_density = -pt.sqr(pt.arcsinh(z)) / 2 - pt.log1p(pt.sqr(z)) / 2 - _LIGHTER * pt.softplus(off_middle - 1)

    by_ratio, by_level, more_expected = _bumps(grid.e_values, log_g)
    ratio = pm.Normal("by_ratio", 0, p.ratio, dims="ratio")
    ratio_slope = pm.Normal("by_ratio_slope", 0, p.ratio_slope, dims="ratio")
    level = pm.Normal("by_level", 0, p.level, dims="level")
    entropy_weight = pm.Normal("entropy_weight", 0, p.entropy_weight)
    shape = pt.matmul(ratio + within[:, None] * ratio_slope, by_ratio.T) + pt.matmul(by_level, level)
    log_density = log_density + shape + entropy_weight * entropy[:, None] * more_expected
    return pm.math.softmax(log_density, axis=1)


def _bumps(e: FloatArray, log_g: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Bumps along e, (e, ratio), and along ln g + e, (bin, e, level), and a step up at words expected more."""
    by_ratio = np.exp(-(((np.arcsinh(2 * e)[:, None] - RATIOS) / _BUMP) ** 2) / 2)
    by_level = np.exp(-((((log_g[:, None] + e)[..., None] - LEVELS) / _LEVEL_BUMP) ** 2) / 2)
    return by_ratio, by_level, 1 / (1 + np.exp(2 - 2 * e))


def _target(log_g: FloatArray, entropy: FloatArray, p: Any, grid: Grid) -> Any:
    """Log of the law of the targets' t on its grid, (item, t)."""
    mean = pm.Normal("target_mean", 0, p.target) + pm.Normal("target_slope", 0, p.target_slope) * (log_g + 4)
    mean = mean + pm.Normal("entropy_target", 0, p.entropy_target) * entropy
    spread = pm.LogNormal("target_spread", pt.log(p.target_spread), p.log_target_spread)
    off = (grid.t_values - mean[:, None]) / pt.sqrt(spread**2 + grid.narrowest_nats**2)
    log_density = -2.5 * pt.log1p(pt.sqr(off) / 4)
    return log_density - pt.log(pt.exp(log_density).sum(axis=1, keepdims=True))


def _unanswered(law: Any, table: _Table) -> tuple[Any, Any]:
    """Log-likelihood of free answers on an item's other tokens, of which nearly all got none, (item, lambda).

    And, where some got any, the expected belief on tokens never drawn but for lambda, (item, lambda).
    """
    silent = _by_bin(table.silence, law)
    found = pt.dot(table.count, pt.log(silent))  # type: ignore[no-untyped-call]
    mass = None
    if table.other_answers.any():
        # an answer that is no candidate is one of the tokens never drawn, whose expected belief stands for it
        tilted = _by_bin(table.silence * np.exp(table.e), law) / silent
        mass = pt.dot(table.never_drawn, tilted)  # type: ignore[no-untyped-call]
        found = found + table.other_answers[:, None] * (table.log_lambda + pt.log(mass + 1e-30))
    return found, mass


def _by_bin(table: FloatArray, law: Any) -> Any:
    """Mean over the law, (bin, lambda)."""
    return pt.matmul(table, law[:, :, None])[:, :, 0]


@dataclass(frozen=True, eq=False)
class _Table:
    """Constants of the model: bins of ln g and of entropy, how many other tokens each has, and the answers' part.

    ``never_drawn`` is the mass under g of tokens that the generator never drew, (item, bin). ``entropy`` is the
    mean entropy of each class of items, less that of all, nats.
    """

    entropy: FloatArray
    item_class: IntArray
    bin_log_g: FloatArray
    bin_class: IntArray
    token_bin: IntArray
    rest_bin: IntArray
    count: FloatArray
    never_drawn: FloatArray
    silence: FloatArray
    other_answers: IntArray
    log_lambda: FloatArray
    e: FloatArray

    @classmethod
    def of(cls, data: ParticipantData, grid: Grid) -> _Table:
        item_class, entropy = entropy_classes(data.entropy_nats)

        def key(log_g: FloatArray, item: IntArray) -> IntArray:
            place = np.floor(np.clip(log_g, -25, -1e-9) / _LAW_BIN_NATS).astype(np.intp)
            return place * entropy.size + item_class[item]

        both = [key(data.token_log_g, data.token_item), key(data.rest_log_g, data.rest_item)]
        found, place = np.unique(np.concatenate(both), return_inverse=True)
        bin_log_g = np.asarray((found // entropy.size + 0.5) * _LAW_BIN_NATS, dtype=float)
        token_bin, rest_bin = place[: data.token_item.size], place[data.token_item.size :]
        # a bin's tokens stand at its middle, with the mass that they have
        alike = data.rest_count * np.exp(data.rest_log_g - bin_log_g[rest_bin])
        alike *= data.n_answers[data.rest_item] > 0
        count, never_drawn = np.zeros((2, data.item.size, found.size))
        np.add.at(count, (data.rest_item, rest_bin), alike)
        np.add.at(never_drawn, (data.rest_item, rest_bin), alike * ~data.rest_drawn)
        log_lambda, e = grid.log_lambda(data.n_answers), grid.e_values
        rate = np.exp(np.minimum(log_lambda[:, None] + e + bin_log_g[:, None, None], 6.0))
        return cls(
            entropy=entropy,
            item_class=item_class,
            bin_log_g=bin_log_g,
            bin_class=found % entropy.size,
            token_bin=token_bin.astype(np.intp),
            rest_bin=rest_bin.astype(np.intp),
            count=count,
            never_drawn=never_drawn * np.exp(bin_log_g),
            silence=np.exp(-rate),
            other_answers=data.other_answers,
            log_lambda=log_lambda,
            e=e,
        )


def entropy_classes(entropy_nats: FloatArray) -> tuple[IntArray, FloatArray]:
    """Third of the items, by entropy, that each item is in, and the mean entropy of each third less that of all."""
    edges = np.quantile(entropy_nats, np.arange(1, _ENTROPY_CLASSES) / _ENTROPY_CLASSES)
    place = np.unique(np.searchsorted(edges, entropy_nats), return_inverse=True)[1].astype(np.intp)
    return place, np.bincount(place, entropy_nats - entropy_nats.mean()) / np.bincount(place)


def _target_answers(data: ParticipantData, grid: Grid, log_lambda: FloatArray) -> FloatArray:
    """What free answers say of the targets, and the measure of lambda, (item, lambda, t)."""
    n = data.n_answers
    if not n.any():
        return np.zeros((n.size, 1, grid.t_values.size))
    rate = log_lambda[:, None] + data.target_log_g[:, None, None] + grid.t_values
    found = data.target_answers[:, None, None] * rate - np.exp(np.minimum(rate, 6.5))
    found += (np.log(log_lambda[1] - log_lambda[0]) - gammaln(np.maximum(n, 1)))[:, None, None]
    return np.where((n > 0)[:, None, None], found, -np.log(log_lambda.size))


def words_of(
    data: ParticipantData,
    grid: Grid,
    e_window: tuple[IntArray, IntArray] | None = None,
    t_window: tuple[IntArray, IntArray] | None = None,
    z_window: tuple[IntArray, IntArray] | None = None,
    *,
    token_bin: IntArray | None = None,
) -> tuple[Words, Items, Reports]:
    """Give what the likelihood needs to know of words, items and reports, within windows (first, size) of the grids."""
    n_items, n_words = data.item.size, data.token_item.size
    log_lambda, e = grid.log_lambda(data.n_answers), grid.e_values

    def window(given: tuple[IntArray, IntArray] | None, n: int, size: int) -> tuple[IntArray, IntArray]:
        return given or (np.zeros(n, dtype=np.intp), np.full(n, size, dtype=np.intp))

    e_first, e_size = window(e_window, n_words, e.size)
    t_first, t_size = window(t_window, n_items, grid.t_values.size)
    z_first, z_size = window(z_window, n_items, log_lambda.size)
    item = data.token_item
    answers_first = np.concatenate([[0], np.cumsum(z_size[item] * e_size)])
    answers = np.ones(answers_first[-1])
    for x in np.flatnonzero(data.n_answers[item] > 0).tolist():
        q = item[x]
        on = log_lambda[z_first[q] : z_first[q] + z_size[q], None] + e[e_first[x] : e_first[x] + e_size[x]]
        rate = on + data.token_log_g[x]
        value = data.token_answers[x] * rate - np.exp(np.minimum(rate, 6.5))
        answers[answers_first[x] : answers_first[x + 1]] = np.exp(np.maximum(value, -600)).ravel()
    words = Words(
        first=np.searchsorted(item, np.arange(n_items + 1)).astype(np.intp),
        bin=_Table.of(data, grid).token_bin if token_bin is None else token_bin,
        e_first=e_first,
        e_size=e_size,
        answers=answers,
        answers_first=answers_first[:-1].astype(np.intp),
    )
    starts = float(e[0]), float(grid.t_values[0])
    answers, inverse = _target_answers(data, grid, log_lambda), np.zeros(log_lambda.size)
    if data.n_answers.any():
        inverse = np.exp(-log_lambda)
    items = Items(t_first, t_size, z_first, z_size, *starts, grid.step, answers, inverse)
    token, of = data.row_token, data.row_item
    least = starts[1] - starts[0] + (t_first[of] - e_first[token] - e_size[token] + 1) * grid.step
    reports = Reports(
        first=np.searchsorted(token, np.arange(n_words + 1)).astype(np.intp),
        log_odds=least + data.target_log_g[of] - data.token_log_g[token],
    )
    return words, items, reports


def set_windows(
    model: pm.Model, wanted: Callable[[], list[Any]], margin_nats: float = 0.75, *, data: ParticipantData | None = None
) -> None:
    """Restrict every word and item to the part of the grids that matters.

    Parameters
    ----------
    wanted : callable
        Gives the values of ``model.latent_inputs`` somewhere; it is called once the grids are whole.
    margin_nats : float
        What is kept on both sides of the part with a ten-thousandth of the largest probability. Probabilities of single
        reports given the others need 3.
    data : ParticipantData, optional
        Other reports on the words of the model, by default those that it was built with.
    """
    data, grid, op = data or model.words_data, model.grid, model.latent_words

    def put(**windows: Any) -> None:
        op.words, op.items, op.reports = words_of(data, grid, token_bin=model.table.token_bin, **windows)
        for name, value in row_values(data, op).items():
            model.report_rows[name].set_value(value)
        model.drawn_log_odds.set_value(np.zeros(data.row_box.size))

    put()
    marginal = np.zeros((data.token_item.size, grid.e_values.size))
    _, _, by_target, by_quiet, *_ = op.values(*wanted(), marginal=marginal)
    margin = round(margin_nats / grid.step)
    put(e_window=_window(marginal, margin), t_window=_window(by_target, margin), z_window=_window(by_quiet, 1))


def law_words(model: pm.Model, inputs: list[Any], seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Draw the grid places of every item's t and of every word's e from their laws, whatever was reported."""
    law, log_target = (np.asarray(one, dtype=float) for one in inputs[:2])
    rng = np.random.default_rng(seed)
    t = drawn_places(np.exp(log_target - log_target.max(axis=1, keepdims=True)), rng)
    return t, np.zeros(t.size, dtype=np.intp), drawn_places(law[model.table.token_bin], rng)


def drawn_places(probability: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw a place from every row of probabilities, which need not sum to one."""
    total = probability.cumsum(axis=1)
    below = (total < rng.random((len(total), 1)) * total[:, -1:]).sum(axis=1)
    found: IntArray = np.minimum(below, probability.shape[1] - 1)
    return found


def _window(probability: FloatArray, margin: int) -> tuple[IntArray, IntArray]:
    """First place and number of places of each row that matter."""
    kept = probability > _KEPT * probability.max(axis=1, keepdims=True)
    n = probability.shape[1]
    first = np.maximum(kept.argmax(axis=1) - margin, 0)
    last = np.minimum(n - 1 - kept[:, ::-1].argmax(axis=1) + margin, n - 1)
    return first.astype(np.intp), (last - first + 1).astype(np.intp)
