"""Public norms and reading times by name: downloaded once, checked, read as texts or as people's next words."""

from __future__ import annotations

import io
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
import yaml
from numpy.typing import NDArray

from shannon_game.estimators.content import file_sha256
from shannon_game.estimators.errors import InputError, require_packages, unknown_choice
from shannon_game.estimators.messages import Load, Set, word
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.cloze.provo import NORMS_FILE, provo
from shannon_game.experiments.studies.cloze.table import cloze_study
from shannon_game.experiments.studies.documents.tokens import Document, documents_study
from shannon_game.experiments.studies.parsing import Note, add_notes, objects, some_of
from shannon_game.experiments.studies.public_data import check_content, downloaded, public_folder
from shannon_game.inference.disk import cache_folder
from shannon_game.inference.progress import say
from shannon_game.inference.settings import Settings, UserPath

_ROWS = 200_000
_EMPTY = ("", "NA", "NaN", ".")


class PublicFile(Settings):
    """A table on the web."""

    checksum: str
    path: str = ""
    """Where it is below the address; empty: its name."""
    archive: str = ""
    """Name of the archive that holds it."""


class NormColumns(Settings):
    """Which columns of a file say what."""

    file: str
    text_id: tuple[str, ...]
    word_num: str = ""
    first: int = 1
    """Number of a text's first word."""
    word: str = ""
    text: str = ""
    time: str = ""
    participant: str = ""
    unigram_bits: str = ""
    """Surprisal of the word without its context, by its frequency in a large corpus."""
    where: Mapping[str, str] = {}
    """Only rows with these cells."""


class Corpus(Settings):
    """A public data set."""

    title: str
    language: str = "en"
    citation: str
    licence: str
    home: str
    address: str
    files: Mapping[str, PublicFile]
    texts: NormColumns | None = None
    times: Mapping[str, NormColumns] = {}


class NormsSettings(Settings):
    data: str | None = None
    """Which data set; needed. An unknown name lists them all."""
    form: Literal["texts", "cloze"] | None = None
    """As texts, on which models are scored, or as people's next words; null: texts where there are any."""
    measure: str | None = None
    """Reading measure, such as self_paced or first_pass; null takes the data set's first."""
    root: UserPath | None = None
    """Folder with the data set's files; null is norms/NAME in $SHANNON_DATA, else they are downloaded once."""
    cache_dir: UserPath | None = None
    """Folder for downloads; null is the user's own cache folder."""


@loader(NormsSettings)
def norms(settings: NormsSettings) -> xr.Dataset:
    r"""Load a public data set by name, and tell its licence and citation.

    Reading times stand along ``reading`` (``reading_text``, ``reading_word_num``, ``reading_word``, ``reading_ms``,
    ``reading_participant`` where readers are told apart, and ``reading_unigram_nats`` where the file has frequencies),
    where ``reading_times`` finds them. Nothing of the data is part of this project.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from shannon_game import norms
    >>> with TemporaryDirectory() as folder:
    ...     n = Path(folder, "all_stories.tok").write_text("word\tzone\titem\nIf\t1\t1\nyou\t2\t1\n")
    ...     header = "word\tzone\titem\tnItem\tmeanItemRT\n"
    ...     n = Path(folder, "processed_wordinfo.tsv").write_text(header + "If\t1\t1\t80\t410.5\n")
    ...     study = norms(data="natural_stories", measure="self_paced_mean", root=folder)
    >>> study["text"].to_numpy().tolist(), study["reading_ms"].to_numpy().tolist()
    (['If you'], [410.5])
    """
    if settings.data is None:
        options = "; ".join(f"{name}: {its.title}" for name, its in CORPORA.items())
        raise InputError(
            f"is {word(None)}; {Set('study.data', 'NAME')} is one of {options}", source=Load("norms"), field="data"
        )
    if settings.data not in CORPORA:
        raise unknown_choice("data", settings.data, CORPORA, source=Load("norms"))
    corpus = CORPORA[settings.data]
    forms = ["texts"] * (corpus.texts is not None) + ["cloze"] * (settings.data in _CLOZE)
    form = settings.form or forms[0]
    if form not in forms:
        raise unknown_choice("form", form, forms, source=settings.data)
    if settings.measure is not None and settings.measure not in corpus.times:
        raise unknown_choice("measure", settings.measure, list(corpus.times), source=settings.data)
    say(f"{corpus.title} ({corpus.home}). Licence: {corpus.licence}. Cite: {corpus.citation}")
    root = settings.root or public_folder(f"norms/{settings.data}")
    source = _Source(settings.data, corpus, root, settings.cache_dir)
    texts = corpus.texts if form == "texts" else None
    study = _CLOZE[settings.data](source) if texts is None else _text_study(source, texts)
    add_notes(study, [Note(f"data: {corpus.citation}; {corpus.licence}")])
    if corpus.times:
        measure = settings.measure or next(iter(corpus.times))
        study = _with_times(study, source, corpus.times[measure], measure)
    add_notes(study, source.notes)
    return study.assign_attrs(name=settings.data, language=corpus.language)


@dataclass(frozen=True, eq=False)
class _Source:
    """Where the files of a data set are, and what was found while they were read."""

    name: str
    corpus: Corpus
    root: Path | None
    cache_dir: Path | None
    notes: list[Note] = field(default_factory=list)
    places: list[pd.Series[int]] = field(default_factory=list)
    """Places of words by text and number, where numbers have gaps."""

    def path(self, file: str) -> Path:
        """A file, or the archive that holds it: the user's own, or downloaded and checked."""
        its = self.corpus.files[file]
        whole = its.archive or file
        url = self.corpus.address + (its.path or whole)
        if self.root is None:
            target = (self.cache_dir or cache_folder()) / "norms" / self.name / whole
            hint = f"put {whole} into $SHANNON_DATA/norms/{self.name}, or another folder: {Set('study.root', 'FOLDER')}"
            return downloaded(url, target, hint, checksum=its.checksum)
        if its.archive and (self.root / file).is_file():
            return self.root / file
        if not (self.root / whole).is_file():
            problem = f"there is no {file}{f' and no {whole}' * (whole != file)}; it is at {url}"
            raise InputError(problem, source=self.root)
        if not check_content(self.root / whole, its.checksum):
            text = f"{whole} is another version than the one that this loader was made for"
            self.notes.append(Note(text, None, "warning"))
        return self.root / whole

    def table(self, file: str, columns: Mapping[str, str], *, unique: tuple[str, ...] = ()) -> pd.DataFrame:
        """Columns of a file as strings by new names, once for each value of the `unique` ones."""
        path, parts = self.path(file), []
        comma = file.endswith(".csv")
        # with tabs, quotation marks are characters of words
        how: dict[str, Any] = {"sep": "," if comma else "\t", "quoting": 0 if comma else 3, "dtype": str}
        with _opened(path, file) as stream:
            there = list(pd.read_csv(stream, nrows=0, **how).columns)
            if missing := [name for name in dict.fromkeys(columns.values()) if name not in there]:
                problem = f"has no {some_of(missing, 5)}; its columns are {some_of(there, 30)}"
                raise InputError(problem, source=path, field="columns")
        with _opened(path, file) as stream:
            chosen = sorted(set(columns.values()))
            for chunk in pd.read_csv(stream, usecols=chosen, keep_default_na=False, chunksize=_ROWS, **how):
                part = pd.DataFrame({name: chunk[column] for name, column in columns.items()})
                parts.append(part.drop_duplicates(list(unique)) if unique else part)
        found = pd.concat(parts, ignore_index=True)
        return found.drop_duplicates(list(unique), ignore_index=True) if unique else found

    def rows(self, columns: NormColumns, *needed: str, unique: bool = False) -> pd.DataFrame:
        """Rows of a file by what its columns say, texts by one name each."""
        names = {f"text_{at}": name for at, name in enumerate(columns.text_id)}
        wanted = names | {what: getattr(columns, what) for what in needed if getattr(columns, what)}
        wanted |= {f"where_{name}": name for name in columns.where}
        once = tuple(name for name in wanted if name.startswith(("text_", "where_"))) if unique else ()
        found = self.table(columns.file, wanted, unique=once)
        for name, cell in columns.where.items():
            found = found[found[f"where_{name}"] == cell]
        found.insert(0, "text_id", found[list(names)].agg("-".join, axis=1) if len(names) > 1 else found["text_0"])
        return found.reset_index(drop=True)


@contextmanager
def _opened(path: Path, file: str) -> Iterator[IO[str]]:
    if not zipfile.is_zipfile(path):
        content = path.read_bytes()
        try:
            yield io.StringIO(content.decode("utf-8-sig"), newline="")
        except UnicodeDecodeError:
            yield io.StringIO(content.decode("cp1252", "replace"), newline="")
        return
    with zipfile.ZipFile(path) as archive:
        member = next((name for name in archive.namelist() if name.rpartition("/")[2] == file), None)
        if member is None:
            raise InputError(f"holds no {file}", source=path)
        with archive.open(member) as stream:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")


def _text_study(source: _Source, columns: NormColumns) -> xr.Dataset:
    if columns.text:
        found = source.rows(columns, "text", unique=True)
        texts = dict(zip(found["text_id"].tolist(), found["text"].str.strip().tolist(), strict=True))
    else:
        found = source.rows(columns, "word_num", "word")
        found = found.assign(word_num=_whole(found, "word_num", source)).sort_values("word_num", kind="stable")
        place = found.groupby("text_id").cumcount() + columns.first
        if n_moved := int((place != found["word_num"]).sum()):
            source.notes.append(Note("words after a gap in the numbers of their text; here they are counted", n_moved))
            source.places.append(pd.Series(place.to_numpy(), pd.MultiIndex.from_frame(found[["text_id", "word_num"]])))
        texts = {str(name): " ".join(its["word"]) for name, its in found.groupby("text_id", sort=False)}
    ids = sorted(texts, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))
    documents = [Document(name, texts[name]) for name in ids]
    digest = {columns.file: file_sha256(source.path(columns.file))}
    return documents_study(source.name, documents, digest, source=source.name)


def _whole(found: pd.DataFrame, name: str, source: _Source) -> pd.Series[int]:
    numbers = pd.to_numeric(found[name], errors="coerce")
    if (bad := ~(numbers % 1 == 0)).any():
        raise InputError(f"is {found[name][bad].iloc[0]!r}, should be a whole number", source=source.name, field=name)
    return numbers.astype(int)


def _with_times(study: xr.Dataset, source: _Source, columns: NormColumns, measure: str) -> xr.Dataset:
    found = source.rows(columns, "word_num", "word", "time", "participant", "unigram_bits")
    known = ~found["word_num"].isin(_EMPTY) & ~found["time"].isin(_EMPTY)
    if n_lost := int((~known).sum()):
        source.notes.append(Note("readings without a word's number or a time (skipped words), left out", n_lost))
    found = found[known].reset_index(drop=True)
    number = _whole(found, "word_num", source).to_numpy()
    for place in source.places:
        number = place.reindex(pd.MultiIndex.from_arrays([found["text_id"], number]), fill_value=0).to_numpy()
    time = pd.to_numeric(found["time"], errors="coerce")
    if time.isna().any():
        raise InputError(f"is {found['time'][time.isna()].iloc[0]!r}, no time", source=source.name, field=columns.time)
    arrays = {
        "reading_text": objects(found["text_id"].tolist()),
        "reading_word_num": number + 1 - columns.first,
        "reading_word": objects(found["word"].tolist()),
        "reading_ms": time.to_numpy(dtype=float),
    }
    if columns.unigram_bits:
        bits = pd.to_numeric(found["unigram_bits"], errors="coerce").replace(np.inf, np.nan)
        arrays["reading_unigram_nats"] = bits.to_numpy(dtype=float) * np.log(2)
    if columns.participant:
        arrays["reading_participant"] = _numbered(found["participant"])
    source.notes.append(Note(f"reading times, {measure}", len(found)))
    return study.assign({name: ("reading", values) for name, values in arrays.items()})


def _peelle(source: _Source) -> xr.Dataset:
    """Proportions of sentence-final words; the sentence stands without its last word."""
    path = source.path("output.tsv")
    with _opened(path, path.name) as stream:
        wide = pd.read_csv(stream, sep="\t", dtype=str, keep_default_na=False, quoting=3)
    said = [name for name in wide.columns if re.fullmatch(r"Answer_\d+", name)]
    share = [f"Percent_of_Responses_{name.removeprefix('Answer_')}" for name in said]
    if "Question" not in wide or not said or not set(share) <= set(wide.columns):
        raise InputError("should have Question, Answer_1, Percent_of_Responses_1 and so on", source=path)
    context = wide["Question"].str.replace(r"\s*_{3,}.*$", "", regex=True)
    rows = [
        {"context_id": str(at + 1), "context": context[at], "response": answer, "proportion": float(its)}
        for at in wide.index
        for answer, its in zip(wide.loc[at, said], wide.loc[at, share], strict=True)
        if answer
    ]
    source.notes.append(Note("proportions to two decimals, read as those of 100 answers; the authors have 100 or more"))
    return cloze_study(pd.DataFrame(rows), name=source.name, n_answers=100)


def _devarda(source: _Source) -> xr.Dataset:
    """Answers of every participant who had 8 of 10 comprehension questions right, as in the paper."""
    require_packages(("python_calamine",), "data", source=source.name, field="form")
    names = ("context", "target", "text_id", "list")
    items = source.table("item-set.csv", dict(zip(names, ("sentence", "word", "sent_id", "list"), strict=True)))
    items = items.assign(context=items["context"].str.strip(), target=items["target"].str.strip())
    items.insert(0, "word_num", [len(text.split()) + 1 for text in items["context"].tolist()])
    rows, n_excluded = [], 0
    for number in range(1, 9):
        path = source.path(f"list{number}.xls")
        sheet = pd.read_excel(path, engine="calamine", dtype=str, keep_default_na=False)
        asked = items[items["list"] == str(number)]
        columns = [name for name in sheet.columns if re.fullmatch(r"\d+_Q\d+", str(name))]
        shown = [str(text).partition(" - Write the next word")[0].strip() for text in sheet.loc[0, columns]]
        if shown != asked["context"].tolist():
            raise InputError(f"has other questions than list {number} of item-set.csv", source=path)
        answers = sheet.iloc[1:]
        checks = [f"Q{at}" for at in range(15, 25)]
        passed = (answers[checks] == np.array(_COMPREHENSION)).sum(axis=1) >= 8
        n_excluded += int((~passed).sum())
        for person, row in enumerate(answers[passed][columns].itertuples(index=False)):
            rows.append(asked.assign(response=list(row), participant=f"{number}-{person + 1}"))
    source.notes.append(Note("participants left out with fewer than 8 of 10 comprehension questions right", n_excluded))
    return cloze_study(pd.concat(rows, ignore_index=True).drop(columns="list"), name=source.name)


_COMPREHENSION = (
    "get off the ground suddenly", "will not wait happily", "child that is determined to do what it wants",
    "small dogs with long ears", "stuck through with a sharp instrument", "an integrated human-machine system",
    "at its peak of success", "the faint color of her skin", "sliding box", "worried and puzzled",
)  # fmt: skip


def _nicenboim(source: _Source) -> xr.Dataset:
    """Completions as they were typed, of which the first word is the answer."""
    (file,) = source.corpus.files
    columns = {"participant": "Beraterparticipant", "context": "sentence", "response": "completion"}
    rows = source.table(file, {**columns, "item": "item", "condition": "condition"})
    rows["context_id"] = rows.pop("item") + "-" + rows.pop("condition")
    return cloze_study(rows.assign(participant=_numbered(rows["participant"])), name=source.name)


def _bianchi(source: _Source) -> xr.Dataset:
    """Answers to every word; contexts and targets are of the stories, since the table has neither accents nor marks."""
    file, *stories = source.corpus.files
    found = source.table(file, {"story": "tId", "number": "misWords", "word": "originales", "said": "words"})
    found, parts = found.assign(number=_whole(found, "number", source)).sort_values("number"), []
    for at, story in enumerate(stories):
        with _opened(source.path(story), story) as stream:
            text = stream.read().split()
        its = found[found["story"] == str(at)]
        place: list[int] = []
        bare = [_bare(one) for one in text]
        for one in map(_bare, its["word"]):
            at_least = place[-1] + 1 if place else 0
            if one not in bare[at_least:]:
                raise InputError(f"lacks the word {one!r} after word {at_least}", source=source.name, field=story)
            place.append(bare.index(one, at_least))
        said = pd.DataFrame({"word_num": np.add(place, 1), "response": its["said"].str.split(",").to_list()})
        said = said.explode("response").query("word_num > 1 and response != ''")
        counted = said.groupby(list(said.columns), sort=False).size().rename("count").reset_index()
        before = {one + 1: " ".join(text[max(0, one - _CONTEXT) : one]) for one in place}
        target = counted["word_num"].map(lambda one, text=text: text[one - 1])
        text_id, context = story.removesuffix(".txt"), counted["word_num"].map(before)
        parts.append(counted.assign(text_id=text_id, context=context, target=target))
    source.notes.append(Note(f"contexts have at most {_CONTEXT} words, of stories of thousands"))
    return cloze_study(pd.concat(parts, ignore_index=True), name=source.name)


# words of a story before the one asked for
_CONTEXT = 200


def _bare(text: str) -> str:
    """Letters without accents and marks, as the table of Bianchi et al. has words."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFD", text.lower()).encode("ascii", "ignore").decode()))


def _numbered(names: pd.Series[str]) -> NDArray[np.object_]:
    """Readers by number: workers of a platform are no names to keep."""
    codes, known = pd.factorize(names)
    return objects([f"r{at}" for at in range(1, len(known) + 1)])[codes]


_CLOZE: Mapping[str, Callable[[_Source], xr.Dataset]] = {
    "peelle": _peelle,
    "devarda": _devarda,
    "nicenboim": _nicenboim,
    "bianchi": _bianchi,
    "provo": lambda source: provo(root=source.path(NORMS_FILE), layout="norms"),
}
with Path(__file__).with_suffix(".yaml").open(encoding="utf-8") as _stream:
    CORPORA: dict[str, Corpus] = {name: Corpus(**its) for name, its in yaml.safe_load(_stream).items()}
