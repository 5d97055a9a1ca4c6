"""``+exp=reproduce experiment.of=ranks``: what the thesis on rank-based perplexity prints beside our numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from scipy import special, stats

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Load
from shannon_game.estimators.rankings.study import TokenScores
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.papers.published_study import REPRODUCED, judge, parse_select
from shannon_game.experiments.rankings.ranks.experiment import ranks, token_scores
from shannon_game.experiments.rankings.ranks.settings import RanksSettings
from shannon_game.experiments.rankings.windows import scores_by_window

PUBLISHED = Path(__file__).with_name("rank_perplexity_published.csv")
"""What the thesis prints, and the single scores of the repeats from its workbooks."""

MODELS = ("gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4o")
"""In the thesis's order."""

_COLUMNS = (
    *("place", "text", "context_length", "window", "model", "quantity"),
    *("published", "ours", "difference", "agrees", "unrounded", "source"),
)
_KEY = ["text", "context_length", "window", "model"]
_QUANTITIES = ["linear", "reciprocal", "perplexity", "exponential_01", "exponential_03", "average"]
_FITTED = ["average", "perplexity"]
_LEADERBOARD = ("gpt-4o", "gpt-4-turbo", "gpt-4", "gpt-3.5-turbo")
"""As section 5 names it."""
_TEMPERATURES, _CALLS, _N_RUNS = (0.0, 0.5, 1.0, 2.0), 10, 200
# digits of tables 1 and 2, on which the thesis fits its lines
_DIGITS = 2


class RanksPublishedSettings(RanksSettings):
    posterior: bool = False
    """Fit the regression, too (extra bayes)."""


@experiment(RanksPublishedSettings)
def ranks_published(study: xr.Dataset, settings: RanksPublishedSettings) -> ExperimentResult:
    """Do what ``ranks`` does, and put every number that the thesis prints beside ours."""
    if study.attrs.get("name") != "rank_perplexity" or set(study["part"].to_numpy()) != {"main", "repeats"}:
        raise InputError(f"is not the whole of the thesis's: {Load('rank_perplexity', {'part': 'all'})}", field="study")
    scores = token_scores(study, settings)
    windows, runs = scores_by_window(study, scores), exhaustive_runs(study, scores, settings.seed)
    table, outliers = compare_with_published(windows), outlier_counts(windows)
    result = ranks(study, settings)
    order = model_order(windows)
    said = f"{_said(table)}\n\n{_said_of_outliers(outliers)} {_said_of_order(order)} {_said_of_runs(runs)}\n\n"
    tables = {**result.tables, "published": table, "outliers": outliers, "order": order, "exhaustive": runs}
    return replace(result, text=said + result.text, tables=tables)


def read_published() -> pd.DataFrame:
    """Read the published values by place, text, length, window, model and quantity; what does not apply is empty."""
    rows = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    table = pd.DataFrame([parse_select(text) for text in rows["select"]])
    length = pd.to_numeric(table["context_length"]).astype("Int64")
    return table.assign(context_length=length, published=rows["printed"], source=rows["source"])


def compare_with_published(windows: pd.DataFrame) -> pd.DataFrame:
    """Put every published number beside ours."""
    published = read_published()
    scores = windows.melt(["part", *_KEY], _QUANTITIES, var_name="quantity", value_name="ours").drop(columns="part")
    scores["context_length"] = scores["context_length"].astype("Int64")
    is_cell = published["context_length"].notna()
    cells = published[is_cell].merge(scores, on=[*_KEY, "quantity"], how="inner")
    found = pd.concat([_statistics(windows), _appendix_c(windows)])
    others = published[~is_cell].merge(found, on=["place", "text", "model", "quantity"], how="left")
    table = pd.concat([cells, others], ignore_index=True)
    table["difference"] = table["ours"] - table["published"].astype(float)
    table["agrees"] = [judge(row.published, row.ours) == REPRODUCED for row in rows_of(table)]
    return table[list(_COLUMNS)]


def outlier_counts(windows: pd.DataFrame) -> pd.DataFrame:
    """Count the main run's values at the length of the repeats that are outliers, by score.

    An outlier lies more than one standard deviation from its model's mean, over the repeats and the main run.
    """
    both = windows[windows["context_length"].isin(windows.loc[windows["part"] == "repeats", "context_length"])]
    scores = both.groupby("model")[_FITTED]
    far = (both[_FITTED] - scores.transform("mean")).abs() > scores.transform("std")
    of_main = far[both["part"] == "main"]
    counts = {**of_main.sum(), "both": int(of_main.to_numpy().sum())}
    sizes = [len(of_main), len(of_main), of_main.size]
    return pd.DataFrame({"quantity": list(counts), "outliers": list(counts.values()), "n_values": sizes})


def exhaustive_runs(study: xr.Dataset, scores: TokenScores, seed: int) -> pd.DataFrame:
    """Give the tokens that so many calls score in the saved windows, and their mean score, by temperature (3.1.2).

    A call goes on while the sampled token, drawn from the saved list at a temperature, is the reference.
    """
    frame = study[[*_KEY, "position"]].to_dataframe().reset_index(drop=True)
    order, n_positions = frame.sort_values([*_KEY, "position"]).index, int(frame["position"].max()) + 1
    model = frame["model"].to_numpy()[order].reshape(-1, n_positions)[:, 0]
    average, listed = scores.average[order].reshape(-1, n_positions), np.isfinite(scores.rank[order])
    at = np.where(listed, scores.rank[order], 1).astype(int) - 1
    logprob = np.nan_to_num(study["ranked_logprob"].to_numpy()[order], nan=-np.inf)
    rng, rows = np.random.default_rng(seed), []
    for temperature in _TEMPERATURES:
        share = special.softmax(logprob / max(temperature, 1e-3), axis=1)
        right = np.where(listed, share[np.arange(len(at)), at], 0.0).reshape(average.shape)
        ends = rng.random((_N_RUNS, *right.shape)) >= right
        # a token belongs to the call that the tokens before it left open
        scored = np.less(np.cumsum(ends, axis=2) - ends, _CALLS)
        mean = (scored * average).sum(axis=2) / scored.sum(axis=2)
        for name in dict.fromkeys(model):
            own = model == name
            row = {"model": name, "temperature": temperature, "calls": _CALLS, "average": average[own, :_CALLS].mean()}
            n_tokens = scored[:, own].sum(axis=2).mean()
            rows.append(row | {"n_tokens": n_tokens, "average_exhaustive": mean[:, own].mean()})
    return pd.DataFrame(rows)


def _said_of_runs(runs: pd.DataFrame) -> str:
    spans = runs.groupby("temperature")["n_tokens"].agg(["min", "max"])
    said = "; ".join(f"{low:.1f} to {high:.1f} at temperature {t:g}" for t, low, high in spans.itertuples())
    moved = (runs["average_exhaustive"] - runs["average"]).abs().max()
    return (
        f"Exhaustive runs of {_CALLS} calls score, by model, {said} (in the windows of 30); their average score is at "
        f"most {moved:.3f} from that of the first {_CALLS} tokens (`exhaustive.csv`)."
    )


def model_order(windows: pd.DataFrame) -> pd.DataFrame:
    """Order the models by either mean of the main run, the best first, beside the leaderboard."""
    means = windows[windows["part"] == "main"].groupby("model")[_FITTED].mean()
    ranks_of = {"by_average": means["average"].rank(ascending=False), "by_perplexity": means["perplexity"].rank()}
    table = means.assign(**ranks_of).loc[list(_LEADERBOARD)].reset_index()
    return table.assign(leaderboard=np.arange(1, len(table) + 1))


def _said_of_order(order: pd.DataFrame) -> str:
    by = {name: ", ".join(order.sort_values(name)["model"]) for name in ("by_average", "by_perplexity", "leaderboard")}
    return (
        f"Best first by the average score: {by['by_average']}; by perplexity: {by['by_perplexity']}; on the "
        f"leaderboard that the thesis names: {by['leaderboard']} (`order.csv`)."
    )


def _said_of_outliers(outliers: pd.DataFrame) -> str:
    counted = ", ".join(f"{row.quantity} {row.outliers} of {row.n_values}" for row in rows_of(outliers))
    return (
        "Outliers at the length of the repeats, more than one standard deviation from the mean of a model's values "
        f"(`outliers.csv`): {counted}. The thesis has 3 of 8 for either score, 6 of 16 in all."
    )


def _statistics(windows: pd.DataFrame) -> pd.DataFrame:
    main, repeats = (windows[windows["part"] == part] for part in ("main", "repeats"))
    both = windows[windows["context_length"].isin(repeats["context_length"])]
    by_model = main.groupby("model")["perplexity"].mean()
    rows = [("mean", model, "mean_perplexity", value) for model, value in by_model.items()]
    for name in _FITTED:
        rows += [(f"mean of {text}", "", f"mean_{name}", mine[name].mean()) for text, mine in main.groupby("text")]
        for place, group in (("repeats", repeats), ("repeats and main run", both)):
            rows.append((place, "", f"sd_{name}", group.groupby("model")[name].std(ddof=1).mean()))
    return pd.DataFrame(rows, columns=["place", "model", "quantity", "ours"]).assign(text="")


def _appendix_c(windows: pd.DataFrame) -> pd.DataFrame:
    """Slopes, their standard errors and p-values: on ours rounded as the tables print it, and on ours."""
    main = windows[windows["part"] == "main"].melt(_KEY, _FITTED, var_name="quantity")
    # halves up, also where a float falls short of the half by a hair
    rounded = main.assign(value=np.round(main["value"] + 1e-9, _DIGITS))
    keys = ["text", "model", "quantity"]
    fits = [
        fit_lines(cells).melt(keys, ["slope", "slope_se", "p_value"], var_name="what", value_name=column)
        for column, cells in (("ours", rounded), ("unrounded", main))
    ]
    table = fits[0].merge(fits[1], on=[*keys, "what"])
    return table.assign(
        place=np.where(table["text"] == "", "section 4, both texts", "appendix C"),
        quantity=table["what"] + "_" + table["quantity"],
    ).drop(columns="what")


def fit_lines(cells: pd.DataFrame) -> pd.DataFrame:
    """Ordinary least squares of ``value`` on the raw length by model, quantity and text; both texts pooled are ""."""
    rows = []
    keys = ["text", "model", "quantity"]
    for key, mine in pd.concat([cells, cells.assign(text="")]).groupby(keys, sort=False):
        fit = stats.linregress(mine["context_length"].to_numpy(dtype=float), mine["value"].to_numpy(dtype=float))
        found = {"slope": float(fit.slope), "slope_se": float(fit.stderr), "p_value": float(fit.pvalue)}
        rows.append(dict(zip(keys, key, strict=True)) | found)
    return pd.DataFrame(rows)


def _said(table: pd.DataFrame) -> str:
    cells = table[table["context_length"].notna()]
    in_tables = cells[cells["place"].str.startswith("tables")]
    in_appendix = cells[cells["place"].isin(["appendix A", "appendix B"])]
    wrong = rows_of(in_appendix[~in_appendix["agrees"]])
    text = (
        f"**{int(in_tables['agrees'].sum())} of {len(in_tables)} cells of tables 1-4 and "
        f"{int(in_appendix['agrees'].sum())} of {len(in_appendix)} of appendices A and B agree** at printed precision "
        "(`published.csv`)."
    )
    places = sorted({f"{row.place}, length {row.context_length}, {row.quantity}" for row in wrong})
    return f"{text} The others: {'; '.join(places)}." if wrong else text
