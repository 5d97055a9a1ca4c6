"""What one running server holds: settings, database, study, texts, the key that signs."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shannon_game.experiments.collect.adaptive import AdaptiveChooser
from shannon_game.experiments.collect.database import Database
from shannon_game.experiments.collect.deck import Deck
from shannon_game.experiments.collect.deletion import KEY, forget_recruiters
from shannon_game.experiments.collect.games.texts import items_alone
from shannon_game.experiments.collect.parts import automatic_questions, refuse_short_visits
from shannon_game.experiments.collect.register import load_deck, register
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.strings import Strings, page_version
from shannon_game.experiments.collect.surveys import Survey, consent_texts, read_survey
from shannon_game.experiments.collect.tables import ServerValue, Session

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger("shannon-game")

_RELEASE_EVERY_SECONDS = 10.0


@dataclass(eq=False)
class Collection:
    """A study that is served; the key signs cookies and forms, and draws sides."""

    settings: CollectSettings
    database: Database
    study_id: int
    study_name: str
    deck: Deck
    key: bytes
    strings: Strings
    consent: dict[str, list[str]]
    before: Survey
    after: Survey
    page_version: str
    chooser: AdaptiveChooser | None = None
    _by_arm: Mapping[str, CollectSettings] = field(default_factory=dict, repr=False)
    _released_at: float = field(default=0.0, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def of(self, session: Session) -> CollectSettings:
        """Settings as the arm of a session has them."""
        return self._by_arm.get(session.arm, self.settings)

    def release_is_due(self, now: float) -> bool:
        """Say, once in ten seconds, that silent sessions should be looked for."""
        with self._lock:
            if now - self._released_at < _RELEASE_EVERY_SECONDS:
                return False
            self._released_at = now
            return True


def open_collection(settings: CollectSettings, study: xr.Dataset, database: Database) -> Collection:
    """Read the texts and launch the study; InputError where a file, the study or a plan is wrong."""
    strings = Strings(settings.languages)
    before, after = read_survey(settings.before, "before"), read_survey(settings.after, "after")
    if settings.players != "people" or settings.questions == "adaptive":
        # players who are no people believe something of the items; free answers are of the comparisons' contexts
        study = items_alone(study)
    with database.write() as transaction:
        stored = transaction.get(ServerValue, KEY)
        if stored is None:
            stored = ServerValue(name=KEY, value=secrets.token_hex(32))
            transaction.add(stored)
        row = register(transaction, study, settings)
        forget_recruiters(transaction, row.id, settings.retention_days)
        study_id, name, key = row.id, row.name, stored.value
        deck = load_deck(transaction, study_id)
        deck.automatic, deck.ever_automatic = automatic_questions(deck)
        # inside the transaction: what is refused is not launched
        refuse_short_visits(settings, deck)
    adaptive = settings.questions == "adaptive"
    return Collection(
        settings=settings,
        database=database,
        study_id=study_id,
        study_name=name,
        deck=deck,
        key=bytes.fromhex(key),
        strings=strings,
        consent=consent_texts(settings),
        before=before,
        after=after,
        page_version=page_version(),
        chooser=AdaptiveChooser(settings, deck, database, study_id) if adaptive else None,
        _by_arm={arm.name: settings.of_arm(arm.name) for arm in settings.arms},
        _released_at=time.time(),
    )
