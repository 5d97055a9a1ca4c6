"""``+exp=ard`` in both modes: the paper's coefficients on the real data, the clean analysis at a tiny size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hydra import compose, initialize_config_module
from omegaconf import DictConfig

from estimators.errors import InputError
from experiments import load_experiment
from experiments.cloze.ard.experiment import ARD_COLUMNS
from experiments.cloze.ard.figures import checks, coefficients, predictors
from experiments.cloze.ard.settings import variants
from experiments.harness.outputs import ExperimentResult, write_outputs
from experiments.studies import load_study
from models.cloze.ard_columns import PREDICTORS, legacy_columns
from tests.experiments.command import FEW_DIVERGENT
from tests.oracles.ard import paper_rows

SIMULATED = (
    *("study=cloze_simulated", "study.n_items=24", "study.items_per_text=6", "study.vocab_size=60"),
    *("study.n_samples=60", "output.dpi=30", "players=[factors]"),
    "experiment.predictors=[human_entropy,model_entropy,oracle_tvd,word_num]",
)
SHORT = ("sampler.draws=60", "sampler.tune=150", "sampler.chains=2", "sampler.cores=1", "experiment.n_predictive=80")


def config(*overrides: str, name: str = "ard") -> DictConfig:
    with initialize_config_module("conf", version_base="1.3"):
        return compose("config", overrides=[f"+exp={name}", *overrides])


def result_of(*overrides: str, name: str = "ard") -> tuple[DictConfig, xr.Dataset, ExperimentResult]:
    cfg = config(*overrides, name=name)
    study = load_study(cfg, kind="cloze")
    return cfg, study, load_experiment(name)(cfg, study)


def test_the_paper_s_coefficients(provo_root: Path, tmp_path: Path) -> None:
    settings = (f"study.root={provo_root}", f"study.cache_dir={tmp_path}", "experiment.mode=legacy")
    _, study, result = result_of(*settings)
    table = result.table.set_index(["fit", "predictor"])
    raw, standard = table.loc["legacy"], table.loc["standardised"]
    assert raw["coefficient"].round(4).tolist() == [0.0572, 0.0952, 0.1171, 0.0]
    assert standard["coefficient"].round(3).tolist() == [0.048, 0.138, 0.021, 0.0]
    assert raw["n_rows"].unique().tolist() == [798]
    # posterior standard deviations, and what the paper draws for them
    np.testing.assert_allclose(raw["sd"], [0.01266, 0.00385, 0.0547, 0], atol=5e-5)
    np.testing.assert_allclose(raw["published_bar"], [0.00686, 0.01817, 0.03346, 0], atol=5e-5)
    assert "model entropy" in result.summary.split("the largest is that of")[-1]
    # row by row what loops over the files give
    rows, target = paper_rows(provo_root)
    found = legacy_columns(study, "gpt2", list(PREDICTORS))
    off = np.abs(np.column_stack([*found.predictors.values(), found.target]) - np.column_stack([rows, target]))
    # in one context two samples are one and two no-break spaces: two words to the paper's code, one blank to the rules
    assert sorted(off.max(axis=1))[-2] < 1e-12
    assert off.max() < 0.002


@pytest.fixture(scope="module")
def tiny(seed_offset: int) -> tuple[DictConfig, xr.Dataset, ExperimentResult]:
    return result_of(*SIMULATED, *SHORT, "experiment.variants=[]", f"seed={seed_offset}")


def test_clean_at_a_tiny_size(tiny: tuple[DictConfig, xr.Dataset, ExperimentResult], tmp_path: Path) -> None:
    cfg, study, result = tiny
    table = result.table
    assert tuple(table.columns) == ARD_COLUMNS
    assert table["fit"].drop_duplicates().tolist() == [
        *("legacy", "standardised", "shared", "resplit", "disjoint", "main")
    ]
    bayes = table[table["engine"] == "PyMC"]
    assert (bayes["lower"] < bayes["coefficient"]).all()
    assert (bayes["coefficient"] < bayes["upper"]).all()
    assert (bayes["scale"] > 0).all()
    np.testing.assert_allclose(bayes.groupby("fit")["p_largest"].sum(), 1)
    assert set(result.posteriors) == {"main"}
    assert "latent_unit" not in result.posteriors["main"].posterior
    assert 'conclusion "TVD between oracles matters most"' in result.summary
    write_outputs(tmp_path, cfg, study, result)
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        loaded = dataset.load()
    back = pd.read_csv(tmp_path / "table.csv")
    for figure in (coefficients(back, cfg), predictors(loaded, cfg), checks(loaded, cfg)):
        figure.savefig(tmp_path / "again.png", dpi=30)
    # 120 draws cannot reach 400 effective ones, and the run says so
    assert result.gate_failed
    assert any(text.startswith("the posterior did not converge, do not use it: main") for text in result.warnings)


def test_coverage_at_a_tiny_size(tmp_path: Path) -> None:
    settings = ("experiment.n_fits=2", "experiment.n_texts=3", "experiment.n_items_per_text=5", "sampler.draws=60")
    path = f"experiment.replicates={tmp_path / 'fits.jsonl'}"
    small = (*SIMULATED, *settings, path, "sampler.tune=100", "experiment.measured=[]")
    first = result_of(*small, name="ard_coverage")[2]
    assert first.table["coverage"].between(0, 1).all()
    assert first.table["quantity"].tolist()[1] == "coefficient of human_entropy"
    again = result_of(*small, name="ard_coverage")[2]
    pd.testing.assert_frame_equal(first.table, again.table)
    with pytest.raises(InputError, match="made with other settings"):
        result_of(*small, "experiment.prior=normal", name="ard_coverage")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("experiment.mode=old", "unknown mode 'old'"),
        ("experiment.prior=fixed", "unknown prior 'fixed'"),
        ("experiment.likelihood=normal", "unknown likelihood 'normal'"),
        ("experiment.variants=[lasso]", "unknown variant 'lasso'"),
        ("experiment.predictors=[]", "experiment.predictors: is .*list of names"),
        ("experiment.predictors=[mood]", "unknown predictor 'mood'; choose one of: human_entropy"),
        ("experiment.measured=[word_num]", "unknown measured predictor 'word_num'"),
        ("experiment.target_answers=50", "no context has 68 answers"),
        ("experiment.target_answers=1", "experiment.target_answers: is 1"),
        ("experiment.legacy_seed=-1", "experiment.legacy_seed: is -1"),
        ("+experiment.priors.coefficient=-1", "coefficient: is -1"),
        ("+experiment.priors.size=1", "unknown experiment.priors setting 'size'"),
        ("experiment.n_predictive=0", "experiment.n_predictive: is 0"),
        ("players=[nobody]", "unknown model 'nobody'"),
    ],
)
def test_wrong_settings(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        result_of(*SIMULATED, override)


def test_variants_change_one_thing_and_none_is_fitted_twice() -> None:
    cfg = config("experiment.variants=[horseshoe,ard,gaussian,no_error,no_groups]")
    found = variants(cfg)
    assert [variant.name for variant in found] == ["main", "horseshoe", "gaussian", "no_error", "no_groups"]
    changed = [{key for key, value in vars(v).items() if value != vars(found[0])[key]} - {"name"} for v in found]
    assert changed == [set(), {"prior"}, {"likelihood"}, {"error"}, {"groups"}]


def test_legacy_is_about_one_model() -> None:
    with pytest.raises(InputError, match="mode=legacy is about one model"):
        result_of(*SIMULATED, "players=null", "experiment.mode=legacy")


@pytest.mark.slow
def test_the_real_data_converge(provo_root: Path, tmp_path: Path) -> None:
    settings = (f"study.root={provo_root}", f"study.cache_dir={tmp_path}", "experiment.variants=[]")
    result = result_of(*settings, FEW_DIVERGENT)[2]
    main = result.table[result.table["fit"] == "main"].set_index("predictor")
    assert not result.gate_failed
    assert main["r_hat_max"].max() <= 1.01
    assert min(main["ess_bulk_min"].min(), main["ess_tail_min"].min()) >= 400
    # about .14 of TVD for one standard deviation of the model's entropy, by far the most
    assert main.loc["model_entropy", "p_largest"] > 0.99
    assert main.loc["oracle_tvd", "p_largest"] < 0.05
