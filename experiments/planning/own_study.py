"""``shannon-game study``: one's own sentences and a question in plain words, and the plan that answers it."""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.parts import deck_of
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.strings import available
from shannon_game.experiments.harness.csv_tables import csv_text
from shannon_game.experiments.harness.report import fill
from shannon_game.experiments.planning.settings import Costs
from shannon_game.experiments.studies.documents.regions import regions_of_columns
from shannon_game.experiments.studies.documents.texts import texts
from shannon_game.experiments.studies.plain_table import Table
from shannon_game.experiments.studies.table_file import read_table
from shannon_game.inference.disk import write_whole
from shannon_game.inference.manifest import replaced

_USUAL = {
    "sentence": ("sentence", "text", "context", "stimulus", "satz"),
    "word": ("target", "word", "target_word", "region", "critical"),
    "item": ("item", "item_id", "sentence_id", "id"),
    "list": ("list", "liste"),
}
_GAP = re.compile(r"_{2,}|\[([^\[\]]+)\]")
_NUMBER = r"(\d+(?:\.\d+)?)"
_IN_WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
    r"|hundreds?|dozens?)\b"
)
_ASKS = {
    "contexts": rf"{_NUMBER} (?:own )?(?:sentences?|contexts?|items?|texts?)",
    "people": rf"{_NUMBER} (?:people|persons?|participants?|readers?)",
    "answers": rf"{_NUMBER} (?:answers?|completions?|responses?|guesses)",
    "minutes": rf"{_NUMBER} (?:minutes?|min)\b",
    "width": rf"(?:interval|width)(?: of| is)? {_NUMBER}(?: nats?)?",
}
_GAMES = {"loss": r"loss|perplexity", "guess_until_right": r"guess|bound|entropy", "cloze": r"cloze|norms?|next words?"}
# Widths of 90% intervals of people's loss on the K contexts asked that nine of ten studies keep, simulated by
# +exp=design with 8 draws of the generator, n free answers and 2 n comparisons per context: 16.7 / sqrt(K n) nats on
# passages of books with SmolLM2 (K 30, n 8), less on contexts of a small vocabulary (K 60, n 8 and 16)
_LOSS_WIDTH = 17.5
_MOST_EACH = 24
_COMPARISONS = 2  # for each free answer
_AROUND_MINUTES = 3.0  # consent, questions before and after, rules
_SPARE = 1.5  # nobody compares tokens where they answered freely, and equal tokens, up to a quarter, are not compared
_FOLDER = Path(__file__).parents[1] / "collect" / "data"


@dataclass(frozen=True)
class Asked:
    """What somebody wants to know, as the words were understood; None was not said."""

    game: str = "cloze"
    every_word: bool = False
    contexts: int | None = None
    people: int | None = None
    answers: int | None = None
    minutes: float = Costs().session_minutes
    width: float | None = None


@dataclass(frozen=True)
class Sizes:
    """A study that answers it: how many people, questions of each block, answers of each kind per context, minutes."""

    people: int
    questions: Mapping[str, int]
    answers: int
    minutes: float


def study_command(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game study TABLE QUESTION``."""
    parser = argparse.ArgumentParser(prog="shannon-game study", description=__doc__.partition(": ")[2])
    parser.add_argument(
        "table", type=Path, help="CSV or .xlsx, a sentence a row; the gap is ___ or [word], or a column"
    )
    parser.add_argument("question", help='"cloze norms of 25 sentences by 60 people", "loss, interval of 0.5 nats"')
    parser.add_argument("--folder", type=Path, default=Path("my_study"), help="where to write (%(default)s)")
    for name, usual in _USUAL.items():
        parser.add_argument(f"--{name}", metavar="COLUMN", help=f"its column ({', '.join(usual)})")
    parser.add_argument("--pay", type=float, default=Costs().pay_per_hour, help="per hour (%(default)s)")
    parser.add_argument("--currency", default="USD")
    parser.add_argument("--language", default="en", help="of the sentences and the pages (%(default)s)")
    given = parser.parse_args(list(arguments))
    asked = read_question(given.question)
    columns = {name: getattr(given, name) for name in _USUAL}
    with replaced(given.folder, "study") as staging:
        file, lists = write_sentences(given.table, columns, staging, every_word=asked.every_word)
        plan, sizes, n = plan_study(staging / file, asked, lists, language=given.language)
        loss = asked.game == "loss"
        base = round(given.pay * plan["pay"]["planned_minutes"] / 60, 2)
        # beside the plan, so that the folder is moved as it stands
        plan |= {"served": "built/study.nc" if loss else file, "collection": given.table.stem, "consent": "consent.md"}
        plan["pay"] |= {"currency": given.currency, "base": base}
        for name in ("consent", "information"):
            for path in _FOLDER.glob(f"{name}_template*.md"):
                shutil.copyfile(path, staging / path.name.replace("_template", ""))
        write_whole(staging / "plan.yaml", yaml.safe_dump(plan, sort_keys=False, allow_unicode=True))
        cost = f"{base:.2f} {given.currency} each, {base * plan['n_sessions']:.2f} {given.currency} together"
        text = fill(
            "own_study.md",
            Path(__file__).parent,
            place=given.folder,
            file=file,
            said=_said(asked, sizes, n),
            n=n,
            answers=sizes.answers,
            comparisons=_COMPARISONS * sizes.answers,
            cost=cost,
            asked=asked,
        )
        write_whole(staging / "README.md", text)
    sys.stdout.write(text)
    return 0


def read_question(text: str) -> Asked:
    """Read a question in plain words; what is not understood is refused, not left out."""
    rest, found = text.lower(), dict[str, Any]()
    for name, pattern in _ASKS.items():
        if match := re.search(pattern, rest):
            found[name] = float(match[1])
            rest = rest.replace(match[0], " ", 1)
    games = [game for game, pattern in _GAMES.items() if re.search(pattern, rest)]
    if left := re.search(r"\d+(?:\.\d+)?", rest):
        problem = (
            f"has {left[0]}, of which it does not say what it counts: sentences, people, answers, minutes, or nats"
        )
        raise InputError(problem, source="question", field=text)
    if in_words := _IN_WORDS.search(rest):
        raise InputError(f"has {in_words[0]!r} in letters; write numbers in digits", source="question", field=text)
    if not games:
        problem = "asks for nothing that is known; say cloze norms, loss, or guesses (bounds of the entropy)"
        raise InputError(problem, source="question", field=text)
    whole = {name: int(found[name]) for name in ("contexts", "people", "answers") if name in found}
    every = bool(re.search(r"every word|each word|all words|word by word", rest))
    return Asked(**found | whole, game=games[0], every_word=every)


def write_sentences(
    path: Path, columns: Mapping[str, str | None], folder: Path, *, every_word: bool
) -> tuple[str, dict[str, list[str]]]:
    """Write the sentences as ``served`` of a plan reads them; give the file's name, and the items of each list."""
    usual = [name for names in _USUAL.values() for name in names]
    table = read_table(path, of="sentence", wanted=[*usual, *filter(None, columns.values())], once=False)
    names = {name.lower(): name for name in table.names}
    there = {
        what: columns[what] or next((names[name] for name in usual if name in names), None)
        for what, usual in _USUAL.items()
    }
    if there["sentence"] is None:
        raise InputError(f"is none of {', '.join(table.names)}; name it by --sentence", source=path, field="sentence")
    table.check_columns({what: name for what, name in there.items() if name}, "--sentence and the like name columns")
    items = table.ids(there["item"]) if there["item"] else np.arange(1, len(table) + 1).astype(str)
    found = [_one(table, row, str(text), there) for row, text in enumerate(table.filled(str(there["sentence"])))]
    of_lists: dict[str, list[str]] = {}
    if there["list"]:
        for item, name in zip(items.tolist(), table.ids(there["list"]).tolist(), strict=True):
            of_lists.setdefault(str(name), []).append(str(item))
    if every_word:
        lines = [json.dumps({"item": str(item), "text": text}) for item, (text, _, _) in zip(items, found, strict=True)]
        write_whole(folder / "sentences.jsonl", "\n".join(lines) + "\n")
        return "sentences.jsonl", of_lists
    if (row := next((at for at, (_, _, stop) in enumerate(found) if not stop), None)) is not None:
        problem = f"has no gap in {table.where(row)}; write ___ or [word] there, or ask for every word"
        raise InputError(problem, source=path, field=there["sentence"])
    rows = table.cells.iloc[:, :0].assign(item=items)
    rows = rows.assign(**{name: [each[at] for each in found] for at, name in enumerate(("text", "start", "stop"))})
    write_whole(folder / "sentences.csv", csv_text(rows))
    return "sentences.csv", of_lists


def _one(table: Table, row: int, text: str, there: Mapping[str, str | None]) -> tuple[str, int, int]:
    """Text of a sentence with its word, first character of it, and the one after its last; 0 where there is no gap."""
    word = str(table.texts(there["word"])[row]).strip() if there["word"] else ""
    gaps = list(_GAP.finditer(text))
    if len(gaps) > 1:
        problem = f"has {len(gaps)} gaps in {table.where(row)}, should have one; give a row for each"
        raise InputError(problem, source=table.source, field=there["sentence"])
    if gaps:
        filled = gaps[0][1] or word or gaps[0][0]
        start = gaps[0].start()
        return text[:start] + filled + text[gaps[0].end() :], start, start + len(filled)
    if not word:
        return text, 0, 0
    if word not in text:
        before = text.rstrip() + " "
        return before + word, len(before), len(before) + len(word)
    ((start, stop),) = regions_of_columns(table.take(np.array([row])), [text], str(there["word"]))[0]
    return text, start, stop


def plan_study(
    path: Path, asked: Asked, lists: Mapping[str, list[str]], *, language: str
) -> tuple[dict[str, Any], Sizes, int]:
    """Plan a study of these sentences: its settings for ``collect``, its sizes, and how many contexts there are."""
    study = texts(path=path, id_field="item", regions=("start", "stop") if path.suffix == ".csv" else None)
    games = ("cloze", "comparison") if asked.game == "loss" else (asked.game,)
    plan: dict[str, Any] = {"text_language": language, "leaderboard": False, "lists": dict(lists)}
    plan |= {"languages": [language]} if language in available() else {}
    once = CollectSettings(**plan | {"game": games[0], "training_rounds": 0})
    deck = deck_of(study, once)
    n = sum(card.game == games[0] and not card.attention for card in deck.cards.values())
    if asked.contexts is not None and asked.contexts not in (n, study.sizes["document"]):
        problem = f"asks for {asked.contexts} contexts, and the table has {n}; leave rows out, or change the question"
        raise InputError(problem, source="question")
    cells = [deck.outside(tuple(once.items_of("", name))) for name in lists or [""]]
    everything = [(games[0], False, n)]
    room = min(deck.room(everything, closed, once.goes_on) for closed in cells)
    sizes = loss_sizes(asked, n) if asked.game == "loss" else _word_sizes(asked, n, room, len(cells))
    rounds = 3 if asked.game != "cloze" else 0
    plan["blocks"] = [
        {"game": game, "n_questions": number, "training_rounds": rounds if game != "cloze" else 0}
        for game, number in sizes.questions.items()
    ]
    plan |= {"n_sessions": sizes.people, "pay": {"planned_minutes": sizes.minutes}}
    plan |= {"scale": "slider"} if asked.game == "loss" else {}
    return plan, sizes, n


def _word_sizes(asked: Asked, n: int, room: int, n_lists: int) -> Sizes:
    """Compute what was not said of people, answers and questions; refuse what does not go together."""
    costs = Costs()
    seconds = costs.answer_seconds if asked.game == "cloze" else costs.guess_seconds + 5 * costs.further_guess_seconds
    most = max(min(room, int((asked.minutes - _AROUND_MINUTES) * 60 / seconds)), 1)
    answers = asked.answers
    if answers is None and asked.width is not None:
        answers = math.ceil((1.645 / asked.width) ** 2)
    if answers is None:
        # all the questions that a visit has room for
        answers = 40 if asked.people is None else max(asked.people * most // n, 1)
    people = asked.people or math.ceil(n * answers / most / n_lists) * n_lists
    each = math.ceil(n * answers / people)
    if each > most or answers < 2:
        nearest = math.ceil(n * max(answers, 2) / most)
        problem = (
            f"{people} people cannot give {max(answers, 2)} answers in each of {n} contexts: a visit of "
            f"{asked.minutes:g} minutes has room for {most} questions that do not answer each other; the nearest are "
            f"{nearest} people, or {people * most // n} answers in each"
        )
        raise InputError(problem, source="question")
    return Sizes(people, {asked.game: each}, answers, math.ceil(_AROUND_MINUTES + each * seconds / 60))


def loss_sizes(asked: Asked, n: int) -> Sizes:
    """Free answers and comparisons of each context for an interval of the wanted width."""
    costs, width = Costs(), asked.width or 0.5
    each = asked.answers or math.ceil((_LOSS_WIDTH / width) ** 2 / n)
    if each > _MOST_EACH:
        most, more = loss_width(n, _MOST_EACH), math.ceil((_LOSS_WIDTH / width) ** 2 / _MOST_EACH)
        problem = (
            f"{n} contexts give no interval of {width:g} nats with {_MOST_EACH} answers and twice as many "
            f"comparisons in each, the most that was tried; the nearest are {most:.2f} nats on them, or {more} contexts"
        )
        raise InputError(problem, source="question")
    seconds = costs.answer_seconds + _COMPARISONS * costs.comparison_seconds
    people = max(math.ceil((1 + _COMPARISONS) * _SPARE * each), costs.least_people)
    people = max(people, math.ceil(n * each * seconds / 60 / (asked.minutes - _AROUND_MINUTES)), asked.people or 0)
    # whole questions of each visit keep the spare too
    people = max(people, math.ceil(n * each / max(int(n / (1 + _COMPARISONS) / _SPARE), 1)))
    number = math.ceil(n * each / people)
    minutes = math.ceil(_AROUND_MINUTES + number * seconds / 60)
    return Sizes(people, {"cloze": number, "comparison": _COMPARISONS * number}, each, minutes)


def loss_width(n: int, answers: int) -> float:
    """Width in nats of the 90% interval of people's loss that a study keeps, with so many free answers per context."""
    return _LOSS_WIDTH / math.sqrt(n * answers)


def half_width(answers: int) -> float:
    """How near a cloze probability of one half is known by so many answers, in nine of ten contexts."""
    return 1.645 * math.sqrt(0.25 / answers)


def _said(asked: Asked, sizes: Sizes, n: int) -> str:
    blocks = " and ".join(f"{number} questions of {game}" for game, number in sizes.questions.items())
    more = f" and {_COMPARISONS * sizes.answers} comparisons" if asked.game == "loss" else ""
    text = (
        f"{sizes.people} people answer {blocks} each, of {n} contexts: {sizes.answers} answers{more} to each context. "
        f"A visit takes about {sizes.minutes:g} minutes, all together {sizes.people * sizes.minutes / 60:.1f} hours."
    )
    if asked.game == "loss":
        width = f"{loss_width(n, sizes.answers):.2f} nats wide"
        return f"{text} The 90% interval of people's loss on these contexts is then at most about {width}."
    if asked.game == "cloze":
        half = f"{half_width(sizes.answers):.2f} either way (90%)"
        return f"{text} A cloze probability of one half is then known to about {half}."
    return text
