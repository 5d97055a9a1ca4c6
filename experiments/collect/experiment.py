"""``+exp=collect``: serve a study's questions as games in a browser, and keep what people answer."""

from __future__ import annotations

import logging

import xarray as xr

from shannon_game.experiments.collect.collection import Collection, open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.export import visits
from shannon_game.experiments.collect.games.registry import chosen_contexts
from shannon_game.experiments.collect.players.demonstration import played, players_of
from shannon_game.experiments.collect.server import serve
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.inference.progress import counted

log = logging.getLogger("shannon-game")


class SessionRow(column.Row):
    """One session."""

    participant: str = column.key("pseudonym")
    game: str = column.key("games of the visit")
    state: str = column.flag("where the visit stands")
    n_answers: int = column.estimate("answers")
    n_announced: float = column.detail("questions announced")
    score_points: float = column.detail("points")


@experiment(CollectSettings)
def collect(study: xr.Dataset, settings: CollectSettings) -> ExperimentResult:
    """Serve the games of a study until Ctrl-C, then say what was answered.

    Returns
    -------
    ExperimentResult
        A row per session; of players who are no people, what was estimated beside what they believe.
    """
    study = settings.study_of(study)
    if settings.players != "people":
        # they come to this machine itself, where no proxy speaks TLS
        settings = settings.model_copy(update={"https": False, "recruiter": settings.recruiter.for_players()})
    study = chosen_contexts(study, settings)
    # nothing is launched that they cannot play
    players = {} if settings.players == "people" else players_of(study, settings)
    database = open_database(settings.url)
    try:
        collection = open_collection(settings, study, database)
        if players:
            return played(collection, study, players)
        serve(collection)
        return collected(collection)
    finally:
        database.close()


def collected(collection: Collection) -> ExperimentResult:
    """Count what a database holds of a study, a row per session."""
    with collection.database.read() as transaction:
        rows = []
        for visit, player, n_answers, _, _, points in visits(transaction, collection.study_id):
            games: list[str] = [block.game for block in collection.of(visit).blocks]
            numbers = n_answers, visit.n_announced, points
            rows.append((player.pseudonym, " and ".join(games) or visit.game, visit.state, *numbers))
    cells = [dict(zip([one.name for one in SessionRow.columns], row, strict=True)) for row in rows]
    table = SessionRow.table(cells).astype({"score_points": float, "n_announced": float})
    done = table[table["state"] == "done"]
    n_fewer = int((done["n_answers"] < done["n_announced"]).sum())
    text = (
        f"{counted(len(table), 'session')} of {collection.study_name}, {len(done)} of them complete, with "
        f"{counted(int(table['n_answers'].sum()), 'answer')}."
    ) + (f" {n_fewer} of the complete ones had fewer questions than announced." if n_fewer else "")
    return ExperimentResult(table, table.to_xarray(), {}, text, row=SessionRow)
