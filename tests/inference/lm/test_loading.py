"""Loading: what stands before a context, what is refused, and what happens without a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.language_model import encode
from shannon_game.inference.lm.next_token import next_token_distributions
from shannon_game.inference.lm.scoring import score_documents
from tests.inference.lm import tiny_models
from tests.oracles import language_model as reference

pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(folder_of, tmp_path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(folder_of("llama"), tmp_path / "model"))


BOS = [
    # family, bos, the token
    ("gpt2", "auto", tiny_models.END),
    ("llama", "auto", "<s>"),
    ("mamba", "auto", tiny_models.END),
    ("gpt2", "tokenizer", None),
    ("llama", "tokenizer", "<s>"),
    ("llama", "none", None),
    ("gpt2", "none", None),
    ("llama", "</s>", "</s>"),
    ("bloom", tiny_models.END, tiny_models.END),
]


@pytest.mark.parametrize(("family", "bos", "token"), BOS)
def test_what_stands_before_a_context(family, bos, token, model_of):
    model = model_of(family, bos=bos)
    expected = None if token is None else model.tokenizer.convert_tokens_to_ids(token)
    assert model.bos_id == expected
    # tokens of a text never hold it, and the first token has a score exactly where it stands before
    tokens = encode(model, ["The old clock"])[0]
    assert expected not in tokens
    scores = score_documents(model, [tokens])
    assert scores["position"].values.tolist() == list(range(0 if token else 1, len(tokens)))
    before = [] if expected is None else [expected]
    rows = reference.log_probs(model, [*before, *tokens[:-1]])
    exact = [row[t] for row, t in zip(rows, tokens[1 - len(before) :], strict=True)]
    np.testing.assert_allclose(scores["logprob"], exact, atol=1e-4, rtol=0)
    if token is None:
        with pytest.raises(InputError, match="no BOS token to start from; set bos"):
            next_token_distributions(model, [[]])
    else:
        first = next_token_distributions(model, [[]], targets=tokens[:1])["target_logprob"].values[0]
        assert first == pytest.approx(rows[0][tokens[0]], abs=1e-4)


@pytest.mark.parametrize(
    ("family", "bos", "message"),
    [("bloom", "auto", "no token '</s>'"), ("llama", "<|endoftext|>", "no token '<|endoftext|>'")],
)
def test_no_bos_is_guessed(family, bos, message, folder_of):
    with pytest.raises(InputError, match=message.replace("|", r"\|")):
        tiny_models.load(folder_of(family), bos=bos)


def test_a_model_of_another_size_is_refused(folder_of):
    found = tiny_models.load(folder_of("gpt2")).module.num_parameters()
    assert tiny_models.load(folder_of("gpt2"), n_parameters=int(1.01 * found)).settings.n_parameters
    # blocks that are left out do not count
    tiny_models.load(folder_of("gpt2"), n_parameters=found, n_layers=1)
    with pytest.raises(InputError, match=rf"n_parameters: is 124,000,000, but .*gpt2 holds a model of {found:,}"):
        tiny_models.load(folder_of("gpt2"), n_parameters=124_000_000)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gpt_neox", "gpt_neo"])
def test_a_model_of_fewer_layers(family, model_of):
    whole, first = model_of(family), model_of(family, n_layers=1)
    tokens = [5, 6, 7]
    states = whole.module(input_ids=torch.tensor([tokens]), output_hidden_states=True).hidden_states[1]
    base = whole.module.base_model
    norm = getattr(base, "norm", None) or getattr(base, "ln_f", None) or base.final_layer_norm
    logits = whole.module.get_output_embeddings()(norm(states))[0]
    expected = torch.log_softmax(logits, dim=-1).numpy()
    np.testing.assert_allclose(reference.log_probs(first, tokens), expected, atol=1e-4, rtol=0)
    found = next_token_distributions(first, [tokens], whole=True)
    start = reference.next_token(first, [tokens])
    np.testing.assert_allclose(found["logprob"], start, atol=1e-4, rtol=0)


def pickled(folder: Path) -> None:
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def own_tokenizer_code(folder: Path) -> None:
    (folder / "t.py").write_text("raise SystemExit('this code was run')")
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text()) | {"auto_map": {"AutoTokenizer": ["t.T", "t.T"]}, "tokenizer_class": "T"}
    path.write_text(json.dumps(config))


def test_a_tokenizers_own_code_is_not_run(folder):
    own_tokenizer_code(folder)
    try:
        model = tiny_models.load(folder)
    except InputError as error:
        assert "never run here" in str(error)  # noqa: PT017 - either way the code must not run
    else:
        assert encode(model, ["The old"]) == encode(tiny_models.load(folder), ["The old"])


OFFLINE = """
import sys
from pathlib import Path
from shannon_game.estimators import InputError
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.settings import ModelSettings

def attempt(path, revision):
    settings = ModelSettings(name="m", source="hub", path=path, revision=revision, device="cpu", bos="tokenizer")
    try:
        model = load_language_model(settings)
    except InputError as error:
        print(error)
    else:
        print("loaded", model.revision, model.bos_id)

for line in sys.argv[1:]:
    attempt(*line.split("@"))
"""


def cache_snapshot(hub: Path, repository: str, commit: str, folder: Path) -> None:
    """The layout in which huggingface_hub keeps what it downloaded."""
    place = hub / f"models--{repository.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(commit)
    shutil.copytree(folder, place / "snapshots" / commit)


@pytest.mark.subprocess
@pytest.mark.parametrize(("name", "value"), [("HF_HUB_OFFLINE", "1"), ("HF_ENDPOINT", "https://hub.invalid")])
def test_without_a_network(folder, folder_of, tmp_path, name, value):
    """A model that is not there is one line; one in the local cache loads, unless its weights are pickled."""
    commits = [f"{number}123456789abcdef0123456789abcdef01234567" for number in range(3)]
    hub = tmp_path / "home" / "hub"
    cache_snapshot(hub, "someone/kept", commits[0], folder_of("llama"))
    pickled(folder)
    cache_snapshot(hub, "someone/pickled", commits[1], folder)
    index = {"metadata": {}, "weight_map": {"model.norm.weight": "pytorch_model.bin"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    cache_snapshot(hub, "someone/hidden", commits[2], folder)
    asked = ["someone/absent@main", f"someone/kept@{commits[0]}", "someone/kept@main"]
    asked += [f"someone/pickled@{commits[1]}", f"someone/hidden@{commits[2]}"]
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, *asked],
        cwd=ROOT,
        env={**os.environ, name: value, "HF_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    # nobody is asked five times for an address that does not exist
    assert "HEAD" not in done.stderr
    absent, by_commit, by_branch, refused, hidden = done.stdout.splitlines()
    assert "someone/absent at revision main is neither in the local cache nor to be had from the Hub" in absent
    assert "source=folder path=FOLDER, or use the model smollm2" in absent
    assert by_commit == by_branch == f"loaded {commits[0]} 1"
    assert "someone--pickled" in refused
    assert "safetensors" in refused
    assert "names 'pytorch_model.bin', should name a .safetensors file of this folder" in hidden


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("memory", ["1KB", "90KB"])
def test_a_model_in_parts_gives_the_same_numbers(folder_of, family: str, memory: str) -> None:
    """Cards are none here: what the processor's memory may not hold stays on the disk."""
    pytest.importorskip("accelerate")
    contexts = tiny_models.contexts(12, 300)
    whole = tiny_models.load(folder_of(family))
    parts = tiny_models.load(folder_of(family), device="spread", max_memory={"cpu": memory})
    assert "disk" in parts.module.hf_device_map.values()
    assert parts.identity == whole.identity
    assert (parts.split_head, parts.tree_attention) == (whole.split_head, whole.tree_attention)
    assert score_documents(parts, contexts).drop_attrs().equals(score_documents(whole, contexts).drop_attrs())
    found, expected = (next_token_distributions(its, contexts, whole=True) for its in (parts, whole))
    assert found.drop_attrs().equals(expected.drop_attrs())


@pytest.mark.parametrize(("configured", "expected"), [(0, 0), (7, None), (None, None)])
def test_a_tokenizer_without_bos_leaves_it_to_the_configuration(configured, expected, tmp_path):
    tokenizer = tiny_models.byte_level()
    folder = tiny_models.save(tmp_path, "gpt2", tokenizer)
    tokenizer.bos_token = None
    tokenizer.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text()) | {"bos_token_id": configured}
    (folder / "config.json").write_text(json.dumps(config))
    if expected is None:
        # an ordinary token is none, whatever the configuration says
        with pytest.raises(InputError, match="is 'auto', but neither"):
            tiny_models.load(folder, bos="auto")
    else:
        assert tiny_models.load(folder, bos="auto").bos_id == expected


@pytest.mark.parametrize(("template", "expected"), [("$A </s>", None), ("<s> $A </s>", 1), ("$A", None)])
def test_a_token_after_the_text_is_no_bos(template, expected, folder):
    from tokenizers import processors

    model = tiny_models.load(folder)
    model.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    model.tokenizer.save_pretrained(folder)
    assert tiny_models.load(folder).bos_id == expected


def test_a_quantised_checkpoint_is_scored_or_its_package_named(folder_of, tmp_path: Path) -> None:
    """torchao runs on a CPU; int8 rounds weights to a 255th of the largest of a row."""
    folder = folder_of("llama")
    if find_spec("torchao") is None:
        for path in folder.iterdir():
            shutil.copy(path, tmp_path)
        config = json.loads((folder / "config.json").read_text())
        how = {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}}}
        (tmp_path / "config.json").write_text(json.dumps(config | {"quantization_config": how}))
        with pytest.raises(InputError, match="pip install torchao"):
            tiny_models.load(tmp_path)
        return
    from torchao.quantization import Int8WeightOnlyConfig
    from transformers import AutoModelForCausalLM, TorchAoConfig

    quantised: Any = AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=TorchAoConfig(Int8WeightOnlyConfig()), device_map="cpu"
    )
    quantised.save_pretrained(tmp_path)
    tiny_models.load(folder).tokenizer.save_pretrained(tmp_path)
    found = score_documents(tiny_models.load(tmp_path), [[5, 6, 7, 8]])["logprob"].values
    start = tiny_models.load(tmp_path).bos_id
    with torch.inference_mode():
        rows = torch.log_softmax(quantised(torch.tensor([[start, 5, 6, 7]])).logits[0].double(), -1)
    np.testing.assert_allclose(found, rows[range(4), [5, 6, 7, 8]], atol=1e-4)
    # it is the quantised one
    assert np.abs(found - score_documents(tiny_models.load(folder), [[5, 6, 7, 8]])["logprob"].values).max() > 1e-4
