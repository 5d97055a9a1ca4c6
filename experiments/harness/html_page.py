"""A report in Markdown as one HTML file: figures and styles inside, nothing fetched, readable on a phone.

markdown-it-py makes the HTML; here are only the rules by which it differs from the usual: raw HTML is text (but for
the tags that fold a long table), images come from files beside the report and are embedded, wide tables scroll in a box
of their own, headings can be linked to.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["html_page", "slug"]

_TEMPLATE = Path(__file__).with_name("report_page.html")
_KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}
_FOLD = re.compile(r"</details>|<details>|<details><summary>([^<>]*)</summary>")
# characters that Markdown would take for markup in a heading's text
_SPECIAL = re.compile(r"([\\\[\]`*_<>&!#])")
_MARKUP = re.compile(r"[^\w\s-]")


def html_page(markdown: str, folders: Sequence[Path], *, verdicts: Sequence[str] = ()) -> str:
    """Turn a report into one HTML page that needs no other file."""
    parser = _parser([folder.resolve() for folder in folders], verdicts)
    tokens = parser.parse(markdown)
    headings = _number_headings(tokens)
    title = next((text for level, text, _ in headings if level == 1), "Report")
    shell = Template(_TEMPLATE.read_text(encoding="utf-8"))
    from markdown_it.common.utils import escapeHtml  # noqa: PLC0415 - as in _parser

    return shell.substitute(
        title=escapeHtml(title),
        contents=_contents(headings),
        body=parser.renderer.render(tokens, parser.options, {}),
    )


def slug(text: str, taken: Sequence[str] = ()) -> str:
    """Name of a heading in links: lower case, hyphens, numbered where it is taken."""
    base = _MARKUP.sub("", text.lower()).strip().replace(" ", "-") or "section"
    number, found = 1, base
    while found in taken:
        number += 1
        found = f"{base}-{number}"
    return found


def _number_headings(tokens: Sequence[Token]) -> list[tuple[int, str, str]]:
    """Give every heading an id; level, text, id."""
    found: list[tuple[int, str, str]] = []
    for opening, inside in pairwise(tokens):
        if opening.type == "heading_open":
            text = "".join(child.content for child in inside.children or () if child.type in ("text", "code_inline"))
            name = slug(text, [other for _, _, other in found])
            opening.attrSet("id", name)
            found.append((int(opening.tag[1]), text, name))
    return found


def _contents(headings: Sequence[tuple[int, str, str]]) -> str:
    """Nested list of the headings of levels 2 and 3, as HTML."""
    lines = []
    for level, text, name in headings:
        if level in (2, 3):
            plain = _SPECIAL.sub(r"\\\1", text)
            lines.append(f"{'  ' * (level - 2)}- [{plain}](#{name})")
    return str(_parser([]).render("\n".join(lines)))


def _parser(folders: Sequence[Path], verdicts: Sequence[str] = ()) -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only a run that writes a page needs it
    from markdown_it.common.utils import escapeHtml  # noqa: PLC0415

    parser = MarkdownIt("commonmark", {"html": True}).enable("table")

    def html_block(_self: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        lines = [line.strip() for line in tokens[at].content.strip().splitlines()]
        if all(_FOLD.fullmatch(line) for line in lines):
            return "\n".join(lines) + "\n"
        return f"<p>{escapeHtml(tokens[at].content)}</p>\n"

    def html_inline(_self: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        return str(escapeHtml(tokens[at].content))

    def image(_self: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        description = escapeHtml(tokens[at].content)
        data = _embedded(str(tokens[at].attrGet("src") or ""), folders)
        if data is None:
            return f"<em>[{description}]</em>"
        return f'<span class="figure" tabindex="0"><img src="{data}" alt="{description}"></span>'

    def table_open(_self: Any, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
        return '<div class="scroll" tabindex="0"><table>\n'

    def table_close(_self: Any, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
        return "</table></div>\n"

    def td_open(self: Any, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        content = tokens[at + 1].content
        if content in verdicts:
            tokens[at].attrSet("class", f"verdict v{verdicts.index(content)}")
        return str(self.renderToken(tokens, at, options, env))

    for rule in (html_block, html_inline, image, table_open, table_close, td_open):
        parser.add_render_rule(rule.__name__, rule)
    return parser


def _embedded(source: str, folders: Sequence[Path]) -> str | None:
    """Content of an image file as a data URI; None if it is no such file inside one of the folders."""
    for folder in folders:
        path = (folder / unquote(source)).resolve()
        if path.is_relative_to(folder) and path.suffix in _KINDS and path.is_file():
            return f"data:{_KINDS[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
    return None
