"""The model of free answers and reports: its data by hand, its density by loops and numerical integrals."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from estimators.comparison.examples import comparison_study, designed_study
from estimators.errors import InputError
from models.comparison.free_answer_data import FreeAnswerData, free_answer_data
from models.comparison.free_answers import (
    FreeAnswerPriors,
    answered_share,
    free_answer_model,
    pool_table,
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


@cache
def compiled_share() -> Any:
    log_rate, spread = pt.dscalars("log_rate", "spread")
    return pytensor.function([log_rate, spread], answered_share(log_rate, spread), mode=QUICK)


@settings(max_examples=60)
@given(st.floats(-9, 4), st.floats(0.05, 3.5))
def test_the_share_answered_at_least_once_is_the_integral(log_rate: float, spread: float) -> None:
    exact = integrate.quad(
        lambda z: -math.expm1(-math.exp(log_rate + spread * z)) * stats.norm.pdf(z), -9, 9, limit=200, epsabs=1e-12
    )[0]
    found = float(compiled_share()(log_rate, spread))
    # .3% of itself is what the fit of the curve leaves
    assert found == pytest.approx(exact, rel=4e-3)


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


def mixture(values: np.ndarray, share: np.ndarray, place: np.ndarray, spread: np.ndarray) -> float:
    total = 0.0
    for at, value in enumerate(values):
        total += math.log(
            sum(share[at, k] * stats.norm.pdf(value, place[at, k], spread[at, k]) for k in range(share.shape[1]))
        )
    return total


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
    broad = of("narrow") + of("broad")

    def line(log_g: np.ndarray) -> np.ndarray:
        return of("g_slope") * (log_g + 4) + of("rare_g_slope") * np.maximum(-log_g - 7, 0)

    def parts(log_g: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        share = special.expit(of("share") + of("share_slope") * (log_g + 4))
        place = np.stack([np.zeros_like(log_g), -of("shift") * scale + 0 * log_g], axis=-1)
        spread = np.stack([of("narrow") * scale + 0 * log_g, broad * scale + 0 * log_g], axis=-1)
        return np.stack([1 - share, share], axis=-1), place, spread

    off = of("target_level") + of("target_slope") * (data.target_log_g + 4)
    v_target = line(data.target_log_g) + off + of("target_residual")
    v_token = line(data.token_log_g) + of("residual")
    level = np.empty(data.item.size)
    for q in range(data.item.size):
        total = math.exp(data.target_log_g[q] + v_target[q])
        total += np.exp(data.token_log_g + v_token)[data.token_item == q].sum()
        share, place, spread = parts(data.bin_log_g[q], np.full(data.bin_log_g.shape[1], divergence[q]))
        expected = (share * np.exp(place + spread**2 / 2)).sum(axis=1)
        total += (np.exp(data.bin_log_mass[q] + line(data.bin_log_g[q])) * expected).sum()
        level[q] = of("level") + of("level_spread") * of("level_unit")[q] - math.log(total)
    w_target, w_token = level + v_target, level[data.token_item] + v_token
    assert of("item_gap_nats") == pytest.approx(-w_target)
    assert of("token_log_ratio") == pytest.approx(w_token)

    share, place, spread = parts(data.token_log_g, divergence[data.token_item])
    answers = 0.0
    for x in range(data.token_item.size):
        q = data.token_item[x]
        rate = data.n_answers[q] * math.exp(data.token_log_g[x] + w_token[x])
        centre = level[q] + line(data.token_log_g[x : x + 1])[0]
        silent = sum(
            share[x, k]
            * integrate.quad(
                lambda z, k=k, x=x, q=q, centre=centre: (
                    math.exp(
                        -data.n_entry[q]
                        * math.exp(min(data.token_log_g[x] + centre + place[x, k] + spread[x, k] * z, 300))
                    )
                    * stats.norm.pdf(z)
                ),
                -9,
                9,
                limit=200,
            )[0]
            for k in range(2)
        )
        in_pool = 1 - math.exp(-data.n_drawn[q] * math.exp(data.token_log_g[x])) * silent
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
    # every token may be off by .3% of its probability of being in the pool
    assert terms["answers"].sum() == pytest.approx(answers, abs=3e-3 * data.token_item.size)
    assert terms["target_answers"].sum() == pytest.approx(target)
    assert terms["box"].sum() == pytest.approx(boxes, rel=1e-6)
    logp = dict(
        zip(
            [variable.name for variable in model.free_RVs],
            model.compile_logp(vars=model.free_RVs, jacobian=False, sum=False, mode=QUICK)(point),
            strict=True,
        )
    )
    assert logp["residual"].sum() == pytest.approx(mixture(of("residual"), share, place, spread))


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
    with pytest.raises(InputError, match="shift: is -1"):
        FreeAnswerPriors(shift=-1.0)


def test_items_without_answers_or_comparisons_are_left_out() -> None:
    study: xr.Dataset = designed_study()
    label = study["item"].values[0]
    kept = study.isel(answer=np.flatnonzero(study["answer_item"].values != label))
    assert free_answer_data(kept).item.size == data_of().item.size - 1
