"""The questions of a study in memory: what never changes of them is read once, when the server starts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Transaction

from shannon_game.experiments.collect.tables import Question

__all__ = ["Card", "Deck", "load_deck"]


@dataclass(frozen=True, eq=False)
class Card:
    """What never changes of a question.

    :class:`~shannon_game.experiments.collect.tables.Question` says what the fields are.

    Parameters
    ----------
    id : int
    game, item_id, document : str
    position : int
    opens : bool
    reaches : int
    training, attention : bool
    content : mapping
    """

    id: int
    game: str
    item_id: str
    document: str
    position: int
    opens: bool
    reaches: int
    training: bool
    attention: bool
    content: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _Places:
    """Questions of one document in their order."""

    positions: list[int] = field(default_factory=list)
    cards: list[Card] = field(default_factory=list)


class Deck:
    """All questions of a study.

    Parameters
    ----------
    cards : iterable of Card

    Examples
    --------
    >>> one, two = (Card(at, "cloze", str(at), "moby", at, True, 0, False, False, {}) for at in (1, 2))
    >>> deck = Deck([one, two])
    >>> deck.following(one).item_id, deck.given_away([two])
    ('2', {1})
    """

    def __init__(self, cards: Iterable[Card]) -> None:
        self.cards: Mapping[int, Card] = {card.id: card for card in cards}
        self._checks: dict[str, list[Card]] = {}
        self._places: dict[tuple[str, str], _Places] = {}
        in_order = sorted(self.cards.values(), key=lambda card: (card.game, card.document, card.position, card.id))
        for card in in_order:
            if card.attention:
                self._checks.setdefault(card.game, []).append(card)
            elif card.document:
                places = self._places.setdefault((card.game, card.document), _Places())
                places.positions.append(card.position)
                places.cards.append(card)

    def checks(self, game: str) -> Sequence[Card]:
        """Attention checks of a game."""
        return self._checks.get(game, [])

    def following(self, card: Card) -> Card | None:
        """Find the next place of a question's document, for the same part of the session."""
        places = self._places.get((card.game, card.document))
        if places is None:
            return None
        later = places.cards[bisect_right(places.positions, card.position) :]
        return next((each for each in later if each.training == card.training), None)

    def given_away(self, asked: Iterable[Card]) -> set[int]:
        """Ids of the questions whose answers stand in the contexts of those that were asked."""
        found: set[int] = set()
        for card in asked:
            places = self._places.get((card.game, card.document))
            if places is not None and not card.attention and card.reaches < card.position:
                first, last = (bisect_left(places.positions, at) for at in (card.reaches, card.position))
                found.update(each.id for each in places.cards[first:last])
        return found


def load_deck(transaction: Transaction, study_id: int) -> Deck:
    """Read the questions of a study."""
    names = ("id", "game", "item_id", "document", "position", "opens", "reaches", "training", "attention", "content")
    query = select(*(getattr(Question, name) for name in names)).where(Question.study_id == study_id)
    return Deck(Card(*row) for row in transaction.execute(query.order_by(Question.id)))
