"""``+exp=free_answers``: the human loss where people also answered freely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from estimators.comparison import HUMAN
from estimators.layout import item_labels
from experiments.comparison.bridge_report import bridge_warnings, left_out_warnings
from experiments.comparison.caveats import caveat_warnings
from experiments.comparison.estimates import asked_for, chosen_players
from experiments.comparison.free_answers.figures import answer_figure, gap_figure
from experiments.comparison.free_answers.rows import (
    FREE_ANSWER_COLUMNS,
    People,
    classical_estimates,
    item_table,
    table_of,
)
from experiments.comparison.free_answers.settings import FreeAnswersSettings
from experiments.comparison.free_answers.summary import anchor_warnings, answer_warnings, summary
from experiments.harness.bayes import (
    KEPT,
    Fit,
    fit_model,
    gate_failed,
    sampler_seed,
    several_fits,
    timed,
    unconverged,
    with_all_groups,
)
from experiments.harness.result import ExperimentResult, experiment
from experiments.harness.settings import rng_for
from experiments.harness.tables import table_variables
from inference.comparison.expected_answers import expected_answers
from inference.comparison.free_answer_fit import compile_free_answers
from inference.comparison.free_answer_gap import answered_temperature, tempered_gap
from inference.posterior.item_draws import flat_draws, thinned
from models.comparison.free_answer_data import FreeAnswerData, free_answer_data

if TYPE_CHECKING:
    from inference.posterior.arviz_adapter import InferenceData

__all__ = ["FREE_ANSWER_COLUMNS", "free_answers"]

_PURPOSE = "free answers"
_ON_SCREEN = (
    *("player", "method", "gap_nats", "gap_lower_nats", "gap_upper_nats", "caveat", "true_gap_nats", "perplexity"),
    *("p_people_worse", "converged", "k0_median", "k0_lower", "k0_upper"),
)


@experiment(FreeAnswersSettings)
def free_answers(study: xr.Dataset, settings: FreeAnswersSettings) -> ExperimentResult:
    """Fit one belief to people's free answers and reports, beside the bridge, equation 5 and the language models.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study with free answers and the generator's whole distribution (``reference_logprob``).
    settings : FreeAnswersSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        :data:`~experiments.comparison.free_answers.rows.FREE_ANSWER_COLUMNS`; a posterior. Its ``tables`` have one
        row an item, and one a group of tokens (``answers``: given and expected).

    Raises
    ------
    InputError
        If the study has no free answers or not the whole distribution, or a report is not on the grid.

    Examples
    --------
    >>> from estimators.comparison.examples import designed_study
    >>> from experiments import free_answers
    >>> result = free_answers(designed_study(), sampler={"draws": 500, "chains": 2})  # doctest: +SKIP
    """
    models = [player for player in chosen_players(study, settings.players) if player != HUMAN]
    study, control = asked_for(study, settings)
    data = free_answer_data(study, settings.grid)
    classical, problems = classical_estimates(study, settings)
    fit, posterior = _fitted(data, settings)
    people = _people(study, data, fit, control, settings)
    answers = expected_answers(fit.posterior, data, rng_for(settings.seed, "expected answers"))
    bins = answers.summary(settings.interval)
    table = table_of(study, people, classical, models, settings)
    items = item_table(study, people, classical, models, settings.tail)
    verdict = {_PURPOSE: fit.convergence}
    name = str(study.attrs["name"])
    return ExperimentResult(
        table=table,
        dataset=_dataset(table, people, items, bins),
        tables={"items": items, "answers": bins},
        figures={
            "free_answers": gap_figure(table, name, settings.interval, settings.estimator.n_se),
            "answers": answer_figure(bins, name, settings.interval),
        },
        text=summary(table, bins, settings.interval),
        warnings=(
            *unconverged(verdict),
            *caveat_warnings(table),
            *answer_warnings(study, data, settings.max_at_ends, settings.answer_exponent),
            *anchor_warnings(table, settings.interval),
            *problems,
            *bridge_warnings(classical),
            *left_out_warnings(study, [each for each in classical if each.gap.estimator != "bridge"]),
        ),
        gate_failed=gate_failed(settings, verdict),
        posteriors={} if posterior is None else {HUMAN: posterior},
        on_screen=table[list(_ON_SCREEN)],
    )


def _fitted(data: FreeAnswerData, settings: FreeAnswersSettings) -> tuple[Fit, InferenceData | None]:
    """Draws of the posterior, and about 2,000 of them with all groups where they are to be saved."""
    priors = replace(settings.priors, people=settings.people_priors)
    with several_fits(1, settings.sampler):
        with timed("a first chain of the model of free answers"):
            program = compile_free_answers(data, priors, seed=sampler_seed(settings.seed, "first chain"))
        with timed("free answers and reports"):
            fit = fit_model(settings, program, _PURPOSE)
    if not settings.save_posterior:
        return fit, None
    return fit, with_all_groups(fit.idata, program, settings.seed, _PURPOSE, keep=KEPT)


def _people(study: xr.Dataset, data: FreeAnswerData, fit: Fit, control: str, settings: FreeAnswersSettings) -> People:
    """Gaps to the control model; the model measures those to the model that drew the candidates."""
    posterior = thinned(fit.posterior, KEPT)
    k0 = flat_draws(posterior, ("k0",), data.item, source="posterior of free answers")["k0"].ravel()
    low, high = np.log(np.broadcast_to(settings.answer_exponent, 2))
    exponent = np.exp(rng_for(settings.seed, "answer exponent").uniform(low, high, k0.size))
    scale = outcome_gap = None
    if data.token_drawn.any():
        weight = rng_for(settings.seed, "outcomes").exponential(size=(k0.size, data.item.size))
        wanted = answered_temperature(posterior, data, weight)
        scale, outcome_gap = wanted * exponent, tempered_gap(posterior, data, wanted).mean(axis=1)
    target = study["target_logprob"].assign_coords(item=item_labels(study)).sel(item=data.item)
    shift = (target.sel(model=control) - target.sel(model=data.generator)).to_numpy()
    return People(
        data=data,
        item_gap_nats=tempered_gap(posterior, data, 1 / exponent) + shift,
        k0=k0 * exponent,
        scale=scale,
        outcome_gap_nats=None if outcome_gap is None else outcome_gap + shift.mean(),
        asked=np.isin(item_labels(study), data.item),
        control=control,
        convergence=fit.convergence,
    )


def _dataset(table: pd.DataFrame, people: People, items: pd.DataFrame, bins: pd.DataFrame) -> xr.Dataset:
    """Everything that the figures show, and every draw of the mean gap."""
    variables: dict[str, Any] = {
        "gap_draws_nats": ("draw", people.gap_nats, {"units": "nats"}),
        "k0_draws": ("draw", people.k0),
        **table_variables(table, "row", but=["generator"]),
    }
    variables |= _prefixed("item", items, but=["item", "context", "target"])
    variables |= _prefixed("bin", bins)
    coords = {"item": items["item"].to_numpy()}
    attrs = {"generator": people.control}
    return xr.Dataset(variables, coords=coords, attrs=attrs).set_coords(["player", "method"])


def _prefixed(name: str, table: pd.DataFrame, but: tuple[str, ...] | list[str] = ()) -> Mapping[str, Any]:
    return {f"{name}_{each}": value for each, value in table_variables(table, name, but=list(but)).items()}
