"""``+exp=rank_bounds`` on a tiny copy of the archives and on a study that can be counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game import rank_bounds
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.rankings import guess_bounds
from shannon_game.estimators.rankings.examples import ranking_study
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.rankings.rank_bounds import RANK_BOUND_COLUMNS
from tests.experiments.command import config, prepared
from tests.experiments.studies.rankings import tiny_ranks


def test_what_a_run_writes(tmp_path: Path) -> None:
    root = tiny_ranks.write(tmp_path / "ranks")
    arguments = ("+exp=rank_bounds", f"study.root={root}", "experiment.vocab_size=50000", "output.dpi=40")
    job = prepared(*arguments)
    result = job.run()
    table = result.table
    assert tuple(table.columns) == RANK_BOUND_COLUMNS
    assert set(table["model"]) == set(tiny_ranks.MODELS)
    assert (table["lower_nats"] <= table["upper_nats"]).all()
    np.testing.assert_allclose(table["upper_bits"], table["upper_nats"] / np.log(2))
    whole = table[table["context_length"] == 0].set_index("model")
    rest = table[table["context_length"] > 0].groupby("model")["n_tokens"].sum()
    assert whole["n_tokens"].to_dict() == rest.to_dict()
    write_outputs(tmp_path, config(*arguments), job.study, result)
    assert (tmp_path / "figures" / "rank_bounds.png").is_file()


def test_the_bounds_are_those_of_the_ranks() -> None:
    study = ranking_study()
    table = rank_bounds(study, vocab_size=100).table
    own = (study["model"] == "large").to_numpy() & (study["context_length"] == 8).to_numpy()
    rank = study["reference_rank"].to_numpy()[own]
    expected = guess_bounds(rank, item=study["text"].to_numpy()[own], n_tried=3, vocab_size=100)
    row = table[(table["model"] == "large") & (table["context_length"] == 8)].iloc[0]
    for name in ("lower_nats", "lower_se_nats", "upper_nats", "upper_se_nats"):
        assert row[name] == pytest.approx(getattr(expected, name))
    assert row["top_1"] == pytest.approx((rank == 1).mean())


def test_without_a_vocabulary_there_is_no_upper_bound() -> None:
    result = rank_bounds(ranking_study())
    assert result.table["upper_nats"].isna().any()
    assert any("needs experiment.vocab_size" in text for text in result.warnings)
    assert "unknown" in result.text
    with pytest.raises(InputError, match="vocab_size: is 3, should be at least 4"):
        rank_bounds(ranking_study(), vocab_size=3)
    with pytest.raises(InputError, match="tie: is 'middle'"):
        rank_bounds(ranking_study(), tie="middle")
