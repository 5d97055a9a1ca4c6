"""``+exp=ranks``: rank scores against context length, and a hierarchical regression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.rankings.study import TokenScores, score_study
from shannon_game.experiments.harness.bayes import gate_failed, unconverged
from shannon_game.experiments.harness.csv_tables import write_csv
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.rankings.ranks.figures import (
    power_figure,
    predictive_figure,
    scores_figure,
    slopes_figure,
)
from shannon_game.experiments.rankings.ranks.settings import RanksSettings
from shannon_game.experiments.rankings.ranks.summary import check_warnings, summary
from shannon_game.experiments.rankings.windows import SCORE_COLUMNS, scores_by_window, window_variables


@experiment(RanksSettings)
def ranks(study: xr.Dataset, settings: RanksSettings) -> ExperimentResult:
    """Score every token, fit the regression, and say what it means for models and studies.

    Returns
    -------
    ExperimentResult
        One row a model.

    Examples
    --------
    >>> from shannon_game import ranks
    >>> from shannon_game.models.examples import ranking_study
    >>> ranks(ranking_study(), posterior=False).table[["model", "n_windows"]]
      model  n_windows
    0     a          6
    1     b          6
    """
    scores = token_scores(study, settings)
    windows = scores_by_window(study, scores)
    if not settings.posterior:
        return _without_posterior(settings, scores, windows)
    from shannon_game.experiments.rankings.ranks.posterior import fit_regression  # noqa: PLC0415 - the extra bayes

    found = fit_regression(settings, study, scores, windows)
    tables = {"windows": windows, "checks": found.checks}
    figures = {
        "scores": scores_figure(windows, found.dataset, settings.score, settings.interval),
        "slopes": slopes_figure(found.table, found.dataset, settings.score, settings.interval),
        "predictive": predictive_figure(found.dataset, found.checks, settings.interval),
    }
    if found.pairs is not None:
        tables["pairs"] = found.pairs
        figures["power"] = power_figure(found.dataset, found.dataset.attrs["n_tokens_of_power"])
    verdict = {"ranks": found.convergence}
    return ExperimentResult(
        table=found.table,
        dataset=found.dataset,
        figures=figures,
        text=summary(settings, found, int(scores.rank.size)),
        warnings=(*unconverged(verdict), *check_warnings(found.checks)),
        gate_failed=gate_failed(settings, verdict),
        posteriors=found.posteriors,
        files={"tables": partial(_write_tables, tables)},
    )


def token_scores(study: xr.Dataset, settings: RanksSettings) -> TokenScores:
    """Score the tokens of a study as the settings say."""
    return score_study(
        study,
        match=settings.match,
        tie=settings.tie,
        top_k=settings.top_k,
        censoring=settings.censoring,
        offset_nats=settings.offset_nats,
        vocab_size=settings.vocab_size,
    )


def _without_posterior(settings: RanksSettings, scores: TokenScores, windows: pd.DataFrame) -> ExperimentResult:
    models = list(dict.fromkeys(windows["model"]))
    dataset = xr.Dataset(
        window_variables(windows),
        coords={"model": np.array(models, object), "length": np.unique(windows["context_length"])},
    )
    table = windows.groupby("model", sort=True)[[*SCORE_COLUMNS, "share_censored"]].mean()
    table.insert(0, "n_windows", windows.groupby("model").size())
    return ExperimentResult(
        table=table.reset_index(),
        dataset=dataset,
        figures={"scores": scores_figure(windows, dataset, settings.score, settings.interval)},
        text=f"**{table[settings.score].idxmax()} scores highest** ({settings.score}): "
        f"{int(scores.rank.size):,} tokens in {len(windows)} windows and models; without the regression "
        "(experiment.posterior=true), which takes about a minute. Scores are means over windows.",
        files={"tables": partial(_write_tables, {"windows": windows})},
    )


def _write_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    folder.mkdir()
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")
