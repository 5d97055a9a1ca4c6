"""The Bayesian TVD: draws of the distance, and its intervals against known distributions."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.cloze.distances import total_variation
from shannon_game.estimators.cloze.distributions import WordCounts, relative_frequencies
from shannon_game.estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study
from shannon_game.estimators.cloze.study_words import study_words
from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.inference.cloze.tvd import TvdPosterior, tvd_posterior
from shannon_game.inference.posterior.arviz_adapter import from_groups, group
from shannon_game.inference.posterior.sampling import sample, written_model
from shannon_game.models.cloze.tvd import word_pair_data, word_pair_model
from shannon_game.models.cloze.word_pair_density import word_pair_density
from tests.truth import FAR, distance, smallest_ess


def simulated(n: int, n_items: int, family: str, seed: int) -> tuple[WordCounts, WordCounts, np.ndarray]:
    settings = ClozeSimulation(n_items=n_items, n_answers=n, n_samples=n, families=(family,))
    study = simulate_cloze_study(settings, np.random.default_rng(seed))
    none = WORD_RULES["none"]
    words = study_words(study, human=none, model=none, corpus=none)
    return words.answers(), words.models[family].counts, study["true_tvd"].to_numpy()[0]


def fitted(people: WordCounts, model: WordCounts, seed: int, **settings: int) -> TvdPosterior:
    data = word_pair_data(people, model)
    program = written_model(word_pair_model(data), word_pair_density(data))
    idata = sample(program, seed=seed, progress=False, **settings)
    return tvd_posterior(idata, data, rng=np.random.default_rng(seed))


@pytest.mark.mcmc
def test_intervals_hold_the_truth_where_the_raw_distance_is_far_off(seed_offset: int) -> None:
    """20 answers at each of 30 contexts, whose answers are independent of each other."""
    people, model, truth = simulated(20, 30, "mixture", 1 + seed_offset)
    posterior = fitted(people, model, 2 + seed_offset, draws=1200, tune=400, chains=2)
    # the gate judges what is reported
    assert set(group(posterior.idata, "posterior").data_vars) == {
        *("tvd", "expected_tvd", "population_mean", "population_variance", "share_equal")
    }
    assert smallest_ess(posterior.tvd) > 50  # an end of an interval is off by 3% of probability
    lower, upper = posterior.interval()
    raw = total_variation(relative_frequencies(people), relative_frequencies(model))
    assert raw.mean() - truth.mean() > 0.2
    assert distance(posterior.expected(), truth.mean()) < FAR
    # beside chance, how alike unseen words are, of which no answer tells
    assert posterior.expected().std() < 0.15
    # the slow test wants 85% at least: fewer than 18 of 30 happen once in 5,000 studies then (binomial)
    assert ((lower <= truth) & (truth <= upper)).sum() >= 18
    assert posterior.tvd.shape == (2, 1200, 30)
    np.testing.assert_allclose(posterior.expected(), group(posterior.idata, "posterior")["expected_tvd"])


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_items"), [(20, 100), (40, 100), (1000, 60)])
def test_coverage(n: int, n_items: int, seed_offset: int) -> None:
    """Mean coverage over four families at 20, 40 and 1,000 answers: 85 to 95%, give or take 3.7 binomial sds.

    At the very ends of that range a study fails once in 10,000.
    """
    hits, total = 0, 0
    for seed, family in enumerate(("mixture", "factors", "ranks", "tail"), start=4 * seed_offset):
        people, model, truth = simulated(n, n_items, family, 10 + seed)
        lower, upper = fitted(people, model, seed, draws=300, tune=300, chains=2).interval()
        hits += int(((lower <= truth) & (truth <= upper)).sum())
        total += n_items
    assert 0.85 - 3.7 * np.sqrt(0.85 * 0.15 / total) <= hits / total <= 0.95 + 3.7 * np.sqrt(0.95 * 0.05 / total)


def test_distances_are_those_of_the_distributions_drawn() -> None:
    """Counts of a million from two known distributions leave nothing to guess: the draws are at their TVD."""
    from shannon_game.estimators.cloze.distributions import count_words

    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    counts = [count_words([0, 0, 0], range(3), (share * 1e6).astype(int), n_contexts=1) for share in (p, q)]
    data = word_pair_data(*counts)
    # parameters under which unseen words have next to no mass
    theta = np.array([0.0, -12.0, -12.0, -3.0, -3.0, 0.5])[:, None]
    log_u = np.log([1e6, 1e6])[:, None]
    draws = np.concatenate([theta, log_u])[None, None].repeat(200, axis=1)
    found = _drawn(draws, data)
    assert np.abs(found - 0.3).max() < 0.01
    # a third of the draws with odds of one half for equal distributions, give or take 4 sds
    assert (_drawn(draws, data, np.log(0.5)) == 0).mean() == pytest.approx(1 / 3, abs=0.14)


def _drawn(draws: np.ndarray, data, log_odds_equal: float = -50.0) -> np.ndarray:
    import xarray as xr

    posterior = xr.Dataset(
        {
            "theta": (("chain", "draw", "parameter", "context"), draws[:, :, :6]),
            "log_u": (("chain", "draw", "side", "context"), draws[:, :, 6:]),
            "log_odds_equal": (("chain", "draw", "context"), np.full_like(draws[:, :, 0], log_odds_equal)),
            "unseen": (("chain", "draw"), np.zeros(draws.shape[:2])),
        }
    )
    return tvd_posterior(from_groups({"posterior": posterior}), data, rng=np.random.default_rng(0)).tvd


def test_distances_that_are_always_zero_are_not_judged() -> None:
    import xarray as xr

    draws = np.random.default_rng(0).uniform(0.1, 0.2, (2, 50, 3))
    draws[:, :, 1] = 0.0
    stats = xr.Dataset({"diverging": (("chain", "draw"), np.zeros((2, 50), bool))})

    def judged(values: np.ndarray) -> xr.Dataset:
        dims = ("chain", "draw", "context")
        variables = {"tvd": (dims, values), "expected_tvd": (dims[:2], values.mean(axis=2))}
        posterior = xr.Dataset({**variables, "share_equal": (dims[:2], values[:, :, 0])})
        idata = from_groups({"posterior": posterior, "sample_stats": stats})
        return group(TvdPosterior(idata).judged(), "posterior")

    np.testing.assert_array_equal(judged(draws)["tvd"], draws[:, :, [0, 2]])
    assert "expected_tvd" in judged(draws)
    assert set(judged(0.0 * draws).data_vars) == {"share_equal"}
