"""``+exp=human_loss``: the loss of people's shared belief beside that of language models, and what it rests on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shannon_game.estimators.comparison import HUMAN, RoundingScheme, rounding_scheme
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import word
from shannon_game.experiments.comparison import estimates
from shannon_game.experiments.comparison.human_loss.analyses import (
    KIND,
    NO_ROUNDING,
    Analysis,
    Case,
    HumanLossRow,
    main_rows,
)
from shannon_game.experiments.comparison.human_loss.figures import human_loss_figures
from shannon_game.experiments.comparison.human_loss.rows import LossRows
from shannon_game.experiments.comparison.human_loss.sentences import sentences
from shannon_game.experiments.harness import bayes
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference import Anchor, ParticipantFit, design_matrix, fit_participants, whole_posterior
from shannon_game.inference.comparison.anchors import KINDS, AnchorName
from shannon_game.inference.comparison.participant_checks import alarms, check_camps
from shannon_game.inference.comparison.participant_fit import REPORTED
from shannon_game.inference.comparison.participant_sensitivity import unusual_participants, without_shared_bias
from shannon_game.inference.posterior.arviz_adapter import InferenceData
from shannon_game.inference.posterior.thresholds import GateThresholds
from shannon_game.inference.progress import advance
from shannon_game.inference.settings import Names, Positive, Probability, Settings, Text, numbers_of
from shannon_game.models import ParticipantPriors, participant_data
from shannon_game.models.comparison.participant_data import without_participants

_RETRIES = 3


class Top1Settings(Settings):
    """The share of people's most probable words that are right, as a soft constraint in rows of their own."""

    rate: Probability | None = None
    """Measured share; null only reports what the model implies. In the game of guessing the next token people scored
    0.286 on text like that of the comparison game (section 3 of its report)."""
    se: Positive = 0.06
    """How far the items of the study may be from it."""


class HumanLossSettings(estimates.ComparisonSettings, bayes.PosteriorSettings):
    sampler: bayes.SamplerSettings = bayes.SamplerSettings(name="pymc", draws=90, tune=10, target_accept=0.8)
    """How Hamiltonian Monte Carlo draws from the posteriors, whose density PyMC compiles, in one process (cores has no
    effect). To draws that miss the gate at most as many are added, up to three times; after divergent transitions twice
    as many are made anew, with half the distance of target_accept to 1."""
    gate: Annotated[GateThresholds, numbers_of(GateThresholds)] = REPORTED
    """What the gap and k0 must reach; the run ends with exit code 3 where a fit misses it (r_hat, ess_bulk, ess_tail,
    divergent, bfmi)."""
    anchor: AnchorName | None = None
    """Where the scale of people's belief comes from: their free answers, which token was true, or an assumption; null
    takes the free answers of a study that has them, else the outcomes."""
    k0: Annotated[float, Field(ge=0.05, le=20)] = 1.0
    """The typical slope of reports on the log-odds of the belief where it is assumed; 1: reports are right on average
    in log-odds."""
    objective: Literal["rank", "pair"] = "rank"
    """How the outcomes fix the scale: by all tokens shown on an item together, or pair by pair."""
    grid: str | None = None
    """Name of the rounding whose values participants could report; null takes the scale that a simulated design names,
    else those of ``rounding``."""
    report: Literal["shared_bias", "linear", "pulled", "prospect", "own_lapses", "equation_6"] = "shared_bias"
    """How people's reports come from their log-odds. ``shared_bias`` also gets a row without the bias that all share,
    and the report quotes the hull of both intervals."""
    leave_out: Literal["auto"] | Names = "auto"
    """Participants to leave out in a second analysis: ``auto`` takes those with nearly all answers at the ends of the
    scale, or at 50%, where the others have few there; [] makes no second analysis."""
    people: Text | None = None
    """Formula of what ln slope, bias and ln noise of participants depend on, such as "age + expertise": variables of
    the study's responses that every participant has one value of; covariates.csv has their effects."""
    top1: Top1Settings = Top1Settings()
    """The measured top-1 rate."""
    sensitivity: bool = True
    """Leave out every single participant, and halve and double the standard deviations of the priors."""
    priors: Annotated[ParticipantPriors, numbers_of(ParticipantPriors)] = ParticipantPriors()
    """Weak priors, only those to change (:class:`~shannon_game.models.comparison.participants.ParticipantPriors`)."""

    @model_validator(mode="after")
    def _grid_exists(self) -> HumanLossSettings:
        if self.grid is not None:
            rounding_scheme(self.grid)
        return self


@experiment(HumanLossSettings, row=HumanLossRow)
def human_loss(study: xr.Dataset, settings: HumanLossSettings) -> ExperimentResult:
    """Estimate the loss of the belief that people share, beside that of every language model as a player.

    One row per language model and rounding; of people one per anchor that the study allows, without unusual
    participants, without each one, of each camp and of both pooled where the check of camps rings, with other priors,
    and in closed form. The posteriors are those of people.

    Examples
    --------
    >>> from shannon_game import human_loss, simulated
    >>> study = simulated(n_items=12, n_reference_items=30, vocab_size=300, n_candidates=40, n_participants=8)
    >>> result = human_loss(study, players="lm-weak", rounding="none")
    >>> result.table["analysis"].tolist()
    ['lm-weak, rounding none']
    """
    study, control = estimates.asked_for(study, settings)
    players = estimates.chosen_players(study, settings.players)
    # data: mistakes in them, and in who is left out, come before any fit
    cases = [case for name in players if name != HUMAN for case in _player_cases(study, name, settings)]
    cases += _people_cases(study, settings) if HUMAN in players else []
    with bayes.several_fits(len(cases), settings.sampler):
        fits: dict[str, ParticipantFit] = {}
        for case in cases:
            if (fit := _weighted(case, fits, settings) or _fit(case, settings)) is not None:
                fits[case.name] = fit
            advance(bayes.FITS)
        posteriors = _posteriors(cases, fits, settings)
        made = LossRows(study, control, settings, fits, _alarms(cases, fits, settings))
        rows = list(made.rows(cases))
    table = HumanLossRow.table([row.cells for row in rows])
    # figures and sentences take the analyses themselves, not what they are called
    typed = table.assign(**{KIND: pd.Series([row.analysis for row in rows], dtype=object)})
    dataset = made.dataset(rows, table)
    found = {name: fit.convergence for name, fit in fits.items()}
    return ExperimentResult(
        table=table,
        dataset=dataset,
        tables=made.people(),
        figures=human_loss_figures(typed, dataset),
        text=sentences(typed, dataset),
        warnings=(*bayes.unconverged(found), *made.problems, *_left_out(cases)),
        gate_failed=bayes.gate_failed(settings, found),
        posteriors=posteriors,
        on_screen=main_rows(typed),
    )


def _posteriors(
    cases: list[Case], fits: dict[str, ParticipantFit], settings: HumanLossSettings
) -> dict[str, InferenceData]:
    """Posteriors of people with all groups, by the names of their files."""
    if not settings.save_posterior:
        return {}
    return {
        case.file: whole_posterior(fits[case.name], seed=bayes.sampler_seed(settings.seed, f"predictive {case.name}"))
        for case in cases
        if case.file
    }


def _alarms(cases: list[Case], fits: dict[str, ParticipantFit], settings: HumanLossSettings) -> dict[str, list[str]]:
    """What the checks of people say of the main fits, by the names of their cases."""
    return {
        case.name: alarms(case.data, fits[case.name].idata, rng_for(settings.seed, f"checks {case.name}"))
        for case in cases
        if case.file
    }


def _left_out(cases: list[Case]) -> list[str]:
    n = max((case.data.n_other_reference for case in cases), default=0)
    return [f"{n} reports are left out: they compare two candidates, neither of them the target"] if n else []


def _player_cases(study: xr.Dataset, name: str, settings: HumanLossSettings) -> Iterator[Case]:
    for scheme in estimates.compared_schemes(settings.rounding):
        data = participant_data(study, player=name, rounding=None if scheme == NO_ROUNDING else scheme)
        yield Case(Analysis.PLAYER, data, name, scheme)


def _people_cases(study: xr.Dataset, settings: HumanLossSettings) -> Iterator[Case]:
    data = participant_data(study, _grid(study, settings))
    first, *others = _anchors(settings, data.has_answers)
    left_out = unusual_participants(data) if settings.leave_out == "auto" else settings.leave_out
    covariates = _covariates(study, settings.people)
    everyone = Case(Analysis.EVERYONE, data, anchor=first, covariates=covariates, report=settings.report)
    yield everyone
    if settings.report == "shared_bias":
        yield replace(everyone, analysis=Analysis.NO_SHARED_BIAS, report="linear")
    if left_out:
        yield replace(everyone, analysis=Analysis.WITHOUT, data=without_participants(data, left_out), left_out=left_out)
    camps = check_camps(data, rng_for(settings.seed, f"checks {everyone.name}"))
    if camps.rings:
        for number, own in enumerate((~camps.second, camps.second), start=1):
            of = participant_data(_of_people(study, data.participant[own]), _grid(study, settings))
            out = data.participant[~own].tolist()
            yield replace(everyone, analysis=Analysis.CAMP, of=str(number), data=of, left_out=out)
    for anchor in others:
        yield replace(everyone, analysis=Analysis.ANCHOR, of=anchor.name, anchor=anchor)


def _of_people(study: xr.Dataset, names: NDArray[np.str_]) -> xr.Dataset:
    """Keep what some people said: their reports, and their free answers."""
    of = {"response": "participant", "answer": "answer_participant"}
    kept = {dim: np.isin(study[name].to_numpy().astype(str), names) for dim, name in of.items() if dim in study.dims}
    return study.isel({dim: np.flatnonzero(its) for dim, its in kept.items()})


def _grid(study: xr.Dataset, settings: HumanLossSettings) -> RoundingScheme:
    if settings.grid is not None:
        return rounding_scheme(settings.grid)
    own = json.loads(study.attrs["design"]).get("scale") if "design" in study.attrs else None
    if own is None:
        return settings.rounding.scheme
    return RoundingScheme(**own) if isinstance(own, dict) else rounding_scheme(own)


def _anchors(settings: HumanLossSettings, has_answers: bool) -> list[Anchor]:
    """The one asked for, and another to compare: the outcomes with an assumption, or with free answers."""
    name = settings.anchor or ("answers" if has_answers else "outcomes")
    kind = KINDS[name]
    if not (kind.fixes_k0 or has_answers):
        problem = f"is 'answers', but nobody answered freely in this study; should be outcomes, assumed or {word(None)}"
        raise InputError(problem, field="anchor")
    if not kind.of_outcomes:
        return [Anchor(name, k0=settings.k0)]
    other = Anchor("answers") if has_answers else Anchor("assumed", k0=settings.k0)
    return [Anchor(name, objective=settings.objective), other]


def _covariates(study: xr.Dataset, formula: str | None) -> pd.DataFrame | None:
    """Columns of the formula for people, from variables of the responses that each of them has one value of."""
    if formula is None:
        return None
    every = {str(name): of.to_numpy() for name, of in study.data_vars.items() if of.dims == ("response",)}
    people = pd.DataFrame(every).groupby(every["participant"].astype(str))
    constant = people.nunique().max() <= 1
    return design_matrix(formula, people.first().loc[:, constant[constant].index])


def _fit(case: Case, settings: HumanLossSettings) -> ParticipantFit | None:
    fit = None
    if case.player != case.data.generator or case.rounding != NO_ROUNDING:
        with bayes.timed(case.name):
            fit = fit_participants(
                case.data,
                anchor=case.anchor,
                covariates=case.covariates,
                report=case.report,
                priors=settings.priors,
                thresholds=settings.gate,
                retries=_RETRIES,
                seed=bayes.sampler_seed(settings.seed, case.name),
                **settings.sampler.arguments,
            )
    return fit


def _weighted(case: Case, fits: dict[str, ParticipantFit], settings: HumanLossSettings) -> ParticipantFit | None:
    """Everyone's fit without the bias that all share, where its draws are enough for that."""
    if case.analysis is not Analysis.NO_SHARED_BIAS:
        return None
    return without_shared_bias(fits[replace(case, analysis=Analysis.EVERYONE).name], rng_for(settings.seed, case.name))
