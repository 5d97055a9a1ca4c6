"""What the experiment on free answers found, in words, and what a reader should doubt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from estimators.comparison.study_sources import NOT_A_CANDIDATE
from estimators.layout import HUMAN, item_labels, item_positions
from experiments.comparison.free_answers.figures import METHOD_LABELS
from experiments.comparison.free_answers.rows import MODEL_METHOD, OUTCOMES
from experiments.harness.figures import player_label
from experiments.harness.settings import rows_of
from inference.progress import counted
from models.comparison.free_answer_data import FreeAnswerData

__all__ = ["answer_warnings", "summary"]


def summary(table: pd.DataFrame, bins: pd.DataFrame, interval: float = 0.9) -> str:
    """Say people's gap, what the other estimators say, who is worse, and whether answers and reports agree."""
    main: Any = rows_of(table[table["method"] == MODEL_METHOD])[0]
    known = np.isfinite(main.true_gap_nats)
    truth = f", in truth {main.true_gap_nats:.3f}" if known else ""
    k0_truth = f" (in truth {main.k0_true:.2f})" if np.isfinite(main.k0_true) else ""
    unsure = "" if main.converged else " The posterior did NOT converge."
    caveat = f" ({main.caveat}: see the warnings)" * bool(main.caveat)
    lines = [
        f"- **people**, answers and reports{caveat}: gap {main.gap_nats:.3f} [{main.gap_lower_nats:.3f}, "
        f"{main.gap_upper_nats:.3f}] nats to {player_label(main.generator)}{truth}; perplexity {main.perplexity:.1f} "
        f"[{main.perplexity_lower:.1f}, {main.perplexity_upper:.1f}]; k0 {main.k0_median:.2f} "
        f"[{main.k0_lower:.2f}, {main.k0_upper:.2f}]{k0_truth}.{unsure}"
    ]
    for row in rows_of(table[table["method"] != MODEL_METHOD]):
        if row.method == OUTCOMES:
            lines.append(
                f"- people, scale from the outcomes: {row.gap_nats:.3f} [{row.gap_lower_nats:.3f}, "
                f"{row.gap_upper_nats:.3f}] nats; log-odds {row.scale_median:.2f} [{row.scale_lower:.2f}, "
                f"{row.scale_upper:.2f}] times those of the free answers, which {_agreement(row.agrees)}."
            )
        elif row.player == HUMAN and isinstance(row.agrees, bool):
            lines.append(f"- people, {row.method}: {row.gap_nats:.3f} nats, which {_agreement(row.agrees)}.")
        elif row.player == HUMAN:
            label = METHOD_LABELS.get(row.method, row.method)
            lines.append(f"- people, {label}: {row.gap_nats:.3f} nats on {counted(row.n_items, 'item')}.")
        else:
            lines.append(
                f"- {player_label(row.player)}: exactly {row.gap_nats:.3f} nats"
                + ("." if main.caveat else f"; people are worse with probability {row.p_people_worse:.3f}.")
            )
    outside = bins[(bins["observed"] < bins["predicted_lower"]) | (bins["observed"] > bins["predicted_upper"])]
    return (
        "\n".join(lines)
        + "\n\nReports say what people believe up to one scale, k0; free answers, taken for draws of the same belief, "
        f"say what it is. Posterior medians with {interval:.0%} intervals (equal tails), for the items asked."
        f"\n\nOf {len(bins)} groups of tokens, by how many answers the posterior expects of them, {len(outside)} "
        f"{'has' if len(outside) == 1 else 'have'} a number of answers outside {interval:.0%} of what it predicts. The "
        "posterior has seen these answers: many such groups say that answers and reports are not of one belief."
    )


def _agreement(agrees: bool) -> str:
    return "agrees" if agrees else "does NOT agree"


def anchor_warnings(table: pd.DataFrame, interval: float) -> tuple[str, ...]:
    """Warn where outcomes, or a gap by other means, contradict the free answers."""
    found = []
    for row in rows_of(table[table["agrees"].isin([False])]):
        if row.method == OUTCOMES:
            found.append(
                f"the outcomes want log-odds {row.scale_median:.2f} [{row.scale_lower:.2f}, {row.scale_upper:.2f}] "
                f"times those that the free answers say ({interval:.0%}). Either free answers are draws of belief to "
                f"the power {1 / row.scale_median:.2f} (experiment.answer_exponent), or people are "
                f"{'less' if row.scale_median > 1 else 'more'} sure than they are right; data of this kind do not say "
                "which"
            )
        else:
            found.append(
                f"the gap by {row.method}, {row.gap_nats:.3f} nats, is further from that of the free answers than "
                f"both errors explain ({interval:.0%})"
            )
    return tuple(found)


def answer_warnings(
    study: xr.Dataset, data: FreeAnswerData, max_at_ends: float, exponent: float | tuple[float, float] = 1.0
) -> tuple[str, ...]:
    """Warn of what is assumed, of comparisons at the ends of the scale, and of what is left out."""
    tau = f"between {exponent[0]:g} and {exponent[1]:g}" if isinstance(exponent, tuple) else f"{exponent:g}"
    found = [
        "a free answer is taken for a draw of what people believe; where people rather answer with the most probable "
        "token, what is found is the loss of a sharper distribution than theirs"
        if exponent == 1
        else f"free answers are taken for draws of belief to a power that is assumed, {tau}",
    ]
    ends = int(np.isin(data.row_box, (0, len(data.box_edges) - 1)).sum())
    if ends > max_at_ends * data.row_box.size:
        found.append(
            f"{ends} of {data.row_box.size} comparisons are at an end of the scale, which only bounds their ratio; ask "
            "about pairs that are closer, or on a wider scale"
        )
    mine = np.isin(item_labels(study)[item_positions(study, "answer_item")], data.item)
    unknown = int((mine & (study["answer_candidate"].to_numpy() == NOT_A_CANDIDATE)).sum())
    if unknown:
        found.append(
            f"{unknown} of {int(mine.sum())} free answers are no candidates: they count as answers, and nobody "
            "compared their tokens"
        )
    left_out = np.unique(item_labels(study)[item_positions(study, "response_item")])
    number = int((~np.isin(left_out, data.item)).sum())
    if number:
        found.append(
            f"{counted(number, 'item')} {'is' if number == 1 else 'are'} left out: nobody answered them freely, or no "
            "two tokens were compared"
        )
    return tuple(found)
