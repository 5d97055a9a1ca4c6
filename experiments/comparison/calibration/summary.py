"""What the calibration experiment found, in words."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from shannon_game.experiments.harness.settings import rows_of

TYPICAL = "(typical)"
"""Name of the row of the typical participant, who has the means of everything (and no bias where that is centred)."""

_MANY_ENDS = 0.5
_LARGE_BIAS_NATS = 0.5
_MAX_NAMED = 6
_VERDICTS = {
    "below": "over-confident",
    "above": "under-confident",
    "around": "not clearly over- or under-confident",
}


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
    """Say who is over- or under-confident by which reading, how reports come about, and what is identified."""
    typical = rows_of(table)[0]
    failed = (
        "" if typical.converged else "**At least one posterior did NOT converge: do not use the numbers below.**\n\n"
    )
    parts = [_confidence(typical), _game(typical, dataset), _process(typical, dataset, interval), _people(table)]
    return failed + "\n\n".join([*parts, f"{_families(dataset)} {_identified(dataset)}"])


def _with_interval(row: Any, name: str, digits: int = 2) -> str:
    median, low, high = (getattr(row, f"{name}_{what}") for what in ("median", "lower", "upper"))
    return f"{median:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _confidence(typical: Any) -> str:
    side = (
        "below" if typical.calibration_slope_upper < 1 else "above" if typical.calibration_slope_lower > 1 else "around"
    )
    return (
        "**Taken as the probability that the favoured token is the true one, the reports are "
        f"{_VERDICTS[side]}**: the mean confidence is {typical.confidence:.0%}, the favoured token is the true one in "
        f"{typical.accuracy:.0%} of the answers, and per nat of reported log-odds the log-odds of being right "
        f"rise by {_with_interval(typical, 'calibration_slope')} (1 is calibrated)."
    )


def _game(typical: Any, dataset: xr.Dataset) -> str:
    shown = [at for at in (0.6, 0.7, 0.8, 0.9, 0.99) if at in dataset["report"].to_numpy()]
    ends = dataset["game_curve"].sel(report=shown).to_numpy().T
    curve = ", ".join(f"{at:.0%} for {m:.0%} [{a:.0%}, {b:.0%}]" for at, (a, m, b) in zip(shown, ends, strict=True))
    return (
        "**The game asks for something else**: which token is the better continuation, where the false one was drawn "
        "from a language model g and can be as good. Weighting every answer by g(y) / (g(x) + g(y)) undoes that draw: "
        f"the slope is then {_with_interval(typical, 'game_slope')}, and a report stands for {curve}."
    )


def _process(typical: Any, dataset: xr.Dataset, interval: float) -> str:
    low, _, high = dataset["predicted_share"].to_numpy()
    observed, box = dataset["observed_share"].to_numpy(), dataset["box"].to_numpy()
    missed = [f"{at:.0%}" for at in box[(observed < low) | (observed > high)]]
    return (
        f"For the typical of {dataset.sizes['participant']} participants ({typical.n_responses:,} answers) the slope "
        f"of reports is {_with_interval(typical, 'slope')}, the noise {_with_interval(typical, 'noise_nats')} nats and "
        f"the lapse rate {_with_interval(typical, 'lapse')} (medians, {interval:.0%} intervals). The model predicts "
        f"the share of every report but: {', '.join(missed) or 'none'}."
    )


def _people(table: pd.DataFrame) -> str:
    found = [
        f"{row.label}{'' if row.label == row.participant else f' ({row.participant})'}, bias "
        f"{_with_interval(row, 'bias_nats')} nats"
        for row in rows_of(unusual(table))
    ]
    more = f", and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return (
        f"Unusual participants: {'; '.join(found[:_MAX_NAMED]) or 'none'}{more}. Nobody could see which token was the "
        "true one: a bias towards it is knowledge that the others lack, one away from it is being misled more."
    )


def _families(dataset: xr.Dataset) -> str:
    found = dataset.attrs
    difference, se = float(found["loo_difference_nats"]), float(found["loo_difference_se_nats"])
    better = "the data do not choose"
    if abs(difference) > 2 * se:
        better = f"{'beta calibration' if difference > 0 else 'linear in log-odds'} predicts better"
    n_bad = int(found["loo_n_bad"])
    doubt = f" For {n_bad} items the estimate is not to be believed (Pareto k above 0.7)." if n_bad else ""
    return (
        f"Leaving out one of {found['loo_n_items']} items, the log predictive density of beta calibration is "
        f"{difference:+.1f} nats (standard error {se:.1f}) from that of the curve linear in log-odds; {better}.{doubt}"
    )


def _identified(dataset: xr.Dataset) -> str:
    n_shared, n_answers = int(dataset.attrs["n_shared_responses"]), int(dataset.attrs["n_responses"])
    if not n_shared:
        return "No two tokens were seen by several participants: how slope and noise share the spread is the prior's."
    return (
        f"Slope and noise are told apart by the {n_shared:,} of {n_answers:,} answers on two tokens that several "
        "participants saw; the scale of the slopes, but not their ratios, rests on normal shared evidence."
    )
