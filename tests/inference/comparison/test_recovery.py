"""Summaries of recovery against numbers worked out by hand, and fresh studies against what they are made from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from estimators.comparison import (
    ParticipantPopulation,
    RoundingScheme,
    SimulationSettings,
    round_reports,
    rounding_scheme,
    simulate_comparison_study,
    two_alternative_report,
)
from estimators.comparison.examples import comparison_study
from estimators.comparison.simulation.participants import Participants
from estimators.errors import InputError
from inference.comparison import participant_recovery
from inference.comparison.participant_fit import Anchor, ParticipantFit
from inference.comparison.participant_gap import loss_gap, shared_belief
from inference.comparison.participant_recovery import answers_of, fitted_people, simulate_answers
from inference.comparison.recovery import fresh_items, fresh_study, summarise, summarise_rows
from inference.examples import stand_in_posterior
from inference.posterior.arviz_adapter import group
from inference.posterior.convergence import Convergence
from models.comparison.participant_data import participant_data, with_reports
from models.comparison.participants import ParticipantPriors, participant_model
from tests.estimators.comparison.comparison_studies import small_study


def test_summary_worked_out_by_hand() -> None:
    # errors 1, -1, 2, 0; intervals of width 2, 2, 3, 1; the third misses its truth
    found = summarise(
        [2.0, 0.0, 4.0, 1.0], [1, -1, 2.5, 0.5], [3, 1, 5.5, 1.5], [1, 1, 2, 1], converged=[True, False, True, True]
    )
    assert found.n_studies == 4
    assert found.truth_mean == 1.25
    assert found.bias == 0.5
    assert found.rmse == pytest.approx(np.sqrt(6 / 4))
    # squared errors 1, 1, 4, 0: mean 1.5, sum of squares about it .25 + .25 + 6.25 + 2.25 = 9
    assert found.rmse_se == pytest.approx(np.sqrt(9 / 3) / (2 * np.sqrt(1.5) * 2))
    assert found.coverage == 0.75
    assert found.coverage_lower == pytest.approx(beta.ppf(0.025, 3.5, 1.5))
    assert found.coverage_upper == pytest.approx(beta.ppf(0.975, 3.5, 1.5))
    assert found.width_mean == 2.0
    assert found.n_unconverged == 1


def test_ends_of_the_coverage_interval() -> None:
    always = summarise(np.zeros(5), -np.ones(5), np.ones(5), np.zeros(5))
    never = summarise(np.zeros(5), -np.ones(5), np.ones(5), np.full(5, 2.0))
    assert (always.coverage, always.coverage_upper, always.rmse, always.rmse_se) == (1.0, 1.0, 0.0, 0.0)
    assert (never.coverage, never.coverage_lower) == (0.0, 0.0)
    assert always.coverage_lower == pytest.approx(1 - never.coverage_upper)


def test_monte_carlo_error_of_the_rmse_is_its_spread() -> None:
    rng = np.random.default_rng(0)
    errors = rng.normal(0.1, 0.2, (2000, 100))
    found = [summarise(row, row - 1, row + 1, np.zeros(100)) for row in errors]
    assert np.mean([each.rmse_se for each in found]) == pytest.approx(np.std([each.rmse for each in found]), rel=0.06)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"truth": [0.0]}, "truth"),
        ({"estimate": []}, "estimate"),
        ({"lower": [0.0, np.nan]}, "lower"),
        ({"upper": [-5.0, 1.0]}, "upper"),
    ],
)
def test_what_cannot_be_summarised(change: dict[str, list[float]], part: str) -> None:
    values = {"estimate": [0.0, 0.0], "lower": [-1.0, -1.0], "upper": [1.0, 1.0], "truth": [0.0, 0.0]} | change
    with pytest.raises(InputError, match=part):
        summarise(**values)


def test_rows_are_summarised_by_cell() -> None:
    rows = [
        {"player": player, "estimator": "e", "estimate": value, "lower": 0.0, "upper": 1.0, "truth": 0.0}
        | {"converged": converged}
        for player, value, converged in (("b", 1.0, None), ("a", 2.0, False), ("b", 3.0, True))
    ]
    found = summarise_rows(rows, ("player", "estimator"))
    assert [cell for cell, _ in found] == [{"player": "b", "estimator": "e"}, {"player": "a", "estimator": "e"}]
    assert [(one.n_studies, one.bias, one.n_unconverged) for _, one in found] == [(2, 2.0, 0), (1, 2.0, 1)]
    with pytest.raises(InputError, match="converged"):
        summarise_rows([{"player": "a", "estimate": 0.0, "lower": 0.0, "upper": 0.0, "truth": 0.0}], ("player",))


def half_asked_study(n_items: int = 8):
    study = small_study(n_items=n_items)
    asked = study["response_item"].values < 100 + n_items // 2
    return study.isel(response=np.flatnonzero(asked))


def test_a_fresh_study_has_items_that_nobody_was_asked() -> None:
    study = half_asked_study()
    assert fresh_items(study) == [104, 105, 106, 107]
    few, many = (fresh_study(study, n_items=3, n=n, rng=np.random.default_rng(4)) for n in (2, 5))
    # the other items stay, as their candidates tell how frequent tokens are; nobody is asked about them
    for fresh, n in ((few, 2), (many, 5)):
        np.testing.assert_array_equal(fresh["item"], study["item"])
        np.testing.assert_array_equal(fresh["candidate_logprob"], study["candidate_logprob"])
        items = set(fresh["response_item"].values)
        assert len(items) == 3
        assert items < {104, 105, 106, 107}
        assert set(fresh["item"].values[fresh["item_set"].values == "fresh"]) == items
        for item in items:
            columns = fresh["response_candidate"].values[fresh["response_item"].values == item]
            assert len(set(columns)) == len(columns) == n
    asked = [
        set(zip(each["response_item"].values, each["response_candidate"].values, strict=True)) for each in (few, many)
    ]
    assert asked[0] < asked[1]
    all_candidates = fresh_study(study, n_items=4, n=12, rng=np.random.default_rng(0))
    assert all_candidates.sizes["response"] == 48


def test_distinct_questions_are_never_about_the_target_or_a_token_twice() -> None:
    study = half_asked_study()
    tokens, target = study["candidate_token"].values.copy(), study["target_token"].values
    position = {label: at for at, label in enumerate(study["item"].values.tolist())}
    tokens[position[104]] = target[position[104]]  # the generator drew nothing but the target
    log_p = study["candidate_logprob"].values.copy()
    log_p[:, position[104]] = study["target_logprob"].values[:, position[104], None]
    changed = study.assign(
        candidate_token=(study["candidate_token"].dims, tokens),
        candidate_logprob=(study["candidate_logprob"].dims, log_p),
    )
    fresh = fresh_study(changed, n_items=4, n=5, rng=np.random.default_rng(1), ask="distinct")
    items, columns = fresh["response_item"].values, fresh["response_candidate"].values
    assert set(items) == {104, 105, 106, 107}
    for label in (105, 106, 107):
        at = position[label]
        asked = tokens[at][columns[items == label]]
        others = set(tokens[at].tolist()) - {target[at]}
        assert len(set(asked)) == len(asked) == min(5, len(others))
        assert target[at] not in asked
    # nothing to ask, but its gap is still part of the truth
    assert (items == 104).sum() == 1
    assert fresh["automatic"].values[items == 104].all()
    again = fresh_study(changed, n_items=4, n=2, rng=np.random.default_rng(1), ask="distinct")
    fewer = set(zip(again["response_item"].values, again["response_candidate"].values, strict=True))
    assert fewer < set(zip(items, columns, strict=True))
    with pytest.raises(InputError, match="distinkt"):
        fresh_study(study, n_items=4, n=2, rng=np.random.default_rng(1), ask="distinkt")


def test_an_item_filter_holds_for_fresh_items_too() -> None:
    study = half_asked_study()
    selected = study["selected"].values.copy()
    selected[5] = False
    assert fresh_items(study.assign(selected=("item", selected))) == [104, 106, 107]


@pytest.mark.parametrize(
    ("n_items", "n", "part"),
    [(5, 2, "there are 4 items without responses"), (2, 13, "12 candidates"), (0, 1, "n_items")],
)
def test_too_few_items_or_candidates(n_items: int, n: int, part: str) -> None:
    with pytest.raises(InputError, match=part):
        fresh_study(half_asked_study(), n_items=n_items, n=n, rng=np.random.default_rng(0))


def test_simulated_people_answer_on_any_grid() -> None:
    study = simulate_comparison_study(
        SimulationSettings(n_items=6, n_reference_items=20, n_participants=4, n_candidates=20, vocab_size=200)
    )
    halves = RoundingScheme("custom", (0.25, 0.75))
    on_grid = study.assign(report=("response", round_reports(study["report"].values, halves)))
    found = simulate_answers(
        on_grid,
        "lm-weak",
        k0=1.0,
        population=ParticipantPopulation(),
        grid=halves,
        rng=np.random.default_rng(0),
    )
    assert set(found.study["report"].values[found.data.row_response]) == {0.25, 0.75}


def test_people_without_error_report_what_the_language_model_does() -> None:
    study, grid = comparison_study(), rounding_scheme("interface")
    ones = np.ones(np.unique(study["participant"].values).size)
    exact = Participants(bias=0 * ones, slope=ones, noise_sd=0 * ones, lapse_rate=0 * ones)
    found = answers_of(study, "lm-weak", lambda n: exact, grid=grid, rng=np.random.default_rng(0))
    row = found.data.row_response
    asked = study.sel(model="lm-weak", item=study["response_item"].values[row])
    candidate = asked["candidate_logprob"].values[np.arange(row.size), study["response_candidate"].values[row]]
    exactly = two_alternative_report(asked["target_logprob"].values, candidate)
    np.testing.assert_allclose(found.study["report"].values[row], round_reports(exactly, grid))
    # what the site answered stays
    rest = np.setdiff1d(np.arange(study.sizes["response"]), row)
    np.testing.assert_array_equal(found.study["report"].values[rest], study["report"].values[rest])


def test_people_of_a_fit_report_alike_at_the_scale_of_the_anchor() -> None:
    """Log-odds c times as strong, slopes c times as flat: the same answers."""
    data = participant_data(comparison_study())
    idata = stand_in_posterior(participant_model(data))
    belief = shared_belief(idata.posterior, data, np.random.default_rng(0))
    c = np.linspace(0.5, 2, belief.n_draws)
    verdict = Convergence(True, (), 1.0, 900.0, 900.0, 0, 1.0)
    fit = ParticipantFit(data, Anchor(), 1.0, idata, verdict, belief, c, loss_gap(belief, c))
    own = group(idata, "posterior").stack(sample=("chain", "draw"))
    for draw in (0, belief.n_draws - 2):
        people = fitted_people(fit, draw)
        slope, bias = (own[name].isel(sample=draw).values for name in ("slope", "bias"))
        np.testing.assert_allclose(people.slope * (c[draw] * 0.7 + people.bias), slope * (0.7 + bias))
        np.testing.assert_array_equal(people.noise_sd, own["noise"].isel(sample=draw).values)
        np.testing.assert_array_equal(people.lapse_rate, own["lapse"].isel(sample=draw).values)


def test_a_program_serves_the_studies_that_it_was_compiled_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant_recovery, "_compiled", {})
    monkeypatch.setattr(participant_recovery, "compile_participants", lambda data, priors: object())
    data, priors = participant_data(small_study()), ParticipantPriors()
    first = participant_recovery._model(data, priors)
    # equal labels that are other objects
    alike = replace(data, item=np.array(data.item.tolist(), dtype=object))
    assert participant_recovery._model(with_reports(alike, data.row_box[::-1]), priors) is first
    for other in (
        replace(data, box_edges=data.box_edges / 2),
        replace(data, participant=data.participant[::-1]),
        replace(data, surprisal=data.surprisal + 1),
    ):
        assert participant_recovery._model(other, priors) is not first
