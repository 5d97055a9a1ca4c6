"""Comparisons chosen by what was answered so far, and when there are enough of them: ``questions: adaptive``.

At a look, the answers in the database become a comparison study and its token pool; the scaled bridge says how wide the
interval of people's gap is, and :mod:`shannon_game.estimators.comparison.planning.adaptive` what each comparison is
expected to add. Until the next look, questions are drawn with these probabilities, none twice while others are left.
The width decides when to stop, the estimate does not (Chow and Robbins 1965); that two looks in a row are asked for
keeps a width that is small by chance from ending a collection.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.comparison import TokenPool, question_state, scaled_bridge
from shannon_game.estimators.comparison.planning.adaptive import question_probabilities
from shannon_game.estimators.comparison.study import candidate_tokens
from shannon_game.estimators.comparison.token_pool import study_pool
from shannon_game.estimators.documents.clusters import t_half_width
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.collect.assign import Chosen
from shannon_game.experiments.collect.database import Database
from shannon_game.experiments.collect.deck import Deck
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.tables import Session
from shannon_game.experiments.studies.collected.answers import collected_answers
from shannon_game.experiments.studies.collected.comparison import collected_comparisons
from shannon_game.experiments.studies.collected.settings import CollectedSettings

if TYPE_CHECKING:
    import xarray as xr

_INTERVAL = 0.9
_FLOOR = 0.1
_COMPARISON_SECONDS = 15.0
_LOOKS = 2

log = logging.getLogger("shannon-game")
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Course:
    """How far a collection is, at the last look."""

    n_answers: int = 0
    width_nats: float = math.nan
    wanted_nats: float | None = None
    enough: bool = False

    @property
    def n_needed(self) -> int | None:
        """Answers that are still needed, as a width falls with the root of their number; None where nobody knows."""
        if self.wanted_nats is None or not math.isfinite(self.width_nats):
            return None
        return max(math.ceil(self.n_answers * ((self.width_nats / self.wanted_nats) ** 2 - 1)), 0)


class AdaptiveChooser:
    """Chooses the next comparison of a session."""

    def __init__(self, settings: CollectSettings, deck: Deck, database: Database, study_id: int) -> None:
        self.course = Course(wanted_nats=settings.width_nats)
        self._settings, self._deck, self._database, self._study_id = settings, deck, database, study_id
        self._probability: Mapping[int, Mapping[int, float]] = {}
        self._taken: set[tuple[int, int]] = set()
        self._n_since: int | None = None
        self._narrow = 0
        self._lock, self._looking = threading.Lock(), threading.Lock()

    @property
    def enough(self) -> bool:
        """Whether no more questions are asked."""
        return self.course.enough

    def look(self) -> None:
        """Look at the answers, where enough were asked since the last look; others go on meanwhile."""
        with self._lock:
            due = self._n_since is None or self._n_since >= self._settings.look_answers
        if not due or self.enough or not self._looking.acquire(blocking=False):
            return
        try:
            self._look()
        finally:
            self._looking.release()

    def next_question(self, session: Session, open: Sequence[int]) -> Chosen | None:  # noqa: A002
        """Draw one of the comparisons that are open to a session; None before there are answers to choose by."""
        with self._lock:
            self._n_since = (self._n_since or 0) + 1
            if not self._probability:
                return None
            known = [at for at in open if at in self._probability]
            rng = np.random.default_rng([session.seed, 3, session.n_asked])
            unknown = sorted(set(open) - set(known))
            if rng.random() * len(open) < len(unknown):
                # nothing is known of these items: equal chances, and the candidate whose turn it is
                return Chosen(int(rng.choice(unknown)), 1 / len(open))
            pairs = [(at, place) for at in known for place in self._probability[at]]
            pairs = [pair for pair in pairs if pair not in self._taken] or pairs
            weight = np.array([self._probability[at][place] for at, place in pairs])
            weight /= weight.sum()
            drawn = int(rng.choice(len(pairs), p=weight))
            self._taken.add(pairs[drawn])
            return Chosen(pairs[drawn][0], float(weight[drawn]) * len(known) / len(open), pairs[drawn][1])

    def _look(self) -> None:
        settings = CollectedSettings(collection=str(self._study_id), pilot=self._settings.pilot)
        course = Course(wanted_nats=self._settings.width_nats)
        probability: Mapping[int, Mapping[int, float]] = {}
        try:
            with self._database.read() as transaction:
                found = collected_answers(transaction, settings)
            study = collected_comparisons(found, None)
            pool, place = study_pool(study)
            course, probability = self._course_of(pool), self._probabilities(study, pool, place)
        except InputError as error:
            # too few answers for an estimate: none to one of the two games, or no item with both
            log.debug("no adaptive questions yet: %s", error)
        with self._lock:
            self.course, self._probability, self._taken, self._n_since = course, probability, set(), 0

    def _course_of(self, pool: TokenPool) -> Course:
        found, wanted = scaled_bridge(pool), self._settings.width_nats
        width = 2 * t_half_width(found.se_asked_nats, found.freedom, _INTERVAL)
        self._narrow = self._narrow + 1 if wanted is not None and width <= wanted else 0
        n_answers = pool.report_token.size + pool.answer_token.size
        return Course(n_answers, width, wanted, enough=self._narrow >= _LOOKS)

    def _probabilities(self, study: xr.Dataset, pool: TokenPool, place: IntArray) -> dict[int, dict[int, float]]:
        """Question -> candidate of its content -> probability of the comparison."""
        # comparisons come first; free answers are the other game's
        probability = question_probabilities(
            question_state(pool), floor=_FLOOR, comparison_seconds=_COMPARISON_SECONDS, answer_seconds=None
        )[: pool.item.size]
        # rows of the pool are each item's target, then its distinct candidates
        code = candidate_tokens(study)[place]
        item, column = np.nonzero(code == np.arange(code.shape[1]))
        tokens, names = study["candidate_token"].to_numpy()[place[item], column], item_labels(study).astype(str)
        cards = {card.item_id: card for card in self._deck.cards.values() if card.game == "comparison"}
        found: dict[int, dict[int, float]] = {}
        for own, token, chance in zip(item.tolist(), tokens, probability[~pool.is_target], strict=True):
            card = cards[names[place[own]]]
            shown = [each["token"] for each in card.content["candidates"]]
            if token in shown:
                found.setdefault(card.id, {})[shown.index(token)] = float(chance)
        return found
