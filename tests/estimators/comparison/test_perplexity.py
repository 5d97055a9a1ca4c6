"""The study's perplexity against loops over its answers, and against exact sums over the vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.comparison import ESTIMATORS, estimate_perplexity, subsample_responses
from shannon_game.estimators.comparison.perplexity import reference_loss, true_loss
from shannon_game.estimators.comparison.terms import candidate_log_terms, player_names, response_pairs
from shannon_game.estimators.errors import InputError
from tests.estimators.comparison.comparison_studies import small_study
from tests.oracles.comparison_game import gap_and_errors, round_half_even_tenths, terms_by_item


def answers(
    study: xr.Dataset, player: str, *, rounded: bool, control: str = "gen"
) -> list[tuple[int, float, float, float]]:
    rows = []
    items = study["item"].values.tolist()
    for who in range(study.sizes["response"]):
        item = int(study["response_item"][who])
        q, x = items.index(item), int(study["response_candidate"][who])
        if player == "human":
            p = float(study["report"][who])
        else:
            y_prob = np.exp(float(study["target_logprob"].sel(model=player)[q]))
            x_prob = np.exp(float(study["candidate_logprob"].sel(model=player)[q, x]))
            p = y_prob / (y_prob + x_prob)
        p = round_half_even_tenths(p) if rounded else p
        target = np.exp(float(study["target_logprob"].sel(model=control)[q]))
        rows.append((item, p, target, np.exp(float(study["candidate_logprob"].sel(model="gen")[q, x]))))
    return rows


@pytest.mark.parametrize("player", ["human", "weak", "gen"])
@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("control", ["gen", "weak"])
def test_equation_5_on_a_study(player: str, rounded: bool, control: str) -> None:
    study = small_study()
    result = estimate_perplexity(
        study, player, rounding="interface" if rounded else "none", generator=control, control_only=True
    )
    gap, se_items, se_samples = gap_and_errors(terms_by_item(answers(study, player, rounded=rounded, control=control)))
    assert result.gap.gap_nats == pytest.approx(gap, abs=1e-12)
    assert result.gap.se_items_nats == pytest.approx(se_items, abs=1e-12)
    assert result.gap.se_samples_nats == pytest.approx(se_samples, abs=1e-12)
    base = -float(study["target_logprob"].sel(model=control).mean())
    assert result.reference_loss_nats == pytest.approx(base)
    np.testing.assert_allclose(
        [result.perplexity_lower, result.perplexity, result.perplexity_upper],
        # no perplexity is below 1
        np.maximum(np.exp(gap + base + 1.6448536269514722 * np.array([-1, 0, 1]) * se_items), 1),
    )


@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name != "psis"])
def test_every_estimator_finds_the_exact_gap_with_many_candidates(estimator: str) -> None:
    """12,000 candidates from nine tokens: the gap of the other model is a sum over the vocabulary."""
    study = small_study(n_items=4, n_candidates=3000, n_participants=1, seed=5)
    rows = np.tile(np.arange(3000), 4)
    item = np.repeat(study["item"].values, 3000)
    study = study.drop_dims("response").assign(
        participant=("response", np.array(["p"] * rows.size, dtype=object)),
        response_item=("response", item),
        response_candidate=("response", rows),
        report=("response", np.full(rows.size, 0.5)),
        automatic=("response", np.zeros(rows.size, dtype=bool)),
    )
    result = estimate_perplexity(study, "weak", estimator=estimator)
    exact = result.true_gap_nats
    assert abs(exact) > 0.05
    # Rao-Blackwell sees all nine tokens here and is almost exact; the others err by their standard error
    tolerance = 0.002 if estimator == "rao_blackwell" else 4 * result.gap.se_samples_nats
    assert result.gap.gap_nats == pytest.approx(exact, abs=tolerance)


def test_truth_and_reference() -> None:
    study = small_study()
    study["in_reference"].values[:3] = False
    loss = -study["target_logprob"].sel(model="weak").values
    some = study["in_reference"].values
    assert true_loss(study, "weak", some) == pytest.approx(loss[3:].mean())
    assert np.isnan(true_loss(study, "human", some))
    study["human_target_logprob"] = ("item", np.full(6, -2.5))
    assert true_loss(study, "human", some) == pytest.approx(2.5)
    assert estimate_perplexity(study, "human").true_gap_nats == pytest.approx(
        2.5 - true_loss(study, "gen", ~some | some)
    )
    asked = np.zeros(6, dtype=bool)
    asked[0] = True
    assert reference_loss(study, "weak", "asked", asked) == pytest.approx(loss[0])
    assert reference_loss(study, "weak", "reference", asked) == pytest.approx(loss[3:].mean())


def test_one_string_with_two_log_probabilities_is_two_tokens() -> None:
    study = small_study(n_items=1, n_candidates=2, n_participants=40)
    study["candidate_token"].values[:] = "\N{REPLACEMENT CHARACTER}"
    study["candidate_logprob"].values[1, 0] = [-1.0, -2.0]
    assert set(study["response_candidate"].values.tolist()) == {0, 1}
    assert set(response_pairs(study).token.tolist()) == {0, 1}
    study["candidate_logprob"].values[1, 0] = [-1.0, -1.0]
    assert set(response_pairs(study).token.tolist()) == {0}


def test_models_play_all_candidates_of_a_study_that_nobody_answered() -> None:
    """The estimate is that of one participant a candidate, who sees it on every item."""
    study = small_study()
    nobody = study.isel(response=slice(0))
    assert player_names(study) == ["human", "weak", "gen"]
    assert player_names(nobody) == ["weak", "gen"]
    asked = np.flatnonzero((study["item_set"].values != "") & study["selected"].values)
    player = study["model"].values[-1]
    terms = candidate_log_terms(study, player, "interface")[asked]
    found = estimate_perplexity(nobody, player, rounding="interface")
    assert found.gap.gap_nats == pytest.approx(np.log(np.exp(terms).mean(axis=1)).mean(), abs=1e-12)
    assert (found.gap.n_items, found.gap.n_responses) == (terms.shape[0], terms.size)
    assert found.true_gap_nats == pytest.approx(estimate_perplexity(study, player).true_gap_nats, abs=1e-12)
    with pytest.raises(InputError, match="has no response of a participant; its models can play"):
        estimate_perplexity(nobody, "human")
    with pytest.raises(InputError, match="has no response, and no item that is selected"):
        estimate_perplexity(nobody.assign(selected=("item", np.zeros(study.sizes["item"], dtype=bool))), player)


@pytest.mark.parametrize("n", [1, 3, 4])
def test_a_subsample_keeps_n_of_every_item(n: int) -> None:
    study = small_study()
    kept = subsample_responses(study, n, np.random.default_rng(0))
    assert np.unique(kept["response_item"], return_counts=True)[1].tolist() == [n] * 6
    assert kept.identical(subsample_responses(study, n, np.random.default_rng(0)))
    assert kept.identical(subsample_responses(study, n, np.random.default_rng(1))) == kept.identical(study) == (n == 4)


def test_items_of_no_set_or_not_selected_are_not_asked() -> None:
    study = small_study().isel(response=slice(0), item=[3, 1, 0, 2, 4, 5])
    study["item_set"].values[1] = ""
    study["selected"].values[4] = False
    pairs = response_pairs(study)
    assert np.unique(pairs.item).tolist() == [100, 102, 103, 105]
    assert (np.diff(pairs.item) >= 0).all()
    np.testing.assert_array_equal(pairs.draw, np.tile(np.arange(12), 4))
