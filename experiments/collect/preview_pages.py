"""The preview: every page of every arm and list, one after the other. Nothing is stored, and no form can be sent."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from starlette.responses import Response

from shannon_game.experiments.collect.collection import Collection
from shannon_game.experiments.collect.deck import Card
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.pages import Handler, filled, instructions_page, survey_of
from shannon_game.experiments.collect.play import Asked
from shannon_game.experiments.collect.play_pages import question_page
from shannon_game.experiments.collect.security import csrf_token
from shannon_game.experiments.collect.sessions import Refusal
from shannon_game.experiments.collect.settings import BlockSettings
from shannon_game.experiments.collect.tables import Player, Session
from shannon_game.experiments.collect.visit import Visit, page


@dataclass(frozen=True)
class _Place:
    """A page of a visit."""

    state: str
    arm: str
    item_list: str
    blocks: tuple[BlockSettings, ...]
    block: int = 0
    card: Card | None = None


def preview_key(collection: Collection) -> str:
    """What the address of the preview holds: whoever has it sees all questions."""
    return csrf_token(collection.key, "preview")[:20]


def _places(collection: Collection) -> Iterator[_Place]:
    settings, deck = collection.settings, collection.deck
    for arm, name in product([arm.name for arm in settings.arms] or [""], list(settings.lists) or [""]):
        closed = deck.outside(tuple(settings.items_of(arm, name)))
        for blocks in settings.of_arm(arm).visits():
            of_visit = arm, name, blocks
            yield _Place("consent", *of_visit)
            if collection.before:
                yield _Place("before", *of_visit)
            for number, block in enumerate(blocks):
                yield _Place("instructions", *of_visit, number)
                cards = [card for card in deck.cards.values() if card.game == block.game]
                cards = [card for card in cards if not deck.bit[card.id] & closed]
                cards.sort(key=lambda card: (not card.training, not card.attention))
                for card in cards if block.training_rounds else [card for card in cards if not card.training]:
                    yield _Place("training" if card.training else "play", *of_visit, number, card)
            if collection.after:
                yield _Place("after", *of_visit)
            yield _Place("done", *of_visit)


def preview(visit: Visit) -> Response:
    """Show the page of a number; ``key`` in the address lets in."""
    query, collection = visit.request.query_params, visit.collection
    key = preview_key(collection)
    if not hmac.compare_digest(query.get("key", "").encode(), key.encode()):
        raise Refusal(404, "error.not_found")
    places = list(_places(collection))
    wanted = query.get("at", "0")
    at = min(int(wanted) if wanted.isascii() and wanted.isdecimal() else 0, len(places) - 1)
    place = places[at]
    said = ", ".join(filter(None, (place.arm, place.item_list, place.state, place.card.item_id if place.card else "")))
    # the first page of each part of each visit
    keys = [(each.arm, each.item_list, each.blocks, each.block, each.state) for each in places]
    parts = [number for number, its in enumerate(keys) if not number or keys[number - 1] != its]
    links = {"at": at, "n": len(places), "said": said, "key": key, "parts": [(n, places[n].state) for n in parts]}
    return _shown(visit, place, {"preview": links, "csrf": ""})


def _shown(visit: Visit, place: _Place, more: dict[str, Any]) -> Response:
    settings = visit.collection.settings
    game = place.blocks[place.block].game
    session = Session(state=place.state, game=game, block=place.block, arm=place.arm, item_list=place.item_list)
    session.language, session.player = visit.language, Player(pseudonym="preview", recruiter={})
    session.n_trained = session.n_counted = 0
    session.points = session.training_points = 0.0
    session.rules_tries, session.completion_code = {}, settings.recruiter.completion_code or "PREVIEW"
    if place.state == "consent":
        return page(visit, "consent.html", session=session, paragraphs=visit.collection.consent[visit.language], **more)
    if place.state == "instructions":
        return instructions_page(visit, session, **more)
    if place.state in ("before", "after"):
        asked = survey_of(visit, place.state)
        shown: dict[str, Any] = {"moment": place.state, "questions": asked, "fewer": None, "given": {}, "problem": None}
        return page(visit, "survey.html", session=session, **shown, **more)
    if place.card is not None:
        layout = GAMES[game].layout(place.card.content, 0, np.random.default_rng(place.card.id))
        asked_now = Asked(0, 0, "open", place.card.training, layout, (), None, place.card)
        return question_page(visit, session, asked_now, **more)
    back = settings.recruiter.return_url and filled(settings.recruiter.return_url, {"code": session.completion_code})
    last: dict[str, Any] = {"return_url": back, "points": {}, "name": None, "fewer": None, "submit": None}
    return page(visit, "thanks.html", session=session, **last, **more)


PREVIEW_PAGES: tuple[tuple[str, str, Handler], ...] = (("GET", "/preview", preview),)
"""Method, address, handler."""
