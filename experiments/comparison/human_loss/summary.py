"""What the human-loss experiment found, in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from estimators.layout import HUMAN
from experiments.harness.figures import player_label

__all__ = ["summary"]

_SURE = 0.95
_K_BAD = 0.7


def summary(table: pd.DataFrame, dataset: xr.Dataset, interval: float = 0.9, top1_rate: float | None = None) -> str:
    """Say what is identified and what is assumed, then the numbers, then what follows for the order."""
    humans = {row.what: row for row in _named(table[table["player"] == HUMAN])}
    simulated = _named(table[table["method"] == "participant model, simulated"])
    main = humans["everyone"]
    paragraphs = [
        _identified(main, dataset, interval),
        "\n".join(_line(row, dataset) for row in humans.values() if not _is_sensitivity(row)),
        "What lies on tokens that the study never drew rests on the model's prediction alone: no answer bears on it, "
        "and the interval holds one discrepancy for all of them, but no other form of the model.",
        _order(humans, {"without" if row.left_out else "everyone": row for row in simulated}, dataset),
        f"The belief's most probable token is the true one on {main.top1_model_median:.0%} "
        f"[{main.top1_model_lower:.0%}, {main.top1_model_upper:.0%}] of the items, whatever the temperature"
        + (
            f"; measured was {top1_rate:.1%}."
            if top1_rate is not None
            else " (no measured rate was given: experiment.top1.rate)."
        ),
        _sensitivity(humans, table),
    ]
    return "\n\n".join(text for text in paragraphs if text)


def _is_sensitivity(row: Any) -> bool:
    return bool(row.what == "without one" or row.what.startswith("priors:"))


def _named(rows: pd.DataFrame) -> list[Any]:
    """Rows whose cells are attributes, whatever the columns are called."""
    return [SimpleNamespace(**{str(name): value for name, value in row.items()}) for row in rows.to_dict("records")]


def _identified(main: Any, dataset: xr.Dataset, interval: float) -> str:
    near = (
        f"It is {main.above_floor_median_nats:.3f} nats above that (median; {main.above_floor_upper_nats:.2f} at the "
        f"{(1 + interval) / 2:.0%} quantile), and the participants' own loss only if they are calibrated in log-loss. "
        if main.anchor == "outcomes"
        else ""
    )
    text = (
        "**What is identified, and what is assumed.** Reports fix the belief that the participants share only up to "
        "one temperature: slopes twice as steep of a belief half as strong give the same answers. No single corrected "
        "number for human loss is in the reports. With the scale taken from the *outcomes* (which of the two tokens "
        "came from the text), what is estimated is the loss of the shared, de-noised belief after the one temperature "
        "that best fits which tokens were true. That is near the floor, the least loss that any temperature gives this "
        f"belief. {near}It is not the loss of a single participant, whose noise and slips "
        "are taken out. With the scale *assumed*, the number is as good as the assumption; k0 = 1 says that reports "
        "are right on average in log-odds, as equation 5 does. Posterior medians with "
        f"{interval:.0%} intervals (equal tails), for the items asked."
    )
    if np.isfinite(dataset.attrs["k0_true"]):
        text += f" In this simulation the true k0 is {dataset.attrs['k0_true']:.2f}."
    return text


def _line(row: Any, dataset: xr.Dataset) -> str:
    who = "all participants" if not row.left_out else f"without {row.left_out}"
    if row.anchor == "outcomes":
        how = f"scale from the outcomes, k0 {row.k0_median:.2f} [{row.k0_lower:.2f}, {row.k0_upper:.2f}]"
    else:
        how = f"k0 = {row.k0_median:g} assumed"
    if ", top-1" in row.what:
        how += f", top-1 rate held near {row.top1_rate_given:g}"
    truth = f", in truth {row.true_gap_nats:.2f}" if np.isfinite(row.true_gap_nats) else ""
    unsure = "" if row.converged else " The posterior did NOT converge."
    tail = f"{row.tail_share_median:.0%} [{row.tail_share_lower:.0%}, {row.tail_share_upper:.0%}]"
    worse = ", ".join(
        f"{player_label(name)} {getattr(row, column):.3f}"
        for name, column in _worse_columns(dataset)
        if hasattr(row, column)
    )
    return (
        f"- **{who}** ({how}): gap {row.gap_median_nats:.2f} [{row.gap_lower_nats:.2f}, {row.gap_upper_nats:.2f}] nats"
        f"{truth}, with {tail} of the belief on tokens never drawn; equation 5 {row.gap_nats:.2f}. Probability of a "
        f"loss above the exact loss of {worse}, not corrected for the posterior's bias.{unsure}"
    )


def _worse_columns(dataset: xr.Dataset) -> list[tuple[str, str]]:
    prefix = "true_gap_nats_"
    names = [name.removeprefix(prefix) for name in dataset.attrs if str(name).startswith(prefix)]
    return [(name, f"p_worse_than_{name}") for name in names]


def _order(humans: dict[str, Any], simulated: dict[str, Any], dataset: xr.Dataset) -> str:
    """Whether the loss is above that of the weakest model, as equation 5 has it on the paper's data."""
    if simulated:
        return _like_with_like(humans, simulated)
    truths = {name: float(dataset.attrs[f"true_gap_nats_{name}"]) for name, _ in _worse_columns(dataset)}
    weakest = max(truths, key=lambda name: truths[name])
    label, value = player_label(weakest), truths[weakest]
    said = []
    for what, who in (("everyone", "with all participants"), ("without", "without the unusual")):
        if what in humans:
            p = getattr(humans[what], f"p_worse_than_{weakest}")
            verdict = "does" if p >= _SURE else "does not"
            said.append(
                f"{who}, equation 5 puts humans {_side(humans[what].gap_nats - value)} the {label} "
                f"({humans[what].gap_nats:.2f} against a true {value:.2f} nats); the posterior probability that "
                f"the loss of their shared belief is above it is {p:.3f}, not corrected for the posterior's bias: that "
                f"humans are worse {verdict} follow"
            )
    return (
        f"**The order of humans and the weakest model ({label}).** "
        + _capital("; ".join(said))
        + f". (It follows if the probability is at least {_SURE:g}. Equation 5 alone cannot show it: noise and "
        "rounding of reports raise its value even for a belief that is right.)"
    )


def _like_with_like(humans: dict[str, Any], simulated: dict[str, Any]) -> str:
    """Posterior against posterior, whose bias is the same, beside posterior against truth."""
    label = player_label(simulated["everyone"].player)
    said = []
    for what, its in simulated.items():
        human, who = humans[what], "all participants" if what == "everyone" else "without the unusual"
        verdict = "does" if human.p_worse_as_people >= _SURE else "does not"
        said.append(
            f"- {who}: people who report as these do and believe what the {label} believes come out at "
            f"{its.gap_median_nats:.2f} [{its.gap_lower_nats:.2f}, {its.gap_upper_nats:.2f}] nats, in truth "
            f"{its.true_gap_nats:.2f}, and at {its.gap_nats:.2f} by equation 5 (humans {human.gap_nats:.2f}). The "
            f"humans' posterior is above theirs with probability {human.p_worse_as_people:.3f}: that humans are worse "
            f"{verdict} follow. Against the exact loss, not corrected for that bias, the probability is "
            f"{getattr(human, f'p_worse_than_{its.player}'):.3f}"
            f"{'' if its.converged else '. The short fits to the simulated people did NOT all converge'}"
        )
    return (
        f"**The order of humans and the weakest model ({label}).** Like with like, posterior against posterior (it "
        f"follows if the probability is at least {_SURE:g}):\n\n" + ".\n".join(said) + "."
    )


def _side(difference: float) -> str:
    return "above" if difference > 0 else "below"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sensitivity(humans: dict[str, Any], table: pd.DataFrame) -> str:
    ones = table[table["what"] == "without one"]
    if ones.empty:
        return ""
    main = humans["everyone"]
    weak = (ones["method"] == "importance weights") & ~(ones["pareto_k_left_out"] <= _K_BAD)
    refitted = ones["method"] == "participant model, short fit"
    fitted = ones["method"] == "participant model"
    good = ones[~weak]
    text = f"**Sensitivity.** Leaving out one participant at a time by importance weights: {len(ones)} participants"
    text += f", {refitted.sum()} of them by a new fit because their Pareto k is above {_K_BAD:g}"
    if fitted.any():
        text += f", {fitted.sum()} by the fit above without them"
    if weak.any():
        text += f", and {weak.sum()} with such a k but no new fit, whose rows are not to be believed"
    if len(good):
        by_gap = good.sort_values("gap_median_nats").to_dict("records")
        low, high = by_gap[0], by_gap[-1]
        text += (
            f". Of the rest, the median gap goes from {low['gap_median_nats']:.2f} (without {low['left_out']}) to "
            f"{high['gap_median_nats']:.2f} (without {high['left_out']}); with everyone it is "
            f"{main.gap_median_nats:.2f}"
        )
    for name, how in (("narrow", "half as wide"), ("wide", "twice as wide")):
        row = humans.get(f"priors: {name}")
        if row is not None:
            text += (
                f". With priors {how} it is {row.gap_median_nats:.2f} "
                f"[{row.gap_lower_nats:.2f}, {row.gap_upper_nats:.2f}]"
                f"{'' if row.converged else ' (a short fit that did NOT converge)'}"
            )
    return text + "."
