"""``+exp=groups``: whether groups of people, and single people, continue the same contexts differently."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.cloze import agreement_spread, group_distance, normalise_words
from shannon_game.estimators.cloze.study import context_labels
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions
from shannon_game.estimators.messages import Set
from shannon_game.experiments.cloze.settings import ComparableSettings
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import Series
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.questions import bullets
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.settings import Count

_FEW = 10


class GroupRow(column.Row):
    """Two groups of people."""

    first: str = column.key("one group")
    second: str = column.key("the other")
    tvd: float = column.headline("mean TVD of the groups' answers")
    baseline: float = column.beside("tvd", "that of people dealt to the groups at random", interval="baseline_{}")
    excess: float = column.estimate("tvd minus baseline")
    p_value: float = column.beside("excess", "of the permutation test")
    n_contexts: int = column.context("contexts")
    n_people_first: int = column.context("people of the first group")
    n_people_second: int = column.context("people of the second group")


class GroupsSettings(ComparableSettings, Seeded):
    variable: str = "participant_group"
    """Variable of the answers that names the group, as age where a collected study has it."""
    n_permutations: Count = 999
    """Random permutations of people."""


@experiment(GroupsSettings, row=GroupRow)
def groups(study: xr.Dataset, settings: GroupsSettings) -> ExperimentResult:
    """Compare every two groups of people, and people with each other.

    A row per pair of groups. ``people.csv`` has the mean share of the others of the same group, and of other groups,
    who gave an answer.

    Examples
    --------
    >>> from shannon_game import cloze_simulated, groups
    >>> study = cloze_simulated(n_items=10, n_answers=12, vocab_size=40, n_groups=2)
    >>> groups(study, n_permutations=99).table[["first", "second", "n_contexts"]]
         first   second  n_contexts
    0  group 1  group 2          10
    """
    if settings.variable not in study and "participant" not in study:
        problem = f"is missing, and so is participant; name columns: {Set('study.columns.participant_group', 'COLUMN')}"
        raise InputError(problem, source=f"cloze study {study.attrs.get('name')!r}", field=settings.variable)
    answers = _answers(study, settings)
    table, warnings = _pairs(answers, settings)
    people = _people(answers)
    lines = [_pairs_said(table)] if len(table) else []
    if "participant" in study:
        try:
            lines.append(_spread_said(answers, settings))
        except InputError as error:
            warnings.append(f"people are not compared: {error}")
    else:
        warnings.append(
            "answers name no participant, so that every answer counts as a person and p values are too small: name the "
            f"column, {Set('study.columns.participant', 'COLUMN')}"
        )
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(
            GroupRow.variables(table, "pair") | table_variables(people.add_prefix("group_"), "group_row")
        ),
        figures={"groups": groups_figure(table, str(study.attrs.get("name", "")))} if len(table) else {},
        text="\n\n".join(lines) or "There is one group and no participant, so that there is nothing to compare.",
        warnings=tuple(warnings),
        tables={"people": people},
    )


def _answers(study: xr.Dataset, settings: GroupsSettings) -> pd.DataFrame:
    rules = settings.words.of(study)
    found = normalise_words(study["word_text"].to_numpy(), rules)
    target = normalise_words(study["target_word"].to_numpy(), rules).words
    item, word = item_positions(study, "response_item"), study["response_word"].to_numpy()
    repeats = np.ones(item.size, dtype=int)
    if "response_count" in study and "participant" not in study:
        repeats = study["response_count"].to_numpy().astype(int)
    group = study[settings.variable].to_numpy().astype(str) if settings.variable in study else np.full(item.size, "all")
    rows = pd.DataFrame(
        {
            "item": context_labels(study)[item],
            "word": found.words[word],
            "code": np.unique(found.words.astype(str), return_inverse=True)[1][word],
            "target": target[item],
            "group": group,
            "participant": study["participant"].to_numpy() if "participant" in study else "",
        }
    )
    keep = ~found.missing[word] & (group != "")
    rows = rows.loc[np.repeat(np.arange(item.size), np.where(keep, repeats, 0))].reset_index(drop=True)
    if "participant" not in study:
        rows["participant"] = rows.index.astype(str)
    return rows


def _pairs(answers: pd.DataFrame, settings: GroupsSettings) -> tuple[pd.DataFrame, list[str]]:
    rows: list[dict[str, Any]] = []
    warnings = []
    for first, second in combinations(sorted(answers["group"].unique()), 2):
        own = answers[answers["group"].isin([first, second])]
        who, rng = (own["group"] == second).to_numpy(), rng_for(settings.seed, f"{first} and {second}")
        try:
            found = group_distance(
                own["item"], own["code"], own["participant"], who, rng, n_permutations=settings.n_permutations
            )
        except InputError as error:
            warnings.append(f"{first} and {second} are not compared: {error}")
            continue
        names = {"first": first, "second": second, "excess": found.tvd - found.baseline}
        rows.append({**names, **vars(found), "n_people_first": found.n_first, "n_people_second": found.n_second})
        if (fewest := min(found.n_first, found.n_second)) < _FEW:
            warnings.append(f"{first} and {second}: a group of {fewest} people says little; ask more people")
    if len(rows) > 1:
        warnings.append(f"{len(rows)} pairs are compared: multiply each p value by {len(rows)} (Bonferroni)")
    return GroupRow.table(rows), warnings


def _people(answers: pd.DataFrame) -> pd.DataFrame:
    """Shares of the others, of the same group and of other groups, who gave an answer."""
    places = ["item", "code"]
    said = answers.assign(
        same=answers.groupby([*places, "group"])["word"].transform("size") - 1,
        n_same=answers.groupby(["item", "group"])["word"].transform("size") - 1,
        all=answers.groupby(places)["word"].transform("size") - 1,
        n_all=answers.groupby("item")["word"].transform("size") - 1,
        hit=(answers["word"] == answers["target"]).where(answers["target"] != "").astype(float),
    )
    said["agreement"] = said["same"] / said["n_same"].where(said["n_same"] > 0)
    n_others = said["n_all"] - said["n_same"]
    said["agreement_others"] = (said["all"] - said["same"]) / n_others.where(n_others > 0)
    by_group = said.groupby("group", sort=True)
    return pd.DataFrame(
        {
            "n_people": by_group["participant"].nunique(),
            "n_answers": by_group.size(),
            "share_target": by_group["hit"].mean(),
            "agreement": by_group["agreement"].mean(),
            "agreement_others": by_group["agreement_others"].mean(),
        }
    ).reset_index()


def _spread_said(answers: pd.DataFrame, settings: GroupsSettings) -> str:
    rng, how = rng_for(settings.seed, "people"), {"n_permutations": settings.n_permutations}
    spread = agreement_spread(answers["item"], answers["code"], answers["participant"], rng, **how)
    return (
        f"**Single people {'differ' if spread.p_value < 0.05 else 'do not clearly differ'} in how much they agree with "
        f"the others**: the standard deviation of their agreement is {spread.sd:.4f}, and {spread.expected:.4f} if all "
        f"drew from one distribution per context (p = {spread.p_value:.3f}, {spread.n_participants} people)."
    )


def _pairs_said(table: pd.DataFrame) -> str:
    line = (
        "**{first} and {second} {do}**: their TVD is {tvd:.3f}, that of random groups of the same people "
        "{baseline:.3f} (difference {excess:+.3f}, p = {p_value:.3f}); {n_contexts} contexts, {n_people_first} and "
        "{n_people_second} people."
    )
    does = np.where(table["p_value"] < 0.05, "answer differently", "do not clearly answer differently")
    return bullets(table.assign(do=does), line)


def groups_figure(table: pd.DataFrame, study_name: str = "") -> Figure:
    """Distance of every pair of groups beside that of one population."""
    rows = table.assign(label=table["first"] + " and " + table["second"])
    series = [
        Series("tvd", label="the groups", colour="#D55E00", size=6),
        Series("baseline", "baseline_lower", "baseline_upper", label="dealt at random, 90%", colour="0.4", marker="s"),
    ]
    xlabel, title = "mean TVD of two groups' answers", "Do groups of people answer differently?"
    return forest_figure(rows, series, xlabel, title, study_name, zero=False)
