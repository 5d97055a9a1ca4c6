"""What the calibration experiment found, in words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import xarray as xr

from shannon_game.experiments.harness.report import fill

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
    """Say who is over- or under-confident by which reading, how reports come about, and what is identified."""
    shown = [at for at in (0.6, 0.7, 0.8, 0.9, 0.99) if at in dataset["report"].to_numpy()]
    low, _, high = dataset["predicted_share"].to_numpy()
    observed = dataset["observed_share"].to_numpy()
    return fill(
        "summary",
        Path(__file__).parent,
        typical=table.iloc[0].to_dict(),
        probability=interval,
        curve=list(zip(shown, dataset["game_curve"].sel(report=shown).to_numpy().T.tolist(), strict=True)),
        n_people=dataset.sizes["participant"],
        missed=dataset["box"].to_numpy()[(observed < low) | (observed > high)].tolist(),
        odd=unusual(table).to_dict("records"),
        most=_MAX_NAMED,
        loo=dataset.attrs,
    ).strip()
