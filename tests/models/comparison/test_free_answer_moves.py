"""Moves of the model of free answers: their ratios are those of the density, and the posterior stays what it is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from estimators.comparison.examples import designed_study
from inference.comparison.free_answer_fit import compile_free_answers
from inference.posterior.arviz_adapter import ess_bulk
from inference.posterior.sampling import sample
from models.comparison import kernels
from models.comparison.free_answer_data import FreeAnswerData, free_answer_data
from models.comparison.free_answer_density import free_answer_density, layout
from models.comparison.free_answers import free_answer_model
from models.density import WrittenDensity

FloatArray = NDArray[np.float64]

NUMBERS = kernels.FREE_ANSWER_NUMBERS


@cache
def data_of() -> FreeAnswerData:
    return free_answer_data(designed_study())


@cache
def density_of(equation_6: bool) -> WrittenDensity:
    return free_answer_density(data_of(), equation_6=equation_6)


@cache
def arguments_of(equation_6: bool) -> tuple[Any, ...]:
    data = data_of()
    return density_of(equation_6).arguments(
        token_count=data.token_answers, target_count=data.target_answers, row_box=data.row_box
    )


def where(equation_6: bool) -> dict[str, slice]:
    data = data_of()
    return layout(data.item.size, data.token_item.size, data.participant.size, equation_6=equation_6)


def vectors(equation_6: bool, n: int) -> FloatArray:
    """From the middle of the priors outwards, until tokens are far off."""
    start = density_of(equation_6).start
    rng = np.random.default_rng(11)
    return start + rng.normal(0, 1, (n, start.size)) * np.linspace(0.1, 0.9, n)[:, None]


def log_density(equation_6: bool, x: FloatArray) -> float:
    return density_of(equation_6).function(x, np.empty_like(x), *arguments_of(equation_6))


class State:
    """What a step reads, at a vector of parameters."""

    def __init__(self, equation_6: bool, x: FloatArray) -> None:
        self.x, (self.q, *_, self.answers, self.targets, self.boxes) = x, arguments_of(equation_6)
        people = where(equation_6)["slope_turned"].start, self.q.n_participants, self.q.noise_centring
        self.people = kernels.free_answer_people(x, *people)
        self.mean_bias = float(self.people[1].mean())
        self.ratio, self.unit, self.of_items, _ = kernels.free_answer_ratios(x, self.mean_bias, self.q)
        numbers = dict(zip(NUMBERS, x, strict=False))
        self.bend = tuple(float(np.exp(numbers[name])) for name in ("narrow", "upper", "lower"))
        self.shape = np.array([kernels._bent(z, *self.bend)[0] for z in self.q.node])
        self.spread_slope = numbers["spread_slope"]

    def steep(self, token: int, z: float) -> float:
        """How fast the parameter that stands for a token's residual goes with it."""
        narrow, upper, lower = self.bend
        rising = narrow + upper * kernels._hinge(z)[1] + lower * kernels._hinge(-z)[1]
        own = self.of_items[0, self.q.token_item[token]]
        scale = own * np.exp(-self.spread_slope * kernels._spread_place(self.q.token_log_g[token]))
        c = self.q.centring[self.q.target_log_g.size + token]
        return float(1 - c + c * scale * rising)

    def others(self, token: int) -> float:
        """The sum over the vocabulary without a token, by a plain sum."""
        i, n_items = self.q.token_item[token], self.q.target_log_g.size
        rest = [self.of_items[1, i], self.q.target_log_g[i] + self.ratio[i]]
        rest += [
            self.q.token_log_g[other] + self.ratio[n_items + other]
            for other in np.flatnonzero(self.q.token_item == i)
            if other != token
        ]
        return float(np.logaddexp.reduce(rest))

    def now(self, token: int) -> tuple[float, float]:
        """Log-probabilities of the reports on a token, and of the answers to its item."""
        i, at = self.q.token_item[token], self.q.target_log_g.size + token
        reports = kernels._log_reports(at, self.ratio[at], self.x, self.ratio, self.people, self.q, self.boxes)
        own, level = self.of_items[0, i], self.of_items[3, i]
        answers = kernels._log_answers(
            i, level, self.x, self.ratio, own, self.shape, self.q, self.answers, self.targets
        )
        return reports, answers


@pytest.mark.parametrize("equation_6", [True, False])
@pytest.mark.parametrize("holds_level", [True, False])
def test_a_step_gains_what_the_density_gains(equation_6: bool, holds_level: bool) -> None:
    place, rng = where(equation_6), np.random.default_rng(3)
    moved = 0.0
    for x in vectors(equation_6, 4):
        state = State(equation_6, x)
        before = log_density(equation_6, x)
        for token in range(data_of().token_item.size):
            i, at = state.q.token_item[token], state.q.target_log_g.size + token
            z, new_z, others = state.unit[at], 1.5 * rng.normal(), state.others(token)
            assert kernels._log_others(token, state.ratio, state.of_items[1, i], state.q) == pytest.approx(others)
            kept = state.ratio.copy()
            new, new_u, level, then, gain = kernels.free_answer_step(
                token,
                new_z,
                others,
                state.now(token),
                holds_level,
                x,
                state.ratio,
                state.unit,
                state.of_items,
                state.people,
                state.shape,
                state.q,
                state.answers,
                state.targets,
                state.boxes,
            )
            np.testing.assert_array_equal(state.ratio, kept)
            c = state.q.centring[at]
            y = x.copy()
            y[place["level_unit"]][i] = new_u
            y[place["residual_turned"]][token] = (1 - c) * new_z + c * (new - state.ratio[i] - state.mean_bias)
            # of residuals, not of the parameters that stand for them
            steeper = np.log(state.steep(token, new_z) / state.steep(token, z))
            expected = log_density(equation_6, y) - before + steeper
            assert gain == pytest.approx(expected, abs=1e-9, rel=1e-9)
            after = State(equation_6, y)
            assert after.unit[at] == pytest.approx(new_z, abs=1e-9)
            assert after.of_items[3, i] == pytest.approx(level, abs=1e-9)
            assert then[0] == pytest.approx(after.now(token)[0], abs=1e-9)
            if holds_level:
                assert level == state.of_items[3, i]
            else:
                assert then[1] == pytest.approx(after.now(token)[1], abs=1e-9)
            moved = max(moved, abs(gain))
    assert moved > 1


LINES = {"scaled": kernels.free_answer_scaled, "shifted": kernels.free_answer_shifted}


@pytest.mark.parametrize("name", LINES)
def test_along_a_line_no_report_and_no_residual_changes(name: str) -> None:
    data, by, line = data_of(), 0.3, LINES[name]
    for x in vectors(False, 3):
        y, volume = line(x, by, arguments_of(False)[0])
        back, returned = line(y, -by, arguments_of(False)[0])
        np.testing.assert_allclose(back, x, atol=1e-11)
        assert volume == pytest.approx(-returned)
        before, after = (dict(density_of(False).expand(each)) for each in (x, y))
        if line is kernels.free_answer_scaled:
            assert after["k0"] == pytest.approx(before["k0"] * np.exp(by))
            np.testing.assert_allclose(after["bias_unit"], before["bias_unit"], atol=1e-11)
        else:
            np.testing.assert_allclose(after["bias"], before["bias"] + by, atol=1e-11)
            assert after["k0"] == before["k0"]
        for kept in ("residual_unit", "target_unit", "noise", "lapse", "divergence"):
            np.testing.assert_allclose(after[kept], before[kept], atol=1e-11, err_msg=kept)
        means = []
        for found in (before, after):
            evidence = np.concatenate([-found["item_gap_nats"], found["token_log_ratio"]]) + data.log_g
            against_target = data.row_reference < data.item.size
            log_odds = evidence[data.row_reference] - evidence[data.row_token]
            log_odds += found["bias"][data.row_participant] * against_target
            means.append(found["slope"][data.row_participant] * log_odds)
        np.testing.assert_allclose(*means, atol=1e-11)
        assert np.abs(after["item_gap_nats"] - before["item_gap_nats"]).max() > 0.01


def other_law(x: FloatArray, by: float, q: Any) -> tuple[FloatArray, float]:
    """Every number of the law of residuals moves, each by another amount."""
    steps = by * np.array([0.1, 1, -0.3, 1, -2, 1.5, -1, 0.8])
    return kernels.free_answer_other_law(x, x[list(kernels._LAW)] + steps, q)


def test_under_another_law_log_ratios_stay() -> None:
    data, q = data_of(), arguments_of(False)[0]
    for x in vectors(False, 3):
        y, volume = other_law(x, 0.3, q)
        back, returned = other_law(y, -0.3, q)
        np.testing.assert_allclose(back, x, atol=1e-9)
        assert volume == pytest.approx(-returned)
        before, after = (dict(density_of(False).expand(each)) for each in (x, y))
        for found in (before, after):
            found["of_tokens"] = found["token_log_ratio"] - found["item_level"][data.token_item]
            found["of_targets"] = found["item_gap_nats"] + found["item_level"]
        for kept in ("of_tokens", "of_targets", "divergence", "slope", "bias", "noise", "lapse", "level_unit"):
            np.testing.assert_allclose(after[kept], before[kept], atol=1e-9, err_msg=kept)
        assert np.abs(after["residual_unit"] - before["residual_unit"]).max() > 0.01
        # the rest of the vocabulary has what the law expects
        assert np.abs(after["item_level"] - before["item_level"]).max() > 1e-4


@pytest.mark.parametrize("equation_6", [True, False])
def test_numbers_are_drawn_given_what_people_and_items_are(equation_6: bool) -> None:
    rng, density = np.random.default_rng(9), density_of(equation_6)
    q, p, priors, *_ = arguments_of(equation_6)
    moved = ("level", "log_noise", "logit_lapse", "level_spread", "divergence_spread", *NUMBERS[16:20])
    for x in vectors(equation_6, 3):
        old = x.copy()
        before = density.expand(old)
        kernels._draw_free_answer_numbers(x, rng, q, p, priors)
        after = density.expand(x)
        held = ("slope", "bias", "noise", "lapse", "divergence", "item_level", "token_log_ratio", "item_gap_nats")
        for name in held:
            np.testing.assert_allclose(after[name], before[name], rtol=1e-9, atol=1e-11, err_msg=name)
        place = where(equation_6)
        assert {name for name in NUMBERS if x[place[name]] != old[place[name]]} == set(moved)


@pytest.mark.parametrize("equation_6", [True, False])
@pytest.mark.parametrize("name", [*LINES, "law"])
def test_volumes_change_along_a_line_as_it_says(name: str, equation_6: bool) -> None:
    line = LINES.get(name, other_law)
    q, x, small = arguments_of(equation_6)[0], vectors(equation_6, 3)[2], 1e-5
    columns = [(line(x + step, 0.1, q)[0] - line(x - step, 0.1, q)[0]) / (2 * small) for step in small * np.eye(x.size)]
    sign, volume = np.linalg.slogdet(np.array(columns))
    assert sign == 1
    assert abs(volume) > 1e-3
    assert volume == pytest.approx(line(x, 0.1, q)[1], abs=1e-6)


def test_moves_are_accepted_and_end_at_parameters_with_a_density() -> None:
    """Tokens, of both kinds of step, and the scale: what stands for a token is what the moves have left."""
    x = density_of(False).start.copy()
    rng = np.random.default_rng(5)
    moves = density_of(False).moves
    assert moves is not None
    values = []
    for _ in range(30):
        accepted = moves(x, rng, *arguments_of(False))
        assert 0 < accepted <= 2 * data_of().token_item.size + 4 * kernels._TIMES
        values.append(log_density(False, x))
    assert np.isfinite(values).all()
    # from the middle of the priors, where reports fit badly, to where they fit
    assert values[-1] > log_density(False, density_of(False).start) + 5
    again = density_of(False).start.copy()
    other = np.random.default_rng(5)
    for _ in range(30):
        moves(again, other, *arguments_of(False))
    # a path of draws multiplies what rounding leaves
    np.testing.assert_allclose(again, x, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.mcmc
def test_the_posterior_is_the_same_with_moves_without_and_by_pymc(seed_offset: int) -> None:
    """About 200 scalars by three samplers: 5 standard errors are exceeded once in 4,000 such tests."""
    data = data_of()
    program = compile_free_answers(data, seed=1)
    assert program.density is not None
    without = replace(program, density=replace(program.density, moves=None))
    settings: dict[str, Any] = {"chains": 4, "seed": 1 + seed_offset, "progress": False}
    found = [
        sample(program, sampler="hmc", draws=8000, tune=1000, **settings),
        sample(without, sampler="hmc", draws=16_000, tune=1000, **settings),
        sample(free_answer_model(data), sampler="nutpie", draws=4000, tune=1000, target_accept=0.95, **settings),
    ]
    first = found[0].posterior
    for other in found[1:]:
        worst = 0.0
        for name in first.data_vars:
            one, two = (np.asarray(each.posterior[name]) for each in (found[0], other))
            one, two = (each.reshape(*each.shape[:2], -1) for each in (one, two))
            for i in range(one.shape[2]):
                a, b = one[:, :, i], two[:, :, i]
                error = np.hypot(a.std() / np.sqrt(ess_bulk(a)), b.std() / np.sqrt(ess_bulk(b)))
                worst = max(worst, abs(a.mean() - b.mean()) / error)
        assert worst < 5
