"""The stored API answers behind the thesis on rank-based perplexity, as a ranking study.

Data of "An Alternative to Perplexity for the Evaluation of Long-context Large Language Models" (de Jong, 2024),
published without a licence: four zip archives of workbooks are read as they are from the user's folder, or downloaded
for the user and verified, and are no part of this project. The settings are in ``conf/study/rank_perplexity.yaml``.
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pooch
import xarray as xr
from numpy.typing import NDArray

from estimators.errors import InputError, require_packages, unknown_choice
from estimators.notes import add_note
from estimators.rankings.study import conditioned_on_other_text, validate_ranking_study
from experiments.studies.files import checked_members
from experiments.studies.loader_settings import cache_folder, loader_settings, optional_path, public_url

__all__ = ["ARCHIVES", "DEFAULTS", "Archive", "Workbook", "load", "read_workbooks"]


@dataclass(frozen=True)
class Archive:
    """One published archive: its file name, the part of the thesis it belongs to, its text and its hash."""

    name: str
    part: str
    text: str
    sha256: str


ARCHIVES = (
    Archive(
        "n = 30 reftext1.zip", "main", "text 1", "cad3abeff8d1a7a68858068a7f0e25bf23b690d14fde81e00d626c212170a368"
    ),
    Archive(
        "n = 30 reftext2.zip", "main", "text 2", "c317a4c2459f82950f1e2eb6f2a8cf70a6da6a591f3b1ad2e7fbca8690745ae0"
    ),
    Archive(
        *("128 5 reps n=30 text 1.zip", "repeats", "text 1"),
        "3d05c40ea06193e20ba58a125ee47a6001d79da5d1cb7f13d6ef306b3fae9027",
    ),
    Archive(
        *("128 5 reps n=30 text 2.zip", "repeats", "text 2"),
        "7a1335c6f1b44df2e6658f06f2fc8ed96896ee0f07a71b53254e3243e469dd6d",
    ),
)

DEFAULTS: Mapping[str, Any] = {
    "name": "rank_perplexity",
    "root": None,
    "part": "all",
    "cache_dir": None,
    "commit": "2e6f4fe44843f900ecf9ecbae92d0b6e38aa3920",
    "url": "https://raw.githubusercontent.com/ChielToto/Rank-Based-Perplexity/{commit}/{file}",
}
"""Every setting with the value it has when it is not given."""

_SOURCE = "study=rank_perplexity"
_PARTS = ("all", "main", "repeats")
_COLUMNS = (
    *("Reference token", "Generated token", "Token ranking", "Token logprobs", "Linear Score", "Recipr. Score"),
    *("Perplexity", "NL Score a=0.1", "NL Score a=0.3"),
)
_STORED = ("stored_linear", "stored_reciprocal", "stored_perplexity", "stored_exponential_01", "stored_exponential_03")
_DATA_NAME = re.compile(
    r"Saved Data (?:(?P<start>\d+) )?reftext(?P<text>2?) (?P<model>\S+) (?P<length>\d+)\.xlsx", re.ASCII
)
_AVERAGES_NAME = re.compile(
    r"Saved Data (?:(?P<repeat>\d+) )?reftext(?P<text>2?) (?P<length>\d+) AVERAGES\.xlsx", re.ASCII
)
_WORKBOOK_LIMIT_BYTES = 16 * 2**20
_MODEL_NAMES = ("gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4o")


@dataclass(frozen=True)
class Workbook:
    """Cells of one workbook's only sheet, and the fields of its name."""

    archive: Archive
    place: str
    """For messages."""
    is_averages: bool
    start: int | None
    """Of a repeat: index of the first scored token (data), or number of the repeat (averages)."""
    model: str
    """Empty for averages."""
    length: int
    rows: list[list[Any]]


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load the stored answers as a ranking study.

    A window is "main", or "start N" for a repeat (N is the index of its first scored token). Beside the variables of
    a ranking study, ``part`` (token) is "main" or "repeats", and the scores that the workbooks store are kept as
    ``stored_linear``, ``stored_reciprocal``, ``stored_exponential_01``, ``stored_exponential_03`` and
    ``stored_perplexity`` (of the whole window), to compare with.

    Parameters
    ----------
    config : mapping
        Settings, see ``conf/study/rank_perplexity.yaml``; one that is absent has its default (:data:`DEFAULTS`).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.rankings.study.validate_ranking_study`. ``attrs["data_sha256"]`` identifies the
        archives.

    Raises
    ------
    InputError
        For an unknown setting or value, missing, damaged or malformed files, or a failed download; names the file,
        the row, the column and the value.
    """
    given = _options(config)
    part = given["part"]
    archives = [archive for archive in ARCHIVES if part in ("all", archive.part)]
    paths = _paths(given, archives)
    contents = {archive: _content(paths[archive]) for archive in archives}
    hashes = {archive: hashlib.sha256(content).hexdigest() for archive, content in contents.items()}
    books = [
        book
        for archive in archives
        for book in read_workbooks(archive, contents[archive], paths[archive])
        if not book.is_averages
    ]
    study = _study(books)
    study.attrs["data_sha256"] = hashlib.sha256("\n".join(hashes.values()).encode()).hexdigest()
    changed = [archive.name for archive in archives if hashes[archive] != archive.sha256]
    if changed:
        add_note(study, f"archives that are not the published ones: {', '.join(changed)}", count=len(changed))
    wrong = int(conditioned_on_other_text(study).sum())
    add_note(
        study,
        f"tokens, of {study.sizes['token']:,}, whose ranking was made after another text than the reference: a "
        "completion was gone on with while its top-ranked token was right, whatever had been sampled (kept, as in the "
        "thesis)",
        count=wrong,
        level="warning",
    )
    return validate_ranking_study(study)


def read_workbooks(archive: Archive, content: bytes, path: Path) -> Iterator[Workbook]:
    """Read every workbook of one archive, checked as a whole before its first member is read.

    Parameters
    ----------
    archive : Archive
    content : bytes
        The archive.
    path : Path
        For messages.

    Yields
    ------
    Workbook

    Raises
    ------
    InputError
        If python-calamine is not installed, the archive is damaged or refused, or a name or a sheet is not as it
        should be.
    """
    require_packages(("python_calamine",), "ranks", source=_SOURCE, field="workbooks")
    try:
        outer = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise InputError(f"is not a readable zip archive ({error}); fetch it again", source=path) from error
    with outer:
        members = checked_members(outer, path, member_limit_bytes=_WORKBOOK_LIMIT_BYTES)
        for name, member in members.items():
            if name.endswith("/"):
                continue
            place = f"{path}, member {name}"
            try:
                book = outer.read(member)
            except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError) as error:
                raise InputError(f"cannot be unpacked ({error}); fetch the archive again", source=place) from error
            yield _workbook(archive, name.rpartition("/")[2], place, book)


def _workbook(archive: Archive, name: str, place: str, content: bytes) -> Workbook:
    averages = _AVERAGES_NAME.fullmatch(name)
    data = _DATA_NAME.fullmatch(name)
    found = averages or data
    if found is None:
        raise InputError(
            "has a name that is not 'Saved Data [START ]reftext[2] MODEL LENGTH.xlsx' nor "
            "'Saved Data [K ]reftext[2] LENGTH AVERAGES.xlsx'",
            source=place,
        )
    text = "text 2" if found["text"] else "text 1"
    number = found["repeat"] if averages else found["start"]
    if text != archive.text or (number is None) != (archive.part == "main"):
        raise InputError(f"is not of the {archive.part} run of {archive.text}, as its archive is", source=place)
    return Workbook(
        archive=archive,
        place=place,
        is_averages=averages is not None,
        start=None if number is None else int(number),
        model="" if averages else found["model"],
        length=int(found["length"]),
        rows=_sheet(content, place),
    )


def _sheet(content: bytes, place: str) -> list[list[Any]]:
    """Cells of the only sheet; a workbook is an archive too, and is checked before a parser sees it."""
    from python_calamine import CalamineError, CalamineWorkbook  # noqa: PLC0415 - only this study needs it

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            checked_members(inner, place, member_limit_bytes=_WORKBOOK_LIMIT_BYTES)
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        if len(book.sheet_names) != 1:
            raise InputError(f"has the sheets {book.sheet_names}, should have one", source=place)
        rows: list[list[Any]] = book.get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (zipfile.BadZipFile, CalamineError, OSError) as error:
        raise InputError(f"is not a readable workbook ({error})", source=place) from error
    return rows


# ---------------------------------------------------------------------------------------------- settings


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    given = loader_settings(config, DEFAULTS, source=_SOURCE, choices={"part": _PARTS}, own_name=True)
    given["root"] = optional_path(given, "root", source=_SOURCE)
    given["cache_dir"] = cache_folder(given, source=_SOURCE)
    given["url"] = public_url(given, source=_SOURCE)
    return given


def _paths(given: Mapping[str, Any], archives: list[Archive]) -> dict[Archive, Path]:
    if given["root"] is None:
        return {archive: _fetched(given, archive) for archive in archives}
    root = Path(given["root"]).expanduser()
    missing = [archive.name for archive in archives if not (root / archive.name).is_file()]
    if missing:
        raise InputError(
            f"has no {', '.join(repr(name) for name in missing)}; the folder needed is the one with the four published "
            "zip archives, as they are (study.part=main needs the first two only)",
            source=root,
        )
    return {archive: root / archive.name for archive in archives}


def _fetched(given: Mapping[str, Any], archive: Archive) -> Path:
    """One archive from the cache, or downloaded into it; a file with another hash is never used."""
    folder = given["cache_dir"] / "rank_perplexity"
    url = given["url"].replace("{file}", quote(archive.name))
    try:
        return Path(pooch.retrieve(url, known_hash=f"sha256:{archive.sha256}", fname=archive.name, path=folder))
    except (OSError, ValueError) as error:  # requests' exceptions are OSErrors; a wrong hash is a ValueError
        raise InputError(
            f"could not be downloaded ({type(error).__name__}: {error}); run once with a network, or set "
            "study.root=FOLDER to a folder with the four archives",
            source=url,
        ) from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from error


# ------------------------------------------------------------------------------------------------- cells


def _study(books: list[Workbook]) -> xr.Dataset:
    for book in books:
        _check_sheet(book)
    rows = [(book, row) for book in books for row in book.rows[1:]]
    if not rows:
        raise InputError("the archives hold no scored token", source=_SOURCE)
    tokens, logprobs = _lists(books)
    n, longest = len(rows), max(map(len, tokens))
    ranked = np.full((n, longest), None, dtype=object)
    logprob = np.full((n, longest), np.nan)
    for at, (names, values) in enumerate(zip(tokens, logprobs, strict=True)):
        ranked[at, : len(names)] = names
        logprob[at, : len(values)] = values

    def of_book(value: Callable[[Workbook], Any], dtype: type) -> tuple[str, NDArray[Any]]:
        return "token", np.array([value(book) for book, _ in rows], dtype=dtype)

    def cell(column: int, dtype: type) -> tuple[str, NDArray[Any]]:
        return "token", np.array([row[column] for _, row in rows], dtype=dtype)

    stored = dict(zip(_STORED, (4, 5, 6, 7, 8), strict=True))
    return xr.Dataset(
        {
            "model": of_book(lambda book: book.model, object),
            "text": of_book(lambda book: book.archive.text, object),
            "context_length": of_book(lambda book: book.length, np.int64),
            "window": of_book(lambda book: "main" if book.start is None else f"start {book.start}", object),
            "position": ("token", np.array([at for book in books for at in range(len(book.rows) - 1)])),
            "reference_token": cell(0, object),
            "generated_token": cell(1, object),
            "ranked_token": (("token", "rank"), ranked),
            "ranked_logprob": (("token", "rank"), logprob, {"units": "nats"}),
            "part": of_book(lambda book: book.archive.part, object),
            **{name: cell(column, np.float64) for name, column in stored.items()},
        },
        attrs={"name": "rank_perplexity"},
    )


def _check_sheet(book: Workbook) -> None:
    header = tuple(book.rows[0]) if book.rows else ()
    if header != _COLUMNS:
        raise InputError(f"has the columns {header}, should have {_COLUMNS}", source=book.place)
    if book.model not in _MODEL_NAMES:
        raise unknown_choice("model", book.model, _MODEL_NAMES, source=book.place)
    for number, row in enumerate(book.rows[1:], start=2):
        for column, value in enumerate(row):
            is_right = isinstance(value, str) if column < 4 else isinstance(value, int | float)
            if not is_right or value == "" or isinstance(value, bool):
                raise InputError(
                    f"is {value!r} in row {number}, should be {'text' if column < 4 else 'a number'}",
                    source=book.place,
                    field=_COLUMNS[column],
                )


def _lists(books: list[Workbook]) -> tuple[list[list[str]], list[list[float]]]:
    tokens: list[list[str]] = []
    logprobs: list[list[float]] = []
    for book in books:
        for number, row in enumerate(book.rows[1:], start=2):
            names = _listed(row[2], str, f"{book.place}, {_COLUMNS[2]}", number)
            values = _listed(row[3], float, f"{book.place}, {_COLUMNS[3]}", number)
            if len(names) != len(values):
                raise InputError(
                    f"row {number} ranks {len(names)} tokens and has {len(values)} log-probabilities",
                    source=book.place,
                    field=_COLUMNS[3],
                )
            tokens.append(names)
            logprobs.append(values)
    return tokens, logprobs


def _listed(text: str, kind: type, place: str, number: int) -> list[Any]:
    """Parse the repr of a list of strings or of floats; nothing in it is executed."""
    try:
        values = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        values = None
    allowed = (int, float) if kind is float else kind
    if (
        not isinstance(values, list)
        or not values
        or not all(isinstance(value, allowed) and not isinstance(value, bool) for value in values)
    ):
        should = "number" if kind is float else "text"
        raise InputError(f"is {text[:60]!r} in row {number}, should be a list, each element a {should}", source=place)
    return values
