"""A browser without JavaScript that plays by the pages' own forms."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import select
from starlette.testclient import TestClient

from shannon_game.experiments.collect.database import Database
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.collect.tables import Answer, Assignment, Question


def csrf_of(page: Any) -> str:
    return re.search(r'name="csrf" value="([^"]+)"', page.text)[1]  # type: ignore[index]


def order_of(page: Any) -> str:
    return re.search(r'name="order" value="(\d+)"', page.text)[1]  # type: ignore[index]


def step_of(page: Any) -> str:
    return re.search(r'name="step" value="(\d+)"', page.text)[1]  # type: ignore[index]


def logged_in(app: Any) -> Player:
    """The experimenter, with the password of the tests."""
    admin = Player(app, "cloze")
    admin.get("/admin")
    admin.post("/admin/login", password=PASSWORD)
    return admin


def answers(database: Database) -> list[tuple[Answer, Assignment, Question]]:
    """What is stored, in its order."""
    with database.read() as transaction:
        query = select(Answer, Assignment, Question).select_from(Answer).join(Assignment).join(Question)
        return [tuple(row) for row in transaction.execute(query.order_by(Assignment.order))]  # type: ignore[misc]


PASSWORD = "long enough"
FIELDS = {"comparison": "report", "cloze": "word", "top1": "token", "guess_until_right": "word"}


class Player:
    """One person with cookies of their own."""

    def __init__(self, app: Any, game: str, client: Any = None) -> None:
        self.client = client or TestClient(app)
        self.game = game
        self.page: Any = None

    def post(self, path: str, **data: str) -> Any:
        self.page = self.client.post(path, data={"csrf": csrf_of(self.page), **data})
        return self.page

    def get(self, path: str) -> Any:
        self.page = self.client.get(path)
        return self.page

    def begin(self, query: str = "") -> Any:
        self.get(f"/{query}")
        hidden = dict(re.findall(r'name="(?!csrf|game|language|screen)(\w+)" value="([^"]*)"', self.page.text))
        self.post("/start", game=self.game, **hidden)
        return self.page

    def to_play(self, query: str = "") -> Any:
        self.begin(query)
        self.post("/consent", agree="yes")
        self.post("/before", **{"q-first_language": "0"})
        return self.post("/instructions", **right_answers(self.game))

    def right_for_check(self) -> str | None:
        found = re.search(r"choose (\d+)%|type the word (\w+)\.", self.page.text)
        return found and (found[1] or found[2])

    def form(self, text: str) -> dict[str, str]:
        """Fields of the game's answer."""
        word = self.right_for_check() or text
        if self.game == "bets":
            return {"word1": word, "chips1": "60", "chips_other": "40"}
        return {FIELDS[self.game]: word}

    def answer(self, text: str) -> Any:
        return self.post("/play", order=order_of(self.page), step=step_of(self.page), **self.form(text))

    def play_all(self, text: str) -> int:
        n = 0
        while self.page.url.path == "/play":
            self.answer(text)
            n += 1
            if self.page.url.path == "/feedback":
                self.get("/play")
        return n
