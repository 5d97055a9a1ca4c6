"""``+exp=ranks``: rank scores against context length, which score tells models apart, and a regression."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.layout import notes
from shannon_game.estimators.messages import Set
from shannon_game.estimators.rankings.study import TokenScores, score_study
from shannon_game.estimators.schema import KIND
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.rankings.ranks import scores as compared
from shannon_game.experiments.rankings.ranks.ask import ask
from shannon_game.experiments.rankings.ranks.scores import scores_figure
from shannon_game.experiments.rankings.ranks.settings import RankRow, RanksSettings
from shannon_game.experiments.rankings.windows import SCORE_COLUMNS, scores_by_window
from shannon_game.experiments.studies.rankings.table import write_ranking_table


@experiment(RanksSettings, row=RankRow)
def ranks(study: xr.Dataset, settings: RanksSettings) -> ExperimentResult:
    """Score every token, compare models and scores, and fit the regression on context length.

    One row per model. Its ``tables`` have every window, how well each score separates every two models on the
    windows that both scored (``separation``), and mean scores by class and length of the token (``easy_tokens``).

    Examples
    --------
    >>> from shannon_game import ranks
    >>> from shannon_game.estimators.rankings.examples import ranking_study
    >>> ranks(ranking_study(), posterior=False).table[["model", "n_windows"]]
       model  n_windows
    0  large          6
    1  small          6
    """
    if study.attrs[KIND] == "ranking":
        return _of_ranking(study, settings)
    asked = ask(study, settings)
    if isinstance(asked, ExperimentResult):
        return asked
    found = _of_ranking(asked, settings)
    doubts = tuple(f"{note['count']} x {note['text']}" for note in notes(asked) if note["level"] == "warning")
    files = {"ranking.csv": partial(write_ranking_table, asked)}
    return replace(found, warnings=(*doubts, *found.warnings), writers=files)


def _of_ranking(study: xr.Dataset, settings: RanksSettings) -> ExperimentResult:
    scores = token_scores(study, settings)
    windows = scores_by_window(study, scores)
    if settings.posterior:
        from shannon_game.experiments.rankings.ranks.posterior import regression  # noqa: PLC0415 - the extra bayes

        found = regression(settings, study, scores, windows)
    else:
        found = _means(settings, scores, windows)
    names = ["model", "text", "context_length", "window", "position", "reference_token"]
    tokens = pd.DataFrame({name: study[name].to_numpy() for name in names})
    tokens = tokens.join(pd.DataFrame(compared.token_scores_by_name(scores.rank, scores.k, settings)))
    tokens = tokens.sort_values(names[:5], kind="stable", ignore_index=True)
    curves, easy = compared.score_curves(scores.k, settings), compared.easy_tokens(tokens, ["average", "top_1"])
    separation = compared.separations(tokens, [*curves.columns[1:]], level=settings.level, power=settings.power)
    figures = {"separation": compared.separation_figure(separation)} if len(separation) else {}
    figures["score_curves"] = compared.curves_figure(curves)
    tables = {"windows": windows, "separation": separation, "easy_tokens": easy, "score_curves": curves}
    tables["fitted_weights"] = compared.fitted_weights(windows)
    return replace(
        found,
        text="\n\n".join(filter(None, [found.text, compared.said_of_scores(separation)])),
        figures={**found.figures, **figures, "easy_tokens": compared.easy_figure(easy)},
        tables={**tables, **found.tables},
    )


def token_scores(study: xr.Dataset, settings: RanksSettings) -> TokenScores:
    """Score the tokens of a study as the settings say."""
    names = ("match", "tie", "top_k", "censoring", "offset_nats", "vocab_size")
    return score_study(study, **{name: getattr(settings, name) for name in names})


def _means(settings: RanksSettings, scores: TokenScores, windows: pd.DataFrame) -> ExperimentResult:
    models = np.array(list(dict.fromkeys(windows["model"])), object)
    dataset = xr.Dataset(coords={"model": models, "length": np.unique(windows["context_length"])})
    columns = [*SCORE_COLUMNS, "share_censored"]
    n_tokens = windows.groupby("model", sort=True)["n_tokens"].sum()
    weighed = windows[columns].mul(windows["n_tokens"], axis=0)
    table = weighed.groupby(windows["model"], sort=True).sum().div(n_tokens, axis=0)
    table.insert(0, "n_windows", windows.groupby("model").size())
    return ExperimentResult(
        table=table.reset_index(),
        dataset=dataset,
        figures={"scores": scores_figure(windows, dataset, settings.score, settings.interval)},
        text=f"**{table[settings.score].idxmax()} has the highest score, {table[settings.score].max():.3f} "
        f"({settings.score})**, as a mean over tokens; {int(scores.rank.size):,} tokens in {len(windows)} windows and "
        f"models. For intervals, fit the regression: {Set('experiment.posterior', True)} takes about a minute.",
    )
