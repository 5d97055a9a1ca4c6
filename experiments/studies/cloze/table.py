"""Any cloze study from one table: CSV, TSV or parquet, columns named in the config.

Every answer is text: "None", "NA", "nan" and "TRUE" are words that people say, and a table is read so that they stay
what they are. What cannot be an answer is counted in the notes; what cannot be understood is refused with its line.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from estimators.cloze.study import SAMPLES, validate_cloze_study
from estimators.cloze.words import WORD_RULES
from estimators.errors import InputError, require_packages, unknown_choice
from estimators.notes import add_note
from experiments.studies.cloze.rows import ClozeRows, Note, cloze_dataset
from experiments.studies.loader_settings import check_switches, loader_settings

__all__ = ["COLUMNS", "DEFAULTS", "load"]

COLUMNS = (
    *("context", "context_id", "response", "count", "proportion", "participant", "target", "text_id", "word_num"),
    "model",
)
"""What a column may be; see ``conf/study/cloze_table.yaml``."""

DEFAULTS: Mapping[str, Any] = {
    "name": "cloze_table",
    "path": None,
    "columns": {},
    "separator": "auto",
    "encoding": "auto",
    "missing": (),
    "drop_incomplete": False,
    "n_answers": None,
    "proportions": "rescale",
    "percent": False,
    "word_rules": "clean",
}
"""Every setting with the value it has when it is not given."""

_SOURCE = "study=cloze_table"
_SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"}
_ENCODINGS = ("auto", "utf-8", "cp1252", "latin-1", "mac-roman", "utf-16")
_CHOICES = {"encoding": _ENCODINGS, "proportions": ("rescale", "refuse"), "word_rules": tuple(WORD_RULES)}
# a sum of shares printed with two digits each is off by more than this only where answers are left out
_SUM_SLACK = 0.02


@dataclass(frozen=True)
class _Options:
    path: Path
    columns: Mapping[str, str]
    separator: str
    encoding: str
    missing: tuple[str, ...]
    drop_incomplete: bool
    n_answers: int | None
    proportions: str
    percent: bool
    word_rules: str


@dataclass
class _Reading:
    options: _Options
    rows: ClozeRows = field(default_factory=ClozeRows)
    items: dict[str, int] = field(default_factory=dict)
    keys: dict[tuple[str, int], str] = field(default_factory=dict)
    per_text: dict[str, int] = field(default_factory=dict)
    same_context: dict[str, int] = field(default_factory=dict)
    entries: dict[tuple[int, str], int] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    blank: int = 0
    incomplete: int = 0
    seen: dict[tuple[str, str], int] = field(default_factory=dict)
    repeats: int = 0


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load a cloze study from one table.

    One row is one participant's answer, or a context and answer with a count or a proportion. Answers keep their
    order. Contexts are told apart by ``context_id`` where that column is given (or by ``text_id`` and ``word_num``),
    else by their text: two contexts with the same text and different ids stay two.

    Parameters
    ----------
    config : mapping
        Settings, see ``conf/study/cloze_table.yaml``; one that is absent has its default (:data:`DEFAULTS`).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.cloze.study.validate_cloze_study`. With proportions and ``n_answers`` the counts are
        the rounded products; with proportions only there are no counts, and analyses that need them say so.

    Raises
    ------
    InputError
        For unknown settings and columns, an unreadable table, and values that cannot be; names the line.
    """
    options = _options(config)
    content = _content(options.path)
    reading = _Reading(options)
    notes: list[Note] = []
    is_parquet = options.path.suffix.lower() in (".parquet", ".pq")
    lines = _parquet(content, options, notes) if is_parquet else _delimited(content, options, notes)
    for number, row in lines:
        _read_row(reading, row, number)
    if not reading.items:
        raise InputError("holds no answer", source=options.path)
    arrays = reading.rows.arrays()
    if "response_item" not in arrays:
        raise InputError("holds no human answer: every row names a model", source=options.path)
    _empty_items(reading, arrays["response_item"])
    if "proportion" in options.columns:
        _proportions(reading, arrays, notes)
    arrays["item"] = np.arange(len(reading.items))
    if reading.models:
        arrays["model"] = np.array(list(reading.models), dtype=object)
        arrays["source"] = np.array([SAMPLES], dtype=object)
    attrs = {
        "name": options.path.stem,
        "word_rules": options.word_rules,
        "data_sha256": hashlib.sha256(content).hexdigest(),
    }
    study = cloze_dataset(arrays, attrs)
    for note in (*notes, *_notes(reading, arrays)):
        add_note(study, note.text, count=note.count, level=note.level)
    return validate_cloze_study(study)


# ------------------------------------------------------------------------------------------------- settings


def _options(config: Mapping[str, Any]) -> _Options:
    given = loader_settings(config, DEFAULTS, source=_SOURCE, choices=_CHOICES)
    if not isinstance(given["path"], str | Path) or not str(given["path"]):
        raise InputError(f"is {given['path']!r}; give the table: study.path=FILE", source=_SOURCE, field="path")
    columns = _columns(given["columns"])
    separator = str(given["separator"])
    if separator not in ("auto", *_SEPARATORS) and len(separator) != 1:
        raise unknown_choice("separator", separator, ("auto", *_SEPARATORS, "a single character"), source=_SOURCE)
    check_switches(given, ("drop_incomplete", "percent"), source=_SOURCE)
    n_answers = given["n_answers"]
    if n_answers is not None and (not isinstance(n_answers, int) or isinstance(n_answers, bool) or n_answers < 1):
        raise InputError(f"is {n_answers!r}, should be a whole number or null", source=_SOURCE, field="n_answers")
    if n_answers is not None and "proportion" not in columns:
        raise InputError("goes with a column of proportions", source=_SOURCE, field="n_answers")
    missing = given["missing"]
    if isinstance(missing, str) or not all(isinstance(text, str) for text in missing):
        raise InputError(f"is {missing!r}, should be a list of strings", source=_SOURCE, field="missing")
    path = Path(given["path"]).expanduser()
    return _Options(
        path,
        columns,
        _SEPARATORS.get(separator, separator),
        given["encoding"],
        tuple(missing),
        given["drop_incomplete"],
        n_answers,
        given["proportions"],
        given["percent"],
        given["word_rules"],
    )


def _columns(columns: Any) -> dict[str, str]:
    if not isinstance(columns, Mapping) or not all(isinstance(value, str | None) for value in columns.values()):
        raise InputError(f"is {columns!r}, should be {{what: column of the table}}", source=_SOURCE, field="columns")
    for name in columns:
        if name not in COLUMNS:
            raise unknown_choice("kind of column", name, COLUMNS, source=_SOURCE)
    found = {str(name): value for name, value in columns.items() if value}
    if "response" not in found or not {"context", "context_id", "word_num"} & set(found):
        raise InputError(
            "has to name the column of the response, and of the context, of an id of it, or of text_id and word_num: "
            "study.columns={context: COLUMN, response: COLUMN}",
            source=_SOURCE,
            field="columns",
        )
    if "count" in found and "proportion" in found:
        raise InputError("names a count and a proportion; name the count only", source=_SOURCE, field="columns")
    if "word_num" in found and "text_id" not in found:
        raise InputError("names word_num without text_id", source=_SOURCE, field="columns")
    return found


# -------------------------------------------------------------------------------------------------- reading


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from error


def _delimited(content: bytes, options: _Options, notes: list[Note]) -> Iterator[tuple[str, dict[str, str | None]]]:
    text = _decoded(content, options, notes)
    separator = options.separator
    if separator == "auto":
        separator = _sniffed(text, options)
    # the csv module leaves every field as it is written: no NA, no numbers, no booleans
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        header = next(reader)
    except StopIteration:
        raise InputError("is empty", source=options.path) from None
    except csv.Error as error:
        raise InputError(f"line 1: {error}", source=options.path) from error
    _check_header(header, options, notes)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"line {reader.line_num}: {error}; a quotation mark inside a quoted field is written twice",
                source=options.path,
            ) from error
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        if len(row) != len(header):
            raise InputError(
                f"line {reader.line_num}: has {len(row)} fields, the header {len(header)}; quote fields that hold the "
                "separator, or set study.separator",
                source=options.path,
            )
        yield f"line {reader.line_num}", dict(zip(header, row, strict=True))


def _decoded(content: bytes, options: _Options, notes: list[Note]) -> str:
    encoding = options.encoding
    if encoding == "auto":
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            encoding = "utf-16"
        else:
            try:
                return content.decode("utf-8-sig")
            except UnicodeDecodeError:
                notes.append(
                    Note("table that is not UTF-8, read as Windows-1252; study.encoding says otherwise", 1, "warning")
                )
                encoding = "cp1252"
                if b"\x00" in content:
                    raise InputError(
                        "is no text in UTF-8 and holds null bytes; set study.encoding", source=options.path
                    ) from None
    try:
        return content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start} is no {encoding}; set study.encoding to one of {', '.join(_ENCODINGS[1:])}",
            source=options.path,
        ) from error


def _sniffed(text: str, options: _Options) -> str:
    """The separator with which the header holds every column asked for."""
    header = text.split("\n", maxsplit=1)[0]
    wanted = set(options.columns.values())
    fitting = []
    for separator in _SEPARATORS.values():
        try:
            names = next(csv.reader([header], delimiter=separator), [])
        except csv.Error:
            continue
        if wanted <= {name.strip() for name in names}:
            fitting.append((len(names), separator))
    if not fitting:
        shown = header if len(header) <= 200 else header[:200] + "..."
        raise InputError(
            f"no separator gives the columns {', '.join(sorted(wanted))}; the header is {shown.strip()!r}: check "
            "study.columns and study.separator",
            source=options.path,
        )
    return max(fitting)[1]


def _check_header(header: list[str], options: _Options, notes: list[Note]) -> None:
    header[:] = [name.strip() for name in header]
    for what, name in options.columns.items():
        if header.count(name) != 1:
            problem = "is there twice" if name in header else f"is no column; there are: {', '.join(header)}"
            raise InputError(f"{name!r} {problem}", source=options.path, field=f"columns.{what}")
    unused = [name for name in header if name not in options.columns.values()]
    if unused:
        # a model's rows are people's answers where study.columns does not say which column names the model
        notes.append(Note(f"columns that study.columns does not name were not read: {', '.join(unused)}", None))


def _parquet(content: bytes, options: _Options, notes: list[Note]) -> Iterator[tuple[str, dict[str, str | None]]]:
    require_packages(("pyarrow",), "cloze", source=options.path, field="parquet")
    import pyarrow as pa  # noqa: PLC0415 - only for parquet
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"is no parquet file ({error})", source=options.path) from error
    _check_header(list(table.column_names), options, notes)
    for number, row in enumerate(table.select(list(options.columns.values())).to_pylist()):
        yield f"row {number}", {name: _as_text(value, name, number, options) for name, value in row.items()}


def _as_text(value: Any, name: str, number: int, options: _Options) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if name == options.columns["response"]:
        if isinstance(value, float) and math.isnan(value):
            return None
        raise InputError(
            f"row {number}: is {value!r}; answers have to be strings (TRUE and 1.0 do not say what was typed)",
            source=options.path,
            field=name,
        )
    return repr(value) if isinstance(value, float) else str(value)


# ----------------------------------------------------------------------------------------------------- rows


def _read_row(reading: _Reading, row: Mapping[str, str | None], where: str) -> None:
    options = reading.options

    def value(name: str) -> str | None:
        return row[options.columns[name]] if name in options.columns else None

    item = _item(reading, value, where)
    if item is None:
        return
    answer = value("response")
    if answer is None or not answer.strip() or answer in options.missing:
        reading.blank += 1
        answer = ""
    weight_name = "proportion" if "proportion" in options.columns else "count"
    weight = _weight(value(weight_name), weight_name, where, options)
    if weight is None:
        reading.incomplete += 1
        return
    model = (value("model") or "").strip()
    if model:
        _model_row(reading, item, model, answer=answer, weight=weight, where=where)
        return
    who = value("participant")
    if who is not None and not who.strip():
        reading.incomplete += _incomplete("has no participant", where, options)
        return
    if who is not None:
        if weight != 1:
            raise InputError(
                f"{where}: has a participant and a count of {weight:g}", source=options.path, field="count"
            )
        key = (str(item), who.strip())
        reading.repeats += key in reading.seen
        reading.seen[key] = 1
        reading.rows.column("participant").append(who.strip())
    column = reading.rows.column
    column("response_item").append(item)
    column("response_word").append(reading.rows.word(answer))
    column("response_proportion" if weight_name == "proportion" else "response_count").append(
        weight if weight_name == "proportion" else int(weight)
    )


def _model_row(reading: _Reading, item: int, model: str, *, answer: str, weight: float, where: str) -> None:
    if weight != int(weight):
        raise InputError(
            f"{where}: a model's word has the proportion {weight:g}; models' words need counts",
            source=reading.options.path,
        )
    column = reading.rows.column
    if (item, model) not in reading.entries:
        reading.entries[item, model] = len(reading.entries)
        column("entry_item").append(item)
        column("entry_model").append(reading.models.setdefault(model, len(reading.models)))
    column("sample_entry").append(reading.entries[item, model])
    column("sample_word").append(reading.rows.word(answer))
    column("sample_source").append(0)
    column("sample_count").append(int(weight))


def _incomplete(problem: str, where: str, options: _Options) -> int:
    if not options.drop_incomplete:
        raise InputError(f"{where}: {problem}; study.drop_incomplete=true leaves such rows out", source=options.path)
    return 1


def _item(reading: _Reading, value: Any, where: str) -> int | None:
    options = reading.options
    context = value("context")
    identity, text, number = value("context_id"), value("text_id"), value("word_num")
    parts = {"context_id": identity, "text_id": text, "word_num": number}
    used = [parts[name] for name in ("context_id", "text_id", "word_num") if name in options.columns]
    if "context" in options.columns and "context_id" not in options.columns and "word_num" not in options.columns:
        used = [context, *used]
    if any(part is None or not part.strip() for part in used):
        reading.incomplete += _incomplete("does not say which context", where, options)
        return None
    key = "\x1f".join(part.strip() for part in used)
    target = value("target")
    if key in reading.items:
        item = reading.items[key]
        _check_same(reading, item, "context", context, where)
        _check_same(reading, item, "target_word", target, where)
        return item
    item = len(reading.items)
    name = (text or "").strip() or "1"
    if "word_num" in options.columns:
        place = _whole(number, "word_num", where, options)
    else:
        place = reading.per_text.get(name, 0) + 1
        reading.per_text[name] = place
    if (name, place) in reading.keys:
        raise InputError(
            f"{where}: text {name}, word {place} is another context already ({reading.keys[name, place]!r}); leave "
            "columns.word_num or columns.context_id out",
            source=options.path,
        )
    reading.items[key] = item
    reading.keys[name, place] = key.replace("\x1f", " ")
    if context is not None:
        reading.same_context[context] = reading.same_context.get(context, 0) + 1
    for column, content in (
        ("text_id", name),
        ("word_num", place),
        ("context", context or ""),
        ("target_word", target or ""),
    ):
        reading.rows.column(column).append(content)
    return item


def _check_same(reading: _Reading, item: int, name: str, value: str | None, where: str) -> None:
    if value is None:
        return
    before = reading.rows.column(name)[item]
    if before != value:
        raise InputError(
            f"{where}: is {value[-60:]!r}, but an earlier row of the same context has {before[-60:]!r}",
            source=reading.options.path,
            field=name,
        )


def _weight(text: str | None, name: str, where: str, options: _Options) -> float | None:
    if name not in options.columns:
        return 1.0
    if text is None or not text.strip():
        _incomplete(f"has no {name}", where, options)
        return None
    if name == "count":
        return float(_whole(text, "count", where, options))
    shown = text.strip()
    share = _number(shown.removesuffix("%"))
    if share is not None and (options.percent or shown.endswith("%")):
        share /= 100
    if share is None or not 0 <= share <= 1:
        hint = "; study.percent=true reads percentages" if share is not None and 1 < share <= 100 else ""
        raise InputError(
            f"{where}: is {text!r}, should be a share between 0 and 1{hint}",
            source=options.path,
            field=options.columns[name],
        )
    return share


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _whole(text: str | None, name: str, where: str, options: _Options) -> int:
    number = _number(text or "")
    if number is None or number < 0 or number != int(number):
        raise InputError(
            f"{where}: is {text!r}, should be a whole number", source=options.path, field=options.columns[name]
        )
    return int(number)


# ------------------------------------------------------------------------------------------------ afterwards


def _empty_items(reading: _Reading, response_item: Sequence[int] | np.ndarray) -> None:
    answered = np.zeros(len(reading.items), dtype=bool)
    answered[np.asarray(response_item)] = True
    if not answered.all():
        item = int(np.argmin(answered))
        raise InputError(
            f"{int((~answered).sum())} contexts have no human answer, the first is "
            f"{list(reading.items)[item][-60:]!r}; "
            "leave them out",
            source=reading.options.path,
        )


def _proportions(reading: _Reading, arrays: dict[str, np.ndarray], notes: list[Note]) -> None:
    options = reading.options
    share, item = arrays["response_proportion"], arrays["response_item"]
    sums = np.bincount(item, weights=share, minlength=len(reading.items))
    off = np.abs(sums - 1) > _SUM_SLACK
    if off.any():
        worst = int(np.argmax(np.abs(sums - 1)))
        text = f"{list(reading.items)[worst][-60:]!r} sums to {sums[worst]:.4g}"
        if options.proportions == "refuse":
            raise InputError(
                f"the proportions of {int(off.sum())} contexts do not sum to 1, {text}; "
                "study.proportions=rescale keeps them",
                source=options.path,
                field=options.columns["proportion"],
            )
        notes.append(
            Note(
                f"contexts whose proportions do not sum to 1, rescaled by every analysis; {text}",
                int(off.sum()),
                "warning",
            )
        )
    if options.n_answers is not None:
        counts = np.rint(share * options.n_answers).astype(np.int64)
        gone = int(((counts == 0) & (share > 0)).sum())
        if gone:
            notes.append(
                Note(
                    f"answers whose share of {options.n_answers} answers rounds to none, counted as one",
                    gone,
                    "warning",
                )
            )
            counts[(counts == 0) & (share > 0)] = 1
        del arrays["response_proportion"]
        arrays["response_count"] = counts


def _notes(reading: _Reading, arrays: Mapping[str, np.ndarray]) -> list[Note]:
    notes = [Note("contexts", len(reading.items)), Note("rows with a human answer", len(arrays["response_item"]))]
    if reading.blank:
        notes.append(
            Note(
                "blank answers (empty, null, or listed in study.missing), kept as blank strings; distributions leave "
                "them out unless the word rules keep them (experiment.words.blank=keep)",
                reading.blank,
            )
        )
    if reading.incomplete:
        notes.append(Note("rows without a context, a weight or a participant, left out", reading.incomplete, "warning"))
    if reading.repeats:
        text = "further answers of a participant to the same context, all kept"
        notes.append(Note(text, reading.repeats, "warning"))
    again = sum(times for times in reading.same_context.values() if times > 1)
    if again:
        notes.append(Note("contexts with the same text as another one and an id of their own, kept apart", again))
    return notes
