"""Scores against the length of the context: the same tokens at every length, from the store, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators.rankings.scores import average_score
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import run_experiment
from tests.experiments.tiny_language_models import named
from tests.inference.lm import exact_word_models

pytestmark = pytest.mark.torch

pytest.importorskip("torch")

LENGTHS = (2, 4, 9)


def overrides(root: Path, store: Path, *more: str) -> list[str]:
    return [
        "+exp=context_length",
        f"study.path={root / 'texts'}",
        "model=[]",
        *named(root, "a", "d"),
        f"experiment.lengths={list(LENGTHS)}",
        "experiment.n_windows=6",
        "experiment.n_tokens=5",
        "experiment.window=both",
        "experiment.top_k=7",
        f"experiment.store={store}",
        "output.dpi=40",
        *more,
    ]


@pytest.fixture(scope="module")
def scored(root, tmp_path_factory) -> ExperimentResult:
    return run_experiment(*overrides(root, tmp_path_factory.mktemp("store")))


def test_the_table_follows_from_the_tokens(scored):
    table = scored.table.set_index(["model", "window", "context_length"])
    assert len(table) == 2 * 2 * len(LENGTHS)
    cells = scored.dataset.sel(model="a", window_kind="sliding", context_length=4)
    row = table.loc[("a", "sliding", 4)]
    assert row["n_tokens"] == 30
    assert row["loss_nats"] == pytest.approx(-float(cells["logprob"].mean()))
    assert row["perplexity"] == pytest.approx(np.exp(-float(cells["logprob"].mean())), rel=1e-6)
    rank = cells["rank"].to_numpy()
    assert row["average_top7"] == pytest.approx(average_score(np.where(rank <= 7, rank, np.inf).ravel(), 7).mean())
    assert row["share_outside"] == pytest.approx((rank > 7).mean())
    assert row["reciprocal"] == pytest.approx((1 / rank).mean())
    by_window = (-cells["logprob"]).mean("position").to_numpy()
    # windows of equal size: the clustered standard error is that of their means
    assert row["loss_se_nats"] == pytest.approx(by_window.std(ddof=1) / np.sqrt(6), rel=1e-5)


def test_a_second_run_computes_nothing_and_shards_add_up(root, scored, tmp_path):
    settings = overrides(root, tmp_path / "store", "experiment.window=growing")
    parts = [run_experiment(*settings, f"experiment.shard={i}/2") for i in range(2)]
    assert sum(int(part.table["n_windows"].iloc[0]) for part in parts) == 6
    whole = run_experiment(*settings)
    assert whole.text.count("0 results were computed") == 1
    growing = scored.table[scored.table["window"] == "growing"].reset_index(drop=True)
    np.testing.assert_allclose(whole.table["loss_nats"], growing["loss_nats"], atol=1e-5)


def test_word_models_have_the_same_bits_a_character_at_shared_places(tmp_path):
    for name, save in (("a", exact_word_models.save_by_word), ("b", exact_word_models.save_by_character)):
        save(tmp_path / name)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text(exact_word_models.text(31, seed=3))
    settings = overrides(tmp_path, tmp_path / "store", "experiment.places=characters")
    settings = [text for text in settings if "models." not in text] + named(tmp_path, "a", "b")
    few = ("experiment.lengths=[3]", "experiment.n_windows=4", "experiment.n_tokens=7", "experiment.top_k=3")
    table = run_experiment(*settings, *few).table.set_index(["model", "window"])
    # seven characters hold two words of three
    assert table["n_characters"].tolist() == [24] * 4
    assert table.loc["a", "n_tokens"].tolist() == [8, 8]
    assert table.loc["b", "n_tokens"].tolist() == [24, 24]
    for kind in ("growing", "sliding"):
        bits = table.xs(kind, level="window")["bits_per_character"]
        assert bits["a"] == pytest.approx(bits["b"], abs=1e-4)


def test_temperature_moves_perplexity_and_no_score(scored):
    tempered = scored.dataset["tempered_logprob"].sel(context_length=LENGTHS[-1])
    losses = -tempered.mean(["window", "position"])
    assert (losses.std("temperature") > 0.01).all()
    at_one = tempered.sel(temperature=1.0)
    np.testing.assert_allclose(at_one, scored.dataset["logprob"].sel(context_length=LENGTHS[-1]), atol=1e-4)
