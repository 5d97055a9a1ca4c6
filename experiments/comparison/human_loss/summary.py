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

_K_BAD = 0.7


def summary(table: pd.DataFrame, dataset: xr.Dataset, interval: float = 0.9, top1_rate: float | None = None) -> str:
    """Say the numbers with their caveat, what is identified and assumed, then what follows for the order."""
    humans = {row.what: row for row in _named(table[table["player"] == HUMAN])}
    simulated = _named(table[table["method"] == "participant model, simulated"])
    main = humans["everyone"]
    paragraphs = [
        "**The posterior's intervals are not to be relied on** (see the warnings), and do not say whether humans are "
        "worse than a model: "
        f"{_perplexities(humans, interval)}.",
        "\n".join(_line(row) for row in humans.values() if not _is_sensitivity(row)),
        _identified(main, dataset, interval),
        "What lies on tokens that the study never drew rests on the model's prediction alone: no answer bears on it, "
        "and the interval holds one discrepancy for all of them, but no other form of the model.",
        _order(humans, simulated, dataset),
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


def _perplexities(humans: dict[str, Any], interval: float) -> str:
    """Perplexity under both anchors, with what each assumes."""
    said = [
        f"{row.perplexity_median:.4g} [{row.perplexity_posterior_lower:.4g}, {row.perplexity_posterior_upper:.4g}] "
        + ("if people are calibrated" if row.anchor == "outcomes" else f"if k0 is {row.k0_median:g}")
        for row in (humans[what] for what in ("everyone", "assumed") if what in humans)
    ]
    return f"people's perplexity is {' and '.join(said)} (posterior median and {interval:.0%} interval)"


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


def _line(row: Any) -> str:
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
    return (
        f"- **{who}** ({how}; {row.caveat}): gap {row.gap_median_nats:.2f} "
        f"[{row.gap_lower_nats:.2f}, {row.gap_upper_nats:.2f}] nats{truth}, with {tail} of the belief on tokens never "
        f"drawn; equation 5 {row.gap_nats:.2f}.{unsure}"
    )


def _order(humans: dict[str, Any], simulated: list[Any], dataset: xr.Dataset) -> str:
    """Humans beside the weakest model: by equation 5, and beside people who believe what it believes."""
    prefix = "true_gap_nats_"
    truths = {str(name).removeprefix(prefix): at for name, at in dataset.attrs.items() if str(name).startswith(prefix)}
    weakest = max(truths, key=lambda name: truths[name])
    label, value = player_label(weakest), truths[weakest]
    said = [
        f"- {'without the unusual' if row.left_out else 'all participants'}: people who report as these do and believe "
        f"what the {label} believes come out at {row.gap_median_nats:.2f} [{row.gap_lower_nats:.2f}, "
        f"{row.gap_upper_nats:.2f}] nats, in truth {row.true_gap_nats:.2f}, and at {row.gap_nats:.2f} by equation 5"
        f"{'' if row.converged else '. The short fits to the simulated people did NOT all converge'}."
        for row in simulated
    ]
    main = humans["everyone"]
    return (
        f"**The order of humans and the weakest model ({label}).** Equation 5 puts humans "
        f"{_side(main.gap_nats - value)} it ({main.gap_nats:.2f} against a true {value:.2f} nats). That humans are "
        "worse does not follow: noise and rounding of reports raise its value even for a belief that is right."
        + ("\n\n" + "\n".join(said) if said else "")
    )


def _side(difference: float) -> str:
    return "above" if difference > 0 else "below"


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
