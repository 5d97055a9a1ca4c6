"""What a pilot's posterior says of people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison import ParticipantPopulation
from shannon_game.estimators.errors import InputError

__all__ = ["pilot_populations"]

_NEEDED = ("slope_sd", "bias_sd", "log_noise", "noise_sd", "logit_lapse")
_LAPSE_CONCENTRATION = 40.0


def pilot_populations(path: Path, n: int, rng: np.random.Generator) -> list[ParticipantPopulation]:
    """Draw populations of participants from the posterior of a pilot."""
    if not path.is_file():
        raise InputError(f"{path} is no file; should be a posterior that a run wrote", field="pilot")
    try:
        with xr.open_dataset(path, group="posterior", engine="h5netcdf") as opened:
            draws = opened.load()
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} has no group 'posterior' that can be read: {reason}", field="pilot") from error
    missing = [name for name in _NEEDED if name not in draws]
    if missing:
        raise InputError(
            f"{path} has no {', '.join(missing)}; should be posterior_human.nc of +exp=human_loss", field="pilot"
        )
    flat = draws.stack(draw_number=("chain", "draw"))
    chosen = rng.choice(flat.sizes["draw_number"], n, replace=flat.sizes["draw_number"] < n)
    found = []
    for at in chosen.tolist():
        one = {name: float(flat[name].to_numpy()[at]) for name in _NEEDED}
        k0 = float(flat["k0"].to_numpy()[at]) if "k0" in flat else 1.0
        found.append(
            ParticipantPopulation(
                bias_sd_nats=one["bias_sd"],
                slope_median=k0,
                slope_log_sd=one["slope_sd"],
                noise_median_nats=float(np.exp(one["log_noise"])),
                noise_log_sd=one["noise_sd"],
                lapse_mean=float(1 / (1 + np.exp(-one["logit_lapse"]))),
                lapse_concentration=_LAPSE_CONCENTRATION,
            )
        )
    return found
