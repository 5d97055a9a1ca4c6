"""``+exp=human_loss`` on small studies, from the study to the table, the files, and the next design."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from numpy.testing import assert_allclose

from shannon_game import experiments
from shannon_game.estimators.comparison import HUMAN, estimate_perplexity, scaled_bridge
from shannon_game.estimators.comparison.token_pool import study_pool
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.comparison.human_loss.analyses import HumanLossRow
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.planning.worlds import pilot_populations
from shannon_game.inference.comparison.participant_checks import Camps
from shannon_game.inference.comparison.participant_fit import ParticipantFit, fit_participants
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.storage import load_posterior
from shannon_game.models.comparison.participant_data import ParticipantData
from tests.experiments.command import TINY, config, prepared, run_experiment

FEW: dict[str, Any] = {"sampler": {"draws": 10, "tune": 5, "chains": 2}}
"""Draws that miss their check, so that more are made, up to four times as many."""
ANY: dict[str, Any] = {"gate": {"r_hat": 99, "ess_bulk": 1, "ess_tail": 1, "divergent": 999, "bfmi": 0.001}}
"""A check that any draws pass, so that no more are made."""
FIT = "shannon_game.experiments.comparison.human_loss.experiment.fit_participants"
DESIGN = {"n_draws": 4, "n_answers": 6, "n_comparisons": 8, "n_participants": 9}
AGED: dict[str, Any] = {"players": "human", "sensitivity": False, "people": "age", "allow_unconverged": True, **FEW}
ENDS = ("lower", "median", "upper")


def row_of(result: ExperimentResult, what: str) -> Any:
    return result.table.set_index("analysis").loc[what]


@pytest.fixture(scope="module")
def compared() -> tuple[xr.Dataset, ExperimentResult]:
    """A study of comparisons alone, with one person left out, each of whose fits has more draws than the one before."""
    study = prepared("+exp=perplexity", *TINY, "study.n_participants=4").study
    more = iter(range(9))

    def longer(data: ParticipantData, **settings: Any) -> ParticipantFit:
        return fit_participants(data, **settings | {"draws": settings["draws"] + next(more)})

    asked = {"players": ["human", "lm-medium"], "rounding": "none", "grid": "interface", "top1": {"rate": 0.3}}
    asked["leave_out"] = [str(study["participant"].to_numpy()[0])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FIT, longer)
        return study, experiments.human_loss(study, **asked, **FEW, **ANY)


@pytest.fixture(scope="module")
def designed() -> tuple[xr.Dataset, ExperimentResult, ParticipantFit]:
    """A study with free answers, whose items have ids of their owner's, and whose participants an age; its only fit."""
    study = experiments.designed_simulated(n_items=10, vocab_size=150, design=DESIGN)
    study = study.assign(item_id=("item", np.array([f"q{number}" for number in range(10)], dtype=object)))
    study = study.assign(age=("response", 20.0 + np.unique(study["participant"], return_inverse=True)[1]))
    fits: list[ParticipantFit] = []

    def remember(data: ParticipantData, **settings: Any) -> ParticipantFit:
        fits.append(fit_participants(data, **settings))
        return fits[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FIT, remember)
        result = experiments.human_loss(study, **AGED)
    fit, *_ = fits
    return study, result, fit


@pytest.mark.mcmc
def test_people_who_only_compared(compared: tuple[xr.Dataset, ExperimentResult]) -> None:
    study, result = compared
    people = sorted(set(study["participant"].to_numpy().astype(str)))
    table = result.table
    declared = [one.name for one in HumanLossRow.columns if not one.family]
    assert list(table.columns) == [*declared, *(f"tail_factor_{name}" for name in study["model"].to_numpy())]
    assert table["analysis"].tolist() == [
        *("lm-medium, rounding none", "everyone", "no_shared_bias", "without", "assumed"),
        *("everyone, top-1 rate", "without, top-1 rate"),
        *["without one"] * len(people),
        *("priors: narrow", "priors: wide"),
    ]
    everyone, assumed = row_of(result, "everyone"), row_of(result, "assumed")
    # the temperature that outcomes give differs from draw to draw, an assumption does not
    assert everyone["k0_lower"] < everyone["k0_upper"]
    assert assumed["k0_lower"] == assumed["k0_upper"] == 1
    # equation 5 stands beside every row, of the same people
    assert everyone["gap_nats"] == estimate_perplexity(study).gap.gap_nats
    ones = table[table["analysis"] == "without one"].set_index("left_out")
    assert ones.index.tolist() == people
    kept = study.isel(response=np.flatnonzero(study["participant"].to_numpy().astype(str) != people[2]))
    assert ones["gap_nats"].iloc[2] == estimate_perplexity(kept).gap.gap_nats
    exact = study["target_logprob"].isel(item=np.unique(study["response_item"].to_numpy())).mean("item")
    truth = float(exact.sel(model="lm-medium") - exact.sel(model="lm-weak"))
    itself = row_of(result, "lm-medium, rounding none")
    assert itself["gap_lower_nats"] == itself["gap_upper_nats"] == 0
    # the belief on tokens never drawn at which people reach the weakest model, and what was to be reached
    assert everyone["tail_factor"] == everyone["tail_factor_lm-weak"]
    assert (everyone["tail_factor"] > 1) == (everyone["gap_median_nats"] < truth)
    # the ends are those of the draws, in the order of their names
    at = int(np.flatnonzero(result.dataset["analysis"].to_numpy() == "everyone")[0])
    ends = [everyone[f"gap_{end}_nats"] for end in ENDS]
    assert_allclose(ends, np.nanquantile(result.dataset["gap_draws_nats"][at], [0.05, 0.5, 0.95]))
    # without free answers nothing tells noise from a belief of one's own
    assert np.isnan(everyone["individual_gap_upper_median_nats"])
    assert_allclose(
        everyone["perplexity_median"], np.exp(everyone["reference_loss_nats"] + everyone["gap_median_nats"])
    )
    drawn = np.isfinite(result.dataset["top1_draws"]).sum("kept").to_numpy()
    assert drawn.size == np.unique(drawn).size > 1
    assert set(result.figures) == {"human_loss", "k0_curve", "top1", "sensitivity"}
    assert len(result.summary().columns) <= 8


@pytest.mark.mcmc
def test_files_and_the_design_after_them(compared: tuple[xr.Dataset, ExperimentResult], tmp_path: Path) -> None:
    study, result = compared
    write_outputs(tmp_path, config("+exp=human_loss", *TINY), study, result)
    assert list(pd.read_csv(tmp_path / "table.csv").columns) == list(result.table.columns)
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        everyone = int(np.flatnonzero(dataset["analysis"].to_numpy() == "everyone")[0])
        median = np.nanmedian(dataset["gap_draws_nats"][everyone])
        assert_allclose(median, result.table["gap_median_nats"].iloc[everyone])
        assert (dataset["curve_gap_nats"].diff("quantile") >= 0).all()
    posterior = group(load_posterior(tmp_path / "posterior_human.nc"), "posterior")
    assert posterior["participant"].to_numpy().astype(str).tolist() == sorted(set(study["participant"].values))
    assert (tmp_path / "posterior_human_assumed.nc").is_file()
    found = pilot_populations(tmp_path / "posterior_human.nc", 5, np.random.default_rng(0))
    assert {one.slope_median for one in found} <= set(posterior["k0"].to_numpy().ravel().tolist())


@pytest.mark.mcmc
def test_people_who_also_answered_freely(designed: tuple[xr.Dataset, ExperimentResult, ParticipantFit]) -> None:
    study, result, fit = designed
    assert result.table["analysis"].tolist() == ["everyone", "no_shared_bias", "outcomes", "scaled bridge"]
    everyone, unbiased, outcomes, bridge = (result.table.iloc[at] for at in range(4))
    assert (everyone["anchor"], outcomes["anchor"]) == ("answers", "outcomes")
    assert_allclose(everyone["true_gap_nats"], outcomes["true_gap_nats"])
    # people who share a belief ring no check
    assert everyone["alarms"] == outcomes["alarms"] == bridge["alarms"] == ""
    found = scaled_bridge(study_pool(study)[0])
    assert_allclose(bridge["gap_median_nats"], found.gap_nats)
    assert_allclose(bridge["k0_median"], found.slope)
    slope = study["true_slope"].sel(participant_truth=np.unique(study["participant"].values))
    assert_allclose(everyone["k0_true"], np.exp(np.log(slope).mean()))
    assert result.dataset["item"].to_numpy().tolist() == item_labels(study).tolist()
    assert set(result.posteriors) == {HUMAN}
    assert "bias_mean" in group(result.posteriors[HUMAN], "posterior")
    hull = min(everyone["perplexity_posterior_lower"], unbiased["perplexity_posterior_lower"])
    assert f"[{hull:.4g}, " in result.text.partition("**")[2].partition("**")[0]
    assert not everyone["converged"]
    assert not result.gate_failed  # as was allowed
    effects = result.tables["covariates"][["covariate", "of"]].to_numpy()
    assert effects.tolist() == [["age", name] for name in ("slope", "bias", "noise")]
    people, posterior = result.tables["participants"], group(fit.idata, "posterior")
    assert people["participant"].tolist() == posterior["participant"].to_numpy().tolist()
    np.testing.assert_allclose(people["slope_median"], posterior["slope"].median(("chain", "draw")))
    np.testing.assert_allclose(people["bias_upper_nats"], posterior["bias"].quantile(0.95, ("chain", "draw")))
    np.testing.assert_allclose(people["lapse_median"], float(posterior["lapse"].median()))


@pytest.mark.mcmc
def test_camps_get_rows_of_their_own_where_the_check_of_camps_rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of eight people are the second camp."""
    study = experiments.designed_simulated(n_items=8, vocab_size=100, design=DESIGN | {"n_participants": 8})
    second = np.arange(8) < 2
    monkeypatch.setattr(f"{FIT.rpartition('.')[0]}.check_camps", lambda *_: Camps(9.0, second))
    settings = {"players": "human", "sensitivity": False, "report": "linear", "save_posterior": False}
    result = experiments.human_loss(study, **settings, **FEW, **ANY)
    table = result.table.set_index("analysis")
    assert table.index[:4].tolist() == ["everyone", "camp 1", "camp 2", "camps pooled"]
    assert [len(text.split("; ")) for text in table["left_out"].iloc[1:3]] == [2, 6]
    one, two, pooled = (table.loc[what] for what in ("camp 1", "camp 2", "camps pooled"))
    assert one["n_responses"] + two["n_responses"] == table.loc["everyone", "n_responses"]
    ends = sorted([one["gap_median_nats"], two["gap_median_nats"]])
    assert ends[0] - 0.3 < pooled["gap_median_nats"] < ends[1] + 0.3
    assert f"pooled, its perplexity is {pooled['perplexity_median']:.4g}" in result.text.partition("\n")[0]
    labels = [label.get_text() for label in result.figures["human_loss"].axes[0].get_yticklabels()]
    assert sum("camp" in label for label in labels) == 3


@pytest.mark.mcmc
def test_another_control_shifts_every_gap(
    designed: tuple[xr.Dataset, ExperimentResult, ParticipantFit], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, result, fit = designed

    def again(data: ParticipantData, **_: Any) -> ParticipantFit:
        # what is fitted does not depend on the control
        np.testing.assert_equal(vars(data), vars(fit.data))
        return fit

    monkeypatch.setattr(FIT, again)
    generator = {"name": "lm-strong", "control_only": True}
    other = experiments.human_loss(study, generator=generator, **AGED)
    target = study["target_logprob"]
    shift = float((target.sel(model="lm-strong") - target.sel(model="lm-medium")).mean())
    first, second = row_of(result, "everyone"), row_of(other, "everyone")
    for name in (
        "gap_median_nats",
        "gap_items_with_data_median_nats",
        "individual_gap_upper_median_nats",
        "true_gap_nats",
    ):
        assert_allclose(second[name], first[name] + shift, err_msg=name)
    for name in ("perplexity_median", "tail_factor_lm-weak", "tail_share_median", "k0_median"):
        assert_allclose(second[name], first[name], err_msg=name)


@pytest.mark.mcmc
def test_of_language_models_alone_a_failed_check_is_marked_beside_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(data: ParticipantData, **settings: Any) -> ParticipantFit:
        fit = fit_participants(data, **settings)
        passed = data.participant[0] != "lm-strong" or data.row_box[0] >= 0
        return replace(fit, convergence=replace(fit.convergence, passed=passed, reasons=("it is not Gaussian",)))

    monkeypatch.setattr(FIT, failed)
    study = prepared("+exp=perplexity", *TINY).study
    result = experiments.human_loss(study, players="lm-strong", **FEW, **ANY)
    table = result.table
    assert table["rounding"].tolist() == ["none", "interface"]
    exact = study["target_logprob"].isel(item=np.unique(study["response_item"].to_numpy())).mean("item")
    assert_allclose(table["true_gap_nats"], float(exact.sel(model="lm-medium") - exact.sel(model="lm-strong")))
    assert set(result.figures) == {"human_loss"}
    assert not result.posteriors
    assert np.isfinite(table["gap_median_nats"]).all()
    assert table["tail_factor"].isna().all()
    assert table["converged"].tolist() == [False, True]
    assert result.gate_failed
    assert [text for text in result.warnings if "lm-strong" in text]
    (axes,) = result.figures["human_loss"].axes
    assert ["failed" in label.get_text() for label in axes.get_yticklabels()] == [True, False]


@pytest.mark.slow
@pytest.mark.mcmc
def test_gap_and_scale_are_recovered_whatever_the_scale(seed_offset: int) -> None:
    """Of three 90% intervals one may miss (all hold with probability 0.73, two or more with 0.97)."""
    inside = []
    for at, k0 in enumerate((0.5, 1.0, 2.0)):
        people = {"slope_median": k0, "slope_log_sd": 0.3}
        study = experiments.designed_simulated(n_items=40, vocab_size=1000, seed=seed_offset + at, participants=people)
        row = row_of(experiments.human_loss(study, players="human", sensitivity=False), "everyone")
        inside.append(row["gap_lower_nats"] <= row["true_gap_nats"] <= row["gap_upper_nats"])
        assert abs(row["error_median_nats"]) < 0.6
        assert abs(np.log(row["k0_median"] / row["k0_true"])) < np.log(2)
    assert sum(inside) >= 2


@pytest.mark.slow
@pytest.mark.mcmc
def test_real_data_pass_the_check(lm_game_root: Path) -> None:
    settings = ("study=lm_game", f"study.root={lm_game_root}")
    result = run_experiment("+exp=human_loss", *settings, "players=[human,14M]", "experiment.sensitivity=false")
    assert not result.gate_failed, result.warnings
    assert row_of(result, "without")["left_out"] == "8915005930766566377"
    player = row_of(result, "14M, rounding none")
    assert player["gap_lower_nats"] <= player["true_gap_nats"] <= player["gap_upper_nats"]
