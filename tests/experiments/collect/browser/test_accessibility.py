"""No page has a finding of axe-core, light or dark, wide or narrow; texts of other scripts stand as they should."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from shannon_game.experiments.collect.admin_pages import PASSWORD
from shannon_game.experiments.collect.games.registry import GAMES
from tests.experiments.collect.browser.people import SIZES, Person, Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.subprocess]

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def findings(page: Page) -> list[str]:
    """What axe-core finds, of any weight."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"runOnly": {"type": "tag", "values": TAGS}, "resultTypes": ["violations"]})
    return [
        f"{page.url}: {each['impact']}, {each['id']}: {each['nodes'][0]['html']} {each['nodes'][0]['failureSummary']}"
        for each in found.response["violations"]
    ]


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("game", GAMES)
def test_no_page_of_a_game_has_a_finding(
    site: Callable[..., Site], person: Callable[..., Person], game: str, scheme: str, width: int
) -> None:
    player = person(site(languages=("en", "de")), game, width=width, color_scheme=scheme)
    found: list[str] = []

    def look(one: Person) -> None:
        one.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        found.extend(findings(one.page))

    player.page.goto(player.site.address)
    look(player)
    player.begin()
    look(player)
    player.press("button[value=yes]")
    look(player)
    player.before()
    look(player)
    player.rules()
    player.play(look)
    look(player)
    player.after()
    look(player)
    player.page.fill("#name", "Ada")
    player.press("form:has(#name) button")
    look(player)
    assert found == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_other_page_has_a_finding(
    site: Callable[..., Site], person: Callable[..., Person], scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "a long password")
    player = person(site(languages=("de",)), "cloze", color_scheme=scheme)
    player.to_play()
    found: list[str] = []
    # an answer that is none: the reason stands beside the field
    player.page.evaluate("document.querySelector('#word').required = false")
    with player.page.expect_navigation():
        player.page.click("form.play button")
    assert player.page.locator("#problem").count() == 1
    found += findings(player.page)
    player.page.goto(f"{player.site.address}/withdraw")
    found += findings(player.page)
    player.page.goto(f"{player.site.address}/nowhere")
    found += findings(player.page)
    player.page.goto(f"{player.site.address}/admin/login")
    found += findings(player.page)
    player.page.fill("#password", "wrong")
    player.press("main button")
    found += findings(player.page)
    player.page.fill("#password", "a long password")
    player.press("main button")
    assert player.is_at("/admin")
    found += findings(player.page)
    # the browser notes every status that is not 200
    player.complaints.clear()
    assert found == []
