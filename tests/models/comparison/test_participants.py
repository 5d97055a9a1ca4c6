"""The participant model: its density and gradient, its windows, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shannon_game.estimators.comparison.examples import comparison_study, designed_study
from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.gaussian import Program
from shannon_game.models.comparison.participant_data import participant_data, with_rows
from shannon_game.models.comparison.participants import Grid, ParticipantPriors, participant_model, set_windows
from tests.estimators.comparison.comparison_studies import study_with_answers


@pytest.mark.mcmc
@pytest.mark.parametrize("kind", ["answers", "unknown answers", "reports", "player"])
def test_the_gradient_is_that_of_the_log_density(kind: str) -> None:
    given: dict[str, Any] = {"answers": {}, "unknown answers": {}, "reports": {"k0": 0.7}, "player": {}}
    data = {
        "answers": lambda: participant_data(designed_study(), "slider"),
        "unknown answers": lambda: participant_data(study_with_answers()),
        "reports": lambda: participant_data(comparison_study()),
        "player": lambda: participant_data(comparison_study(), player="lm-weak"),
    }[kind]()
    program = Program(participant_model(data, grid=Grid(step=0.5, e=(-5, 5), t=(-5, 5)), **given[kind]))
    rng = np.random.default_rng(0)
    x = program.start + 0.1 * rng.normal(size=program.start.size)
    gradient = program.density(x)[1]
    assert np.isfinite(gradient).all()
    for _ in range(3):
        direction = rng.normal(size=x.size) / np.sqrt(x.size)
        far, near = (
            (program.density(x + h * direction)[0] - program.density(x - h * direction)[0]) / (2 * h)
            for h in (0.02, 0.01)
        )
        assert gradient @ direction == pytest.approx((4 * near - far) / 3, rel=2e-3, abs=0.02)


@pytest.mark.mcmc
def test_windows_change_nothing() -> None:
    data = participant_data(designed_study(), "slider")
    model = participant_model(data)
    program = Program(model, {str(at): one for at, one in enumerate(model.latent_inputs)})
    whole = program.density(program.start)[0]
    inputs = program.wanted(program.start)
    set_windows(model, inputs)
    assert model.latent_words.words.e_size.mean() < 0.8 * Grid().e_values.size
    assert program.density(program.start)[0] == pytest.approx(whole, abs=1e-3)
    near = program.start + 0.05
    windowed = program.density(near)[0]
    # reports of the others alone, and back
    set_windows(model, inputs, data=with_rows(data, data.row_participant != 0))
    assert program.density(program.start)[0] > whole + 1
    set_windows(model, inputs, margin_nats=30.0)
    assert program.density(near)[0] == pytest.approx(windowed, abs=1e-2)


def test_a_scale_that_nothing_gives_is_refused() -> None:
    data = participant_data(comparison_study())
    with pytest.raises(InputError, match="k0"):
        participant_model(data)
    for k0 in (0.0, np.nan):
        with pytest.raises(InputError, match="k0"):
            participant_model(data, k0=k0)


@pytest.mark.parametrize(("name", "value"), [("spread", 0.0), ("target", np.inf), ("ratio", np.nan), ("lapse", 1)])
def test_priors_are_checked(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        ParticipantPriors(**{name: value})
