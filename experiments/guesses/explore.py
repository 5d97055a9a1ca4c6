"""Places of a guess study for the explorer: what was guessed, and who was right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from estimators.guesses import guess_contexts, guess_items
from estimators.layout import HUMAN, response_positions
from experiments.harness.exploration import BETTER, Cell, Exploration, ItemTable, best_of, fill_labels
from experiments.harness.tables import short_names

if TYPE_CHECKING:
    import xarray as xr

    from experiments.harness.result import ExperimentResult

__all__ = ["guess_exploration"]

_TEXT_SHOWN = 600
"""Characters of the text before the place."""

_LABELS = {
    "item": "place",
    "document": "text",
    "position": "tokens before it",
    "context": "text before it",
    "target": "token of the text",
    "word_token": "a word",
    "n_guesses": "guesses",
    "n_participants": "people",
    "accuracy": "share of guesses that are right",
    "modal_guess": "most frequent guess",
    "modal_share": "its share",
    "hit_": "{} is right (1 yes, 0 no, a share for ties)",
    "surprisal_nats_": "surprisal of the token of the text, {} (nats)",
    BETTER: "more often right",
}


def guess_exploration(study: xr.Dataset, result: ExperimentResult | None = None) -> Exploration:
    """Describe every place of a guess study, with its guesses.

    Parameters
    ----------
    study : xarray.Dataset
        A guess study.
    result : ExperimentResult, optional
        Of any experiment on it; language models that it asked are shown too.

    Returns
    -------
    Exploration

    Examples
    --------
    >>> from estimators.guesses.examples import guess_study
    >>> guess_exploration(guess_study()).items[["item", "accuracy"]].head(2)
        item  accuracy
    0  d0: 1      0.50
    1  d0: 2      0.25
    """
    items = None if result is None else result.tables.get("items")
    if items is None or len(items) != study.sizes["item"] or "accuracy" not in items:
        items = guess_items(study)
    items = items.copy()
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
    items[BETTER] = best_of({HUMAN: items["accuracy"].to_numpy(), **hits}, highest=True)
    texts = [name for name in ("context", "target", "modal_guess") if name in items]
    surprisal = [column for column in items.columns if column.startswith("surprisal_nats_")]
    return Exploration(
        kind="guess",
        items=items,
        tables=_tables(study),
        labels=fill_labels([str(name) for name in items.columns], _LABELS),
        shown=("item", *texts, "n_guesses", "accuracy", *[f"hit_{name}" for name in hits][:2], BETTER),
        axes=(surprisal[0] if surprisal else "n_guesses", "accuracy"),
        about="Who was better: whoever was right more often at the place.",
    )


def _tables(study: xr.Dataset) -> list[list[ItemTable]]:
    people = study["participant"].to_numpy().astype(str)
    names = short_names(people.tolist())
    table = pd.DataFrame({"item": response_positions(study), "who": [names[name] for name in people]})
    table["right"] = np.where(study["correct"].to_numpy(), "yes", "no")
    columns = ["who", "right"]
    if "guess" in study:
        table["guess"] = study["guess"].to_numpy().astype(str)
        columns = ["who", "guess", "right"]
    head = {"who": "participant", "guess": "guess", "right": "right"}
    found: list[list[ItemTable]] = [[] for _ in range(study.sizes["item"])]
    for item, part in table.groupby("item"):
        rows: list[list[Cell]] = part[columns].to_numpy().tolist()
        found[int(str(item))] = [ItemTable("Guesses", tuple(head[name] for name in columns), rows)]
    return found
