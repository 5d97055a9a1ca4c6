"""Documents of a large corpus, such as OpenWebText: random ones, segments of them, and splits, by a stated seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.messages import Set, word
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.studies.documents.texts import FieldName
from shannon_game.experiments.studies.documents.tokens import Document, documents_study
from shannon_game.inference.settings import Count, Positive, Settings, Text, UserPath

_PARQUET = ".parquet"


class CorpusSampleSettings(Settings):
    path: UserPath | None = None
    """A Parquet file, or a folder of them."""
    dataset: Text | None = None
    """A Hugging Face data set: a repository of the Hub, such as Skylion007/openwebtext, or a folder that the library
    datasets saved (needs the extra lm)."""
    config: Text | None = None
    """Configuration of the data set."""
    revision: Text | None = None
    """Commit, tag or branch of a repository of the Hub, which has to be given."""
    part: Text = "train"
    """Part of the data set."""
    text_field: FieldName = "text"
    """Column that holds the text."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the documents, their segments and their splits."""
    n_documents: Count | None = None
    """Documents at random; null takes all, which have to fit in memory."""
    segment_characters: Count | None = None
    """Take of each longer document a segment of about so many characters, at a random place, from the beginning of a
    word to the end of one; null takes whole documents."""
    splits: Mapping[str, Positive] = Field(default_factory=lambda: {"train": 0.9, "validation": 0.1}, min_length=1)
    """Split -> its share. A document's split follows from the seed and its text alone: copies are in one split, and
    with more documents none moves."""

    @model_validator(mode="after")
    def _can_be_found(self) -> CorpusSampleSettings:
        if (self.path is None) == (self.dataset is None):
            raise InputError("one of path and dataset has to be given, and not both", field="path")
        on_hub = self.dataset is not None and not Path(self.dataset).expanduser().is_dir()
        if on_hub == (self.revision is None):
            wanted = (
                "the commit of the repository"
                if on_hub
                else f"{word(None)}: only a repository of the Hub has revisions"
            )
            raise InputError(f"is {self.revision!r}; should be {wanted}", field="revision")
        return self


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of a corpus: how many there are, and what gives the texts of some, in increasing order."""

    name: str
    n_rows: int
    texts: Callable[[NDArray[np.intp]], Sequence[Any]]


@loader(CorpusSampleSettings)
def corpus_sample(settings: CorpusSampleSettings) -> xr.Dataset:
    """Load documents of a large corpus as a documents study.

    Documents are named by their row.
    """
    rows = _parquet(settings) if settings.path is not None else _dataset(settings)
    chosen = np.arange(rows.n_rows, dtype=np.intp)
    if settings.n_documents is not None and settings.n_documents < rows.n_rows:
        drawn = rng_for(settings.seed, "documents").choice(rows.n_rows, settings.n_documents, replace=False)
        chosen = np.sort(drawn).astype(np.intp)
    documents, n_missing, n_cut = [], 0, 0
    for row, text in zip(chosen.tolist(), rows.texts(chosen), strict=True):
        if text is None:
            n_missing += 1
            continue
        if not isinstance(text, str):
            problem = f"row {row} is a {type(text).__name__}, should be a string"
            raise InputError(problem, source=rows.name, field=settings.text_field)
        part = _segment(text, settings.segment_characters, np.random.default_rng([settings.seed, row]))
        n_cut += len(part) < len(text)
        documents.append(Document(f"row {row}", part, _split(text, settings)))
    if not documents:
        raise InputError(f"has no text in {len(chosen)} rows", source=rows.name, field=settings.text_field)
    digests = {one.name: hashlib.sha256(one.text.encode("utf-8", "surrogatepass")).hexdigest() for one in documents}
    notes = [("rows without a text, left out", n_missing), ("documents of which a random segment was taken", n_cut)]
    return documents_study(rows.name, documents, digests, source=rows.name, notes=notes)


def _split(text: str, settings: CorpusSampleSettings) -> str:
    digest = hashlib.sha256(f"{settings.seed}:{text}".encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    ends = np.cumsum(list(settings.splits.values()))
    number = int(np.searchsorted(ends / ends[-1], place, side="right"))
    return list(settings.splits)[min(number, len(ends) - 1)]


def _segment(text: str, n_characters: int | None, rng: np.random.Generator) -> str:
    """Part of a text, from the beginning of a word to the end of one."""
    if n_characters is None or len(text) <= n_characters:
        return text
    first = int(rng.integers(len(text) - n_characters + 1))
    last = first + n_characters
    while 0 < first < last and not text[first - 1].isspace():
        first += 1
    whole = last
    while first < whole < len(text) and not text[whole].isspace():
        whole -= 1
    # a text without spaces has no words to keep whole
    return text[first:whole].strip() or text[last - n_characters : last]


def _parquet(settings: CorpusSampleSettings) -> _Rows:
    path = Path(str(settings.path))
    require_packages(("pyarrow",), "lm", source=path)
    import pyarrow.parquet as pq  # noqa: PLC0415

    files = sorted(path.rglob(f"*{_PARQUET}")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"has no {_PARQUET} file", source=path, field="path")
    column = settings.text_field
    # file, number of the row group, rows in it
    groups: list[tuple[Path, int, int]] = []
    for file in files:
        with _one_line(file):
            there = pq.ParquetFile(file)
        _check_column(column, there.schema_arrow.names, file)
        sizes = [there.metadata.row_group(number).num_rows for number in range(there.num_row_groups)]
        groups += [(file, number, size) for number, size in enumerate(sizes)]
    ends = np.cumsum([size for _, _, size in groups], dtype=np.intp)

    def texts(chosen: NDArray[np.intp]) -> list[Any]:
        found: list[Any] = []
        of_group = np.searchsorted(ends, chosen, side="right")
        for index in np.unique(of_group):
            file, number, size = groups[index]
            with _one_line(file):
                group = pq.ParquetFile(file).read_row_group(number, columns=[column])
            found += group.column(0).take(chosen[of_group == index] - (ends[index] - size)).to_pylist()
        return found

    return _Rows(path.resolve().name, int(ends[-1]) if len(ends) else 0, texts)


def _dataset(settings: CorpusSampleSettings) -> _Rows:
    name = str(settings.dataset)
    require_packages(("datasets",), "lm", source=f"data set {name!r}")
    import datasets  # noqa: PLC0415

    folder = Path(name).expanduser()
    with _one_line(name):
        if folder.is_dir():
            found: Any = datasets.load_from_disk(str(folder))
        else:
            found = datasets.load_dataset(name, settings.config, revision=settings.revision)
    if isinstance(found, dict):
        if settings.part not in found:
            problem = f"is {settings.part!r}; the data set has {', '.join(map(str, found))}"
            raise InputError(problem, source=f"data set {name!r}", field="part")
        found = found[settings.part]
    column = settings.text_field
    _check_column(column, found.column_names, f"data set {name!r}")
    return _Rows(folder.name, len(found), lambda chosen: found.select(chosen)[column])


def _check_column(column: str, names: Sequence[str], source: object) -> None:
    if column not in names:
        problem = f"is missing; there are {', '.join(names)} ({Set('study.text_field')})"
        raise InputError(problem, source=source, field=column)


@contextmanager
def _one_line(source: object) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as problem:
        told = " ".join(str(problem).split())[:200]
        raise InputError(f"cannot be read: {told}", source=source) from problem
