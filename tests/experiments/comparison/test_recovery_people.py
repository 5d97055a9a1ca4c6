"""Simulated people who believe what a language model believes, on a study's own questions."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    RoundingScheme,
    SimulationSettings,
    round_reports,
    rounding_scheme,
    simulate_comparison_study,
    two_alternative_report,
)
from shannon_game.estimators.comparison.examples import comparison_study, designed_study
from shannon_game.experiments.comparison.recovery.studies import answered_by_people

IDEAL = ParticipantPopulation(bias=False, slope=False, noise=False, lapses=False)


def test_simulated_people_answer_on_any_grid() -> None:
    sizes = {"n_items": 6, "n_reference_items": 20, "n_participants": 4, "n_candidates": 20, "vocab_size": 200}
    study = simulate_comparison_study(SimulationSettings(**sizes))
    halves = RoundingScheme("custom", (0.25, 0.75))
    told = {"k0": 1.0, "population": ParticipantPopulation(), "grid": halves}
    found = answered_by_people(study, "lm-weak", rng=np.random.default_rng(0), **told)
    asked = ~study["automatic"].values
    assert set(found["report"].values[asked]) == {0.25, 0.75}
    assert "true_slope" not in found


@pytest.mark.parametrize("k0", [1.0, 0.5])
def test_people_without_error_report_what_the_language_model_does(k0: float) -> None:
    study, grid = comparison_study(), rounding_scheme("interface")
    rng = np.random.default_rng(0)
    found = answered_by_people(study, "lm-weak", k0=k0, population=IDEAL, grid=grid, rng=rng)
    row = np.flatnonzero(~study["automatic"].values)
    asked = study.sel(model="lm-weak", item=study["response_item"].values[row])
    candidate = asked["candidate_logprob"].values[np.arange(row.size), study["response_candidate"].values[row]]
    exactly = two_alternative_report(k0 * asked["target_logprob"].values, k0 * candidate)
    np.testing.assert_allclose(found["report"].values[row], round_reports(exactly, grid))
    # what the site answered stays
    rest = np.setdiff1d(np.arange(study.sizes["response"]), row)
    np.testing.assert_array_equal(found["report"].values[rest], study["report"].values[rest])


def test_nobody_answers_freely_for_a_language_model() -> None:
    study = designed_study()
    told = {"k0": 1.0, "population": IDEAL, "grid": rounding_scheme("slider")}
    found = answered_by_people(study, study.attrs["generator"], rng=np.random.default_rng(0), **told)
    assert "answer" not in found.dims
