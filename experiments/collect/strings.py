"""YAML that people write, and all texts of the pages: one file a language."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.harness.yaml_text import parse_yaml

_HERE = Path(__file__).parent
_LANGUAGES = _HERE / "languages"
_KEYS = {
    "unit": "choose.unit.{}",
    "text": "instructions.{}_text",
    "score": "instructions.{}_score",
    "rules": "rules.{}",
    "question": "play.question_{}",
    "keys": "keys.{}",
}
"""Texts of a game's own file, and where the pages look for them; others are ``game.NAME.KEY``."""


def available() -> list[str]:
    """Languages that the pages have."""
    return sorted(path.stem for path in _LANGUAGES.glob("*.yaml"))


def read_strings(language: str) -> Mapping[str, str]:
    """Read all texts of a language by key, ``play.next``; those of a game too that has its own file."""
    if language not in available():
        raise unknown_choice("language", language, available())
    texts = dict(common_strings(language))
    for game in GAMES.values():
        own = game.texts().get(language, {})
        texts |= {_KEYS.get(key, f"game.{{}}.{key}").format(game.name): str(text) for key, text in own.items()}
    return texts


@cache
def common_strings(language: str) -> Mapping[str, str]:
    """Texts of a language that no game has in a file of its own."""
    text = (_LANGUAGES / f"{language}.yaml").read_text(encoding="utf-8")
    return dict(_flat(parse_yaml(text, f"languages/{language}.yaml"), ""))


def _flat(node: Any, prefix: str) -> Iterable[tuple[str, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            if not isinstance(key, str):
                # YAML reads the words on, off, yes and no as truth values
                raise InputError(f"is {key!r}, should be a text; put it in quotes", source="languages", field=prefix)
            yield from _flat(value, f"{prefix}.{key}" if prefix else key)
    else:
        yield prefix, str(node)


class Strings:
    """The texts of a server's languages."""

    def __init__(self, languages: Iterable[str]) -> None:
        self.languages = tuple(languages)
        self._by_language = {language: read_strings(language) for language in self.languages}
        for language, texts in self._by_language.items():
            missing = sorted(read_strings("en").keys() - texts.keys())
            if missing:
                raise InputError(f"lacks {', '.join(missing)}", source=f"languages/{language}.yaml")

    def say(self, language: str, key: str, **values: object) -> str:
        """Return a text with its values filled in."""
        text = self._by_language[language][key]
        return text.format(**values) if values else text

    def choose(self, wanted: str | None, header: str) -> str:
        """Choose a language: the one asked for, else the browser's first that there is, else the first one."""
        asked = [wanted or "", *(part.partition(";")[0].strip() for part in header.split(","))]
        for each in asked:
            for language in (each, each.partition("-")[0]):
                if language in self.languages:
                    return language
        return self.languages[0]

    def direction(self, language: str) -> str:
        """Direction of writing: "ltr" or "rtl"."""
        return self._by_language[language].get("direction", "ltr")


def page_version() -> str:
    """Hash of all that a page is made of: templates, texts, scripts and styles."""
    files = sorted(path for name in ("templates", "languages", "static") for path in (_HERE / name).glob("*.*"))
    own = {path for game in GAMES.values() for path in game.folder.glob(f"*{game.name}.*")}
    files += sorted(path for path in own if path.suffix in (".html", ".yaml"))
    hashes = [[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in files]
    return hashlib.sha256(json.dumps(hashes).encode()).hexdigest()[:12]
