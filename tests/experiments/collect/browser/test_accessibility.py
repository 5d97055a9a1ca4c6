"""No page has a finding of axe-core, light or dark, wide or narrow; texts of other scripts stand as they should."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xarray as xr

from shannon_game.experiments.collect.admin_pages import PASSWORD
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.games.registry import GAMES
from tests.experiments.collect.browser.people import SIZES, Person, Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.subprocess]

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
STUDIES: dict[str, tuple[str, list[str]]] = {
    # language of the texts -> a context that ends in a line break or none, and its next tokens
    "he": ("בראשית ברא אלהים את השמים ואת הארץ. 1 2 3\n", ["והארץ", " היתה"]),
    "ar": ("كان يا ما كان في قديم الزمان", [" ملك", " وزير"]),
    "zh-Hans": ("学而时习之不亦说乎。有朋自远方来不亦乐乎。" * 6, ["人", "子"]),
    "ja": ("吾輩は猫である。名前はまだ", ["無い", "ない"]),
}


def findings(page: Page) -> list[str]:
    """What axe-core finds, of any weight."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"runOnly": {"type": "tag", "values": TAGS}, "resultTypes": ["violations"]})
    return [
        f"{page.url}: {each['impact']}, {each['id']}: {each['nodes'][0]['html']} {each['nodes'][0]['failureSummary']}"
        for each in found.response["violations"]
    ]


def foreign(language: str) -> xr.Dataset:
    """The demonstration with texts of another script."""
    context, (target, other) = STUDIES[language]
    study = collect_demo().drop_vars(["document_text", "document_name"])
    n_items, n_candidates = study["candidate_token"].shape
    return study.assign(
        context=("item", np.array([context] * n_items, dtype=object)),
        target_token=("item", np.array([target] * n_items, dtype=object)),
        candidate_token=(study["candidate_token"].dims, np.full((n_items, n_candidates), other, dtype=object)),
    )


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


@pytest.mark.parametrize("language", STUDIES)
def test_texts_of_other_scripts(site: Callable[..., Site], person: Callable[..., Person], language: str) -> None:
    here = site(foreign(language), game=("comparison",), text_language=language, training_rounds=0, attention_share=0)
    player = person(here, "comparison", width=390)
    player.to_play()
    expected = "rtl" if language in ("he", "ar") else "ltr"
    for selector in (".context", ".option .token"):
        where = player.page.locator(selector).first
        assert where.evaluate("element => getComputedStyle(element).direction") == expected
        assert where.get_attribute("lang") == language
    # the page itself stays in the direction of its own language
    assert player.page.locator("main").evaluate("element => getComputedStyle(element).direction") == "ltr"
    assert player.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert findings(player.page) == []
    marks: Any = player.page.locator(".mark").all_inner_texts()
    context, tokens = STUDIES[language]
    assert marks.count("·") == sum(token.startswith(" ") for token in tokens)
    assert marks.count("↵") == context.count("\n")
