"""``+exp=bet_perplexity`` at a tiny size: what is in the table, the figures, the report, and what users get wrong."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game import bet_perplexity
from shannon_game.estimators.bets import bet_losses
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import COMPILED_FAST, FEW_DIVERGENT, prepared, run_experiment

TINY_BETS = ("study.n_items=20", "study.n_participants=6", "study.n_answers=10", "study.vocab_size=60", "output.dpi=40")
SHORT = (*COMPILED_FAST, "sampler.draws=100", "sampler.tune=150", FEW_DIVERGENT)


def overrides(*more: str) -> list[str]:
    return ["+exp=bet_perplexity", *TINY_BETS, *more]


@pytest.fixture(scope="module")
def result(seed_offset: int) -> ExperimentResult:
    return run_experiment(*overrides(*SHORT, f"seed={seed_offset}", "experiment.allow_unconverged=true"))


def test_without_a_posterior() -> None:
    job = prepared(*overrides("experiment.posterior=false"))
    result = job.run()
    table = result.table
    assert table["kind"].tolist() == ["bets"] * 3 + ["floor", "committee", "shannon", "shannon", "model", "model"]
    people = table[table["kind"] == "bets"].set_index("back_off")
    for name in ("generator", "text", "uniform"):
        assert people.loc[name, "loss_nats"] == pytest.approx(bet_losses(job.study, name, vocab_size=60).mean())
    np.testing.assert_allclose(people["perplexity"], np.exp(people["loss_nats"].astype(float)))
    low, high = table.loc[table["kind"] == "shannon", "loss_nats"]
    assert 0 < low < high
    participants = result.tables["participants"]
    assert participants["n_responses"].tolist() == [10] * 6
    # what somebody's capital has become says their mean loss
    own = np.log(60) - participants["log_capital"] / participants["n_responses"]
    np.testing.assert_allclose(own, participants["loss_nats_generator"])
    assert result.tables["items"]["n_responses"].sum() == 60
    assert result.dataset["bin_n_stakes"].sum() == 60 * 6
    assert set(result.figures) == {"bets", "calibration"}


@pytest.mark.mcmc
def test_recalibrated_stakes_stand_in_the_table(result: ExperimentResult) -> None:
    row = result.table[result.table["kind"] == "recalibrated"].iloc[0]
    assert (row["back_off"], row["n_responses"]) == ("generator", 60)
    assert np.isfinite(row[["loss_nats", "loss_se_nats", "gap_nats", "gap_se_nats"]].astype(float)).all()
    numbers = result.dataset.attrs
    # it flatters to see the answers
    assert numbers["seen_loss_nats_median"] < row["loss_nats"] + 0.05
    raw = result.table[(result.table["kind"] == "bets") & (result.table["back_off"] == "generator")].iloc[0]
    assert numbers["gain_nats"] == pytest.approx(raw["loss_nats"] - row["loss_nats"])
    participants = result.tables["participants"]
    assert (participants["exponent_lower"] < participants["exponent_upper"]).all()
    assert set(result.figures) == {"bets", "calibration", "recalibration"}
    assert set(result.posteriors) == {"recalibration"}


def test_zero_stakes_are_refused_or_counted() -> None:
    study = bet_study().copy(deep=True)
    study["other_stake"].values[1] = 0
    study["bet_stake"].values[2:4] = [0.75, 0.25]
    with pytest.raises(InputError, match="is infinite at answer 1"):
        bet_perplexity(study, posterior=False)
    result = bet_perplexity(study, posterior=False, zero="count")
    assert result.table.loc[0, ["n_zero", "n_responses"]].tolist() == [1, 5]
    assert any("put nothing on the word that came" in text for text in result.warnings)
    assert np.isposinf(result.tables["items"].loc[1, "loss_nats_lm"])
