"""Public norms and reading times by name: downloaded once, checked, read as texts or as people's next words."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.content import file_sha256
from shannon_game.estimators.errors import InputError, require_packages, unknown_choice
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.cloze.provo import NORMS_FILE, provo
from shannon_game.experiments.studies.cloze.table import cloze_study
from shannon_game.experiments.studies.documents.tokens import Document, documents_study
from shannon_game.experiments.studies.parsing import Note, add_notes, objects, some_of
from shannon_game.experiments.studies.public_data import cache_folder, check_content, downloaded, public_folder
from shannon_game.inference.progress import say
from shannon_game.inference.settings import Settings, UserPath

_ROWS = 200_000
_EMPTY = ("", "NA", "NaN", ".")


@dataclass(frozen=True)
class PublicFile:
    """A table on the web."""

    url: str
    checksum: str
    """sha256:, md5:, or git: and the id that git gives its content."""
    member: str = ""
    """Its name in the archive at that address."""
    separator: str = "\t"
    called: str = ""
    """Its name, where the address does not end with it."""

    @property
    def quoting(self) -> Literal[0, 3]:
        """Of csv: standard with commas, none with tabs, where quotation marks are characters of words."""
        return 0 if self.separator == "," else 3

    @property
    def names(self) -> list[str]:
        """What it may be called in a user's folder."""
        return [name for name in (self.member, self.called or self.url.rpartition("/")[2]) if name]


@dataclass(frozen=True)
class Columns:
    """Which columns of a file say what; a text is known by one column or several."""

    file: str
    text_id: tuple[str, ...]
    word_num: str = ""
    first: int = 1
    """Number of a text's first word."""
    word: str = ""
    text: str = ""
    time: str = ""
    participant: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    """Only rows with these cells."""


@dataclass(frozen=True)
class Corpus:
    """A public data set."""

    title: str
    citation: str
    licence: str
    home: str
    files: Mapping[str, PublicFile]
    texts: Columns | None = None
    times: Mapping[str, Columns] = field(default_factory=dict)
    cloze: Callable[[_Source], xr.Dataset] | None = None

    @property
    def forms(self) -> list[str]:
        """Kinds of study that it gives, the usual one first."""
        return ["texts"] * (self.texts is not None) + ["cloze"] * (self.cloze is not None)


class NormsSettings(Settings):
    """Settings of :func:`norms`."""

    data: Literal["natural_stories", "ucl", "devarda", "provo", "onestop", "peelle"] | None = None
    """Which data set; needed."""
    form: Literal["texts", "cloze"] | None = None
    """As texts, on which models are scored, or as people's next words; null: texts where there are any."""
    measure: str | None = None
    """Reading measure, such as self_paced or first_pass; null takes the data set's first."""
    root: UserPath | None = None
    """Folder with the data set's files; null is norms/NAME in $SHANNON_DATA, else downloads them once into cache_dir."""
    cache_dir: UserPath | None = None
    """Folder for downloads; null is the user's own cache folder."""


@loader(NormsSettings)
def norms(settings: NormsSettings) -> xr.Dataset:
    r"""Load a public data set by name, and tell its licence and citation.

    Reading times stand along ``reading`` (``reading_text``, ``reading_word_num``, ``reading_word``, ``reading_ms``, and
    ``reading_participant`` where readers are told apart), where ``reading_times`` finds them. Nothing of the data is
    part of this project.

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
        raise InputError(f"is null; study.data=NAME is one of {options}", source="study=norms", field="data")
    corpus = CORPORA[settings.data]
    form = settings.form or corpus.forms[0]
    if form not in corpus.forms:
        raise unknown_choice("form", form, corpus.forms, source=settings.data)
    if settings.measure is not None and settings.measure not in corpus.times:
        raise unknown_choice("measure", settings.measure, list(corpus.times), source=settings.data)
    say(f"{corpus.title} ({corpus.home}). Licence: {corpus.licence}. Cite: {corpus.citation}")
    root = settings.root or public_folder(f"norms/{settings.data}")
    source = _Source(settings.data, corpus, root, settings.cache_dir)
    of_texts = corpus.texts if form == "texts" else None
    study = _text_study(source, of_texts) if of_texts else corpus.cloze(source) if corpus.cloze else xr.Dataset()
    add_notes(study, [Note(f"data: {corpus.citation}; {corpus.licence}")])
    if corpus.times:
        measure = settings.measure or next(iter(corpus.times))
        study = _with_times(study, source, corpus.times[measure], measure)
    add_notes(study, source.notes)
    return study.assign_attrs(name=settings.data, kind="documents" if form == "texts" else "cloze")


@dataclass(frozen=True, eq=False)
class _Source:
    """Where the files of a data set are, and what was found while they were read."""

    name: str
    corpus: Corpus
    root: Path | None
    cache_dir: Path | None
    notes: list[Note] = field(default_factory=list)

    def path(self, file: str) -> Path:
        """A file, or the archive that holds it: the user's own, or downloaded and checked."""
        its = self.corpus.files[file]
        if self.root is not None:
            for name in its.names:
                if (self.root / name).is_file():
                    whole = not its.member or name != its.member
                    if whole and not check_content(self.root / name, its.checksum):
                        text = f"{name} is another version than the one that this loader was made for"
                        self.notes.append(Note(text, None, "warning"))
                    return self.root / name
            problem = f"there is no {' or '.join(its.names)}; it is at {its.url}"
            raise InputError(problem, source=self.root)
        target = cache_folder(self.cache_dir) / "norms" / self.name / its.names[-1]
        hint = f"put {its.names[-1]} into a folder and set study.root=FOLDER"
        return downloaded(its.url, target, hint, checksum=its.checksum)

    def table(self, file: str, columns: Mapping[str, str], *, unique: tuple[str, ...] = ()) -> pd.DataFrame:
        """Columns of a file as strings by new names, once for each value of the `unique` ones."""
        path, its = self.path(file), self.corpus.files[file]
        parts = []
        with _opened(path, its) as stream:
            first = pd.read_csv(stream, sep=its.separator, nrows=0, quoting=its.quoting)
            if missing := [name for name in dict.fromkeys(columns.values()) if name not in first.columns]:
                problem = f"has no {some_of(missing, 5)}; its columns are {some_of(list(first.columns), 30)}"
                raise InputError(problem, source=path, field="columns")
        with _opened(path, its) as stream:
            chunks = pd.read_csv(
                stream, sep=its.separator, quoting=its.quoting, usecols=sorted(set(columns.values())), dtype=str,
                keep_default_na=False, chunksize=_ROWS,
            )  # fmt: skip
            for chunk in chunks:
                part = pd.DataFrame({name: chunk[column] for name, column in columns.items()})
                parts.append(part.drop_duplicates(list(unique)) if unique else part)
        found = pd.concat(parts, ignore_index=True)
        return found.drop_duplicates(list(unique), ignore_index=True) if unique else found

    def rows(self, columns: Columns, *needed: str, unique: bool = False) -> pd.DataFrame:
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
def _opened(path: Path, its: PublicFile) -> Iterator[IO[str]]:
    """Text of a file, also in an archive; old corpora are Windows-1252."""
    if not zipfile.is_zipfile(path):
        content = path.read_bytes()
        try:
            yield io.StringIO(content.decode("utf-8-sig"), newline="")
        except UnicodeDecodeError:
            yield io.StringIO(content.decode("cp1252", "replace"), newline="")
        return
    with zipfile.ZipFile(path) as archive:
        member = next((name for name in archive.namelist() if name.rpartition("/")[2] == its.member), None)
        if member is None:
            raise InputError(f"holds no {its.member}", source=path)
        with archive.open(member) as stream:
            yield io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")


def _text_study(source: _Source, columns: Columns) -> xr.Dataset:
    if columns.text:
        found = source.rows(columns, "text", unique=True)
        texts = dict(zip(found["text_id"].tolist(), found["text"].str.strip().tolist(), strict=True))
    else:
        found = source.rows(columns, "word_num", "word")
        found = found.assign(word_num=_whole(found, "word_num", source)).sort_values("word_num", kind="stable")
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


def _with_times(study: xr.Dataset, source: _Source, columns: Columns, measure: str) -> xr.Dataset:
    found = source.rows(columns, "word_num", "word", "time", "participant")
    known = ~found["word_num"].isin(_EMPTY) & ~found["time"].isin(_EMPTY)
    if n_lost := int((~known).sum()):
        source.notes.append(Note("readings without a word's number or a time (skipped words), left out", n_lost))
    found = found[known].reset_index(drop=True)
    number = _whole(found, "word_num", source).to_numpy()
    time = pd.to_numeric(found["time"], errors="coerce")
    if time.isna().any():
        raise InputError(f"is {found['time'][time.isna()].iloc[0]!r}, no time", source=source.name, field=columns.time)
    arrays = {
        "reading_text": objects(found["text_id"].tolist()),
        "reading_word_num": number + 1 - columns.first,
        "reading_word": objects(found["word"].tolist()),
        "reading_ms": time.to_numpy(dtype=float),
    }
    if columns.participant:
        # workers of a platform are no names to keep
        codes, known_readers = pd.factorize(found["participant"])
        arrays["reading_participant"] = objects([f"r{at}" for at in range(1, len(known_readers) + 1)])[codes]
    source.notes.append(Note(f"reading times, {measure}", len(found)))
    return study.assign({name: ("reading", values) for name, values in arrays.items()})


def _peelle(source: _Source) -> xr.Dataset:
    """Proportions of sentence-final words; the sentence stands without its last word."""
    path = source.path("completions")
    with _opened(path, source.corpus.files["completions"]) as stream:
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
    return cloze_study(pd.DataFrame(rows), name=source.name)


def _devarda(source: _Source) -> xr.Dataset:
    """Answers of every participant who had 8 of 10 comprehension questions right, as in the paper."""
    require_packages(("python_calamine",), "data", source=source.name, field="form")
    names = ("context", "target", "text_id", "list")
    items = source.table("items", dict(zip(names, ("sentence", "word", "sent_id", "list"), strict=True)))
    items = items.assign(context=items["context"].str.strip(), target=items["target"].str.strip())
    items.insert(0, "word_num", [len(text.split()) + 1 for text in items["context"].tolist()])
    rows, n_excluded = [], 0
    for number in range(1, 9):
        path = source.path(f"list{number}")
        sheet = pd.read_excel(path, engine="calamine", dtype=str, keep_default_na=False)
        asked = items[items["list"] == str(number)]
        columns = [name for name in sheet.columns if re.fullmatch(r"\d+_Q\d+", str(name))]
        shown = [str(text).partition(" - Write the next word")[0].strip() for text in sheet.loc[0, columns]]
        if shown != asked["context"].tolist():
            raise InputError(f"has other questions than list {number} of {source.path('items').name}", source=path)
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


def _github(repository: str, commit: str, path: str, blob: str, separator: str = "\t") -> PublicFile:
    url = f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
    return PublicFile(url, f"git:{blob}", separator=separator)


_STORIES = ("languageMIT/naturalstories", "4700daad696e942f5aba23c957a7423d0de66612")
_DEVARDA = ("Andrea-de-Varda/prediction-resource", "7162734da00a9a3c81d5ebaec65bdf6d59e931fc")
_PEELLE = ("jpeelle/sentence-prediction", "6bdd4426c35a76b2b1eecbe904d7277d061ea134")
_UCL_ZIP = (
    "https://static-content.springer.com/esm/art%3A10.3758%2Fs13428-012-0313-y/MediaObjects/"
    "13428_2012_313_MOESM1_ESM.zip",
    "md5:77e3c0cacccb0a074a55d23aa8531ca5",
)
_LISTS = (
    "dbebb35babf3efc43bc4894865a12398b36ffddc", "5a11a39e4210537d5fe46e9129e6bf27afc2ea33",
    "2f30413925657ec80d54ab6ab1e2f2e5c21dfcef", "eb594f37e2c9dbc3bccb099fe2fd18482b7c8595",
    "69649bb5ea8179f8237cb6e708b43baf871200bc", "5ea8ab46525e769cc92c98d1f14cf75ce8ab9117",
    "d512f790a19acd3b51e87da8c9fc26dafee798df", "7f86d6dda04ed656a4051e5f2ba963d878aa2eb1",
)  # fmt: skip
_UCL_EYES = {
    "first_fixation": "RTfirstfix",
    "first_pass": "RTfirstpass",
    "right_bounded": "RTrightbound",
    "go_past": "RTgopast",
}
_EYELINK = {
    "first_pass": "IA_FIRST_RUN_DWELL_TIME", "first_fixation": "IA_FIRST_FIXATION_DURATION",
    "go_past": "IA_REGRESSION_PATH_DURATION", "total": "IA_DWELL_TIME",
}  # fmt: skip
_ONESTOP = ("article_batch", "article_id", "difficulty_level", "paragraph_id")
_READ_ONCE = {"practice_trial": "False", "repeated_reading_trial": "False"}
_UCL_CITATION = (
    "Frank, Fernandez Monsalve, Thompson and Vigliocco (2013), Reading time data for evaluating broad-coverage models "
    "of English sentence processing, Behavior Research Methods 45, 1182-1190"
)

CORPORA: Mapping[str, Corpus] = {
    "natural_stories": Corpus(
        title="Natural Stories, 10 stories, self-paced reading of 180 people",
        citation="Futrell et al. (2021), The Natural Stories corpus, Language Resources and Evaluation 55, 63-77",
        licence="CC BY-NC-SA 4.0",
        home="https://github.com/languageMIT/naturalstories",
        files={
            name: _github(*_STORIES, f"naturalstories_RTS/{path}", blob)
            for name, path, blob in (
                ("words", "all_stories.tok", "43ff83f78beded0c0c80d81bd83c8d5155f410c1"),
                ("times", "processed_RTs.tsv", "1424db97ff998e86090ad3d05e680043b96fff9b"),
                ("means", "processed_wordinfo.tsv", "2b883c226a88b1406180b5e4a93f8a0edb5b6330"),
            )
        },
        texts=Columns("words", ("item",), "zone", word="word"),
        times={
            "self_paced": Columns("times", ("item",), "zone", word="word", time="RT", participant="WorkerId"),
            "self_paced_mean": Columns("means", ("item",), "zone", word="word", time="meanItemRT"),
        },
    ),
    "ucl": Corpus(
        title="UCL corpus, 361 sentences, self-paced reading of 117 people and eye movements of 43",
        citation=_UCL_CITATION,
        licence="supplement of the article (Springer), for research; no licence is stated",
        home="https://doi.org/10.3758/s13428-012-0313-y",
        files={
            name: PublicFile(*_UCL_ZIP, member=member)
            for name, member in (
                ("sentences", "stimuli.txt"),
                ("self_paced", "selfpacedreading.RT.txt"),
                ("eyes", "eyetracking.RT.txt"),
            )
        },
        texts=Columns("sentences", ("sent_nr",), text="sentence"),
        times={
            name: Columns(file, ("sent_nr",), "word_pos", word="word", time=column, participant="subj_nr")
            for name, file, column in (
                ("self_paced", "self_paced", "RT"),
                *((name, "eyes", column) for name, column in _UCL_EYES.items()),
            )
        },
    ),
    "devarda": Corpus(
        title="205 sentences of the UCL corpus with cloze answers of 630 people and mean reading times",
        citation="de Varda, Marelli and Amenta (2024), Cloze probability, predictability ratings, and computational "
        f"estimates for 205 English sentences, Behavior Research Methods 56, 5190-5213; times: {_UCL_CITATION}",
        licence="no licence is stated; the authors ask for both citations",
        home="https://github.com/Andrea-de-Varda/prediction-resource",
        files={
            "measures": _github(*_DEVARDA, "all_measures.csv", "29dcd73240592bd7b402be400ebc4fddbf834369", ","),
            "items": _github(*_DEVARDA, "item-set.csv", "2b16bdbeed897c8f403f69dffb5e70de1106ab25", ","),
            **{f"list{at}": _github(*_DEVARDA, f"cp/list{at}.xls", blob) for at, blob in enumerate(_LISTS, start=1)},
        },
        texts=Columns("measures", ("sent_id",), text="sentence"),
        times={
            name: Columns("measures", ("sent_id",), "context_length", first=0, word="word", time=column)
            for name, column in (("self_paced", "self_paced_reading_time"), *_UCL_EYES.items())
        },
        cloze=_devarda,
    ),
    "provo": Corpus(
        title="Provo corpus, 55 passages, cloze answers of 470 people and eye movements of 84",
        citation="Luke and Christianson (2018), The Provo Corpus, Behavior Research Methods 50, 826-833",
        licence="CC BY 4.0",
        home="https://osf.io/sjefs",
        files={
            "norms": PublicFile(
                "https://osf.io/download/e4a2m",
                "sha256:965fb72eab55f51e08fc1b5622638b85b1085976ff513e2a7bee4adbbd4e6489",
                separator=",",
                called=NORMS_FILE,
            ),
            "eyes": PublicFile(
                "https://osf.io/download/a32be",
                "sha256:38aedcb29bc9171009916eb2bcc2375729f104a2a1005c64a563da94b611b9e7",
                separator=",",
                called="Provo_Corpus-Eyetracking_Data.csv",
            ),
        },
        texts=Columns("norms", ("Text_ID",), text="Text"),
        times={
            name: Columns("eyes", ("Text_ID",), "Word_Number", word="Word", time=column, participant="Participant_ID")
            for name, column in _EYELINK.items()
        },
        cloze=lambda source: provo(root=source.path("norms"), layout="norms"),
    ),
    "onestop": Corpus(
        title="OneStop, 162 paragraphs in two versions, eye movements of 180 people in ordinary reading",
        citation="Berzak et al. (2025), OneStop: A 360-Participant English Eye Tracking Dataset with Different Reading "
        "Regimes, Scientific Data",
        licence="CC BY 4.0, texts CC BY-SA 4.0",
        home="https://osf.io/zn9sq",
        files={
            "eyes": PublicFile(
                "https://osf.io/download/xkgfz",
                "sha256:8883478946ee52381e7057683c9e84dc69fcea9054acc34f0c900463a6b546e9",
                member="ia_Paragraph_ordinary.csv",
                separator=",",
                called="ia_Paragraph_ordinary.csv.zip",
            )
        },
        texts=Columns("eyes", _ONESTOP, text="paragraph", where=_READ_ONCE),
        times={
            name: Columns(
                "eyes", _ONESTOP, "IA_ID", word="IA_LABEL", time=column, participant="participant_id", where=_READ_ONCE
            )
            for name, column in _EYELINK.items()
        },
    ),
    "peelle": Corpus(
        title="Completion norms, last words of 3,085 sentences by 309 people",
        citation="Peelle et al. (2020), Completion norms for 3085 English sentence contexts, Behavior Research Methods "
        "52, 1795-1799",
        licence="MIT",
        home="https://github.com/jpeelle/sentence-prediction",
        files={
            "completions": _github(*_PEELLE, "example/output.tsv", "615ddd63e01b98c76f031f8948a18d0e1eba1434"),
        },
        cloze=_peelle,
    ),
}
"""The data sets, by name."""
