"""What the calibration experiment found, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.experiments.harness.settings import rows_of

__all__ = ["TYPICAL", "summary", "unusual"]

TYPICAL = "(typical)"
"""Name of the row of the typical participant, who has the means of everything (and no bias where that is centred)."""

_MANY_ENDS = 0.5
_LARGE_BIAS_NATS = 0.5
_MAX_NAMED = 6


def unusual(table: pd.DataFrame) -> pd.DataFrame:
    """Participants with a large bias that excludes zero, or with unusually many answers at the ends of the scale."""
    own = table[table["participant"] != TYPICAL]
    outside = (own["bias_nats_lower"] > 0) | (own["bias_nats_upper"] < 0)
    large = outside & (own["bias_nats_median"].abs() > _LARGE_BIAS_NATS)
    # where everybody lives at the ends, that is nobody's mark
    pooled = float(table.loc[table["participant"] == TYPICAL, "share_ends"].iloc[0])
    found = own[large | (own["share_ends"] > max(_MANY_ENDS, 2 * pooled))]
    return found.loc[found["bias_nats_median"].abs().sort_values(ascending=False).index]


def summary(table: pd.DataFrame, dataset: xr.Dataset, interval: float = 0.9) -> str:
    """Say who is over- or under-confident by which reading, what differs, who is unusual, and what is identified."""
    typical, own = rows_of(table)[0], table[table["participant"] != TYPICAL]
    paragraphs = [
        _confidence(typical),
        f"{len(own)} participants, {typical.n_responses:,} answers on two different tokens; the {typical.n_favoured:,} "
        "that favour one of them make the reliability curves (at 50% no token is favoured). Posterior medians with "
        f"{interval:.0%} intervals (equal tails).",
        _game(typical, dataset),
        _differences(typical, own),
        _shape(dataset),
        _people(table),
        _families(dataset),
        _truths(own),
        _identified(dataset),
    ]
    if not typical.converged:
        paragraphs.insert(0, "**At least one posterior did NOT converge: do not use the numbers below.**")
    return "\n\n".join(text for text in paragraphs if text)


def _with_interval(row: Any, name: str, digits: int = 2) -> str:
    median, low, high = (getattr(row, f"{name}_{what}") for what in ("median", "lower", "upper"))
    return f"{median:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _side(row: Any, name: str) -> str:
    """Which side of 1 an interval lies on."""
    if getattr(row, f"{name}_upper") < 1:
        return "below"
    return "above" if getattr(row, f"{name}_lower") > 1 else "around"


def _confidence(typical: Any) -> str:
    verdict = {
        "below": "over-confident",
        "above": "under-confident",
        "around": "not clearly over- or under-confident",
    }[_side(typical, "calibration_slope")]
    return (
        "**Taken as the probability that the favoured token is the true one, the reports are "
        f"{verdict}**: the mean confidence is {typical.confidence:.0%}, the favoured token is the true one in "
        f"{typical.accuracy:.0%} of the answers, and for every nat of reported log-odds the log-odds of being right "
        f"rise by {_with_interval(typical, 'calibration_slope')} (1 is calibrated)."
    )


def _game(typical: Any, dataset: xr.Dataset) -> str:
    shown = [at for at in (0.6, 0.7, 0.8, 0.9, 0.99) if at in dataset["report"].to_numpy()]
    low, middle, high = (dataset["game_curve"].sel(report=shown).isel(quantile=q).to_numpy() for q in range(3))
    curve = ", ".join(
        f"{at:.0%} for {m:.0%} [{a:.0%}, {b:.0%}]" for at, a, m, b in zip(shown, low, middle, high, strict=True)
    )
    over = [f"{at:.0%}" for at, b in zip(shown, high, strict=True) if b < at]
    under = [f"{at:.0%}" for at, a in zip(shown, low, strict=True) if a > at]
    verdict = " and ".join(
        [f"**over-confident at {', '.join(over)}**"] * bool(over)
        + [f"**under-confident at {', '.join(under)}**"] * bool(under)
    )
    verdict = (
        f"{verdict}, and calibrated within the interval elsewhere" if verdict else "**calibrated within the interval**"
    )
    return (
        "**But the game does not ask for that probability.** The false token was drawn from a language model and can "
        "be as good a continuation as the true one; the game asks, and pays, for how likely the two are as "
        "continuations. Even a player who knows the true distribution of the text looks over-confident above. "
        "Weighting every answer by g(y) / (g(x) + g(y)), with g the model that drew the false token x, undoes that "
        "draw (such a player is then calibrated; the game's own score has the weight g(y)). By this reading the slope "
        f"is {_with_interval(typical, 'game_slope')}, and a report stands for (weighted share in which the favoured "
        f"token is the true one): {curve}. The typical participant is {verdict}."
    )


def _differences(typical: Any, own: pd.DataFrame) -> str:
    texts = []
    for name, label, unit in (
        ("slope", "slope", ""),
        ("noise_nats", "noise", " nats"),
        ("lapse", "lapse rate", ""),
    ):
        medians = own[f"{name}_median"]
        texts.append(
            f"{label} {_with_interval(typical, name)}{unit} (medians of the participants {medians.min():.2f} to "
            f"{medians.max():.2f})"
        )
    slopes = own["calibration_slope_median"].dropna()
    return (
        f"How reports come about, for the typical participant: {'; '.join(texts)}. The slopes of the participants' "
        f"reliability curves have medians from {slopes.min():.2f} to {slopes.max():.2f}."
    )


def _shape(dataset: xr.Dataset) -> str:
    low, _, high = (dataset["predicted_share"].isel(quantile=q).to_numpy() for q in range(3))
    observed, box = dataset["observed_share"].to_numpy(), dataset["box"].to_numpy()
    outside = [
        f"{at:.0%} ({share:.1%}, predicted {a:.1%} to {b:.1%})"
        for at, share, a, b in zip(box, observed, low, high, strict=True)
        if not a <= share <= b
    ]
    half = int(np.abs(box - 0.5).argmin())
    is_spike = observed[half] > max(observed[max(half - 1, 0)], observed[min(half + 1, len(box) - 1)])
    spike = "a spike" if is_spike else "no spike"
    misfit = (
        f"The model misses the share of the reports at {', '.join(outside)}."
        if outside
        else "The share of every value that could be reported lies inside its predictive interval."
    )
    return (
        f"{box[half]:.0%} is reported in {observed[half]:.1%} of the answers ({spike} beside its neighbours, once "
        f"the answers that the site gave by itself are left out), the two ends of the scale in "
        f"{observed[0] + observed[-1]:.1%}. {misfit}"
    )


def _people(table: pd.DataFrame) -> str:
    found = rows_of(unusual(table))
    if not found:
        return (
            f"No participant has a bias above {_LARGE_BIAS_NATS} nats whose interval excludes zero, and none gives an "
            "end of the scale in most answers."
        )
    lines = [
        f"- {row.label}{'' if row.label == row.participant else f' ({row.participant})'}: "
        f"right in {row.accuracy:.0%} of {row.n_favoured} favoured answers, mean confidence {row.confidence:.0%}"
        + ("" if np.isnan(row.share_ends) else f", an end of the scale in {row.share_ends:.0%} of all")
        + f"; bias {_with_interval(row, 'bias_nats')} nats"
        for row in found[:_MAX_NAMED]
    ]
    more = f"\n- and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return (
        "Unusual participants. Nobody could see which token was the true one, so that a bias towards it is no "
        "preference: a positive one is knowledge that the others lack, a negative one is being misled more.\n\n"
        + "\n".join(lines)
        + more
    )


def _truths(own: pd.DataFrame) -> str:
    known = own.dropna(subset=["true_noise_nats"])
    if known.empty:
        return ""
    texts = []
    for name, truth, label in (
        ("bias_nats", "true_bias_nats", "bias (on the reported log-odds, around its mean)"),
        ("noise_nats", "true_noise_nats", "noise"),
        ("lapse", "true_lapse", "lapse rate"),
    ):
        inside = (known[f"{name}_lower"] <= known[truth]) & (known[truth] <= known[f"{name}_upper"])
        texts.append(f"{label} {int(inside.sum())} of {len(known)}")
    relation = np.corrcoef(np.log(known["relative_slope_median"]), np.log(known["true_relative_slope"]))[0, 1]
    return (
        f"This study is simulated. Intervals that hold the participant's true value: {'; '.join(texts)}. The "
        "correlation of the logarithms of estimated and true slopes, each relative to its own mean, is "
        f"{relation:.2f} (their common scale has another meaning: the simulation's is per nat of the participants' "
        "belief, the model's per nat of evidence on which token is true). The simulated beliefs are not normal, as "
        "the model's evidence is; and what differs between items for all participants alike is noise where they did "
        "not see the same two tokens."
    )


def _families(dataset: xr.Dataset) -> str:
    found = dataset.attrs
    difference, se = float(found["loo_difference_nats"]), float(found["loo_difference_se_nats"])
    better = "the data do not choose between them"
    if abs(difference) > 2 * se:
        better = "beta calibration predicts better" if difference > 0 else "linear in log-odds predicts better"
    doubt = (
        f" For {found['loo_n_bad']} items the estimate is not to be believed (Pareto k above 0.7)."
        if found["loo_n_bad"]
        else ""
    )
    return (
        f"Shape of the curve: leaving out one of {found['loo_n_items']} items at a time, the expected log predictive "
        f"density of beta calibration is {difference:+.1f} nats (standard error {se:.1f}) from that of the curve that "
        f"is linear in log-odds; {better}.{doubt}"
    )


def _identified(dataset: xr.Dataset) -> str:
    n_shared, n_answers = int(dataset.attrs["n_shared_responses"]), int(dataset.attrs["n_responses"])
    split = (
        f"Slope and noise are told apart by the {n_shared:,} of {n_answers:,} answers on two tokens that several "
        "participants saw: what they share is evidence, what they do not is noise (private knowledge included). The "
        "scale of the slopes, but not their ratios, rests on the assumption that the shared evidence is normal and "
        "means what it says."
        if n_shared
        else "No two tokens were seen by several participants, so that slope and noise cannot be told apart: how they "
        "share the spread of the reports is the prior's."
    )
    return (
        "What is identified. The reliability curves need no assumption but their shape (linear in log-odds, or beta "
        f"calibration: the dashed line). {split} On which side of the screen a token stood is not stored, so that a "
        "preference for a side cannot be estimated; it is part of the noise."
    )
