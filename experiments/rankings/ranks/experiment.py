"""``+exp=ranks``: rank scores against context length, which score tells models apart, and a regression."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.layout import notes
from shannon_game.estimators.rankings.study import TokenScores, score_study
from shannon_game.experiments.harness.bayes import gate_failed, unconverged
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.rankings.ranks.ask import ask
from shannon_game.experiments.rankings.ranks.figures import scores_figure, slopes_figure
from shannon_game.experiments.rankings.ranks.scores import (
    curves_figure,
    easy_figure,
    easy_tokens,
    said_of_scores,
    score_curves,
    separation_figure,
    separations,
    token_scores_by_name,
)
from shannon_game.experiments.rankings.ranks.settings import RanksSettings
from shannon_game.experiments.rankings.windows import SCORE_COLUMNS, scores_by_window, window_variables
from shannon_game.experiments.studies.rankings.table import write_ranking_table


@experiment(RanksSettings)
def ranks(study: xr.Dataset, settings: RanksSettings) -> ExperimentResult:
    """Score every token, compare models and scores, and fit the regression on context length.

    Parameters
    ----------
    study : xarray.Dataset
        A ranking study; or texts, whose tokens the endpoint of ``models`` then ranks (``ranking.csv`` keeps it).

    Returns
    -------
    ExperimentResult
        One row a model. Its ``tables`` have every window, how well each score separates every two models on the
        windows that both scored (``separation``), and mean scores by class and length of the token (``easy_tokens``).

    Raises
    ------
    InputError
        If a setting does not fit the study, or texts come without an endpoint.

    Examples
    --------
    >>> from shannon_game import ranks
    >>> from shannon_game.estimators.rankings.examples import ranking_study
    >>> ranks(ranking_study(), posterior=False).table[["model", "n_windows"]]
       model  n_windows
    0  large          6
    1  small          6
    """
    if "ranked_token" in study:
        return _of_ranking(study, settings)
    asked = ask(study, settings)
    if isinstance(asked, ExperimentResult):
        return asked
    found = _of_ranking(asked, settings)
    doubts = tuple(f"{note['count']} x {note['text']}" for note in notes(asked) if note["level"] == "warning")
    files = {"ranking.csv": partial(write_ranking_table, asked)}
    return replace(found, warnings=(*doubts, *found.warnings), files=files)


def _of_ranking(study: xr.Dataset, settings: RanksSettings) -> ExperimentResult:
    scores = token_scores(study, settings)
    windows = scores_by_window(study, scores)
    found = _regression(study, settings, scores, windows) if settings.posterior else _means(settings, scores, windows)
    names = ["model", "text", "context_length", "window", "reference_token"]
    tokens = pd.DataFrame({name: study[name].to_numpy() for name in names})
    tokens = tokens.join(pd.DataFrame(token_scores_by_name(scores.rank, scores.k, settings)))
    curves, easy = score_curves(scores.k, settings), easy_tokens(tokens, ["average", "top_1"])
    separation = separations(tokens, [*curves.columns[1:]], level=settings.level, power=settings.power)
    figures = {"separation": separation_figure(separation)} if len(separation) else {}
    figures["score_curves"] = curves_figure(curves)
    return replace(
        found,
        text="\n\n".join(filter(None, [found.text, said_of_scores(separation)])),
        figures={**found.figures, **figures, "easy_tokens": easy_figure(easy)},
        tables={
            "windows": windows,
            "separation": separation,
            "easy_tokens": easy,
            "score_curves": curves,
            **found.tables,
        },
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


def _means(settings: RanksSettings, scores: TokenScores, windows: pd.DataFrame) -> ExperimentResult:
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
    )


def _regression(
    study: xr.Dataset, settings: RanksSettings, scores: TokenScores, windows: pd.DataFrame
) -> ExperimentResult:
    from shannon_game.experiments.rankings.ranks.posterior import fit_regression  # noqa: PLC0415 - the extra bayes

    found = fit_regression(settings, study, scores, windows)
    tables = {"checks": found.checks}
    figures = {
        "scores": scores_figure(windows, found.dataset, settings.score, settings.interval),
        "slopes": slopes_figure(found.table, settings.score, settings.interval),
    }
    if found.pairs is not None:
        tables["pairs"] = found.pairs
    verdict = {"ranks": found.convergence}
    best = rows_of(found.table.sort_values("p_best", ascending=False))[0]
    return ExperimentResult(
        table=found.table,
        dataset=found.dataset,
        figures=figures,
        text=f"**{best.model} is best with probability {best.p_best:.2f}** ({settings.score}): expected score "
        f"{best.expected_score_median:.3f} [{best.expected_score_lower:.3f}, {best.expected_score_upper:.3f}], "
        f"{best.score_per_doubling_median:+.4f} per doubling of the context. {int(scores.rank.size):,} tokens in "
        f"{found.n_windows} windows, which are random effects that models share (sd {found.window_spread:.2f} "
        f"log-odds), with one of their own for every model (sd {found.model_window_spread:.2f}). Models' agreement on "
        "single tokens is not in the regression: intervals of their differences err on the wide side.",
        warnings=(*unconverged(verdict), *_unlike(found.checks)),
        gate_failed=gate_failed(settings, verdict),
        posteriors=found.posteriors,
        tables=tables,
        on_screen=found.table[_ON_SCREEN],
    )


_ON_SCREEN = [
    *("model", "expected_score_median", "expected_score_lower", "expected_score_upper"),
    *("score_per_doubling_median", "score_per_doubling_lower", "score_per_doubling_upper"),
    *("p_slope_positive", "p_best", "approximate_perplexity", "converged"),
]


def _unlike(checks: pd.DataFrame) -> tuple[str, ...]:
    unlike = [
        f"{row.statistic} ({row.observed:.3f}, p {row.p_value:.3f})" for row in rows_of(checks) if row.p_value < 0.01
    ]
    return (f"the data are unlike what the regression predicts in: {', '.join(unlike)}",) if unlike else ()
