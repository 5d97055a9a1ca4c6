"""Places of a guess study for the explorer: what was guessed, and who was right."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from shannon_game.estimators.guesses import guess_contexts
from shannon_game.estimators.guesses.tables import guess_items
from shannon_game.estimators.layout import HUMAN, response_positions
from shannon_game.experiments.harness import exploration
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.tables import short_names

_TEXT_SHOWN = 600
"""Characters of the text before the place."""

_LABELS = {
    "item": "place",
    "document": "text",
    "position": "tokens before it",
    "context": "text before it",
    "target": "target",
    "word_token": "a word",
    "n_guesses": "guesses",
    "n_participants": "people",
    "accuracy": "share of guesses that are right",
    "modal_guess": "most frequent guess",
    "modal_share": "its share",
    "hit_": "{} is right (1 yes, 0 no, a share for ties)",
    "surprisal_nats_": "{}: surprisal of the target (nats)",
    exploration.BETTER: "more often right",
}


def guess_exploration(study: xr.Dataset, result: ExperimentResult | None = None) -> exploration.Exploration:
    """Describe every place of a guess study, with its guesses."""
    items = exploration.items_of(result, study.sizes["item"], "accuracy", lambda: guess_items(study))
    place = [f"{row.document}: {row.position}" for row in items.itertuples()]
    # people may be asked twice at one place, under two labels
    twice = pd.Series(place).duplicated(keep=False).to_numpy()
    labels = study["item"].to_numpy()
    names = [f"{name} ({label})" if again else name for name, label, again in zip(place, labels, twice, strict=True)]
    items.insert(0, "item", names)
    if "text" in study and "target_start" in study:
        items.insert(1, "context", [text[-_TEXT_SHOWN:] for text in guess_contexts(study)])
    hits = {
        column.removeprefix("hit_"): items[column].to_numpy() for column in items.columns if column.startswith("hit_")
    }
    items[exploration.BETTER] = exploration.best_of({HUMAN: items["accuracy"].to_numpy(), **hits}, highest=True)
    texts = [name for name in ("context", "target", "modal_guess") if name in items]
    surprisal = [column for column in items.columns if column.startswith("surprisal_nats_")]
    return exploration.Exploration(
        kind="guess",
        items=items,
        tables=_tables(study),
        labels=exploration.fill_labels([str(name) for name in items.columns], _LABELS),
        shown=("item", *texts, "n_guesses", "accuracy", *[f"hit_{name}" for name in hits][:2], exploration.BETTER),
        axes=(surprisal[0] if surprisal else "n_guesses", "accuracy"),
        first=("accuracy", False),
        answered="n_guesses",
        about="The target is the token of the text. Who was better: whoever was right more often at the place.",
        players=(HUMAN, *hits),
    )


def _tables(study: xr.Dataset) -> list[list[exploration.ItemTable]]:
    people = study["participant"].to_numpy().astype(str)
    names = short_names(people.tolist())
    who = [names[name] for name in people]
    right = ["yes" if correct else "no" for correct in study["correct"].to_numpy().tolist()]
    guess = study["guess"].to_numpy().astype(str).tolist() if "guess" in study else None
    columns = ("participant", "right") if guess is None else ("participant", "guess", "right")
    rows: list[list[list[exploration.Cell]]] = [[] for _ in range(study.sizes["item"])]
    for answer, item in enumerate(response_positions(study).tolist()):
        said = [] if guess is None else [guess[answer]]
        rows[item].append([who[answer], *said, right[answer]])
    return [[exploration.ItemTable("Guesses", columns, of_item)] if of_item else [] for of_item in rows]
