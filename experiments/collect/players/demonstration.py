"""``experiment.players=simulated``: serve, let players play, and set what they answered beside what they believe.

Language models (``experiment.players=model``) play here too; what these believe is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sqlalchemy import func, select

from shannon_game.estimators.comparison import estimate_perplexity
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.comparison.terms import control_model
from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.layout import HUMAN, item_labels
from shannon_game.estimators.messages import Ask, Load, Set
from shannon_game.experiments.collect.database import shown_url
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.games.vocabulary import read_vocabulary
from shannon_game.experiments.collect.players.browser import Answerer
from shannon_game.experiments.collect.players.crowd import Crowd, play_all, served
from shannon_game.experiments.collect.players.models import ModelPerson, model_people
from shannon_game.experiments.collect.players.people import Person, exact_people, simulated_people
from shannon_game.experiments.collect.players.world import World, invented_world, with_truth, world_of
from shannon_game.experiments.collect.security import new_token
from shannon_game.experiments.collect.sessions import ENDED, token_hash
from shannon_game.experiments.collect.tables import COUNTED, Answer, Assignment, Player, Question, Session
from shannon_game.experiments.comparison.estimates import EstimateRow, estimate_row
from shannon_game.experiments.comparison.perplexity import sampling_warnings
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.inference.progress import say
from shannon_game.inference.settings import to_dataclass

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.collect.collection import Collection
    from shannon_game.experiments.collect.settings import CollectSettings


class PlayedRow(column.Row):
    """One game."""

    game: str = column.key("game")
    belief: str = column.context("model whose belief the players have")
    n_players: int = column.context("players")
    n_answers: int = column.context("answers that count")
    n_sent: int = column.context("all that were sent, of training rounds and attention checks too")
    seconds: float = column.detail("time", unit="s")
    perplexity: float = column.headline("perplexity by equation 5", interval="perplexity_{}")
    true_perplexity: float = column.truth("perplexity", "perplexity of what was believed")
    verdict: str = column.flag("whether the responses per item are enough", bad={"too few": "‡", "doubtful": "†"})


def players_of(study: xr.Dataset, settings: CollectSettings) -> dict[str, Answerer]:
    """Make the players that the settings ask for, by name."""
    if settings.players == "model":
        return dict(model_people(settings))
    names = [f"{settings.players}-{settings.seed}-{number:04d}" for number in range(settings.n_players)]
    world = _world(study, settings)
    if settings.players == "exact":
        people = exact_people(world, settings.n_players, settings.seed)
    else:
        people = simulated_people(
            world,
            to_dataclass(ParticipantPopulation, settings.population),
            settings.n_players,
            settings.seed,
            private_sd_nats=settings.population.private_sd_nats,
            bots=settings.population.bots,
        )
    return {name: Person(people, at) for at, name in enumerate(names)}


def _world(study: xr.Dataset, settings: CollectSettings) -> World:
    if "candidate_token" not in study:
        rows = [row for game in settings.game for row in GAMES[game].questions(study, settings)]
        return invented_world(rows, f"study {study.attrs.get('name')!r}", settings.belief, settings.seed)
    taken = read_vocabulary(settings.vocabulary).tokens if "top1" in settings.game else None
    return world_of(study, settings.belief, population=settings.population, seed=settings.seed, guesses=taken)


def play_games(collection: Collection, players: Mapping[str, Answerer]) -> dict[str, Crowd]:
    """Serve on a free port and let all players play every game of the settings."""
    require_packages(("httpx",), "collect", source=Set("experiment.players"))
    settings = collection.settings
    found: dict[str, Crowd] = {}
    with served(collection) as address:
        # a visit of several blocks is played once
        for game in settings.game[:1] if settings.blocks else settings.game:
            played = [block.game for block in settings.blocks] or [game]
            say(f"{len(players)} players play {', then '.join(played)} at {address}")
            # somebody else in every game: what one of them shows would answer the next one
            own = [(f"{game}-{name}", player) for name, player in players.items()]
            done, links = _begun(collection, [name for name, _ in own])
            own = [each for each in own if each[0] not in done]
            crowd = play_all(own, game, address=address, parameters=settings.recruiter.parameters, links=links)
            ended = collection.chooser is not None and collection.chooser.enough
            # a model that cannot be read leaves; that is a finding, not a fault of the pages
            if crowd.problems and not ended and settings.players != "model":
                problem = f"stopped {len(crowd.problems)} of {len(players)} players; the first one: {crowd.problems[0]}"
                raise InputError(problem, source=f"game {game}", field="players")
            found |= dict.fromkeys(played, crowd)
    return found


def _begun(collection: Collection, names: Sequence[str]) -> tuple[set[str], dict[str, str]]:
    """Names of players whose visits have ended, and new secrets of those that were broken off."""
    query = select(Session).join(Player).where(Player.recruiter_id.in_(names), Session.study_id == collection.study_id)
    done, links = set[str](), dict[str, str]()
    with collection.database.write() as transaction:
        for session in transaction.scalars(query):
            name = session.player.recruiter_id or ""
            if session.state in ENDED:
                done.add(name)
            else:
                links[name] = new_token()
                session.token_hash = token_hash(links[name])
    return done, links


def played(collection: Collection, study: xr.Dataset, players: Mapping[str, Answerer]) -> ExperimentResult:
    """Let players play, load what they left, and set its estimate beside the truth."""
    settings = collection.settings
    crowds = play_games(collection, players)
    n_answers = _answered(collection)
    models = [each for each in players.values() if isinstance(each, ModelPerson)]
    found, left = None, [problem for crowd in _once(crowds) for problem in crowd.problems if models]
    if "comparison" in crowds:
        try:
            found = collected_study(url=settings.url, collection=str(collection.study_id), pilot=settings.pilot)
        except InputError:
            # nobody stayed until the first answer that counts
            if not left:
                raise
    # what a model believes that answers in text is not known
    world = next((each.people.world for each in players.values() if isinstance(each, Person)), None)
    table = played_table(found, world, crowds, n_answers, len(players))
    files = {} if found is None else {"study.nc": partial(save_comparison_study, found)}
    if world is not None and "candidate_token" in study:
        files["served.nc"] = partial(save_comparison_study, with_truth(study, world))
    return ExperimentResult(
        table,
        table.to_xarray(),
        {},
        _summary(table, settings, models, crowds),
        warnings=(
            *([] if found is None else _on_the_estimate(found)),
            *((f"{len(left)} sessions were left; the first: {left[0]}",) if left else ()),
        ),
        writers=files,
        row=PlayedRow,
    )


def _on_the_estimate(study: xr.Dataset) -> tuple[str, ...]:
    """Say what +exp=perplexity would say of the same answers: what the verdict is on, and what it leaves out."""
    row = estimate_row(estimate_perplexity(study, HUMAN), control_model(study), EstimateRow)
    return sampling_warnings(EstimateRow.table([row]))


def _answered(collection: Collection) -> dict[str, int]:
    query = select(Question.game, func.count(Answer.id)).select_from(Answer).join(Assignment).join(Question)
    query = query.where(Question.study_id == collection.study_id, COUNTED).group_by(Question.game)
    with collection.database.read() as transaction:
        return {row[0]: int(row[1]) for row in transaction.execute(query)}


def played_table(
    study: xr.Dataset | None,
    world: World | None,
    crowds: dict[str, Crowd],
    n_answers: Mapping[str, int],
    n_players: int,
) -> pd.DataFrame:
    """Set the estimate of what was answered beside the truth."""
    rows = []
    for game, crowd in crowds.items():
        row: dict[str, Any] = {"game": game, "belief": "" if world is None else world.belief, "n_players": n_players}
        row |= {"n_answers": n_answers.get(game, 0), "n_sent": crowd.n_sent[game], "seconds": crowd.seconds}
        if game == "comparison" and study is not None:
            found = estimate_perplexity(study, HUMAN)
            row |= {
                "perplexity": found.perplexity,
                "perplexity_lower": found.perplexity_lower,
                "perplexity_upper": found.perplexity_upper,
                "verdict": found.gap.diagnostics.verdict,
            }
            if world is not None:
                names = set(item_labels(study).astype(str).tolist())
                asked = [at for at, name in enumerate(world.name) if name in names]
                row["true_perplexity"] = float(np.exp(-world.target_logprob[asked].mean()))
        rows.append(row)
    return PlayedRow.table(rows)


def _once(crowds: Mapping[str, Crowd]) -> list[Crowd]:
    # the games of one visit have one crowd
    return list({id(each): each for each in crowds.values()}.values())


def _summary(
    table: pd.DataFrame, settings: CollectSettings, models: Sequence[ModelPerson], crowds: Mapping[str, Crowd]
) -> str:
    n_answers, n_sent, seconds = (
        int(table["n_answers"].sum()),
        int(table["n_sent"].sum()),
        sum(each.seconds for each in _once(crowds)),
    )
    text = (
        f"**{int(table['n_players'].iloc[0])} players gave {n_answers:,} answers**, {n_sent:,} with training rounds "
        f"and attention checks, in {seconds:.0f} s ({n_sent / seconds:.0f} per second)."
    )
    if models:
        n_unreadable = sum(sum(each.unreadable.values()) for each in models)
        n_asked = sum(each.n_asked for each in models)
        text += f" Of {n_asked:,} answers in text, {n_unreadable:,} could not be read and were asked for again."
        unreadable = sum((each.unreadable for each in models), Counter[str]())
        if unreadable:
            text += f" Most often: {', '.join(f'{said!r} ({n})' for said, n in unreadable.most_common(3))}."
    if table["perplexity"].notna().any():
        study = Load("collected", {"url": shown_url(settings.url)})
        text += (
            " The table has equation 5 with 90% intervals beside the truth. "
            f"`{Ask('human_loss')}` fits a model of participants to `{study}`."
        )
    return text
