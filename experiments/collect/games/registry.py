"""Which games there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shannon_game.estimators.arrays import IntArray
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.collect.games.bets import Bets
from shannon_game.experiments.collect.games.cloze import Cloze
from shannon_game.experiments.collect.games.comparison import Comparison
from shannon_game.experiments.collect.games.guess_until_right import GuessUntilRight
from shannon_game.experiments.collect.games.practice import practice_rows
from shannon_game.experiments.collect.games.protocol import Game
from shannon_game.experiments.collect.games.texts import items_alone
from shannon_game.experiments.collect.games.top1 import Top1
from shannon_game.experiments.harness.settings import rng_for

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.collect.settings import CollectSettings

GAMES: dict[str, Game] = {game.name: game for game in (Comparison(), Top1(), Cloze(), GuessUntilRight(), Bets())}
"""Games by their names; a script may add one of its own before it serves, loads or exports."""


def known_game(name: str) -> str:
    """Refuse what is no game."""
    if name not in GAMES:
        raise unknown_choice("game", name, GAMES)
    return name


def too_few_contexts(study: xr.Dataset, settings: CollectSettings) -> str:
    """Say so where fewer contexts can be asked in every game than are wanted, with those of the practice."""
    return _too_few(study, settings, *_askable(study, settings))


def _too_few(study: xr.Dataset, settings: CollectSettings, there: IntArray, practice: Sequence[str]) -> str:
    if settings.contexts is None or settings.contexts + len(practice) <= there.size:
        return ""
    more = f"practice takes {len(practice)} more, " if practice else ""
    return (
        f"is {settings.contexts}, {more}and {there.size} contexts of the study can "
        f"be asked in {', '.join(settings.game)} (of {study.sizes['item']}; words are asked where the target begins "
        "one); build more, or lower contexts or training_rounds"
    )


def _askable(study: xr.Dataset, settings: CollectSettings) -> tuple[IntArray, list[str]]:
    """Find the items that every game can ask about, and the games that practise, once a round."""
    alone = items_alone(study)
    asked = [{row.item_id for row in GAMES[game].questions(alone, settings)} for game in settings.game]
    there = np.flatnonzero(np.isin(item_labels(study).astype(str), sorted(set.intersection(*asked))))
    # games through a text practise on a whole document, most others on texts of their own
    has_own = {
        game: settings.goes_on(game) or bool(practice_rows(game, GAMES[game], settings)) for game in settings.game
    }
    rounds = {game: 0 if has_own[game] else settings.block(game).training_rounds for game in settings.game}
    return there, [game for game, number in rounds.items() for _ in range(number)]


def chosen_contexts(study: xr.Dataset, settings: CollectSettings) -> xr.Dataset:
    """Draw the contexts that are asked, from those that every game can ask about, and others to practise on."""
    if settings.contexts is None:
        return study
    there, practice = _askable(study, settings)
    if problem := _too_few(study, settings, there, practice):
        raise InputError(problem, field="contexts")
    study = items_alone(study)
    names = item_labels(study).astype(str)
    drawn = rng_for(settings.seed, "contexts").choice(there, settings.contexts + len(practice), replace=False)
    kept_for = dict(zip(drawn[settings.contexts :].tolist(), practice, strict=True))
    drawn.sort()
    # what others answered before is about other items too
    study = study.drop_dims("answer", errors="ignore").isel({"response": []} if "response" in study.dims else {})
    practised = np.array([kept_for.get(at, "") for at in drawn.tolist()], dtype=object)
    return study.isel(item=drawn).assign(item_id=("item", names[drawn].astype(object)), practice=("item", practised))
