"""``+exp=bet_perplexity``: what people lost who bet on the next word, and what their stakes are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators import bets
from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.bets.calibration import stakes_and_outcomes
from shannon_game.estimators.bets.losses import LossBracket, bracket_losses
from shannon_game.estimators.bets.tables import bet_items, bet_participants
from shannon_game.estimators.perplexity import perplexity_of_loss
from shannon_game.experiments.bets.bet_perplexity.rows import (
    LEAST_VOCAB,
    BetRow,
    BetsSettings,
    losses_by_back_off,
    rows_of_bets,
    vocab_size_of,
)
from shannon_game.experiments.harness.bayes import CONVERGENCE_COLUMNS, convergence_columns, gate_failed, unconverged
from shannon_game.experiments.harness.figures import Series, forest, new_figure, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, percent, titled
from shannon_game.experiments.harness.plots import diagonal, styled
from shannon_game.experiments.harness.questions import bullets, half_width, one_panel
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import short_names, table_variables

if TYPE_CHECKING:
    from shannon_game.experiments.bets.bet_perplexity.posterior import Recalibration

_FEW = 10


@experiment(BetsSettings, row=BetRow)
def bet_perplexity(study: xr.Dataset, settings: BetsSettings) -> ExperimentResult:
    """Realised losses of bets under every back-off, the bracket between them, calibration, and recalibrated stakes.

    One row a kind and back-off. Its ``tables`` have one row per item and one row per participant.

    Examples
    --------
    >>> from shannon_game import bet_perplexity, bets_simulated
    >>> table = bet_perplexity(bets_simulated(n_items=12, n_answers=6), posterior=False).table
    >>> table.loc[table["kind"] == "bets", "back_off"].tolist()
    ['generator', 'text', 'uniform']
    """
    losses = losses_by_back_off(study, settings)
    rows = rows_of_bets(study, settings, losses)
    calibration = bets.calibrate_stakes(**stakes_and_outcomes(study), edges=settings.edges)
    found = None
    if settings.posterior:
        from shannon_game.experiments.bets.bet_perplexity.posterior import fit_recalibration  # noqa: PLC0415 - the extra bayes

        found = fit_recalibration(settings, study, next(iter(losses)))
        rows.insert(len(losses), found.row)
    table = _table(rows, found)
    participants = _participants(study, settings, losses, found)
    bins = calibration.summary()
    name = str(study.attrs["name"])
    figures = {
        "bets": loss_figure(table, participants, list(losses), name, interval=settings.interval),
        "calibration": calibration_figure(bins, name, interval=settings.interval),
    }
    if found is not None:
        figures["recalibration"] = recalibration_figure(participants, name, interval=settings.interval)
    verdict = {} if found is None else {"recalibration": found.convergence}
    return ExperimentResult(
        table=table,
        dataset=_dataset(table, participants, bins, found),
        tables={"items": bet_items(study, losses), "participants": participants},
        figures=figures,
        text=_summary(table, bracket_losses(losses), calibration.calibration_error, found, settings),
        warnings=(*unconverged(verdict), *_warnings(table, found)),
        gate_failed=gate_failed(settings, verdict),
        posteriors={} if found is None else found.posteriors,
    )


def _table(rows: list[dict[str, Any]], found: Recalibration | None) -> pd.DataFrame:
    verdict = dict.fromkeys(CONVERGENCE_COLUMNS, np.nan) if found is None else convergence_columns(found.convergence)
    table = BetRow.table({"back_off": "", **row, **verdict} for row in rows)
    for end in ("", "_lower", "_upper"):
        table[f"perplexity{end}"] = perplexity_of_loss(table[f"loss{end}_nats"])
    return table


def _participants(
    study: xr.Dataset, settings: BetsSettings, losses: Mapping[str, FloatArray], found: Recalibration | None
) -> pd.DataFrame:
    table = bet_participants(study, losses)
    values = next(iter(losses.values()))
    known = ~np.isnan(values)
    size = vocab_size_of(study, settings)
    if size is not None:
        who, item = study["participant"].to_numpy().astype(str)[known], study["response_item"].to_numpy()[known]
        capital = bets.gambling_estimate(values[known], who, item, vocab_size=max(size, LEAST_VOCAB))
        own = pd.DataFrame({"participant": capital.participant, "log_capital": capital.log_capital})
        table = table.merge(own, on="participant", how="left")
    return table if found is None else table.merge(found.participants, on="participant", how="left")


def _dataset(
    table: pd.DataFrame, participants: pd.DataFrame, bins: pd.DataFrame, found: Recalibration | None
) -> xr.Dataset:
    variables: dict[str, Any] = BetRow.variables(table, "row", but=["player"])
    own = participants.drop(columns="participant").add_prefix("participant_")
    variables |= table_variables(own, "participant") | table_variables(bins.add_prefix("bin_"), "bin")
    coords = {"row": table["player"].to_numpy(dtype=object)}
    coords |= {"participant": participants["participant"].to_numpy(dtype=object)}
    attrs = {} if found is None else found.numbers
    return xr.Dataset(variables, coords=coords, attrs=attrs).set_coords(["kind", "back_off"])


def _warnings(table: pd.DataFrame, found: Recalibration | None) -> list[str]:
    main = table[table["kind"] == "bets"].iloc[0]
    n_bad, clusters = 0 if found is None else found.n_bad_k, int(min(main["n_participants"], main["n_items"]))
    said = []
    if main["n_zero"] > 0:
        nothing = f"{main['n_zero']:.0f} answers put nothing on the word that came"
        said.append(f"{nothing}: means leave out their infinite loss; ask people to bet on other words")
    if main["n_unasked"] > 0:
        said.append(f"{main['n_unasked']:.0f} answers are left out: the generator gives no probability")
    if clusters < _FEW:
        said.append(f"only {clusters} participants or items, so that clustered standard errors are too small: ask more")
    if n_bad > 0:
        said.append(f"{n_bad} answers have a Pareto k above 0.7: do not use their held-out losses")
    return said


def _summary(
    table: pd.DataFrame,
    bracket: LossBracket,
    calibration_error: float,
    found: Recalibration | None,
    settings: BetsSettings,
) -> str:
    people = table[table["kind"] == "bets"]
    line = (
        "**People lose {loss_nats:.3f} nats per word [{loss_lower_nats:.3f}, {loss_upper_nats:.3f}]**, perplexity "
        "{perplexity:.3g}, if words that they did not name are as probable as under `{back_off}`"
    )
    if people["gap_nats"].notna().all():
        line += ". The gap is {gap_nats:+.3f} [{gap_lower_nats:+.3f}, {gap_upper_nats:+.3f}] to the generator"
    floor = float(table.loc[table["kind"] == "floor", "loss_nats"].iloc[0])
    text = (
        f"{bullets(people, line)}\n\nIntervals are {settings.interval:.0%}, clustered over people and items. What "
        f"unnamed words get decides between {bracket.lower_nats:.3f} ({bracket.lower_back_off}) and "
        f"{bracket.upper_nats:.3f} nats ({bracket.upper_back_off}); no choice gives less than {floor:.3f}. "
        f"Stakes differ from how often their words came by {calibration_error:.3f} on average."
    )
    if found is None:
        return text
    n, row = found.numbers, found.row
    boldness = "too bold" if n["exponent_upper"] < 1 else "too timid" if n["exponent_lower"] > 1 else "about right"
    missed = "" if found.convergence.passed else "**The posterior did NOT converge: do not use its numbers.** "
    together = "" if settings.mix == "cells" else " (people and the back-off together)"
    return (
        f"{text}\n\n{missed}Recalibrated, stakes on answers held out cost {row['loss_nats']:.3f} nats{together}, "
        f"a gain of {n['gain_nats']:+.3f} [{n['gain_lower_nats']:+.3f}, {n['gain_upper_nats']:+.3f}]. The typical "
        f"exponent is {n['exponent_median']:.2f} [{n['exponent_lower']:.2f}, {n['exponent_upper']:.2f}]: stakes are "
        f"{boldness}; the typical share mixed in is {n['mixing_share_median']:.1%}."
    )


_HUMAN, _MODEL, _RECALIBRATED, _BRACKET = "#000000", "#D55E00", "#0072B2", "0.6"
_MARKERS = "osD^vP"
_LABELS = {
    "recalibrated": "people, recalibrated",
    "floor": "people, least possible",
    "committee": "mean of all stakes",
}
_COLOURS = {"model": _MODEL, "recalibrated": _RECALIBRATED}


@styled
def loss_figure(
    table: pd.DataFrame, participants: pd.DataFrame, back_offs: Sequence[str], study_name: str = "", *, interval: float
) -> Figure:
    """Losses of people under every back-off, of recalibrated stakes and of models; and everybody's own bracket."""
    shown = table[table["kind"].isin(["bets", "recalibrated", "floor", "committee", "model"])]
    labels = {"bets": "people, other words\nby {}", **_LABELS}
    shown = shown.assign(
        label=[labels.get(row.kind, player_label(row.player)).format(row.back_off) for row in rows_of(shown)],
        colour=[_COLOURS.get(kind, _HUMAN) for kind in shown["kind"]],
        group=np.where(shown["kind"] == "model", "model", "people"),
    )
    fig = new_figure(4.5, 2.4 + 0.22 * len(participants) + 0.42 * len(shown))
    left, right = fig.subplots(2, 1, sharex=True, height_ratios=[2 * len(shown), len(participants) + 2])
    forest(left, shown, [Series("loss_nats", "loss_lower_nats", "loss_upper_nats")])
    left.set_title(f"All answers, {interval:.0%} intervals")
    columns = [f"loss_nats_{name}" for name in back_offs]
    own = _named(participants.sort_values(columns[0], ignore_index=True))
    own[columns] = own[columns].replace([np.inf, -np.inf], np.nan)
    low, high = own[columns].min(axis=1), own[columns].max(axis=1)
    series = [
        Series(column, label=f"other words by {name}", marker=marker, colour=_HUMAN, hollow=True, size=3.6)
        for column, name, marker in zip(columns, back_offs, cycle(_MARKERS), strict=False)
    ]
    forest(right, own, series)
    known = own[columns].notna().all(axis=1)
    right.hlines(-np.flatnonzero(known), low[known], high[known], color=_BRACKET, linewidth=1.4)
    right.tick_params(axis="y", labelsize=9.5)
    right.set_xlabel("loss, nats per word")
    right.set_title("Each person")
    for axes in (left, right):
        light_grid(axes, "x")
    named(fig, [*(each.handle() for each in series), mark("range", _BRACKET)])
    titled(fig, "What do people lose who bet?", study_name)
    return fig


def _named(participants: pd.DataFrame) -> pd.DataFrame:
    return participants.assign(label=participants["participant"].map(short_names(participants["participant"])))


def calibration_figure(bins: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """How often a word came, against what was staked on it."""
    half = half_width(bins["share_se"], interval)
    low, high = (bins["share_came"] - half).clip(0, 1), (bins["share_came"] + half).clip(0, 1)
    with one_panel(4.4, 4.2, "What stakes are worth", study_name, grid=None) as (fig, axes):
        diagonal(axes, margin=0.03)
        axes.vlines(bins["mean_stake"], low, high, color=_HUMAN, linewidth=1.2)
        sizes = 10 + 70 * bins["n_stakes"] / bins["n_stakes"].max()
        axes.scatter(bins["mean_stake"], bins["share_came"], s=sizes, facecolor="white", edgecolor=_HUMAN, zorder=3)
        for axis in (axes.xaxis, axes.yaxis):
            percent(axis)
        axes.set(xlabel="mean stake in a bin", ylabel="how often it came")
        stakes = mark(f"stakes of a bin (area: number), {interval:.0%}", _HUMAN, "o", line="-", hollow=True)
        named(fig, [stakes, mark("calibrated", "0.7", line="--")], 2)
    return fig


@styled
def recalibration_figure(participants: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """Exponent of the stakes of every participant, and share of what is mixed in."""
    own = _named(participants).dropna(subset=["exponent_median"]).sort_values("exponent_median", ascending=False)
    fig = new_figure(6.6, max(2.6, 1.1 + 0.2 * len(own)))
    left, right = fig.subplots(1, 2, sharey=True)
    for axes, name in ((left, "exponent"), (right, "mixing_share")):
        columns = (f"{name}_median", f"{name}_lower", f"{name}_upper")
        forest(axes, own, [Series(*columns, colour=_RECALIBRATED, size=4, capsize=0)])
        light_grid(axes, "x")
    left.axvline(1, color="0.55", linewidth=0.8)
    left.set_xlabel(f"exponent of the stakes ({interval:.0%})\nbelow 1: too bold")
    right.set(xlabel=f"share mixed in ({interval:.0%})", xlim=(0, None))
    percent(right.xaxis)
    titled(fig, "How stakes are recalibrated", study_name)
    return fig
