"""A cloze study as a task of lm-evaluation-harness: how far a model's next words are from people's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from shannon_game.estimators.cloze import study_words
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.live_words import spellings, usable_contexts
from shannon_game.experiments.cloze.settings import WordSettings
from shannon_game.inference.manifest import replaced

TASK = """\
task: {name}
custom_dataset: !function utils.contexts
test_split: test
output_type: multiple_choice
doc_to_text: context
doc_to_choice: continuations
doc_to_target: 0
target_delimiter: ""
process_results: !function utils.distance
metric_list:
  - {{metric: tvd, aggregation: mean, higher_is_better: false}}
  - {{metric: mass_on_answers, aggregation: mean, higher_is_better: true}}
metadata: {{version: 1.0}}
"""

UTILS = '''\
"""The total variation distance of a model's next words to people's."""

from math import exp
from pathlib import Path

from datasets import Dataset


def contexts(**_):
    return {"test": Dataset.from_json(str(Path(__file__).with_name("contexts.jsonl")))}


def distance(doc, results):
    q = [0.0] * len(doc["share"])
    for word, (logprob, *_) in zip(doc["word"], results):
        q[word] += exp(logprob)
    # words that nobody gave have none of people's share: 1 - sum of min(p, q) has the rest in it
    common = sum(min(p, of_model) for p, of_model in zip(doc["share"], q))
    return {"tvd": 1 - common, "mass_on_answers": sum(q)}
'''


def write_lm_eval_task(
    study: xr.Dataset, folder: str | Path, name: str = "distance_to_people", *, words: WordSettings | None = None
) -> Path:
    """Write a folder for ``lm_eval --include_path``: the task's YAML, utils.py, and the contexts with people's shares.

    The harness adds up the tokens of a word, and asks neither whether the word ends there nor whether one begins, as
    ``tvd`` with live models does. The folder has to be new, empty, or one that this function wrote.
    """
    rules = (words or WordSettings()).of(study)
    said = study_words(study, human=rules, model=rules, corpus=rules, models=[])
    items = usable_contexts(study, said)
    people = said.human_distributions.take(items)
    forms = spellings(study, said, items, rules, most=6)
    rows = []
    for at, item in enumerate(items):
        its = people.context == at
        written = [forms[str(said.strings[code])] for code in people.word[its]]
        row: dict[str, Any] = {"context": str(study["context"].to_numpy()[item]).rstrip()}
        row |= {"continuations": [f" {form}" for some in written for form in some]}
        row |= {"word": np.repeat(np.arange(len(written)), [len(some) for some in written]).tolist()}
        row |= {"share": people.probability[its].tolist()}
        rows += [row] if row["continuations"] else []
    if not rows:
        raise InputError("has no context with a text and an answer", source="write_lm_eval_task", field="study")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    with replaced(Path(folder), "task") as made:
        for file, text in ((f"{name}.yaml", TASK.format(name=name)), ("utils.py", UTILS), ("contexts.jsonl", lines)):
            (made / file).write_text(text, encoding="utf-8")
    return Path(folder)
