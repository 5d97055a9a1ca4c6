"""A tiny copy of the public layout of the next-word answers, with its traps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NAN = float("nan")


def entry(context: str, word: str, human: list[tuple[Any, int]], samples: list[tuple[str, int]], *, full: bool) -> dict:
    scored = [{"pred": pred, "count": count, "cond_log_prob": -2.0 - i} for i, (pred, count) in enumerate(human)]
    drawn = [{"pred": pred, "count": count, "cond_log_prob": -1.0 - i} for i, (pred, count) in enumerate(samples)]
    made = {
        "context": {"text": context, "log_prob": -9.0},
        "original": {"pred": word, "cond_log_prob": -3.0},
        "human": scored,
        "ancestral_samples": drawn,
    }
    if full:
        made["greedy"] = {"pred": samples[0][0], "cond_log_prob": -1.0}
        made["nucleus_samples"] = {"top-p": dict.fromkeys(("0.7", "0.8", "0.9"), drawn[:1])}
    return made


def answers(n: int) -> list[tuple[Any, int]]:
    return [("the", 20 + n % 3), ("dog", 12), ("TRUE", 4), ("none", 3), ("don't", 1 + n % 2)]


def write(root: Path, n_words: int = 6) -> Path:
    """Write 2 passages of `n_words` contexts, GPT-2 for one of them, BLOOM and ChatGPT with a repeated context."""
    temperature: dict[str, dict[str, Any]] = {}
    gpt2: dict[str, dict[str, Any]] = {}
    for passage in ("1", "2"):
        tokens = [f"w{i}" for i in range(n_words + 1)]
        for word in range(2, n_words + 2):
            context = " ".join(tokens[: word - 1]) + f" p{passage}"
            human = answers(word)
            samples = [("the", 25), ("Cat", 10), ("dont", 4), ("Failed to generate word", 1)]
            temperature.setdefault(passage, {})[str(word)] = entry(context, "the", human, samples, full=False)
            if passage == "1":
                many = [(word_, 25 * count) for word_, count in samples]
                gpt2.setdefault(passage, {})[str(word)] = entry(context, "the", human, many, full=True)
    temperature["2"]["3"]["human"].append({"pred": NAN, "count": 0, "cond_log_prob": -9.0})
    bloom, chatgpt = [], []
    for word in [*range(2, n_words + 2), 2]:
        text = temperature["2"][str(word)]["context"]["text"]
        key = {"text_id": "2", "word_num": str(word)}
        raw = [" the cat\n"] * 20 + [" don't know"] * 15 + ["..."] * 5
        words = ["the"] * 20 + ["dont"] * 15 + ["Failed to generate word"] * 5
        bloom.append([text, key, raw, words])
        rounds = {"unbiased_temp_1": ["the"] * 40, "unbiased_temp_2": ["The."] * 40}
        chatgpt.append([text, key, {**rounds, "diverse": "1. the"}, {**rounds, "diverse": ["the", "dog"]}])
    n = 2 * n_words - 1
    files = {
        "TVD/GPT2_Temp/Generations/Paragraphs_temp-1-2.json": temperature,
        "TVD/GPT2/Generations/Paragraphs-1-1.json": gpt2,
        "TVD/BLOOM/Generations/processed_bloom.json": bloom,
        "TVD/ChatGPT/Generations/processed_chatgpt.json": chatgpt,
        "TVD/Oracle/uncertainty_results/TVD_oracle.json": {
            "tvd_oracle2_oracle1": [0.4] * n,
            "tvd_oracle2_human": [0.2] * n,
        },
        "Additional_Experiments/Appendix_E/uncertainty_resutls/cal_metrics_improved_model.json": {
            share: {"tvd_biased": [0.6] * (n + 1), "tvd_unbiased": [0.7] * (n + 1)} for share in ("0", "1")
        },
    }
    files["Additional_Experiments/Appendix_E/uncertainty_resutls/cal_metrics_improved_model.json"]["1"] = {
        "tvd_biased": [0.4] * (n + 1),
        "tvd_unbiased": [0.4] * (n + 1),
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return root
