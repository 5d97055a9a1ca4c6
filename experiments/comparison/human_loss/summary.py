"""What the human-loss experiment found, in words: the answer, what it rests on, what would change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.comparison.human_loss.figures import main_rows, people_label
from shannon_game.experiments.comparison.human_loss.rows import BRIDGE, PEOPLE, PLAYERS, WITHOUT_ONE
from shannon_game.experiments.harness.figures import finite_range, player_label
from shannon_game.experiments.harness.settings import rows_of

_GAP_OF = "true_gap_nats_"
_SCALE = {
    "answers": "free answers as draws of that belief",
    "outcomes": "the assumption that the shared belief is calibrated, as which token was true fixes its scale",
    "assumed": "an assumed scale of reports",
}
_SHARED_BIAS = (
    "A bias toward the target that everybody shares could hide a disagreement of these two: 0.1 nats of it move the "
    "gap by about 0.1 nats."
)


def summary(table: pd.DataFrame, dataset: xr.Dataset, interval: float = 0.9, top1_rate: float | None = None) -> str:
    """Say the answer first, then every fit, and the sensitivity analysis."""
    exact = {
        str(name).removeprefix(_GAP_OF): gap for name, gap in dataset.attrs.items() if str(name).startswith(_GAP_OF)
    }
    people, parts = table[table["player"] == HUMAN], []
    if len(people):
        main = rows_of(people)[0]
        measured = "" if top1_rate is None else f"; measured was {top1_rate:.1%}"
        parts = [
            _answer(main, people, interval),
            " ".join(_people_line(row, exact) for _, row in main_rows(people).iterrows()),
            f"The most probable token of the shared belief is the true one on {_ends(main, 'top1_model', '.0%', '')} "
            f"of the items, whatever the scale{measured}.",
            _sensitivity(people),
        ]
    parts.append(" ".join(_player_line(row) for row in rows_of(table[table["method"] == PLAYERS])))
    return "\n\n".join(part for part in parts if part)


def _failed(row: Any) -> str:
    return "" if row.converged else " (the check of this fit FAILED: do not use it)"


def _ends(row: Any, name: str, form: str = ".2f", unit: str = "_nats") -> str:
    median, low, high = (getattr(row, f"{name}_{end}{unit}") for end in ("median", "lower", "upper"))
    return f"{median:{form}} [{low:{form}}, {high:{form}}]"


def _answer(main: Any, people: pd.DataFrame, interval: float) -> str:
    fits = people.loc[(people["method"] == PEOPLE) & people["converged"].astype(bool), "perplexity_median"]
    low, high = finite_range(fits, [main.perplexity_median])
    private = main.one_by_one_most_median_nats - main.gap_median_nats
    most = (
        f"up to a perplexity of {main.perplexity_median * np.exp(private):.4g}"
        if _bounded(main)
        else "by how much these answers cannot tell"
    )
    known = f"; in truth {main.true_perplexity_asked:.4g}" if np.isfinite(main.true_perplexity_asked) else ""
    return (
        f"**The belief that people share has a perplexity of {main.perplexity_median:.4g} "
        f"[{main.perplexity_posterior_lower:.4g}, {main.perplexity_posterior_upper:.4g}]**{_failed(main)} on these "
        f"{main.n_items} items ({interval:.0%} interval{known}). Under all scales, participants and priors tried its "
        f"median goes from {low:.4g} to {high:.4g}; the mean loss of people one by one is that of their "
        f"shared belief or more, {most}. It rests on {_SCALE[main.anchor]}, and on the model's form for the "
        f"{_ends(main, 'tail_share', '.0%', '')} of the belief on tokens never drawn."
    )


def _bounded(row: Any) -> bool:
    """Whether the noise of reports says anything of how much more people lose one by one."""
    return bool(np.isfinite(row.one_by_one_most_median_nats))


def _people_line(row: Any, exact: dict[str, float]) -> str:
    text = f"{people_label(row)}{_failed(row)}: gap of the shared belief {_ends(row, 'gap')} nats"
    if row.method == BRIDGE:
        return f"{text}, k0 {row.k0_median:.2f}, in closed form."
    said = [f"k0 {_ends(row, 'k0', unit='')}"] if row.anchor != "assumed" else []
    for name, gap in exact.items():
        side, factor = "above" if row.gap_median_nats > gap else "below", row[f"tail_factor_{name}"]
        until = (
            f"until its tokens never drawn are multiplied by {factor:.2g}"
            if 0 < factor < np.inf
            else "whatever its tail"
        )
        said.append(f"{side} {player_label(name)} {until}")
    agreement = (
        f" The outcomes' scale {row.agreement} that of the free answers. {_SHARED_BIAS}" if row.agreement else ""
    )
    return f"{'; '.join([text, *said])}.{agreement}"


def _sensitivity(people: pd.DataFrame) -> str:
    said = [
        f"With priors {'half' if row.priors == 'narrow' else 'twice'} as wide it is {_ends(row, 'gap')}{_failed(row)}"
        for row in rows_of(people[people["what"].str.startswith("priors:")])
    ]
    ones = people[people["what"] == WITHOUT_ONE].sort_values("gap_median_nats")
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
