"""Contexts of a cloze study for the explorer: what people and models answered, and how far they are apart."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.distributions import Distributions, relative_frequencies
from shannon_game.estimators.cloze.study_words import StudyWords, study_words
from shannon_game.estimators.cloze.tables import cloze_items
from shannon_game.estimators.cloze.words import word_rules
from shannon_game.estimators.layout import HUMAN, item_labels
from shannon_game.experiments.harness import exploration
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.result import ExperimentResult

_TOP = 12
"""Words of each player that are listed; people's are all."""

_LABELS = {
    "item": "context",
    "context": "text before the word",
    "target": "target",
    "text_id": "text",
    "word_num": "number of the word in its text",
    "n_answers": "answers",
    "n_different": "different answers",
    "cloze_probability": "share of people who gave the target",
    "modal_answer": "most frequent answer",
    "modal_probability": "its share",
    "n_modal": "answers as frequent",
    "entropy_nats": "entropy of people's answers (nats)",
    "entropy_corrected_nats": "the same, bias corrected (nats)",
    "n_samples_": "{}: words",
    "target_probability_": "{}: probability of the target",
    "surprisal_nats_": "{}: surprisal of the target (nats)",
    "tvd_corrected_": "{}: distance to people (TVD), baseline taken out",
    "tvd_": "{}: distance to people (TVD)",
    "nearest": "model nearest to people",
    exploration.BETTER: "gave the target the most",
}


def cloze_exploration(study: xr.Dataset, result: ExperimentResult | None = None) -> exploration.Exploration:
    """Describe every context of a cloze study, with people's answers and models' words."""
    rules = word_rules(str(study.attrs.get("word_rules", "clean")), {})
    words = study_words(study, human=rules, model=rules, corpus=rules)
    items = exploration.items_of(
        result, study.sizes["item"], "cloze_probability", lambda: cloze_items(study, rules=rules, words=words)
    )
    models = [name for name in words.models if f"tvd_{name}" in items]
    distances = {name: items[f"tvd_{name}"].to_numpy() for name in models}
    given = {HUMAN: items["cloze_probability"].to_numpy()}
    given |= {name: items[f"target_probability_{name}"].to_numpy() for name in models}
    items[exploration.BETTER] = exploration.best_of(given, highest=True)
    if len(models) > 1:
        items["nearest"] = exploration.best_of(distances)
    answers = _answers(study, words)
    posterior = exploration.posterior_tables(result, item_labels(study))
    shown = ("item", "context", "target", "n_answers", "modal_answer", "cloze_probability", "entropy_nats")
    first = [f"tvd_{name}" for name in models[:1]]
    return exploration.Exploration(
        kind="cloze",
        items=items,
        tables=[[answer, *more] for answer, more in zip(answers, posterior, strict=True)],
        labels=exploration.fill_labels([str(name) for name in items.columns], _LABELS),
        shown=(*shown, *first, exploration.BETTER),
        axes=("cloze_probability" if not first else first[0], "entropy_nats"),
        first=(first[0] if first else "entropy_nats", True),
        about=(
            "The target is the word of the text. Who was better: whoever gave the target the highest probability, "
            "people by their share of answers, models by their samples or scores."
        ),
        players=tuple(given),
    )


def _answers(study: xr.Dataset, words: StudyWords) -> list[exploration.ItemTable]:
    people = words.human_distributions
    shares = {name: relative_frequencies(said.counts) for name, said in words.models.items()}
    by_model = {name: _by_item(each, words.models[name].item) for name, each in shares.items()}
    by_people = _by_item(people, np.arange(study.sizes["item"]))
    counts = {} if words.human is None else _counts(words)
    columns = ("word", "people", "share of people", *(f"{player_label(name)}: share" for name in shares))
    found = []
    for item in range(study.sizes["item"]):
        said = by_people.get(item, {})
        models = [by_model[name].get(item) for name in shares]
        # the most frequent first; a model's words that nobody gave stand below people's
        listed = [*sorted(said, key=lambda word: -said[word])]
        for model in models:
            listed += sorted(model, key=lambda word: -model[word])[:_TOP] if model else []
        rows: list[list[exploration.Cell]] = []
        for word in dict.fromkeys(listed):
            number = counts.get((item, word), 0) if words.human is not None else None
            of_models = [None if model is None else model.get(word, 0.0) for model in models]
            text = str(words.strings[word])
            text = f"{text} (target)" if word == words.target[item] else text
            rows.append([text, number, said.get(word, 0.0), *of_models])
        found.append(exploration.ItemTable("Answers of people and models", columns, rows))
    return found


def _by_item(shares: Distributions, items: NDArray[np.intp]) -> dict[int, dict[int, float]]:
    """Item -> word -> probability."""
    found: dict[int, dict[int, float]] = {}
    of = np.asarray(items)[shares.context].tolist()
    for item, word, probability in zip(of, shares.word.tolist(), shares.probability.tolist(), strict=True):
        found.setdefault(item, {})[word] = probability
    return found


def _counts(words: StudyWords) -> dict[tuple[int, int], int]:
    counts = words.answers()
    keys = zip(counts.context.tolist(), counts.word.tolist(), strict=True)
    return dict(zip(keys, counts.count.tolist(), strict=True))
