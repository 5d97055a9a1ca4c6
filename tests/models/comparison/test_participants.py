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

GIVEN: dict[str, dict[str, Any]] = {"answers": {}, "unknown answers": {}, "reports": {"k0": 0.7}, "player": {}}
GOLDEN = {
    "answers": (-678.3711406735086, 96.90426125845941, 57.649365107374095),
    "unknown answers": (-148.81719430219897, 37.18975970797685, 9.660441907783175),
    "reports": (-54.789623397218136, 31.71875283583564, -8.987043683735555),
    "player": (-58.73499127535661, 24.52005215360126, -6.333698174482791),
}
"""Log-density, length of its gradient and one of its directions.

Without the least noise, and 0.125 nats for players, the same program agreed with a kernel that had its own gradients,
to 1e-11. Its constants of normal priors were off by 4e-8, as PyTensor folded them from numbers in single precision.
"""


def coarse(kind: str, report: str = "linear") -> Program:
    data = {
        "answers": lambda: participant_data(designed_study(), "slider"),
        "unknown answers": lambda: participant_data(study_with_answers()),
        "reports": lambda: participant_data(comparison_study()),
        "player": lambda: participant_data(comparison_study(), player="lm-weak"),
    }[kind]()
    grid = Grid(step=0.5, e=(-5, 5), t=(-5, 5))
    return Program(participant_model(data, grid=grid, report=report, **GIVEN[kind]))


def somewhere(program: Program) -> np.ndarray:
    rng, x = np.random.default_rng(0), program.start.copy()
    for _, at in sorted(program._places.items()):
        x[at] += 0.1 * rng.normal(size=at.stop - at.start)
    return x


@pytest.mark.mcmc
@pytest.mark.parametrize("kind", GOLDEN)
def test_the_density_is_that_of_the_reference(kind: str) -> None:
    program = coarse(kind)
    value, gradient = program.density(somewhere(program))
    ordered = np.concatenate([gradient[at] for _, at in sorted(program._places.items())])
    found = (value, np.linalg.norm(ordered), ordered @ np.cos(np.arange(ordered.size)))
    np.testing.assert_allclose(found, GOLDEN[kind], rtol=1e-11)


@pytest.mark.mcmc
@pytest.mark.parametrize("report", ["prospect", "own_lapses", "equation_6"])
def test_the_gradient_is_that_of_the_log_density(report: str) -> None:
    program, rng = coarse("unknown answers", report), np.random.default_rng(0)
    x = somewhere(program)
    gradient = program.density(x)[1]
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
    start = program.start
    set_windows(model, lambda: program.wanted(start))
    assert model.latent_words.words.e_size.mean() < 0.8 * Grid().e_values.size
    assert program.density(program.start)[0] == pytest.approx(whole, abs=1e-3)
    near = program.start + 0.05
    windowed = program.density(near)[0]
    # reports of the others alone, and back
    set_windows(model, lambda: program.wanted(start), data=with_rows(data, data.row_participant != 0))
    assert program.density(program.start)[0] > whole + 1
    set_windows(model, lambda: program.wanted(start), margin_nats=30.0)
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


@pytest.mark.parametrize("report", [lambda _: 3, lambda _: lambda asked: asked.log_odds])
def test_a_report_likelihood_without_probabilities_is_refused(report: Any) -> None:
    """It would be sampled without a word."""
    with pytest.raises(InputError, match=r"report: .*should"):
        participant_model(participant_data(comparison_study()), k0=1.0, report=report)
