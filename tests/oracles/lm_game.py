"""The next-token game read with plain loops over its JSON files, as the paper's definitions say."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import NamedTuple

SETS = (range(10000, 10040), range(20010, 20090))


class Answer(NamedTuple):
    participant: int
    item: int
    report: float
    target: str
    candidate: str
    target_logprob: float
    candidate_logprob: float
    sample: int


def paper_answers(root: Path) -> list[Answer]:
    """Answers of the participants with as many rows in a set as it has questions."""
    rows = json.loads((root / "results_raw" / "res_loss_anonym.json").read_text())
    kept = set()
    for questions in SETS:
        for user, count in Counter(row[1] for row in rows if row[3] in questions).items():
            if count == len(questions):
                kept.add(user)
    answers = []
    for _, user, guess, item, sample in rows:
        if user in kept and any(item in questions for questions in SETS):
            question = read_question(root, item)
            g = question["generator_index"]
            tokens = question["correct_token_str"], question["generated_token_strs"][sample]
            logprobs = question["correct_logprobs"][g], question["generated_logprobss"][g][sample]
            answers.append(Answer(user, item, guess / 100, *tokens, *logprobs, sample))
    return answers


def raw_answers(root: Path) -> dict[str, list[tuple[int, float, float, float]]]:
    """(item, report, g(y), g(x)) of the humans and of every model on the pairs that the humans were shown."""
    players: dict[str, list[tuple[int, float, float, float]]] = {"human": []}
    for answer in paper_answers(root):
        question = read_question(root, answer.item)
        density = math.exp(answer.target_logprob), math.exp(answer.candidate_logprob)
        players["human"].append((answer.item, answer.report, *density))
        for m, model in enumerate(("14M", "gpt2-small", "gpt2-medium")):
            target = math.exp(question["correct_logprobs"][m])
            candidate = math.exp(question["generated_logprobss"][m][answer.sample])
            players.setdefault(model, []).append((answer.item, target / (target + candidate), *density))
    return players


_questions: dict[tuple[Path, int], dict] = {}


def read_question(root: Path, item: int) -> dict:
    key = (root, item)
    if key not in _questions:
        _questions[key] = json.loads((root / "multi_comparisons" / f"doc{item}.json").read_text())
    return _questions[key]
