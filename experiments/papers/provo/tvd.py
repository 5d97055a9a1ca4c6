"""``+exp=reproduce experiment.of=tvd``: every number of the code of "Predict the Next Word", beside the printed one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.experiments.cloze.figures import label
from shannon_game.experiments.cloze.settings import ORACLE
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.papers.provo.appendix_figures import appendix_figures, densities_figure
from shannon_game.experiments.papers.provo.results import (
    STORED,
    LegacyResults,
    legacy_results,
    published_table,
    stored_comparison,
)
from shannon_game.experiments.papers.provo.stored import StoredLists
from shannon_game.experiments.papers.published_study import COMPUTED, READ, REPRODUCED, judge
from shannon_game.inference.settings import Settings, UserPath


class TvdLegacySettings(Settings):
    vocabulary: UserPath | None = None
    """GPT-2's tokenizer.json, with which the oracles of appendix D are computed too (extra lm)."""


class TvdLegacyRow(column.Row):
    """One number of the paper."""

    quantity: str = column.key("quantity")
    authors_code: float = column.headline("by the authors' code, run here")
    stored: float = column.truth("authors_code", "in the authors' files")
    difference: float = column.error("authors_code", "by the code minus stored")
    printed: str = column.beside("authors_code", "as printed")
    n_contexts: int = column.context("contexts")
    source: str = column.detail("place in the paper")
    basis: str = column.detail("computed, or read from the authors' stored results")


@experiment(TvdLegacySettings, row=TvdLegacyRow)
def tvd_legacy(study: xr.Dataset, settings: TvdLegacySettings) -> ExperimentResult:
    """Put the authors' code beside what they stored and print, and compare the stored lists element by element.

    The study is the public repository. ``tvd`` gives the distances with both sides' words treated alike.
    """
    results = legacy_results(study, settings.vocabulary)
    table = legacy_table(results)
    lists = stored_comparison(study, results)
    off = lists[lists["largest_difference"] > 1e-6]
    warnings = tuple(f"stored list {name} differs by more than 1e-6" for name in off["list"])
    n_printed = (table["printed"] != "").sum()
    text = (
        f"**The authors' code gives {table['difference'].count()} numbers of their stored results within "
        f"{table['difference'].abs().max():.1e}. {_not_as_printed(table)} of {n_printed} printed numbers differ.** "
        "`authors_code` is that code, run here; `stored` is in the authors' files; `printed` is in the paper. "
        f"{len(lists)} stored lists were computed again from the public samples "
        f"({int(lists['n_compared'].sum()):,} values); the largest difference is "
        f"{lists['largest_difference'].max():.1e} (`stored_lists.csv`)."
    )
    return ExperimentResult(
        table,
        xr.Dataset({"value": ("quantity", table["authors_code"])}, {"quantity": table["quantity"].to_list()}),
        {"tvd": _figure_2(study, results), **appendix_figures(study)},
        text,
        warnings,
        tables={"stored_lists": lists},
    )


def _not_as_printed(table: pd.DataFrame) -> int:
    printed = table[table["printed"] != ""]
    return sum(judge(*pair) != REPRODUCED for pair in zip(printed["printed"], printed["authors_code"], strict=True))


def _figure_2(study: xr.Dataset, results: LegacyResults) -> Figure:
    """Draw TVDs to all people, as stored where the folder lacks some of the samples, and those between two halves."""
    lists, found, said = StoredLists(study), {}, {}
    for player in (ORACLE, "gpt2", "gpt2-ft", "bloom", "chatgpt", "chatgpt-diverse"):
        name = STORED[player][player == ORACLE]
        values, how = results.lists.get(name, np.array([np.nan])), ""
        if np.isnan(values).any() and name in lists.names:
            values, how = lists.values(name), ", as stored"
        if not np.isnan(values).any():
            who = "two halves of the people" if player == ORACLE else label(player)
            found[player], said[player] = values, f"{who}{how}: mean {values.mean():.2f}"
    return densities_figure({"": found}, said, "How far are models' words from people's?")


def legacy_table(results: LegacyResults) -> pd.DataFrame:
    """Make one row per quantity: by the authors' code, as they stored it, and as printed."""
    published = published_table().set_index("quantity")
    table = published.reindex([*published.index, *(name for name in results.numbers if name not in published.index)])
    ours = pd.Series(results.numbers, dtype=float).reindex(table.index)
    return pd.DataFrame(
        {
            "authors_code": ours,
            "stored": table["legacy"],
            "difference": ours - table["legacy"],
            "printed": table["printed"].fillna(""),
            "n_contexts": table.index.str.split("/").str[1].map(results.n_contexts).astype("Int64"),
            "source": table["source"].fillna(""),
            "basis": np.where(table.index.isin([*results.read]), READ, COMPUTED),
        }
    ).reset_index(names="quantity")
