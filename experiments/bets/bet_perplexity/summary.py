"""What the experiment on bets found, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from shannon_game.estimators.bets import LossBracket, StakeCalibration
from shannon_game.experiments.bets.bet_perplexity.settings import BetsSettings
from shannon_game.experiments.harness.settings import rows_of

if TYPE_CHECKING:
    from shannon_game.experiments.bets.bet_perplexity.posterior import Recalibration

_FEW = 10


def bet_warnings(table: pd.DataFrame, found: Recalibration | None) -> tuple[str, ...]:
    """Say what to doubt."""
    said = []
    main = table[table["kind"] == "bets"].iloc[0]
    if main["n_zero"] > 0:
        nothing = f"{int(main['n_zero'])} answers put nothing on what came"
        said.append(f"{nothing}: their loss is infinite, and means are without them")
    if main["n_unasked"] > 0:
        said.append(f"{int(main['n_unasked'])} answers are left out: the back-off or the generator was not asked")
    clusters = int(min(main["n_participants"], main["n_items"]))
    if clusters < _FEW:
        said.append(f"only {clusters} participants or items: clustered standard errors are too small with so few")
    if found is not None and found.n_bad_k:
        said.append(f"{found.n_bad_k} answers have a Pareto k above 0.7: their held-out losses are not to be believed")
    return tuple(said)


def summary(
    table: pd.DataFrame,
    bracket: LossBracket,
    calibration: StakeCalibration,
    found: Recalibration | None,
    settings: BetsSettings,
) -> str:
    """Say what people lost under every back-off, how their stakes are calibrated, and what recalibration changes."""
    people = rows_of(table[table["kind"] == "bets"])
    first = people[0]
    floor = float(table.loc[table["kind"] == "floor", "loss_nats"].iloc[0])
    text = (
        "\n".join(f"- unnamed words by {row.back_off}: {_loss(row)}{_gap(row)}" for row in people)
        + f"\n\n{int(first.n_participants)} people bet on the next word, in {int(first.n_responses):,} answers to "
        f"{int(first.n_items)} items; {settings.interval:.0%} intervals, standard errors clustered over people and "
        f"items. Where the true word was not named, what lay on anything else is spread over unnamed words: no "
        f"back-off costs less than {floor:.3f} nats. {_bracket(bracket)}The stake on a word and how often it came "
        f"differ by {calibration.calibration_error:.3f} on average."
    )
    if found is None:
        return text
    missed = "" if found.convergence.passed else "**The posterior did NOT converge: do not use the numbers from it.** "
    return f"{text}\n\n{missed}{_recalibrated(found, settings)}"


def _loss(row: Any) -> str:
    return (
        f"**{row.loss_nats:.3f}** nats per word [{row.loss_lower_nats:.3f}, {row.loss_upper_nats:.3f}], perplexity "
        f"{row.perplexity:.3g}"
    )


def _gap(row: Any) -> str:
    if not np.isfinite(row.gap_nats):
        return ""
    return f"; {row.gap_nats:+.3f} [{row.gap_lower_nats:+.3f}, {row.gap_upper_nats:+.3f}] to the generator"


def _bracket(bracket: LossBracket) -> str:
    if bracket.upper_back_off == bracket.lower_back_off:
        return ""
    return (
        f"Between {bracket.lower_nats:.3f} ({bracket.lower_back_off}) and {bracket.upper_nats:.3f} nats "
        f"({bracket.upper_back_off}) it is the back-off that decides. "
    )


def _recalibrated(found: Recalibration, settings: BetsSettings) -> str:
    n, row = found.numbers, found.row
    boldness = "too bold" if n["exponent_upper"] < 1 else "too timid" if n["exponent_lower"] > 1 else "about right"
    together = "" if settings.mix == "cells" else " It is the loss of people and the back-off together."
    return (
        f"Recalibrated participant by participant, stakes on answers held out cost {row['loss_nats']:.3f} nats "
        f"[{row['loss_lower_nats']:.3f}, {row['loss_upper_nats']:.3f}], {n['gain_nats']:+.3f} "
        f"[{n['gain_lower_nats']:+.3f}, {n['gain_upper_nats']:+.3f}] less than as they were staked.{together} The "
        f"typical exponent is {n['exponent_median']:.2f} [{n['exponent_lower']:.2f}, {n['exponent_upper']:.2f}] "
        f"({settings.interval:.0%}): stakes are {boldness}; the typical share mixed in is "
        f"{100 * n['mixing_share_median']:.1f}%."
    )
