"""What is computed from draws of the accuracy model, against brute force; recovery of a known truth in one fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses import with_model_answers
from shannon_game.inference.guesses.accuracy import (
    beats_every,
    best_participant,
    fitted_probability,
    model_guesses,
    participant_draws,
    population_draws,
    practice_change,
    predicted_hits,
    stored_accuracy_draws,
)
from shannon_game.inference.guesses.sbc import accuracy_sbc, small_accuracy_design
from shannon_game.inference.posterior.arviz_adapter import InferenceData, group
from shannon_game.inference.posterior.sampling import sample
from shannon_game.inference.posterior.sbc import run_sbc
from shannon_game.inference.posterior.sbc_bands import judge_ranks
from shannon_game.models.guesses.accuracy import accuracy_model
from shannon_game.models.guesses.accuracy_data import AccuracyData, accuracy_data, practice_amount
from tests.estimators.guesses.guess_studies import guess_study
from tests.oracles.accuracy import simulated_study
from tests.same import assert_same
from tests.truth import FAR, distance

N_DRAWS = 6


def draws_of(data: AccuracyData, seed: int = 0) -> xr.Dataset:
    """A posterior made up at random."""
    rng = np.random.default_rng(seed)

    def of(*dims: str) -> tuple[tuple[str, ...], np.ndarray]:
        sizes = {"participant": data.participant.size, "document": data.document.size, "band": data.band.size}
        return ("chain", "draw", *dims), rng.normal(0, 0.5, (2, N_DRAWS // 2, *(sizes[dim] for dim in dims)))

    names = {"ability": "participant", "practice": "participant", "document_effect": "document"}
    found = {name: of(dim) for name, dim in names.items()} | {"context_effect": of("band")}
    found |= {name: of() for name in ("intercept", "practice_mean", "surprisal_slope")}
    found |= {
        name: (dims, np.abs(values) + 0.1)
        for name in ("ability_spread", "practice_spread", "document_spread")
        for dims, values in [of()]
    }
    return xr.Dataset(found, coords={"participant": data.participant, "document": data.document, "band": data.band})


def sigmoid(logit: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logit))


@pytest.mark.parametrize("surprisal", [False, True])
def test_participants_on_fresh_texts_against_monte_carlo(surprisal: bool) -> None:
    """400,000 fresh guesses a participant: a context (and surprisal) of the study's, and a new document."""
    data = small_accuracy_design(3, 6, 4)
    if not surprisal:
        data = AccuracyData(**{**vars(data), "surprisal": None})
    posterior = draws_of(data)
    rng = np.random.default_rng(1)
    row = rng.choice(data.n.size, 400_000, p=data.n / data.n.sum())
    new = rng.normal(size=row.size)
    own, at_zero = participant_draws(posterior, data), participant_draws(posterior, data, 0)
    assert own.shape == (N_DRAWS, 3)
    flat = posterior.stack(d=("chain", "draw"))
    for draw in (0, N_DRAWS - 1):
        one = flat.isel(d=draw)
        texts = one["context_effect"].values[data.context[row]] + float(one["document_spread"]) * new
        if data.surprisal is not None:
            texts = texts + float(one["surprisal_slope"]) * data.surprisal[row]
        for person in range(3):
            mine = data.person == person
            level = float(one["intercept"] + one["ability"][person])
            practised = level + float(one["practice"][person]) * np.average(data.practice[mine], weights=data.n[mine])
            fresh = level + float(one["practice"][person]) * (0 - data.practice_centre)
            # standard error .0004; with surprisals the mix is made of 200 texts at most
            assert own[draw, person] == pytest.approx(sigmoid(practised + texts).mean(), abs=0.003)
            assert at_zero[draw, person] == pytest.approx(sigmoid(fresh + texts).mean(), abs=0.003)


def test_the_population_against_monte_carlo() -> None:
    data = AccuracyData(**{**vars(small_accuracy_design(3, 6, 4)), "surprisal": None})
    posterior = draws_of(data)
    rng = np.random.default_rng(2)
    z = rng.normal(size=(3, 300_000))
    band = rng.choice(data.band.size, z.shape[1], p=data.band_share)
    one = posterior.stack(d=("chain", "draw")).isel(d=1)
    for n in (0, 1000):
        amount = float(practice_amount(n)) - data.practice_centre
        logit = float(one["intercept"]) + float(one["ability_spread"]) * z[0]
        logit = logit + (float(one["practice_mean"]) + float(one["practice_spread"]) * z[1]) * amount
        logit = logit + float(one["document_spread"]) * z[2] + one["context_effect"].values[band]
        assert population_draws(posterior, data, n)[1] == pytest.approx(sigmoid(logit).mean(), abs=0.002)
    change = population_draws(posterior, data, 1000) - population_draws(posterior, data, 0)
    assert_same(practice_change(posterior, data), change)


def test_fitted_and_predicted_rows() -> None:
    data = small_accuracy_design(3, 6, 5)
    posterior = draws_of(data)
    fitted = fitted_probability(posterior, data)
    one = posterior.stack(d=("chain", "draw")).isel(d=2)
    row = 4
    logit = one["intercept"] + one["ability"][data.person[row]] + one["practice"][data.person[row]] * data.practice[row]
    logit = logit + one["document_effect"][data.place[row]] + one["context_effect"][data.context[row]]
    assert data.surprisal is not None
    logit = logit + one["surprisal_slope"] * data.surprisal[row]
    assert fitted.shape == (N_DRAWS, data.n.size)
    assert fitted[2, row] == pytest.approx(float(sigmoid(logit.values)))
    hits = predicted_hits(posterior, data, np.random.default_rng(0))
    assert ((hits >= 0) & (hits <= data.n)).all()
    other = small_accuracy_design(4, 6, 5)
    for function in (fitted_probability, participant_draws):
        with pytest.raises(InputError, match="not of these participants"):
            function(posterior, other)
    with pytest.raises(InputError, match="n_before"):
        population_draws(posterior, data, -1)


def test_beating_everybody_counts_all_pairs() -> None:
    rng = np.random.default_rng(0)
    model, best = rng.integers(0, 5, 30) / 5, rng.integers(0, 5, 50) / 5
    pairs = (model[:, None] > best).mean() + 0.5 * (model[:, None] == best).mean()
    assert beats_every(model, best) == pytest.approx(pairs)
    assert beats_every([0.6], [0.1, 0.2]) == 1
    assert beats_every([0.1], [0.3, 0.2]) == 0


def test_a_model_that_played_the_same_guesses() -> None:
    study = with_model_answers(guess_study(), "lm", [1, 0, 1, np.nan])
    rng = np.random.default_rng(0)
    found = model_guesses(study, "lm", n_draws=500, rng=rng)
    # items 10 (three guesses, a hit), 11 (one, a miss), 12 (one, a hit); 13 was not played
    assert (found.n_guesses, found.n_items, found.accuracy, found.human_accuracy) == (5, 3, 0.8, 0.6)
    assert 0.75 < found.draws.min() < found.draws.max() < 1  # document a: 3 of 4; b: 1 of 1
    assert model_guesses(study, "lm", n_draws=5, rng=rng, responses=[1, 0, 0, 0, 0, 0]).n_guesses == 1
    with pytest.raises(InputError, match="choose one of: lm"):
        model_guesses(study, "gpt", n_draws=5, rng=rng)
    with pytest.raises(InputError, match="at the guesses wanted"):
        model_guesses(study, "lm", n_draws=5, rng=rng, responses=[0, 0, 0, 0, 0, 1])


# ------------------------------------------------------------------------------------------ with a sampler

TRUTH = {"n_participants": 14, "n_documents": 18, "n_guesses": 90}


Fit = tuple[AccuracyData, InferenceData, dict[str, np.ndarray]]


@pytest.fixture(scope="module")
def fit(seed_offset: int) -> Fit:
    study, truth = simulated_study(**TRUTH, seed=11 + seed_offset)
    data = accuracy_data(study)
    settings = {"draws": 500, "tune": 400, "chains": 2, "cores": 1, "progress": False}
    return data, sample(accuracy_model(data), seed=3 + seed_offset, **settings), truth


@pytest.mark.mcmc
def test_a_known_truth_is_recovered(fit: Fit) -> None:
    """One study with 7,560 guesses. People and documents are those drawn, not their populations."""
    data, idata, truth = fit
    posterior = group(idata, "posterior")
    ability, document = posterior["ability"].values, posterior["document_effect"].values
    # the study's mean practice and context are 0 in the model
    shares = data.band_share @ truth["context"][1 : data.band.size + 1]
    level = -1.0 + truth["practice"] * data.practice_centre + shares
    known = {
        "practice": (posterior["practice"].values.mean(axis=2), truth["practice"]),
        "level": (
            posterior["intercept"].values + ability.mean(axis=2) + document.mean(axis=2),
            level + truth["ability"].mean() + truth["document_effect"].mean(),
        ),
        "spread of abilities": (np.log(ability.std(axis=2)), np.log(truth["ability"].std())),
        "spread of documents": (np.log(document.std(axis=2)), np.log(truth["document_effect"].std())),
    }
    for name, (draws, value) in known.items():
        assert distance(draws, value) < FAR, name
    # documents that happen to be alike leave the logarithm of their spread open
    for name in ("practice", "level", "spread of abilities"):
        assert known[name][0].std() < 0.3, name
    # the first is minus the sum of the others
    relative = (ability - ability.mean(axis=2, keepdims=True))[..., 1:]
    assert distance(relative, (truth["ability"] - truth["ability"].mean())[1:]) < FAR
    # and the study tells people apart: their abilities differ by .5
    assert relative.std(axis=(0, 1)).mean() < 0.25


@pytest.mark.slow
def test_simulation_based_calibration(tmp_path: Path, seed_offset: int) -> None:
    """60 fits of a small design; the documented run has 200. A right model fails once in 1,000 seeds (Bonferroni)."""
    model = accuracy_sbc(small_accuracy_design(6, 16, 8))
    rows = run_sbc(model, 60, path=tmp_path / "fits.jsonl", seed=seed_offset)
    quantities = {row["quantity"] for row in rows}
    for quantity in quantities:
        ranks = [row["rank"] for row in rows if row["quantity"] == quantity]
        assert judge_ranks(ranks, 63).p_value > 0.001 / len(quantities), quantity


def test_the_best_is_not_always_the_same() -> None:
    draws = np.array([[0.3, 0.2, 0.9], [0.1, 0.4, 0.8], [0.5, 0.2, 0.7], [0.5, 0.1, 0.1]])
    best, probability = best_participant(draws, [True, True, False])
    assert best.tolist() == [0.3, 0.4, 0.5, 0.5]
    assert probability.tolist() == [0.75, 0.25, 0]
    assert best_participant(draws)[1].tolist() == [0.25, 0, 0.75]
    with pytest.raises(InputError, match="nobody"):
        best_participant(draws, [False] * 3)


def test_stored_accuracies_are_as_sure_as_their_number() -> None:
    draws = stored_accuracy_draws(0.4, 1000, n_draws=20_000, rng=np.random.default_rng(0))
    assert draws.mean() == pytest.approx(0.4, abs=0.001)
    assert draws.std() == pytest.approx(np.sqrt(0.24 / 1000), rel=0.03)
    with pytest.raises(InputError, match="stored_n"):
        stored_accuracy_draws(0.4, 0, n_draws=5, rng=np.random.default_rng(0))
