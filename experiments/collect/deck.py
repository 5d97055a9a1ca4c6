"""The questions of a study in memory, and which of them a page gives away by what it shows.

A page shows a context and, after the answer, the token or word that followed. Everything inside of that text is known
to whoever saw it: the answers of all games whose contexts end in it. Texts are compared without their blanks, so that
the games agree on a place whether they cut a text into words or into tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shannon_game.experiments.collect.games.protocol import CUT, PRACTICE

_LEAST, _TAIL, _SURE = 8, 40, 24
"""Signs at a context's end by which its place is found in another text: at least, at most, and in other documents."""


@dataclass(frozen=True, eq=False)
class Card:
    """What never changes of a :class:`~shannon_game.experiments.collect.tables.Question`."""

    id: int
    game: str
    item_id: str
    document: str
    position: int
    opens: bool
    training: bool
    attention: bool
    content: Mapping[str, Any]


class Deck:
    """All questions of a study; sets of them are whole numbers, one bit a question."""

    def __init__(self, cards: Iterable[Card]) -> None:
        self.cards: Mapping[int, Card] = {card.id: card for card in cards}
        self.bit = {card_id: 1 << at for at, card_id in enumerate(self.cards)}
        self.checks = defaultdict[str, list[Card]](list)
        """Attention checks of a game."""
        self._places: dict[tuple[str, str, bool], list[Card]] = {}
        self.parts = defaultdict[tuple[str, bool], int](int)
        """Questions of a game, of its training or those that count."""
        self._in_order: dict[tuple[str, bool], list[Card]] = {}
        self.of_document: dict[str, int] = {}
        self._ends: dict[str, dict[tuple[str, str, bool], int]] = {}
        self._outside: dict[tuple[tuple[str, ...], ...], int] = {(): 0}
        self.given_away: dict[int, int] = {}
        self.automatic = 0
        """Questions that a visit does not count on, as the server may answer so many by itself."""
        self.ever_automatic = 0
        """Questions that the server answers by itself at one time or another."""
        for card in sorted(self.cards.values(), key=lambda card: (card.position, card.id)):
            if card.attention:
                self.checks[card.game].append(card)
                continue
            part = card.game, card.training
            self.parts[part] |= self.bit[card.id]
            self._in_order.setdefault(part, []).append(card)
            if card.document:
                self.of_document[card.document] = self.of_document.get(card.document, 0) | self.bit[card.id]
                self._places.setdefault((card.game, card.document, card.training), []).append(card)
            if card.content.get(PRACTICE):
                continue  # obvious, and of no study: nothing gives it away
            tail = _plain(card.content["context"])[-_TAIL:]
            ends = self._ends.setdefault(tail[-_LEAST:], {})
            key = tail, card.document, bool(card.content.get(CUT))
            ends[key] = ends.get(key, 0) | self.bit[card.id]
        sizes = Counter((card.document or card.id, part) for part, cards in self._in_order.items() for card in cards)
        self.longest_document = max(sizes.values(), default=0)

    def outside(self, lists: tuple[tuple[str, ...], ...]) -> int:
        """Questions that count, and that are not in all of some lists of items or whole documents."""
        if lists not in self._outside:
            named = [set(each) for each in lists]
            self._outside[lists] = sum(
                self.bit[card.id]
                for card in self.cards.values()
                if not (card.training or card.attention)
                and not all(card.item_id in each or card.document in each for each in named)
            )
        return self._outside[lists]

    def room(
        self,
        needs: Iterable[tuple[str, bool, int]],
        closed: int,
        goes_on: Callable[[str], bool],
        first: Card | None = None,
    ) -> int:
        """Count the questions that somebody can be asked of those that are still needed: game, training, number.

        Early places come first, as they give away the least. Games that go on through a text take one text after the
        other, that of `first` before all.
        """
        n_asked = 0
        for game, training, needed in needs:
            left = needed
            # where the training has shown too much, it goes on with what else there is
            for part in ((game, True), (game, False)) if training else ((game, False),):
                cards = self._in_order.get(part, [])
                if goes_on(game):
                    cards = sorted(cards, key=lambda card: card.document)
                    if first is not None:
                        cards = [*(card for card in cards if card.document == first.document), *cards]
                for card in cards:
                    if not left:
                        break
                    if not self.bit[card.id] & closed:
                        closed |= self.gives_away(card)
                        left -= 1
            n_asked += 0 if training else needed - left
        return n_asked

    def following(self, card: Card) -> Card | None:
        """Find the next place of a question's document, for the same part of the session."""
        places = self._places.get((card.game, card.document, card.training), [])
        at = bisect_right(places, card.position, key=lambda each: each.position)
        return places[at] if at < len(places) else None

    def gives_away(self, card: Card) -> int:
        """Questions that nobody is asked after this one: it, those at its place, and those whose answer it shows."""
        if card.id not in self.given_away:
            found = 0 if card.attention else self.known_from(card.document, card.content)
            self.given_away[card.id] = found | self.bit.get(card.id, 0)
        return self.given_away[card.id]

    def known_from(self, document: str, content: Mapping[str, Any]) -> int:
        """Questions whose context ends inside what was shown: something of what follows it was seen."""
        before, target = _plain(content["context"]), _plain(content["target"])
        shown, cut, found = before + target, bool(content.get(CUT)), 0
        # what ends where the text does is not given away, unless it is the very place
        for end in range(len(shown) + (not target)):
            for (tail, own, tail_cut), bits in self._ends.get(shown[max(end - _LEAST, 0) : end], {}).items():
                common = min(len(tail), end)
                known_place = document == own != "" or common >= _SURE or (end > 0 and tail == before == shown[:end])
                # texts that begin at the beginning of a document agree from there on
                begins = tail_cut or len(tail) == _TAIL or (end == len(tail) and not cut)
                same = shown[end - common : end] == tail[len(tail) - common :]
                if known_place and same and begins and (cut or end >= len(tail)):
                    found |= bits
        return found


def _plain(text: str) -> str:
    return "".join(text.split())
