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

from shannon_game import cloze_simulated, cloze_study, improve, tvd
from shannon_game.estimators.cloze.distributions import count_words
from shannon_game.estimators.cloze.split_halves import random_split_halves
from shannon_game.estimators.cloze.tvd_bias import tvd_with_baseline
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.settings import words_of
from shannon_game.experiments.cloze.tvd import posterior as tvd_bayes
from shannon_game.experiments.cloze.tvd.figures import differences_figure, full_panels, reliability_figure, tvd_figure
from shannon_game.experiments.cloze.tvd.posterior import WordPairFits
from shannon_game.experiments.cloze.tvd.results import part_counts
from shannon_game.experiments.harness.bayes import BayesianSettings
from shannon_game.experiments.harness.job import Job
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.settings import rng_for
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


@pytest.mark.mcmc
def test_the_baseline_stands_beside_every_raw_distance(seed_offset: int) -> None:
    table = first_run("tvd", seed_offset)[1].table.set_index("player")
    assert table.index.tolist() == ["half_of_people", "mixture"]
    assert (table["tvd_between_oracles"] > 0.3).all()
    assert (table["tvd"] > table["tvd_bayes"]).all()
    assert (table["tvd_bayes_lower"] < table["tvd_bayes_upper"]).all()
    assert np.isfinite(table.filter(like="ece_").to_numpy()).all()


@pytest.mark.parametrize("words", [{}, {"rules": "none"}, {"blank": "keep"}])
def test_without_targets_there_is_no_calibration_to_the_corpus(words: dict[str, str]) -> None:
    people = {"context": ["A", "The"] * 6, "response": ["cat", "dog", "cat", "", "cow", "dog"] * 2, "model": ""}
    model = {"context": ["A", "The"] * 2, "response": ["cat", "dog", "cow", ""], "model": "m"}
    study = cloze_study(pd.concat([pd.DataFrame(people), pd.DataFrame(model)]))
    table = tvd(study, words=words, n_splits=2, bayes={"n_contexts": None}).table.set_index("player")
    assert table[["ece_corpus_fixed", "ece_corpus_adaptive"]].isna().all(axis=None)
    assert table.loc["m", ["ece_human_fixed", "ece_human_adaptive"]].notna().all()


def test_an_odd_answer_is_left_out_anew_in_every_split() -> None:
    """What the halves are dealt from differs by split, and so does their baseline."""
    odd = ["study.n_answers=11", "experiment.n_splits=7"]
    job = prepared("+exp=tvd", *SIMULATED, *odd)
    result = job.run()
    human = words_of(job.settings, job.study, []).answers()  # type: ignore[arg-type]
    splits = random_split_halves(human, n_splits=7, rng=rng_for(0, "oracles"))
    each = [tvd_with_baseline(part_counts(splits, at, "second"), part_counts(splits, at, "first")) for at in range(7)]
    baselines = np.array([one.baseline for one in each])
    assert np.ptp(baselines, axis=0).max() > 0.01
    found = result.dataset.sel(player="half_of_people")
    np.testing.assert_allclose(found["tvd_baseline"], baselines.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found["tvd_corrected"], np.mean([one.corrected for one in each], axis=0), atol=1e-12)


@pytest.mark.parametrize("rows", ["A b,x\nA b,\nC d,y\nC d,NA\n", "A b,x\nA b,z\nC d,y\n"])
def test_people_have_to_have_answered_two_contexts_twice(rows: str, tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("context,response\n" + rows)
    columns = ["study.columns={context: context, response: response}"]
    missing = ["study.missing=[NA]"]
    with pytest.raises(InputError, match=r"cloze study 'few': has [01] contexts with two answers"):
        run_experiment("+exp=tvd", "study=cloze_table", f"study.path={path}", *columns, *missing)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["+exp=reproduce", "experiment.of=tvd", *SIMULATED], "holds no stored results"),
        (["+exp=reproduce", "experiment.of=improve", *SIMULATED], "study: has no list"),
        (["+exp=tvd", "players=[gpt9]", *SIMULATED], "unknown model 'gpt9'; choose one of: mixture, factors"),
        (
            ["+exp=tvd", "experiment.words.rules=cleen", *SIMULATED],
            "words.rules: unknown word rules 'cleen'",
        ),
        (["+exp=tvd", "study=simulated"], "study: is 'simulated', a comparison study; tvd needs a cloze study"),
        (["+exp=tvd", "n=[100]", *SIMULATED], "needs at least twice the largest number"),
        (["+exp=tvd", "experiment.item=9:9", *SIMULATED], "no such context and no text '9'"),
        (["+exp=tvd", "experiment.item=1:99", *SIMULATED], "text 1 has the words 2 to 3: TEXT:WORD"),
        (["+exp=tvd", "experiment.item=[]", *SIMULATED], "experiment.item: "),
        (["+exp=tvd", "experiment.item=1", "n=[3]", *SIMULATED], "one of them at a time"),
    ],
)
def test_mistakes(overrides: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_experiment(*overrides)


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


def test_a_notebook_gives_the_numbers_of_the_command() -> None:
    sizes = {"n_items": 6, "items_per_text": 2, "n_answers": 12, "vocab_size": 40, "n_samples": 30}
    study = cloze_simulated(**sizes)
    for made, overrides in (
        (tvd(study, n_splits=3), ["+exp=tvd", "experiment.n_splits=3"]),
        (
            improve(study, margins=0.02, n_replicates=50),
            ["+exp=improve", *TINY["improve"][-1:], "experiment.margins=.02"],
        ),
        (tvd(study, n=[3, 6]), ["+exp=tvd", "n=[3,6]"]),
        (tvd(study, item=["1:2", "2"]), ["+exp=tvd", "experiment.item=['1:2','2']"]),
    ):
        pd.testing.assert_frame_equal(made.table, run_experiment(*overrides, *SIMULATED).table)


@pytest.mark.parametrize(
    ("more_draws", "passes", "sampled"),
    [(4, [True], [1]), (4, [False, True], [1, 4]), (4, [False] * 3, [1, 4, 8]), (1, [False], [1])],
)
def test_what_misses_the_gate_is_sampled_longer_twice_at_most(
    more_draws: int, passes: list[bool], sampled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []
    accepted: list[float] = []
    verdicts = iter(passes)

    def draw_posterior(settings: Any, model: Any, purpose: str, *, times_draws: int, target_accept: float) -> int:
        times.append(times_draws)
        accepted.append(target_accept)
        return times_draws

    monkeypatch.setattr(tvd_bayes.bayes, "draw_posterior", draw_posterior)
    monkeypatch.setattr(tvd_bayes, "group", lambda idata, name: idata)
    monkeypatch.setattr(
        tvd_bayes, "tvd_posterior", lambda idata, data, rng: SimpleNamespace(idata=idata, judged=lambda: idata)
    )
    monkeypatch.setattr(
        tvd_bayes, "check_convergence", lambda idata, gate: SimpleNamespace(passed=next(verdicts), n_divergent=3)
    )
    counts = count_words(np.zeros(2, int), np.array([0, 1]), np.array([3, 2]), n_contexts=1)
    settings = BayesianSettings(sampler="pymc")
    fit = WordPairFits(settings, more_draws=more_draws).fit(counts, counts, "a test")
    posterior, found = fit.posterior, fit.convergence
    assert times == sampled
    # after divergent draws the steps are shorter
    np.testing.assert_allclose([1 - accept for accept in accepted], 0.1 / 2.0 ** np.arange(len(sampled)))
    assert posterior.idata == sampled[-1]
    assert found.passed == passes[-1]
