"""The surprisal of the same texts by this toolkit and by what others use: the numbers, what they cost, from a start.

Usage: python tests/benchmarks/peers_from_start.py RESULT.csv [--peers PYTHON] [--rounds N] [--width N] [--blocks N]

A model of random weights scores 3, 50 and 1,000 sentences and a long document. Each side is a process of its own, from
its start to the nats of every text: a plain script of transformers, a text at a time; our command, with its files of
words, tokens, ranks and entropies; minicons, surprisal and lm-eval, 16 at a time, of an environment of theirs (PYTHON:
pip install torch minicons surprisal lm-eval). Sides take turns. Rows have medians:
seconds of the processor, MB at most, seconds as a multiple of the plain script's of the same round, and the largest
difference from its nats, relative to the text's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

BOS, BATCH = "<|endoftext|>", 16
SIZES = {"3 sentences": 3, "50 sentences": 50, "1000 sentences": 1000, "a document": 1}
LONG = 900
"""Words of the document: no peer takes more than a window."""


def main() -> None:
    """Run every side on every size, and write a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--peers", default=sys.executable)
    for name, default in (("rounds", 5), ("width", 128), ("blocks", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        save_model(folder / "model", given.width, given.blocks)
        for size, n in SIZES.items():
            texts = made_texts(n, LONG if n == 1 else 12)
            (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
            found: dict[str, list[tuple[float, float, Any]]] = {side: [] for side in SIDES}
            for _ in range(given.rounds):
                for side, its in found.items():
                    its.append(run(side, given.peers, folder))
            plain = found["plain"]
            for side, its in found.items():
                off = np.abs(its[0][2] / plain[0][2] - 1).max()
                times = [own[0] / other[0] for own, other in zip(its, plain, strict=True)]
                seconds, megabytes = np.median([[one[0], one[1]] for one in its], axis=0)
                row = {"texts": size, "side": side, "seconds": seconds, "times_plain": np.median(times)}
                rows.append(row | {"megabytes": megabytes, "largest_difference": off})
                print(*rows[-1].values(), flush=True)
    pd.DataFrame(rows).to_csv(given.result, index=False, float_format="%.3g")


def run(side: str, peers: str, folder: Path) -> tuple[float, float, Any]:
    """Seconds of the processor, MB, and nats of the texts by one side in a process of its own."""
    python = sys.executable if side in {"plain", "ours"} else peers
    before = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [python, __file__, "--side", side, str(folder)]
    with (folder / "said.txt").open("w") as said:
        child = subprocess.Popen(command, env=before, stdout=said, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise SystemExit((folder / "said.txt").read_text()[-2000:])
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, np.load(folder / "nats.npy")


def made_texts(n: int, n_words: int) -> list[str]:
    """Random words, so that no two texts begin alike."""
    rng = np.random.default_rng(n)
    letters = np.array(list("etaoinshrdlu"))
    words = ["".join(rng.choice(letters, rng.integers(2, 8))) for _ in range(400)]
    return [f"The {' '.join(rng.choice(words, n_words))}." for _ in range(n)]


def save_model(folder: Path, width: int, blocks: int) -> None:
    """Write a model in GPT-2's manner with a tokenizer of 2,000 pieces."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    how: dict[str, Any] = {"special_tokens": [BOS], "show_progress": False, "initial_alphabet": alphabet}
    made.train_from_iterator(made_texts(50, 12), trainers.BpeTrainer(vocab_size=2000, **how))
    torch.manual_seed(0)
    size = len(PreTrainedTokenizerFast(tokenizer_object=made))
    ids = {"bos_token_id": 0, "eos_token_id": 0, "n_positions": 2048}
    GPT2LMHeadModel(GPT2Config(vocab_size=size, n_embd=width, n_layer=blocks, n_head=4, **ids)).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=made, bos_token=BOS, eos_token=BOS, pad_token=BOS).save_pretrained(folder)


def plain(folder: Path, texts: list[str]) -> list[float]:
    """What one writes by hand."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    nats = []
    for text in texts:
        ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]])
        with torch.inference_mode():
            log_probs = torch.log_softmax(model(ids).logits[0, :-1], dim=-1)
        nats.append(-float(log_probs.gather(1, ids[0, 1:, None]).double().sum()))
    return nats


def ours(folder: Path, texts: list[str]) -> list[float]:
    """The command, from an empty store."""
    import shutil

    from shannon_game.experiments.run import main as command

    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    run_folder = folder / "run"
    settings = [f"study.path={folder / 'texts.jsonl'}", f"model=[{folder / 'model'}]", f"hydra.run.dir={run_folder}"]
    sys.argv[1:] = ["surprisal", *settings, f"experiment.store={folder / 'store'}", "output.print=false"]
    if command():
        raise SystemExit(1)
    tokens = pd.read_csv(run_folder / "tokens.csv")
    found = tokens.groupby("document", sort=False)["surprisal_nats"].sum().tolist()
    for made in (run_folder, folder / "store"):
        shutil.rmtree(made)
    return found


def minicons(folder: Path, texts: list[str]) -> list[float]:
    """Scores of tokens."""
    from minicons import scorer

    model = scorer.IncrementalLMScorer(str(folder), "cpu")
    parts = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
    rows = [row for part in parts for row in model.token_score(part, bos_token=True, surprisal=True)]
    return [sum(value for _, value in row[1:]) for row in rows]


def surprisal(folder: Path, texts: list[str]) -> list[float]:
    """Tokens; those after a text's end are padding."""
    from surprisal import AutoHuggingFaceModel

    model = AutoHuggingFaceModel.from_pretrained(str(folder), model_class="gpt")
    found = [row for at in range(0, len(texts), BATCH) for row in model.surprise(texts[at : at + BATCH])]
    sizes = [len(its) for its in model.tokenizer(texts, add_special_tokens=False)["input_ids"]]
    return [float(np.asarray(row.surprisals[:n], dtype=float).sum()) for row, n in zip(found, sizes, strict=True)]


def lm_eval(folder: Path, texts: list[str]) -> list[float]:
    """Log-likelihoods of whole texts."""
    from types import SimpleNamespace

    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=str(folder), device="cpu", batch_size=BATCH)
    return [-float(value) for value in model.loglikelihood_rolling([SimpleNamespace(args=(text,)) for text in texts])]


SIDES: dict[str, Callable[[Path, list[str]], list[float]]] = {
    its.__name__: its for its in (plain, ours, minicons, surprisal, lm_eval)
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        place = Path(sys.argv[3])
        own = SIDES[sys.argv[2]]
        where = place if own is ours else place / "model"
        np.save(place / "nats.npy", own(where, json.loads((place / "texts.json").read_text(encoding="utf-8"))))
    else:
        main()
