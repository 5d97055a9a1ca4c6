"""``+exp=human_loss`` at a tiny size, its rule for unusual participants, its settings, and the real data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from estimators.errors import InputError
from experiments.comparison.estimates import TABLE_COLUMNS
from experiments.comparison.human_loss.experiment import HUMAN_LOSS_COLUMNS, HumanLossSettings
from experiments.comparison.human_loss.figures import sensitivity_figure
from experiments.comparison.human_loss.summary import summary
from experiments.harness.outputs import write_outputs
from experiments.harness.result import ExperimentResult
from inference.comparison.participant_sensitivity import scaled_priors, unusual_participants, weighted_quantile
from inference.posterior.arviz_adapter import group_names
from inference.posterior.storage import load_posterior
from models.comparison.participant_data import participant_data, with_reports
from models.comparison.participants import ParticipantPriors
from tests.experiments.command import FEW_DIVERGENT, TINY, config, prepared, run, run_experiment

SHORT = (
    "sampler.draws=60",
    "sampler.tune=100",
    "sampler.chains=2",
    "sampler.cores=1",
    *("experiment.player_sampler.draws=50", "experiment.player_sampler.tune=100"),
    "experiment.player_sampler.chains=2",
    *("experiment.short_sampler.draws=50", "experiment.short_sampler.tune=100", "experiment.n_simulated=2"),
    "experiment.n_draws=100",
    "experiment.curve.points=3",
    "experiment.top1.rate=.3",
)


def result_of(*overrides: str) -> ExperimentResult:
    return run_experiment("+exp=human_loss", *overrides)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, seed_offset: int) -> Path:
    """Folder of a tiny run through the command, in which nothing can converge."""
    folder = tmp_path_factory.mktemp("human_loss")
    done = run(
        folder,
        "+exp=human_loss",
        *TINY,
        *SHORT,
        "players=[lm-medium,human]",
        "rounding=none",
        "experiment.grid=interface",
        "experiment.sensitivity=false",
        "hydra.run.dir=out",
        f"seed={seed_offset}",
    )
    assert done.returncode == 3, done.stderr
    assert "a check failed" in done.stderr
    assert "participants, everyone" in done.stderr
    return folder / "out"


@pytest.mark.mcmc
def test_table_of_a_tiny_run(finished: Path) -> None:
    table = pd.read_csv(finished / "table.csv")
    assert list(table.columns) == [*TABLE_COLUMNS, *HUMAN_LOSS_COLUMNS]
    assert not [name for name in table if name.startswith("p_")]
    names = ["lm-medium, rounding none", "lm-medium, as people", "everyone", "assumed", "everyone, top-1 rate"]
    assert table["what"].tolist() == names
    itself, as_people, everyone, assumed, held = (table.iloc[row] for row in range(5))
    # the generator as a player is exact; no other interval stands without its caveat
    assert itself["gap_lower_nats"] == itself["gap_upper_nats"] == 0
    assert table["caveat"].isna().tolist() == [True, False, False, False, False]
    assert everyone["gap_lower_nats"] < everyone["gap_median_nats"] < everyone["gap_upper_nats"]
    assert everyone["k0_lower"] < everyone["k0_median"] < everyone["k0_upper"]
    assert assumed["k0_lower"] == assumed["k0_upper"] == 1
    assert everyone["true_gap_nats"] == assumed["true_gap_nats"] == held["true_gap_nats"]
    assert (table["perplexity_median"] > 0).all()
    for row in (everyone, assumed, held):
        assert 0 < row["tail_share_lower"] < row["tail_share_median"] < row["tail_share_upper"] < 1
    # people with a player's belief: its truth, but a posterior with the participants' noise
    assert as_people["true_gap_nats"] == 0
    assert as_people["gap_lower_nats"] < as_people["gap_median_nats"] < as_people["gap_upper_nats"]
    assert as_people["gap_nats"] != everyone["gap_nats"]
    assert 0 <= everyone["above_floor_median_nats"] <= everyone["above_floor_upper_nats"]
    assert table.loc[[0, 1, 3, 4], "above_floor_median_nats"].isna().all()
    # the same draws, weighted: what is far from the given rate counts for less
    width = [row["top1_model_upper"] - row["top1_model_lower"] for row in (held, everyone)]
    assert width[0] < width[1]


@pytest.mark.mcmc
def test_outputs_of_a_tiny_run(finished: Path) -> None:
    status = json.loads((finished / "status.json").read_text(encoding="utf-8"))
    assert status["gate_failed"]
    assert "humans, everyone" in " ".join(status["warnings"])
    report = " ".join((finished / "report.md").read_text(encoding="utf-8").split())
    said = ("only up to one temperature", "near the floor", "did NOT converge", "true k0 is", "does not follow")
    for part in (*said, "of the belief on tokens never drawn"):
        assert part in report, part
    # the caveat stands with the number: in the first sentence, the warnings, the table and the figure
    assert report.split(" ", 4)[4].index("not to be relied on") < report.index("[")
    assert "not to be relied on" in " ".join(status["warnings"])
    assert {path.stem for path in (finished / "figures").glob("*.png")} == {"human_loss", "k0_curve", "top1"}
    with xr.open_dataset(finished / "results.nc", engine="h5netcdf") as dataset:
        curve = dataset["curve_gap_nats"].sel(fit="everyone", quantile=0.5)
        assert curve.sizes == {"k0": 3}
        assert (dataset["curve_gap_nats"].diff("quantile") >= 0).all()
    posterior = load_posterior(finished / "posterior_human.nc")
    assert {"posterior", "log_likelihood", "prior", "posterior_predictive"} <= set(group_names(posterior))
    assert (finished / "posterior_human_assumed.nc").is_file()


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("players=[lm-weak]", "human"),
        ("experiment.anchor=top1", "outcomes"),
        ("experiment.objective=full", "rank"),
        ("experiment.k0=0", "k0"),
        ("experiment.k0=100", "k0"),
        ("experiment.grid=nothing", "nothing"),
        ("rounding=none", "grid 'none'"),
        ("experiment.leave_out=nobody", "unknown participant 'nobody'"),
        ("experiment.leave_out=[-372181953]", "unknown participant '-372181953'"),
        ("experiment.top1.rate=2", "top1.rate"),
        ("experiment.top1.rate=high", "top1.rate"),
        ("experiment.curve.low=3", "curve.*low: is 3"),
        ("experiment.curve.points=1", "curve.points"),
        ("+experiment.short_sampler.thin=2", "thin"),
        ("sampler.draws=many", "sampler.draws"),
        ("experiment.sensitivity=1", "sensitivity"),
        ("experiment.max_refits=-1", "max_refits"),
        ("experiment.participant_sampler.draws=9", "unknown setting 'participant_sampler'"),
        ("experiment.n_draws=10", "n_draws"),
        ("+experiment.priors.sigmas=1", "sigmas"),
        ("+experiment.player_priors.slopes=1", "slopes"),
        ("experiment.gate.r_hat=low", "r_hat"),
    ],
)
def test_mistakes_are_named_before_anything_is_fitted(override: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        result_of(*TINY, override)


def test_who_answers_at_the_ends_is_unusual_only_where_others_do_not() -> None:
    data = participant_data(prepared("+exp=perplexity", *TINY).study)
    middle = np.full(data.row_box.size, 5)
    assert unusual_participants(with_reports(data, middle)) == []
    box = middle.copy()
    second = data.row_participant == 1
    box[second] = np.where(np.arange(second.sum()) % 2, 0, 10)
    assert unusual_participants(with_reports(data, box)) == [data.participant[1]]
    # a fifth of the answers elsewhere is no rule any more
    box[np.flatnonzero(second)[: int(np.ceil(second.sum() / 5))]] = 5
    assert unusual_participants(with_reports(data, box)) == []
    assert unusual_participants(with_reports(data, np.full(box.size, 10))) == []
    with pytest.raises(InputError, match="mostly"):
        unusual_participants(data, mostly=1.2)


def test_the_sampler_is_that_of_the_participants() -> None:
    """The chains of every other fit are set apart; package and cores are shared."""
    settings = HumanLossSettings(sampler={"draws": 70, "name": "pymc", "cores": 2}, player_sampler={"draws": 80})
    assert (settings.sampler.draws, settings.sampler.tune, settings.sampler.target_accept) == (70, 500, 0.8)
    players = settings.of_players.sampler
    assert (players.name, players.cores, players.draws, players.tune) == ("pymc", 2, 80, 500)
    by_command = prepared("+exp=human_loss", "sampler.draws=70", "sampler.name=pymc", "sampler.cores=2", *TINY).settings
    assert by_command.sampler == settings.sampler
    assert HumanLossSettings() == prepared("+exp=human_loss", *TINY).settings


def sensitivity_table() -> pd.DataFrame:
    """What the sensitivity analysis of three people finds: one fitted before, one fitted now, one by weights."""
    rows = [
        ("everyone", "participant model", "", "default", np.nan, False),
        ("without", "participant model", "a", "default", np.nan, True),
        ("without one", "participant model", "a", "default", 0.4, True),
        ("without one", "participant model, short fit", "b", "default", 1.5, False),
        ("without one", "importance weights", "c", "default", 0.9, False),
        ("priors: narrow", "participant model", "", "narrow", np.nan, False),
        ("priors: wide", "participant model", "", "wide", np.nan, True),
    ]
    table = pd.DataFrame(rows, columns=["what", "method", "left_out", "priors", "pareto_k_left_out", "converged"])
    quantities = ("k0{}", "gap{}_nats", "top1_model{}", "tail_share{}", "above_floor{}_nats")
    ends = {"_lower": 0.3, "_median": 0.4, "_upper": 0.5}
    table = table.assign(**{name.format(end): at for name in quantities for end, at in ends.items()})
    table = table.assign(player="human", anchor="outcomes", left_out_label=table["left_out"], gap_nats=1.0)
    ends = {f"perplexity_{name}": 9.0 for name in ("median", "posterior_lower", "posterior_upper")}
    return table.assign(true_gap_nats=np.nan, caveat="few people", **ends)


def test_fits_of_the_sensitivity_analysis_that_missed_the_gate_are_named() -> None:
    table = sensitivity_table()
    text = summary(table, xr.Dataset(attrs={"k0_true": np.nan, "true_gap_nats_weak": 0.9}))
    for said in (
        "3 participants, 1 of them by a new fit because their Pareto k is above 0.7, 1 by the fit above without them, "
        "and 1 with such a k but no new fit",
        "half as wide it is 0.40 [0.30, 0.50] (a short fit that did NOT converge)",
        "twice as wide it is 0.40 [0.30, 0.50].",
    ):
        assert said in text, text
    (axes,) = sensitivity_figure(table).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [
        "all participants (not converged)",
        "without the unusual: a",
        "priors half as wide (not converged)",
        "priors twice as wide",
        "without a",
        "without b (not converged)",
        "without c",
    ]


def test_weighted_quantiles() -> None:
    draws = np.random.default_rng(0).normal(size=4000)
    probability = [0.05, 0.5, 0.95]
    equal = weighted_quantile(draws, probability, np.ones(draws.size))
    np.testing.assert_allclose(equal, weighted_quantile(draws, probability), atol=0.01)
    # weights exp(x) move a standard normal by 1
    np.testing.assert_allclose(weighted_quantile(draws, [0.5], np.exp(draws)), 1, atol=0.1)


def test_scaled_priors_leave_medians() -> None:
    wide = scaled_priors(ParticipantPriors(), 2)
    assert (wide.mu, wide.slope_spread, wide.log_noise) == (2.0, 0.8, 1.0)
    assert (wide.noise_median, wide.kap_mean, wide.nu) == (0.9, 0.7, 5.0)
    with pytest.raises(InputError, match="factor"):
        scaled_priors(ParticipantPriors(), 0)


@pytest.mark.slow
@pytest.mark.mcmc
def test_sensitivity_of_a_tiny_study(tmp_path: Path) -> None:
    """Too few draws to converge: what is tested is that every row is there and labelled."""
    overrides = [*TINY, *SHORT, "players=[human]", "experiment.top1.rate=null", "experiment.max_refits=1"]
    given = ["+exp=human_loss", *overrides, "experiment.save_posterior=false"]
    job = prepared(*given)
    result = job.run()
    assert not result.posteriors
    write_outputs(tmp_path, config(*given), job.study, result)
    assert (tmp_path / "figures" / "sensitivity.png").is_file()
    ones = result.table[result.table["what"] == "without one"]
    assert sorted(ones["left_out"]) == sorted(set(job.study["participant"].to_numpy().astype(str)))
    assert (ones["method"] == "participant model, short fit").sum() <= 1
    assert np.isfinite(ones["pareto_k_left_out"]).all()
    assert set(result.table["priors"]) == {"default", "narrow", "wide"}
    assert "Sensitivity" in result.text


@pytest.mark.slow
@pytest.mark.parametrize("anchor", ["outcomes", "assumed"])
@pytest.mark.mcmc
def test_real_data_pass_the_gate(anchor: str, lm_game_root: Path, tmp_path: Path) -> None:
    settings = ["study=lm_game", f"study.root={lm_game_root}", f"study.cache_dir={tmp_path}"]
    overrides = ["players=[human]", f"experiment.anchor={anchor}", "experiment.sensitivity=false"]
    result = result_of(*settings, *overrides, FEW_DIVERGENT, "experiment.save_posterior=false")
    assert not result.gate_failed, result.warnings
    table = result.table.set_index("what")
    assert table["left_out"]["without"] == "8915005930766566377"
    assert (table["gap_lower_nats"] < table["gap_upper_nats"]).all()
