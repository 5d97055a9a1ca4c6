"""How near the scoring of texts comes to the matrix products that it is made of, on a CPU or a GPU.

Usage: python tests/benchmarks/engine_rate.py RESULT.csv [--shapes gpt2 1b 7b] [--device cpu] [--dtype float32 ...]
       [--documents 64] [--tokens 160]

Models of random weights in the shapes of GPT-2 small and of Llamas of 1 and 7 billion parameters score random tokens:
log-probability, rank, entropy, best token and where words end. The bound is the time of the products alone of as many
tokens by the matrices of blocks and output embedding, in the model's type, in batches of the engine. A row has tokens
per second, the share of the bound, memory, and by how much log-probabilities of a document differ at most from those of
one pass of transformers in float32 on the CPU. By default all shapes and float32 and bfloat16 on a GPU, GPT-2 small in
float32 on one CPU thread. The engine's tests run on what `device: auto` takes: `pytest -m torch tests/inference/lm`.
"""

from __future__ import annotations

import argparse
import copy
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedTokenizerFast
from transformers.pytorch_utils import Conv1D

from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.scoring import score_documents
from shannon_game.inference.lm.settings import ModelSettings

LLAMA = {"vocab_size": 32_000, "max_position_embeddings": 2048}
SHAPES = {
    "gpt2": GPT2Config(),
    "1b": LlamaConfig(hidden_size=2048, intermediate_size=5632, num_hidden_layers=24, num_attention_heads=16, **LLAMA),
    "7b": LlamaConfig(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32, **LLAMA),
}
LARGEST_ON_CPU = 2e9
"""Parameters of a model that is compared with the CPU's."""
BATCH = {"cpu": 512, "cuda": 16_384}


def tokenizer_of(vocab_size: int) -> PreTrainedTokenizerFast:
    """Made-up tokens, of which every second one begins a word."""
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces += ["\u0120" * (at % 2) + f"t{at}" for at in range(vocab_size - len(pieces) - 1)]
    made = Tokenizer(models.BPE(vocab={"<|endoftext|>": 0} | {its: at + 1 for at, its in enumerate(pieces)}, merges=[]))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def model_of(config: Any, device: str, dtype: str) -> LanguageModel:
    """A model of random weights, made where it runs."""
    torch.manual_seed(0)
    with torch.device(device):
        module = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype), attn_implementation="sdpa")
    return LanguageModel(
        settings=ModelSettings(name="random", source="folder", path="none", dtype=dtype, device=device),
        module=module.eval().requires_grad_(requires_grad=False),
        tokenizer=tokenizer_of(config.vocab_size),
        device=torch.device(device),
        bos_id=0,
        max_tokens=config.max_position_embeddings,
        vocab_size=config.vocab_size,
        weights_sha256="",
        tokenizer_sha256="",
    )


def seconds(device: str, work: Any) -> float:
    """Time of work, whose own processor is the GPU or one thread."""
    if device == "cpu":
        start = time.process_time()
        work()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def products(model: LanguageModel, n_rows: int) -> Any:
    """The matrix products of so many tokens, and nothing else."""
    every = [
        its.weight if isinstance(its, Conv1D) else its.weight.T for its in model.module.modules() if is_product(its)
    ]
    rows = {n: torch.randn(n_rows, n, device=model.device, dtype=every[0].dtype) for n in {len(one) for one in every}}

    def run() -> None:
        with torch.inference_mode():
            for one in every:
                torch.mm(rows[len(one)], one)

    return run


def is_product(module: torch.nn.Module) -> bool:
    """Whether it multiplies by a matrix; GPT-2's layers keep theirs the other way round."""
    return isinstance(module, (torch.nn.Linear, Conv1D))


def row(shape: str, device: str, dtype: str, documents: list[list[int]]) -> dict[str, Any]:
    """Measure one model."""
    model, n = model_of(SHAPES[shape], device, dtype), sum(map(len, documents))
    n_parameters = sum(its.numel() for its in model.module.parameters())
    score_documents(model, documents[:4], boundaries=True)
    bound = products(model, n_rows=min(n, BATCH[device]))
    bound()
    of_batch = [seconds(device, bound)]
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    its = seconds(device, lambda: score_documents(model, documents, boundaries=True))
    of_batch.append(seconds(device, bound))
    # boundaries after a document are scored too
    passes = (n + len(documents)) / min(n, BATCH[device])
    kib = (
        torch.cuda.max_memory_allocated() / 1024
        if device == "cuda"
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    )
    off = np.nan
    if n_parameters < LARGEST_ON_CPU:
        with torch.inference_mode():
            ids = torch.tensor([[0, *documents[0]]])
            plain = copy.deepcopy(model.module).to("cpu", torch.float32)(ids).logits[0, :-1].double().log_softmax(-1)
        expected = plain.gather(1, ids[0, 1:, None])[:, 0].numpy()
        off = float(np.abs(score_documents(model, documents[:1])["logprob"].to_numpy() - expected).max())
    return {
        "shape": shape,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "dtype": dtype,
        "parameters": n_parameters,
        "tokens": n,
        "tokens_per_second": n / its,
        "share_of_products": min(of_batch) * passes / its,
        "gib": kib / 2**20,
        "nats_off": off,
    }


def main() -> None:
    """Write a row per shape and type."""
    there = "cuda" if torch.cuda.is_available() else "cpu"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["gpt2"] if there == "cpu" else list(SHAPES))
    parser.add_argument("--device", choices=BATCH, default=there)
    types = ["float32"] if there == "cpu" else ["float32", "bfloat16"]
    parser.add_argument("--dtype", nargs="+", choices=("float32", "bfloat16", "float16"), default=types)
    parser.add_argument("--documents", type=int, default=64 if there == "cpu" else 512)
    parser.add_argument("--tokens", type=int, default=160 if there == "cpu" else 512)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for shape in given.shapes:
        size = given.documents, given.tokens
        documents = np.random.default_rng(0).integers(1, SHAPES[shape].vocab_size, size).tolist()
        for dtype in given.dtype:
            rows.append(row(shape, given.device, dtype, documents))
            pd.DataFrame(rows).to_csv(given.result, index=False, float_format="%.4g")
            print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
