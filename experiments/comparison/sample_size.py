"""``+exp=perplexity vary=sample_size``: error of the loss by number of candidates (figure 3) and distance."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.comparison import bias_curve, diagnose_weights, group_terms
from shannon_game.estimators.comparison.perplexity import true_loss
from shannon_game.estimators.comparison.terms import candidate_log_terms, player_names
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN
from shannon_game.estimators.perplexity import perplexity_of_loss
from shannon_game.experiments.comparison.estimates import EstimateSettings, RoundingSettings, chosen_players
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import curve, light_grid, mark, name_ends, named, number_ticks, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for, rows_of
from shannon_game.inference.settings import Count, Counts, Probability

_MARKERS = ("o", "s", "D", "^", "v", "P", "X")


class SampleSizeRow(column.Row):
    """One player and one number of candidates."""

    player: str = column.key("participant or model", players=True)
    rounding: str = column.setting("grid to which probability judgements are rounded", setting="rounding")
    estimator: str = column.setting("log-mean of the likelihood ratio", setting="estimator")
    generator: str = column.setting("model that drew the candidates", setting="generator")
    n: int = column.key("candidates per item", setting="n")
    n_items: int = column.context("items")
    n_responses: int = column.context("candidates of all items")
    n_repeats: int = column.context("repeats")
    gap_nats: float = column.estimate("mean gap over repeats", unit="nats")
    true_gap_nats: float = column.truth("gap_nats", unit="nats")
    error_nats: float = column.headline("error of the loss", unit="nats", se="error_sd_nats", interval="error_{}_nats")
    kl_nats: float = column.context("KL(player, generator), mean over items", unit="nats")
    kl_is_exact: bool = column.context("whether it is exact; else from all candidates")
    reference_loss_nats: float = column.context("the generator's loss", unit="nats")
    perplexity: float = column.estimate("exp of the loss", scale="log", interval="perplexity_{}")
    true_loss_nats: float = column.detail("true loss", unit="nats")
    true_perplexity: float = column.truth("perplexity")
    true_gap_bits: float = column.detail("true_gap_nats in bits", unit="bits")
    error_bits: float = column.detail("error_nats in bits", unit="bits")


class SampleSizeSettings(EstimateSettings):
    rounding: RoundingSettings = RoundingSettings(name="none")
    """The grid to which reports are rounded."""
    n: Counts = (1, 4, 10, 40, 100, 400)
    """Candidates of each item, drawn with replacement from those stored."""
    n_repeats: Count = 20
    """How often they are drawn."""
    interval: Probability = 0.9
    """Probability inside the error band over the repeats (equal tails)."""


@experiment(SampleSizeSettings, row=SampleSizeRow)
def sample_size(study: xr.Dataset, settings: SampleSizeSettings) -> ExperimentResult:
    """Estimate the gap of every player whose probabilities are known from n candidates, one row per player and n."""
    sampler = study.attrs["generator"]
    if settings.generator.name not in (None, sampler):
        raise InputError(
            f"is {settings.generator.name!r}, but this study's candidates were drawn from {sampler!r}, "
            "and only those can be drawn again",
            field="generator",
        )
    players = _players_with_truth(study, settings, sampler)
    sizes, n_repeats, tail = settings.n, settings.n_repeats, (1 - settings.interval) / 2
    items = study["in_reference"].to_numpy() & study["selected"].to_numpy()
    if not items.any():
        raise InputError("no reference item passes the item filter", source=f"study {study.attrs['name']!r}")
    scheme, n_items = settings.rounding.scheme, int(items.sum())
    base = true_loss(study, sampler, items)
    rows: list[dict[str, Any]] = []
    truths = np.array([true_loss(study, player, items) - base for player in players])
    terms = np.stack([candidate_log_terms(study, player, scheme)[items] for player in players])
    gaps = bias_curve(
        terms,
        n=sizes,
        n_repeats=n_repeats,
        rng=rng_for(settings.seed, "sample_size"),
        estimator=settings.estimator.name,
    )
    errors = gaps - truths[:, None, None]
    told = {"rounding": scheme.name, "estimator": settings.estimator.name, "generator": sampler}
    for p, player in enumerate(players):
        truth, (kl, is_exact) = float(truths[p]), _divergence(study, player, items)
        for s, n in enumerate(sizes):
            lower, upper = np.quantile(errors[p, s], [tail, 1 - tail])
            row: dict[str, Any] = {"player": player, **told, "n": n, "n_items": n_items, "n_responses": n * n_items}
            row |= {"n_repeats": n_repeats, "gap_nats": float(gaps[p, s].mean()), "true_gap_nats": truth}
            sd = float(errors[p, s].std(ddof=1)) if errors[p, s].size > 1 else float("nan")
            row |= {"error_nats": row["gap_nats"] - truth, "error_sd_nats": sd}
            row |= {"error_lower_nats": lower, "error_upper_nats": upper, "kl_nats": kl, "kl_is_exact": is_exact}
            rows.append(row | {"reference_loss_nats": base})
    table = pd.DataFrame(rows)
    loss = table["true_gap_nats"] + base
    table["perplexity"] = perplexity_of_loss(table["gap_nats"] + base)
    for end in ("lower", "upper"):
        table[f"perplexity_{end}"] = perplexity_of_loss(loss + table[f"error_{end}_nats"])
    table = table.assign(true_loss_nats=loss, true_perplexity=np.exp(loss))
    table["true_gap_bits"] = table["true_gap_nats"] / np.log(2)
    table["error_bits"] = table["error_nats"] / np.log(2)
    dataset = xr.Dataset(
        {"error_nats": (("player", "n", "repeat"), errors, {"units": "nats"})},
        coords={"player": players, "n": list(sizes)},
        attrs={"generator": sampler, "rounding": scheme.name, "estimator": settings.estimator.name},
    )
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "sample_size": sample_size_figure(table, study.attrs["name"], settings.interval),
            "bias_by_kl": bias_by_kl_figure(
                table, f"Error against the distance to the generator ({study.attrs['name']})"
            ),
        },
        text=summary(table),
    )


def _divergence(study: xr.Dataset, player: str, items: NDArray[np.bool_]) -> tuple[float, bool]:
    """KL(player || generator), mean over items, nats; and whether it is exact or estimated from the candidates."""
    if player == HUMAN and "human_kl_nats" in study:
        return float(study["human_kl_nats"].to_numpy()[items].mean()), True
    if player != HUMAN and "kl_nats" in study:
        return float(study["kl_nats"].sel(model=player).to_numpy()[items].mean()), True
    log_weights = candidate_log_terms(study, player, "none")[items]
    grouped = group_terms(log_weights.ravel(), np.repeat(np.arange(len(log_weights)), log_weights.shape[1]))
    return diagnose_weights(grouped).kl_nats, False


def _players_with_truth(study: xr.Dataset, settings: SampleSizeSettings, sampler: str) -> list[str]:
    # the generator's own terms are all one when nothing is rounded: a flat line at zero
    unknown = {HUMAN} if "human_candidate_logprob" not in study else set()
    flat = {sampler} if settings.rounding.name == "none" else set()
    known = [name for name in player_names(study) if name not in unknown | flat]
    if settings.players is None:
        return known
    wanted = chosen_players(study, settings.players)
    if unknown & set(wanted):
        raise InputError(
            "the humans' true loss is not known on this study, so there is no error to show; "
            f"choose from: {', '.join(known)}",
            field="players",
        )
    return wanted


def summary(table: pd.DataFrame) -> str:
    """Say how large the error is at the largest n."""
    most = table[table["n"] == table["n"].max()]
    pairs = zip(most["player"], most["error_nats"], strict=True)
    said = listed(f"{error:+.3f} nats for {player_label(player)}" for player, error in pairs)
    first = table.iloc[0]
    return (
        f"**With {table['n'].max()} candidates per item the gap is off by {said} on average**, over "
        f"{first['n_repeats']} repeats on {first['n_items']} items. Candidates are drawn with replacement from those "
        f"stored of {first['generator']}; a larger n than the number stored does not help."
    )


@styled
def sample_size_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Mean error with its band over repeats, against n."""
    fig = new_figure(4.5, 3.6)
    axes, ends = _error_axes(fig), []
    for player, colour in player_colours(list(dict.fromkeys(table["player"]))).items():
        rows = table[table["player"] == player]
        quantiles = rows[["error_lower_nats", "error_nats", "error_upper_nats"]].to_numpy().T
        curve(axes, rows["n"], quantiles, colour, alpha=0.2, marker="o", markersize=4.5)
        ends.append((float(rows["error_nats"].iloc[-1]), player_label(player), colour))
    axes.set_xscale("log")
    number_ticks(axes.xaxis, sorted(set(table["n"])))
    axes.set_xlabel("candidates per item")
    first = table.iloc[0]
    generator = player_label(str(first["generator"]))
    titled(
        fig, "How many candidates does an item need?", f"{study_name}; generator {generator}, {first['n_items']} items"
    )
    named(fig, [mark(f"mean; band: central {interval:.0%} of {first['n_repeats']} repeats", marker="o", line="-")])
    name_ends(axes, ends)
    return fig


@styled
def bias_by_kl_figure(table: pd.DataFrame, title: str) -> Figure:
    """Error of every player against its divergence from the generator, one line a number of candidates."""
    sizes = sorted(set(table["n"]))
    shades = dict(zip(sizes, mpl.colormaps["viridis"](np.linspace(0.9, 0.05, len(sizes))), strict=True))
    markers = dict(zip(dict.fromkeys(table["player"]), _MARKERS * len(table), strict=False))
    fig = new_figure(7.2, 3.9)
    axes = _error_axes(fig)
    look: dict[str, Any] = {"markersize": 5.5, "markeredgecolor": "white", "markeredgewidth": 0.4, "linestyle": "none"}
    for n, shade in shades.items():
        trend = table[table["n"] == n].sort_values("kl_nats")
        # a guide for the eye: neighbours may be different players
        axes.plot(trend["kl_nats"], trend["error_nats"], color=shade, linewidth=0.8, alpha=0.5)
        for row in rows_of(trend):
            axes.plot(row.kl_nats, row.error_nats, color=shade, marker=markers[row.player], **look)
    axes.set_xlim(left=0)
    exact = "" if bool(table["kl_is_exact"].astype(bool).all()) else ", estimated from all candidates"
    axes.set_xlabel(f"KL(player \N{PARALLEL TO} generator), mean over items (nats{exact})")
    titled(fig, title)
    by_size = [mark(f"n = {n:g}", shade, linewidth=3) for n, shade in shades.items()]
    by_player = [mark(player_label(str(player)), marker=marker) for player, marker in markers.items()]
    fig.legend(handles=[*by_size, *by_player], loc="outside right center")
    return fig


def _error_axes(fig: Figure) -> Axes:
    """Axes of errors, with a line where there is none."""
    axes = fig.add_subplot()
    axes.axhline(0, color="0.5", linewidth=0.8, linestyle="--")
    light_grid(axes, "y")
    axes.set_ylabel("error of the loss, nats per token")
    return axes
