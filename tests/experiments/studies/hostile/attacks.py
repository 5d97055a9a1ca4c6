"""Tiny valid inputs of loaders, and attacks that change one file of them and say what has to come of it."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from shannon_game import (
    cloze_file,
    cloze_simulated,
    cloze_table,
    comparison_file,
    lm_game,
    lm_game_top1,
    provo,
    rank_perplexity,
    texts,
)
from shannon_game.experiments.studies.cloze.file import save_cloze_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from tests.estimators.comparison.comparison_studies import small_study
from tests.experiments.studies.cloze import tiny_provo
from tests.experiments.studies.comparison import tiny_lm_game
from tests.experiments.studies.guesses import tiny_top1
from tests.experiments.studies.rankings import tiny_ranks

QUESTION, RESPONSES = "multi_comparisons/doc101.json", tiny_lm_game.RESPONSES
TOP1, DOCUMENT, ACCURACIES = tiny_top1.RESPONSES, "docs/doc7.json", "results_raw/model_perfs.json"
HUMAN, GPT2 = "TVD/GPT2_Temp/Generations/Paragraphs_temp-1-2.json", "TVD/GPT2/Generations/Paragraphs-1-1.json"
BLOOM, CHATGPT = "TVD/BLOOM/Generations/processed_bloom.json", "TVD/ChatGPT/Generations/processed_chatgpt.json"
RESULTS = "TVD/Oracle/uncertainty_results/TVD_oracle.json"
WORKBOOKS = "n = 30 reftext1.zip"

CLOZE_TABLE = "context,response,count\nThe cat,sat,3\nThe cat,ran,1\nA dog,ran,2\n"
LINES = '{"text": "Call me Ishmael.", "id": "a"}\n{"text": "Some years ago.", "id": "b"}\n'


@dataclass(frozen=True)
class Input:
    """A loader, what writes a valid input into a folder, what loads it, and its files that are attacked."""

    write: Callable[[Path], object]
    load: Callable[[Path], xr.Dataset]
    files: tuple[str, ...]


def _text(name: str, content: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(content)


def _lm_game(root: Path) -> xr.Dataset:
    return lm_game(root=root, sets={"all": [100, 101]}, reference=[100, 101], participants="all")


def _two_questions() -> dict[str, Any]:
    data = tiny_lm_game.contents()
    return {name: data[name] for name in (tiny_lm_game.question_name(100), QUESTION, RESPONSES)}


def _ranks(root: Path) -> None:
    name = "Saved Data reftext gpt-4 64.xlsx"
    empty: dict[str, dict[str, Any]] = {archive: {} for archive in ("n = 30 reftext1.zip", "n = 30 reftext2.zip")}
    tiny_ranks.write(root, empty | {WORKBOOKS: {name: tiny_ranks.sheet(1)}})


INPUTS: Mapping[str, Input] = {
    "lm_game": Input(lambda root: tiny_lm_game.write_folder(root, _two_questions()), _lm_game, (QUESTION, RESPONSES)),
    "lm_game zip": Input(
        lambda root: tiny_lm_game.write_archive(root / "a.zip", _two_questions()),
        lambda root: _lm_game(root / "a.zip"),
        ("a.zip",),
    ),
    "lm_game_top1": Input(tiny_top1.write_folder, lambda root: lm_game_top1(root=root), (TOP1, DOCUMENT, ACCURACIES)),
    "provo": Input(
        partial(tiny_provo.write, n_words=2), lambda root: provo(root=root), (HUMAN, GPT2, BLOOM, CHATGPT, RESULTS)
    ),
    "rank_perplexity": Input(_ranks, lambda root: rank_perplexity(root=root, part="main"), (WORKBOOKS,)),
    "texts": Input(_text("a.txt", "Call me Ishmael.\nSome years ago.\n"), lambda root: texts(path=root), ("a.txt",)),
    "texts lines": Input(
        _text("a.jsonl", LINES), lambda root: texts(path=root / "a.jsonl", id_field="id"), ("a.jsonl",)
    ),
    "comparison_file": Input(
        lambda root: save_comparison_study(small_study(), root / "s.nc"),
        lambda root: comparison_file(path=root / "s.nc"),
        ("s.nc",),
    ),
    "cloze_file": Input(
        lambda root: save_cloze_study(cloze_simulated(n_items=4, families=["mixture"]), root / "s.nc"),
        lambda root: cloze_file(path=root / "s.nc"),
        ("s.nc",),
    ),
    # one of the readers of tables; fuzz.py changes a table of each
    "cloze_table": Input(_text("c.csv", CLOZE_TABLE), lambda root: cloze_table(path=root / "c.csv"), ("c.csv",)),
}

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
    **{name: {"half"} for name in ("texts lines", "cloze_table")},
}
# tables of people's programs may be in another encoding; a note says which was taken
_ENCODED = {"UTF-16", "no UTF-8"}


def byte_attacks() -> Iterator[Attack]:
    for name, one in INPUTS.items():
        for file in one.files:
            for what, swap in FILES.items():
                # a folder of that name is no document
                if what == "a folder" and name == "texts":
                    continue
                # the accuracies of language models may not be there, and a note says so
                told = file == ACCURACIES and what == "a link to nothing"
                yield Attack(name, file, what, swap, TOLD if told else REFUSED)
            for what, change in BYTES.items():
                outcome = ANY if what in _ANY.get(name, ()) else REFUSED
                if what in _ENCODED and file.endswith(".csv"):
                    outcome = TOLD
                yield Attack(name, file, what, partial(_rewrite, change), outcome)
            if file.endswith((".json", ".jsonl", ".txt", ".csv")):
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
NOT_TEXT: dict[str, str] = {"null": "null", "true": "true", "list": '["a"]'}
NOT_A_LIST: dict[str, str] = {"null": "null", "text": '"abc"', "object": "{}"}

LEAVES: list[tuple[str, str, tuple[str | int, ...], dict[str, str]]] = [
    ("lm_game", QUESTION, ("input_str",), NOT_TEXT),
    ("lm_game", QUESTION, ("generated_token_strs",), NOT_A_LIST),
    ("lm_game", QUESTION, ("generated_token_strs", 1), NOT_TEXT),
    ("lm_game", QUESTION, ("generated_logprobss", 2, 3), NOT_A_NUMBER | {"positive": "0.5"}),
    ("lm_game", RESPONSES, (2,), NOT_A_LIST),
    ("lm_game", RESPONSES, (0, 1), NOT_TEXT),
    ("lm_game", RESPONSES, (0, 2), NOT_A_NUMBER | {"negative": "-1", "none": "0", "all": "100", "off": "55"}),
    ("lm_game", RESPONSES, (0, 4), NOT_WHOLE),
    ("lm_game_top1", TOP1, (0, 4), NOT_WHOLE),
    ("lm_game_top1", ACCURACIES, ("davinci",), NOT_A_NUMBER | {"above 1": "1.5", "negative": "-0.5"}),
    ("lm_game_top1", DOCUMENT, (1,), NOT_TEXT),
    ("provo", HUMAN, ("1", "2", "human", 0, "pred"), NOT_TEXT),
    ("provo", HUMAN, ("1", "2", "human", 0, "count"), NOT_WHOLE),
    ("provo", GPT2, ("1", "2", "ancestral_samples", 0, "cond_log_prob"), NOT_A_NUMBER | {"positive": "0.5"}),
    ("provo", BLOOM, (0, 1, "word_num"), NOT_WHOLE),
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


def json_attacks() -> Iterator[Attack]:
    for name, file, place, values in LEAVES:
        for what, value in values.items():
            title = f"{' '.join(map(str, place))} is {what}"
            yield Attack(name, file, title, partial(_rewrite, partial(_with_value, place, value)))


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


ATTACKS = [*byte_attacks(), *json_attacks(), *archive_attacks()]
