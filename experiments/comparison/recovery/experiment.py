"""How far every estimator falls from the truth over fresh studies of players whose loss is known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator
from scipy.stats import binomtest

from shannon_game.estimators.comparison import ParticipantPopulation
from shannon_game.estimators.content import content_digest
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.comparison.estimates import PlayerSettings, chosen_models, rounding_label
from shannon_game.experiments.comparison.recovery.studies import fresh_items, rows_of_models, rows_of_participants
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import SamplerSettings
from shannon_game.experiments.harness.figures import Series, forest, new_figure, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, percent, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.replication import ReplicationSettings, replicates_path
from shannon_game.experiments.harness.result import ExperimentResult, choice, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.posterior.replicates import Task, run_replicates
from shannon_game.inference.progress import stage
from shannon_game.inference.settings import Count, Counts, Positive, Probability, numbers_of
from shannon_game.models.comparison.participants import ParticipantPriors

_CELL = {"models": ("player", "rounding", "n"), "participants": ("player", "k0")}
_ONLY = {"models": ("n_items",), "participants": ("k0", "participants")}
_WORK = {"models": rows_of_models, "participants": rows_of_participants}
ESTIMATOR_LABELS = {
    "importance": "equation 5",
    "jackknife": "jackknife",
    "outcomes": "participant model, outcomes",
    "assumed": "participant model, slope known",
}
"""What a reader calls the estimators."""
Scales = Annotated[
    tuple[Positive, ...],
    Field(min_length=1),
    BeforeValidator(lambda k0: (k0,) if isinstance(k0, int | float) else k0),
]


class RecoveryRow(column.Row):
    """One fresh study and estimator; on screen one cell of the design and estimator, over its studies."""

    population: str = column.context("who answers")
    player: str = column.key("language model whose belief answers", players=True)
    rounding: str | None = column.key("grid to which answers are rounded", usual="none", words=rounding_label)
    n: int | None = column.key("candidates asked about an item", setting="n")
    k0: float | None = column.key("typical slope of reports on the log-odds", setting="experiment.k0")
    study: int = column.key("number of the fresh study")
    estimator: str = column.key("estimator", words=ESTIMATOR_LABELS.__getitem__)
    truth_nats: float = column.truth("gap_median_nats", unit="nats")
    gap_median_nats: float = column.estimate("gap", unit="nats", interval="gap_{}_nats")
    covers: bool = column.flag("whether the interval holds the truth", bad={"False": "†"})
    bias_nats: float | None = column.estimate("mean error of the studies", unit="nats")
    rmse_nats: float | None = column.estimate("root of the mean squared error", unit="nats")
    coverage: float | None = column.headline("share of intervals that hold the truth", interval="coverage_{}")
    k0_ratio: float = column.detail("estimated slope over the true one")
    converged: bool = column.flag("whether the fit passed its check", bad={"False": "§"})
    seconds: float = column.detail("time of the processor", unit="s")


class RecoverySettings(PlayerSettings, ReplicationSettings):
    population: Literal["models", "participants"] = "models"
    """Who answers. models: language models without noise, raw and rounded, on items that nobody was asked;
    participants: simulated people who believe what a language model believes, on the study's own questions."""
    n_studies: Count = 100
    """Fresh studies of every cell."""
    n_items: Count = 120
    """Models only: items of a study, drawn without replacement."""
    n: Counts = (10, 20)
    """Models only: candidates asked about an item."""
    k0: Scales = (1.0, 0.3, 2.0)
    """Participants only: typical slopes of reports on the log-odds of the belief."""
    participants: Annotated[ParticipantPopulation, numbers_of(ParticipantPopulation)] = ParticipantPopulation(
        slope_log_sd=0.6
    )
    """Participants only: how people differ
    (:class:`~shannon_game.estimators.comparison.simulation.settings.ParticipantPopulation`)."""
    interval: Probability = 0.9
    """Probability inside the intervals, which should hold the truth so often."""
    priors: Annotated[ParticipantPriors, numbers_of(ParticipantPriors)] = ParticipantPriors()
    """Priors of the participant model, only those to change."""
    sampler: SamplerSettings = SamplerSettings(name="pymc", draws=120, tune=20, cores=1, target_accept=0.8)
    """How the participant model is fitted."""

    @model_validator(mode="after")
    def _of_the_population(self) -> RecoverySettings:
        for population, names in _ONLY.items():
            for name in names if population != self.population else ():
                if name in self.model_fields_set:
                    raise InputError(f"does nothing where the population is {self.population}", field=name)
        if len(set(self.k0)) < len(self.k0):
            raise InputError(f"is {list(self.k0)}; give each scale once", field="k0")
        return self

    @property
    def ends(self) -> NDArray[np.float64]:
        """Probabilities below the lower end of the intervals, the median and the upper end."""
        return np.array([(1 - self.interval) / 2, 0.5, (1 + self.interval) / 2])


_OF = {
    "sbc": "shannon_game.experiments.comparison.sbc.sbc",
    "ard": "shannon_game.experiments.cloze.ard_coverage.ard_coverage",
    "tvd": "shannon_game.experiments.cloze.tvd_coverage.tvd_coverage",
    "ranks": "shannon_game.experiments.rankings.rank_recovery.rank_recovery",
}


@choice("of", "loss", _OF)
@experiment(RecoverySettings, row=RecoveryRow)
def recovery(study: xr.Dataset, settings: RecoverySettings) -> ExperimentResult:
    """Make many fresh studies of players whose loss is known, and estimate each in every way.

    The study gives items, candidates and language models. One row per study and estimator.
    """
    tasks = _tasks(study, settings)
    given = settings.model_dump(exclude={"n_jobs", "replicates", "set_aside", "n_studies", "players", "n", "k0"})
    given["sampler"].pop("cores")  # changes no number
    digest = content_digest([(str(name), one.dims, one.to_numpy()) for name, one in study.variables.items()])
    with stage("fresh studies", announced=True) as show:
        rows = run_replicates(
            partial(_WORK[settings.population], study=study, settings=settings),
            tasks,
            path=replicates_path(settings),
            settings={"study": digest, **given},
            n_jobs=settings.n_jobs,
            progress=show,
            set_aside=settings.set_aside,
        )
    table = RecoveryRow.table(rows)
    cells = recovery_summary(table, settings.population)
    labels = [_label(row) for row in rows_of(cells)]
    about = f"{study.attrs['name']}; {settings.n_studies} fresh studies per line"
    missed = int((table["converged"] == False).sum())  # noqa: E712 - None where nothing had to converge
    return ExperimentResult(
        table=table,
        # converged is -1 where nothing had to converge
        dataset=xr.Dataset(RecoveryRow.variables(table.fillna({"converged": -1}).astype({"converged": int}), "row")),
        figures={"recovery": recovery_figure(cells, labels, about, settings.interval)},
        text=_text(cells, settings),
        warnings=(f"{missed} rows missed their check and are in all numbers: raise {Set('sampler.draws')}",)
        if missed
        else (),
        on_screen=cells,
    )


def recovery_summary(table: pd.DataFrame, population: str) -> pd.DataFrame:
    """Bias, RMSE and coverage by cell and estimator, with 5% and 95% of the errors and Wilson's interval."""
    names, rows = (*_CELL[population], "estimator"), []
    for key, part in table.groupby(list(names), sort=False):
        error = part["gap_median_nats"] - part["truth_nats"]
        held = binomtest(int(part["covers"].sum()), len(part)).proportion_ci(0.95, "wilson")
        row = dict(zip(names, key, strict=True)) | {"bias_nats": error.mean(), "rmse_nats": np.sqrt((error**2).mean())}
        row |= {"coverage": part["covers"].mean(), "k0_ratio": part["k0_ratio"].median()}
        row |= {"error_lower_nats": error.quantile(0.05), "error_upper_nats": error.quantile(0.95)}
        rows.append(row | {"coverage_lower": held.low, "coverage_upper": held.high})
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def _tasks(study: xr.Dataset, settings: RecoverySettings) -> list[Task]:
    """All cells of one study after the other, so that a run that stops early has something of every cell."""
    why = "whose truth nobody knows; the population is language models"
    players = chosen_models(study, settings.players, why)
    studies = range(settings.n_studies)
    if settings.population == "participants":
        cells = product(studies, players, settings.k0)
        return [{"population": "participants", "player": p, "k0": float(k0), "study": at} for at, p, k0 in cells]
    source, free = f"study {study.attrs['name']!r}", fresh_items(study).size
    if settings.n_items > free:
        problem = f"is {settings.n_items}, but only {free} items have no response; a fresh study is made of those"
        raise InputError(problem, source=source, field=Set("experiment.n_items"))
    if max(settings.n) > study.sizes["candidate"]:
        problem = f"is {max(settings.n)}, but an item has {study.sizes['candidate']} candidates"
        raise InputError(problem, source=source, field="n")
    generator = study.attrs["generator"]
    schemes = dict.fromkeys(["none", settings.rounding.scheme.name])
    tasks: list[Task] = [
        {"population": "models", "player": player, "rounding": scheme, "n": n, "study": at}
        for at, player, scheme, n in product(studies, players, schemes, settings.n)
        if (player, scheme) != (generator, "none")  # its answers give the gap without error
    ]
    if not tasks:
        problem = f"leaves only the generator {generator!r} without rounding, whose gap every estimator finds exactly"
        raise InputError(problem, field="players")
    return tasks


def _label(row: Any) -> str:
    own = f"k0 = {row.k0:g}" if hasattr(row, "k0") else f"{rounding_label(row.rounding)}, n = {row.n}"
    return f"{player_label(row.player)}, {own}"


def _text(cells: pd.DataFrame, settings: RecoverySettings) -> str:
    share = cells.groupby("estimator", sort=False)["coverage"].mean().to_dict()
    held = [f"{value:.0%} ({ESTIMATOR_LABELS[str(name)]})" for name, value in share.items()]
    who = {
        "models": f"language models without noise, on {settings.n_items} items that nobody was asked",
        "participants": "simulated people who believe what a language model believes, on the study's own questions",
    }[settings.population]
    return (
        f"**{settings.interval:.0%} intervals hold the true loss in {listed(held)} of the studies.** Every cell has "
        f"{settings.n_studies} fresh studies of {who}. The truth is that of the study's own items. Equation 5 and the "
        "jackknife have the normal interval of the standard error over items."
    )


_BAND = 0.05
_COLOURS = {"importance": "#D55E00", "jackknife": "#C38700", "outcomes": "#0072B2", "assumed": "#4A9BC8"}
_MARKERS = {"importance": "s", "jackknife": "D"}


@styled
def recovery_figure(cells: pd.DataFrame, labels: Sequence[str], about: str, nominal: float) -> Figure:
    """Errors and coverage of every estimator, a line a cell."""
    estimators = list(dict.fromkeys(cells["estimator"]))
    names = list(dict.fromkeys(labels))
    wide = pd.DataFrame({"label": names}, index=names)
    for estimator in estimators:
        own = cells.assign(label=labels)[cells["estimator"] == estimator].set_index("label")
        wide = wide.join(own.select_dtypes("number").add_suffix(f" {estimator}"))
    offsets = np.linspace(0.2, -0.2, len(estimators))
    fig = new_figure(7.2, 1.9 + 0.4 * len(names))
    left, right = fig.subplots(1, 2, sharey=True)
    for axes, columns in ((left, ("bias_nats", "error")), (right, ("coverage", "coverage"))):
        forest(axes, wide, [_series(*columns, *one) for one in zip(estimators, offsets, strict=True)])
        light_grid(axes, "x")
        for line in range(1, len(names)):
            axes.axhline(-line + 0.5, color="0.9", linewidth=0.6, zorder=0)
    left.axvline(0, color="0.55", linewidth=1, zorder=0)
    left.set_xlabel("error, nats: mean, 5% and 95%")
    right.axvspan(nominal - _BAND, min(nominal + _BAND, 1), color="0.88", zorder=0, linewidth=0)
    right.set_xlim(-0.03, 1.03)
    percent(right.xaxis)
    right.set_xlabel(f"coverage of {nominal:.0%} intervals")
    titled(fig, "How far from a known truth are the estimators?", about)
    handles: list[Any] = [_series("bias_nats", "error", name, 0).handle() for name in estimators]
    handles.append(Patch(color="0.88", label=f"{nominal - _BAND:.0%} to {min(nominal + _BAND, 1):.0%}", linewidth=0))
    named(fig, [*handles, mark("bars of coverage: 95% interval")])
    return fig


def _series(value: str, ends: str, estimator: str, offset: float) -> Series:
    unit = "_nats" if ends == "error" else ""
    return Series(
        f"{value} {estimator}",
        f"{ends}_lower{unit} {estimator}",
        f"{ends}_upper{unit} {estimator}",
        label=ESTIMATOR_LABELS[estimator],
        marker=_MARKERS.get(estimator, "o"),
        colour=_COLOURS[estimator],
        size=4.5,
        capsize=0,
        offset=offset,
    )
