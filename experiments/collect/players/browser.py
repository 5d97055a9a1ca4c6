"""A browser without JavaScript, and the way from the first page to the completion code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from shannon_game.experiments.collect.players.forms import Form, Page, read_page
from shannon_game.experiments.collect.surveys import right_answers

if TYPE_CHECKING:
    import httpx

_LONGEST_SESSION = 100_000


class Answerer(Protocol):
    """Who answers the questions of a game."""

    def answer(self, game: str, page: Page) -> Mapping[str, str]:
        """Say what to fill into the form of a question's page."""
        ...


class Browser:
    """Follows links and sends forms, with cookies of its own."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.page = Page("", 0)

    async def get(self, address: str) -> Page:
        """Open an address."""
        return self._read(await self.client.get(address))

    async def send(self, form: Form, values: Mapping[str, str]) -> Page:
        """Send a form of the page with some fields filled in."""
        content = urlencode(form.fields | dict(values))
        headers = {"content-type": "application/x-www-form-urlencoded"}
        return self._read(await self.client.post(form.action, content=content, headers=headers))

    def _read(self, response: Any) -> Page:
        self.page = read_page(response.text, response.url.path, response.status_code)
        return self.page


class Played(Exception):  # noqa: N818 - why a player stops
    """A page on which a player cannot go on."""

    def __init__(self, page: Page) -> None:
        super().__init__(f"{page.status} at {page.path}: {page.problem or page.strong or 'no way on'}")
        self.page = page


async def play_session(browser: Browser, game: str, player: Answerer, query: Mapping[str, str]) -> Counter[str]:
    """Play a game from the first page to the last; gives the answers that were sent, by game."""
    page = await browser.get(f"/?{urlencode(dict(query))}")
    n_sent = Counter[str]()
    for _ in range(_LONGEST_SESSION):
        if page.path in ("/thanks", "/screened"):
            return n_sent
        if page.status >= 400 or page.problem:
            raise Played(page)
        if page.path == "/":
            # one form alone goes on with a visit
            form = next((form for form in page.forms if form.fields.get("game") == game or len(page.forms) == 1), None)
            page = await _sent(browser, form, {})
        elif page.path == "/consent":
            page = await _sent(browser, page.form("/consent"), {"agree": "yes"})
        elif page.path == "/instructions":
            form = page.form("/instructions")
            page = await _sent(browser, form, {} if form is None else right_answers(form.game))
        elif page.path == "/play":
            form = page.form("/play")
            # a visit may have several games, one after the other
            own = game if form is None else form.game
            page = await _sent(browser, form, player.answer(own, page))
            n_sent[own] += 1
        elif page.path == "/feedback":
            page = await browser.get("/play")
        else:
            form = page.form(page.path)
            page = await _sent(browser, form, _survey_answers(form))
    raise Played(page)


async def _sent(browser: Browser, form: Form | None, values: Mapping[str, str]) -> Page:
    if form is None:
        raise Played(browser.page)
    return await browser.send(form, values)


def _survey_answers(form: Form | None) -> dict[str, str]:
    """Take the first option of every choice; text stays empty where it may."""
    if form is None:
        return {}
    found = {name: values[0] for name, values in form.choices.items()}
    return found | {name: "42" for name in form.asked if name in form.required}
