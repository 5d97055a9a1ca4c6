"""``+exp=accuracy`` on a small game, its settings, its gate, and (slow) the public game."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses import with_model_answers
from shannon_game.experiments.guesses.accuracy.players import LanguageModel
from shannon_game.experiments.guesses.accuracy.summary import people_table
from shannon_game.experiments.harness.job import Job
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import COMPILED_FAST, FEW_DIVERGENT, prepared, run_experiment
from tests.experiments.studies.guesses.tiny_top1 import played

SHORT = (*COMPILED_FAST, "sampler.draws=20", "sampler.tune=30", "experiment.n_predictive=40")
SMALL = (
    "experiment.min_answers=30",
    "experiment.n_replicates=100",
    "experiment.practice_starts=[0,20,40]",
    "output.dpi=40",
)

Run = tuple[Job, xr.Dataset, ExperimentResult]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("game"))


def overrides(root: Path, *more: str) -> list[str]:
    return ["+exp=accuracy", f"study.root={root}", *SMALL, *more]


def result_of(root: Path, *more: str) -> tuple[xr.Dataset, ExperimentResult]:
    job = prepared(*overrides(root, *more))
    return job.study, job.run()


@pytest.fixture(scope="module")
def tiny(root: Path, seed_offset: int) -> Run:
    """With a language model that played: right where a participant with its accuracy would be."""
    job = prepared(*overrides(root, *SHORT, "experiment.surprisal=live", f"seed={seed_offset}"))
    rng = np.random.default_rng(0)
    n_items = job.study.sizes["item"]
    hit = (rng.random(n_items) < 0.5).astype(float)
    study = with_model_answers(job.study, "live", hit, rng.gamma(2, 1, n_items))
    return job, study, job.experiment(study, job.settings)


def test_people_who_played_long_and_who_is_below_every_model() -> None:
    right = [True] * 6 + [False] * 4 + [True, False] * 5 + [False] * 3
    who = ["a"] * 10 + ["b"] * 10 + ["c"] * 3
    of = {"visible": np.ones(23, dtype=bool), "word": np.arange(23) < 10}
    models = {"visible": [LanguageModel("m", "visible", "file", 0, 0.55, np.nan, np.nan, None)]}
    table = people_table(right, who, of, models, min_answers=5, many_answers=9, n_unseen=2)
    value = table.set_index(["quantity", "tokens"])["value"]
    assert value["participants with more than so many (9) guesses", "visible"] == 2
    assert value["lowest accuracy of these", "visible"] == 0.5
    assert value["highest accuracy of these", "visible"] == 0.6
    # c has too few guesses to be compared
    assert value["participants with enough guesses below every language model", "visible"] == 1
    assert value["share of the guesses that are on word tokens", "visible"] == pytest.approx(10 / 23)
    assert value["share of the guesses left out because the token shows nothing", "visible"] == pytest.approx(2 / 25)
    assert ("accuracy of the weakest language model", "word") not in value.index


def test_without_a_posterior_only_shares_are_counted(root: Path) -> None:
    study, result = result_of(root, "experiment.posterior=false")
    assert result.table["converged"].isna().all()
    table = result.table
    everybody = table[(table["kind"] == "pooled") & (table["name"] == "everybody")].set_index("tokens")
    assert everybody.loc["visible", "accuracy"] == pytest.approx(float(study["correct"].mean()))
    assert everybody.loc["visible", "n_guesses"] == study.sizes["response"]
    own = table[(table["kind"] == "participant") & (table["tokens"] == "visible")]
    assert own["n_guesses"].sum() == study.sizes["response"]
    assert table["posterior_median"].isna().all()
    # three published accuracies, each with its kind of tokens and 1,000 guesses
    models = table[table["kind"] == "model"].set_index("name")
    assert models["tokens"].to_dict() == {"davinci": "visible", "ada": "visible", "fairseq-125m": "word"}
    assert (models["upper"] - models["lower"]).between(0.045, 0.055).all()
    assert set(result.figures) == {"accuracy", "majority", "practice"}
    assert result.on_screen is not None
    assert "participant" not in set(result.on_screen["kind"])


@pytest.mark.mcmc
def test_the_posterior_in_the_table(tiny: Run) -> None:
    table = tiny[2].table
    people = table[table["p_best"].notna()]
    assert people["p_best"].sum() == pytest.approx(1)
    assert (people["posterior_lower"] < people["posterior_median"]).all()
    assert (people["posterior_median"] < people["posterior_upper"]).all()
    named = table[table["kind"] == "posterior"].set_index("name")["posterior_median"]
    assert named["best participant"] >= people["posterior_median"].max() - 0.02
    assert {"population mean at the first guess", "change by 1,000 guesses"} <= set(named.index)
    assert any("nat of live's surprisal" in name for name in named.index)


@pytest.mark.mcmc
def test_a_language_model_that_played_stands_beside_the_published_ones(tiny: Run) -> None:
    _, study, result = tiny
    models = result.table[result.table["kind"] == "model"].set_index(["name", "tokens"])
    row = models.loc[("live", "visible")]
    assert row["source"] == "played"
    assert row["n_guesses"] == study.sizes["response"]
    assert row["accuracy"] == pytest.approx(
        float(study["model_hit"].sel(model="live", item=study["response_item"]).mean())
    )
    assert row["lower"] < row["accuracy"] < row["upper"]
    assert 0 <= row["p_beats_every_participant"] <= 1
    # comparisons are with the posterior of the same tokens only
    assert np.isnan(models.loc[("live", "word"), "p_beats_every_participant"])
    assert np.isnan(models.loc[("fairseq-125m", "word"), "p_beats_every_participant"])


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("players=[gpt-5]", "davinci, ada, fairseq-125m"),
        ("experiment.min_answers=5000", "nobody gave as many"),
        ("experiment.practice_starts=[5,10]", "rise from 0"),
        ("experiment.surprisal=smollm2", "none in this study"),
    ],
)
def test_mistakes_are_named(override: str, part: str, root: Path) -> None:
    with pytest.raises(InputError, match=part):
        result_of(root, override)


@pytest.mark.slow
def test_the_public_game_s_posterior(lm_game_root: Path) -> None:
    """Converges at the default settings; practice helps; the large models beat everybody, by a margin for chance."""
    result = run_experiment("+exp=accuracy", f"study.root={lm_game_root}", FEW_DIVERGENT)
    assert not result.gate_failed
    table = result.table
    named = table[table["kind"] == "posterior"].set_index("name")
    assert named.loc["change by 1,000 guesses", "posterior_lower"] > 0
    best = named.loc["best participant"]
    assert 0.28 < best["posterior_lower"] < best["posterior_upper"] < 0.42
    beats = table.set_index("name")["p_beats_every_participant"].dropna()
    assert beats["davinci"] > 0.999
    assert beats["gpt-neo-125m"] > 0.85
    observed, predicted = result.dataset["check_observed"], result.dataset["check_predicted"]
    low, high = predicted.quantile([0.005, 0.995], "draw_predicted")
    assert ((low <= observed) & (observed <= high)).all()


def test_words_alone_are_their_own_kind(root: Path) -> None:
    table = result_of(root, "study.items=word_tokens", "experiment.posterior=false", "players=[fairseq-125m]")[1].table
    assert set(table["tokens"]) == {"word"}
    assert table.loc[table["kind"] == "model", "name"].tolist() == ["fairseq-125m"]
