"""Settings of data that others published: where they lie on disk, and where they are downloaded from."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from omegaconf import DictConfig, OmegaConf
from pydantic import Field

from shannon_game.estimators.errors import InputError
from shannon_game.inference.disk import cache_folder
from shannon_game.inference.progress import say
from shannon_game.inference.settings import Settings, UserPath

VARIABLE = "SHANNON_DATA"
"""Environment variable with the folder that holds the folders of the public studies."""

_TIMEOUT_SECONDS = 60
_FOLDERS: Mapping[str, str] = {
    **{f"lm_game{which}": "lm_game" for which in ("", "_top1", "_documents")},
    **{name: name for name in ("provo", "rank_perplexity")},
    "norms": "norms/{data}",
}
"""Study -> folder of its data there."""


def public_folder(name: str) -> Path | None:
    """Folder of a public study below ``$SHANNON_DATA``; None where that is not set, or has no such study."""
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    above = Path(given).expanduser().absolute()
    if not above.is_dir():
        problem = "there is no such folder; name the one that holds lm_game/, provo/ and rank_perplexity/, or unset it"
        raise InputError(f"is {given!r}, and {problem}", source="environment", field=VARIABLE)
    found = (above / name).exists()
    say(f"{name}: read from {above / name} ({VARIABLE})" if found else f"{name}: {VARIABLE}={given} has no {name}/")
    return above / name if found else None


def with_public_folders(cfg: DictConfig) -> DictConfig:
    """Write the folders of ``$SHANNON_DATA`` into the config of a job that names none: they are part of what it is."""
    study = cfg.get("study") or {}
    name, found = str(study.get("name")), {}
    if name in _FOLDERS and study.get("root") is None and (name != "norms" or study.get("data")):
        found["study.root"] = public_folder(_FOLDERS[name].format(data=study.get("data")))
    # it reads the studies of its parts
    if OmegaConf.select(cfg, "experiment.name") == "reproduce" and OmegaConf.select(cfg, "data.root") is None:
        others = {own for own in _FOLDERS.values() if "{" not in own and OmegaConf.select(cfg, f"data.{own}") is None}
        found |= {f"data.{own}": public_folder(own) for own in sorted(others)}
    changed = cfg.copy()
    for setting, folder in found.items():
        if folder is not None:
            OmegaConf.update(changed, setting, str(folder), force_add=True)
    return changed


Commit = Annotated[str, Field(pattern=r"^\w[\w.-]*$")]
"""Name of a commit, which can stand in a file name."""

Address = Annotated[str, Field(pattern=r"^https?://.")]
"""Address of a file in the web."""


def downloaded(url: str, path: Path, hint: str, *, checksum: str | None = None) -> Path:
    """Download a file, unless it is there, with a bar in a terminal; one with another checksum is not kept.

    `checksum` is ``sha256:``, ``md5:``, or ``git:`` and the id that git gives the content.
    """
    import pooch  # noqa: PLC0415 - it brings what downloads, which a run of one's own data needs not

    download = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=_TIMEOUT_SECONDS)
    # pooch tells the user to paste a hash into "the call"
    pooch.get_logger().setLevel("WARNING")
    by_git = checksum is not None and checksum.startswith("git:")
    if not path.is_file():
        say(f"downloading {url} to {path}, once")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        known = None if by_git else checksum
        pooch.retrieve(url, known_hash=known, fname=path.name, path=path.parent, downloader=download)
        if by_git and checksum is not None and not check_content(path, checksum):
            path.unlink()
            raise ValueError(f"its content is not {checksum}")  # noqa: TRY301 - it joins those of pooch
    except (OSError, ValueError) as error:
        # requests' exceptions are OSErrors; a bad URL or a wrong hash is a ValueError
        problem = f"the data are not in the cache and could not be downloaded ({type(error).__name__}: {error})"
        raise InputError(f"{problem}. Run once with a network, or {hint}", source=url) from error
    return path


def check_content(path: Path, checksum: str) -> bool:
    """Whether a file has a checksum, see :func:`downloaded`."""
    kind, _, expected = checksum.partition(":")
    content = path.read_bytes()
    if kind == "git":
        kind, content = "sha1", b"blob %d\0" % len(content) + content
    return hashlib.new(kind, content, usedforsecurity=False).hexdigest() == expected


class PublicSettings(Settings):
    """Settings of a loader that can download its data."""

    root: UserPath | None = None
    """Folder with the data; null is the study's folder in $SHANNON_DATA, else downloads them once into cache_dir and
    verifies every file."""
    commit: Commit
    """Commit of the public repository; it replaces {commit} in url."""
    url: Address
    """Address of the public data."""
    cache_dir: UserPath | None = None
    """Folder for downloads; null is the user's own cache folder."""

    @property
    def cache_folder(self) -> Path:
        """The folder, whoever chose it."""
        return self.cache_dir or cache_folder()

    @property
    def address(self) -> str:
        """Address at that commit."""
        return self.url.replace("{commit}", self.commit)
