"""Every command on a page, a card and in the README has settings that the experiment and the loader take."""

from __future__ import annotations

import re
import shlex

import pytest
from markdown_it import MarkdownIt

from tests.docs.pages import WRITTEN, check_settings, name_of
from tests.docs.test_gallery import ENTRIES
from tests.docs.test_paper_pages import ROWS
from tests.experiments.command import ROOT

EXPERIMENTS = {path.stem for path in (ROOT / "conf/exp").glob("*.yaml")}
RUN = re.compile(r"(?:^|\s)(?:python -m experiments\.run|shannon-game) ")


def commands(text: str) -> list[tuple[str, ...]]:
    """Overrides of every run in the fenced blocks of a page; of a sweep those of its first job."""
    found = []
    for token in MarkdownIt().parse(text):
        if token.type != "fence":
            continue
        # columns that a page reads from a file
        lines = re.sub(r"\$\(.*?\)", "{response: a, context: b}", token.content.replace("\\\n", " ")).splitlines()
        for line in lines:
            run = RUN.search(line)
            words = shlex.split(line[run.end() :], comments=True) if run else []
            words = [f"+exp={word}" if word in EXPERIMENTS else word for word in words]
            if not any(word.startswith("+exp=") for word in words):
                # doctor, answers, the name of a folder
                continue
            own = {"--help", "--config-dir"} & set(words) or any("=my_" in word for word in words)
            if words and not own and "$S" not in words:
                swept = "-m" in words
                kept = [word for word in words if not word.startswith(("-m", "hydra", "+hydra", "sweep="))]
                found.append(tuple(re.sub(r"^([^\[{]*?),.*", r"\1", word) if swept else word for word in kept))
    return found


PLACES = [
    *((tuple(entry.asked.split()), f"card of {name}") for name, entry in ENTRIES.items()),
    *((tuple(shlex.split(row["command"])), "papers") for row in ROWS if row["command"] and row["status"] == "works"),
    *(
        (overrides, name_of(path))
        for path in WRITTEN
        for overrides in commands(path.read_text(encoding="utf-8"))
        # words in capitals stand for names of the reader's own
        if not any(word.startswith(("+exp=NAME", "study=STUDY", "+exp=EXPERIMENT")) for word in overrides)
    ),
]
# many stand in several places
COMMANDS = [pytest.param(overrides, id=place) for overrides, place in dict(PLACES).items()]


@pytest.mark.parametrize("overrides", COMMANDS)
def test_a_command_has_settings_that_are_taken(overrides: tuple[str, ...]) -> None:
    check_settings(overrides)
