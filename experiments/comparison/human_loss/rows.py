"""Rows of the table of human loss: what posteriors of the participant model and closed forms say of a loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import t as student_t

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import HUMAN, scaled_bridge
from shannon_game.estimators.comparison.perplexity import reference_loss
from shannon_game.estimators.comparison.token_pool import study_pool
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.estimators.perplexity import perplexity_of_loss
from shannon_game.experiments.comparison.estimates import EstimateRow, bars_label, estimate, estimate_row
from shannon_game.experiments.comparison.human_loss.analyses import Analysis, Case, HumanLossRow
from shannon_game.experiments.harness.bayes import convergence_columns, timed
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.harness.tables import short_names
from shannon_game.inference.comparison.anchors import Anchor
from shannon_game.inference.comparison.participant_fit import ParticipantFit, judged_by_outcomes, top1_weights
from shannon_game.inference.comparison.participant_gap import loss_gap
from shannon_game.inference.comparison.participant_sensitivity import (
    leave_one_out,
    pooled_gap,
    scaled_priors,
    with_priors,
)
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.models.comparison.participant_data import ParticipantData

if TYPE_CHECKING:
    from shannon_game.experiments.comparison.human_loss.experiment import HumanLossSettings


PRIOR_FACTORS = {"narrow": 0.5, "wide": 2.0}
"""Other priors of the sensitivity analysis, by how much wider they are."""

_ENDS = ("median", "lower", "upper")
ASSUMED_SCALES = np.geomspace(0.1, 2.0, 25)
"""Slopes of reports for which the gap is drawn, whatever the anchor."""
_PERPLEXITY = ("perplexity_median", "perplexity_posterior_lower", "perplexity_posterior_upper", "true_perplexity_asked")
_BRIDGE_DRAWS = 999
_SHOWN = (Analysis.EVERYONE, Analysis.WITHOUT)
_EVERYONE = Analysis.EVERYONE.pattern


@dataclass(frozen=True, eq=False)
class LossRow:
    """An analysis: cells of the table, draws of the gap, and its median by position of the item in the study."""

    analysis: Analysis
    cells: dict[str, Any]
    gap_nats: FloatArray
    item_median_nats: FloatArray


@dataclass(frozen=True, eq=False)
class LossRows:
    """Makes the rows of a study; gaps are to `control`, and `problems` collects what the study does not allow."""

    study: xr.Dataset
    control: str
    settings: HumanLossSettings
    fits: Mapping[str, ParticipantFit]
    alarms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def rows(self, cases: Sequence[Case]) -> Iterator[LossRow]:
        """Rows of the fits, and what follows from everyone's: other scales, the top-1 rate, and each one left out."""
        rows = {case.name: self._of_fit(self.fits.get(case.name), case, self._cells(case)) for case in cases}
        yield from rows.values()
        for everyone in [case for case in cases if case.analysis is Analysis.EVERYONE]:
            fit = self.fits[everyone.name]
            if camps := [self.fits[case.name] for case in cases if case.analysis is Analysis.CAMP]:
                yield self._pooled(everyone, camps)
            if not fit.anchor.kind.fixes_k0:
                yield self._at_outcomes(everyone, fit, rows[everyone.name].cells)
            if (rate := self.settings.top1.rate) is not None:
                shown = [case for case in cases if case.analysis in _SHOWN]
                yield from (self._near_top1(case, rows[case.name].cells, rate) for case in shown)
            if fit.data.has_answers:
                yield from self._bridge(everyone)
            if self.settings.sensitivity and fit.data.participant.size > 1:
                yield from self._without_each(everyone, fit)
            if self.settings.sensitivity:
                yield from self._other_priors(everyone, fit)

    @property
    def shown(self) -> dict[str, ParticipantFit]:
        """Fits of everyone, and of those who are not left out, by what their rows are called."""
        names = {one.pattern: f"people, {one.pattern}" for one in _SHOWN}
        return {name: self.fits[full] for name, full in names.items() if full in self.fits}

    def _cells(self, case: Case) -> dict[str, Any]:
        left_out = np.isin(self.study["participant"].to_numpy().astype(str), list(case.left_out))
        cells: dict[str, Any] = {"analysis": case.label, "method": case.analysis.method, "priors": case.priors}
        cells |= {"anchor": case.anchor.name if case.anchor else "", "left_out": "; ".join(case.left_out)}
        cells["left_out_label"] = ", ".join(self.labels[name] for name in case.left_out)
        cells |= {"k0_true": self._true_k0() if case.player == HUMAN else np.nan, "verdict": ""}
        cells |= {"tail_factors": dict.fromkeys(self.study["model"].to_numpy().tolist(), np.nan)}
        cells["alarms"] = "; ".join(self.alarms.get(case.name, ()))
        try:
            found = estimate(self.settings, self.study.isel(response=~left_out), case.player, case.rounding)
        except InputError as problem:
            self._say(f"no estimate by equation 5: {problem}")
            asked = np.isin(np.arange(self.study.sizes["item"]), case.data.position)
            base = reference_loss(self.study, self.control, self.settings.estimator.reference, asked)
            known = {"player": case.player, "rounding": case.rounding.name, "estimator": "", "generator": self.control}
            return cells | known | {"reference_loss_nats": base}
        return cells | vars(estimate_row(found, self.control, EstimateRow))

    def _say(self, problem: str) -> None:
        self.problems.extend([problem] if problem not in self.problems else [])

    def exact_nats(self, player: str, data: ParticipantData) -> FloatArray:
        """Exact gap of a player, (item,); NaN for people whose belief nobody knows."""
        study = self.study.isel(item=data.position)
        own = study["target_logprob"].sel(model=player) if player != HUMAN else study.get("human_target_logprob")
        control: FloatArray = study["target_logprob"].sel(model=self.control).to_numpy()
        return control - (np.nan if own is None else own.to_numpy())

    def models(self, data: ParticipantData) -> dict[str, float]:
        """Exact gaps of the language models, the largest first."""
        names = self.study["model"].to_numpy().astype(str).tolist()
        gaps = {name: float(self.exact_nats(name, data).mean()) for name in names}
        return dict(sorted(gaps.items(), key=lambda model: -model[1]))

    def _top1(self, fit: ParticipantFit) -> FloatArray:
        return fit.top1_rate(rng_for(self.settings.seed, "top1"))

    def _of_fit(self, fit: ParticipantFit | None, case: Case, cells: dict[str, Any], at: Any = slice(None)) -> LossRow:
        """Row of a fit, of some of its draws, or of what needs none: the generator as a player."""
        data = case.data
        if fit is None:
            exact = np.zeros((1, data.item.size))
            return self._row(case, cells | convergence_columns(None), exact[:, 0], exact)
        cells = cells | convergence_columns(fit.convergence)
        shift = self.exact_nats(data.generator, data)
        named = {"tail_share{}": fit.tail_share.mean(axis=1)}
        named["gap_items_with_data{}_nats"] = fit.informed_gap_nats + shift[data.informed].mean()
        if not data.is_player:
            named["individual_gap_upper{}_nats"] = fit.people_gap_bounds()[:, 1] + shift.mean()
            named |= {"k0{}": fit.k0, "top1_model{}": self._top1(fit)}
            factors = {name: fit.tail_factor(gap - shift.mean()) for name, gap in self.models(data).items()}
            cells |= {"tail_factor": next(iter(factors.values())), "tail_factors": cells["tail_factors"] | factors}
        for name, draws in named.items():
            cells |= self._quantiles(name, draws[at])
        return self._row(case, cells, fit.gap_nats[at], fit.item_gap_nats[at])

    def _pooled(self, everyone: Case, camps: Sequence[ParticipantFit]) -> LossRow:
        """Pool the beliefs of camps, each fitted alone."""
        gap, position = pooled_gap(camps)
        data = replace(everyone.data, item=item_labels(self.study)[position], position=position)
        case = replace(everyone, analysis=Analysis.POOLED, data=data)
        cells = self._cells(replace(case, data=everyone.data))
        cells["converged"] = all(fit.convergence.passed for fit in camps)
        return self._row(case, cells, gap.mean(axis=1), gap)

    def _at_outcomes(self, everyone: Case, fit: ParticipantFit, cells: dict[str, Any]) -> LossRow:
        """Put everyone's belief at the temperature at which it fits the outcomes best, and compare the two."""
        anchor = Anchor("outcomes", objective=self.settings.objective)
        temperature = anchor.temperature(fit.belief, rng_for(self.settings.seed, "outcomes"))
        gap = loss_gap(fit.belief, temperature)
        case = replace(everyone, analysis=Analysis.OUTCOMES, anchor=anchor)
        fit = replace(fit, anchor=anchor, temperature=temperature, item_gap_nats=gap)
        fit = judged_by_outcomes(fit)
        return self._of_fit(fit, case, cells | {"analysis": case.label, "anchor": anchor.name, "alarms": ""})

    def _near_top1(self, case: Case, cells: dict[str, Any], rate: float) -> LossRow:
        """Draw from the draws of a fit by how near their top-1 rate is to the measured one."""
        fit = self.fits[case.name]
        weight = top1_weights(self._top1(fit), rate, self.settings.top1.se)
        chosen = rng_for(self.settings.seed, "top1 weights").choice(weight.size, weight.size, p=weight)
        near = replace(case, analysis=Analysis.TOP1, of=case.label)
        return self._of_fit(fit, near, cells | {"analysis": near.label, "top1_rate_given": rate}, chosen)

    def _without_each(self, everyone: Case, fit: ParticipantFit) -> Iterator[LossRow]:
        with timed("leaving out each participant"):
            for one in leave_one_out(fit, rng_for(self.settings.seed, "leave one out")):
                # few draws: they move the whole posterior by as much as their median
                gap = fit.gap_nats + np.median(one.gap_nats) - np.median(fit.gap_nats)
                case = replace(everyone, analysis=Analysis.WITHOUT_ONE, left_out=[one.participant])
                yield self._row(case, self._cells(case) | {"converged": fit.convergence.passed}, gap)

    def _other_priors(self, everyone: Case, fit: ParticipantFit) -> Iterator[LossRow]:
        with timed("other priors"):
            for name, factor in PRIOR_FACTORS.items():
                case = replace(everyone, analysis=Analysis.PRIORS, of=name, priors=name)
                rng = rng_for(self.settings.seed, case.label)
                mean = with_priors(fit, scaled_priors(fit.priors, factor), rng)
                # draws of the discrepancy, which other priors leave as they are
                gap = mean + rng.choice(fit.gap_nats - fit.item_gap_nats.mean(axis=1), mean.size)
                yield self._row(case, self._cells(case) | {"converged": fit.convergence.passed}, gap)

    def _bridge(self, everyone: Case) -> Iterator[LossRow]:
        """Estimate people's gap in closed form; nothing where the study does not allow it."""
        try:
            found = scaled_bridge(study_pool(self.study)[0])
        except InputError as problem:
            self._say(f"no estimate of people by the {Analysis.BRIDGE.method}: {problem}")
            return
        # quantiles of Student's t stand for draws
        level = (np.arange(_BRIDGE_DRAWS) + 0.5) / _BRIDGE_DRAWS
        draws = found.gap_nats + student_t.ppf(level, found.freedom) * found.se_asked_nats
        case = replace(everyone, analysis=Analysis.BRIDGE, anchor=Anchor("answers"), priors="")
        rings = "; ".join(self.alarms.get(everyone.name, ()))
        cells = self._cells(case) | {"alarms": rings, "k0_median": found.slope, **convergence_columns(None)}
        yield self._row(case, cells, draws)

    def _row(
        self, case: Case, cells: dict[str, Any], gap_nats: FloatArray, by_item: FloatArray | None = None
    ) -> LossRow:
        data = case.data
        shift, items = self.exact_nats(data.generator, data), np.full(self.study.sizes["item"], np.nan)
        if by_item is not None:
            items[data.position] = np.median(by_item, axis=0) + shift
        truth = float(self.exact_nats(case.player, data).mean())
        found = self._quantiles("gap{}_nats", gap_nats + shift.mean())
        perplexity = perplexity_of_loss(cells["reference_loss_nats"] + np.array([*found.values(), truth])).tolist()
        cells = {**cells, **found, **dict(zip(_PERPLEXITY, perplexity, strict=True))}
        cells |= {"true_gap_nats": truth, "error_median_nats": cells["gap_median_nats"] - truth}
        cells |= {"n_items": data.item.size, "n_responses": data.row_token.size}
        return LossRow(case.analysis, cells, gap_nats + shift.mean(), items)

    def _quantiles(self, name: str, draws: FloatArray) -> dict[str, float]:
        found = np.quantile(draws, [0.5, self.settings.tail, 1 - self.settings.tail]).tolist()
        return {name.format(f"_{end}"): at for end, at in zip(_ENDS, found, strict=True)}

    @cached_property
    def labels(self) -> dict[str, str]:
        """Short names of participants."""
        return short_names(np.unique(self.study["participant"].to_numpy().astype(str)))

    def _true_k0(self) -> float:
        """Geometric mean of the slopes of those who compared, where a simulation knows them; bots have none."""
        if "true_slope" not in self.study or not self.shown:
            return float("nan")
        known = self.study.sel(participant_truth=self.shown[_EVERYONE].data.participant)
        slope = known["true_slope"].to_numpy()
        slope = slope[~known["true_bot"].to_numpy()] if "true_bot" in known else slope
        return float(np.exp(np.log(slope).mean())) if slope.size else float("nan")

    def people(self) -> dict[str, pd.DataFrame]:
        """How each participant reports, and one row per covariate and what it has an effect on."""
        if not self.shown:
            return {}
        posterior = group(self.shown[_EVERYONE].idata, "posterior")
        level = [0.5, self.settings.tail, 1 - self.settings.tail]
        names, effects = posterior["participant"].to_numpy().astype(str), []
        columns: dict[str, Any] = {"participant": names, "label": list(short_names(names).values())}
        for name, unit in (("slope", ""), ("bias", "_nats"), ("noise", "_nats"), ("lapse", "")):
            ends = posterior[name].quantile(level, ("chain", "draw")).to_numpy()
            columns |= {f"{name}_{end}{unit}": at for end, at in zip(_ENDS, ends, strict=True)}
            if f"{name}_effect" in posterior:
                ends = posterior[f"{name}_effect"].quantile(level, ("chain", "draw")).T.to_numpy()
                named = zip(posterior["covariate"].to_numpy().astype(str), ends, strict=True)
                effects += [{"covariate": one, "of": name} | dict(zip(_ENDS, at, strict=True)) for one, at in named]
        tables = {"participants": pd.DataFrame(columns)}
        return tables | {"covariates": pd.DataFrame(effects)} if effects else tables

    def dataset(self, rows: Sequence[LossRow], table: pd.DataFrame) -> xr.Dataset:
        """The table, draws of every gap (NaN where a row has fewer), curves over assumed scales, and top-1 rates."""
        asked = np.flatnonzero(np.any([np.isfinite(row.item_median_nats) for row in rows], axis=0))
        draws = _side_by_side([row.gap_nats for row in rows])
        variables: dict[str, Any] = {
            "gap_draws_nats": (("estimate", "draw"), draws, {"units": "nats"}),
            "item_gap_median_nats": (("estimate", "item"), np.stack([row.item_median_nats[asked] for row in rows])),
            **HumanLossRow.variables(table, "estimate", but=["generator"]),
        }
        coords: dict[str, Any] = {"item": item_labels(self.study)[asked]}
        if self.shown:
            data, level = self.shown[_EVERYONE].data, [self.settings.tail, 0.5, 1 - self.settings.tail]
            shift, fits = self.exact_nats(data.generator, data).mean(), list(self.shown.values())
            curves = [np.quantile([fit.gap_at(k0) + shift for k0 in ASSUMED_SCALES], level, axis=1) for fit in fits]
            variables["curve_gap_nats"] = (("fit", "quantile", "k0"), np.stack(curves))
            variables["top1_draws"] = (("fit", "kept"), _side_by_side([self._top1(fit) for fit in fits]))
            coords |= {"fit": np.array(list(self.shown), dtype=object), "quantile": level, "k0": ASSUMED_SCALES}
        named = ["analysis", "player", "rounding", "method", "anchor", "left_out", "priors"]
        return xr.Dataset(variables, coords=coords, attrs=self._about()).set_coords(named)

    def _about(self) -> dict[str, Any]:
        about: dict[str, Any] = {"generator": self.control, "study": str(self.study.attrs["name"])}
        about |= {"interval": self.settings.interval}
        about["equation_5"] = bars_label(self.settings.estimator, "importance sampling (equation 5)")
        if self.settings.top1.rate is not None:
            about |= {"top1_rate": self.settings.top1.rate, "top1_se": self.settings.top1.se}
        if self.shown:
            gaps = self.models(self.shown[_EVERYONE].data)
            about |= {f"true_gap_nats_{name}": gap for name, gap in gaps.items()}
            about["whole_distributions"] = int(self.shown[_EVERYONE].data.whole)
        return about


def _side_by_side(draws: Sequence[FloatArray]) -> FloatArray:
    """Draws as rows, with NaN where some have fewer: fits draw more where they miss their check."""
    found = np.full((len(draws), max(own.size for own in draws)), np.nan)
    for row, own in zip(found, draws, strict=True):
        row[: own.size] = own
    return found
