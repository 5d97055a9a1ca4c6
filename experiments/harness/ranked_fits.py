"""Fits of a model to data drawn from it, and the ranks of the truth, as questions on calibration share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from shannon_game.experiments.harness.bayes import SamplerSettings
from shannon_game.experiments.harness.replication import ReplicationSettings, replicates_path
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.inference.posterior.sbc import SbcModel, SbcSettings, run_sbc
from shannon_game.inference.progress import stage
from shannon_game.inference.settings import Count


class RankedSettings(ReplicationSettings, Seeded):
    """How many data sets are drawn from a model and fitted."""

    n_fits: Count = 200
    """Data sets drawn and fitted."""
    n_ranked: Count = 63
    """Posterior draws, nearly independent, among which the truth is ranked."""
    allow_outside: bool = False
    """End with exit code 0 all the same; the table and the warnings say it either way."""


def ranked_fits(model: SbcModel, settings: RankedSettings, sampler: SamplerSettings) -> pd.DataFrame:
    """Draw and fit, or go on; one row per fit and quantity."""
    of_fits = SbcSettings(
        n_ranked=settings.n_ranked,
        draws=sampler.draws,
        tune=sampler.tune,
        chains=sampler.chains,
        target_accept=sampler.target_accept,
        sampler=sampler.name,
    )
    with stage("fits", announced=True) as show:
        rows = run_sbc(
            model,
            settings.n_fits,
            path=replicates_path(settings),
            seed=settings.seed,
            settings=of_fits,
            n_jobs=settings.n_jobs,
            progress=show,
            set_aside=settings.set_aside,
        )
    return pd.DataFrame(rows)


def by_quantity(ranks: pd.DataFrame) -> tuple[list[str], dict[str, Any]]:
    """Quantities, and variables of a file of results: one value per quantity and fit."""
    names = list(dict.fromkeys(ranks["quantity"]))
    columns = ("rank", "truth", "posterior_mean", "posterior_sd", "ess", "r_hat")
    return names, {
        column: (("quantity", "fit"), np.stack([ranks.loc[ranks["quantity"] == name, column] for name in names]))
        for column in columns
    }


def unconverged_fits(n_unconverged: Sequence[int], n_fits: int, kept: str) -> list[str]:
    """Warn of fits that did not converge."""
    most = int(max(n_unconverged))
    return [f"{most} of {n_fits} fits did not converge even with longer chains; {kept}"] if most else []
