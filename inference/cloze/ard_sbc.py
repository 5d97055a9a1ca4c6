"""The relevance regression as a model to calibrate: whether its intervals hold what they should."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.sbc import JOINT_LOG_LIKELIHOOD, SbcModel
from shannon_game.models.cloze.ard import ard_model
from shannon_game.models.cloze.ard_data import ArdData
from shannon_game.models.cloze.ard_priors import ArdPriors


def ard_sbc(
    data: ArdData, *, prior: str = "ard", likelihood: str = "beta", priors: ArdPriors | None = None
) -> SbcModel:
    """Relevance regression for SBC; target and measured predictors of `data` only give the shape of those simulated."""
    quantities = ["intercept", *(f"coefficient[{k}]" for k in range(len(data.predictor)))]
    if prior in ("ard", "horseshoe"):
        quantities += [f"scale[{k}]" for k in range(len(data.predictor))]
    quantities += [f"{group}_spread" for group in data.groups]
    quantities += ["text_effect[0]"] if "text" in data.groups else []
    quantities += ["concentration"] if likelihood == "beta" else ["noise"]
    for k in range(len(data.noisy)):
        quantities += [f"latent_mean[{k}]", f"latent_spread[{k}]", f"latent_unit[{k},0]"]
        quantities += [f"latent_slope[{k},0]"] if len(data.noisy) < len(data.predictor) else []
    chosen = priors or ArdPriors()
    return SbcModel(
        name=f"ard_{prior}_{likelihood}",
        build=partial(ard_model, data, prior=prior, likelihood=likelihood, priors=chosen),
        quantities=tuple(quantities),
    )


def interval_coverage(ranks: pd.DataFrame, n_ranked: int, probability: float) -> pd.DataFrame:
    """How often equal-tailed intervals held the truth, from its rank among L posterior draws.

    The truth has one of L + 1 ranks, all as likely if the posterior is right: with L = 99, the 90% interval is the
    ranks 5 to 94. The joint log-likelihood is left out: it has no true value before the data.
    """
    outside = (n_ranked + 1) * (1 - probability) / 2
    if not 0 < probability < 1 or abs(outside - round(outside)) > 1e-9 or round(outside) < 1:
        raise InputError(
            f"is {n_ranked}, from which no interval of {probability:g} can be made; 99 ranks make those of .9 and .8",
            field="n_ranked",
        )
    low, high = round(outside), n_ranked - round(outside)
    rows = []
    for quantity, own in ranks.groupby("quantity", sort=False):
        if quantity == JOINT_LOG_LIKELIHOOD:
            continue
        inside = own["rank"].between(low, high)
        se = float(np.sqrt(probability * (1 - probability) / len(own)))
        rows.append({"quantity": quantity, "n_fits": len(own), "coverage": float(inside.mean()), "coverage_se": se})
    return pd.DataFrame(rows)
