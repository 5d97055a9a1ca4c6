"""A report as one HTML file: nothing fetched, nothing executed, everything escaped."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

from shannon_game.experiments.harness.html_page import html_page

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Page(HTMLParser):
    """Tags with their attributes, whether they are closed in order, and the texts of scripts."""

    VOID = frozenset({"meta", "img", "br", "hr", "link", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def fetched(text: str) -> list[str]:
    """Everything that a browser would load from elsewhere."""
    found = []
    for tag, attributes in Page(text).tags:
        for name in ("src", "href", "srcset", "poster", "data"):
            value = attributes.get(name) or ""
            is_link = tag == "a" and name == "href"
            if value and not is_link and not value.startswith("data:"):
                found.append(value)
    return [*found, *re.findall(r"@import|url\(\s*['\"]?(?!data:)", text)]


def test_figures_are_inside_and_nothing_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "two words.png").write_bytes(PIXEL)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path.parent / "outside.png").write_bytes(PIXEL)
    text = html_page(
        '# T\n\n![a "figure"](two%20words.png)\n\n![far](https://example.org/x.png) ![up](../outside.png) '
        "![text](notes.txt) ![gone](gone.png)\n",
        [tmp_path / "elsewhere", tmp_path],
    )
    assert fetched(text) == []
    images = [attributes for tag, attributes in Page(text).tags if tag == "img"]
    assert [image["alt"] for image in images] == ['a "figure"']
    assert base64.b64decode((images[0]["src"] or "").partition(",")[2]) == PIXEL
    for description in ("[far]", "[up]", "[text]", "[gone]"):
        assert description in text
    assert Page(text).open == []


def test_raw_html_is_text_but_for_folds() -> None:
    text = html_page(
        "# A <b>bold</b> & title\n\n<script>alert(1)</script>\n\nin <img src=x onerror=alert(2)> line\n\n"
        "<details><summary>All 3</summary>\n\n| a | b |\n| --- | --- |\n| <i> | x |\n\n</details>\n\n"
        '<details open ontoggle="alert(3)">\n\n[link](javascript:alert(4)) `<b>`\n',
        [],
    )
    page = Page(text)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "b", "i", "img"}
    assert [attributes for tag, attributes in page.tags if tag == "details"] == [{}]
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert not any("javascript" in (attributes.get("href") or "") for _, attributes in page.tags)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<title>A &lt;b&gt;bold&lt;/b&gt; &amp; title</title>" in text or "<title>A bold &amp; title</title>" in text
