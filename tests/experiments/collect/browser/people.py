"""A server in a thread, and a person before a real browser who plays by keyboard."""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
import xarray as xr

from shannon_game.experiments.collect.database import Database, open_database
from shannon_game.experiments.collect.server import app
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.surveys import right_answers

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Playwright


SIZES: Mapping[int, int] = {1366: 768, 390: 844}
"""Width -> height of a screen, in pixels."""
_WORD = r"(?:word|Wort) (\w+)"
PATIENCE_MS = 60_000
"""A machine that does other things too is slow, not wrong."""


@dataclass(frozen=True)
class Site:
    """A server that runs."""

    address: str
    database: Database


@contextmanager
def serving(settings: CollectSettings, study: xr.Dataset, folder: Path) -> Iterator[Site]:
    """Serve a study from a thread, on a free port."""
    database = open_database(f"sqlite:///{folder / 'collect.sqlite'}")
    config = uvicorn.Config(app(settings, study, database), port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server ended at once"
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Site(f"http://127.0.0.1:{port}", database)
    finally:
        server.should_exit = True
        thread.join()
        database.close()


def chromium() -> str | None:
    """Where the system's own browser is: none is downloaded."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def open_browser(playwright: Playwright) -> Browser:
    """Start the browser; its sandbox does not work for root."""
    arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    return playwright.chromium.launch(executable_path=chromium(), args=arguments)


def _asked(page: Page, pattern: str, otherwise: str) -> str:
    """What an attention check asks for."""
    check = page.locator(".check")
    found = re.search(pattern, check.inner_text()) if check.count() else None
    return found[1] if found else otherwise


def _comparison(page: Page) -> None:
    keys = {"99": "99", "1": "0"}
    for key in keys.get(_asked(page, r"(\d+) ?%", ""), "7"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")


def _typed(*words: str) -> Callable[[Page], None]:
    """How a word or token is typed, another at every guess."""

    def keyboard(page: Page) -> None:
        number = int(page.locator("input[name=step]").get_attribute("value") or 0)
        page.keyboard.type(_asked(page, _WORD, words[number % len(words)]))
        page.keyboard.press("Enter")

    return keyboard


def _bets(page: Page) -> None:
    # the page itself puts what is left on anything else
    for text in (_asked(page, _WORD, "the"), "30", "a", "20"):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")


HANDS: Mapping[str, Callable[[Page], None]] = {
    "comparison": _comparison,
    "top1": _typed(" the"),
    "cloze": _typed("time"),
    "guess_until_right": _typed(*(letter * 3 for letter in "abcdefghij")),
    "bets": _bets,
}
"""Game -> how it is answered by keys alone, from wherever the page puts the focus."""


@dataclass
class Person:
    """Somebody with a browser of their own, who notes what the page complains of and where it asks for files."""

    context: BrowserContext
    site: Site
    game: str
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.new_tab()

    def new_tab(self) -> Page:
        """Open another tab of the same browser."""
        page = self.context.new_page()
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        return page

    def press(self, selector: str) -> None:
        """Use a button or link and wait for the page that it leads to."""
        with self.page.expect_navigation():
            self.tab_to(selector)
            self.page.keyboard.press("Enter")

    def tab_to(self, selector: str) -> None:
        """Go to an element with the Tab key, as one who has no mouse."""
        for _ in range(40):
            if self.page.locator(f"{selector}:focus").count():
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"no way to {selector} by the Tab key on {self.page.url}")

    def begin(self, query: str = "") -> None:
        """From the start to the consent."""
        self.page.goto(f"{self.site.address}/{query}")
        self.press(f"form:has(input[value={self.game}]) button")

    def before(self) -> None:
        """Answer the questions before the game."""
        self.tab_to("input[name=q-first_language][value='0']")
        self.page.keyboard.press("Space")
        self.press("main button")

    def rules(self) -> None:
        """Answer the questions on the rules."""
        for name, value in right_answers(self.game).items():
            self.tab_to(f"input[name={name}][value='0']")
            for key in ("Space", *["ArrowDown"] * int(value)):
                self.page.keyboard.press(key)
        self.press("main form button")

    def to_play(self, query: str = "") -> None:
        """From the start to the first question."""
        self.begin(query)
        self.press("button[value=yes]")
        self.before()
        self.rules()

    def order(self) -> str:
        """Number of the question that stands there."""
        return self.page.locator("input[name=order]").first.get_attribute("value") or ""

    def answer(self) -> None:
        """Answer the question."""
        with self.page.expect_navigation():
            HANDS[self.game](self.page)

    def play(self, each: Callable[[Person], Any] = lambda person: None) -> int:
        """Play to the end, and say how many pages took an answer; ``each`` sees every page of the game."""
        n = 0
        while self.is_at("/play"):
            each(self)
            self.answer()
            n += 1
            if self.is_at("/feedback"):
                each(self)
                self.press("a.next")
        return n

    def after(self) -> None:
        """Answer the questions after the game."""
        self.tab_to("input[name=q-knew_text][value='0']")
        self.page.keyboard.press("ArrowDown")
        self.press("main button")

    def is_at(self, path: str) -> bool:
        """Whether the page has this path."""
        return self.page.url.removeprefix(self.site.address).partition("?")[0] == path
