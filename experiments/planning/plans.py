"""Plans that ``+exp=collect`` runs, and what the study that they serve has room for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.deck import Deck
from shannon_game.experiments.collect.games.registry import chosen_contexts, too_few_contexts
from shannon_game.experiments.collect.parts import deck_of, refuse_short_visits, visit_fits
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.planning.settings import ADAPTIVE, DesignPoint
from shannon_game.inference.disk import write_whole

if TYPE_CHECKING:
    import xarray as xr

SCALES = ("interface", "slider")
"""Scales that the comparison game has."""

_BLOCKS = {
    "comparison": {"comparison": "n_comparisons"},
    "bridge": {"cloze": "n_answers", "comparison": "n_comparisons"},
    ADAPTIVE: {"cloze": "n_answers", "comparison": "n_comparisons"},
    "mixed": {"cloze": "n_answers", "comparison": "n_comparisons", "bets": "n_bets"},
    "bets": {"bets": "n_bets"},
    "cloze": {"cloze": "n_answers"},
    "accuracy": {"top1": "n_guesses"},
    "ranks": {"guess_until_right": "n_guesses"},
}
"""Game of a design -> games of a visit, with the size per context that each asks."""


def plan_of(row: Any, n_people: int, width_nats: float, served: str | None = None) -> dict[str, Any]:
    """Settings of a collection: its study, how many questions of each game a person answers, and how many people."""
    share = 0.5 if row.game == "mixed" else 1.0
    blocks = [
        {"game": game, "n_questions": math.ceil(share * row.n_contexts * getattr(row, size) / n_people)}
        for game, size in _BLOCKS[row.game].items()
    ]
    plan: dict[str, Any] = {} if served is None else {"served": served}
    plan |= {"blocks": blocks, "n_sessions": int(n_people), "contexts": int(row.n_contexts)}
    if row.scale:
        plan["scale"] = row.scale
    return plan | ({"questions": "adaptive", "width_nats": width_nats} if row.game == ADAPTIVE else {})


def write_plan(plan: dict[str, Any], path: Path, *, recommended: bool = True) -> None:
    """Write a plan as YAML; its first line says if it is not recommended."""
    said = "" if recommended else "# not recommended: the narrowest within the budget\n"
    write_whole(path, said + yaml.safe_dump(plan, sort_keys=False))


@dataclass(frozen=True, eq=False)
class ServedStudy:
    """The study that plans serve: which designs :func:`~shannon_game.experiments.collect.experiment.collect` takes."""

    study: xr.Dataset
    width_nats: float
    _decks: dict[tuple[Any, ...], Deck] = field(default_factory=dict)

    def askable(self, points: Sequence[DesignPoint], *, given: bool) -> tuple[list[DesignPoint], tuple[str, ...]]:
        """Leave out designs that the study cannot serve, with a warning; refuse `given` contexts that are too many."""
        too_many: dict[tuple[str, int], str] = {}
        impossible: dict[tuple[str, int], str] = {}
        for point in {(point.game, point.n_contexts): point for point in points if _is_served(point)}.values():
            try:
                problem, found = too_few_contexts(self.study, self._settings(point, point.n_contexts)), too_many
            except InputError as error:
                # such as tokens that the vocabulary of a game lacks
                problem, found = str(error), impossible
            if problem:
                found[point.game, point.n_contexts] = problem
        left = [point for point in points if (point.game, point.n_contexts) not in too_many | impossible]
        if too_many and (given or not left):
            raise InputError(too_many[min(too_many, key=lambda size: size[1])], field="contexts")
        if impossible and not left:
            raise InputError(next(iter(impossible.values())))
        reasons = [*(f"contexts {problem}" for problem in too_many.values()), *impossible.values()]
        return left, tuple(f"designs left out: {len(points) - len(left)}, the first as {text}" for text in reasons[:1])

    def people(self, point: DesignPoint, n_people: int) -> int:
        """So many people, or more, that the questions of a visit fit the contexts as `collect` wants it."""
        if not _is_served(point):
            return n_people
        # at the last number a visit asks one question of each game
        sizes = [getattr(point, size) for size in _BLOCKS[point.game].values()]
        for n in range(n_people, max(n_people, point.n_contexts * max(sizes)) + 1):
            settings = self._settings(point, n)
            if visit_fits(settings, self._deck(settings)):
                return n
        refuse_short_visits(settings, self._deck(settings))
        return n_people

    def _settings(self, point: DesignPoint, n_people: int) -> CollectSettings:
        return CollectSettings(**plan_of(point, n_people, self.width_nats))

    def _deck(self, settings: CollectSettings) -> Deck:
        games = tuple((game, settings.n_checks(game)) for game in settings.game)
        key = settings.contexts, settings.scale, games
        if key not in self._decks:
            self._decks[key] = deck_of(chosen_contexts(self.study, settings), settings)
        return self._decks[key]


def served_study(study: xr.Dataset, width_nats: float) -> ServedStudy:
    """Take from a study what its questions are made of."""
    return ServedStudy(study.drop_vars("reference_logprob", errors="ignore"), width_nats)


def _is_served(point: DesignPoint) -> bool:
    """A scale that no game offers is a simulation's."""
    return point.scale in ("", *SCALES)
