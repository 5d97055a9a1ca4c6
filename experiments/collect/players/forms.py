"""Read a page as a browser does: its forms with all their fields, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_SIGNS = {"·": " ", "↵": "\n", "⇥": "\t"}
"""What a page shows for the blanks of a token -> the blank."""
_VOID = ("input", "meta", "link", "br", "img", "hr")


@dataclass
class Form:
    """A form of a page."""

    action: str
    game: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    """Values that are sent as they are, hidden ones too."""
    choices: dict[str, list[str]] = field(default_factory=dict)
    """Radio buttons by name."""
    asked: list[str] = field(default_factory=list)
    required: set[str] = field(default_factory=set)


@dataclass
class Page:
    """What a page holds for a player."""

    path: str
    """Of its address, after redirects."""
    status: int
    forms: list[Form] = field(default_factory=list)
    context: str | None = None
    """Marks of blanks are blanks again."""
    tokens: list[str] = field(default_factory=list)
    """That are shown, such as both options."""
    strong: list[str] = field(default_factory=list)
    """What is emphasised, such as an attention check's instruction."""
    problem: str | None = None
    """What was wrong with the answer before."""
    text: str = ""

    def form(self, action: str) -> Form | None:
        """First form with an action; None where there is none."""
        return next((form for form in self.forms if form.action == action), None)


def read_page(html: str, path: str, status: int = 200) -> Page:
    """Parse a page."""
    parser = _Reader(Page(path, status))
    parser.feed(html)
    parser.close()
    parser.page.text = html
    return parser.page


class _Reader(HTMLParser):
    """Collects what stands in elements of the pages' own classes."""

    def __init__(self, page: Page) -> None:
        super().__init__(convert_charrefs=True)
        self.page = page
        self._open: list[tuple[str, frozenset[str]]] = []
        self._collected: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        classes = set(given.get("class", "").split())
        if tag == "form":
            self.page.forms.append(Form(given.get("action", self.page.path), given.get("data-game", "")))
        elif tag in ("input", "textarea", "select") and self.page.forms and self._inside("form"):
            self._add_field(given)
        if tag in _VOID:
            return
        # what is shown beside a text and is none of it: a sign at a line's end, "the text begins here"
        if given.get("aria-hidden") == "true" or "start" in classes:
            classes.add("hidden")
        self._open.append((tag, frozenset(classes)))
        for kind in self._kinds(tag, classes):
            self._collected[kind] = []

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            last, classes = self._open.pop()
            for kind in self._kinds(last, set(classes)):
                self._done(kind, "".join(self._collected.pop(kind, [])))
            if last == tag:
                return

    def handle_data(self, data: str) -> None:
        if any("hidden" in classes for _, classes in self._open):
            return
        is_mark = any("mark" in classes for _, classes in self._open)
        for parts in self._collected.values():
            parts.append(_SIGNS.get(data, data) if is_mark else data)

    def _inside(self, tag: str) -> bool:
        return any(name == tag for name, _ in self._open)

    @staticmethod
    def _kinds(tag: str, classes: set[str]) -> list[str]:
        found: list[str] = [kind for kind in ("context", "token", "problem") if kind in classes]
        return [*found, "strong"] if tag == "strong" and "token" not in classes else found

    def _done(self, kind: str, text: str) -> None:
        if kind == "context":
            self.page.context = text
        elif kind == "token":
            self.page.tokens.append(text)
        elif kind == "strong":
            self.page.strong.append(" ".join(text.split()))
        else:
            self.page.problem = " ".join(text.split())

    def _add_field(self, given: dict[str, str]) -> None:
        form, name = self.page.forms[-1], given.get("name", "")
        kind = given.get("type", "text")
        if not name:
            return
        if "required" in given:
            form.required.add(name)
        if kind in ("radio", "checkbox"):
            form.choices.setdefault(name, []).append(given.get("value", "on"))
        else:
            form.fields[name] = given.get("value", "")
            if kind != "hidden":
                form.asked.append(name)
