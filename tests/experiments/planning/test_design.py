"""``+exp=design`` and ``+exp=design look=back`` at a tiny size: table, words, refusals, promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import design, designed_simulated
from shannon_game.estimators.comparison import token_pool
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.planning.games import Outcome, equation_5
from shannon_game.experiments.planning.replicates import keeps_promise, simulated_studies, summarise
from shannon_game.experiments.planning.settings import (
    GAMES,
    Costs,
    DesignPoint,
    DesignSettings,
    n_people,
    people_minutes,
)
from shannon_game.experiments.planning.worlds import (
    N_TRIED,
    draw_worlds,
    guessed_ranks,
    pilot_populations,
    study_contexts,
)
from tests.experiments.command import config, prepared

ONE = {"n_draws": 1, "n_answers": 1, "n_comparisons": 1}
TINY_DESIGN = (
    *("+exp=design", "study.n_items=30", "study.vocab_size=60", "output.dpi=40"),
    *("experiment.contexts=[20,30]", "experiment.answers=[4]", "experiment.comparisons=[6]", "experiment.bets=[1]"),
    *("experiment.cloze_answers=[6]", "experiment.guesses=[1]", "experiment.n_screen=4", "experiment.n_replicates=8"),
    *("experiment.assumed.n_beliefs=2", "experiment.width_nats=6", "experiment.width_share=0.9"),
)


@pytest.fixture(scope="module")
def contexts() -> xr.Dataset:
    return designed_simulated(n_items=40, vocab_size=80, design=ONE)


def test_a_run_writes_designs_curves_and_a_paragraph(tmp_path: Path) -> None:
    job = prepared(*TINY_DESIGN)
    result = job.run()
    table = result.table
    assert list(dict.fromkeys(table["game"])) == list(GAMES)
    assert len(table) == 2 * len(GAMES)
    assert set(table["n_replicates"]) <= {4, 8}
    assert (table["width_90"] > 0).all()
    assert table["recommended"].sum() >= 1
    best = table[table["recommended"]]
    assert (best["n_replicates"] == 8).all()
    assert best["in_budget"].all()
    assert best.groupby("game").size().max() == 1
    assert np.isfinite(table.loc[table["game"] == "bets", "p_right_order"]).all()
    assert table.loc[table["game"] == "cloze", "p_right_order"].isna().all()
    write_outputs(tmp_path, config(*TINY_DESIGN), job.study, result)
    assert (tmp_path / "figures" / "costs.png").is_file()
    assert pd.read_csv(tmp_path / "table.csv").shape[0] == len(table)


@pytest.mark.parametrize(("budget_minutes", "recommended"), [(None, [True]), (1.0, [False])])
def test_a_design_that_keeps_its_promise_has_to_fit_the_budget(
    contexts: xr.Dataset, budget_minutes: float | None, recommended: list[bool]
) -> None:
    sizes = {"games": "bets", "contexts": 20, "bets": 1, "n_screen": 3, "n_replicates": 30, "width_nats": 50.0}
    table = design(contexts, budget_minutes=budget_minutes, budget_money=1e6, seed=1, **sizes).table
    assert table["recommended"].tolist() == recommended


def test_a_first_answer_lets_the_interval_fall_with_the_root_of_the_contexts(contexts: xr.Dataset) -> None:
    """Four times the contexts: half the width, to the last digit, as nothing is simulated again."""
    sizes = {"games": "bets", "contexts": [20, 80], "bets": 1, "n_screen": 6, "width_nats": 50.0, "seed": 1}
    result = design(contexts, quick=True, **sizes)
    few, many = result.table["width"]
    assert many == pytest.approx(few / 2)
    assert result.table["recommended"].tolist() == [True, False]
    assert any("leave quick out" in text for text in result.warnings)


@pytest.mark.parametrize(
    ("point", "minutes"),
    [
        (DesignPoint("comparison", 120, "slider", n_draws=8, n_comparisons=8), 240),
        (DesignPoint("bridge", 60, "slider", n_draws=8, n_answers=6, n_comparisons=4), 120),
        (DesignPoint("bets", 90, n_bets=2), 120),
        (DesignPoint("cloze", 60, n_draws=20, n_answers=20), 200),
        (DesignPoint("accuracy", 75, n_guesses=3), 30),
    ],
)
def test_what_a_design_costs(point: DesignPoint, minutes: float) -> None:
    assert people_minutes(point, Costs(), guesses_a_token=6.0) == pytest.approx(minutes)


def test_equation_5_counts_every_draw_and_averages_reports_on_one_token() -> None:
    """Five draws each of g = (.5, .5) and h = (.8, .2), y the first token; a draw of which nobody reported is left."""
    pool = token_pool(
        item=[0, 0, 1, 1, 1],
        offset_nats=[0, 0, 0, 0, 9],
        is_target=[True, False, True, False, False],
        n_drawn=[5, 5, 5, 5, 7],
        report_token=[1, 1, 3],
        report_person=[0, 1, 0],
        report_log_ratio=np.log([0.5, 0.125, 0.25]),
    )
    value, se, freedom = equation_5(pool, asked=False)
    assert value == pytest.approx(np.log(0.625))
    assert se == pytest.approx(0)
    assert freedom == 1
    # ten draws of mean .625 and standard deviation .375, ddof 0 or 1
    assert equation_5(pool, asked=True)[1] == pytest.approx(0.6 / np.sqrt(10) / np.sqrt(2), rel=0.06)


@pytest.mark.parametrize(
    ("p_width", "coverage", "kept"), [(0.95, 0.9, True), (0.91, 0.9, False), (0.95, 0.86, False), (0.5, 0.9, False)]
)
def test_a_promise_is_kept_by_a_standard_error(p_width: float, coverage: float, kept: bool) -> None:
    row = {"p_width": p_width, "p_width_mcse": 0.02, "coverage": coverage, "coverage_mcse": 0.02}
    assert keeps_promise(row, DesignSettings()) is kept


def test_worlds_know_their_truth(contexts: xr.Dataset) -> None:
    settings = DesignSettings(assumed={"n_beliefs": 3})
    worlds = draw_worlds(study_contexts(contexts), settings)
    assert len({world.people.slope_median for world in worlds}) == 3
    for world in worlds:
        row = np.arange(40)
        g, h = np.exp(world.known.generator), np.exp(world.known.belief)
        np.testing.assert_allclose(world.tvd, 0.5 * np.abs(g - h).sum(axis=1))
        np.testing.assert_allclose(world.p_hit[4], h[row, world.known.target] ** 3 / (h**3).sum(axis=1))
        assert 1 <= world.guesses_a_token <= N_TRIED
        assert 0 < world.rank_bound_nats < np.log(80)


def test_a_promise_is_for_the_world_that_is_chosen(contexts: xr.Dataset) -> None:
    """In a world of bots people look worse, with private beliefs free answers are flatter, and the report says so."""
    sizes = {"contexts": 40, "answers": 4, "comparisons": 6, "cloze_answers": 6, "bets": 1, "guesses": 1}
    few = {"n_screen": 20, "n_replicates": 2, "seed": 3}
    crowd = {"bots": 0.5, "private_sd_nats": 1.5, "bias_mean_nats": 1.0, "lapse_mean": 0.1}
    plain, chosen = (
        design(contexts, **sizes, **few, assumed={"n_beliefs": 1, "people": people}) for people in ({}, crowd)
    )
    said = "with own beliefs that differ by 1.5 nats, a shared bias of 1 nats, 10% of lapses and 50% of bots"
    assert "simulated worlds, with 5% of lapses." in plain.text
    assert said in chosen.text
    bias = chosen.table.set_index("game")["bias"]
    truth = chosen.table.set_index("game")["truth"]
    # half of the people are never right
    assert bias["accuracy"] == pytest.approx(-truth["accuracy"] / 2, abs=0.08)
    assert bias["ranks"] > 0.1
    assert bias["cloze"] > plain.table.set_index("game")["bias"]["cloze"] + 0.02


def test_numbers_of_guesses_have_the_right_distribution(contexts: xr.Dataset) -> None:
    """The first guess is right with the probability of the target to the power; 20,000 guesses."""
    world = draw_worlds(study_contexts(contexts), DesignSettings(assumed={"n_beliefs": 1}))[0]
    rng = np.random.default_rng(0)
    ranks = guessed_ranks(world.known, np.full(20_000, 3), np.full(20_000, 2.0), rng)
    h = np.exp(2 * world.known.belief[3])
    p = h[world.known.target[3]] / h.sum()
    assert np.mean(ranks == 1) == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / 20_000) + 1e-9)
    assert (np.isinf(ranks) | (ranks <= N_TRIED)).all()


def pilot(path: Path) -> Path:
    rng = np.random.default_rng(0)
    names = ("k0", "slope_sd", "bias_sd", "log_noise", "noise_sd", "logit_lapse")
    draws = {name: (("chain", "draw"), np.exp(rng.normal(size=(2, 10)))) for name in names}
    xr.Dataset(draws).to_netcdf(path, group="posterior", engine="h5netcdf")
    return path


def test_a_pilot_says_how_people_report(tmp_path: Path) -> None:
    path = pilot(tmp_path / "posterior_human.nc")
    with xr.open_dataset(path, group="posterior", engine="h5netcdf") as draws:
        k0 = draws["k0"].to_numpy().ravel()
        spread = draws["slope_sd"].to_numpy().ravel()
    found = pilot_populations(path, 5, np.random.default_rng(1))
    for one in found:
        at = int(np.argmin(np.abs(k0 - one.slope_median)))
        assert one.slope_median == pytest.approx(k0[at])
        assert one.slope_log_sd == pytest.approx(spread[at])


def test_what_questions_were_worth() -> None:
    job = prepared(
        "+exp=design", "look=back", "study=simulated", "study.n_items=12", "study.n_reference_items=12",
        "study.vocab_size=60", "study.n_candidates=20", "study.n_participants=6", "experiment.n_replicates=3",
        "experiment.n_contexts=20", "experiment.vocab_size=60", "experiment.assumed.n_beliefs=2",
    )  # fmt: skip
    result = job.run()
    questions = result.tables["questions"]
    np.testing.assert_allclose(questions.groupby("item")["share"].sum(), 1)
    assert questions["n_responses"].sum() == 12 * 6
    assert questions["share"].is_monotonic_decreasing
    assert result.table["n_people"].min() >= 29
    assert set(result.figures) == {"question_worth"}


@pytest.mark.slow
def test_a_recommended_design_keeps_its_promise_elsewhere() -> None:
    """200 studies of other contexts and worlds: the width in 90%, coverage 85 to 95%, by two standard errors each."""
    small = {"n_items": 300, "vocab_size": 300, "design": ONE}
    settings = DesignSettings(
        games=("bridge", "bets"), width_nats=0.8, contexts=(60, 120, 240), answers=(8,), comparisons=(14,), bets=(1,)
    )
    table = design(designed_simulated(seed=0, **small), settings).table
    fresh = settings.changed(seed=1000)
    worlds = draw_worlds(study_contexts(designed_simulated(seed=1000, **small)), fresh)
    chosen = table[table["recommended"]].to_dict("records")
    assert {row["game"] for row in chosen} == {"bridge", "bets"}
    for row in chosen:
        point = DesignPoint(**{name: row[name] for name in DesignPoint.__dataclass_fields__})
        rng = np.random.default_rng(0)
        studies = simulated_studies(point, int(row["n_people"]), worlds, fresh, 200, rng)
        found = summarise(studies, fresh.width_nats, fresh.interval)
        assert found["p_width"] >= 0.9 - 2 * found["p_width_mcse"]
        assert 0.85 - 2 * found["coverage_mcse"] <= found["coverage"] <= 0.95 + 2 * found["coverage_mcse"]


def test_a_summary_by_hand() -> None:
    found = [Outcome(1.2, 0.1, 1000, 1.0, right_order=1.0), Outcome(0.9, 0.2, 1000, 1.0, right_order=0.0)]
    said = summarise(found, wanted=0.5, interval=0.9)
    assert said["bias"] == pytest.approx(0.05)
    assert said["rmse"] == pytest.approx(np.sqrt((0.04 + 0.01) / 2))
    assert said["coverage"] == 0.5  # 1.646 standard errors reach .165 and .329
    assert said["p_width"] == 0.5
    assert said["width"] == pytest.approx(2 * 1.6464 * 0.15, rel=1e-3)
    assert said["p_right_order"] == 0.5


def test_people_fill_sessions_and_an_items_questions() -> None:
    bridge = DesignPoint("bridge", 60, "slider", n_draws=8, n_answers=6, n_comparisons=14)
    assert n_people(bridge, 900.0, Costs()) == 30
    assert n_people(bridge, 10.0, Costs()) == 20
    assert n_people(DesignPoint("bets", 10, n_bets=1), 10.0, Costs()) == 12


def test_money_is_a_budget_too(contexts: xr.Dataset) -> None:
    changes = {"games": "bets", "contexts": (20, 40), "bets": 1, "n_screen": 3, "n_replicates": 3}
    table = design(contexts, budget_minutes=None, budget_money=10.0, **changes).table
    np.testing.assert_allclose(table["money"], table["minutes"] / 60 * 30)
    assert table["in_budget"].tolist() == [True, False]
