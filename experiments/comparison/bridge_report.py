"""What a run with ``estimator=bridge`` says beside its estimates: its table, and its warnings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from estimators.comparison import BridgeGap, PerplexityEstimate, drawn_response_mask

__all__ = ["bridge_table", "bridge_warnings", "left_out_warnings"]


def bridge_table(results: Sequence[PerplexityEstimate]) -> pd.DataFrame:
    """One row a rounding: errors, overlap, and what was left out."""
    rows = []
    for result in results:
        gap = result.gap
        if isinstance(gap, BridgeGap):
            overlap = gap.overlap
            rows.append(
                {
                    "player": result.player,
                    "rounding": result.rounding,
                    "se_clustered_nats": gap.se_clustered_nats,
                    "se_reports_nats": gap.se_reports_nats,
                    "overlap": overlap.overlap,
                    "effective_draws": overlap.effective_draws,
                    "share_without_overlap": overlap.share_without_overlap,
                    "noise_bias": overlap.noise_bias,
                    "n_answers": gap.n_answers,
                    "n_unknown_answers": gap.n_unknown_answers,
                    "n_one_sided": gap.n_one_sided,
                    "n_tokens": gap.n_tokens,
                    "n_unconnected": gap.n_unconnected,
                    "n_censored": gap.n_censored,
                }
            )
    return pd.DataFrame(rows)


def bridge_warnings(results: Sequence[PerplexityEstimate]) -> tuple[str, ...]:
    """Warn of items and answers that a bridge leaves out, of a lack of overlap, and of what it takes for granted."""
    found = []
    for result in results:
        gap = result.gap
        if not isinstance(gap, BridgeGap):
            continue
        counts = {
            f"of {gap.n_answers} free answers are left out: no report values their token": gap.n_unknown_answers,
            "items are left out: they have draws or answers only": gap.n_one_sided,
            f"of {gap.n_tokens} tokens are left out: no chain connects them with the target": gap.n_unconnected,
            f"of {gap.n_tokens} tokens rest on an end of the scale, which only bounds their ratio": gap.n_censored,
            f"of {gap.n_items} items have a standard error above one nat: draws and answers hardly overlap": round(
                gap.overlap.share_starved * gap.n_items
            ),
        }
        said = [f"{count} {what}" for what, count in counts.items() if count]
        if said:
            found.append(f"bridge, rounding {result.rounding} ({gap.overlap.verdict}): {'; '.join(said)}")
    if any(isinstance(result.gap, BridgeGap) for result in results):
        found.append(
            "the bridge takes free answers for draws of what people believe; who answers with the most probable word "
            "has a lower loss here than they should"
        )
    return tuple(found)


def left_out_warnings(study: xr.Dataset, results: Sequence[PerplexityEstimate]) -> tuple[str, ...]:
    """Warn of responses that equations 3 to 5 cannot use, where an estimate rests on them."""
    if all(isinstance(result.gap, BridgeGap) for result in results) or not study.sizes["response"]:
        return ()
    number = int(np.sum(~drawn_response_mask(study)))
    if not number:
        return ()
    return (
        f"{number} of {study.sizes['response']} responses are left out: they are about people's free answers, or "
        "compare two candidates; estimator=bridge takes them",
    )
