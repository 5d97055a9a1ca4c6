"""``+exp=perplexity vary=extrapolation``: lines that are right, a truth that is missed, and what a run writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game import lm_game, simulated
from shannon_game.experiments.comparison.extrapolation import extrapolation


def test_an_extrapolation_can_be_certain_and_wrong() -> None:
    study = simulated(n_items=200, n_participants=30, vocab_size=500, n_candidates=60)
    table = extrapolation(study, n_replicates=200).table
    people = table[table["player"] == "human"].set_index("degree").loc[1]
    asked = study.sel(item=np.unique(study["response_item"]))
    assert people["true_loss_nats"] == pytest.approx(-float(asked["human_target_logprob"].mean()))
    # people's score is among those of the models, and the line still misses their loss by most of a nat
    assert not people["outside"]
    assert people["error_nats"] < -0.5
    assert not people["inside"]
    # so it does every model that it is not fitted to
    assert (table[table["player"] != "human"]["error_nats"].abs() > 0.5).all()


def test_the_public_answers(lm_game_root: Path) -> None:
    result = extrapolation(lm_game(root=lm_game_root), n_replicates=100)
    table = result.table.set_index(["player", "degree"])
    # true losses on the 120 questions
    assert table.loc[("14M", 1), "true_loss_nats"] == pytest.approx(4.015328, abs=1e-6)
    assert abs(table.loc[("14M", 1), "error_nats"]) > 0.3
    assert np.isnan(table.loc[("human", 1), "true_loss_nats"])
