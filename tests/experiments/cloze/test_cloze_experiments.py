"""The experiments on cloze studies, at a tiny size; and what users get wrong."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import cloze_simulated, improve, tvd
from shannon_game.estimators.cloze.distributions import count_words
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.tvd import posterior as tvd_bayes
from shannon_game.experiments.cloze.tvd.figures import differences_figure, full_panels, reliability_figure, tvd_figure
from shannon_game.experiments.harness.bayes import BayesianSettings
from shannon_game.experiments.harness.job import Job
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import config, prepared, run_experiment

SIMULATED = (
    *("study=cloze_simulated", "study.n_items=6", "study.items_per_text=2", "study.n_answers=12"),
    *("study.vocab_size=40", "study.n_samples=30", "output.dpi=30"),
)
SHORT = (
    *("sampler.tune=100", "sampler.draws=60", "sampler.chains=2", "sampler.cores=1"),
    "experiment.allow_unconverged=true",
)
TINY = {
    "tvd": (
        *SIMULATED,
        *SHORT,
        "players=[mixture]",
        "experiment.n_splits=3",
        "experiment.bayes={n_contexts: 3, more_draws: 1}",
    ),
    "improve": (*SIMULATED, "experiment.n_splits=3", "experiment.n_replicates=50"),
    "recovery": ("of=tvd", *SIMULATED, "study.families=[mixture,same]", *SHORT, "n=[8]"),
}


# the coverage of twenty fits takes minutes
MARKS = {"tvd": pytest.mark.mcmc, "recovery": pytest.mark.slow}
NAMES = [pytest.param(name, marks=MARKS.get(name, ())) for name in sorted(TINY)]


def overrides_of(name: str, seed: int) -> tuple[str, ...]:
    return f"+exp={name}", *TINY[name], f"study.seed={seed}"


@cache
def first_run(name: str, seed: int) -> tuple[Job, ExperimentResult]:
    job = prepared(*overrides_of(name, seed))
    return job, job.run()


@pytest.mark.parametrize("name", NAMES)
def test_at_a_tiny_size(name: str, tmp_path: Path, seed_offset: int) -> None:
    overrides = overrides_of(name, seed_offset)
    job, result = first_run(name, seed_offset)
    assert result.figures
    assert result.text
    assert not result.gate_failed
    write_outputs(tmp_path, config(*overrides), job.study, result, settings=job.settings)
    assert (tmp_path / "table.csv").is_file()
    # a notebook runs tvd again below
    if name == "improve":
        pd.testing.assert_frame_equal(result.table, run_experiment(*overrides).table)


@pytest.mark.mcmc
def test_the_baseline_stands_beside_every_raw_distance(seed_offset: int) -> None:
    table = first_run("tvd", seed_offset)[1].table.set_index("player")
    assert table.index.tolist() == ["half_of_people", "mixture"]
    assert (table["tvd_between_oracles"] > 0.3).all()
    assert (table["tvd"] > table["tvd_bayes"]).all()
    assert (table["tvd_bayes_lower"] < table["tvd_bayes_upper"]).all()
    assert np.isfinite(table.filter(like="ece_").to_numpy()).all()


@pytest.mark.parametrize("rows", ["A b,x\nA b,\nC d,y\nC d,NA\n", "A b,x\nA b,z\nC d,y\n"])
def test_people_have_to_have_answered_two_contexts_twice(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("context,response\n" + rows)
    columns = ["study.columns={context: context, response: response}"]
    missing = ["study.missing=[NA]"]
    with pytest.raises(InputError, match=r"cloze study 'few': has [01] contexts with two answers"):
        run_experiment("+exp=tvd", "study=cloze_table", f"study.path={path}", *columns, *missing)


def test_oracles_of_a_chosen_size() -> None:
    """Twice as many answers are needed; smaller oracles are farther apart, whoever gave them."""
    study = cloze_simulated(n_items=40, items_per_text=4, vocab_size=60, n_answers=40, n_samples=200, seed=1)
    settings = {"n_splits": 10, "n_replicates": 20, "players": ["mixture"]}
    tables = {size: improve(study, oracle_size=size, **settings).table for size in (5, 10, 20)}
    between = [tables[size]["tvd_oracle"].iloc[0] for size in (5, 10, 20)]
    assert between[0] > between[1] > between[2]
    half = improve(study, **settings).table
    assert tables[20]["n_contexts"].iloc[0] == half["n_contexts"].iloc[0] == 40
    with pytest.raises(InputError, match="oracle_size: is 21, but no context of mixture has twice as many answers"):
        improve(study, oracle_size=21, **settings)


def test_figures_are_drawn_from_what_was_written(tmp_path: Path) -> None:
    result = tvd(cloze_simulated(n_items=40, vocab_size=40))
    assert list(result.figures) == ["tvd", "differences", "calibration"]
    result.dataset.to_netcdf(tmp_path / "results.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        assert full_panels(dataset) == ["corpus", "human", "oracle1"]
        assert full_panels(dataset.assign(n_in_bin=dataset["n_in_bin"] * (dataset["gold"] != "corpus"))) == [
            "human",
            "oracle1",
        ]
        for figure in (tvd_figure(dataset), differences_figure(dataset), reliability_figure(dataset)):
            assert figure is not None
            figure.savefig(tmp_path / "again.png", dpi=30)
        assert len(figure.axes) == 3


@pytest.mark.parametrize(
    ("more_draws", "passes", "sampled"),
    [(4, [True], [1]), (4, [False, True], [1, 4]), (4, [False] * 3, [1, 4, 8]), (1, [False], [1])],
)
@pytest.mark.parametrize("n_divergent", [0, 3])
def test_what_misses_the_gate_is_sampled_longer_twice_at_most(
    more_draws: int, passes: list[bool], sampled: list[int], n_divergent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = BayesianSettings(sampler={"draws": 100, "target_accept": 0.9})
    verdicts = (SimpleNamespace(passed=each, n_divergent=n_divergent) for each in passes)
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "shannon_game.inference.posterior.sampling.sample", lambda _, **arguments: given.append(arguments)
    )
    for name in ("word_pair_model", "word_pair_density", "written_model", "set_word_pairs"):
        monkeypatch.setattr(tvd_bayes, name, lambda *_, **__: None)
    made = SimpleNamespace(judged=lambda: None)
    monkeypatch.setattr(tvd_bayes, "tvd_posterior", lambda idata, *_, **__: made)
    monkeypatch.setattr(tvd_bayes, "check_convergence", lambda *_: next(verdicts))
    counts = count_words(np.zeros(2, int), np.array([0, 1]), np.array([3, 2]), n_contexts=1)
    fit = tvd_bayes.WordPairFits(settings, more_draws=more_draws).fit(counts, counts, "a test")
    assert [each["draws"] for each in given] == [100 * times for times in sampled]
    # after divergent draws the steps are shorter
    steps = [0.1 / (2**at if n_divergent else 1) for at in range(len(sampled))]
    np.testing.assert_allclose([1 - each["target_accept"] for each in given], steps)
    assert fit.convergence.passed == passes[-1]
