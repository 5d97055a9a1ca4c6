"""Simulated people on a study's own questions, and people who report as those of a fit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from estimators.comparison import (
    ParticipantPopulation,
    RoundingScheme,
    SimulationSettings,
    round_reports,
    rounding_scheme,
    simulate_comparison_study,
    two_alternative_report,
)
from estimators.comparison.examples import comparison_study, designed_study
from estimators.comparison.simulation.participants import Participants
from estimators.errors import InputError
from inference.comparison.participant_recovery import answers_of, fitted_people, simulate_answers
from models.comparison.participant_data import participant_data

INTERFACE = rounding_scheme("interface")


def exact(n: int) -> Participants:
    ones = np.ones(n)
    return Participants(bias=0 * ones, slope=ones, noise_sd=0 * ones, lapse_rate=0 * ones)


def test_simulated_people_answer_on_any_grid() -> None:
    sizes = {"n_items": 6, "n_reference_items": 20, "n_participants": 4, "n_candidates": 20, "vocab_size": 200}
    study = simulate_comparison_study(SimulationSettings(**sizes))
    halves = RoundingScheme("custom", (0.25, 0.75))
    on_grid = study.assign(report=("response", round_reports(study["report"].values, halves)))
    told = {"k0": 1.0, "population": ParticipantPopulation(), "grid": halves}
    found = simulate_answers(on_grid, "lm-weak", rng=np.random.default_rng(0), **told)
    assert set(found.study["report"].values[found.data.row_response]) == {0.25, 0.75}
    loss = -study["target_logprob"].isel(item=found.data.position).mean("item")
    generator = study.attrs["generator"]
    assert found.truth_nats == pytest.approx(float(loss.sel(model="lm-weak") - loss.sel(model=generator)))


def test_people_without_error_report_what_the_language_model_does() -> None:
    study = comparison_study()
    found = answers_of(study, "lm-weak", exact, grid=INTERFACE, rng=np.random.default_rng(0))
    row = found.data.row_response
    asked = study.sel(model="lm-weak", item=study["response_item"].values[row])
    candidate = asked["candidate_logprob"].values[np.arange(row.size), study["response_candidate"].values[row]]
    exactly = two_alternative_report(asked["target_logprob"].values, candidate)
    np.testing.assert_allclose(found.study["report"].values[row], round_reports(exactly, INTERFACE))
    # what the site answered stays
    rest = np.setdiff1d(np.arange(study.sizes["response"]), row)
    np.testing.assert_array_equal(found.study["report"].values[rest], study["report"].values[rest])


def test_nobody_answers_freely_for_a_language_model() -> None:
    study = designed_study()
    own = study.attrs["generator"]
    grid = rounding_scheme("slider")
    found = answers_of(study, own, exact, grid=grid, rng=np.random.default_rng(0))
    assert "answer" not in found.study.dims
    assert not found.data.has_answers
    assert found.truth_nats == 0


@pytest.mark.parametrize(("change", "part"), [({"k0": 0.0}, "k0"), ({"player": "lm-strange"}, "lm-strange")])
def test_what_cannot_be_simulated(change: dict[str, object], part: str) -> None:
    told = {"player": "lm-weak", "k0": 1.0, "population": ParticipantPopulation(), "grid": INTERFACE} | change
    with pytest.raises(InputError, match=part):
        simulate_answers(comparison_study(), rng=np.random.default_rng(0), **told)


def test_people_of_a_fit_report_alike_at_the_scale_of_the_anchor() -> None:
    """Log-odds c times as strong, slopes c times as flat: the same answers."""
    data = participant_data(comparison_study())
    rng, dims = np.random.default_rng(0), ("chain", "draw", "participant")
    names = ("slope", "bias", "noise")
    own = {name: (dims, np.exp(rng.normal(size=(2, 3, data.participant.size)))) for name in names}
    posterior = xr.Dataset({**own, "lapse": (dims[:2], rng.uniform(size=(2, 3)))})
    c = np.linspace(0.5, 2, 6)
    fit = SimpleNamespace(data=data, temperature=c, idata=xr.DataTree.from_dict({"posterior": posterior}))
    for draw in (0, 4):
        people = fitted_people(fit, draw)  # type: ignore[arg-type]
        one = posterior.isel(chain=draw // 3, draw=draw % 3)
        np.testing.assert_allclose(
            people.slope * (c[draw] * 0.7 + people.bias), one["slope"] * (0.7 + one["bias"].to_numpy())
        )
        np.testing.assert_array_equal(people.noise_sd, one["noise"])
        assert (people.lapse_rate == float(one["lapse"])).all()
