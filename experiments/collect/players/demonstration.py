"""``experiment.players=simulated``: serve, let players play, and set what they answered beside what they believe."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sqlalchemy import func, select

from estimators.comparison import estimate_perplexity
from estimators.comparison.simulation.settings import ParticipantPopulation
from estimators.errors import InputError, require_packages
from estimators.layout import HUMAN, item_labels
from experiments.collect.players.browser import Answerer
from experiments.collect.players.crowd import Crowd, play_all, served
from experiments.collect.players.people import People, Person, exact_people, simulated_people
from experiments.collect.players.world import World, world_of
from experiments.collect.tables import Player, Session
from experiments.harness.result import ExperimentResult
from experiments.harness.settings import rows_of
from experiments.studies.collected.loader import collected_study
from experiments.studies.comparison.file import save_comparison_study
from inference.progress import say
from inference.settings import to_dataclass

if TYPE_CHECKING:
    import xarray as xr

    from experiments.collect.collection import Collection
    from experiments.collect.settings import CollectSettings

__all__ = ["PLAYED_COLUMNS", "people_of", "play_games", "played_table"]

PLAYED_COLUMNS = (
    *("game", "belief", "n_players", "n_answers", "n_sent", "seconds"),
    *("perplexity", "perplexity_lower", "perplexity_upper", "true_perplexity", "verdict"),
)
"""Columns of the table: answers that count, and all that were sent, of training rounds and attention checks too; what
was estimated of the answers (equation 5) with its verdict, beside the perplexity of what was believed."""

_OF_KNOWN_TOKENS = (
    "players of cloze draw from the tokens that the study has for a context, its target and candidates: the TVD of "
    "what they typed to a whole distribution says nothing"
)
_ON_SCREEN = ("game", "n_answers", "perplexity", "perplexity_lower", "perplexity_upper", "true_perplexity", "verdict")


def people_of(study: xr.Dataset, settings: CollectSettings) -> People:
    """Make the players that the settings ask for.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    settings : CollectSettings

    Returns
    -------
    People
    """
    world = world_of(study, settings.belief)
    if settings.players == "exact":
        return exact_people(world, settings.n_players, settings.seed)
    population = to_dataclass(ParticipantPopulation, settings.population)
    return simulated_people(world, population, settings.n_players, settings.seed)


def play_games(collection: Collection, study: xr.Dataset) -> dict[str, Crowd]:
    """Serve on a free port and let all players play every game of the settings.

    Parameters
    ----------
    collection : Collection
    study : xarray.Dataset
        The study that is served.

    Returns
    -------
    dict
        Game -> what became of the players.

    Raises
    ------
    InputError
        If a player could not go on, or these players have played before.
    """
    require_packages(("httpx",), "collect", source="experiment.players")
    settings = collection.settings
    people = people_of(study, settings)
    found: dict[str, Crowd] = {}
    names = [f"{settings.players}-{settings.seed}-{number:04d}" for number in range(settings.n_players)]
    _refuse_repeat(collection, names)
    with served(collection) as address:
        for game in settings.game:
            say(f"{len(names)} players play {game} at {address}")
            players: list[tuple[str, Answerer]] = [(name, Person(people, at)) for at, name in enumerate(names)]
            crowd = play_all(players, game, address=address, parameters=settings.recruiter.parameters)
            ended = collection.chooser is not None and collection.chooser.enough
            if crowd.problems and not ended:
                problem = f"stopped {len(crowd.problems)} of {len(names)} players; the first one: {crowd.problems[0]}"
                raise InputError(problem, source=f"game {game}", field="players")
            found[game] = crowd
    return found


def _refuse_repeat(collection: Collection, names: list[str]) -> None:
    """Nobody plays a game twice, simulated players neither: their answers would be the same ones."""
    with collection.database.read() as transaction:
        there = transaction.scalar(
            select(func.count(Session.id))
            .join(Player)
            .where(Player.recruiter_id.in_(names), Session.study_id == collection.study_id)
        )
    if there:
        url = collection.settings.database
        problem = f"is {url!r}, where these players have played before; name another one, or another seed= of the run"
        raise InputError(problem, field="experiment.database")


def played(collection: Collection, study: xr.Dataset) -> ExperimentResult:
    """Let players play, load what they left, and set its estimate beside the truth.

    Parameters
    ----------
    collection : Collection
    study : xarray.Dataset
        The study that is served.

    Returns
    -------
    ExperimentResult
        :data:`PLAYED_COLUMNS`, a row a game; the file ``study.nc`` is the comparison study that was collected.
    """
    settings, before = collection.settings, _answered(collection)
    crowds = play_games(collection, study)
    n_answers = {game: n - before.get(game, 0) for game, n in _answered(collection).items()}
    found = None
    if "comparison" in crowds:
        found = collected_study(url=settings.database, collection=str(collection.study_id), pilot=settings.pilot)
    world = world_of(study, settings.belief)
    table = played_table(found, world, crowds, n_answers, settings.n_players)
    files = {} if found is None else {"study.nc": partial(save_comparison_study, found)}
    on_screen = table[[*_ON_SCREEN]]
    return ExperimentResult(
        table,
        table.to_xarray(),
        {},
        _summary(table, settings),
        warnings=(_OF_KNOWN_TOKENS,) if "cloze" in crowds else (),
        files=files,
        on_screen=on_screen,
    )


def _answered(collection: Collection) -> dict[str, int]:
    """Count the answers of people that count, by game."""
    query = select(Session.game, func.sum(Session.n_counted)).where(Session.study_id == collection.study_id)
    with collection.database.read() as transaction:
        return {game: int(n) for game, n in transaction.execute(query.group_by(Session.game))}


def played_table(
    study: xr.Dataset | None, world: World, crowds: dict[str, Crowd], n_answers: Mapping[str, int], n_players: int
) -> pd.DataFrame:
    """Set the estimate of what was answered beside the truth.

    Parameters
    ----------
    study : xarray.Dataset or None
        The comparison study that was collected, where that game was played.
    world : World
    crowds : mapping of str to Crowd
    n_answers : mapping of str to int
        Answers that count, by game.
    n_players : int

    Returns
    -------
    pandas.DataFrame
        :data:`PLAYED_COLUMNS`, a row a game. The truth is of the items that are reference items of the study.
    """
    rows = []
    for game, crowd in crowds.items():
        row: dict[str, Any] = {"game": game, "belief": world.belief, "n_players": n_players}
        row |= {"n_answers": n_answers.get(game, 0), "n_sent": crowd.n_answers, "seconds": crowd.seconds}
        if game == "comparison" and study is not None:
            found = estimate_perplexity(study, HUMAN)
            names = set(item_labels(study).astype(str).tolist())
            asked = [at for at, name in enumerate(world.name) if name in names]
            row |= {
                "perplexity": found.perplexity,
                "perplexity_lower": found.perplexity_lower,
                "perplexity_upper": found.perplexity_upper,
                "true_perplexity": float(np.exp(-world.target_logprob[asked].mean())),
                "verdict": found.gap.diagnostics.verdict,
            }
        rows.append(row)
    return pd.DataFrame(rows).reindex(columns=list(PLAYED_COLUMNS))


def _summary(table: pd.DataFrame, settings: CollectSettings) -> str:
    n_answers, n_sent, seconds = int(table["n_answers"].sum()), int(table["n_sent"].sum()), table["seconds"].sum()
    text = (
        f"{settings.n_players} players gave {n_answers:,} answers that count, with training rounds and attention "
        f"checks {n_sent:,}, through the pages in {seconds:.0f} s, {n_sent / seconds:.0f} a second."
    )
    for row in rows_of(table[table["game"] == "comparison"]):
        text += (
            f" Equation 5 says perplexity **{row.perplexity:.3g}** ({row.perplexity_lower:.3g} to "
            f"{row.perplexity_upper:.3g}, two standard errors); what they believe ({row.belief}) has "
            f"**{row.true_perplexity:.3g}**. The estimate's verdict: {row.verdict}. "
            f"`+exp=human_loss study=collected study.url={settings.database}` fits the model of participants to what "
            "they left."
        )
    return text
