"""A read-only view of a study's files, the same over a folder and over a zip archive.

Nothing is ever extracted, and an archive is checked as a whole before its first member is read.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.parsing import some_of, utf8

FILE_LIMIT_BYTES = 4 * 2**30
"""A larger file is refused: what is read is held in memory, several times over."""

MEMBER_LIMIT_BYTES = 256 * 2**20
"""An archive with a member larger than this when unpacked is refused; the largest real one is 1.4 MB."""

_UNPACKING_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError)
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


def regular_file(path: Path, *, field: object = None, limit_bytes: int = FILE_LIMIT_BYTES) -> os.stat_result:
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


def read_bytes(path: Path, *, field: object = None, limit_bytes: int = FILE_LIMIT_BYTES) -> bytes:
    """Read a regular file; takes and raises what :func:`regular_file` does."""
    regular_file(path, field=field, limit_bytes=limit_bytes)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(error, path, field) from error


def _unreadable(error: Exception, path: object, field: object = None) -> InputError:
    # what the system says has the path in it, which the message has already
    return InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=path, field=field)


@dataclass(frozen=True)
class Files:
    """Files below a folder, or in a zip archive; some top folders may lie in an archive of their own.

    An archive may put a folder in front of all its members: that of the shallowest member path in which the name of
    the top folder occurs.
    """

    root: Path
    archives: Mapping[str, Path] = field(default_factory=dict)

    def _place(self, name: str) -> Path:
        return self.archives.get(name.split("/", maxsplit=1)[0], self.root)

    def where(self, name: str) -> str:
        """Place of one file, for messages."""
        place = self._place(name)
        return f"{place}, member {name}" if place.is_file() else str(place / name)

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Contents of the named files, in the order given; missing ones are an error before the first is read."""
        self._on_disk(names)
        for place, part in groupby(names, self._place):
            if place.is_file():
                yield from _unpacked(place, list(part))
                continue
            for name in part:
                yield name, read_bytes(place / name, limit_bytes=MEMBER_LIMIT_BYTES)

    def _on_disk(self, names: Sequence[str]) -> dict[str, Path]:
        """The file that holds each of the named ones."""
        found, missing = {}, []
        for name in names:
            place = self._place(name)
            found[name] = place if place.is_file() else place / name
            try:
                regular_file(found[name])
            except MissingFilesError:
                missing.append(name)
        _refuse_missing(missing, names, self.root)
        return found

    def listed(self, folder: str) -> list[str]:
        """Names of the files in one top folder, sorted."""
        place = self._place(folder)
        if place.is_file():
            with open_archive(place, place) as archive:
                members = checked_members(archive, place)
            prefix = _prefix(folder, members, place)
            inside = [name.removeprefix(prefix) for name in members if name.startswith(f"{prefix}{folder}/")]
            return sorted(name for name in inside if not name.endswith("/"))
        try:
            return sorted(f"{folder}/{entry.name}" for entry in (place / folder).iterdir() if not entry.is_dir())
        except OSError as error:
            raise _unreadable(error, self.where(folder)) from error


def open_files(root: Path, folders: Sequence[str], *, archive: str = "data.zip") -> Files:
    """View a study's folder, a folder with some of it in an archive, or an archive that holds it all."""
    needed = " and ".join(f"{folder}/" for folder in folders)
    try:
        if root.is_file():
            return Files(root)
        if not root.is_dir():
            raise InputError(f"there is no such folder or zip archive; it should hold {needed}", source=root)
        packed = {folder: root / archive for folder in folders if not (root / folder).is_dir()}
        if packed and not (root / archive).is_file():
            found = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in root.iterdir())
            raise InputError(
                f"has no {next(iter(packed))}/ (and no {archive} that could hold it); the folder needed is the one "
                f"with {needed}; found here: {some_of(found) or 'nothing'}",
                source=root,
            )
    except OSError as error:
        raise _unreadable(error, root) from error
    return Files(root, packed)


def _refuse_missing(missing: Sequence[str], wanted: Sequence[str], place: Path) -> None:
    if missing:
        problem = f"{len(missing)} of the {len(wanted)} files needed are missing: {some_of(missing)}"
        raise MissingFilesError(problem, source=place)


def _unpacked(path: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    with open_archive(path, path) as archive:
        members = checked_members(archive, path)
        prefixes = {folder: _prefix(folder, members, path) for folder in {name.split("/")[0] for name in names}}
        places = {name: prefixes[name.split("/")[0]] + name for name in names}
        _refuse_missing([name for name, place in places.items() if place not in members], names, path)
        for name, place in places.items():
            yield name, unpacked_member(archive, members[place], f"{path}, member {place}")


def unpacked_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: object) -> bytes:
    """Contents of one member of an archive that was checked."""
    try:
        return archive.read(member)
    except _UNPACKING_ERRORS as error:
        problem = f"cannot be unpacked ({error}); the archive is damaged, fetch it again"
        raise InputError(problem, source=source) from error


def open_archive(file: Path | IO[bytes], source: object) -> zipfile.ZipFile:
    """Open a zip archive, whose members :func:`checked_members` looks at before any is read."""
    try:
        return zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise InputError(f"is not a readable zip archive ({error}); fetch it again", source=source) from error


def read_manifest(path: Path) -> dict[str, str]:
    """Read a manifest of SHA-256 hashes (CSV with columns ``name``, ``sha256``)."""
    header, *lines = utf8(read_bytes(path, field=Set("study.manifest")), path).splitlines() or [""]
    if header != "name,sha256":
        raise InputError("the manifest should start with the header name,sha256", source=path)
    for number, line in enumerate(lines, start=2):
        if not re.fullmatch(r"[^,]+,[0-9a-f]{64}", line):
            raise InputError(f"line {number} is {line!r}, should be NAME,SHA256 in lower-case hex", source=path)
    return dict(line.split(",") for line in lines)


def check_hash(name: str, digest: str, manifest: Mapping[str, str], *, source: str) -> None:
    """Compare one file's SHA-256 with the manifest."""
    if name not in manifest:
        raise InputError("is not in the manifest of published files, so it cannot be verified", source=source)
    if manifest[name] != digest:
        problem = f"has SHA-256 {digest}, the published file has {manifest[name]}; it was changed or damaged"
        raise InputError(problem, source=source)


def checked_members(archive: zipfile.ZipFile, source: object) -> dict[str, zipfile.ZipInfo]:
    """Look at every member of an archive before any is read."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        # `filename` is already tidied up by zipfile; what the archive really says is in `orig_filename`
        name = member.orig_filename
        problem = "is there twice" if name in members else _member_problem(member, name)
        if problem is not None:
            raise InputError(f"member {name!r} {problem}; the archive is refused", source=source)
        members[name] = member
    total = sum(member.file_size for member in members.values())
    if total > _TOTAL_LIMIT_BYTES:
        problem = f"would unpack to {total} bytes, more than {_TOTAL_LIMIT_BYTES}; the archive is refused"
        raise InputError(problem, source=source)
    return members


def _member_problem(member: zipfile.ZipInfo, name: str) -> str | None:
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
        (
            member.file_size > MEMBER_LIMIT_BYTES,
            f"would unpack to {member.file_size} bytes, more than {MEMBER_LIMIT_BYTES}",
        ),
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
