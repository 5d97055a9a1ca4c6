"""A report in Markdown as one HTML file: figures and styles inside, nothing fetched, readable on a phone.

Raw HTML in the report is text, but for the tags that fold a long table; images are files beside the report.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from markdown_it.token import Token

_TEMPLATE = Path(__file__).with_name("report_page.html")
_KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}
_FOLD = re.compile(r"</details>|<details><summary>[^<>]*</summary>")


def html_page(markdown: str, folders: Sequence[Path]) -> str:
    """Turn a report into one HTML page that needs no other file."""
    from jinja2 import Template  # noqa: PLC0415 - only a run that writes a page needs them
    from markdown_it import MarkdownIt  # noqa: PLC0415

    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    tokens = parser.parse(markdown)
    _fold(tokens)
    headings: list[tuple[int, str, str]] = []
    for opening, inside in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", f"part-{len(headings)}")
            text = "".join(child.content for child in inside.children or ())
            headings.append((int(opening.tag[1]), text, f"part-{len(headings)}"))
    for image in (child for token in tokens for child in token.children or () if child.type == "image"):
        _embed(image, [folder.resolve() for folder in folders])
    body = parser.renderer.render(tokens, parser.options, {})
    body = re.sub(r"<img [^>]*>", r'<span class="figure" tabindex="0">\g<0></span>', body)
    body = body.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace("</table>", "</table></div>")
    title = next((text for level, text, _ in headings if level == 1), "Report")
    page = Template(_TEMPLATE.read_text(encoding="utf-8"), autoescape=True, keep_trailing_newline=True)
    return str(page.render(title=title, headings=headings, body=body))


def _fold(tokens: Sequence[Token]) -> None:
    """Let the paragraphs that fold a part of the page be the tags that they show."""
    for before, inside, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if inside.type == "inline" and before.type == "paragraph_open" and _FOLD.fullmatch(inside.content):
            before.hidden = after.hidden = True
            inside.type = "html_block"


def _embed(image: Token, folders: Sequence[Path]) -> None:
    """Put the content of an image file into the page; what is no such file inside one of the folders is its name."""
    for folder in folders:
        path = (folder / unquote(str(image.attrGet("src") or ""))).resolve()
        if path.is_relative_to(folder) and path.suffix in _KINDS and path.is_file():
            content = base64.b64encode(path.read_bytes()).decode("ascii")
            image.attrSet("src", f"data:{_KINDS[path.suffix]};base64,{content}")
            return
    image.type, image.content = "text", f"[{image.content}]"
