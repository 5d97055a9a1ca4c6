"""The experiments on cloze studies, at a tiny size, in both modes; and what users get wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hydra import compose, initialize_config_module
from omegaconf import DictConfig

from estimators.cloze.split_halves import random_split_halves
from estimators.cloze.tvd_bias import tvd_with_baseline
from estimators.errors import InputError
from experiments import load_experiment
from experiments.cloze.settings import clean_words
from experiments.cloze.tvd.results import part_counts
from experiments.harness.outputs import ExperimentResult, write_outputs
from experiments.harness.settings import rng_for
from experiments.studies import load_study
from tests.experiments.studies.cloze import tiny_provo

SIMULATED = (
    *(
        "study=cloze_simulated",
        "study.n_items=6",
        "study.items_per_text=2",
        "study.n_answers=12",
        "study.vocab_size=40",
    ),
    *("study.n_samples=30", "output.dpi=30"),
)
SHORT = (
    "sampler.tune=150",
    "sampler.draws=60",
    "sampler.chains=2",
    "sampler.cores=1",
    "experiment.allow_unconverged=true",
)
TINY = {
    "tvd": (*SIMULATED, *SHORT, "experiment.n_splits=3", "experiment.bayes={n_contexts: 3, more_draws: 1}"),
    "tvd_sample_size": (*SIMULATED, "experiment.n=[3,6]", "experiment.n_repeats=2"),
    "improve": (*SIMULATED, "experiment.n_splits=3", "experiment.n_replicates=50"),
    "distributions": (*SIMULATED, "experiment.item=['1:2','2']", "experiment.n_words=5"),
    "tvd_coverage": (
        *SIMULATED,
        "study.families=[mixture,same]",
        *SHORT,
        "experiment.n=[8]",
        "experiment.unpooled=true",
    ),
}


def result_of(*overrides: str) -> tuple[DictConfig, xr.Dataset, ExperimentResult]:
    with initialize_config_module("conf", version_base="1.3"):
        cfg = compose("config", overrides=list(overrides))
    study = load_study(cfg, kind="cloze")
    return cfg, study, load_experiment(cfg.experiment.name)(cfg, study)


@pytest.mark.parametrize("name", sorted(TINY))
def test_at_a_tiny_size(name: str, tmp_path: Path, seed_offset: int) -> None:
    overrides = (f"+exp={name}", *TINY[name], f"seed={seed_offset}")
    cfg, study, result = result_of(*overrides)
    assert result.figures
    assert result.summary
    assert not result.gate_failed
    write_outputs(tmp_path, cfg, study, result)
    assert list(pd.read_csv(tmp_path / "table.csv").columns) == list(result.table.columns)
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        assert json.loads(dataset.attrs["config"])["experiment"]["name"] == name
    if name not in ("tvd", "improve"):
        return
    again = result_of(*overrides)[2].table
    pd.testing.assert_frame_equal(result.table, again)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_provo.write(tmp_path_factory.mktemp("provo"))


@pytest.mark.parametrize("mode", ["clean", "legacy"])
@pytest.mark.parametrize("name", ["tvd", "tvd_sample_size", "improve", "distributions"])
def test_both_modes_on_the_public_layout(name: str, mode: str, tiny: Path, tmp_path: Path) -> None:
    overrides = [f"+exp={name}", f"study.root={tiny}", f"study.cache_dir={tmp_path}", f"experiment.mode={mode}"]
    if name == "tvd":
        overrides += ["experiment.bayes.n_contexts=null"]
    if name == "tvd_sample_size":
        overrides += ["players=[gpt2]", "experiment.n=[10,20]"]
    if name == "distributions":
        overrides += ["experiment.item=['1:2','2']"]
    result = result_of(*overrides)[2]
    assert result.figures
    assert len(result.table)
    if name == "tvd" and mode == "legacy":
        table = result.table.set_index("quantity")
        # the stored list of this copy is made up, and the computed one is not it
        assert table.loc["tvd/oracle2-oracle1", "legacy"] != pytest.approx(0.4)
        assert any("differs by more than" in text for text in result.warnings)
        assert table.loc["tvd/chatgpt", "clean"] == pytest.approx(table.loc["tvd/chatgpt", "legacy"], abs=0.03)


def test_the_baseline_stands_beside_every_raw_distance(seed_offset: int) -> None:
    table = result_of("+exp=tvd", *TINY["tvd"], f"seed={seed_offset}")[2].table.set_index("player")
    assert table.index.tolist() == ["oracle2", "mixture", "factors"]
    assert (table["tvd_between_oracles"] > 0.3).all()
    assert (table["tvd"] > table["tvd_bayes"]).all()
    assert (table["tvd_bayes_lower"] < table["tvd_bayes_upper"]).all()
    assert np.isfinite(table.filter(like="ece_").to_numpy()).all()


def test_the_oracles_distances_are_of_all_splits() -> None:
    overrides = [*SIMULATED, "experiment.n_splits=7", "experiment.bayes.n_contexts=null"]
    dataset = result_of("+exp=tvd", *overrides)[2].dataset.sel(player="oracle2")
    raw, baseline = dataset["tvd"], dataset["tvd_baseline"]
    np.testing.assert_allclose(dataset["tvd_corrected"], (raw - baseline) / (1 - baseline), atol=1e-12)


def test_an_odd_answer_is_left_out_anew_in_every_split() -> None:
    """What the halves are dealt from differs by split, and so does their baseline."""
    odd = ["study.n_answers=11", "experiment.n_splits=7", "experiment.bayes.n_contexts=null"]
    cfg, study, result = result_of("+exp=tvd", *SIMULATED, *odd)
    human = clean_words(cfg, study, []).answers()
    splits = random_split_halves(human, n_splits=7, rng=rng_for(cfg, "oracles"))
    each = [tvd_with_baseline(part_counts(splits, at, "second"), part_counts(splits, at, "first")) for at in range(7)]
    baselines = np.array([one.baseline for one in each])
    assert np.ptp(baselines, axis=0).max() > 0.01
    found = result.dataset.sel(player="oracle2")
    np.testing.assert_allclose(found["tvd_baseline"], baselines.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found["tvd_corrected"], np.mean([one.corrected for one in each], axis=0), atol=1e-12)


@pytest.mark.parametrize("rows", ["A b,x\nA b,\nC d,y\nC d,NA\n", "A b,x\nA b,z\nC d,y\n"])
def test_people_have_to_have_answered_two_contexts_twice(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("context,response\n" + rows)
    columns = ["study.columns={context: context, response: response}"]
    missing = ["study.missing=[NA]", "experiment.bayes.n_contexts=null"]
    with pytest.raises(InputError, match=r"cloze study 'few': has [01] contexts with two answers"):
        result_of("+exp=tvd", "study=cloze_table", f"study.path={path}", *columns, *missing)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["+exp=tvd", "experiment.mode=fast", *SIMULATED], "unknown mode 'fast'"),
        (["+exp=tvd", "experiment.mode=legacy", *SIMULATED], "holds no stored results"),
        (["+exp=tvd", "players=[gpt9]", *SIMULATED], "unknown model 'gpt9'; choose one of: mixture, factors"),
        (["+exp=tvd", "experiment.words.rules=cleen", *SIMULATED], "unknown word rules 'cleen'"),
        (["+exp=tvd", "experiment.words.case=up", *SIMULATED], "unknown case 'up'"),
        (["+exp=tvd", "experiment.n_splits=0", *SIMULATED], "experiment.n_splits: is 0"),
        (["+exp=tvd", "study=simulated"], "study: is 'simulated', a comparison study; tvd needs a cloze study"),
        (["+exp=tvd_sample_size", "experiment.n=[100]", *SIMULATED], "needs at least twice the largest number"),
        (["+exp=improve", "experiment.margins=[0]", *SIMULATED], "should be differences of TVD above 0"),
        (["+exp=distributions", "experiment.item=9:9", *SIMULATED], "there is no text '9'"),
        (["+exp=distributions", "experiment.item=1:99", *SIMULATED], "text 1 has the words 2 to 3: TEXT:WORD"),
        (["+exp=distributions", "experiment.item=[]", *SIMULATED], "is empty"),
        (["+exp=tvd_coverage", "sampler.chains=two", *SIMULATED], "sampler.chains: is 'two'"),
        (["+exp=tvd", "+experiment.gate.rhat=1", *SIMULATED], "unknown experiment.gate setting 'rhat'"),
    ],
)
def test_mistakes(overrides: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        result_of(*overrides)
