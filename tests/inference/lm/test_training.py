"""Training beside a plain script, a run that goes on beside one that was never stopped, losses beside closed forms."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.answer_labels import LabelledContext, answer_loss, collate_answers, set_trainable
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.minimal_model import (
    ShapeSettings,
    collate_blocks,
    make_model,
    make_tokenizer,
    token_blocks,
)
from shannon_game.inference.lm.training import Examples, TrainedModel, train_model
from shannon_game.inference.lm.training_settings import TrainingSettings, example_order
from shannon_game.inference.manifest import seal
from tests.experiments.command import environment
from tests.inference.lm import tiny_models
from tests.oracles.training import train_plainly

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SHAPE = ShapeSettings(width=16, n_heads=2, context_tokens=16, vocab_size=300)
SETTINGS = TrainingSettings(
    n_steps=12, batch_size=3, learning_rate=1e-2, warmup_steps=2, log_every=1, save_every=4, device="cpu"
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer(SHAPE, tiny_models.TEXTS)


@pytest.fixture(scope="module")
def blocks(tokenizer: Any) -> list[Any]:
    return list(token_blocks(tokenizer, tiny_models.TEXTS * 2, block_tokens=16))


def trained(folder: Path, tokenizer: Any, blocks: list[Any], **changes: Any) -> TrainedModel:
    shape = SHAPE.changed(dropout=changes.pop("dropout", 0.0))
    return train_model(
        lambda: make_model(shape, tokenizer, seed=5),
        tokenizer,
        Examples(changes.pop("items", blocks), changes.pop("collate", collate_blocks)),
        SETTINGS.changed(**changes),
        folder,
        seed=7,
        held_out=blocks[:4],
    )


def losses(run: TrainedModel, name: str = "loss_nats") -> list[float]:
    return [point[name] for point in run.curves if name in point]


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_losses_are_those_of_a_plain_script(schedule: str, tokenizer: Any, blocks: list[Any], tmp_path: Path) -> None:
    found = trained(tmp_path, tokenizer, blocks, schedule=schedule)
    expected = train_plainly(
        make_model(SHAPE, tokenizer, seed=5),
        blocks,
        example_order(len(blocks), 36, seed=7).tolist(),
        n_steps=12,
        batch_size=3,
        warmup=2,
        highest=1e-2,
        schedule=schedule,
        weight_decay=SETTINGS.weight_decay,
    )
    # the same to rounding; .02 nats is what is promised
    np.testing.assert_allclose(losses(found), expected, atol=1e-4)
    assert expected[0] - expected[-1] > 0.5


class Killed(BaseException):
    """What stops a run."""


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_run_that_goes_on_is_one_that_was_never_stopped(
    dropout: float, tokenizer: Any, blocks: list[Any], tmp_path: Path
) -> None:
    whole = trained(tmp_path / "whole", tokenizer, blocks, dropout=dropout)
    n_collated = 0

    def collate(some: list[Any]) -> dict[str, Any]:
        nonlocal n_collated
        n_collated += 1
        # six steps, and two held-out batches before the first and at one checkpoint
        if n_collated == 10:
            raise Killed
        return collate_blocks(some)

    with pytest.raises(Killed):
        trained(tmp_path / "parts", tokenizer, blocks, dropout=dropout, collate=collate)
    # a checkpoint that was cut off stands beside the whole one
    cut_off = tmp_path / "parts/.shannon-game-checkpoints/checkpoint-8"
    shutil.copytree(tmp_path / "parts/.shannon-game-checkpoints/checkpoint-4", cut_off)
    (cut_off / "trainer_state.json").unlink()
    # and one whose weights were damaged
    damaged = cut_off.with_name("checkpoint-6")
    shutil.copytree(cut_off.with_name("checkpoint-4"), damaged)
    state = json.loads((damaged / "trainer_state.json").read_text())
    (damaged / "trainer_state.json").write_text(json.dumps(state | {"global_step": 6}))
    seal(damaged)
    flip(damaged / "model.safetensors")
    parts = trained(tmp_path / "parts", tokenizer, blocks, dropout=dropout)
    assert (whole.n_steps_now, parts.n_steps_now) == (12, 8)
    assert [point.keys() for point in parts.curves] == [point.keys() for point in whole.curves]
    assert [point["step"] for point in parts.curves] == [point["step"] for point in whole.curves]
    np.testing.assert_allclose(losses(parts), losses(whole), rtol=1e-4)
    one, other = (safetensors.numpy.load_file(run.folder / "model.safetensors") for run in (whole, parts))
    assert one.keys() == other.keys()
    # a step moves a weight by up to the learning rate, .01
    for name, weight in one.items():
        np.testing.assert_allclose(other[name], weight, rtol=0, atol=1e-4)
    again = trained(tmp_path / "parts", tokenizer, blocks, dropout=dropout)
    assert (again.n_steps_now, again.curves) == (0, parts.curves)
    flip(whole.folder / "model.safetensors")
    with pytest.raises(InputError, match="has changed since it was trained"):
        trained(tmp_path / "whole", tokenizer, blocks, dropout=dropout)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_accumulated_gradients_are_those_of_larger_batches(tokenizer: Any, blocks: list[Any], tmp_path: Path) -> None:
    at_once = trained(tmp_path / "a", tokenizer, blocks, batch_size=4, n_steps=4)
    parts = trained(tmp_path / "b", tokenizer, blocks, batch_size=2, n_accumulated=2, n_steps=4)
    np.testing.assert_allclose(losses(parts), losses(at_once), atol=1e-4)


def test_blocks_are_the_texts_one_after_another(tokenizer: Any) -> None:
    flat = token_blocks(tokenizer, ["The old clock.", "Rain fell on the roof."], block_tokens=3).ravel().tolist()
    text = tokenizer.decode(flat)
    assert "<|endoftext|>The old clock.<|endoftext|>Rain fell on the roof.".startswith(text)
    with pytest.raises(InputError, match="too few for one block of 500"):
        token_blocks(tokenizer, ["short"], block_tokens=500)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    folder = tmp_path_factory.mktemp("model")
    tiny_models.save(folder, "llama", tiny_models.byte_level(), seed=3)
    return tiny_models.load(folder, bos=tiny_models.END)


def labelled(model: LanguageModel) -> list[LabelledContext]:
    """Contexts that begin alike, words of several tokens that begin alike."""
    texts = ["The old clock", "The old clock in the", "Rain"]
    words = [{" in": 0.5, " inside": 0.3, " struck": 0.2}, {" hall": 1.0}, {" fell": 0.6, " fe": 0.4}]
    return [
        LabelledContext(
            (int(model.bos_id or 0), *encode(model, [text])[0]),
            tuple(tuple(encode(model, [word])[0]) for word in its),
            tuple(its.values()),
        )
        for text, its in zip(texts, words, strict=True)
    ]


def test_soft_labels_cost_their_cross_entropy(model: LanguageModel) -> None:
    """One sequence after another, in plain passes."""
    contexts = labelled(model)
    expected = 0.0
    for context in contexts:
        for word, share in zip(context.words, context.shares, strict=True):
            log_probs = model.module(torch.tensor([[*context.tokens, *word]])).logits[0].log_softmax(-1)
            at = len(context.tokens) - 1
            expected -= share * sum(float(log_probs[at + i, token]) for i, token in enumerate(word))
    batch = collate_answers([contexts[:2], contexts[2:]])
    labels = batch.pop("labels")
    found = answer_loss(model.module(**batch).logits.float(), labels)
    assert float(found) == pytest.approx(expected / 3, abs=1e-4)


@pytest.mark.subprocess
def test_two_processes_do_not_train_in_one_folder(tmp_path: Path, tokenizer: Any, blocks: list[Any]) -> None:
    hold = "import sys; from pathlib import Path; from shannon_game.inference.own_folder import own\n"
    hold += "with own(Path(sys.argv[1])):\n    print('mine', flush=True)\n    sys.stdin.read()"
    folder = tmp_path / "run"
    folder.mkdir()

    with subprocess.Popen(
        [sys.executable, "-c", hold, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "mine\n"
        with pytest.raises(InputError, match=f"run, store: process {other.pid} on .* writes there"):
            trained(folder, tokenizer, blocks, n_steps=1)
        other.stdin.close()
        other.wait(timeout=60)
    assert trained(folder, tokenizer, blocks, n_steps=1).n_steps_now == 1
    assert sorted(path.name for path in folder.iterdir()) == ["model"]


def test_what_trains(model: LanguageModel) -> None:
    module = model.module
    n_all = set_trainable(module, "all")
    n_last = set_trainable(module, "last_blocks", n_last_blocks=1)
    n_norms = set_trainable(module, "last_norms", n_last_blocks=1)
    names = {name for name, its in module.named_parameters() if its.requires_grad}
    # two of the last block and the one after it, 32 numbers each
    assert n_norms == 96
    assert names == {
        "model.layers.1.input_layernorm.weight",
        "model.layers.1.post_attention_layernorm.weight",
        "model.norm.weight",
    }
    assert n_norms < n_last < n_all == module.num_parameters()
    with pytest.raises(InputError, match="the module has 2 blocks"):
        set_trainable(module, "last_norms", n_last_blocks=3)
    with pytest.raises(InputError, match="trainable"):
        set_trainable(module, "some")
    module.requires_grad_(requires_grad=False)
