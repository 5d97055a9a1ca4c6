"""The surprisal of the same texts by this toolkit and by what others use: the numbers, what they cost, from a start.

Usage: python tests/benchmarks/peers_from_start.py RESULT.csv [--peers PYTHON] [--rounds N] [--width N] [--blocks N]

A model of random weights scores 3, 50 and 1,000 sentences and a long document, each after its BOS token. Each side is a
process of its own, from its start to the nats of every token: a plain script of transformers, a text at a time; our
command, with its files of words, tokens, ranks and entropies; minicons, surprisal and lm-eval (which gives sums), 16 at
a time, of an environment of theirs (PYTHON: pip install torch minicons surprisal lm-eval). Sides take turns. A row
has a side's medians at every size: seconds of the processor, and as a multiple of the plain script's of the same round;
MB on the document, and the largest difference from the script's nats: of a token, or of a text's mean by lm-eval.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

BOS, BATCH = "<|endoftext|>", 16
SIZES = {"3 sentences": 3, "50 sentences": 50, "1000 sentences": 1000, "a document": 1}
LONG = 900
"""Words of the document: no peer takes more than a window."""


def main() -> None:
    """Run every side on every size, and write a row for each."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--peers", default=sys.executable)
    for name, default in (("rounds", 5), ("width", 128), ("blocks", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        # a side's memory is counted from its parent's
        made = get_context("spawn").Process(target=save_model, args=(folder / "model", given.width, given.blocks))
        made.start()
        made.join()
        for size, n in SIZES.items():
            texts = made_texts(n, LONG if n == 1 else 12)
            (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
            (folder / "texts.jsonl").write_text("".join(json.dumps({"text": its}) + "\n" for its in texts))
            found: dict[str, list[tuple[float, float, list[Any]]]] = {side: [] for side in ("plain", "ours", *PEERS)}
            for _ in range(given.rounds):
                for side, its in found.items():
                    its.append(run(side, given.peers, folder))
            plain = found["plain"]
            for side, its in found.items():
                times = [own[0] / other[0] for own, other in zip(its, plain, strict=True)]
                seconds, megabytes = np.median([[one[0], one[1]] for one in its], axis=0)
                row = rows.setdefault(side, {"side": NAMES.get(side, side)})
                off = max(row.pop("nats off", 0.0), largest(its[0][2], plain[0][2]))
                row |= {f"{size}, s": seconds, f"{size}, x plain": np.median(times), "MB": megabytes, "nats off": off}
                print(size, *row.values(), *(f"{value:.2f}" for value in times), flush=True)
    pd.DataFrame([*rows.values()]).to_csv(given.result, index=False, float_format="%.3g")


def largest(one: list[Any], other: list[Any]) -> float:
    """Largest difference of a token, or of a text's mean where a side gives its sum."""
    pairs = [(np.ravel(its), np.asarray(by)) for its, by in zip(one, other, strict=True)]
    if isinstance(one[0], float):
        return max(abs(float(its[0]) - by.sum()) / by.size for its, by in pairs)
    if any(its.size != by.size for its, by in pairs):
        raise SystemExit("sides have different tokens")
    return max(float(np.abs(its - by).max()) for its, by in pairs)


def run(side: str, peers: str, folder: Path) -> tuple[float, float, list[Any]]:
    """Seconds of the processor, MB, and nats by one side in a process of its own."""
    import pandas as pd

    command = [peers if side in PEERS else sys.executable, __file__, "--side", side, str(folder)]
    if side == "ours":
        command = [sys.executable, "-m", "shannon_game", "surprisal", f"study.path={folder / 'texts.jsonl'}"]
        command += [f"model=[{folder / 'model'}]", f"hydra.run.dir={folder / 'run'}", "output.print=false"]
        command += [f"experiment.store={folder / 'store'}"]
    settings = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    # a checkout keeps its bytecode as an installed package does
    settings |= {"PYTHONDONTWRITEBYTECODE": ""}
    with (folder / "said.txt").open("w") as said:
        child = subprocess.Popen(command, env=settings, stdout=said, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise SystemExit((folder / "said.txt").read_text()[-2000:])
    if side == "ours":
        tokens = pd.read_csv(folder / "run" / "tokens.csv").groupby("document", sort=False)["surprisal_nats"]
        nats = [its.tolist() for _, its in tokens]
        for made in ("run", "store"):
            shutil.rmtree(folder / made)
    else:
        nats = json.loads((folder / "nats.json").read_text())
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, nats


def made_texts(n: int, n_words: int) -> list[str]:
    """Random words, so that no two texts begin alike."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlu"))
    words = ["".join(rng.choice(letters, rng.integers(2, 8))) for _ in range(400)]
    rng = np.random.default_rng(n)
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


def plain(folder: Path, texts: list[str]) -> list[list[float]]:
    """What one writes by hand."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    nats = []
    for text in texts:
        ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]])
        with torch.inference_mode():
            log_probs = torch.log_softmax(model(ids).logits[0, :-1], dim=-1)
        nats.append((-log_probs.gather(1, ids[0, 1:, None])[:, 0]).tolist())
    return nats


def minicons(folder: Path, texts: list[str]) -> list[list[float]]:
    """Scores of tokens."""
    from minicons import scorer

    model = scorer.IncrementalLMScorer(str(folder), "cpu")
    parts = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
    rows = [row for part in parts for row in model.token_score(part, bos_token=True, surprisal=True)]
    return [[value for _, value in row[1:]] for row in rows]


def surprisal(folder: Path, texts: list[str]) -> list[list[float]]:
    """Tokens; those after a text's end are padding."""
    from surprisal import AutoHuggingFaceModel

    model = AutoHuggingFaceModel.from_pretrained(str(folder), model_class="gpt")
    found = [row for at in range(0, len(texts), BATCH) for row in model.surprise(texts[at : at + BATCH])]
    sizes = [len(its) for its in model.tokenizer(texts, add_special_tokens=False)["input_ids"]]
    return [[float(value) for value in row.surprisals[:n]] for row, n in zip(found, sizes, strict=True)]


def lm_eval(folder: Path, texts: list[str]) -> list[float]:
    """Log-likelihoods of whole texts."""
    from types import SimpleNamespace

    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=str(folder), device="cpu", batch_size=BATCH)
    return [-float(value) for value in model.loglikelihood_rolling([SimpleNamespace(args=(text,)) for text in texts])]


PEERS: dict[str, Callable[[Path, list[str]], list[Any]]] = {its.__name__: its for its in (minicons, surprisal, lm_eval)}
NAMES = {"plain": "transformers, plain script", "ours": "shannon-game", "lm_eval": "lm-eval"}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--side"]:
        side, place = sys.argv[2], Path(sys.argv[3])
        scored = PEERS.get(side, plain)(place / "model", json.loads((place / "texts.json").read_text(encoding="utf-8")))
        (place / "nats.json").write_text(json.dumps(scored))
    else:
        main()
