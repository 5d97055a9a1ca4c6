"""The model of free answers and reports: its data by hand, its density by loops and numerical integrals."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from estimators.comparison import ParticipantPopulation, QuestionDesign, simulate_designed_study
from estimators.comparison.examples import comparison_study, designed_study
from estimators.errors import InputError
from models.comparison.free_answer_data import FreeAnswerData, free_answer_data
from models.comparison.free_answer_density import free_answer_density, layout
from models.comparison.free_answers import (
    NODE,
    WEIGHT,
    FreeAnswerPriors,
    bent,
    free_answer_model,
    pool_table,
    two_slopes,
)

Point = dict[str, Any]

QUICK = "FAST_COMPILE"
"""A function that is called once need not be compiled."""


@cache
def data_of() -> FreeAnswerData:
    return free_answer_data(designed_study())


@cache
def model_of() -> pm.Model:
    return free_answer_model(data_of(), equation_6=True)


def test_the_pool_and_its_counts_by_a_loop() -> None:
    study = designed_study()
    data = data_of()
    g = study["candidate_logprob"].sel(model=study.attrs["generator"]).values
    at = 0
    for place, label in enumerate(data.item.tolist()):
        position = int(np.flatnonzero(study["item"].values == label)[0])
        words: dict[str, float] = {}
        for cell, word in enumerate(study["candidate_token"].values[position].tolist()):
            if word and word != study["target_token"].values[position]:
                words.setdefault(word, g[position, cell])
        mine = study["answer_item"].values == label
        cells = study["answer_candidate"].values[mine]
        answered = ["" if cell < 0 else study["candidate_token"].values[position, cell] for cell in cells]
        own = slice(at, at + len(words))
        assert data.token_log_g[own].tolist() == pytest.approx(list(words.values()))
        assert data.token_answers[own].tolist() == [answered.count(word) for word in words]
        assert data.target_answers[place] == (cells == -1).sum()
        assert data.n_answers[place] == mine.sum()
        at += len(words)
    assert at == data.token_item.size


def test_the_bins_and_the_pool_are_the_whole_distribution() -> None:
    data = data_of()
    pool = np.exp(data.target_log_g) + np.bincount(data.token_item, np.exp(data.token_log_g))
    assert np.exp(data.bin_log_mass).sum(axis=1) + pool == pytest.approx(np.ones(data.item.size), abs=1e-5)


def test_a_comparison_points_at_its_two_tokens() -> None:
    study, data = designed_study(), data_of()
    belief = np.concatenate([np.full(data.item.size, np.nan), np.full(data.token_item.size, np.nan)])
    by_label = {label: at for at, label in enumerate(study["item"].values.tolist())}
    position = np.array([by_label[label] for label in data.item.tolist()])
    belief[: data.item.size] = study["human_target_logprob"].values[position]
    belief[data.item.size :] = study["human_candidate_logprob"].values[position[data.token_item], data.token_column]
    rows = data.row_response
    asked = np.array([by_label[label] for label in study["response_item"].values[rows].tolist()])
    shown = study["human_candidate_logprob"].values[asked, study["response_candidate"].values[rows]]
    assert belief[data.row_token] == pytest.approx(shown)


@given(st.floats(-9, 1.5), st.floats(0.05, 3.0))
def test_the_share_answered_at_least_once_is_about_the_integral(log_rate: float, spread: float) -> None:
    """Nine nodes for a curve that bends once: what is left is small beside what a pool of ten tokens can say."""
    exact = integrate.quad(
        lambda z: -math.expm1(-math.exp(log_rate + spread * z)) * stats.norm.pdf(z), -9, 9, limit=200, epsabs=1e-12
    )[0]
    found = float(-np.expm1(-np.exp(log_rate + spread * NODE)) @ WEIGHT)
    assert found == pytest.approx(exact, rel=0.06, abs=0.005)


@given(st.floats(-6, 6), st.floats(0.01, 4), st.floats(0, 4), st.floats(0, 4))
def test_residuals_rise_and_have_the_stated_slopes(z: float, narrow: float, upper: float, lower: float) -> None:
    assert bent(z + 0.01, narrow, upper, lower) > bent(z, narrow, upper, lower)
    far = [(bent(sign * 1001.0, narrow, upper, lower) - bent(sign * 1000.0, narrow, upper, lower)) for sign in (1, -1)]
    assert far == pytest.approx([narrow + upper, -narrow - lower], rel=1e-4, abs=1e-4)
    assert two_slopes(0.0, upper, lower) == 0
    sides = [(two_slopes(sign * 1001.0, upper, lower) - two_slopes(sign * 1000.0, upper, lower)) for sign in (1, -1)]
    assert sides == pytest.approx([upper, -lower], rel=1e-4, abs=1e-4)


def test_every_pool_has_its_target_and_tokens_once() -> None:
    data = data_of()
    table = pool_table(data)
    last = data.item.size + data.token_item.size
    assert sorted(table[table < last].tolist()) == list(range(last))
    owner = np.concatenate([np.arange(data.item.size), data.token_item])
    for item, row in enumerate(table):
        assert (owner[row[row < last]] == item).all()


def random_point(rng: np.random.Generator) -> Point:
    return {name: rng.normal(0, 0.4, np.shape(value)) for name, value in model_of().initial_point().items()}


def test_density_of_answers_and_reports_by_loops_and_integrals() -> None:
    data, model = data_of(), model_of()
    point = random_point(np.random.default_rng(3))
    wanted = [*model.free_RVs, *model.deterministics]
    values = model.compile_fn(
        model.replace_rvs_by_values(wanted), inputs=model.value_vars, on_unused_input="ignore", mode=QUICK
    )(point)
    found = dict(zip([variable.name for variable in wanted], values, strict=True))

    def of(name: str) -> Any:
        return found[name]

    divergence = np.exp(of("divergence_spread") * of("divergence_unit"))

    def line(log_g: np.ndarray) -> np.ndarray:
        return of("g_slope") * (log_g + 4) + of("rare_g_slope") * np.maximum(-log_g - 7, 0)

    def residual(z: float, log_g: float, item: int) -> float:
        corner = math.sqrt((z - 1) ** 2 + 0.25), math.sqrt((z + 1) ** 2 + 0.25)
        shape = of("narrow") * z + of("upper") * (z - 1 + corner[0]) / 2 - of("lower") * (-z - 1 + corner[1]) / 2
        return float(divergence[item] * math.exp(-of("spread_slope") * (min(max(log_g, -12), 0) + 4)) * shape)

    def expected(log_g: float, item: int, function: Any) -> float:
        return sum(weight * function(residual(node, log_g, item)) for node, weight in zip(NODE, WEIGHT, strict=True))

    z = of("target_unit")
    off = of("target_level") + of("target_slope") * (data.target_log_g + 4)
    sides = of("target_upper"), of("target_lower")
    off += divergence * ((sides[0] + sides[1]) / 2 * z + (sides[0] - sides[1]) / 2 * (np.sqrt(1 + z**2) - 1))
    v_target = line(data.target_log_g) + off
    own = [
        residual(z, log_g, q)
        for z, log_g, q in zip(of("residual_unit"), data.token_log_g, data.token_item, strict=True)
    ]
    v_token = line(data.token_log_g) + np.array(own)
    level = np.empty(data.item.size)
    for q in range(data.item.size):
        total = math.exp(data.target_log_g[q] + v_target[q])
        total += np.exp(data.token_log_g + v_token)[data.token_item == q].sum()
        for log_g, log_mass, place in zip(
            data.bin_log_g[q], data.bin_log_mass[q], line(data.bin_log_g[q]), strict=True
        ):
            total += math.exp(log_mass + place) * expected(log_g, q, math.exp)
        level[q] = of("level") + of("level_spread") * of("level_unit")[q] - math.log(total)
    w_target, w_token = level + v_target, level[data.token_item] + v_token
    assert of("item_gap_nats") == pytest.approx(-w_target)
    assert of("token_log_ratio") == pytest.approx(w_token)

    answers = 0.0
    for x in range(data.token_item.size):
        q, log_g = data.token_item[x], data.token_log_g[x]
        rate = data.n_answers[q] * math.exp(log_g + w_token[x])
        alike = data.n_entry[q] * math.exp(log_g + level[q] + line(data.token_log_g[x : x + 1])[0])
        silent = expected(log_g, q, lambda r, alike=alike: math.exp(-alike * math.exp(r)))
        in_pool = 1 - (1 - math.exp(log_g)) ** int(data.n_drawn[q]) * silent
        answers += stats.poisson.logpmf(data.token_answers[x], rate)
        answers -= 0.0 if data.token_given[x] else math.log(in_pool)
    target = stats.poisson.logpmf(data.target_answers, data.n_answers * np.exp(data.target_log_g + w_target)).sum()

    log_h = np.concatenate([data.target_log_g + w_target, data.token_log_g + w_token])
    boxes = 0.0
    edges = np.clip(data.box_edges, -60, 60)
    for row in range(data.row_box.size):
        u, x, y = data.row_participant[row], data.row_token[row], data.row_reference[row]
        odds = log_h[y] - log_h[x] - of("generator_weight") * (data.log_g[y] - data.log_g[x])
        odds += of("bias")[u] if y < data.item.size else 0
        low, high = (edges[data.row_box[row]] - of("slope")[u] * odds) / of("noise")[u]
        inside = stats.norm.sf(low) - stats.norm.sf(high) if low > 0 else stats.norm.cdf(high) - stats.norm.cdf(low)
        slip = of("half") * (data.row_box[row] == data.half_box) + (1 - of("half")) / len(edges)
        boxes += math.log((1 - of("lapse")[u]) * inside + of("lapse")[u] * slip)

    terms = dict(
        zip(
            [variable.name for variable in model.observed_RVs],
            model.compile_logp(vars=model.observed_RVs, sum=False, mode=QUICK)(point),
            strict=True,
        )
    )
    assert terms["answers"].sum() == pytest.approx(answers)
    assert terms["target_answers"].sum() == pytest.approx(target)
    assert terms["box"].sum() == pytest.approx(boxes, rel=1e-6)


def test_predicted_answers_are_of_tokens_in_the_pool() -> None:
    data, model = data_of(), model_of()
    drawn = pm.draw(model["answers"], draws=5, random_seed=1)
    certain = data.n_drawn[data.token_item] * np.exp(data.token_log_g) < 1e-6
    assert (drawn[:, certain] >= 1).all()
    assert drawn.shape == (5, data.token_item.size)


WRONG = {
    "no answers": (comparison_study, {}, "has no free answers"),
    "no distribution": (lambda: designed_study().drop_vars("reference_logprob"), {}, "reference_logprob: is missing"),
    "off the scale": (designed_study, {"grid": "interface"}, "is not a value of the grid"),
    "no scale": (designed_study, {"grid": "none"}, "has no values"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_studies_are_refused(name: str) -> None:
    study, arguments, match = WRONG[name]
    with pytest.raises(InputError, match=match):
        free_answer_data(study(), **arguments)


def test_wrong_priors_are_refused() -> None:
    with pytest.raises(InputError, match="tail: is -1"):
        FreeAnswerPriors(tail=-1.0)


def test_items_without_answers_or_comparisons_are_left_out() -> None:
    study: xr.Dataset = designed_study()
    label = study["item"].values[0]
    kept = study.isel(answer=np.flatnonzero(study["answer_item"].values != label))
    assert free_answer_data(kept).item.size == data_of().item.size - 1


def with_a_sure_item() -> xr.Dataset:
    """Four items, of which the generator and people are sure of the first: there was nothing to compare."""
    rng = np.random.default_rng(2)
    logit = rng.normal(0, 1, (2, 4, 30))
    logit[:, 0, 7] = 60.0
    g, h = logit - np.logaddexp.reduce(logit, axis=2, keepdims=True)
    design = QuestionDesign(n_draws=4, n_answers=6, n_comparisons=8, n_participants=14)
    return simulate_designed_study(g, h, [7, 3, 4, 5], design, ParticipantPopulation(), seed=3)


def test_an_item_of_the_target_alone_stays() -> None:
    """A mean without those of which everybody is sure would be of the others only."""
    data = free_answer_data(with_a_sure_item())
    assert data.item.tolist() == [0, 1, 2, 3]
    assert not (data.token_item == 0).any()
    assert data.row_reference.min() > 0
    assert (data.target_answers[0], data.n_answers[0], data.n_drawn[0], data.target_drawn[0]) == (6, 6, 4, 4)
    density = free_answer_density(data)
    given = {"token_count": data.token_answers, "target_count": data.target_answers, "row_box": data.row_box}
    where = layout(4, data.token_item.size, data.participant.size)["level_unit"].start
    x = density.start + 0.3 * np.random.default_rng(1).normal(size=density.start.size)
    parts = []
    for move in (0.0, -0.4):
        y = x.copy()
        y[where] += move
        value, gradient = density.evaluate(y, **given)
        assert np.isfinite(gradient).all()
        rate = 6 * np.exp(data.target_log_g[0] - density.expand(y)["item_gap_nats"][0])
        # six answers, all of them the target, and the item's own level
        parts.append((value, 6 * np.log(rate) - rate - 0.5 * y[where] ** 2))
    assert parts[0][0] - parts[1][0] == pytest.approx(parts[0][1] - parts[1][1])
