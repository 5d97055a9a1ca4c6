"""``+exp=perplexity vary=extrapolation``: lines that are right, a truth that is missed, and what a run writes."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game import simulated
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
