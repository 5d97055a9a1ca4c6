"""One browser for all tests that drive one; they are skipped, with the reason, where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import xarray as xr

from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.settings import CollectSettings
from tests.experiments.collect.browser.people import SIZES, Person, Site, chromium, open_browser, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SMALL: dict[str, Any] = {"n_questions": 3, "training_rounds": 1, "attention_share": 0.34}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="needs the extra dev")
    if chromium() is None:
        pytest.skip("needs chromium")
    with api.sync_playwright() as playwright:
        opened = open_browser(playwright)
        yield opened
        opened.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Serve a study, by default the demonstration with all games, until the test ends."""
    with ExitStack() as stack:

        def served(study: xr.Dataset | None = None, **settings: Any) -> Site:
            chosen = CollectSettings(**({"game": tuple(GAMES)} | SMALL | settings))
            return stack.enter_context(serving(chosen, collect_demo() if study is None else study, tmp_path))

        yield served


@pytest.fixture
def person(browser: Browser) -> Iterator[Callable[..., Person]]:
    """Let somebody sit down before a browser; nothing may be asked of other servers, nor a page complain."""
    people = []

    def sits(site: Site, game: str, width: int = 1366, **options: Any) -> Person:
        size: Any = {"width": width, "height": SIZES[width]}
        people.append(Person(browser.new_context(**({"viewport": size, "locale": "en"} | options)), site, game))
        return people[-1]

    yield sits
    for one in people:
        one.context.close()
        assert one.hosts == {one.site.address.removeprefix("http://")}
        assert one.complaints == []
