"""``+exp=design``: which questions to ask, of how many people."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from shannon_game.estimators.comparison.planning.adaptive_study import QuestionPlan
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import word
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.report import fill
from shannon_game.experiments.harness.result import ExperimentResult, choice, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.planning.figures import GAME_LABELS, cost_figure
from shannon_game.experiments.planning.plans import SCALES, plan_of, served_study, write_plan
from shannon_game.experiments.planning.replicates import COVERAGE_SLACK, DesignRow, design_table
from shannon_game.experiments.planning.settings import ADAPTIVE, SHARE_GAMES, DesignSettings, design_points
from shannon_game.experiments.planning.worlds import N_TRIED, StudyContexts, draw_worlds, study_contexts

_FEW_CONTEXTS = 60
"""Of a first answer."""
_OF = {
    "the loss of people's belief": ("comparison", "bridge", ADAPTIVE, "mixed"),
    "what people lose in bets": ("bets",),
    "the TVD of people and the generator": ("cloze",),
    "people's accuracy": ("accuracy",),
    "Shannon's upper bound": ("ranks",),
}


@choice("look", "ahead", {"back": "shannon_game.experiments.planning.question_worth.question_worth"})
@experiment(DesignSettings, row=DesignRow)
def design(study: xr.Dataset, settings: DesignSettings) -> ExperimentResult:
    """Simulate studies of many designs with known truth, and recommend the cheapest that keeps its promise.

    The comparison study has the generator's whole distribution (``reference_logprob``); what people answered in it is
    not used. One row per design; ``files["plan_GAME.yaml"]`` is the plan that :func:`collect` runs.

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
        raise InputError(f"is {word(None)}, and budget_money too; one should be a number", field="budget_minutes")
    contexts = study_contexts(study, settings.against)
    if settings.quick:
        settings = settings.changed(assumed=settings.assumed.changed(n_beliefs=min(settings.assumed.n_beliefs, 2)))
        contexts = contexts.first(_FEW_CONTEXTS)
    points, file, people = design_points(settings), _file_of(study), None
    left_out: tuple[str, ...] = ()
    if file is not None:
        served = served_study(study, settings.width_nats)
        points, left_out = served.askable(points, given="contexts" in settings.model_fields_set)
        people = served.people
    worlds = draw_worlds(contexts, settings)
    table = design_table(points, worlds, settings, people)
    dataset = xr.Dataset(
        DesignRow.variables(table, "row"),
        attrs={"against": contexts.against, "study": contexts.name},
    )
    recommended = table[table["recommended"]]
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={"costs": cost_figure(table, contexts.name, settings.interval)},
        text=summary(table, contexts, settings),
        warnings=(*left_out, *design_warnings(table, settings, study.sizes["item"])),
        writers=_plans(table, settings, file),
        on_screen=recommended if len(recommended) else table,
    )


def summary(table: pd.DataFrame, contexts: StudyContexts, settings: DesignSettings) -> str:
    """Say which design is recommended and what it promises; where there is none, how far the budget reaches."""
    chosen = [preregistration(row, contexts, settings) for row in _recommended(table).values() if row is not None]
    return "\n\n".join([_filled(table, settings).strip(), *(["## To preregister", *chosen] if chosen else [])])


def _filled(table: pd.DataFrame, settings: DesignSettings) -> str:
    best = _recommended(table)
    found = [(what, row and row._asdict(), _narrowest(table, _OF[what])) for what, row in best.items()]
    return fill(
        "design",
        Path(__file__).parent,
        found=found,
        settings=settings,
        labels=GAME_LABELS,
        share_games=SHARE_GAMES,
        slack=COVERAGE_SLACK,
    )


def _plans(table: pd.DataFrame, settings: DesignSettings, served: str | None) -> dict[str, Any]:
    """Write a plan for every number that is estimated; a scale that no game offers is a simulation's."""
    return {
        f"plan_{row.game}.yaml": partial(
            write_plan, plan_of(row, row.n_people, settings.width_nats, served), recommended=bool(row.recommended)
        )
        for row in _planned(table).values()
        if row.scale in ("", *SCALES)
    }


def _file_of(study: xr.Dataset) -> str | None:
    path = study.encoding.get("source")
    if path is None:
        return None
    inside = Path(path).is_relative_to(Path.cwd())
    return str(Path(path).relative_to(Path.cwd()) if inside else path)


def _narrowest(table: pd.DataFrame, games: tuple[str, ...]) -> list[dict[Any, Any]]:
    """Of every game the narrowest design within the budget, or the cheapest where all cost more."""
    found: list[dict[Any, Any]] = []
    for _, own in table[table["game"].isin(games)].groupby("game", sort=False):
        affordable = own[own["in_budget"]].sort_values("width")
        found.append((affordable if len(affordable) else own.sort_values("minutes")).iloc[0].to_dict())
    return found


def preregistration(row: Any, contexts: StudyContexts, settings: DesignSettings) -> str:
    """Write the paragraph that fixes a design before its study."""
    return " ".join(
        fill(
            "preregistration.md",
            Path(__file__).parent,
            row=row._asdict(),
            study=contexts.name,
            settings=settings,
            estimator=_ESTIMATORS[row.game],
            unit="of 1" if row.game in SHARE_GAMES else "nats",
            against="the generator" if row.game == "accuracy" else player_label(contexts.against),
            adaptive=ADAPTIVE,
            plan=QuestionPlan,
            n_tried=N_TRIED,
        ).split()
    )


def design_warnings(table: pd.DataFrame, settings: DesignSettings, n_items: int) -> tuple[str, ...]:
    """Warn of what was not reached, of a study that is too small to be asked, and of too few simulations."""
    found = [
        f"no design for {what} within the budget keeps the wanted width in {settings.assurance:.0%} of the studies "
        "together with its coverage"
        for what, row in _recommended(table).items()
        if row is None
    ]
    wanted = max((int(row.n_contexts) for row in _planned(table).values()), default=0)
    if wanted > n_items:
        found.append(
            f"a plan asks {wanted} contexts, and the study has {n_items}: build a larger study before you collect"
        )
    if settings.quick:
        found.append(
            f"a first answer from {settings.n_screen} studies of each size: leave quick out before you collect"
        )
    elif settings.n_replicates < 100:
        error = (settings.interval * (1 - settings.interval) / settings.n_replicates) ** 0.5
        found.append(
            f"n_replicates is {settings.n_replicates}, so that a coverage of {settings.interval:.0%} is known to "
            f"{error:.0%} only"
        )
    return tuple(found)


def _recommended(table: pd.DataFrame) -> dict[str, Any]:
    return {what: _cheapest(table, games) for what, games in _OF.items() if set(games) & set(table["game"])}


def _planned(table: pd.DataFrame) -> dict[str, Any]:
    """Recommended design of every number; where there is none, the narrowest within the budget, if any is."""
    found = _recommended(table)
    for what in [what for what, row in found.items() if row is None]:
        own = table[table["game"].isin(_OF[what]) & table["in_budget"]].sort_values("width")
        found[what] = rows_of(own)[0] if len(own) else None
    return {what: row for what, row in found.items() if row is not None}


def _cheapest(table: pd.DataFrame, games: tuple[str, ...]) -> Any:
    own = table[table["game"].isin(games) & table["recommended"]].sort_values("minutes")
    return rows_of(own)[0] if len(own) else None


_BRIDGE = "the bridge between draws and free answers, the scale of reports found from which tokens were answered"
_ESTIMATORS = {
    "comparison": "the mean log importance weight (equation 5)",
    "bridge": _BRIDGE,
    ADAPTIVE: _BRIDGE,
    "bets": "the mean loss of bets less the generator's, the generator filling in for words not named",
    "mixed": "the mean of the bridge and of bets, weighed by their variances",
    "cloze": "the mean TVD, corrected for the size of the samples",
    "accuracy": "the share of guesses that are right",
    "ranks": "Shannon's upper bound from the numbers of guesses",
}
