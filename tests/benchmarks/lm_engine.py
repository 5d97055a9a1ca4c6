"""How fast the language-model engine scores texts on a GPU: ``python tests/benchmarks/lm_engine.py``.

Tokens per second, and the share of the card's measured bf16 matrix product, for random weights of 1.2 billion
parameters.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch

from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.scoring import score_documents
from shannon_game.inference.lm.settings import ModelSettings


def matmul_flops(size: int) -> float:
    """Operations per second of a square matrix product."""
    a, b = (torch.randn((size, size), device="cuda", dtype=torch.bfloat16) for _ in range(2))
    best = 0.0
    for _ in range(10):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(20):
            a @ b
        torch.cuda.synchronize()
        best = max(best, 20 * 2 * size**3 / (time.perf_counter() - begin))
    return best


def main() -> None:
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
    peak = matmul_flops(8192)
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
        torch.cuda.synchronize()
        begin = time.perf_counter()
        found = score_documents(model, documents)
        torch.cuda.synchronize()
        rate = found.sizes["token"] / (time.perf_counter() - begin)
        # attention: 4 x width x half the context for each token and block
        per_token = 2 * n_parameters + 24 * 4 * 2048 * 512
        print(
            f"{size} tokens a batch: {rate:,.0f} tokens/s, {per_token * rate / peak:.0%} of the "
            f"{peak / 1e12:.0f} TFLOP/s of a bf16 matrix product, "
            f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at most"
        )


if __name__ == "__main__":
    main()
