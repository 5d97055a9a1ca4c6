"""The experiment on ranking studies: one fit on a tiny copy of the archives, and what the thesis prints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.rankings import score_study
from shannon_game.experiments.harness.job import Job
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.papers.ranks_published import compare_with_published, model_order
from shannon_game.experiments.rankings.rank_recovery import TRUTH, simulate_ranks
from shannon_game.experiments.rankings.ranks.experiment import ranks
from shannon_game.experiments.rankings.windows import scores_by_window
from shannon_game.inference.posterior.arviz_adapter import group_names
from shannon_game.models.rankings.slopes import rank_data
from tests.experiments.command import COMPILED_FAST, config, prepared, run_experiment
from tests.experiments.studies.rankings import tiny_ranks

SMALL = (
    *(*COMPILED_FAST, "sampler.draws=60", "sampler.tune=60", "experiment.n_draws=40"),
    *("experiment.allow_unconverged=true", "experiment.power_windows=[8,32]", "output.dpi=40"),
)


@pytest.fixture(scope="module")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_ranks.write(tmp_path_factory.mktemp("ranks"))


@pytest.fixture(scope="module")
def fitted(tiny_root: Path, seed_offset: int) -> tuple[Job, ExperimentResult]:
    job = prepared("+exp=ranks", f"study.root={tiny_root}", *SMALL, f"seed={seed_offset}")
    return job, job.run()


@pytest.mark.mcmc
def test_what_a_run_writes(fitted, tmp_path: Path) -> None:
    job, result = fitted
    study = job.study
    write_outputs(tmp_path, config("+exp=ranks", "output.dpi=40"), study, result)
    assert set(result.figures) == {"scores", "slopes", "separation", "score_curves", "easy_tokens"}
    table = pd.read_csv(tmp_path / "table.csv")
    assert table["model"].tolist() == sorted(tiny_ranks.MODELS)
    numbers = table.drop(columns=["model", "r_hat_max", "bfmi_min", "ess_bulk_min", "ess_tail_min"])
    assert np.isfinite(numbers.to_numpy(dtype=float)).all()
    assert (table["score_per_doubling_lower"] < table["score_per_doubling_upper"]).all()
    assert table["p_best"].sum() == pytest.approx(1)
    assert (table["approximate_perplexity"] > table["perplexity_bound"]).all()
    assert (tmp_path / "posterior_ranks.nc").is_file()
    groups = {"log_likelihood", "prior", "prior_predictive", "posterior_predictive", "observed_data", "constant_data"}
    assert groups <= set(group_names(result.posterior))
    windows = pd.read_csv(tmp_path / "windows.csv")
    assert len(windows) == 48
    average = windows[["linear", "reciprocal", "exponential_01", "exponential_03"]].mean(axis=1)
    np.testing.assert_allclose(windows["average"], average)
    stored = (
        pd.DataFrame({"model": study["model"].to_numpy(), "perplexity": study["stored_perplexity"].to_numpy()})
        .groupby("model")["perplexity"]
        .unique()
    )
    for model, values in stored.items():
        mine = windows.loc[windows["model"] == model, "perplexity"]
        np.testing.assert_allclose(np.sort(mine), np.sort(values), rtol=1e-9)


def test_published_numbers_beside_ours(rank_perplexity_root: Path) -> None:
    study = prepared("+exp=ranks", f"study.root={rank_perplexity_root}").study
    windows = scores_by_window(study, score_study(study))
    table = compare_with_published(windows)
    count = table.groupby("place")["agrees"].agg(["sum", "size"])
    assert count.loc["tables 1-2"].tolist() == [128, 128]
    assert count.loc["tables 3-4"].tolist() == [80, 80]
    assert count.loc["appendix A"].tolist() == [188, 192]
    assert count.loc["appendix B"].tolist() == [192, 192]
    assert count.loc["repeats, stored averages"].tolist() == [160, 160]
    # slope, standard error and p-value of 16 fits; of 8 on both texts, one slope is cut and one p-value rounded twice
    assert count.loc["appendix C"].tolist() == [48, 48]
    assert count.loc["section 4, both texts"].tolist() == [22, 24]
    assert count.loc[["mean", "repeats", "repeats and main run"]].to_numpy().tolist() == [[4, 4], [2, 2], [2, 2]]
    assert count.loc[["mean of text 1", "mean of text 2"]].to_numpy().tolist() == [[2, 2], [2, 2]]
    order = model_order(windows).set_index("model")
    assert (order["by_perplexity"] == order["leaderboard"]).all()
    assert order["by_average"].sort_values().index.tolist() == ["gpt-4", "gpt-4-turbo", "gpt-4o", "gpt-3.5-turbo"]
    wrong = table[~table["agrees"] & (table["place"] == "appendix A")]
    assert set(wrong["context_length"].astype(str) + ", " + wrong["quantity"]) == {"1024, reciprocal"}
    assert wrong.set_index("model")["ours"].round(4).to_dict() == {
        "gpt-3.5-turbo": 0.4163,
        "gpt-4": 0.6083,
        "gpt-4-turbo": 0.5612,
        "gpt-4o": 0.4501,
    }
    fits = table[(table["place"] == "section 4, both texts") & (table["model"] == "gpt-3.5-turbo")]
    ours = fits.set_index("quantity")["ours"]
    assert ours["slope_perplexity"] == pytest.approx(-0.00909, abs=5e-6)
    assert ours["slope_se_perplexity"] == pytest.approx(0.0343, abs=5e-5)
    assert ours["p_value_perplexity"] == pytest.approx(0.7949, abs=5e-5)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["experiment.match=id"], "the study has no reference_id"),
        (["experiment.censoring=exact"], "the study has no reference_logprob"),
        (["study.part=repeats"], "is 128 everywhere; a slope needs"),
    ],
)
def test_wrong_settings_are_refused_before_the_fit(tiny_root: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_experiment("+exp=ranks", f"study.root={tiny_root}", *overrides)


def test_published_numbers_stand_beside_what_ranks_gives(tiny_root: Path) -> None:
    job = prepared("+exp=reproduce", "experiment.of=ranks", "study=rank_perplexity", f"study.root={tiny_root}")
    result = job.run()
    assert {"windows", "published", "outliers", "order"} <= set(result.tables)
    pd.testing.assert_frame_equal(ranks(job.study, posterior=False).table, result.table)
    with pytest.raises(InputError, match="is not the whole of the thesis's"):
        run_experiment(
            *("+exp=reproduce", "experiment.of=ranks", "study=rank_perplexity", "study.part=main"),
            f"study.root={tiny_root}",
        )


def test_simulated_studies_have_the_populations_asked_for(tiny_root: Path) -> None:
    study = prepared("+exp=ranks", f"study.root={tiny_root}").study
    scores = score_study(study)
    design = rank_data(study, scores.rank, scores.k)
    baseline = np.full(9, 1 / 9)
    slopes = np.array([simulate_ranks(design, baseline, np.random.default_rng(seed))[1] for seed in range(300)]).ravel()
    # 1,200 draws: four standard errors
    assert slopes.mean() == pytest.approx(TRUTH["slope_mean"], abs=4 * 0.08 / np.sqrt(1200))
    assert slopes.std() == pytest.approx(TRUTH["slope_spread"], rel=0.09)
    data, _ = simulate_ranks(design, baseline, np.random.default_rng(0))
    assert (data.count.sum(axis=1) == design.count.sum(axis=1)).all()


@pytest.mark.slow
def test_coverage_over_simulated_studies(rank_perplexity_root: Path, tmp_path: Path) -> None:
    """200 studies of the thesis's size: 86 to 94% of the 90% intervals of slopes hold the truth."""
    settings = [f"study.root={rank_perplexity_root}", f"experiment.replicates={tmp_path / 'r.jsonl'}"]
    table = run_experiment("+exp=recovery", "of=ranks", *settings).table.set_index("what")
    assert table.loc["slope", "n_studies"] == 200
    assert 0.86 <= table.loc["slope", "coverage"] <= 0.94
    assert abs(table.loc["slope", "bias"]) < 0.01
