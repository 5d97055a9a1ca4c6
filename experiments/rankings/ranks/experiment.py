"""``+exp=ranks``: rank scores against context length, published numbers beside ours, and a hierarchical regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from omegaconf import DictConfig, ListConfig

from estimators.errors import InputError, unknown_choice
from estimators.rankings import average_score, linear_score, reciprocal_score, top_k_accuracy
from estimators.rankings.perplexity import approximate_perplexity
from estimators.rankings.study import TokenScores, match_in_study, score_study
from experiments.harness.bayes import check_bayesian, convergence_columns, gate, sample_model
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import numbers_of, rng_for, rows_of, tail_probability
from experiments.papers.ranks_published import compare_with_published
from experiments.rankings.ranks.figures import power_figure, predictive_figure, scores_figure, slopes_figure
from inference.posterior.arviz_adapter import group

if TYPE_CHECKING:
    from inference.rankings.slopes import RankDraws
    from models.rankings.slopes import RankData

__all__ = ["SCORES", "run", "scores_by_window"]

SCORES = ("average", "linear", "reciprocal", "top_1")
"""Scores in which slopes can be told."""

_SCORE_COLUMNS = ("linear", "reciprocal", "exponential_01", "exponential_03", "average", "top_1")
_WINDOW = ["text", "context_length", "window", "model"]
FloatArray = NDArray[np.float64]


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Score every token, compare with the thesis, fit the regression, and say what it means for models and studies."""
    _check(cfg)
    if not cfg.experiment.posterior:
        return _without_posterior(cfg, study)
    from inference.rankings.slopes import (  # noqa: PLC0415 - seconds of imports that only a fit should cost
        expected_scores,
        power_to_tell_apart,
        predictive_checks,
        rank_draws,
        replicated_counts,
    )
    from models.rankings.slopes import RankPriors, rank_data, rank_slope_model  # noqa: PLC0415

    tail = tail_probability(cfg)
    scores = _scores(cfg, study)
    windows = scores_by_window(study, scores)
    data = rank_data(study, scores.rank, scores.k)
    idata = sample_model(cfg, rank_slope_model(data, numbers_of(cfg, "priors", RankPriors)), "ranks")
    convergence = gate(cfg, idata)

    value = _score_of_category(cfg, data)
    posterior = group(idata, "posterior")
    every = rank_draws(posterior)
    some = rank_draws(posterior, int(cfg.experiment.n_draws))
    length = np.unique(data.window_length)
    expected = expected_scores(every, data, value, length)
    table = _table(cfg, study, scores, data=data, draws=every, expected=expected).assign(
        **convergence_columns(convergence)
    )
    replicated = replicated_counts(some, data, rng_for(cfg, "replicated ranks"))
    checks = pd.DataFrame([asdict(check) for check in predictive_checks(replicated, data, value, tail=tail)])
    n_tokens = cfg.experiment.power_tokens or round(data.count.sum() / len(data.count))
    power = (
        power_to_tell_apart(
            some,
            data,
            value,
            n_windows=list(cfg.experiment.power_windows),
            n_tokens=n_tokens,
            rng=rng_for(cfg, "power"),
        )
        if data.model.size > 1
        else {}
    )
    tables = {"windows": windows, "checks": checks}
    if power:
        tables["pairs"] = _pairs(data, expected, length, power, list(cfg.experiment.power_windows))
    tables |= _published(study, windows)
    dataset = _dataset(cfg, data, windows, draws=every, expected=expected, replicated=replicated, power=power)
    failed = not convergence.passed
    return ExperimentResult(
        table=table,
        dataset=dataset.assign_attrs(n_tokens_of_power=int(n_tokens)),
        figures={
            "scores": scores_figure(windows, dataset, str(cfg.experiment.score), float(cfg.experiment.interval)),
            "slopes": slopes_figure(table, dataset, str(cfg.experiment.score), float(cfg.experiment.interval)),
            "predictive": predictive_figure(dataset, checks, float(cfg.experiment.interval)),
            **({"power": power_figure(dataset, int(n_tokens))} if power else {}),
        },
        summary=_summary(cfg, table, tables, data=data, draws=every, scores=scores),
        warnings=(
            *((f"the posterior did not converge, do not use it: {'; '.join(convergence.reasons)}",) if failed else ()),
            *_check_warnings(checks),
        ),
        gate_failed=failed and not cfg.experiment.allow_unconverged,
        posteriors={"ranks": idata},
        files={"tables": partial(_write_tables, tables)},
    )


def _without_posterior(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Scores and published numbers only: seconds, and no extra bayes."""
    scores = _scores(cfg, study)
    windows = scores_by_window(study, scores)
    tables = {"windows": windows, **_published(study, windows)}
    models = list(dict.fromkeys(windows["model"]))
    dataset = xr.Dataset(
        _window_variables(windows),
        coords={"model": np.array(models, object), "length": np.unique(windows["context_length"])},
    )
    table = windows.groupby("model", sort=True)[[*_SCORE_COLUMNS, "share_censored"]].mean()
    table.insert(0, "n_windows", windows.groupby("model").size())
    text = (
        f"{int(scores.rank.size):,} tokens in {len(windows)} windows and models; without the regression "
        "(experiment.posterior=true), which takes about a minute. Scores are means over windows."
    )
    parts = [text, *([_published_summary(tables["published"])] if "published" in tables else [])]
    return ExperimentResult(
        table=table.reset_index(),
        dataset=dataset,
        figures={"scores": scores_figure(windows, dataset, str(cfg.experiment.score), float(cfg.experiment.interval))},
        summary="\n\n".join(parts),
        files={"tables": partial(_write_tables, tables)},
    )


def _published(study: xr.Dataset, windows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The thesis's numbers beside ours, where the study is the whole of the thesis's."""
    whole = study.attrs.get("name") == "rank_perplexity" and set(study["part"].to_numpy()) == {"main", "repeats"}
    return {"published": compare_with_published(windows)} if whole else {}


def _check(cfg: DictConfig) -> None:
    settings = cfg.experiment
    if not isinstance(settings.posterior, bool):
        raise InputError(f"is {settings.posterior!r}, should be true or false", field="experiment.posterior")
    tail_probability(cfg)
    if settings.posterior:
        check_bayesian(cfg, {})
    if settings.score not in SCORES:
        raise unknown_choice("experiment.score", settings.score, SCORES)
    for name in ("n_draws", "power_tokens", "top_k", "vocab_size"):
        value = settings[name]
        optional = name != "n_draws"
        if not (isinstance(value, int) and not isinstance(value, bool) and value >= 1) and not (
            optional and value is None
        ):
            raise InputError(
                f"is {value!r}, should be a whole number of at least 1{' or null' if optional else ''}",
                field=f"experiment.{name}",
            )
    number = settings.power_windows
    if not isinstance(number, ListConfig) or not number or not all(isinstance(n, int) and n >= 3 for n in number):
        raise InputError(f"is {number}, should be a list of whole numbers from 3", field="experiment.power_windows")


def _scores(cfg: DictConfig, study: xr.Dataset) -> TokenScores:
    settings = cfg.experiment
    return score_study(
        study,
        match=settings.match,
        tie=settings.tie,
        top_k=settings.top_k,
        censoring=settings.censoring,
        offset_nats=settings.offset_nats,
        vocab_size=settings.vocab_size,
    )


def scores_by_window(study: xr.Dataset, scores: TokenScores) -> pd.DataFrame:
    """Mean scores and perplexity of every window and model, with the standard error over tokens of the average score.

    Parameters
    ----------
    study : xarray.Dataset
    scores : TokenScores
        With the thesis's two decays.

    Returns
    -------
    pandas.DataFrame
        A row a window and model.
    """
    tokens = pd.DataFrame(
        {
            **{name: study[name].to_numpy() for name in _WINDOW},
            "part": study["part"].to_numpy() if "part" in study else "main",
            "linear": scores.linear,
            "reciprocal": scores.reciprocal,
            "exponential_01": scores.exponential[0],
            "exponential_03": scores.exponential[1],
            "average": scores.average,
            "top_1": top_k_accuracy(scores.rank, 1),
            "loss_nats": -scores.logprob_nats,
            "share_censored": scores.censored.astype(float),
        }
    )
    groups = tokens.groupby(["part", *_WINDOW], sort=True)
    table = groups.mean()
    table["perplexity"] = np.exp(table["loss_nats"])
    table["n_tokens"] = groups.size()
    for name in SCORES:
        table[f"{name}_se"] = groups[name].std(ddof=1) / np.sqrt(table["n_tokens"])
    return table.reset_index()


def _score_of_category(cfg: DictConfig, data: RankData) -> FloatArray:
    rank = data.category_rank
    of_name = {
        "average": lambda: average_score(rank, data.k),
        "linear": lambda: linear_score(rank, data.k),
        "reciprocal": lambda: reciprocal_score(rank),
        "top_1": lambda: top_k_accuracy(rank, 1),
    }
    return of_name[cfg.experiment.score]()


def _quantiles(name: str, draws: FloatArray, tail: float) -> dict[str, float]:
    median, lower, upper = np.quantile(draws, [0.5, tail, 1 - tail])
    return {f"{name}_median": float(median), f"{name}_lower": float(lower), f"{name}_upper": float(upper)}


def _table(
    cfg: DictConfig,
    study: xr.Dataset,
    scores: TokenScores,
    *,
    data: RankData,
    draws: RankDraws,
    expected: FloatArray,
) -> pd.DataFrame:
    from inference.rankings.slopes import score_slopes, share_best  # noqa: PLC0415

    tail = tail_probability(cfg)
    level = expected.mean(axis=2)
    slope = score_slopes(expected, np.unique(data.window_length))
    best, steepest = share_best(level), share_best(slope)
    hit = match_in_study(study, cfg.experiment.match)[:, : scores.k]
    logprob = np.minimum(study["ranked_logprob"].to_numpy()[:, : scores.k], 0)
    rows = []
    for at, model in enumerate(data.model):
        mine = study["model"].to_numpy() == model
        perplexity = np.exp(-scores.logprob_nats[mine].mean())
        bound = approximate_perplexity(logprob[mine], hit[mine], censoring="bound").perplexity
        rows.append(
            {
                "model": model,
                "n_tokens": int(mine.sum()),
                "n_windows": int((data.cell_model == at).sum()),
                **{
                    name: float(values[mine].mean())
                    for name, values in (
                        ("linear", scores.linear),
                        ("reciprocal", scores.reciprocal),
                        ("average", scores.average),
                        ("top_1", top_k_accuracy(scores.rank, 1)),
                        ("share_censored", scores.censored.astype(float)),
                    )
                },
                "approximate_perplexity": float(perplexity),
                "perplexity_bound": bound,
                **_quantiles("expected_score", level[:, at], tail),
                **_quantiles("score_per_doubling", slope[:, at], tail),
                **_quantiles("log_odds_per_doubling", draws.slope[:, at], tail),
                "p_slope_positive": float((draws.slope[:, at] > 0).mean()),
                "p_best": float(best[at, 0]),
                "p_steepest": float(steepest[at, 0]),
            }
        )
    return pd.DataFrame(rows)


def _pairs(
    data: RankData, expected: FloatArray, length: NDArray[np.int64], power: Mapping[str, FloatArray], number: list[int]
) -> pd.DataFrame:
    """Pairs of models: probability that the first is better or steeper, and the windows that tell them apart."""
    from inference.rankings.slopes import score_slopes  # noqa: PLC0415

    level, slope = expected.mean(axis=2), score_slopes(expected, length)
    rows = []
    for at, (first, second) in enumerate(zip(*np.triu_indices(data.model.size, 1), strict=True)):
        enough = {name: [n for n, share in zip(number, power[name][at], strict=True) if share >= 0.8] for name in power}
        rows.append(
            {
                "first": data.model[first],
                "second": data.model[second],
                "p_first_better": float((level[:, first] > level[:, second]).mean()),
                "p_first_steeper": float((slope[:, first] > slope[:, second]).mean()),
                "difference_median": float(np.median(level[:, first] - level[:, second])),
                "slope_difference_median": float(np.median(slope[:, first] - slope[:, second])),
                **{f"windows_for_{name}": min(enough[name], default=np.nan) for name in power},
            }
        )
    return pd.DataFrame(rows)


def _dataset(
    cfg: DictConfig,
    data: RankData,
    windows: pd.DataFrame,
    *,
    draws: RankDraws,
    expected: FloatArray,
    replicated: NDArray[np.int64],
    power: Mapping[str, FloatArray],
) -> xr.Dataset:
    """Everything the figures show, and the draws of slopes and levels."""
    from inference.rankings.slopes import score_slopes, share_best  # noqa: PLC0415

    tail = tail_probability(cfg)
    quantile = [tail, 0.5, 1 - tail]
    length = np.unique(data.window_length)
    level, slope = expected.mean(axis=2), score_slopes(expected, length)
    n_models, k = data.model.size, data.k
    member = np.stack([data.cell_model == at for at in range(n_models)])
    observed = np.stack([data.count[mine].sum(axis=0) for mine in member])
    drawn = np.stack([replicated[:, mine].sum(axis=1) for mine in member], axis=1)
    # categories run from the worst; a reader's ranks from the best
    observed, drawn = observed[:, ::-1], drawn[..., ::-1]
    variables: dict[str, Any] = {
        "expected_score": (("quantile", "model", "length"), np.quantile(expected, quantile, axis=0)),
        "level_draws": (("draw", "model"), level),
        "slope_draws": (("draw", "model"), slope),
        "log_odds_slope_draws": (("draw", "model"), draws.slope),
        "p_place": (("model", "place"), share_best(level)),
        "p_place_slope": (("model", "place"), share_best(slope)),
        "rank_share": (("model", "rank"), observed / observed.sum(axis=1, keepdims=True)),
        "predicted_rank_share": (
            ("quantile", "model", "rank"),
            np.quantile(drawn / drawn.sum(axis=-1, keepdims=True), quantile, axis=0),
        ),
        "window_spread_draws": ("draw", draws.window_spread),
        "model_window_spread_draws": ("draw", draws.model_window_spread),
        **_window_variables(windows),
    }
    coords: dict[str, Any] = {
        "model": data.model.astype(object),
        "length": length,
        "quantile": quantile,
        "place": np.arange(1, n_models + 1),
        # the last is "outside the list"
        "rank": np.arange(1, k + 2),
    }
    if power:
        first, second = np.triu_indices(n_models, 1)
        variables |= {f"power_{name}": (("pair", "n_windows"), values) for name, values in power.items()}
        coords |= {
            "pair": np.array(
                [f"{data.model[a]} / {data.model[b]}" for a, b in zip(first, second, strict=True)], object
            ),
            "n_windows": list(cfg.experiment.power_windows),
        }
    return xr.Dataset(variables, coords=coords)


def _window_variables(windows: pd.DataFrame) -> dict[str, Any]:
    return {
        f"window_{name}": ("cell", windows[name].to_numpy(dtype=None if windows[name].dtype.kind in "fiu" else object))
        for name in (*_WINDOW, *_SCORE_COLUMNS, *(f"{name}_se" for name in SCORES), "perplexity", "n_tokens")
    }


def _write_tables(tables: Mapping[str, pd.DataFrame], folder: Any) -> None:
    folder.mkdir()
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def _check_warnings(checks: pd.DataFrame) -> tuple[str, ...]:
    unlike = [
        f"{row.statistic} ({row.observed:.3f}, p {row.p_value:.3f})" for row in rows_of(checks) if row.p_value < 0.01
    ]
    if not unlike:
        return ()
    return (f"the data are unlike what the regression predicts in: {', '.join(unlike)}",)


def _summary(
    cfg: DictConfig,
    table: pd.DataFrame,
    tables: Mapping[str, pd.DataFrame],
    *,
    data: RankData,
    draws: RankDraws,
    scores: TokenScores,
) -> str:
    interval = float(cfg.experiment.interval)
    lines = [
        f"- **{row.model}**: expected score {row.expected_score_median:.3f} "
        f"[{row.expected_score_lower:.3f}, {row.expected_score_upper:.3f}], "
        f"{row.score_per_doubling_median:+.4f} "
        f"[{row.score_per_doubling_lower:+.4f}, {row.score_per_doubling_upper:+.4f}] "
        f"per doubling of the context (probability of a rise {row.p_slope_positive:.2f}); best with probability "
        f"{row.p_best:.2f}; approximate perplexity {row.approximate_perplexity:.1f} "
        f"(at least {row.perplexity_bound:.1f})."
        for row in rows_of(table)
    ]
    spread = np.median(draws.window_spread), np.median(draws.model_window_spread)
    parts = [
        f"{int(scores.rank.size):,} tokens in {data.window.size} windows; score: {cfg.experiment.score}; intervals "
        f"hold {interval:.0%} of the posterior. A window is a random effect that models share "
        f"(sd {spread[0]:.2f} log-odds), with one of its own for every model (sd {spread[1]:.2f}). Agreement of models "
        "on single tokens is not in the regression, so that intervals of differences between models err on the wide "
        "side.",
        "\n".join(lines),
    ]
    if "published" in tables:
        parts.append(_published_summary(tables["published"]))
    if "pairs" in tables:
        needed = []
        for row in rows_of(tables["pairs"]):
            of_row = [
                f"{name} {'more than were tried' if np.isnan(n) else f'{n:.0f}'}"
                for name, n in (("mean", row.windows_for_mean), ("slope", row.windows_for_slope))
            ]
            needed.append(f"- {row.first} and {row.second}: {', '.join(of_row)}.")
        parts += [
            "Windows that a study needs to tell two models apart with power .8 (5% test of the mean, or of the slope):",
            "\n".join(needed),
        ]
    return "\n\n".join(parts)


def _published_summary(table: pd.DataFrame) -> str:
    cells = table[table["context_length"].notna()]
    in_tables = cells[cells["place"].str.startswith("tables")]
    in_appendix = cells[cells["place"].isin(["appendix A", "appendix B"])]
    wrong = in_appendix[~in_appendix["agrees"]]
    places = sorted({f"{row.place}, length {row.context_length}, {row.quantity}" for row in rows_of(wrong)})
    text = (
        f"Published numbers (`tables/published.csv`): {int(in_tables['agrees'].sum())} of {len(in_tables)} cells of "
        f"tables 1-4 and {int(in_appendix['agrees'].sum())} of {len(in_appendix)} of appendices A and B agree at "
        "printed precision."
    )
    if len(wrong):
        true = ", ".join(f"{row.model} {row.ours:.4f}" for row in rows_of(wrong))
        text += f" The others: {'; '.join(places)}, where ours are {true}"
        text += " (a misprint: the row repeats the perplexities)." if "reciprocal" in set(wrong["quantity"]) else "."
    return text
