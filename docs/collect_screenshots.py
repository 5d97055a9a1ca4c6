"""Take the pictures of docs/collect.md: a person plays the demonstration in a real browser.

``python docs/collect_screenshots.py``, from the repository's root; needs the extra ``dev`` and chromium.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

from shannon_game.experiments.collect.admin_pages import PASSWORD  # noqa: E402
from shannon_game.experiments.collect.demo import collect_demo  # noqa: E402
from shannon_game.experiments.collect.games.registry import GAMES  # noqa: E402
from shannon_game.experiments.collect.settings import CollectSettings  # noqa: E402
from tests.experiments.collect.browser.people import SIZES, Person, Site, open_browser, serving  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FIGURES = Path(__file__).parent / "figures"
LARGEST_BYTES = 150_000
SETTINGS: Mapping[str, Any] = {
    "game": tuple(GAMES),
    "languages": ("en", "de"),
    "training_rounds": 0,
    "n_questions": 4,
    "attention_share": 0,
    "max_context_words": 60,
}

DRAFTS: Mapping[str, Mapping[str, str]] = {
    "comparison": {},
    "top1": {"#token": " the"},
    "cloze": {"#word": "time"},
    "guess_until_right": {"#word": "day"},
    "bets": {"[name=word1]": "the", "[name=chips1]": "40", "[name=word2]": "her", "[name=chips2]": "25"},
}
"""What somebody is about to answer in the picture of a game."""


@contextmanager
def person(browser: Browser, site: Site, game: str, width: int, **options: Any) -> Iterator[Person]:
    """Let somebody sit down before the browser."""
    size: Any = {"width": width, "height": SIZES[width]}
    context = browser.new_context(**({"viewport": size, "locale": "en"} | options))
    yield Person(context, site, game)
    context.close()


def take(one: Person, name: str) -> None:
    """Write what the browser shows, in few colours: the pages have no photographs."""
    shown = Image.open(io.BytesIO(one.page.screenshot(full_page=True))).convert("RGB")
    path = FIGURES / f"collect_{name}.png"
    shown.quantize(64).save(path, optimize=True)
    n_bytes = path.stat().st_size
    if n_bytes > LARGEST_BYTES:
        raise SystemExit(f"error: {path} has {n_bytes:,} bytes, should have at most {LARGEST_BYTES:,}")
    sys.stdout.write(f"{path.relative_to(ROOT)}: {shown.width} x {shown.height}, {n_bytes / 1000:.0f} kB\n")


def open_details(one: Person) -> None:
    """Show what a page tells on request."""
    one.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")


def games(browser: Browser, site: Site) -> None:
    """Every game on a large light screen and a small dark one."""
    for game in GAMES:
        for width, scheme, place in ((1366, "light", "large"), (390, "dark", "small")):
            options = {"color_scheme": scheme, "locale": "en" if width > 1000 else "de"}
            with person(browser, site, game, width, **options) as one:
                one.to_play()
                if game == "guess_until_right":
                    for word in ("people", "time"):
                        one.page.fill("#word", word)
                        one.press("form.play button")
                else:
                    one.answer()
                if one.is_at("/feedback"):
                    one.press("a.next")
                if game == "comparison":
                    one.page.keyboard.press("7")
                for field, text in DRAFTS[game].items():
                    one.page.fill(field, text)
                if game == "top1":
                    one.page.locator(".live.yes").wait_for()
                take(one, f"{game}_{place}")


def pages(browser: Browser, site: Site) -> None:
    """The start, the answer of the comparison game, the last page, the experimenter's page."""
    with person(browser, site, "comparison", 1366) as one:
        one.page.goto(site.address)
        take(one, "start")
        one.to_play()
        one.answer()
        open_details(one)
        take(one, "feedback")
        one.press("a.next")
        one.play()
        one.after()
        take(one, "thanks")
        one.page.goto(f"{site.address}/admin/login")
        one.page.fill("#password", os.environ[PASSWORD])
        one.press("main button")
        take(one, "admin")


def main() -> None:
    """Take all pictures."""
    os.environ.setdefault(PASSWORD, "shown on no picture")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = open_browser(playwright)
        with serving(CollectSettings(**SETTINGS), collect_demo(), Path(folder)) as site:
            games(browser, site)
            pages(browser, site)
        browser.close()


if __name__ == "__main__":
    main()
