"""Simulated people through the pages, from the served study to the fitted model of participants, beside the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from tests.experiments.command import run_experiment

pytestmark = [pytest.mark.slow, pytest.mark.mcmc]

STUDY = {"n_items": 30, "n_reference_items": 30, "n_candidates": 6, "vocab_size": 80}
FIT = (
    *("sampler.draws=300", "players=[human]", "experiment.sensitivity=false"),
    "experiment.save_posterior=false",
)


def test_what_people_believe_is_found_again_through_server_and_loader(tmp_path: Path, seed_offset: int) -> None:
    """12 people with 26 answers each; an estimate 4 standard errors off is a seed in 1,000 or fewer."""
    url, seed = f"sqlite:///{tmp_path / 'c.sqlite'}", 11 + seed_offset
    given = [f"study.{name}={value}" for name, value in STUDY.items()]
    played = run_experiment(
        "+exp=collect", "study=simulated", *given, f"seed={seed}", "experiment.players=simulated",
        "experiment.game=comparison", "experiment.n_players=12", "experiment.n_questions=26",
        "experiment.training_rounds=0", f"experiment.database={url}",
    )  # fmt: skip
    row = played.table.iloc[0]
    truth = np.log(row["true_perplexity"])
    served = save_comparison_study(simulated(**STUDY, seed=seed), tmp_path / "served.nc")
    collected = ("study=collected", f"study.url={url}", f"study.served={served}", f"seed={seed}")
    direct = run_experiment("+exp=perplexity", *collected, "players=human").table
    exact = direct[direct["rounding"] == "none"].iloc[0]
    assert exact["perplexity"] == pytest.approx(row["perplexity"])
    # two standard errors on either side
    se = np.log(exact["perplexity_upper"] / exact["perplexity_lower"]) / 4
    assert abs(np.log(exact["perplexity"]) - truth) < 4 * se
    fitted = run_experiment("+exp=human_loss", *collected, *FIT).table
    # the truth stands beside every row; so few people say too little of the scale that outcomes anchor,
    # and with the assumed one the truth lies within twice the width of the 90% interval, more than six of its errors
    assert fitted["true_loss_nats"].to_numpy() == pytest.approx(truth, abs=1e-6)
    model = fitted[fitted["what"] == "assumed"].iloc[0]
    width = model["gap_upper_nats"] - model["gap_lower_nats"]
    assert abs(model["gap_median_nats"] - model["true_gap_nats"]) < 2 * width
    assert (fitted["gap_lower_nats"] < fitted["gap_upper_nats"]).all()
