"""``+exp=perplexity vary=extrapolation``: people's loss by a polynomial through models' scores and losses.

Shen et al. (2017, Estimation of gap between current language models and human performance) fit a polynomial to people's
judgements of models of known loss, and read people's loss off where people's own text is judged. Here the judgement is
the mean ln p of the answers in the comparison game, which models give to the comparisons that people saw.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic import Field

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import two_alternative_report
from shannon_game.estimators.comparison.study_sources import TARGET_POSITION, response_references
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN, item_positions
from shannon_game.estimators.messages import Ask
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import name_ends, titled
from shannon_game.experiments.harness.plots import bars, styled
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for, rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.settings import Count, Probability

_STYLES = ["-", "--", "-."]
_WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}


class ExtrapolationRow(column.Row):
    """One player and degree; a model's row leaves it out of the fit."""

    player: str = column.key("people, or a model", players=True)
    degree: int = column.key("degree of the polynomial", setting="experiment.degrees")
    n_models: int = column.context("models that it goes through")
    score_nats: float = column.beside("loss_nats", "mean ln p of the player's answers", unit="nats")
    outside: bool = column.flag("whether the score is outside those of these models", bad={"True": "†"})
    loss_nats: float = column.headline("loss read off", unit="nats", interval="{}_nats")
    true_loss_nats: float = column.truth("loss_nats", "known of models and of simulated people", unit="nats")
    error_nats: float = column.error("loss_nats", unit="nats")
    inside: bool = column.detail("whether the interval holds the truth")


class ExtrapolationSettings(Seeded):
    degrees: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (1, 2)
    """Degrees of the polynomial; one that the models are too few for is left out."""
    n_replicates: Count = 1000
    """Bootstrap replicates over items."""
    interval: Probability = 0.9
    """Probability inside the intervals."""


@experiment(ExtrapolationSettings, row=ExtrapolationRow)
def extrapolation(study: xr.Dataset, settings: ExtrapolationSettings) -> ExperimentResult:
    """Extrapolate the loss of people, and of every model left out, from the scores of the (other) models."""
    scores, losses, truth = _by_item(study)
    models = list(losses)
    if len(models) <= min(settings.degrees):
        raise InputError(
            f"has {len(models)} models; a polynomial of degree {min(settings.degrees)} needs one more",
            source=f"comparison study {study.attrs.get('name')!r}",
            field="model",
        )
    rng = rng_for(settings.seed, "items")
    n_items = len(scores[HUMAN])
    draws = np.vstack([np.arange(n_items), rng.integers(0, n_items, (settings.n_replicates, n_items))])
    mean_score = {name: values[draws].mean(axis=1) for name, values in scores.items()}
    mean_loss = {name: values[draws].mean(axis=1) for name, values in losses.items()}
    known = {name: float(values.mean()) for name, values in losses.items()} | ({HUMAN: truth} if truth else {})
    rows: list[tuple[Any, ...]] = []
    for player in [HUMAN, *models]:
        others = [name for name in models if name != player]
        for degree in settings.degrees:
            if len(others) <= degree:
                continue
            x = np.stack([mean_score[name] for name in others], axis=1)
            y = np.stack([mean_loss[name] for name in others], axis=1)
            at, truth = mean_score[player], known.get(player, float("nan"))
            found = np.array([_polynomial(x[k], y[k], degree, at[k]) for k in range(len(draws))])
            lower, upper = np.nanquantile(found[1:], [(1 - settings.interval) / 2, (1 + settings.interval) / 2])
            outside = bool(at[0] < x[0].min() or at[0] > x[0].max())
            inside = None if np.isnan(truth) else bool(lower <= truth <= upper)
            row = (player, degree, len(others), at[0], outside, found[0], lower, upper, truth, found[0] - truth, inside)
            rows.append(row)
    table = pd.DataFrame(rows, columns=[one.name for one in ExtrapolationRow.columns])
    points = pd.DataFrame(
        {"model": models, "score_nats": [mean_score[m][0] for m in models], "loss_nats": [known[m] for m in models]}
    )
    about = str(study.attrs.get("name", ""))
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(
            ExtrapolationRow.variables(table, "row") | table_variables(points.add_prefix("point_"), "point")
        ),
        figures={"extrapolation": extrapolation_figure(table, points, about, settings.interval)},
        text=_summary(table, settings.interval),
        warnings=_warnings(table),
    )


def _by_item(study: xr.Dataset) -> tuple[dict[str, FloatArray], dict[str, FloatArray], float]:
    """Mean ln p by item of every player, losses by item of the models, and people's true loss (0 where unknown)."""
    keep = response_references(study) == TARGET_POSITION
    if not keep.any():
        raise InputError("has no comparison with the token of the text", field="response")
    item, candidate = item_positions(study, "response_item")[keep], study["response_candidate"].to_numpy()[keep]
    asked, place = np.unique(item, return_inverse=True)
    n = np.bincount(place)

    def mean(values: FloatArray) -> FloatArray:
        sums: FloatArray = np.bincount(place, weights=values) / n
        return sums

    scores = {HUMAN: mean(np.log(study["report"].to_numpy()[keep]))}
    losses = {}
    for at, model in enumerate(study["model"].to_numpy().tolist()):
        target = study["target_logprob"].to_numpy()[at]
        other = study["candidate_logprob"].to_numpy()[at, item, candidate]
        scores[str(model)] = mean(np.log(two_alternative_report(target[item], other)))
        losses[str(model)] = -target[asked]
    truth = -float(study["human_target_logprob"].to_numpy()[asked].mean()) if "human_target_logprob" in study else 0.0
    return scores, losses, truth


def _polynomial(x: FloatArray, y: FloatArray, degree: int, at: float) -> float:
    """Least-squares polynomial, at a place; NaN where models have the same score."""
    if np.unique(x).size <= degree:
        return float("nan")
    return float(np.polynomial.Polynomial.fit(x, y, degree)(at))


def _warnings(table: pd.DataFrame) -> tuple[str, ...]:
    said = []
    people = table[table["player"] == HUMAN]
    spread = people["loss_nats"].max() - people["loss_nats"].min()
    if people["outside"].any():
        said.append(f"people's score is outside the models' scores: add models on both sides, or {Ask('human_loss')}")
    if spread > 0.1:
        said.append(f"the degrees disagree by {spread:.2f} nats on people's loss: report both, or {Ask('human_loss')}")
    return tuple(said)


def _summary(table: pd.DataFrame, interval: float) -> str:
    people = rows_of(table[table["player"] == HUMAN])
    each = [f"{row.loss_nats:.3f} [{row.lower_nats:.3f}, {row.upper_nats:.3f}] (degree {row.degree})" for row in people]
    known = people and np.isfinite(people[0].true_loss_nats)
    truth = f"; in truth {people[0].true_loss_nats:.3f}" if known else ""
    models = table[table["player"] != HUMAN]
    left_out = (
        f" A model that is left out is missed by {models['error_nats'].abs().mean():.3f} nats on average."
        if len(models)
        else ""
    )
    return (
        f"**People's loss is {' or '.join(each) or 'unknown'} nats per token, read off a polynomial through the "
        f"models' scores{truth}.**{left_out} The {interval:.0%} intervals resample items; they leave out the choice of "
        "the curve."
    )


@styled
def extrapolation_figure(
    table: pd.DataFrame, points: pd.DataFrame, study_name: str = "", interval: float = 0.9
) -> Figure:
    """Models' scores and losses with the curves through them; beside them what the curves give people."""
    people = table[table["player"] == HUMAN]
    x, y, score = points["score_nats"].to_numpy(), points["loss_nats"].to_numpy(), people["score_nats"].iloc[0]
    fig = new_figure(4.5, 3.6)
    left, right = fig.subplots(1, 2, sharey=True, width_ratios=[1.6, 1])
    colours = player_colours(points["model"].tolist())
    look: dict[str, Any] = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center", "bbox": _WHITE}
    for at, (name, colour) in enumerate(colours.items()):
        left.plot(x[at], y[at], "o", color=colour, markersize=6, zorder=3)
        left.annotate(player_label(name), (x[at], y[at]), color=colour, **look)
    left.axvline(score, color="0", linestyle=":", linewidth=1)
    left.annotate("people's score ", (score, 0), (0, 6), textcoords="offset points", ha="right")
    grid = np.linspace(min(x.min(), score), max(x.max(), score), 60)
    for at, (row, style) in enumerate(zip(rows_of(people), _STYLES * len(people), strict=False)):
        fitted = [_polynomial(x, y, row.degree, each) for each in grid]
        left.plot(grid, fitted, color="#0072B2", linestyle=style, linewidth=1)
        ends = [row.lower_nats], [row.loss_nats], [row.upper_nats]
        bars(right, [at], *ends, color="#0072B2", markersize=6, marker="os^D"[at % 4], elinewidth=2)
    names = {1: "line\n(solid)", 2: "parabola\n(dashed)"}
    right.set_xticks(range(len(people)), [names.get(each, f"degree {each}") for each in people["degree"]])
    right.set(xlim=(-0.6, len(people) - 0.4), xlabel=f"{interval:.0%} interval")
    truth = people["true_loss_nats"].iloc[0]
    # an interval may run to any number
    highest = max(y.max(), people["upper_nats"].max(), np.nan_to_num(truth))
    left.set_ylim(0, min(1.1 * highest, 3 * y.max()))
    if np.isfinite(truth):
        right.axhline(truth, color="0", linewidth=1.6)
        name_ends(right, [(truth, "truth", "0")])
    left.margins(x=0.25)
    left.set(xlabel="mean ln p of the answers, nats", ylabel="loss, nats per token")
    left.set_title("Models")
    right.set_title("People")
    titled(fig, "Can people's loss be extrapolated from models?", study_name)
    return fig
