"""Models from strangers: whatever their files say, loading ends, in one line, and unpickles nothing."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import SafetensorError

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.next_token import next_token_distributions
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.manifest import MANIFEST
from tests.inference.lm import tiny_models

pytestmark = pytest.mark.torch

Spoil = Callable[[Path], object]
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


class Trap:
    """Writes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("unpickled", "w"))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save(tmp_path_factory.mktemp("hostile") / "gpt2", "gpt2", tiny_models.byte_level())


@pytest.fixture
def folder(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(pristine, tmp_path / "model"))


def put(name: str, content: str | bytes) -> Spoil:
    """Put this into a file."""
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def change(name: str, **fields: Any) -> Spoil:
    """Change fields of a JSON file."""

    def spoil(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return spoil


def config(**fields: Any) -> Spoil:
    return change("config.json", **fields)


def shards(*names: Any) -> Spoil:
    """Move the weights to weights.bin and ../other.safetensors, and let an index name these files."""

    def spoil(folder: Path) -> None:
        from safetensors.torch import load_file

        weights = list(load_file(folder / WEIGHTS))
        shutil.copy(folder / WEIGHTS, folder.parent / "other.safetensors")
        (folder / WEIGHTS).rename(folder / "one.safetensors")
        (folder / "weights.bin").write_bytes(pickle.dumps(Trap()))
        shutil.copy(folder / "weights.bin", folder / "pytorch_model.bin")
        placed = {weight: names[i % len(names)] for i, weight in enumerate(weights)} if names else {}
        (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": placed}))

    return spoil


def both(first: Spoil, second: Spoil) -> Spoil:
    return lambda folder: (first(folder), second(folder))


def pipe(name: str) -> Spoil:
    """A pipe in place of a file: who reads it waits for ever."""

    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return spoil


def header(content: bytes | dict[str, Any], *, length: int | None = None, after: bytes = b"\0" * 64) -> Spoil:
    """A safetensors file with this header."""
    written = content if isinstance(content, bytes) else json.dumps(content).encode()
    return put(WEIGHTS, struct.pack("<Q", len(written) if length is None else length) + written + after)


def tensor(shape: list[Any], start: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def weights(edit: Callable[[dict[str, Any]], None]) -> Spoil:
    """Change the weights themselves."""

    def spoil(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        found = load_file(folder / WEIGHTS)
        edit(found)
        save_file(found, folder / WEIGHTS, metadata={"format": "pt"})

    return spoil


def zeros(found: dict[str, Any]) -> None:
    for tensor in found.values():
        tensor.zero_()


def tokenizer(**model: Any) -> Spoil:
    """Change the model of the tokenizer."""

    def spoil(folder: Path) -> None:
        path = folder / "tokenizer.json"
        described = json.loads(path.read_text())
        described["model"] |= model
        path.write_text(json.dumps(described))

    return spoil


NO_SUCH_TOKEN = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "nosuch", "type_id": 0}}],
    "pair": [],
    "special_tokens": {},
}
DAMAGED = r"model.safetensors: is damaged or no safetensors file"
FOREIGN = r"index.json, transformer\S+: names .*should name a .safetensors file of this folder"


def pickled(folder: Path) -> None:
    """Weights in a pickle, as they were before safetensors."""
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))


def own_code(folder: Path) -> None:
    config(model_type="mine", auto_map={"AutoConfig": "c.C", "AutoModelForCausalLM": "m.M"})(folder)
    for name in ("c.py", "m.py"):
        (folder / name).write_text("raise SystemExit('this code was run')")


HOSTILE: dict[str, tuple[Spoil, str]] = {
    "no folder": (shutil.rmtree, "there is no such folder"),
    "pickled": (pickled, "has neither model.safetensors nor .*pickled weights .* are not read"),
    "own code": (own_code, "needs Python code of its repository, which is never run here"),
    # what the index names
    "index: pickled": (shards("weights.bin"), FOREIGN),
    "index: above": (shards("../other.safetensors"), FOREIGN),
    "index: absolute": (shards("/tmp/other.safetensors"), FOREIGN),
    "index: null character": (shards("one.safetensors\0.bin"), FOREIGN),
    "index: missing file": (shards("two.safetensors"), "two.safetensors: is not a file"),
    "index: a weight twice": (
        both(
            shards("one.safetensors", "two.safetensors"),
            lambda folder: shutil.copy(folder / "one.safetensors", folder / "two.safetensors"),
        ),
        r"two.safetensors, transformer\S+: is in two files",
    ),
    "config names weights": (config(transformers_weights="../other.safetensors"), "transformers_weights: names other"),
    "adapter": (put("adapter_config.json", '{"base_model_name_or_path": "../x"}'), "adapter_config.json: belongs to"),
    "config: quantised": (config(quantization_config={"quant_method": "gptq", "bits": 4}), "`pip install "),
    # config.json
    "config: not UTF-8": (put("config.json", b'{"a": "\xff"}'), "config.json: is not valid JSON"),
    "config: one block more": (config(n_layer=3), "has no weights for transformer.h.2"),
    "config: other shapes": (config(n_inner=50), "has weights of another shape for transformer.h.0.mlp"),
    "config: pipe": (pipe("config.json"), "config.json: is not a file"),
    "config: vocabulary": (config(vocab_size=10**9), "config.json: asks for 32,000,028,544 numbers"),
    "config: layers": (config(n_layer=10**9), "config.json, n_layer: is 1e.09; the files hold 28 weights"),
    # the header of the weights
    "weights: a pickle": (put(WEIGHTS, pickle.dumps(Trap())), DAMAGED),
    "weights: header beyond the file": (header({}, length=2**40), DAMAGED),
    "weights: overlap": (header({"a": tensor([8], 0, 32), "b": tensor([8], 16, 48)}, after=b"\0" * 48), DAMAGED),
    "weights: shape that overflows": (header({"a": tensor([2**40, 2**40], 0, 64)}), DAMAGED),
    "weights: zeros": (weights(zeros), "no output embedding, or one of zeros"),
    # the tokenizer
    "tokenizer: none": (lambda folder: (folder / "tokenizer.json").unlink(), "the tokenizer of .* cannot be loaded"),
    "tokenizer: negative token": (tokenizer(vocab={"a": -1}), "the tokenizer of .* cannot be loaded: \\w"),
    # what tokenizers gives up with is no Exception
    "tokenizer: panic in the normaliser": (
        change("tokenizer.json", normalizer={"type": "Precompiled", "precompiled_charsmap": "AA=="}),
        "the tokenizer of ",
    ),
    "tokenizer: panic at the first text": (
        change("tokenizer.json", post_processor=NO_SUCH_TOKEN),
        "cannot be loaded: no entry found for key",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_model_that_is_not_what_it_says_is_refused_in_one_line(name: str, folder: Path) -> None:
    spoil, message = HOSTILE[name]
    spoil(folder)
    with pytest.raises(InputError, match=message) as caught:
        tiny_models.load(folder)
    told = str(caught.value)
    assert "\n" not in told
    assert len(told) < 800
    assert str(folder) in told
    assert not Path("unpickled").exists()


def test_weights_in_two_files_are_those_of_one_file(folder: Path, pristine: Path) -> None:
    """And pickled files beside them are not read."""
    import torch
    from safetensors.torch import load_file, save_file

    found = load_file(folder / WEIGHTS)
    shards("a.safetensors", "b.safetensors")(folder)
    placed = json.loads((folder / INDEX).read_text())["weight_map"]
    for name in ("a.safetensors", "b.safetensors"):
        save_file({weight: found[weight] for weight in found if placed[weight] == name}, folder / name)
    for name in ("tf_model.h5", "flax_model.msgpack", "model.pt", "training_args.bin"):
        (folder / name).write_bytes(pickle.dumps(Trap()))
    model, plain = tiny_models.load(folder), tiny_models.load(pristine)
    state, expected = model.module.state_dict(), plain.module.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    # memory lies elsewhere, and a product of matrices may take another path
    contexts = encode(plain, ["The old clock"])
    both = (next_token_distributions(m, contexts, whole=True)["logprob"] for m in (model, plain))
    np.testing.assert_allclose(*both, atol=1e-4, rtol=0)
    assert not Path("unpickled").exists()
    before = model.identity
    placed_in_a = {weight: found[weight] for weight in found if placed[weight] == "a.safetensors"}
    save_file({weight: 2 * numbers for weight, numbers in placed_in_a.items()}, folder / "a.safetensors")
    assert tiny_models.load(folder).identity != before


def test_numbers_that_are_none_are_refused_where_they_are_used(folder: Path) -> None:
    weights(lambda found: found["transformer.wte.weight"].fill_(float("nan")))(folder)
    with pytest.raises(InputError, match="gives numbers that are none"):
        next_token_distributions(tiny_models.load(folder), [[1, 2]])


CHANGES: dict[str, Spoil] = {
    "layer norm": config(layer_norm_epsilon=0.1),
    "one number of the weights": weights(lambda found: found["transformer.wte.weight"][5, 5].add_(1e-3)),
    "merges": lambda folder: tokenizer(
        merges=json.loads((folder / "tokenizer.json").read_text())["model"]["merges"][:-1]
    )(folder),
    "special tokens": change("tokenizer_config.json", eos_token="a"),
    "special tokens in a text": change("tokenizer_config.json", split_special_tokens=True),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_model_in_the_same_folder_has_another_identity(what: str, folder: Path) -> None:
    before = tiny_models.load(folder).identity
    (folder / "README.md").write_text("decides nothing")
    assert tiny_models.load(folder, name="other", tokens_per_batch=7, logits_mib=3).identity == before
    CHANGES[what](folder)
    assert tiny_models.load(folder).identity != before


def test_settings_that_decide_numbers_are_in_the_identity(pristine: Path) -> None:
    settings: list[dict[str, Any]] = [{}, {"bos": "none"}, {"dtype": "bfloat16"}, {"temperature": 2.0}, {"n_layers": 1}]
    found = [tiny_models.load(pristine, **{"bos": tiny_models.END} | changed).identity for changed in settings]
    assert all(found[i] != found[j] for i in range(5) for j in range(i))


# ----------------------------------------------------------------------------------------------------- GGUF files


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save(tmp_path_factory.mktemp("hostile") / "llama", "llama", tiny_models.byte_level())


@pytest.fixture(scope="module")
def gguf_file(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("gguf")
    return tiny_models.save_gguf(tmp_path_factory.mktemp("gguf") / "model.gguf", llama)


def load_gguf(path: Path, **settings: Any) -> LanguageModel:
    given = {"name": "g", "source": "gguf", "path": str(path), "device": "cpu", "cache": False, "bos": "none"}
    return load_language_model(ModelSettings(**(given | settings)))


def start(n_tensors: int = 0, n_fields: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, n_tensors, n_fields)


def text(content: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(content) if length is None else length) + content


def array(kind: int, length: int) -> bytes:
    return struct.pack("<IIQ", 9, kind, length)


def weight(shape: list[int], kind: int = 0) -> bytes:
    return text(b"w") + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, 0)


Bytes = Callable[[bytes], bytes]
HOSTILE_GGUF: dict[str, tuple[Bytes, str]] = {
    "empty": (lambda good: b"", "is not a file with anything in it"),
    "a pickle": (lambda good: pickle.dumps(Trap()), "is no GGUF file"),
    "tensors beyond the file": (lambda good: start(n_tensors=2**60), "tensor_count: has length 11529"),
    "name beyond the file": (lambda good: start(n_fields=1) + text(b"a", 2**63), "name of a field: has length"),
    "array beyond the file": (lambda good: start(n_fields=1) + text(b"a") + array(0, 2**62), "a: has length 4611"),
    "arrays of arrays": (
        lambda good: start(n_fields=1) + text(b"a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 99,
        "a: has type 9",
    ),
    "weights that overflow": (lambda good: start(n_tensors=1) + weight([2**63, 2**63]), "tensors: take"),
    "weights of an unknown type": (lambda good: start(n_tensors=1) + weight([2], 999), "w: has type 999"),
    "half": (lambda good: good[: len(good) // 2], "tensors: take|cut off"),
    "blocks": (
        lambda good: good.replace(
            b"llama.block_count" + struct.pack("<II", 4, 2), b"llama.block_count" + struct.pack("<II", 4, 10**9)
        ),
        "llama.block_count: is 1e.09",
    ),
    "another family": (lambda good: good.replace(b"llama", b"nosux"), "cannot be loaded"),
}


@pytest.mark.parametrize("name", HOSTILE_GGUF)
def test_a_gguf_file_that_is_not_what_it_says_is_refused_in_one_line(
    name: str, gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spoil, message = HOSTILE_GGUF[name]
    path = tmp_path / "spoiled.gguf"
    path.write_bytes(spoil(gguf_file.read_bytes()))
    with pytest.raises(InputError, match=message) as caught:
        load_gguf(path)
    told = str(caught.value)
    assert "\n" not in told
    assert len(told) < 800
    assert "spoiled.gguf" in told
    assert not Path("unpickled").exists()


def loss(model: LanguageModel) -> float:
    found = next_token_distributions(model, [[40], [40, 41]], targets=[41, 42])
    return float(-found["target_logprob"].mean())


def test_a_kept_copy_that_was_changed_is_made_anew(
    gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = load_gguf(gguf_file, cache=True)
    (kept,) = (tmp_path / "shannon-game" / "models").iterdir()
    caplog.clear()
    again = load_gguf(gguf_file, cache=True)
    assert (again.identity, loss(again), caplog.text) == (first.identity, loss(first), "")
    config(rms_norm_eps=0.5)(kept)
    mended = load_gguf(gguf_file, cache=True)
    assert "was changed since, and is made anew" in caplog.text
    assert (mended.identity, loss(mended)) == (first.identity, loss(first))
    caplog.clear()
    load_gguf(gguf_file, cache=True)
    assert caplog.text == ""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SafetensorError("No space left on device")])
def test_a_copy_that_cannot_be_kept_costs_nothing_but_time(
    error: Exception, gguf_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    models = tmp_path / "shannon-game" / "models"
    for name, age in ((".shannon-game-partial-old", 1e4), (".shannon-game-partial-new", 0.0)):
        (models / name).mkdir(parents=True)
        os.utime(models / name, (time.time() - age,) * 2)

    def full(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("transformers.PreTrainedModel.save_pretrained", full)
        first = load_gguf(gguf_file, cache=True)
    assert "could not be kept" in caplog.text
    # what another process may be writing stays
    assert [path.name for path in models.iterdir()] == [".shannon-game-partial-new"]
    assert load_gguf(gguf_file, cache=True).identity == first.identity
    assert len(list(models.glob(f"*/{MANIFEST}"))) == 1
