"""The comparison game as a task of lm-evaluation-harness and of Inspect: points per question above always 50%."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison.score import SCALE
from shannon_game.estimators.comparison.study import generator_logprobs
from shannon_game.experiments.comparison.text_players.answers import ORDERS
from shannon_game.experiments.comparison.text_players.pairs import TextPlayersSettings, asked_pairs
from shannon_game.inference.manifest import replaced
from shannon_game.inference.text.prompts import PERCENTS, percent_question

_HARNESS = """\
task: {name}
custom_dataset: !function utils.questions
test_split: test
output_type: generate_until
doc_to_text: prompt
doc_to_target: target_side
generation_kwargs: {{until: ["\\n\\n"], max_gen_toks: {max_tokens}, do_sample: false}}
process_results: !function utils.scores
metric_list:
  - {{metric: points, aggregation: mean, higher_is_better: true}}
  - {{metric: favoured, aggregation: mean, higher_is_better: true}}
  - {{metric: unreadable, aggregation: mean, higher_is_better: false}}
metadata: {{version: 1.0}}
"""

_RULE = '''\
"""What an answer in percent earns in the comparison game, above always saying 50%."""

import re
from math import log
from pathlib import Path

PERCENTS = {percents}


def questions(**_):
    from datasets import Dataset

    return {{"test": Dataset.from_json(str(Path(__file__).with_name("questions.jsonl")))}}


def earned(question, text):
    line = next((line.strip() for line in text.split("\\n") if line.strip()), "")
    found = re.fullmatch(r"([0-9]{{1,2}})\\s?%?\\.?", line)
    percent = int(found[1]) if found and int(found[1]) in PERCENTS else None
    if percent is None:
        # as always 50%; text_players leaves such pairs out
        return {{"points": 0.0, "favoured": question["share"] / 2, "unreadable": 1.0}}
    p = (percent if question["target_side"] == "A" else 100 - percent) / 100
    favoured = (1 + (p > 0.5) - (p < 0.5)) / 2
    points = question["points"] * (log(p) - log(0.5))
    return {{"points": question["share"] * points, "favoured": question["share"] * favoured, "unreadable": 0.0}}


def scores(doc, results):
    return earned(doc, results[0])
'''

_INSPECT = '''\
"""The comparison game for Inspect: inspect eval {name}.py --model PROVIDER/NAME (pip install inspect_ai)."""

import json
import runpy
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import Score, mean, scorer, stderr
from inspect_ai.solver import generate

HERE = Path(__file__).parent
earned = runpy.run_path(str(HERE / "utils.py"))["earned"]


@scorer(metrics={{"points": [mean(), stderr(cluster="item")], "favoured": [mean()], "unreadable": [mean()]}})
def points_above_half():
    async def score(state, target):
        return Score(value=earned(state.metadata, state.output.completion), answer=state.output.completion)

    return score


@task
def {name}():
    rows = [json.loads(line) for line in (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    says = lambda row: [ChatMessageSystem(content=row["system"])] if row["system"] else []
    samples = [
        Sample(
            input=[*says(row), ChatMessageUser(content=row["user"])],
            target=row["target_side"],
            id=row["id"],
            metadata=row,
        )
        for row in rows
    ]
    config = GenerateConfig(temperature=0, max_tokens={max_tokens})
    return Task(dataset=samples, solver=generate(), scorer=points_above_half(), config=config)
'''


def write_comparison_tasks(
    study: xr.Dataset,
    folder: str | Path,
    name: str = "comparison_game",
    *,
    settings: TextPlayersSettings | None = None,
) -> Path:
    """Write a folder for ``lm_eval --include_path`` and ``inspect eval``: tasks, their one rule, and the questions.

    The questions are those of ``text_players`` in the way ``verbalised``, with the same settings. Their points are its
    points where all answers can be read; one that cannot counts as 50% here, and is left out there.
    """
    settings = settings or TextPlayersSettings()
    pairs = asked_pairs(study, settings)
    pairs = pairs.take(np.flatnonzero(~pairs.automatic))
    _, item, n_pairs = np.unique(pairs.position, return_inverse=True, return_counts=True)
    # a mean over questions is one over items, which count alike
    share = len(item) / (len(n_pairs) * n_pairs[item])
    points = SCALE * np.exp(generator_logprobs(study)[0][pairs.position])
    labels = study["item"].to_numpy()[pairs.position].tolist()
    rows = []
    for at in range(len(item)):
        tokens = pairs.target[at], pairs.other[at]
        for side, (a, b) in zip(ORDERS, (tokens, tokens[::-1]), strict=True):
            asked = percent_question(settings.prompt, pairs.context[at], a, b)
            texts = [text for text in (asked.system, asked.user) if text]
            row = {"id": f"{labels[at]}-{pairs.candidate[at]}-{side}", "item": str(labels[at]), "target_side": side}
            row |= {"system": asked.system, "user": asked.user, "prompt": "\n\n".join(texts) + "\n"}
            rows.append(row | {"points": float(points[at]), "share": float(share[at])})
    files = {
        "utils.py": _RULE.format(percents=PERCENTS),
        f"{name}.yaml": _HARNESS.format(name=name, max_tokens=settings.max_tokens),
        f"{name}.py": _INSPECT.format(name=name, max_tokens=settings.max_tokens),
        "questions.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
    }
    with replaced(Path(folder), "task") as made:
        for file, text in files.items():
            (made / file).write_text(text, encoding="utf-8")
    return Path(folder)
