"""Fit the participant model, its scale at an anchor, and judge the fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from scipy.optimize import brentq

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.content import UnsureError, content_digest
from shannon_game.estimators.display import Result, interval_rows
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.inference.comparison.anchors import SCALES, Anchor
from shannon_game.inference.comparison.participant_gap import (
    SharedBelief,
    loss_gap,
    outcome_temperature,
    top1_rate,
)
from shannon_game.inference.posterior import kept
from shannon_game.inference.posterior.arviz_adapter import InferenceData, from_groups, group
from shannon_game.inference.posterior.convergence import Convergence, check_convergence
from shannon_game.inference.posterior.gaussian import Gaussian, Program, fit_gaussian, trajectories
from shannon_game.inference.posterior.thresholds import GateThresholds
from shannon_game.models.comparison.latent_words import draw_words
from shannon_game.models.comparison.participant_data import ParticipantData
from shannon_game.models.comparison.participants import (
    Law,
    ParticipantPriors,
    law_words,
    participant_model,
    set_priors,
    set_windows,
)
from shannon_game.models.comparison.reports import ReportLikelihood

PYMC = "pymc"
"""What compiles the log-density of this model, which no other package can."""
CHECKED = ("gap", "k0")
"""What the check of a fit looks at: what is reported."""
REPORTED = GateThresholds(r_hat=1.02, ess_bulk=200, ess_tail=200)
"""Thresholds of that check."""

DESCRIPTIONS = {
    "gap": "mean loss of the shared belief over items, less the generator's, without discrepancies, nats",
    "k0": "geometric mean of the participants' slopes",
    "slope": "slope of a participant's log-odds on those of the shared belief",
    "bias": "nats by which a participant's log-odds lean to the target, before the slope",
    "noise": "standard deviation of the noise of a participant's log-odds, nats",
    "lapse": "probability that a report has nothing to do with the belief",
    "half": "share of lapses that are 50%",
    "log_k0": "logarithm of k0",
    "log_noise": "logarithm of the typical noise",
    "log_slope": "a participant's ln slope less that of k0",
    "bias_own": "a participant's bias less the mean of the biases, nats",
    "noise_own": "a participant's ln noise less the typical one, in standard deviations",
    "logit_lapse": "logit of the typical lapse rate",
    "slope_effect": "effect of a covariate on ln slope",
    "bias_effect": "effect of a covariate on the bias, nats",
    "noise_effect": "effect of a covariate on ln noise",
    "lapse_effect": "effect of a covariate on the logit of the lapse rate",
    "lapse_sd": "standard deviation over participants of the logit of the lapse rate",
    "lapse_own": "logit of a participant's lapse rate less the typical one",
    "bias_mean": "mean of the biases, nats",
    "pull": "share of one half in the probability that is reported",
    "gamma": "exponent of the weighting of probabilities",
    "gamma_share": "place of gamma between 0.3 and 1.2",
    "weight": "how far a participant uses what is known of the generator",
    "weight_mean": "mean weight of the generator",
    "weight_sd": "standard deviation over participants of the weight of the generator",
    "weight_own": "a participant's weight of the generator less the mean",
    "slope_sd": "standard deviation over participants of ln slope",
    "bias_sd": "standard deviation over participants of the bias, nats",
    "noise_sd": "standard deviation over participants of ln noise",
    "spread": "standard deviation of most words' log-ratios to the generator at ln g = -4, nats",
    "law_slope": "slope of log-ratios on ln g",
    "target_mean": "mean log-ratio of targets at ln g = -4, nats",
    "target_slope": "slope of targets' log-ratios on ln g",
    "law_slope_common": "change of that slope above ln g = -2.5",
    "law_slope_rare": "change of that slope below ln g = -7",
    "spread_slope": "change of ln spread per nat of ln g",
    "entropy_slope": "change of the slope on ln g per nat of the generator's entropy",
    "entropy_weight": "change per nat of entropy of the logit of words that people expect more",
    "entropy_target": "change of the targets' mean log-ratio per nat of entropy",
    "by_ratio": "heights of the law's bumps along the log-ratio",
    "by_ratio_slope": "changes of these heights per nat of ln g",
    "by_level": "heights of the law's bumps along ln g + e",
    "target_spread": "scale of targets' log-ratios, nats",
}
"""What variables of the posterior are."""

OUTCOME_ITEMS = 60
"""Items with a comparison that outcomes need to fix the scale; in studies of 20 only 8 of 15 intervals held."""
_NEAR_ENOUGH = 1.25
_ROUNDS = 4
_FIRST_DRAWS = 40
_LARGEST_LOG_FACTOR = 12.0
_SPARE = 1.2
"""By how much more effective draws are aimed at than a check wants, of which their estimates are a tenth off."""
_APART = 1.5
"""R-hat of chains that are in different places, where more draws would not help."""


@dataclass(frozen=True, eq=False, repr=False)
class ParticipantFit(Result):
    """A posterior of the participant model.

    Attributes
    ----------
    scale : float
        k0 at which the model was fitted; NaN where it is a parameter.
    idata : arviz.InferenceData
        Its variable ``gap`` leaves out the discrepancies and the tail's scale that :attr:`gap_nats` includes.
    temperature : ndarray, shape (draw,)
        What the outcomes multiply log-ratios by; ones for other anchors.
    item_gap_nats : ndarray, shape (draw, item)
        Gap of each item at that temperature.
    tail_scale : ndarray, shape (draw,)
        What the belief on tokens never drawn is multiplied by. From comparisons alone the law puts too little there,
        so that its logarithm is uniform from 0 to 1 and the gap's interval is a set (15 of 15 held-out studies inside,
        7 without it), or to ln 2 beside a bias that all share; ones with free answers.
    discrepancy : ndarray, shape (draw, 2)
        Draws of what the law's form and items without any report or answer may be off by, nats.
    compiled : object
        The model compiled, for :func:`~shannon_game.inference.comparison.participant_sensitivity.leave_one_out`.
    """

    data: ParticipantData
    anchor: Anchor
    priors: ParticipantPriors
    scale: float
    idata: InferenceData
    convergence: Convergence
    belief: SharedBelief
    temperature: FloatArray
    item_gap_nats: FloatArray
    tail_scale: FloatArray
    discrepancy: FloatArray
    compiled: Compiled

    @property
    def gap_nats(self) -> FloatArray:
        """Mean over all items with the discrepancies of the law's form and of items without information, (draw,)."""
        return self._with_discrepancy(self.item_gap_nats)

    @property
    def informed_gap_nats(self) -> FloatArray:
        """Mean over the items with a report or a free answer, with the discrepancy of the law's form, (draw,)."""
        found: FloatArray = self.item_gap_nats[:, self.data.informed].mean(axis=1) + self.discrepancy[:, 0]
        return found

    @property
    def k0(self) -> FloatArray:
        """Typical slope of the reports on the log-odds of the belief, (draw,); NaN for a language model."""
        if self.data.is_player:
            return np.full(self.belief.n_draws, np.nan)
        slope: FloatArray = self._fitted_k0 / self.temperature
        return slope

    @property
    def _fitted_k0(self) -> FloatArray:
        return np.asarray(group(self.idata, "posterior")["k0"], dtype=float).ravel()

    def gap_at(self, k0: float) -> FloatArray:
        """Gap if the typical slope were `k0`, whatever the anchor, nats, (draw,)."""
        return self._with_discrepancy(loss_gap(self.belief, self._fitted_k0 / k0, self.tail_scale))

    def _with_discrepancy(self, item_gap: FloatArray) -> FloatArray:
        uninformed = 1 - self.data.informed.mean()
        found: FloatArray = item_gap.mean(axis=1) + self.discrepancy @ np.array([1.0, uninformed])
        return found

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.belief.parts(self.temperature)

    @property
    def tail_share(self) -> FloatArray:
        """Share of the belief on tokens never drawn nor answered, known through the law alone, (draw, item)."""
        share: FloatArray = self._parts[2] / sum(self._parts)
        return share

    def tail_factor(self, gap_nats: float) -> float:
        """By which factor the belief on tokens never drawn must be multiplied for the median gap to be `gap_nats`.

        Infinite, or 0, where no factor does it.
        """
        asked, drawn, never = self._parts

        def off(log_factor: float) -> float:
            total = np.log(asked + drawn + np.exp(log_factor) * never)
            return float(np.median((self.data.target_log_g + total).mean(axis=1))) - gap_nats

        if off(-_LARGEST_LOG_FACTOR) > 0:
            return 0.0
        if off(_LARGEST_LOG_FACTOR) < 0:
            return float("inf")
        return float(np.exp(brentq(off, -_LARGEST_LOG_FACTOR, _LARGEST_LOG_FACTOR, xtol=1e-9)))

    def people_gap_bounds(self) -> FloatArray:
        r"""Bounds of the mean gap of people one by one, nats, (draw, 2).

        People whose beliefs differ lose more, one by one, than the belief that they share, whose gap is the lower
        bound. The upper one takes all of the median participant's noise for normal differences between her log-odds
        and those of the shared belief, :math:`(\mathrm{noise}_p / \mathrm{slope}_p)^2 / 2` more. It is NaN without
        free answers: then nothing tells noise of a report from a difference of belief on the scale of belief.
        """
        gap = self.gap_nats
        if not self.data.has_answers:
            return np.stack([gap, np.full(gap.size, np.nan)], axis=1)
        posterior = group(self.idata, "posterior")
        private = ((posterior["noise"] / posterior["slope"]) ** 2 / 2).median("participant").to_numpy().ravel()
        return np.stack([gap, gap + private], axis=1)

    def top1_rate(self, rng: np.random.Generator) -> FloatArray:
        """Share of items whose target is the mode of the shared belief, (draw,)."""
        return top1_rate(self.belief, rng)

    def summary(self) -> pd.DataFrame:
        """Median and 90% interval of the gap, the slope of the reports and the temperature."""
        return interval_rows({"gap_nats": self.gap_nats, "k0": self.k0, "temperature": self.temperature})


def fit_participants(
    data: ParticipantData,
    *,
    priors: ParticipantPriors | None = None,
    anchor: Anchor | None = None,
    covariates: pd.DataFrame | None = None,
    report: str | ReportLikelihood = "linear",
    law: Law | None = None,
    draws: int = 90,
    tune: int = 10,
    chains: int = 4,
    cores: int | None = 1,  # noqa: ARG001 - a setting of every sampler
    target_accept: float = 0.8,
    retries: int = 0,
    sampler: str = PYMC,
    thresholds: GateThresholds | None = None,
    seed: int = 0,
) -> ParticipantFit:
    """Fit the participant model to people's answers, or to a language model's.

    Parameters
    ----------
    anchor : Anchor, optional
        By default ``answers`` where people answered freely, else ``outcomes``.
    covariates : pandas.DataFrame, optional
        See :func:`shannon_game.models.participant_model`.
    report, law
        See :func:`shannon_game.models.participant_model`.
    draws, tune, chains : int
        Draws of each chain of Hamiltonian Monte Carlo, from the Gaussian around the mode, and how many are left out
        before them.
    cores : int, optional
        Has no effect: the chains take turns in one process.
    target_accept : float
        Sets the first step.
    retries : int
        How often draws are added to those that miss the thresholds, as many as their effective number says, at most as
        many again. After divergent transitions twice as many are made anew, with half the distance of `target_accept`
        to 1. Chains that are in different places get no more.
    sampler : str
        ``pymc`` alone.
    thresholds : GateThresholds, optional
        What the gap and k0 have to reach.

    Examples
    --------
    >>> from shannon_game import inference, models
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> data = models.participant_data(comparison_study())
    >>> fit = inference.fit_participants(data, draws=10, tune=10)
    >>> fit.item_gap_nats.shape, list(fit.summary().index)
    ((40, 6), ['gap_nats', 'k0', 'temperature'])
    """
    if sampler != PYMC:
        raise unknown_choice("sampler of the participant model", sampler, [PYMC])
    p = priors or ParticipantPriors()
    anchor = anchor or Anchor("answers" if data.has_answers or data.is_player else "outcomes")
    rng = np.random.default_rng(seed)
    scale = anchor.k0 if anchor.kind.fixes_k0 and not data.is_player else None
    compiled = compiled_for(data, p, scale, covariates=covariates, report=report, law=law)
    if anchor.kind.of_outcomes and scale is not None:
        for _ in range(_ROUNDS):
            belief = compiled.at(scale).belief(_FIRST_DRAWS, rng)
            step = float(np.median(outcome_temperature(belief, np.ones(data.item.size), objective=anchor.objective)))
            scale = float(np.clip(scale / step, *SCALES))
            # at a scale that is off by so much the priors, meant for the right one, hardly distort the temperature
            if 1 / _NEAR_ENOUGH < step < _NEAR_ENOUGH:
                break
    compiled.at(scale)
    earlier: tuple[InferenceData, SharedBelief] | None = None
    for left in reversed(range(retries + 1)):
        lengths = {"draws": draws, "tune": tune, "chains": chains, "target_accept": target_accept}
        idata, belief = compiled.draws(rng, earlier, **lengths)
        fit = _judged(compiled, anchor, rng, idata, belief, priors=p, scale=scale, thresholds=thresholds or REPORTED)
        if fit.convergence.passed or not left or fit.convergence.r_hat_max > _APART:
            break
        if fit.convergence.n_divergent:
            earlier, draws, target_accept = None, 2 * draws, (1 + target_accept) / 2
        else:
            draws = _further(fit.convergence, thresholds or REPORTED, group(idata, "posterior"))
            earlier = idata, belief
    return fit if data.is_player else judged_by_outcomes(fit)


def _further(found: Convergence, wanted: GateThresholds, posterior: xr.Dataset) -> int:
    """Draws of each chain to add, from a quarter of those that there are to as many."""
    short = max(wanted.ess_bulk / found.ess_bulk_min, wanted.ess_tail / found.ess_tail_min)
    return int(np.ceil(posterior.sizes["draw"] * np.clip(_SPARE * short - 1, 0.25, 1)))


def tail_scales(data: ParticipantData, rng: np.random.Generator, n: int, *, shared_bias: bool) -> FloatArray:
    """Draw what the belief on tokens never drawn is multiplied by, (draw,)."""
    log_scale = 0.0 if data.has_answers else rng.uniform(0, np.log(2) if shared_bias else 1.0, n)
    return np.asarray(np.exp(log_scale * np.ones(n)), dtype=float)


def judged_by_outcomes(fit: ParticipantFit) -> ParticipantFit:
    """Let a fit fail its check whose scale rests on the outcomes of too few items."""
    n_compared = np.unique(fit.data.row_item).size
    if not fit.anchor.kind.of_outcomes or n_compared >= OUTCOME_ITEMS:
        return fit
    problem = (
        f"outcomes of {n_compared} items do not fix the scale of reports, at least {OUTCOME_ITEMS} are wanted; "
        "collect free answers, or assume a scale (anchor=assumed)"
    )
    reasons = (*fit.convergence.reasons, problem)
    return replace(fit, convergence=replace(fit.convergence, passed=False, reasons=reasons))


def _judged(
    compiled: Compiled,
    anchor: Anchor,
    rng: np.random.Generator,
    idata: InferenceData,
    belief: SharedBelief,
    *,
    priors: ParticipantPriors,
    scale: float | None,
    thresholds: GateThresholds,
) -> ParticipantFit:
    """What follows from draws of the posterior, and whether they can be believed."""
    data = compiled.data
    temperature = np.ones(belief.n_draws) if data.is_player else anchor.temperature(belief, rng)
    posterior, stats = group(idata, "posterior"), group(idata, "sample_stats")
    item_gap = loss_gap(belief, temperature)
    mean = item_gap.mean(axis=1).reshape(posterior.sizes["chain"], posterior.sizes["draw"])
    tail_scale = tail_scales(data, rng, belief.n_draws, shared_bias="bias_mean" in posterior)
    if (tail_scale != 1).any():
        item_gap = loss_gap(belief, temperature, tail_scale)
    gap = xr.Variable(("chain", "draw"), mean, {"description": DESCRIPTIONS["gap"]})
    posterior = posterior.assign(gap=gap)
    checked = posterior[[name for name in CHECKED if name in posterior]]
    return ParticipantFit(
        data=data,
        anchor=anchor,
        priors=priors,
        scale=float("nan") if scale is None else scale,
        idata=from_groups({"posterior": posterior, "sample_stats": stats}),
        convergence=check_convergence(
            from_groups({"posterior": checked, "sample_stats": stats}),
            thresholds,
            fixed=() if scale is None else ("k0",),
        ),
        belief=belief,
        temperature=temperature,
        item_gap_nats=item_gap,
        tail_scale=tail_scale,
        discrepancy=rng.normal(size=(belief.n_draws, 2)) * [priors.form, priors.uninformed],
        compiled=compiled,
    )


class Compiled:
    """A model compiled, which fits share, and the Gaussian of one of them at one scale after the other."""

    def __init__(self, model: pm.Model, data: ParticipantData, made_of: Sequence[Any]) -> None:
        inputs = {str(at): tensor for at, tensor in enumerate(model.latent_inputs)}
        self.program = Program(model, inputs, model.spreads)
        self.of(data, made_of)

    def of(self, data: ParticipantData, made_of: Sequence[Any]) -> Compiled:
        """Begin a fit, in place, whose priors are the first that it is made of."""
        self.data, self.made_of = data, made_of
        self.scale: float | None = None
        self.near: Gaussian | None = None
        self.program.precision = []
        return self

    def at(self, scale: float | None) -> Compiled:
        """Move the Gaussian to this scale, in place; return this object."""
        self.scale = scale
        self._hold()
        self.gaussian = fit_gaussian(self.program, near=self.near, before=self.set_windows)
        self.near, self.precision = self.gaussian, self.program.precision
        return self

    def again(self) -> None:
        """Give the program, which another fit may have had since, what this fit is of."""
        self._hold()
        self.program.precision = self.precision
        self.set_windows(self.gaussian.mode)

    def _hold(self) -> None:
        model, self.program.held_by = self.program.model, self
        set_priors(model, self.made_of[0], self.data)
        if self.scale is not None:
            model.set_data("scale", self.scale)

    def set_windows(self, x: FloatArray, **how: Any) -> None:
        """Move the windows of the grids to parameters, by default with the reports of this fit."""
        set_windows(self.program.model, lambda: self.program.wanted(x), **{"data": self.data, **how})

    def belief(self, n: int, rng: np.random.Generator, gaussian: Gaussian | None = None) -> SharedBelief:
        """Draw the belief alone, by default at this fit's Gaussian."""
        if self.program.held_by is not self:
            self.again()
        points = (gaussian or self.gaussian).points(n, rng)
        return self.belief_given((self.program.wanted(x) for x in points), rng)

    def draws(
        self, rng: np.random.Generator, earlier: tuple[InferenceData, SharedBelief] | None = None, **lengths: Any
    ) -> tuple[InferenceData, SharedBelief]:
        """Draws of the posterior, and of the belief given each, with `earlier` ones before them."""
        # a fit that is taken from an earlier run leaves the generator where one that is made leaves it
        seed = int(rng.integers(2**31))
        of = [self.data, self.made_of, self.scale, seed, lengths]
        if earlier is not None:
            lengths |= {"tune": 0, "after": self._points(earlier[0])}
        idata = kept.posterior(
            "participants",
            of=of,
            draw=lambda: trajectories(self.program, self.gaussian, np.random.default_rng(seed), **lengths),
        )
        points = self._points(idata)
        belief = self.belief_given((self.program.wanted(x) for x in points.reshape(-1, points.shape[-1])), rng)
        if earlier is None:
            return idata, belief
        names = ("posterior", "sample_stats")
        both = {name: xr.concat([group(one, name) for one in (earlier[0], idata)], "draw") for name in names}
        idata = from_groups({name: one.assign_coords(draw=range(one.sizes["draw"])) for name, one in both.items()})
        return idata, earlier[1].joined(belief, n_chains=len(points))

    def _points(self, idata: InferenceData) -> FloatArray:
        """Unconstrained parameters of draws, (chain, draw, parameter)."""
        posterior = group(idata, "posterior")
        names = [one.name for one in self.program.model.free_RVs]
        columns = [posterior[name].transpose("chain", "draw", ...).to_numpy() for name in names]
        rows = zip(*(one.reshape(-1, *one.shape[2:]) for one in columns), strict=True)
        points = np.stack([self.program.at(dict(zip(names, row, strict=True))) for row in rows])
        return points.reshape(posterior.sizes["chain"], posterior.sizes["draw"], -1)

    @cached_property
    def chances_of(self) -> Any:
        """Probability of every value of the scale by report, at the model's ``drawn_log_odds``, of its variables."""
        return self.program.compiled([self.program.model.box_chance], self.program.model.free_RVs)

    def belief_given(
        self, inputs: Iterable[list[Any]], rng: np.random.Generator, *, of_law: bool = False
    ) -> SharedBelief:
        """Draw the belief once given each of the inputs of the likelihood; `of_law`: as if nothing was answered."""
        model, data = self.program.model, self.data
        table, grid, drawn, laws = model.table, model.grid, [], []
        for one in inputs:
            seed = int(rng.integers(2**31))
            drawn.append(law_words(model, one, seed) if of_law else draw_words(model.latent_words, one, seed))
            laws.append(np.asarray(one[0], dtype=np.float32))
        target, lambda_place, token = (np.stack(places) for places in zip(*drawn, strict=True))
        return SharedBelief(
            data=data,
            target=grid.t_values[target],
            token=grid.e_values[token],
            law=np.stack(laws),
            e=grid.e_values,
            rest_bin=table.rest_bin,
            silence=np.ones_like(table.silence) if of_law else table.silence,
            lambda_place=lambda_place,
            noise=rng.normal(size=(*target.shape, 2)),
        )


_compiled: dict[str, Compiled] = {}
"""The last models, by what is compiled into them."""
_N_COMPILED = 4
_NOT_COMPILED = {"study", "generator", "row_box", "row_low", "row_high", "token_shown", "target_shown"}
_NOT_COMPILED |= {"answer_participant"}
"""Fields of data that are no constants of a model."""


def compiled_for(data: ParticipantData, priors: ParticipantPriors, scale: float | None, **more: Any) -> Compiled:
    """Compile the model, or take one whose words, answers and people are the same: priors and reports may be others."""
    made_of = priors, *more.values()
    its = {name: value for name, value in vars(data).items() if name not in _NOT_COMPILED}
    its |= {"participant": data.participant.size} if data.is_player else {}
    try:
        key = content_digest([its, scale is None, *made_of[1:]])
    except UnsureError:
        key = ""
    if found := _compiled.pop(key, None):
        found = copy(found).of(data, made_of)
    else:
        model = participant_model(data, priors, k0=scale, **more)
        found = Compiled(model, data, made_of)
    if key:
        _compiled[key] = found
        for old in [*_compiled][:-_N_COMPILED]:
            del _compiled[old]
    return found


def design_matrix(formula: str, people: pd.DataFrame) -> pd.DataFrame:
    """Columns of a formula on covariates of participants, without an intercept.

    Parameters
    ----------
    formula : str
        Such as ``age + expertise``, in the language of lme4 and bambi without random effects.
    people : pandas.DataFrame
        One row per participant, whose id is its index.

    Returns
    -------
    pandas.DataFrame
        For ``covariates`` of :func:`fit_participants`; the index is that of `people`.

    Examples
    --------
    >>> from shannon_game import inference
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [20, 30, 40], "expert": ["no", "yes", "yes"]}, index=["p1", "p2", "p3"])
    >>> inference.design_matrix("age + expert", people).columns.tolist()
    ['age', 'expert[yes]']
    """
    from formulae import design_matrices  # noqa: PLC0415 - imports in half a second, and few need it

    try:
        found = design_matrices(formula, people.reset_index(drop=True), na_action="error").common
    except Exception as error:
        raise InputError(f"is {formula!r}: {error}", field="people") from error
    columns = pd.DataFrame() if found is None else found.as_dataframe().drop(columns="Intercept", errors="ignore")
    if not columns.shape[1]:
        raise InputError(f"is {formula!r}, should name columns of the table of people", field="people")
    found_columns: pd.DataFrame = columns.set_axis(people.index)
    return found_columns


def top1_weights(model_rate: Sequence[float] | FloatArray, rate: float, se: float) -> FloatArray:
    r"""Weights of draws under the soft constraint that people's most probable word is right at a known rate.

    .. math:: w_i \propto \exp\left(-\frac{(r_i - r)^2}{2\, \mathrm{se}^2}\right)
    """
    if not 0 < rate < 1:
        raise InputError(f"is {rate}, should be between 0 and 1", field="top1.rate")
    if not (np.isfinite(se) and se > 0):
        raise InputError(f"is {se}, should be a positive number", field="top1.se")
    log_weight = -((np.asarray(model_rate, dtype=float) - rate) ** 2) / (2 * se**2)
    weight = np.exp(log_weight - log_weight.max())
    normalised: FloatArray = weight / weight.sum()
    return normalised
