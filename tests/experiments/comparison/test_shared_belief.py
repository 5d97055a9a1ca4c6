"""``+exp=shared_belief``: where its scale comes from, and what a run writes."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game import shared_belief
from shannon_game.estimators.comparison.examples import repeated_study


def test_where_the_scale_comes_from() -> None:
    study = repeated_study()
    answered, given = shared_belief(study).table.iloc[0], shared_belief(study, slope=2.0).table.iloc[0]
    assert (answered["slope_from"], given["slope_from"]) == ("free answers", "settings")
    assert answered["variance_nats2"] * answered["slope"] ** 2 == pytest.approx(given["variance_nats2"] * 4)
    silent = study.drop_dims("answer").drop_vars(["candidate_batch"])
    reports = shared_belief(silent)
    assert reports.table["slope_from"].tolist() == ["reports"]


def test_what_is_said_of_one_belief() -> None:
    study = repeated_study()
    shuffled = study["report"].to_numpy().copy()
    rng = np.random.default_rng(2)
    # who reported what within an item is drawn anew: nobody has a view of their own
    for item in np.unique(study["response_item"]):
        rows = np.flatnonzero(study["response_item"].to_numpy() == item)
        for token in np.unique(study["response_candidate"].to_numpy()[rows]):
            same = rows[study["response_candidate"].to_numpy()[rows] == token]
            shuffled[same] = shuffled[rng.permutation(same)]
    result = shared_belief(study.assign(report=("response", shuffled)))
    assert result.table["p_shared"].iloc[0] > 0.05
    assert "may share one belief" in result.text
