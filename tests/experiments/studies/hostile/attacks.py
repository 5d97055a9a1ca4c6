"""What may be wrong with a file: an attack changes one file of a tiny valid input, and says what has to come of it."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.experiments.studies.hostile.inputs import (
    ACCURACIES,
    BLOOM,
    CHATGPT,
    DOCUMENT,
    GPT2,
    HUMAN,
    INPUTS,
    NORMS,
    QUESTION,
    RESPONSES,
    RESULTS,
    TOP1,
    WORKBOOKS,
)
from tests.experiments.studies.rankings import tiny_ranks

REFUSED, SAME, TOLD, ANY = "refused", "same", "told", "any"


@dataclass(frozen=True)
class Attack:
    """One change of one file, and what has to come of it.

    ``refused``: an InputError that names the file. ``same``: the study of the valid input. ``told``: refused, the same
    study, or one with a note that says what was done. ``any``: refused, or a study; the change leaves a valid file.
    """

    input: str
    file: str
    name: str
    change: Callable[[Path], object]
    outcome: str = REFUSED

    def __str__(self) -> str:
        return f"{self.input}, {self.file.rpartition('/')[2]}: {self.name}"


Change = Callable[[bytes], bytes]


def _rewrite(change: Change, path: Path) -> None:
    path.write_bytes(change(path.read_bytes()))


def _replaced_by(make: Callable[[Path], object], path: Path) -> None:
    path.unlink()
    make(path)


# ------------------------------------------------------------------------------------------------- any file

FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": partial(_replaced_by, os.mkfifo),
    "a folder": partial(_replaced_by, Path.mkdir),
    "an endless device": partial(_replaced_by, lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": partial(_replaced_by, lambda path: path.symlink_to(path)),
    "a link to nothing": partial(_replaced_by, lambda path: path.symlink_to("nothing there")),
}

BYTES: dict[str, Change] = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "half": lambda content: content[: len(content) // 2],
    "UTF-16": lambda content: content.decode("latin-1").encode("utf-16"),
    "no UTF-8": lambda content: content[:60] + b"\xff\xfe\x80" + content[60:],
    "packed": gzip.compress,
    "a page of the web": lambda content: b"<!DOCTYPE html><html><body>404 Not Found</body></html>",
    "nested": lambda content: b"[" * 200_000,
}

# a text is any bytes that are UTF-8; a table that ends early at the end of a line is a shorter table
_ANY = {
    "texts": {"one byte", "half", "a page of the web", "nested"},
    **{name: {"half"} for name in ("texts lines", "cloze_table", "provo norms")},
}
# tables of people's programs may be in another encoding; a note says which was taken
_ENCODED = {"UTF-16", "no UTF-8"}
# a folder of that name is no document, and without its only one there is none
_FOLDERS_OF_DOCUMENTS = {"texts", "lm_game_documents"}


def byte_attacks() -> Iterator[Attack]:
    for name, one in INPUTS.items():
        for file in one.files:
            for what, swap in FILES.items():
                if what == "a folder" and name in _FOLDERS_OF_DOCUMENTS:
                    continue
                # the accuracies of language models may not be there, and a note says so
                told = file == ACCURACIES and what == "a link to nothing"
                yield Attack(name, file, what, swap, TOLD if told else REFUSED)
            for what, change in BYTES.items():
                outcome = ANY if what in _ANY.get(name, ()) else REFUSED
                if what in _ENCODED and file.endswith(".csv") and name != "published":
                    outcome = TOLD
                yield Attack(name, file, what, partial(_rewrite, change), outcome)
            if file.endswith((".json", ".jsonl", ".txt", NORMS, "c.csv")):
                marked = partial(_rewrite, lambda content: b"\xef\xbb\xbf" + content)
                yield Attack(name, file, "a byte order mark", marked, SAME)


# ------------------------------------------------------------------------------------------------- JSON

NOT_A_NUMBER: dict[str, str] = {
    "null": "null",
    "true": "true",
    "text": '"-1.5"',
    "NaN": "NaN",
    "too small": "-1e999",
    "huge": f"-1{'0' * 400}",
    "digits": f"-1{'0' * 5000}",
}
NOT_WHOLE = NOT_A_NUMBER | {"fraction": "2.7", "whole fraction": "2.0", "large": str(2**70)}
NOT_TEXT: dict[str, str] = {
    "null": "null",
    "true": "true",
    "list": '["a"]',
}
NOT_A_LIST: dict[str, str] = {
    "null": "null",
    "text": '"abc"',
    "object": "{}",
}

LEAVES: list[tuple[str, str, tuple[str | int, ...], dict[str, str]]] = [
    ("lm_game", QUESTION, ("id",), NOT_WHOLE),
    ("lm_game", QUESTION, ("input_str",), NOT_TEXT),
    ("lm_game", QUESTION, ("generated_token_strs",), NOT_A_LIST),
    ("lm_game", QUESTION, ("generated_token_strs", 1), NOT_TEXT),
    ("lm_game", QUESTION, ("generator_names", 0), NOT_TEXT),
    ("lm_game", QUESTION, ("generated_logprobss", 2, 3), NOT_A_NUMBER | {"positive": "0.5"}),
    ("lm_game", RESPONSES, (2,), NOT_A_LIST),
    ("lm_game", RESPONSES, (0, 1), NOT_TEXT),
    ("lm_game", RESPONSES, (0, 2), NOT_A_NUMBER | {"negative": "-1", "none": "0", "all": "100", "off": "55"}),
    ("lm_game", RESPONSES, (0, 4), NOT_WHOLE),
    ("lm_game_top1", TOP1, (0, 2), NOT_TEXT),
    ("lm_game_top1", TOP1, (0, 4), NOT_WHOLE),
    ("lm_game_top1", ACCURACIES, ("davinci",), NOT_A_NUMBER | {"above 1": "1.5", "negative": "-0.5"}),
    ("lm_game_documents", DOCUMENT, (1,), NOT_TEXT),
    ("provo", HUMAN, ("1", "2"), NOT_A_LIST),
    ("provo", HUMAN, ("1", "2", "human", 0, "pred"), NOT_TEXT),
    ("provo", HUMAN, ("1", "2", "human", 0, "count"), NOT_WHOLE),
    ("provo", GPT2, ("1", "2", "ancestral_samples", 0, "cond_log_prob"), NOT_A_NUMBER | {"positive": "0.5"}),
    ("provo", BLOOM, (0, 1, "word_num"), NOT_WHOLE),
    ("provo", CHATGPT, (0, 2, "unbiased_temp_1", 0), NOT_TEXT),
    ("provo", RESULTS, ("tvd_oracle2_human", 0), NOT_A_NUMBER),
    ("texts lines", "a.jsonl", ("text",), NOT_TEXT),
]

_HOLE = "a value that is nowhere else"


def _with_value(place: tuple[str | int, ...], value: str, content: bytes) -> bytes:
    """Put JSON of any kind in a place; of JSON lines, in the first."""
    first, *others = content.split(b"\n") if content.count(b"\n") > 1 else [content]
    data = json.loads(first)
    inner: Any = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]]  # a place that is not there would be an attack on nothing
    inner[place[-1]] = _HOLE
    return b"\n".join([json.dumps(data).replace(json.dumps(_HOLE), value).encode(), *others])


def _twice(content: bytes) -> bytes:
    """The first key of the first object once more, at its end."""
    start = content.index(b"{")
    data, end = json.JSONDecoder().raw_decode(content.decode()[start:])
    key = next(iter(data))
    again = f", {json.dumps(key)}: {json.dumps(data[key])}}}".encode()
    return content[: start + end - 1] + again + content[start + end :]


def json_attacks() -> Iterator[Attack]:
    for name, file, place, values in LEAVES:
        for what, value in values.items():
            title = f"{' '.join(map(str, place))} is {what}"
            yield Attack(name, file, title, partial(_rewrite, partial(_with_value, place, value)))
    for file in (QUESTION, ACCURACIES, HUMAN, GPT2, BLOOM, CHATGPT, RESULTS, "a.jsonl"):
        name = next(name for name, one in INPUTS.items() if file in one.files)
        yield Attack(name, file, "a key twice", partial(_rewrite, _twice))
    for key in ("1_0", "2.0", "\u0662", ""):
        change = partial(_swap, b'"2": {"context"', json.dumps(key).encode() + b': {"context"')
        yield Attack("provo", HUMAN, f"word {key!r}", partial(_rewrite, change))


def _swap(old: bytes, new: bytes, content: bytes) -> bytes:
    assert old in content, old
    return content.replace(old, new, 1)


# ------------------------------------------------------------------------------------------------- archives, workbooks


def _member(
    name: str, *, mode: int = 0, flags: int = 0, size: int | None = None, twice: bool = False
) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with zipfile.ZipFile(path, "a") as archive:
            info = zipfile.ZipInfo("PLACE")
            info.external_attr = mode << 16
            archive.writestr(info, b"evil")
            info.orig_filename = info.filename = archive.namelist()[0] if twice else name
            info.flag_bits |= flags
            if size is not None:
                info.file_size = size

    return change


def _cell(column: int, value: object) -> Callable[[Path], None]:
    """A cell of the only workbook of an archive."""

    def attack(path: Path) -> None:
        rows = tiny_ranks.sheet(1)
        rows[2][column] = value
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a/Saved Data reftext gpt-4 64.xlsx", tiny_ranks.workbook(rows))

    return attack


CELLS: dict[str, Callable[[Path], None]] = {
    "a number for a token": _cell(0, 7),
    "a token for a score": _cell(4, "high"),
    "a program for a list": _cell(2, "__import__('os').getcwd()"),
    "a list of numbers": _cell(2, "[1, 2]"),
    "a shorter list": _cell(3, "[-1.0]"),
    "an endless number": _cell(3, "[" + ", ".join(["-1e999"] * 8) + "]"),
    "nested lists": _cell(2, "[" * 3000),
}


MEMBERS: dict[str, Callable[[Path], None]] = {
    "an absolute path": _member("/etc/passwd"),
    "a path upwards": _member("multi_comparisons/../../evil"),
    "a drive": _member("C:/evil"),
    "a backslash": _member("a\\..\\evil"),
    "a link": _member("a/link", mode=0o120777),
    "a pipe": _member("a/pipe", mode=0o010644),
    "a device": _member("a/device", mode=0o020644),
    "a secret": _member("a/secret", flags=1),
    "a bomb": _member("a/bomb", size=2**40),
    "a null character": _member("a/b\0c"),
    "a name that is there": _member("there", twice=True),
}


def archive_attacks() -> Iterator[Attack]:
    for what, change in MEMBERS.items():
        yield Attack("lm_game zip", "a.zip", f"a member with {what}", change)
        yield Attack("rank_perplexity", WORKBOOKS, f"a member with {what}", change)
    for what, change in CELLS.items():
        yield Attack("rank_perplexity", WORKBOOKS, f"a cell with {what}", change)


# ------------------------------------------------------------------------------------------------- tables


def _longer(content: bytes) -> bytes:
    head, *rows = content.rstrip(b"\n").split(b"\n")
    return b"\n".join([head, *(row + b",1" for row in rows)]) + b"\n"


ROWS: dict[str, Change] = {
    "a row with one field more": lambda content: content.rstrip(b"\n") + b",extra\n",
    "a row with one field less": lambda content: content.rstrip(b"\n").rpartition(b",")[0] + b"\n",
    "every row with one field more": _longer,
    "a stray quotation mark": lambda content: _swap(b"\n", b'\n"', content),
    "a column there twice": lambda content: b"\n".join(
        line + b"," + line.split(b",")[0] for line in content.rstrip(b"\n").split(b"\n")
    ),
    "no column": lambda content: content.partition(b"\n")[2],
    "a header and no row": lambda content: content.partition(b"\n")[0] + b"\n",
    "20,000 columns": lambda content: b",".join(b"c%d" % n for n in range(20_000)) + b"\n" + b"," * 19_999,
}


def table_attacks() -> Iterator[Attack]:
    for name, one in INPUTS.items():
        for file in one.files:
            if file.endswith(".csv"):
                for what, change in ROWS.items():
                    yield Attack(name, file, what, partial(_rewrite, change))
    yield Attack("ranking gz", "r.csv.gz", "cut off", partial(_rewrite, lambda content: content[:-20]))
    bomb = partial(_rewrite, lambda content: gzip.compress(b"\n" * 50_000_000, compresslevel=1))
    yield Attack("ranking gz", "r.csv.gz", "a bomb of lines", bomb)


ATTACKS = [*byte_attacks(), *json_attacks(), *archive_attacks(), *table_attacks()]
