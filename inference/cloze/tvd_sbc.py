"""The model of two samples of words for simulation-based calibration."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from shannon_game.estimators.checks import check_numbers
from shannon_game.inference.posterior.sbc import Design, SbcModel
from shannon_game.models.cloze.tvd import (
    PARAMETERS,
    WordPairData,
    WordPairPriors,
    set_word_pairs,
    simulate_with_sums,
    word_pair_model,
)
from shannon_game.models.cloze.word_pair_density import word_pair_density

_ANSWERS = 20


def tvd(_study: xr.Dataset, design: Design) -> SbcModel:
    """Two samples of 20 words in each context, on a design of its own: a comparison study has no words."""
    return word_pair_sbc(design.n_items, _ANSWERS)


def word_pair_sbc(n_contexts: int, n_answers: int, priors: WordPairPriors | None = None) -> SbcModel:
    """Two samples of words in each of some contexts, pooled."""
    check_numbers({"n_items": n_contexts, "n_answers": n_answers}, "tvd design", at_least=1)
    p, every = priors or WordPairPriors(), range(len(PARAMETERS))
    answers = np.full(n_contexts, float(n_answers))
    context = np.arange(n_contexts)
    shape = WordPairData(context, answers, answers, np.ones(n_contexts, np.int64), n_contexts, answers, answers)
    return SbcModel(
        name="tvd",
        build=partial(word_pair_model, shape, priors=p),
        quantities=(
            *(f"{name}[{k}]" for name in ("population_mean", "population_variance") for k in every),
            *("share_equal", *(f"theta[{k},0]" for k in every)),
        ),
        density=partial(word_pair_density, shape, priors=p),
        draw=partial(draw_word_pairs, p),
    )


def draw_word_pairs(priors: WordPairPriors, model: pm.Model, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """Draw parameters from the prior, and give the model the counts that they make."""
    n_a, n_b = model["answers"].get_value()
    mean, sd = priors.vectors()
    n, df = mean.size, priors.population_df
    variance = df * (priors.population_scale * sd) ** 2 / rng.chisquare(df, n)
    centre, share = rng.normal(mean, sd), rng.beta(priors.equal_alpha, priors.equal_beta)
    unit = rng.normal(size=(n, n_a.size))
    theta = centre[:, None] + np.sqrt(variance)[:, None] * unit
    equal = rng.random(n_a.size) < share
    data, sums = simulate_with_sums(theta, n_a, n_b, rng, equal=equal)
    set_word_pairs(model, data)
    log_u = np.log(rng.gamma(np.stack([n_a, n_b]))) - np.log(sums)
    # what the model takes from log u before it calls it the scale: see the statement
    shared = theta[0] + gammaln(1 - expit(theta[3]))
    own = theta[1:3] + gammaln(1 - expit(theta[4]))
    expected = np.where(equal, shared, np.logaddexp(shared + np.log1p(np.exp(2 * theta[5]) / 8), own))
    first, second = log_u - np.log(np.stack([n_a, n_b])) + expected
    return {
        "population_mean": centre,
        "population_variance": variance,
        "share_equal": np.asarray(share),
        "unit": unit,
        "theta": theta,
        "unseen": np.asarray(rng.normal(0, priors.unseen)),
        "scale": np.stack([(first + second) / 2, first - second]),
    }
