"""Places of a bet study for the explorer: who bet what, and what it cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.bets import bet_losses
from shannon_game.estimators.bets.losses import FLOOR, outcome_stakes
from shannon_game.estimators.bets.tables import bet_items
from shannon_game.estimators.layout import HUMAN, item_labels, item_positions
from shannon_game.experiments.harness import exploration
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.tables import short_names

_LABELS = {
    "item": "place",
    "context": "text before it",
    "target": "target",
    "n_responses": "answers",
    "share_named": "share of answers that name the target",
    "mean_stake": "mean stake on what came",
    "loss_nats_": "people: mean loss, back-off {} (nats)",
    "surprisal_nats_": "{}: surprisal of the target (nats)",
    exploration.BETTER: "lowest loss here",
}


def bet_exploration(study: xr.Dataset, result: ExperimentResult | None = None) -> exploration.Exploration:
    """Describe every place of a bet study, with its stakes."""
    n_answered = np.unique(study["response_item"].to_numpy()).size
    items = exploration.items_of(
        result, n_answered, "mean_stake", lambda: bet_items(study, {FLOOR: bet_losses(study, FLOOR)})
    )
    labels = item_labels(study)
    position = pd.Index(labels.astype(str)).get_indexer(items["item"].astype(str).to_numpy())
    if "context" in study:
        items.insert(1, "context", study["context"].to_numpy()[position])
    losses = [column for column in items.columns if column.startswith("loss_nats_")]
    models = [column for column in items.columns if column.startswith("surprisal_nats_")]
    players = {column.removeprefix("surprisal_nats_"): items[column].to_numpy() for column in models}
    items[exploration.BETTER] = exploration.best_of({HUMAN: items[losses[0]].to_numpy(), **players})
    texts = [name for name in ("context", "target") if name in items]
    return exploration.Exploration(
        kind="bet",
        items=items,
        tables=_tables(study, position.tolist()),
        labels=exploration.fill_labels([str(name) for name in items.columns], _LABELS),
        shown=("item", *texts, "n_responses", "share_named", "mean_stake", losses[0], *models[:1], exploration.BETTER),
        axes=(models[0] if models else "share_named", losses[0]),
        first=(losses[0], True),
        about=(
            "The target is the word of the text. Who was better: the lowest mean loss on the item, people's with the "
            f"back-off {player_label(losses[0].removeprefix('loss_nats_'))}."
        ),
        players=(HUMAN, *players),
    )


def _tables(study: xr.Dataset, positions: list[int]) -> list[list[exploration.ItemTable]]:
    people = study["participant"].to_numpy().astype(str)
    names = short_names(people.tolist())
    who = np.array([names[name] for name in people], dtype=object)
    item = item_positions(study, "response_item")
    named = {name: study[f"bet_{name}"].to_numpy() for name in ("response", "word", "stake", "hit")}
    other = {"response": np.arange(len(item)), "word": "(any other word)", "stake": study["other_stake"].to_numpy()}
    stakes = pd.concat([pd.DataFrame(named), pd.DataFrame({**other, "hit": ~outcome_stakes(study)[1]})])
    stakes = stakes.sort_values(["response", "stake"], ascending=[True, False], kind="stable")
    stakes["is the target"] = np.where(stakes["hit"], "yes", "no")
    stakes["item"], stakes["participant"] = item[stakes["response"]], who[stakes["response"]]
    found = {int(str(at)): part for at, part in stakes.groupby("item")}
    shown = ["participant", "word", "stake", "is the target"]
    parts = (found[position] for position in positions)
    return [[exploration.item_table("Stakes", {name: part[name] for name in shown})] for part in parts]
