"""Fits of the participant model to people and language models, and the rows of the table that they give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import t as student_t

from shannon_game.estimators.comparison import (
    HUMAN,
    RoundingScheme,
    reference_loss,
    rounding_scheme,
    scaled_bridge,
    study_pool,
)
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.perplexity import perplexity_of_loss
from shannon_game.experiments.comparison.estimates import compared_schemes, estimate, table_row
from shannon_game.experiments.comparison.human_loss.settings import HumanLossSettings
from shannon_game.experiments.harness.bayes import FITS, convergence_columns, sampler_seed, timed
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.comparison.participant_fit import (
    Anchor,
    ParticipantFit,
    design_matrix,
    fit_participants,
    top1_weights,
)
from shannon_game.inference.comparison.participant_gap import loss_gap, outcome_temperature
from shannon_game.inference.comparison.participant_sensitivity import leave_one_out, scaled_priors
from shannon_game.inference.posterior.convergence import Convergence
from shannon_game.inference.progress import advance
from shannon_game.models.comparison.participant_data import ParticipantData, participant_data, without_participants

__all__ = ["BRIDGE", "PEOPLE", "PLAYERS", "PRIOR_FACTORS", "STEP", "WITHOUT_ONE", "LossRow", "LossRows"]

FloatArray = NDArray[np.float64]

PLAYERS, PEOPLE, STEP, BRIDGE = "model of players", "model of people", "mode without one", "scaled bridge"
EVERYONE, OUTCOMES, WITHOUT_ONE = "everyone", "outcomes", "without one"
"""What the column ``method`` says."""
PRIOR_FACTORS = {"narrow": 0.5, "wide": 2.0}
"""Other priors of the sensitivity analysis, by how much wider they are."""
_PERPLEXITY = (
    *("perplexity_median", "perplexity_posterior_lower", "perplexity_posterior_upper"),
    "true_perplexity_asked",
)
_BRIDGE_DRAWS = 999


@dataclass(frozen=True, eq=False)
class LossRow:
    """Cells of the table, draws of the gap, and its median by position of the item in the study."""

    cells: dict[str, Any]
    gap_nats: FloatArray
    item_median_nats: FloatArray


@dataclass(frozen=True, eq=False)
class LossRows:
    """Makes the rows; `fits` has those of people, `found` the checks of all, `problems` what the study does not allow.

    Gaps are to `control`; `grid` has the values that participants could report.
    """

    study: xr.Dataset
    control: str
    grid: RoundingScheme
    settings: HumanLossSettings
    found: dict[str, Convergence] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    fits: dict[str, ParticipantFit] = field(default_factory=dict)

    @cached_property
    def data(self) -> ParticipantData:
        """Reports and free answers of the participants."""
        return participant_data(self.study, self.grid)

    @cached_property
    def covariates(self) -> pd.DataFrame | None:
        """Columns of the formula for people, from variables of the responses that each of them has one value of."""
        if self.settings.people is None:
            return None
        every = {str(name): of.to_numpy() for name, of in self.study.data_vars.items() if of.dims == ("response",)}
        people = pd.DataFrame(every).groupby(every["participant"].astype(str))
        constant = people.nunique().max() <= 1
        return design_matrix(self.settings.people, people.first().loc[:, constant[constant].index])

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

    def player(self, name: str) -> Iterator[LossRow]:
        """Fit a language model as a player, unrounded and under the rounding of the settings."""
        for scheme in compared_schemes(self.settings.rounding):
            rounding = None if scheme.name == "none" else scheme
            data = participant_data(self.study, player=name, rounding=rounding)
            cells = {"what": f"{name}, rounding {scheme.name}", "method": PLAYERS, "anchor": "", "priors": "default"}
            cells |= self._equation5(self.study, name, scheme, data) | {"left_out": ""}
            if name == data.generator and rounding is None:
                advance(FITS)
                exact = np.zeros((self.settings.sampler.draws, data.item.size))
                yield self._row(cells | convergence_columns(None), data, exact[:, 0], exact)
            else:
                yield self._of_fit(self._fit(str(cells["what"]), data, None), cells)

    def people(self, what: str, anchor: Anchor, *, left_out: Sequence[str] = (), priors: str = "default") -> LossRow:
        """Fit the participants, without some and with other priors where they are named."""
        used, data = self.settings.priors, without_participants(self.data, left_out)
        used = scaled_priors(used, PRIOR_FACTORS[priors]) if priors in PRIOR_FACTORS else used
        fit = self._fit(f"people, {what}", data, anchor, priors=used, covariates=self.covariates)
        if priors not in PRIOR_FACTORS:
            self.fits[what] = fit
        cells = {"what": what, "method": PEOPLE, "anchor": anchor.name, "priors": priors}
        return self._of_fit(fit, cells | self._of_people(left_out))

    def at_outcomes(self, row: LossRow) -> LossRow:
        """Put the belief of everyone's fit at the temperature at which it fits the outcomes best; compare the two."""
        fit, tail, objective = self.fits[EVERYONE], self.settings.tail, self.settings.objective
        weight = rng_for(self.settings.seed, OUTCOMES).exponential(size=fit.item_gap_nats.shape)
        temperature = outcome_temperature(fit.belief, weight, objective=objective)
        low, high = np.quantile(temperature, [tail, 1 - tail])
        gap = loss_gap(fit.belief, temperature)
        fit = replace(fit, anchor=Anchor(OUTCOMES), temperature=temperature, item_gap_nats=gap)
        agreement = "does not contradict" if low <= 1 <= high else "does NOT agree with"
        return self._of_fit(fit, row.cells | {"what": OUTCOMES, "anchor": OUTCOMES, "agreement": agreement})

    def with_top1(self, row: LossRow, rate: float) -> LossRow:
        """Draw from the draws of a fit by how near their top-1 rate is to the measured one."""
        fit = self.fits[row.cells["what"]]
        weight = top1_weights(self.top1(fit), rate, self.settings.top1.se)
        chosen = rng_for(self.settings.seed, "top1 weights").choice(weight.size, weight.size, p=weight)
        cells = row.cells | {"what": f"{row.cells['what']}, top-1 rate", "top1_rate_given": rate}
        return self._of_fit(fit, cells, chosen)

    def top1(self, fit: ParticipantFit) -> FloatArray:
        """How often the most probable token of the shared belief is the true one, (draw,)."""
        return fit.top1_rate(rng_for(self.settings.seed, "top1"))

    def without_each(self) -> Iterator[LossRow]:
        """Leave out the reports of every single participant, without new fits."""
        fit, rng = self.fits[EVERYONE], rng_for(self.settings.seed, "leave one out")
        with timed("leaving out each participant"):
            for one in leave_one_out(fit, rng):
                # few draws: they move the whole posterior by as much as their median
                gap = fit.gap_nats + np.median(one.gap_nats) - np.median(fit.gap_nats)
                cells = {"what": WITHOUT_ONE, "method": STEP, "anchor": fit.anchor.name, "priors": "default"}
                cells |= self._of_people((one.participant,)) | {"converged": fit.convergence.passed}
                yield self._row(cells, fit.data, gap)

    def bridge(self) -> Iterator[LossRow]:
        """Estimate people's gap in closed form; nothing where the study does not allow it."""
        try:
            found = scaled_bridge(study_pool(self.study)[0])
        except InputError as problem:
            self.problems.append(f"no estimate of people by the {BRIDGE}: {problem}")
            return
        # quantiles of Student's t stand for draws
        level = (np.arange(_BRIDGE_DRAWS) + 0.5) / _BRIDGE_DRAWS
        draws = found.gap_nats + student_t.ppf(level, found.freedom) * found.se_asked_nats
        cells = {"what": BRIDGE, "method": BRIDGE, "anchor": "answers", "priors": "", "k0_median": found.slope}
        yield self._row(self._of_people(()) | cells | convergence_columns(None), self.data, draws)

    def _fit(self, what: str, data: ParticipantData, anchor: Anchor | None, **model: Any) -> ParticipantFit:
        sampler = self.settings.sampler
        arguments = sampler.arguments
        arguments |= {"priors": self.settings.priors, "thresholds": self.settings.gate, **model}
        with timed(what):
            fit = fit_participants(data, anchor=anchor, seed=sampler_seed(self.settings.seed, what), **arguments)
        advance(FITS)
        self.found[what] = fit.convergence
        return fit

    def _of_fit(self, fit: ParticipantFit, cells: dict[str, Any], at: Any = slice(None)) -> LossRow:
        """Row of a fit, or of some of its draws; people have a scale, bounds of their own mean loss, and factors."""
        data, cells = fit.data, cells | convergence_columns(fit.convergence)
        shift = self.exact_nats(data.generator, data)
        named = {"tail_share{}": fit.tail_share.mean(axis=1)}
        named["informed_gap{}_nats"] = fit.informed_gap_nats + shift[data.informed].mean()
        if not data.is_player:
            named["one_by_one_most{}_nats"] = fit.people_gap_bounds()[:, 1] + shift.mean()
            named |= {"k0{}": fit.k0, "top1_model{}": self.top1(fit)}
            models = self.models(data)
            cells |= {f"tail_factor_{name}": fit.tail_factor(gap - shift.mean()) for name, gap in models.items()}
            cells["tail_factor"] = cells[f"tail_factor_{next(iter(models))}"]
        for name, draws in named.items():
            cells |= self._quantiles(name, draws[at])
        return self._row(cells, data, fit.gap_nats[at], fit.item_gap_nats[at])

    def _row(
        self, cells: dict[str, Any], data: ParticipantData, gap_nats: FloatArray, by_item: FloatArray | None = None
    ) -> LossRow:
        """Row with its intervals; gaps come as those to the model that drew the candidates."""
        shift, items = self.exact_nats(data.generator, data), np.full(self.study.sizes["item"], np.nan)
        if by_item is not None:
            items[data.position] = np.median(by_item, axis=0) + shift
        truth = float(self.exact_nats(str(cells["player"]), data).mean())
        found = self._quantiles("gap{}_nats", gap_nats + shift.mean())
        perplexity = perplexity_of_loss(cells["reference_loss_nats"] + np.array([*found.values(), truth])).tolist()
        cells = {"agreement": "", "verdict": "", **cells, **found, **dict(zip(_PERPLEXITY, perplexity, strict=True))}
        cells |= {"true_gap_nats": truth, "error_median_nats": cells["gap_median_nats"] - truth}
        cells |= {"n_items": data.item.size, "n_responses": data.row_token.size}
        return LossRow(cells, gap_nats + shift.mean(), items)

    def _quantiles(self, name: str, draws: FloatArray) -> dict[str, float]:
        found = np.quantile(draws, [0.5, self.settings.tail, 1 - self.settings.tail]).tolist()
        return {name.format(end): at for end, at in zip(("_median", "_lower", "_upper"), found, strict=True)}

    def _of_people(self, left_out: Sequence[str]) -> dict[str, Any]:
        """Who is left out, and equation 5 from the others' answers."""
        kept = self.study.isel(response=~np.isin(self.study["participant"].to_numpy().astype(str), list(left_out)))
        cells = self._equation5(kept, HUMAN, rounding_scheme("none"), self.data)
        return cells | {"left_out": "; ".join(left_out)}

    def _equation5(
        self, study: xr.Dataset, player: str, scheme: RoundingScheme, data: ParticipantData
    ) -> dict[str, Any]:
        """Cells of equation 5, or, where the study's questions do not allow it, of what is known without."""
        try:
            return table_row(estimate(self.settings, study, player, scheme), self.control)
        except InputError as problem:
            said = f"no estimate by equation 5: {problem}"
            self.problems.extend([said] if said not in self.problems else [])
            asked = np.isin(np.arange(study.sizes["item"]), data.position)
            base = reference_loss(study, self.control, self.settings.estimator.reference, asked)
            known = {"player": player, "rounding": scheme.name, "estimator": "", "generator": self.control}
            return known | {"reference_loss_nats": base}
