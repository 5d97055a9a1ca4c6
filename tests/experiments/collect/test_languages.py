"""Every language of the pages has every text, with the same values to fill in; no text is asked for in vain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shannon_game.experiments.collect
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.preview_pages import preview_key
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.strings import Strings, available, read_strings
from shannon_game.experiments.harness.yaml_text import parse_yaml
from tests.experiments.collect.players import Player

HERE = Path(shannon_game.experiments.collect.__file__).parent


def fields(text: str) -> set[str]:
    return set(re.findall(r"\{(\w*)\}", text))


@pytest.mark.parametrize("language", available())
def test_a_language_has_every_text(language: str) -> None:
    english, own = read_strings("en"), read_strings(language)
    assert own.keys() == english.keys()
    assert all(own.values())
    assert own["direction"] in ("ltr", "rtl")
    assert {key for key in english if fields(own[key]) != fields(english[key])} == set()
    # formats without a value left
    for key, text in own.items():
        assert "{" not in text.format(**dict.fromkeys(fields(english[key]), "1")), key


@pytest.mark.parametrize("path", sorted((HERE / "templates").glob("*.html")), ids=lambda path: path.stem)
def test_texts_of_a_page_are_there(path: Path) -> None:
    """Where a key is put together from parts, the parts that stand there lead to some text."""
    source, keys = path.read_text(encoding="utf-8"), read_strings("en").keys()
    for key, more in re.findall(r"\bt\(\"([\w.]+)\"( ~)?", source):
        assert any(each.startswith(key) for each in keys) if more else key in keys, key
    # nothing but names, numbers and signs is said in a template itself
    bare = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", source, flags=re.DOTALL)
    assert re.findall(r"[^\W\d_]{2,}", bare) == [], path.name


def test_texts_of_the_program_are_there() -> None:
    keys = read_strings("en").keys()
    for path in HERE.rglob("*.py"):
        for key in re.findall(r"\"((?:error|admin|consent)\.(?!html|md)\w+)\"", path.read_text(encoding="utf-8")):
            assert key in keys, f"{path.name}: {key}"


def test_a_language_that_lacks_a_text_is_refused(languages: Path) -> None:
    (languages / "it.yaml").write_text("name: Italiano\n", encoding="utf-8")
    assert available() == ["en", "it"]
    with pytest.raises(InputError, match=r"languages/it\.yaml: lacks .*play\.submit"):
        Strings(["en", "it"])


def test_pages_of_a_language_from_right_to_left(right_to_left: str, tmp_path: Path) -> None:
    """One file turns every page around; texts of the study and words that are typed keep their own direction."""
    consent = tmp_path / "consent.md"
    consent.write_text("הסכמה", encoding="utf-8")
    blocks = [{"game": game, "n_questions": 1} for game in GAMES]
    settings = CollectSettings(blocks=blocks, languages=(right_to_left,), consent=consent, scale="slider")
    database = open_database(f"sqlite:///{tmp_path / 'c.sqlite'}")
    collection = open_collection(settings, collect_demo(), database)
    client = Player(app_of(collection), "cloze").client
    address = f"/preview?key={preview_key(collection)}"
    number = int(re.search(r"page 1 of (\d+)", client.get(address).text)[1])  # type: ignore[index]
    pages = [client.get(f"{address}&at={at}").text for at in range(0, number, 7)]
    assert all('<html lang="he" dir="rtl">' in page for page in ("".join(page.splitlines()[1:2]) for page in pages))
    assert all('id="context"' not in page or re.search(r'id="context"[^>]*dir="auto"', page) for page in pages)
    assert sum('dir="auto"' in page for page in pages) > len(GAMES)
    database.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "before: is no YAML: "),
        ("- " * 5000, "before: is nested too deeply"),
        ("!!python/object/apply:os.system [ls]", "before: is no YAML: "),
    ],
)
def test_what_is_no_yaml_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_yaml(text, "before.yaml", "before")
