"""``+exp=groups``: simulated groups at a known distance, tables with groups, and what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import cloze_simulated, groups
from shannon_game.estimators.errors import InputError
from tests.experiments.command import prepared


def test_the_excess_is_near_the_true_distance() -> None:
    study = cloze_simulated(n_items=8, n_answers=3000, vocab_size=10, n_groups=2, group_difference=0.5)
    row = groups(study, n_permutations=99).table.iloc[0]
    truth = float(study["true_group_tvd"].mean())
    # 1,500 people a group and 10 words: a baseline of about .04, part of which a true distance hides
    assert row["excess"] < truth < row["tvd"]
    assert row["tvd"] == pytest.approx(truth, abs=0.02)
    assert row["p_value"] == 0.01


def test_one_population_in_three_groups() -> None:
    study = cloze_simulated(n_items=20, n_answers=30, vocab_size=30, n_groups=3, group_difference=0.0)
    result = groups(study, n_permutations=99)
    assert len(result.table) == 3
    assert result.table["p_value"].min() > 0.02
    assert abs(result.table["excess"]).max() < 0.05
    assert "3 pairs are compared" in result.warnings[-1]
    people = result.tables["people"]
    assert people["n_answers"].sum() == 20 * 30
    np.testing.assert_allclose(people["agreement"], people["agreement_others"], atol=0.05)


def test_a_table_with_a_column_of_groups(tmp_path: Path) -> None:
    rows = [
        {"context_id": f"c{context}", "response": word, "participant": f"p{person}", "participant_group": group}
        for person in range(24)
        for context in range(8)
        for group, word in [("native", ("cat", "dog")[context % 2])]
        if person < 12
    ]
    rows += [
        {"context_id": f"c{c}", "response": "thing", "participant": f"q{p}", "participant_group": "learner"}
        for p in range(12)
        for c in range(8)
    ]
    path = tmp_path / "answers.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    job = prepared("+exp=groups", "study=cloze_table", f"study.path={path}", "experiment.n_permutations=99")
    row = job.run().table.iloc[0]
    assert (row["first"], row["second"], row["tvd"], row["p_value"]) == ("learner", "native", 1.0, 0.01)


def test_a_study_that_names_nobody() -> None:
    with pytest.raises(InputError, match="participant_group: is missing, and so is participant"):
        groups(cloze_simulated(n_items=6, vocab_size=30))
