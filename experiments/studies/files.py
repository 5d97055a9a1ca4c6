"""A read-only view of a study's files, the same over a folder and over a zip archive.

Names are relative with forward slashes (``multi_comparisons/doc10000.json``). Nothing is ever
extracted, and an archive is checked as a whole before its first member is read.
"""

from __future__ import annotations

import csv
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.parsing import some_of

__all__ = [
    "MEMBER_LIMIT_BYTES",
    "UNPACKING_ERRORS",
    "ArchiveFiles",
    "Files",
    "FolderFiles",
    "MissingFilesError",
    "check_hash",
    "checked_members",
    "open_files",
    "read_bytes",
    "read_manifest",
    "regular_file",
]

FILE_LIMIT_BYTES = 4 * 2**30
"""A larger file is refused: what is read is held in memory, several times over."""

MEMBER_LIMIT_BYTES = 256 * 2**20
"""An archive with a member larger than this when unpacked is refused; the largest real one is 1.4 MB."""

UNPACKING_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)
"""What a damaged archive makes :mod:`zipfile` raise."""

_TOTAL_LIMIT_BYTES = 8 * 2**30
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class MissingFilesError(InputError):
    """Some of the files asked for are not there; the message names them and how many."""


def regular_file(path: Path, *, field: str | None = None, limit_bytes: int = FILE_LIMIT_BYTES) -> os.stat_result:
    """Look at a file before anything opens it: to open a pipe or a device can wait for ever."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFilesError("there is no such file", source=path, field=field) from None
    except (OSError, ValueError) as error:
        raise _unreadable(error, path, field) from error
    if not stat.S_ISREG(status.st_mode):
        found = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise InputError(f"is {found}, should be a regular file", source=path, field=field)
    if status.st_size > limit_bytes:
        problem = f"has {status.st_size:,} bytes, more than the {limit_bytes:,} that are read of such a file"
        raise InputError(problem, source=path, field=field)
    return status


def read_bytes(path: Path, *, field: str | None = None, limit_bytes: int = FILE_LIMIT_BYTES) -> bytes:
    """Read a regular file; takes and raises what :func:`regular_file` does."""
    regular_file(path, field=field, limit_bytes=limit_bytes)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(error, path, field) from error


def _unreadable(error: Exception, path: object, field: str | None = None) -> InputError:
    # what the system says has the path in it, which the message has already
    return InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=path, field=field)


@dataclass(frozen=True)
class FolderFiles:
    """Files below a folder."""

    root: Path

    def where(self, name: str) -> str:
        """The place of one file, for messages."""
        return str(self.root / name)

    def stamps(self, names: Sequence[str]) -> list[str]:
        """Lines that change whenever one of the named files is changed or replaced, without reading them."""
        lines, missing = [], []
        for name in names:
            try:
                lines.append(f"{name} {_stamp(regular_file(self.root / name, limit_bytes=MEMBER_LIMIT_BYTES))}")
            except MissingFilesError:
                missing.append(name)
        if missing:
            raise _missing(missing, len(names), self.root)
        return lines

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Contents of the named files, in the order given; missing ones are an error before the first is read."""
        self.stamps(names)
        for name in names:
            yield name, read_bytes(self.root / name, limit_bytes=MEMBER_LIMIT_BYTES)

    def listed(self, folder: str) -> list[str]:
        """Names of the files in one top folder, sorted."""
        try:
            return sorted(f"{folder}/{entry.name}" for entry in (self.root / folder).iterdir() if not entry.is_dir())
        except OSError as error:
            raise _unreadable(error, self.where(folder)) from error


@dataclass(frozen=True)
class ArchiveFiles:
    """Members of a zip archive, without the folder that the archive may put in front of all of them.

    The prefix is found for each top folder by itself: that of the shallowest member path in which the folder's name
    occurs.
    """

    path: Path

    def where(self, name: str) -> str:
        """Place."""
        return f"{self.path}, member {name}"

    def stamps(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Size and times of the archive, which changes as one file."""
        try:
            return [f"{self.path.name} {_stamp(self.path.stat())}"]
        except OSError as error:
            raise _unreadable(error, self.path) from error

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Contents."""
        with self._opened() as archive:
            members = checked_members(archive, self.path)
            prefixes = {folder: _prefix(folder, members, self.path) for folder in {n.split("/")[0] for n in names}}
            places = {name: prefixes[name.split("/")[0]] + name for name in names}
            missing = [name for name, place in places.items() if place not in members]
            if missing:
                raise _missing(missing, len(names), self.path)
            for name, place in places.items():
                try:
                    content = archive.read(members[place])
                except UNPACKING_ERRORS as error:
                    problem = f"cannot be unpacked ({error}); the archive is damaged, fetch it again"
                    raise InputError(problem, source=self.where(place)) from error
                yield name, content

    def listed(self, folder: str) -> list[str]:
        """Names."""
        with self._opened() as archive:
            members = checked_members(archive, self.path)
        prefix = _prefix(folder, members, self.path)
        inside = [name.removeprefix(prefix) for name in members if name.startswith(f"{prefix}{folder}/")]
        return sorted(name for name in inside if not name.endswith("/"))

    def _opened(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise InputError(f"is not a readable zip archive ({error}); fetch it again", source=self.path) from error


@dataclass(frozen=True)
class Files:
    """What a loader may do with a study's files, wherever they are: each top folder has a place of its own."""

    label: str
    layers: Mapping[str, FolderFiles | ArchiveFiles]

    def layer(self, name: str) -> FolderFiles | ArchiveFiles:
        """Place of a top folder, or of the one that a name begins with."""
        return self.layers[name.split("/", maxsplit=1)[0]]

    def where(self, name: str) -> str:
        """See :class:`FolderFiles`, also for the methods below."""
        return self.layer(name).where(name)

    def stamps(self, names: Sequence[str]) -> list[str]:
        """Size and times."""
        return [line for layer, part in self._parts(names) for line in layer.stamps(part)]

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Contents."""
        for layer, part in self._parts(names):
            yield from layer.read(part)

    def _parts(self, names: Sequence[str]) -> list[tuple[FolderFiles | ArchiveFiles, list[str]]]:
        parts: dict[FolderFiles | ArchiveFiles, list[str]] = {}
        for name in names:
            parts.setdefault(self.layer(name), []).append(name)
        return list(parts.items())


def open_files(root: Path, folders: Sequence[str], *, archive: str = "data.zip") -> Files:
    """View a study's folder, a folder with some of it in an archive, or an archive that holds it all."""
    try:
        if root.is_file():
            return Files(str(root), dict.fromkeys(folders, ArchiveFiles(root)))
        layers = {folder: _layer(root, folder, folders, archive) for folder in folders} if root.is_dir() else {}
    except OSError as error:
        raise _unreadable(error, root) from error
    if not root.is_dir():
        raise InputError(f"there is no such folder or zip archive; it should hold {_list(folders)}", source=root)
    return Files(str(root), layers)


def _layer(root: Path, folder: str, folders: Sequence[str], archive: str) -> FolderFiles | ArchiveFiles:
    if (root / folder).is_dir():
        return FolderFiles(root)
    if (root / archive).is_file():
        return ArchiveFiles(root / archive)
    found = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in root.iterdir())
    raise InputError(
        f"has no {folder}/ (and no {archive} that could hold it); the folder needed is the one with {_list(folders)}; "
        f"found here: {some_of(found) or 'nothing'}",
        source=root,
    )


def read_manifest(path: Path) -> dict[str, str]:
    """Read a manifest of SHA-256 hashes (CSV with columns ``name``, ``sha256``)."""
    content = read_bytes(path, field="study.manifest")
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"the manifest cannot be read ({error})", source=path) from error
    if not rows or rows[0] != ["name", "sha256"]:
        raise InputError("the manifest should start with the header name,sha256", source=path)
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != 2 or not re.fullmatch(r"[0-9a-f]{64}", row[1]):
            raise InputError(f"line {line} is {','.join(row)!r}, should be NAME,SHA256 in lower-case hex", source=path)
    return dict(rows[1:])


def check_hash(name: str, digest: str, manifest: Mapping[str, str], *, source: str) -> None:
    """Compare one file's SHA-256 with the manifest."""
    if name not in manifest:
        raise InputError("is not in the manifest of published files, so it cannot be verified", source=source)
    if manifest[name] != digest:
        problem = f"has SHA-256 {digest}, the published file has {manifest[name]}; it was changed or damaged"
        raise InputError(problem, source=source)


def _stamp(status: os.stat_result) -> str:
    # the change time catches an edit that put the old modification time back
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def checked_members(
    archive: zipfile.ZipFile, source: object, *, member_limit_bytes: int = MEMBER_LIMIT_BYTES
) -> dict[str, zipfile.ZipInfo]:
    """Look at every member of an archive before any is read."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        # `filename` is already tidied up by zipfile; what the archive really says is in `orig_filename`
        name = member.orig_filename
        problem = "is there twice" if name in members else _member_problem(member, name, member_limit_bytes)
        if problem is not None:
            raise InputError(f"member {name!r} {problem}; the archive is refused", source=source)
        members[name] = member
    total = sum(member.file_size for member in members.values())
    if total > _TOTAL_LIMIT_BYTES:
        problem = f"would unpack to {total} bytes, more than {_TOTAL_LIMIT_BYTES}; the archive is refused"
        raise InputError(problem, source=source)
    return members


def _member_problem(member: zipfile.ZipInfo, name: str, limit: int) -> str | None:
    kind = stat.S_IFMT(member.external_attr >> 16)
    problems = (
        (name.startswith("/"), "has an absolute path"),
        (re.match(r"[A-Za-z]:", name), "has a drive letter"),
        ("\\" in name, "has a backslash in its path"),
        ("\0" in name, "has a null character in its path"),
        (".." in name.split("/"), "leads out of the archive with '..'"),
        (kind == stat.S_IFLNK, "is a symbolic link"),
        # zero: an archive made where there are no such kinds
        (kind not in (0, stat.S_IFREG, stat.S_IFDIR), "is not a plain file"),
        (member.flag_bits & 1, "is encrypted"),
        (member.file_size > limit, f"would unpack to {member.file_size} bytes, more than {limit}"),
    )
    return next((problem for found, problem in problems if found), None)


def _prefix(folder: str, members: Iterable[str], path: Path) -> str:
    prefixes = set()
    for name in members:
        parts = name.split("/")
        if folder in parts[:-1] and parts[0] != "__MACOSX":
            prefixes.add("/".join([*parts[: parts.index(folder)], ""]))
    if not prefixes:
        inner = next((name for name in members if name.endswith(".zip")), None)
        hint = f"; it holds {inner}: unpack the outer archive and give its folder" if inner else ""
        raise InputError(f"has no folder {folder}/{hint}", source=path)
    depth = min(prefix.count("/") for prefix in prefixes)
    shallow = sorted(prefix for prefix in prefixes if prefix.count("/") == depth)
    if len(shallow) > 1:
        raise InputError(f"has {folder}/ in more than one place: {some_of(shallow)}; leave one", source=path)
    return shallow[0]


def _missing(missing: Sequence[str], wanted: int, label: Path) -> MissingFilesError:
    problem = f"{len(missing)} of the {wanted} files needed are missing: {some_of(missing)}"
    return MissingFilesError(problem, source=label)


def _list(folders: Sequence[str]) -> str:
    return " and ".join(f"{folder}/" for folder in folders)
