"""The public archive of the next-token and the top-1 game, which three loaders read and two filter.

Data of "Language Models Are Better Than Humans at Next-token Prediction" (Shlegeris, Roger, Chan, McLean), published
without a licence: they are read from the user's folder, or downloaded for the user into a cache and verified, and are
no part of this project. ``multi_comparisons/`` holds the questions of the next-token game, ``docs/`` the documents of
the top-1 game, ``results_raw/`` the answers of both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import AfterValidator, TypeAdapter

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.files import Files, check_hash, open_files, read_manifest
from shannon_game.experiments.studies.parsing import Note, Text, checked, parse_json, some_of
from shannon_game.experiments.studies.public_data import Address, Commit, PublicSettings, downloaded, public_folder
from shannon_game.inference.settings import UserPath

MANIFEST = Path(__file__).with_name("lm_game_manifest.csv")
"""SHA-256 of the published questions, documents, answers and stored accuracies."""

QUESTION_FOLDER = "multi_comparisons"
DOCUMENT_FOLDER = "docs"
RESULT_FOLDER = "results_raw"
_TOKENS = TypeAdapter(list[Text])


def _rising(span: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= span[0] <= span[1]:
        raise InputError(f"is {list(span)}, should be [first, last] with 0 <= first <= last")
    return span


Span = Annotated[tuple[int, int], AfterValidator(_rising)]
"""First and last number of questions or documents."""


class GameSettings(PublicSettings):
    """Settings of every loader of the archive."""

    root: UserPath | None = None
    """Folder with the archive's folders that are needed (multi_comparisons/, docs/, results_raw/), each as it is or in
    data.zip beside them; or the downloaded archive itself. null is $SHANNON_DATA/lm_game, else downloads the public
    archive once into cache_dir and verifies every file used."""
    commit: Commit = "ac1482b79ed7912a3f6c0fb11e29c6677ce0ad9c"
    """Commit of the public archive; it replaces {commit} in url."""
    url: Address = "https://github.com/FabienRoger/lm-game-analysis/archive/{commit}.zip"
    """Address of the public archive."""
    manifest: UserPath | None = None
    """CSV with the columns name, sha256 that verifies a download; null is the one of the commit above."""


@dataclass
class GameFiles:
    """Files of the archive; their hashes are kept as they are read, and those of a download are compared."""

    settings: GameSettings
    files: Files
    manifest: Mapping[str, str]
    digests: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, settings: GameSettings, folders: Sequence[str], needed: Sequence[str] | None = None) -> GameFiles:
        """Open the user's folder or archive, or the public archive, which is downloaded if it has to be."""
        manifest = read_manifest(settings.manifest or MANIFEST)
        root = settings.root or public_folder("lm_game")
        if root is not None:
            return cls(settings.changed(root=root), open_files(root, folders), manifest)
        names = [name for name in manifest if name.startswith(f"{DOCUMENT_FOLDER}/")] if needed is None else needed
        if unlisted := [name for name in names if name not in manifest]:
            problem = f"lists no hash for {len(unlisted)} of the {len(names)} files needed (the first is {unlisted[0]})"
            right = (
                f"so that no download can be verified; set {Set('study.root', 'FOLDER')}, or ask for published files"
            )
            raise InputError(f"{problem}, {right}", source=(settings.manifest or MANIFEST).name)

        def check(archive: Files) -> None:
            for _ in cls(settings, archive, manifest).read(names):
                pass

        path = settings.cache_folder / f"lm-game-analysis-{settings.commit}.zip"
        return cls(settings, fetch_archive(settings.address, path, check), manifest)

    @property
    def verify(self) -> bool:
        """Whether a file that differs from the manifest is an error: it is not where the user brings the files."""
        return self.settings.root is None

    @property
    def sha256(self) -> str:
        """SHA-256 of the contents of the files read, whatever the layout."""
        lines = "".join(f"{name} {digest}\n" for name, digest in sorted(self.digests.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def where(self, name: str) -> str:
        """Place of one file, for messages."""
        return self.files.where(name)

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Contents of the named files, in the order given."""
        for name, content in self.files.read(names):
            self.digests[name] = hashlib.sha256(content).hexdigest()
            if self.verify:
                check_hash(name, self.digests[name], self.manifest, source=self.where(name))
            yield name, content

    def changed(self) -> list[str]:
        """Files read that differ from the published ones of that name."""
        return [name for name, digest in self.digests.items() if self.manifest.get(name, digest) != digest]

    def notes(self) -> list[Note]:
        """Say how many of the files read are the published ones."""
        same = sum(self.manifest.get(name) == digest for name, digest in self.digests.items())
        found = [Note(f"files byte for byte as published, of {len(self.digests)} read", same)]
        if changed := self.changed():
            text = f"files differ from the published ones of that name, the first is {changed[0]}"
            found.append(Note(text, len(changed), "warning"))
        return found


def parse_document(content: bytes, source: str) -> list[str]:
    """Read the token strings of one document; InputError names the file and the place of what is no token."""
    return checked(_TOKENS.validate_python, parse_json(content, source), source)


@dataclass
class Kept:
    """Rows that the filters have left, with ``row_id`` and ``participant``; what they are (``"answers"``); notes."""

    rows: pd.DataFrame
    of: str
    source: str
    notes: list[Note] = field(default_factory=list)

    def keep(self, mask: pd.Series[bool] | NDArray[np.bool_], what: str, setting: str | None = None) -> None:
        """Keep the rows, of those left, where `mask` holds, and note how many went."""
        dropped = int((~mask).sum())
        if mask.size and dropped == mask.size:
            raise InputError(
                f"leaves no {self.of}: all {mask.size} that were left are {what}", source=self.source, field=setting
            )
        self.rows = self.rows[mask]
        if dropped:
            self.notes.append(Note(f"{self.of} left out{f' ({setting})' if setting else ''}: {what}", dropped))

    def exclude(self, names: Sequence[str], people: Sequence[str], known: Sequence[str] = ()) -> None:
        """Leave out participants by name; `people` are all that there are."""
        present = list(dict.fromkeys(people))
        for name in names:
            if name not in present and name not in known:
                raise InputError(
                    f"there is no participant {name!r} among the {len(present)}; they are called {some_of(present)}",
                    source=self.source,
                    field="exclude_participants",
                )
        text = f"by the {len(set(names))} excluded participants"
        self.keep(~self.rows["participant"].isin(names), text, "exclude_participants")

    def keep_repeats(self, by: list[str], how: Any, *, said: str, kept: str, left_out: str) -> None:
        """Do with rows that agree in some columns what the setting ``repeats`` says; `said` is filled by a row."""
        again = self.rows.duplicated(by)
        if not again.any():
            return
        if how == "error":
            row = self.rows[again].iloc[0]
            raise InputError(
                f"{said.format(**row)} more than once ({int(again.sum())} such {self.of}, this one has row_id "
                f"{row['row_id']}); {Set('study.repeats', 'first')}, last or keep says what to do",
                source=self.source,
                field="repeats",
            )
        if how == "keep":
            self.notes.append(Note(kept, int(again.sum())))
        else:
            self.keep(~self.rows.duplicated(by, keep=how), f"{left_out}; the {how} one counts", f"repeats={how}")


def fetch_archive(url: str, path: Path, check: Callable[[Files], None]) -> Files:
    """Download an archive once, and keep it only when it passes a check."""
    by_hand = f"get {url} by other means and save it as {path}, or {Set('study.root', 'FOLDER')}, which holds the data"
    is_new = not path.is_file()
    files = Files(downloaded(url, path, by_hand))
    try:
        if is_new:
            check(files)
    except InputError as error:
        path.unlink()
        said = str(error).replace(str(path), f"download of {url}")
        raise InputError(f"{said}. Nothing was kept of it; {by_hand}") from None
    return files
