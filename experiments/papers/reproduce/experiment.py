"""``+exp=reproduce``: every published table and figure that the data allow, with a verdict on each value.

The study is the table of published values; our values come from other runs, each a part in a folder of its own. With
``experiment.of`` it repeats what one paper's own code does, on that paper's study.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic import model_validator

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Load, Set, word
from shannon_game.estimators.schema import KIND
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.csv_tables import read_guarded_csv
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import percent, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.result import Experiment, ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rows_of
from shannon_game.experiments.harness.views import View
from shannon_game.experiments.papers.published_study import (
    DATA_MISSING,
    NOT_AVAILABLE,
    NOT_RUN,
    PART_FAILED,
    UNEXPECTED,
    VERDICTS,
    judge,
    number_of,
    parse_select,
)
from shannon_game.experiments.papers.reproduce.parts import DATA, PAPERS, PARTS, PaperPart
from shannon_game.experiments.papers.reproduce.report import report_body, summary
from shannon_game.experiments.papers.reproduce.run import Outcome, cores, plan, run_parts, write_figures
from shannon_game.inference.settings import Count, Names, Settings, UserPath, settings_from

_OTHER_DATA = "is of other data"
_WITHOUT_OUTPUTS = {"data missing": DATA_MISSING, "not run": NOT_RUN, "failed": PART_FAILED}
OWN_CODE = {
    "tvd": ("shannon_game.experiments.papers.provo.tvd", "tvd_legacy", "provo"),
    "tvd_sample_size": ("shannon_game.experiments.papers.provo.legacy", "tvd_sample_size_legacy", "provo"),
    "improve": ("shannon_game.experiments.papers.provo.legacy", "improve_legacy", "provo"),
    "distributions": ("shannon_game.experiments.papers.provo.legacy", "distributions_legacy", "provo"),
    "ard": ("shannon_game.experiments.papers.provo.ard", "ard_legacy", "provo"),
    "ranks": ("shannon_game.experiments.papers.ranks_published", "ranks_published", "rank_perplexity"),
}
"""What repeats a paper's own code -> module, function, study."""

_COLOURS = (
    *("#009E73", "#4A9BC8", "#A8D5C2", "#939393", "#C38700"),
    *("#D55E00", "#CC79A7", "#B3261E", "#d9d9d9", "#f0f0f0"),
)


class DataSettings(Settings):
    """Where the public data of the studies are."""

    root: UserPath | None = None
    """Folder with lm_game/, provo/ and rank_perplexity/; null: $SHANNON_DATA, and what can be is downloaded."""
    lm_game: UserPath | None = None
    """Folder of the next-token game's data, if elsewhere."""
    provo: UserPath | None = None
    """Folder of the next-word answers, if elsewhere."""
    rank_perplexity: UserPath | None = None
    """Folder of the rank-based perplexity data, if elsewhere."""


class ReproduceSettings(Seeded):
    data: DataSettings = DataSettings()
    """Where the public data of the studies are."""
    papers: Names | None = None
    """Papers (lm_game, provo, rank_perplexity, or of tables of your own) whose values are judged; null: all. Only their
    parts run, and the report has only them."""
    parts: Names | None = None
    """Parts, groups (lm_game, top1, provo, ranks) or papers to run; null takes all. A paper stands for all of them."""
    bayes: bool = False
    """Run the parts that sample from a posterior, too: tens of minutes on two cores; no published value needs them."""
    figures: bool = False
    """Put the figures of the papers into ``paper_figures/``, named as there; runs the parts that only draw, too."""
    n_jobs: Count | None = None
    """Parts at a time; null: as many as there are cores."""
    again: Names = ()
    """Parts or groups to run again even if they are done."""
    folder: UserPath | None = None
    """Folder with one folder a part; null: parts/ in the output folder."""
    of: Literal["tvd", "tvd_sample_size", "improve", "distributions", "ard", "ranks"] | None = None
    """Repeat this analysis by its paper's own code instead, on the study provo; ranks: rank_perplexity."""
    given: Mapping[str, Any] = {}
    """Settings of that analysis, such as {players: [gpt2]}: those of the question of its name."""
    overrides: Mapping[str, tuple[str, ...]] = {}
    """Further settings of single parts, such as {bootstrap: ['experiment.half_samples=20']}."""
    dpi: Count = 130
    """Resolution of the parts' figures."""

    @model_validator(mode="after")
    def _parts_exist(self) -> ReproduceSettings:
        for name, overrides in self.overrides.items():
            if name not in PARTS:
                raise unknown_choice("part", name, PARTS, source="overrides")
            if not all("=" in text for text in overrides):
                raise InputError(
                    f"is {list(overrides)!r}, should be a list of settings such as ['experiment.n_repeats=2']",
                    field=f"overrides.{name}",
                )
        for field in ("papers", "parts"):
            if self.of is not None and getattr(self, field) is not None:
                raise InputError(f"goes without of={self.of}, which repeats one analysis; leave one out", field=field)
        for field in ("parts", "again"):
            for name in getattr(self, field) or ():
                if name not in PARTS and name not in DATA and name not in PAPERS:
                    raise unknown_choice("part or group", name, [*DATA, *PAPERS, *PARTS], source=field)
        return self

    def named(self, names: Sequence[str]) -> list[str]:
        """Parts of some names; a group or a paper stands for its parts, Bayesian ones if those are on."""
        found: list[str] = []
        for name in names:
            group = [part for part in PARTS.values() if name in (part.group, part.paper)]
            found += [name] if name in PARTS else [part.name for part in group if self.runs(part)]
        return list(dict.fromkeys(found))

    def runs(self, part: PaperPart) -> bool:
        """Whether a part runs that is not asked for by its name."""
        return (self.bayes or not part.bayes) and (self.figures or not part.drawn)

    def why_not(self, part: PaperPart) -> str:
        """Say why a part does not run, and which setting runs it."""
        if self.papers is not None and part.paper not in self.papers:
            return f"it is of another paper; {Set('experiment.papers', [part.paper])} runs it"
        if part.bayes and not self.bayes and self.parts is None:
            return (
                "it samples from a posterior, which takes minutes, and no published value needs it; "
                f"{Set('experiment.bayes', True)} runs all of these, {Set('experiment.parts', [part.name])} this one"
            )
        if part.drawn and not self.figures and self.parts is None:
            return f"it only draws a figure; {Set('experiment.figures', True)} runs it"
        return f"not asked for; {Set('experiment.parts', [part.name])} runs it"


class PublishedRow(column.Row):
    """One published value beside ours."""

    paper: str = column.key("paper")
    where: str = column.key("table, figure or section")
    quantity: str = column.key("quantity")
    unit: str = column.context("unit")
    published: str = column.beside("ours", "as printed")
    ours: float = column.headline("ours")
    difference: float = column.error("ours", "ours minus the published value")
    tolerance: float = column.detail("largest difference that counts as reproduced")
    verdict: str = column.flag("what became of the value", bad=dict.fromkeys(UNEXPECTED, "†"))
    reason: str = column.detail("why it differs, or has no value")
    part: str = column.detail("run that gives ours")
    origin: str = column.detail("file or code that the published value is from")
    source: str = column.detail("place in the paper")


@experiment(ReproduceSettings, row=PublishedRow)
def reproduce(study: xr.Dataset, settings: ReproduceSettings) -> ExperimentResult:
    """Run every published table and figure that the data allow, judge every value, and write one report.

    The same call again goes on where it was: parts that are done are taken from their folders.

    Parameters
    ----------
    study : xarray.Dataset
        Of published values, see :func:`shannon_game.experiments.papers.published.published`; with ``of`` the paper's
        own.

    Returns
    -------
    ExperimentResult
        One row per published value, with ours and the verdict; with ``of`` what that code gives.

    Raises
    ------
    InputError
        If a part, a paper or the study that ``of`` needs is unknown.
    """
    if settings.of is not None:
        return _by_own_code(study, settings, settings.of)
    if study.attrs[KIND] != "published":
        raise InputError(
            f"holds no published values; {Set('experiment.of', 'tvd')} repeats a paper's own code", field="study"
        )
    study = _of_papers(study, settings)
    outcomes = _outcomes(study, settings)
    table = judged_values(study, outcomes)
    by_name = {outcome.name: outcome for outcome in outcomes}
    bad = table["verdict"].isin(UNEXPECTED)
    broken = [outcome for outcome in outcomes if outcome.state == "failed"]
    asked = of_asked_papers(table)
    return ExperimentResult(
        table=table,
        dataset=_dataset(table),
        figures={"verdicts": verdict_figure(asked)},
        text=summary(table, outcomes),
        warnings=(
            *_value_warnings(table[bad]),
            *(f"part {one.name} failed: {one.message}" for one in broken),
            *(f"part {one.name}: {one.message}" for one in outcomes if one.state == "data missing"),
            *(f"part {one.name}: a check failed (convergence)" for one in outcomes if one.gate_failed),
        ),
        gate_failed=bool(bad.any()) or bool(broken) or any(one.gate_failed for one in outcomes),
        on_screen=View(counts(asked).reset_index()),
        title="Published numbers, reproduced",
        body=report_body(asked, by_name),
        writers={"paper_figures": partial(write_figures, by_name, asked["paper"].unique())} if settings.figures else {},
    )


def _by_own_code(study: xr.Dataset, settings: ReproduceSettings, of: str) -> ExperimentResult:
    analysis: Experiment[Any] = getattr(import_module(OWN_CODE[of][0]), OWN_CODE[of][1])
    if study.attrs[KIND] == "published":
        raise InputError(
            f"is {study.attrs['name']!r}; of={of} needs the paper's own: {Load(OWN_CODE[of][2])}", field="study"
        )
    given = (
        {"seed": settings.seed, **settings.given} if "seed" in analysis.settings_class.model_fields else settings.given
    )
    return analysis(study, settings_from(analysis.settings_class, given, prefix=f"{Set('experiment.given')}."))


def _of_papers(study: xr.Dataset, settings: ReproduceSettings) -> xr.Dataset:
    if settings.papers is None:
        return study
    of = study["paper"].to_numpy().astype(str)
    for name in settings.papers:
        if name not in of:
            raise unknown_choice("paper", name, list(dict.fromkeys(of.tolist())), source="papers")
    return study.isel(value=np.flatnonzero(np.isin(of, settings.papers)))


def _outcomes(study: xr.Dataset, settings: ReproduceSettings) -> list[Outcome]:
    for name in sorted(set(study["part"].to_numpy().tolist()) - {""}):
        if name not in PARTS:
            raise unknown_choice("part", name, PARTS, source=f"study {study.attrs['name']}, column part")
    if settings.folder is None:
        raise InputError(f"is {word(None)}, and there is no output folder; name a folder", field="folder")
    # a table of one's own has a paper of its own, whose values may come from any part
    parts_of = {str(name) for name in study["part"].to_numpy()}
    mine = [
        name
        for name, part in PARTS.items()
        if settings.papers is None or part.paper in settings.papers or name in parts_of
    ]
    asked = [name for name in mine if settings.runs(PARTS[name])]
    asked = asked if settings.parts is None else settings.named(settings.parts)
    planned = plan(
        list(PARTS.values()),
        data=settings.data.model_dump(),
        folder=settings.folder.absolute(),
        common=(f"seed={settings.seed}", f"output.dpi={settings.dpi}"),
        extra=settings.overrides,
        unwanted=lambda part: "" if part.name in asked and part.name in mine else settings.why_not(part),
    )
    if not any(not one.unwanted and not one.problem for one in planned):
        problems = "; ".join(dict.fromkeys(one.problem for one in planned if not one.unwanted and one.problem))
        raise InputError(problems or "names no part", source="nothing can be run", field="data")
    n_jobs = cores() if settings.n_jobs is None else settings.n_jobs
    return run_parts(planned, n_jobs=n_jobs, again=settings.named(settings.again))


def judged_values(study: xr.Dataset, outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """Put ours beside every published value, with its verdict."""
    by_name = {outcome.name: outcome for outcome in outcomes}
    asked = {outcome.planned.part.paper for outcome in outcomes if outcome.state != "not run"}
    cache: dict[Path, pd.DataFrame | None] = {}
    records = []
    for row in rows_of(study.to_dataframe().reset_index()):
        outcome = by_name[row.part] if row.part else None
        ours: float | None = None
        reason, problem, basis = row.reason, "", row.basis
        if outcome is None and row.paper in PAPERS and row.paper not in asked:
            verdict = NOT_RUN
        elif outcome is not None and not outcome.has_outputs:
            verdict, reason = _WITHOUT_OUTPUTS[outcome.state], outcome.message
        else:
            if outcome is not None:
                path = outcome.planned.folder / row.table
                if path not in cache:
                    # cells as they were written
                    cache[path] = read_guarded_csv(path) if path.is_file() else None
                ours, problem, found_basis = value_of(cache[path], parse_select(row.select), row.column)
                basis = found_basis or basis
                reason = reason or (f"{row.table}: {problem}" if problem else "")
            other_data = ours is None and problem.startswith(_OTHER_DATA)
            verdict = judge(
                *(row.printed, ours),
                tolerance=row.tolerance,
                expected=NOT_AVAILABLE if other_data else row.expected,
                reason=reason if other_data else row.reason,
                basis=basis,
            )
        found = {"ours": np.nan, "difference": np.nan}
        if ours is not None:
            # nothing is subtracted from a bound
            bound = row.printed.startswith(("<", ">"))
            found = {"ours": ours, "difference": np.nan if bound else ours - float(number_of(row.printed))}
        records.append(row._asdict() | found | {"published": row.printed, "verdict": verdict, "reason": reason})
    return PublishedRow.table(records)


def of_asked_papers(table: pd.DataFrame) -> pd.DataFrame:
    """Values of the papers of which something was asked for; all where nothing was."""
    asked = table.loc[table["verdict"] != NOT_RUN, "paper"].unique()
    return table[table["paper"].isin(asked)] if len(asked) else table


def value_of(table: pd.DataFrame | None, select: Mapping[str, str], column: str) -> tuple[float | None, str, str]:
    """Find one number in a part's table: the number, what is wrong, and whether it is read where the table says so."""
    if table is None:
        return None, "is not there", ""
    missing = next((name for name in (*select, column) if name not in table), None)
    if missing is not None:
        return None, f"has no column {missing}", ""
    mine = table
    # what a value was counted from comes last: ours of other data is not compared with it
    for name, cell in sorted(select.items(), key=lambda pair: pair[0].startswith("n_")):
        of_all, mine = mine, mine[mine[name] == cell]
        if name.startswith("n_") and mine.empty and len(of_all) == 1:
            return None, f"{_OTHER_DATA}: {name} is {of_all[name].iloc[0]}, not {cell}", ""
    if len(mine) != 1:
        said = " | ".join(f"{name}={cell}" for name, cell in select.items())
        return None, f"has {len(mine)} rows with {said}", ""
    cell = str(mine[column].iloc[0])
    with suppress(ValueError):
        if math.isfinite(value := float(cell)):
            return value, "", str(mine["basis"].iloc[0]) if "basis" in mine else ""
    return None, f"has {cell!r} in {column}", ""


def _value_warnings(bad: pd.DataFrame) -> list[str]:
    found = []
    for (verdict, paper, where), rows in bad.groupby(["verdict", "paper", "where"], sort=False):
        named = "; ".join(
            f"{row.quantity} (published {row.published}, ours {row.ours:.6g})" for row in rows_of(rows.head(3))
        )
        more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
        found.append(f"{verdict}: {paper}, {where}: {named}{more}")
    return found


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Values of every paper by verdict: a row per paper, a column a verdict."""
    found = pd.crosstab(table["paper"], table["verdict"])
    papers = list(dict.fromkeys(table["paper"]))
    return found.reindex(index=papers, columns=[name for name in VERDICTS if name in found]).rename_axis(columns=None)


def _dataset(table: pd.DataFrame) -> xr.Dataset:
    numbers = table["published"].map(lambda text: float(number_of(text)))
    variables = PublishedRow.variables(table, "value", but=["published"])
    return xr.Dataset(
        variables | {"printed": ("value", table["published"].to_numpy(dtype=object)), "published": ("value", numbers)}
    )


@styled
def verdict_figure(table: pd.DataFrame) -> Figure:
    """Share of every verdict, a bar a paper, with the counts in it."""
    found = counts(table)
    fig = new_figure(7.6, 1.2 + 0.6 * len(found))
    axes = fig.add_subplot()
    places = -np.arange(len(found))
    total = found.sum(axis=1).to_numpy()
    shares = found.div(total, axis=0)
    for verdict, left in (shares.cumsum(axis=1) - shares).items():
        share, label = shares[verdict], str(verdict)
        colour = _COLOURS[VERDICTS.index(label)]
        blocks = axes.barh(places, share, left=left, color=colour, label=label, height=0.62)
        numbers = [f"{n}" if width > 0.03 else "" for n, width in zip(found[verdict], share, strict=True)]
        axes.bar_label(blocks, numbers, label_type="center", fontsize=8)
    titles = [PAPERS.get(str(name), str(name)).split(" (")[0].split(":")[0] for name in found.index]
    labels = [f"{textwrap.fill(title, 36)}\n({n} values)" for title, n in zip(titles, total, strict=True)]
    axes.set_yticks(places, labels)
    axes.tick_params(axis="y", length=0)
    axes.set(xlim=(0, 1), xlabel="share of the published values")
    percent(axes.xaxis)
    fig.legend(loc="outside lower center", ncols=3)
    titled(fig, f"What became of {total.sum():,} published values")
    return fig
