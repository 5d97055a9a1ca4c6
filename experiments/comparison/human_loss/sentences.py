"""What human loss found, in sentences: the answer, what it rests on, what would change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.comparison.human_loss.analyses import FITTED, KIND, Analysis
from shannon_game.experiments.comparison.human_loss.figures import exact_gaps
from shannon_game.experiments.harness.figures import finite_range, player_label
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.comparison.anchors import KINDS

_BIAS = (
    "No check can see a bias toward the target that everybody shares: 0.1 nats of it move the gap by about 0.1 nats."
)

_DRAWS_ALONE = (
    "The generator's whole distributions are unknown (study.distributions), which no interval here allows for: "
    "without them the gap of ten simulated studies came out 0.2 nats lower with free answers, 0.06 without."
)

# nats; a bound of a thousand times the perplexity says nothing
_TELLING = 7.0


def sentences(table: pd.DataFrame, dataset: xr.Dataset) -> str:
    """Say the answer first, then what it rests on, the sensitivity analysis, and the language models as players."""
    people, parts = table[table["player"] == HUMAN], []
    if len(people):
        parts = [_answer(people, dataset), _support(people, dataset), _sensitivity(people)]
    parts.append(" ".join(_player_line(row) for row in rows_of(table[table[KIND] == Analysis.PLAYER])))
    return "\n\n".join(part for part in parts if part)


def _failed(row: Any) -> str:
    return "" if row.converged else " (the check of this fit FAILED: do not use it, see the warnings)"


def _ends(row: Any, name: str, form: str = ".2f", unit: str = "_nats") -> str:
    median, low, high = (getattr(row, f"{name}_{end}{unit}") for end in ("median", "lower", "upper"))
    return f"{median:{form}} [{low:{form}}, {high:{form}}]"


def _answer(people: pd.DataFrame, dataset: xr.Dataset) -> str:
    main = rows_of(people)[0]
    fits = people.loc[people[KIND].isin(FITTED) & people["converged"].astype(bool), "perplexity_median"]
    low, high = finite_range(fits, [main.perplexity_median])
    tried = (
        ""
        if low == high
        else f" Under the scales, participants and priors tried, its median is {low:.4g} to {high:.4g}."
    )
    known = f"; in truth {main.true_perplexity_asked:.4g}" if np.isfinite(main.true_perplexity_asked) else ""
    # without free answers the noise of reports says nothing of how much more people lose one by one
    private = main.individual_gap_upper_median_nats - main.gap_median_nats
    untold = "by how much these answers cannot tell"
    most = f"up to a perplexity of {main.perplexity_median * np.exp(private):.4g}" if private < _TELLING else untold
    rings = f"**The model is wrong about these people: {main.alarms}.** " if main.alarms else ""
    rings += "".join(
        f"**Fitted camp by camp and pooled, its perplexity is {row.perplexity_median:.4g} "
        f"[{row.perplexity_posterior_lower:.4g}, {row.perplexity_posterior_upper:.4g}]{_failed(row)}.** "
        for row in rows_of(people[people[KIND] == Analysis.POOLED])
    )
    without = "".join(
        f" Without {row.left_out} it is {row.perplexity_median:.4g} [{row.perplexity_posterior_lower:.4g}, "
        f"{row.perplexity_posterior_upper:.4g}]{_failed(row)}."
        for row in rows_of(people[people[KIND] == Analysis.WITHOUT])
    )
    both = people[people[KIND].isin([Analysis.NO_SHARED_BIAS]) | (people.index == people.index[0])]
    ends = f"{both['perplexity_posterior_lower'].min():.4g}", f"{both['perplexity_posterior_upper'].max():.4g}"
    about = f"{_failed(main)} on these {main.n_items} items ({dataset.attrs['interval']:.0%} interval{known})."
    bias = "".join(
        f" That is the hull of two: with a bias that all share [{main.perplexity_posterior_lower:.4g}, "
        f"{main.perplexity_posterior_upper:.4g}], without one {row.perplexity_median:.4g} "
        f"[{row.perplexity_posterior_lower:.4g}, {row.perplexity_posterior_upper:.4g}]{_failed(row)}."
        for row in rows_of(both[both[KIND] == Analysis.NO_SHARED_BIAS])
    )
    single = "A single person loses as much as the shared belief or more,"
    if not np.isfinite(private):
        return (
            f"{rings}**Comparisons alone put the perplexity of people's shared belief between {' and '.join(ends)} per "
            f"token**{about} They do not say where: how much of the belief is on tokens never drawn is not known to a "
            f"factor of e.{bias}{without} {single} {untold}."
        )
    said = f"{main.perplexity_median:.4g} per token [{', '.join(ends)}]"
    return f"{rings}**People's shared belief has a perplexity of {said}**{about}{bias}{without}{tried} {single} {most}."


def _support(people: pd.DataFrame, dataset: xr.Dataset) -> str:
    main = rows_of(people)[0]
    outcomes = rows_of(people[people[KIND] == Analysis.OUTCOMES])
    measured = f"; measured was {dataset.attrs['top1_rate']:.1%}" if "top1_rate" in dataset.attrs else ""
    said = [
        f"It rests on {KINDS[main.anchor].rests_on}, and on the model's form for the "
        f"{_ends(main, 'tail_share', '.0%', '')} of the belief on tokens never drawn. "
        f"Its gap of {_ends(main, 'gap')} nats is "
        f"{', '.join(_beside(people.iloc[0], name, gap) for name, gap in exact_gaps(dataset).items())}.",
        *(
            f"At the temperature at which it fits the outcomes best its gap is {_ends(row, 'gap')} nats{_failed(row)}."
            for row in outcomes
        ),
        _BIAS,
        *([] if dataset.attrs["whole_distributions"] else [_DRAWS_ALONE]),
        f"The most probable token of the shared belief is the true one on {_ends(main, 'top1_model', '.0%', '')} of "
        f"the items, whatever the scale{measured}.",
    ]
    return " ".join(said)


def _beside(row: pd.Series[Any], name: str, gap: float) -> str:
    factor = row[f"tail_factor_{name}"]
    known = 0 < factor < np.inf
    unless = f"unless tokens never drawn are {factor:.2g} times as probable" if known else "whatever is never drawn"
    return f"{'above' if row['gap_median_nats'] > gap else 'below'} that of {player_label(name)} {unless}"


def _sensitivity(people: pd.DataFrame) -> str:
    said = [
        f"With priors {'half' if row.priors == 'narrow' else 'twice'} as wide it is {_ends(row, 'gap')}{_failed(row)}"
        for row in rows_of(people[people[KIND] == Analysis.PRIORS])
    ]
    ones = people[people[KIND] == Analysis.WITHOUT_ONE].sort_values("gap_median_nats")
    if len(ones):
        low, high = (rows_of(ones)[at] for at in (0, -1))
        said.append(
            f"Without one of {len(ones)} participants at a time its median is from {low.gap_median_nats:.2f} "
            f"(without {low.left_out}) to {high.gap_median_nats:.2f} (without {high.left_out})"
        )
    return f"**Sensitivity of the shared belief's gap.** {'. '.join(said)}." if said else ""


def _player_line(row: Any) -> str:
    inside = "inside" if row.gap_lower_nats <= row.true_gap_nats <= row.gap_upper_nats else "outside"
    truth = f"in truth {row.true_gap_nats:.3f} ({inside}), equation 5 {row.gap_nats:.3f}"
    name = f"{player_label(row.player)}, rounding {row.rounding}{_failed(row)}"
    return f"{name}: gap {_ends(row, 'gap', '.3f')} nats, {truth}."
