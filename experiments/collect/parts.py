"""Parts of a visit: which questions count, which are practised on or checked with, and how many of them fit."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.collect.deck import Card, Deck
from shannon_game.experiments.collect.games.practice import practice_rows
from shannon_game.experiments.collect.games.protocol import PRACTICE, QuestionRow
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.harness.settings import rng_for

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger("shannon-game")

_TIMES = 12
_ANY = np.random.default_rng(0)  # the side that it draws makes no question automatic


@dataclass(frozen=True)
class Part:
    """A question and what it is for."""

    row: QuestionRow
    training: bool = False
    attention: bool = False


def parts_of(name: str, study: xr.Dataset, settings: CollectSettings) -> list[Part]:
    """Make a game's questions, those of its training, and what attention checks are made of.

    Training has questions of its own where there are some in the language of the texts. Elsewhere questions are set
    aside for it, drawn with the seed; in games that go through a text it is one document.
    """
    game = GAMES[name]
    own = practice_rows(name, game, settings)
    practice: dict[str, str] = {}
    if "practice" in study:
        practice = dict(zip(item_labels(study).astype(str).tolist(), study["practice"].values.tolist(), strict=True))
    rows = [row for row in game.questions(study, settings) if practice.get(row.item_id, "") in ("", name)]
    order = rng_for(settings.seed, f"training {name}").permutation(len(rows)).tolist()
    # what is kept for it, or what no list names, is practised on first: lists keep their items
    listed = {item for items in named_items(settings).values() for item in items}
    order.sort(
        key=lambda at: (
            practice.get(rows[at].item_id) != name,
            not listed.isdisjoint((rows[at].item_id, rows[at].document)),
        )
    )
    checks, rounds = settings.n_checks(name), 0 if own else settings.block(name).training_rounds
    # places without a document follow no other
    if settings.goes_on(name) and any(row.document for row in rows):
        document = _training_document(rows, rounds, listed) if rounds else None
        aside = [at for at, row in enumerate(rows) if row.document == document]
        # an instruction stands in place of the text's question: nothing of the text is given away
        sources = [*aside, *order][:checks]
    else:
        # a context that was shown in the training would answer what it holds: none of that is asked
        aside = order[:rounds]
        # the parts of a visit share their items: none is lost to a check
        sources = [*aside, *order][:checks] if settings.blocks else order[len(aside) : len(aside) + checks]
    # a check of tokens of the study's would show them beside each other
    lost = set(sources) if name == "comparison" and not own else set()
    kept = set(range(len(rows))) - set(aside) - lost
    if not any(rows[at].opens for at in kept):
        problem = (
            f"sets aside all {len(rows)} questions that the study has for {name}; ask fewer training rounds and "
            "attention checks, or take a larger study"
        )
        raise InputError(problem, source=f"study {study.attrs.get('name')!r}", field="training_rounds")
    made = [Part(rows[at], training=at in set(aside)) for at in range(len(rows)) if at in kept or at in set(aside)]
    made += [Part(row, training=True) for row in own]
    contents = [{**row.content, PRACTICE: False} for row in own] or [rows[at].content for at in sources]
    for number in range(len(sources)):
        content = game.attention_check({**contents[number % len(contents)], "context": ""}, number)
        made.append(Part(QuestionRow(f"check-{number}", content), attention=True))
    return made


def named_items(settings: CollectSettings) -> dict[str, tuple[str, ...]]:
    """Items and documents that lists and arms name, by setting."""
    return {f"lists.{name}": items for name, items in settings.lists.items()} | {
        f"arms.{arm.name}.items": arm.items for arm in settings.arms
    }


def visit_needs(settings: CollectSettings, games: Iterable[str]) -> list[tuple[str, bool, int]]:
    """What a visit asks of some games, in order: game, whether in training, how many questions."""
    blocks = [settings.block(game) for game in games]
    return [
        (block.game, training, number)
        for block in blocks
        for training, number in ((True, block.training_rounds), (False, block.n_questions))
    ]


def is_automatic(card: Card, n_served: int) -> bool:
    """Whether the server answers a question by itself at a time."""
    game = GAMES[card.game]
    return game.automatic(card.content, game.layout(card.content, n_served, _ANY)) is not None


def automatic_questions(deck: Deck) -> tuple[int, int]:
    """Questions that the server answers by itself: at that time in a row at which they are the most, and at any.

    Which ones they are changes from one person to the next: a visit keeps room for so many.
    """
    cards = [card for card in deck.cards.values() if card.game == "comparison" and not card.attention]
    found = [sum(deck.bit[card.id] for card in cards if is_automatic(card, at)) for at in range(_TIMES)]
    return max(found, key=int.bit_count), reduce(or_, found)


def deck_of(study: xr.Dataset, settings: CollectSettings) -> Deck:
    """Make the questions of a study as a launch does, without a database."""
    parts = [(game, part) for game in settings.game for part in parts_of(game, study, settings)]
    deck = Deck(
        Card(id=at, game=game, training=part.training, attention=part.attention, **vars(part.row))
        for at, (game, part) in enumerate(parts)
    )
    deck.automatic, deck.ever_automatic = automatic_questions(deck)
    return deck


def visit_fits(settings: CollectSettings, deck: Deck) -> bool:
    """Whether a visit's questions fit, where no list or arm restricts them."""
    (blocks,) = settings.visits()
    needs = visit_needs(settings, [block.game for block in blocks])
    return deck.room(needs, deck.automatic, settings.goes_on) == sum(block.n_questions for block in blocks)


def refuse_short_visits(settings: CollectSettings, deck: Deck) -> None:
    """Refuse lists, arms and blocks that cannot fill a visit without giving an answer away; warn of a single game."""
    arms, lists = [arm.name for arm in settings.arms] or [""], list(settings.lists) or [""]
    restricts = bool(settings.blocks or settings.lists or any(arm.items for arm in settings.arms))
    for arm, name in product(arms, lists):
        closed = deck.automatic | deck.outside(tuple(settings.items_of(arm, name)))
        for blocks in settings.of_arm(arm).visits():
            games, wanted = [block.game for block in blocks], sum(block.n_questions for block in blocks)
            room = deck.room(visit_needs(settings, games), closed, settings.goes_on)
            if room == wanted:
                continue
            numbers = [(block.n_questions * room // wanted, block) for block in blocks]
            fewer = " and ".join(f"{number} of {block.game}" for number, block in numbers)
            if settings.n_sessions and all(number for number, _ in numbers):
                most = max(-(-settings.n_sessions * block.n_questions // number) for number, block in numbers)
                fewer += f", of {most} people"
            cell = f"lists.{name}" if name else f"arms.{arm}" if arm else ""
            problem = (
                f"a visit asks {wanted} questions of {' and '.join(games)}, and {room} fit: what is shown for one "
                f"answers others on its text, and equal tokens are not asked about; name more items, or ask {fewer}"
            )
            if restricts:
                raise InputError(problem, field=cell or "blocks")
            log.warning("n_questions: %s", problem)


def _training_document(rows: Sequence[QuestionRow], rounds: int, listed: Container[str]) -> str:
    """Find the shortest document with enough places, one that no list names where there is any."""
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.document] = sizes.get(row.document, 0) + 1
    enough = {document: size for document, size in sizes.items() if size >= rounds}
    return min(enough or sizes, key=lambda document: (document in listed, sizes[document], document))
