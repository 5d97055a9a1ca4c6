"""A tiny decoder trained by the command: outputs, splits, a second run, and the model as a player."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import config, prepared, run_experiment
from tests.experiments.tiny_language_models import write_texts

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SHAPE = "experiment.shape={width: 16, n_heads: 2, context_tokens: 32, vocab_size: 300}"


def overrides(root: Path, *more: str) -> list[str]:
    return [
        "+exp=train",
        "study=texts",
        f"study.path={root / 'texts'}",
        f"experiment.store={root / 'store'}",
        SHAPE,
        *("experiment.n_steps=20", "experiment.batch_size=2", "experiment.learning_rate=1e-2", "output.dpi=40"),
        *("experiment.log_every=5", "experiment.save_every=10", "experiment.warmup_steps=2", "experiment.ngram=3"),
        *more,
    ]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    write_texts(folder / "texts", 8)
    # a document of training with one more word
    copy = (folder / "texts/train/text1.txt").read_text(encoding="utf-8")
    (folder / "texts/test/copy.txt").write_text(f"{copy} again", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def found(root: Path) -> ExperimentResult:
    return run_experiment(*overrides(root))


def test_a_row_a_split_and_loss_curves(found: ExperimentResult) -> None:
    assert sorted(found.table["split"]) == ["test", "train"]
    assert found.table["n_parameters"].unique().tolist() == [11_904]
    curves = found.tables["curves"]
    assert curves["step"].tolist() == [0, 5, 10, 15, 20]
    assert curves["held_out_loss_nats"].notna().tolist() == [True, False, True, False, True]
    assert curves["held_out_loss_nats"].iloc[-1] < curves["held_out_loss_nats"].iloc[0]
    # a text of random words is learned as far as its words' frequencies; ln 300 is 5.70
    np.testing.assert_array_less(found.table["loss_nats"], 5.6)


def test_a_copy_of_a_training_document_is_found(found: ExperimentResult) -> None:
    overlap = found.tables["overlap"].set_index("document")["ngram_overlap"]
    assert overlap["test/copy.txt"] == pytest.approx(28 / 29, abs=0.04)
    assert overlap.drop("test/copy.txt").max() < 0.2
    assert any("stand in the training documents too" in text for text in found.warnings)


def test_a_second_run_trains_nothing_and_gives_the_same(root: Path, found: ExperimentResult) -> None:
    again = run_experiment(*overrides(root))
    assert "20 steps (0 of them in this run)" in again.text
    pd.testing.assert_frame_equal(again.table, found.table)


def test_the_model_plays_where_others_do(root: Path, found: ExperimentResult, tmp_path: Path) -> None:
    job = prepared(*overrides(root))
    write_outputs(tmp_path, config(*overrides(root)), job.study, found, settings=job.settings)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {p.name for p in (tmp_path / "model").iterdir()}
    assert (tmp_path / "figures/loss_curves.png").stat().st_size > 1000
    assert (tmp_path / "curves.csv").is_file()
    play = ["model=[local]", f"models.local.path={tmp_path / 'model'}", f"experiment.store={root / 'store'}"]
    scored = run_experiment(
        "+exp=surprisal", "study=texts", f"study.path={root / 'texts'}", *play, "experiment.window=32"
    ).table.set_index("split")
    # the same documents: those of both splits
    expected = found.table.set_index("split")["loss_nats"]
    assert scored.loc["train", "loss_nats"] == pytest.approx(expected["train"], abs=1e-5)
    built = run_experiment(
        *("+exp=build_study", "study=texts", f"study.path={root / 'texts'}", *play),
        *("generator=study", "generator.name=local", "experiment.n_contexts=4"),
        *("experiment.min_context_tokens=4", "experiment.max_context_tokens=20"),
    )
    assert len(built.table)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("experiment.train_split=val", "unknown split 'val'"),
        ("experiment.shape.context_tokens=5000", "too few for one block of 5000"),
        ("experiment.learning_rate=1e30", "the loss is not finite"),
    ],
)
def test_what_is_wrong_is_said(root: Path, override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_experiment(*overrides(root, override))
