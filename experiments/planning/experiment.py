"""``+exp=design``: which questions to ask, of how many people."""

from __future__ import annotations

from functools import partial

import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.choice import choice
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.experiments.planning.figures import cost_figure
from shannon_game.experiments.planning.plan import SCALES, plan_of, write_plan
from shannon_game.experiments.planning.points import design_points
from shannon_game.experiments.planning.replicates import design_table
from shannon_game.experiments.planning.settings import DesignSettings
from shannon_game.experiments.planning.summary import conclusion, design_warnings, recommended_designs, summary
from shannon_game.experiments.planning.worlds import draw_worlds, study_contexts

_ON_SCREEN = (*("game", "n_contexts", "n_people", "minutes", "width", "p_width", "coverage", "recommended"),)


@choice("look", "ahead", {"back": "shannon_game.experiments.planning.question_worth.question_worth"})
@experiment(DesignSettings)
def design(study: xr.Dataset, settings: DesignSettings) -> ExperimentResult:
    """Simulate studies of many designs with known truth, and recommend the cheapest that keeps its promise.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study with the generator's whole distribution (``reference_logprob``); what people answered in it
        is not used.

    Returns
    -------
    ExperimentResult
        One row per design.

    Raises
    ------
    InputError
        If the study has no whole distribution, a model is unknown, a pilot cannot be read, or there is no budget.

    Examples
    --------
    >>> from shannon_game import design, designed_simulated
    >>> study = designed_simulated(n_items=40, vocab_size=100)
    >>> result = design(study, games="bets", contexts=[20, 80], bets=1, n_screen=10, n_replicates=20, width_nats=2.0)
    >>> result.table[["game", "n_contexts", "n_people", "minutes"]].round(1)
       game  n_contexts  n_people  minutes
    0  bets          20        12     13.3
    1  bets          80        12     53.3
    """
    if settings.budget_minutes is None and settings.budget_money is None:
        raise InputError("is null, and budget_money too; one should be a number", field="budget_minutes")
    contexts = study_contexts(study, settings.against)
    worlds = draw_worlds(contexts, settings)
    table = design_table(design_points(settings), worlds, settings)
    dataset = xr.Dataset(table_variables(table, "row"), attrs={"against": contexts.against, "study": contexts.name})
    recommended = table[table["recommended"]]
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={"costs": cost_figure(table, contexts.name, settings.interval)},
        text=summary(table, contexts, settings),
        warnings=design_warnings(table, settings),
        conclusion=conclusion(table, settings),
        # a scale that no game offers is a simulation's
        files={
            f"plan_{row.game}.yaml": partial(write_plan, plan_of(row, settings.width_nats))
            for row in recommended_designs(table).values()
            if row is not None and row.scale in ("", *SCALES)
        },
        on_screen=(recommended if len(recommended) else table)[list(_ON_SCREEN)],
    )
