"""Whether a job has been done: with the same settings, code and data, and with all that it wrote still there.

A sweep asks this of hundreds of jobs, so no study is loaded for it. The data are what the settings name: every file, or
every file below a folder, is known by its content if it is small, else by its size and time of change.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from shannon_game.estimators.content import file_sha256
from shannon_game.experiments.harness.outputs import broken_output, config_hash, job_code, read_status
from shannon_game.experiments.harness.registry import leaves
from shannon_game.experiments.harness.replication import PARTS, REPLICATES
from shannon_game.inference.manifest import FITS
from shannon_game.inference.own_folder import is_taken

# settings below these keys name what a job reads; what it writes or keeps for later is no data
_READ = ("study", "data", "models", "generator")
_NOT_READ = {"name", "cache_dir"}
# read whole each time; of a larger one a change with size and time of change both kept is not seen
_SMALL_BYTES = 2**28
# a folder with one of these is what a run or a sweep left
_LEFT_BY_HYDRA = (".hydra", "multirun.yaml")
# what a run that was stopped has done already
_WORK = (FITS, REPLICATES, PARTS)


@dataclass(frozen=True)
class JobIdentity:
    """What decides a job's numbers; `data` is the :func:`content_hash` of every file or folder that settings name."""

    config_hash: str
    code_hash: str
    data: Mapping[str, str]


def job_identity(cfg: DictConfig) -> JobIdentity:
    """Identify a job by its config, the installed code and the files that the config names.

    Data that a loader downloads are not looked at: the config has their hashes or their commit.
    """
    found = {}
    for key in _READ:
        node = OmegaConf.select(cfg, key)
        settings = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
        for setting, text in leaves(settings, key):
            if not isinstance(text, str) or not text or not _NOT_READ.isdisjoint(setting.split(".")):
                continue
            try:
                digest = content_hash(Path(text).expanduser())
            except (OSError, RuntimeError):
                # too long for a name, or ~ of a user that does not exist: no path
                continue
            if digest is not None:
                found[setting] = digest
    return JobIdentity(config_hash(cfg), job_code(cfg), found)


def done_before(folder: Path, wanted: JobIdentity) -> tuple[bool, str]:
    """Compare a job with what lies in its folder."""
    before = read_status(folder)
    if before is None or before.status != "ok":
        return False, ""
    changed = next(
        (key for key in {**before.data, **wanted.data} if before.data.get(key) != wanted.data.get(key)), None
    )
    broken = broken_output(folder, before)
    reasons = (
        (before.code_hash != wanted.code_hash, "the code has changed since"),
        (before.config_hash != wanted.config_hash, "it was of other settings or another version"),
        (changed is not None, f"the files of {changed} have changed since"),
        (broken is not None, f"{broken} is missing or has changed"),
    )
    reason = next((text for holds, text in reasons if holds), "")
    return not reason, reason


def take_over(folder: Path, identity: JobIdentity) -> Path | None:
    """Move to a new run what an identical one beside it had done before it was stopped."""
    for other in sorted(folder.parent.iterdir(), reverse=True):
        work = [name for name in _WORK if (other / name).exists()]
        before = read_status(other) if work and other != folder else None
        if before is None or before.status == "ok" or is_taken(other):
            continue
        if identity == JobIdentity(before.config_hash, before.code_hash, before.data):
            for name in work:
                with suppress(OSError):
                    (other / name).rename(folder / name)
            return other
    return None


def content_hash(path: Path) -> str | None:
    """SHA-256 of a file, or of all files below a folder; None if there is neither.

    A file counts with its path below `path` and with its bytes, or its size and time of change above 256 MiB. Hidden
    files count only if `path` is one, and the folders that runs and sweeps left do not count.
    """
    if path.is_file():
        return hashlib.sha256(_of_file(path).encode()).hexdigest()
    if not path.is_dir():
        return None
    lines = sorted(f"{file.relative_to(path).as_posix()}\n{_of_file(file)}\n" for file in _files(path))
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _of_file(path: Path) -> str:
    found = path.stat()
    if found.st_size <= _SMALL_BYTES and os.access(path, os.R_OK):
        return file_sha256(path)
    return f"{found.st_size} bytes of {found.st_mtime_ns}"


def _files(folder: Path) -> Iterator[Path]:
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        here = Path(place)
        found = here.stat()
        own = (found.st_dev, found.st_ino)
        # a link to a folder above has no end
        if own in seen or any((here / mark).exists() for mark in _LEFT_BY_HYDRA):
            folders.clear()
            continue
        seen.add(own)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (here / name for name in names if not name.startswith(".") and (here / name).is_file())
