"""Items of a comparison study for the explorer: candidates, reports, and what every model expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.comparison import HUMAN, comparison_items
from shannon_game.estimators.comparison.study_sources import TARGET_POSITION, response_references
from shannon_game.estimators.layout import item_labels, response_positions
from shannon_game.experiments.harness import exploration
from shannon_game.experiments.harness.exploration import BETTER, Cell, Exploration, ItemTable
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.tables import short_names
from shannon_game.inference.progress import counted

if TYPE_CHECKING:
    from shannon_game.experiments.harness.result import ExperimentResult

_LABELS = {
    "item": "item",
    "context": "context",
    "target": "target",
    "item_set": "set of items",
    "n_responses": "answers",
    "n_participants": "people",
    "mean_report": "people: mean probability of the target",
    "mean_log_ratio_nats": "people: mean ln odds of the target (nats)",
    "surprisal_nats_": "{}: surprisal of the target (nats)",
    "gap_nats_": "{}: loss here minus the generator's (nats)",
    BETTER: "lowest loss here",
}


def comparison_exploration(study: xr.Dataset, result: ExperimentResult | None = None) -> Exploration:
    """Describe every item of a comparison study, with its candidates and reports."""
    items = exploration.items_of(result, study.sizes["item"], "context", lambda: comparison_items(study))
    reports = _reports(study)
    n_automatic = np.bincount(response_positions(study)[study["automatic"].to_numpy()], minlength=study.sizes["item"])
    items["mean_log_ratio_nats"] = reports.groupby("item")["log_ratio"].mean().reindex(range(len(items))).to_numpy()
    own = [str(column) for column in items if str(column).startswith("gap_nats_")]
    gaps = {column.removeprefix("gap_nats_"): items[column].to_numpy() for column in own}
    items[BETTER] = exploration.best_of(gaps)
    posterior = exploration.posterior_tables(result, item_labels(study))
    by_item = dict(list(reports.groupby("item")))
    # items that nobody answered come last
    order = np.argsort(items["n_responses"].to_numpy() == 0, kind="stable")
    tables = [
        [*_item_tables(study, at, by_item.get(at), int(n_automatic[at])), *posterior[at]] for at in order.tolist()
    ]
    people = [name for name in (f"gap_nats_{HUMAN}",) if name in items]
    models = [f"surprisal_nats_{name}" for name in study["model"].to_numpy().tolist()]
    return Exploration(
        kind="comparison",
        items=items.iloc[order],
        tables=tables,
        labels=exploration.fill_labels([str(name) for name in items.columns], _LABELS),
        shown=("item", "context", "target", "n_responses", "mean_report", *people, *models[:1], BETTER),
        axes=(models[0], "mean_report"),
        first=("mean_report", False),
        answered="n_responses",
        about=(
            "The target is the token of the text; people said how probable it is beside one candidate. A player's gap "
            "is the mean of its losses here minus the generator's. Who was better: the player with the lowest loss. "
            "That of one item rests on few answers: it is rough, and too low where they are few."
        ),
        players=tuple(gaps),
    )


def _reports(study: xr.Dataset) -> pd.DataFrame:
    names = short_names(study["participant"].to_numpy().astype(str).tolist())
    report = study["report"].to_numpy()
    table = pd.DataFrame(
        {
            "item": response_positions(study),
            "candidate": study["response_candidate"].to_numpy(),
            "reference": response_references(study),
            "participant": [names[str(name)] for name in study["participant"].to_numpy()],
            "report": report,
            "log_ratio": np.log(report) - np.log1p(-report),
        }
    )
    return table[~study["automatic"].to_numpy() & (table["reference"] == TARGET_POSITION).to_numpy()]


def _item_tables(study: xr.Dataset, position: int, reports: pd.DataFrame | None, n_automatic: int) -> list[ItemTable]:
    tokens = study["candidate_token"].to_numpy()[position]
    models: list[str] = study["model"].to_numpy().tolist()
    target_p = np.exp(study["target_logprob"].to_numpy()[:, position])
    candidate_p = np.exp(study["candidate_logprob"].to_numpy()[:, position])
    truth = "human_target_logprob" in study
    head = ("token", "answers", "people: mean probability of the target", *map(_belief, models))
    head = (*head, "people in truth: probability") if truth else head
    own: list[Any] = [np.exp(float(study["human_target_logprob"].to_numpy()[position]))] if truth else []
    target = str(study["target_token"].to_numpy()[position])
    rows: list[list[Cell]] = [[f"{target} (target)", None, None, *target_p.tolist(), *own]]
    answered = {} if reports is None else {int(str(at)): part for at, part in reports.groupby("candidate")}
    # a token that was drawn several times is one row
    for token in dict.fromkeys(tokens[at] for at in sorted(answered, key=lambda at: -len(answered[at]))):
        same = [at for at in answered if tokens[at] == token]
        report = np.concatenate([answered[at]["report"].to_numpy() for at in same])
        own = [np.exp(float(study["human_candidate_logprob"].to_numpy()[position, same[0]]))] if truth else []
        rows.append([str(token), len(report), float(report.mean()), *candidate_p[:, same[0]].tolist(), *own])
    found = [ItemTable("Tokens: what people reported and models expected", head, rows)]
    if reports is not None:
        columns = ("participant", "compared with", "probability of the target", "ln odds (nats)")
        said: list[list[Cell]] = [
            [str(row.participant), str(tokens[int(row.candidate)]), float(row.report), float(row.log_ratio)]  # type: ignore[arg-type]
            for row in reports.itertuples()
        ]
        by_site = f" (without {counted(n_automatic, 'answer')} of the site, .5 for equal tokens)" if n_automatic else ""
        found.append(ItemTable(f"Reports{by_site}", columns, said))
    return found


def _belief(model: str) -> str:
    return f"{player_label(model)}: probability"
