"""Archives of public data that are downloaded once, checked and kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pooch

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.files import ArchiveFiles
from shannon_game.inference.progress import say

__all__ = ["fetch_archive"]

_DOWNLOAD_TIMEOUT_SECONDS = 60


def fetch_archive(url: str, path: Path, check: Callable[[ArchiveFiles], None]) -> ArchiveFiles:
    """Download an archive once, with a bar in a terminal and else a line, and keep it only when it passes a check.

    The download goes to a temporary file beside `path`, which takes its name after the check; one
    that broke off or fails the check leaves nothing behind.
    """
    if path.is_file():
        return ArchiveFiles(path)

    download = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=_DOWNLOAD_TIMEOUT_SECONDS)

    def download_and_check(url: str, output_file: str, owner: object) -> None:
        download(url, output_file, owner)
        try:
            check(ArchiveFiles(Path(output_file)))
        except InputError as error:
            # the temporary name means nothing to the reader, and is gone by then
            raise _RefusedError(str(error).replace(output_file, f"download of {url}")) from None

    # pooch tells the user to paste a hash into "the call": advice to a programmer, and the manifest does that job
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    say(f"downloading {url} to {path}, once")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, downloader=download_and_check)
    except _RefusedError as error:
        raise InputError(f"{error}. Nothing was kept of it; {_by_hand(url, path)}") from None
    except (OSError, ValueError) as error:  # requests' exceptions are OSErrors, or ValueErrors for a bad URL
        raise InputError(
            f"the data are not in the cache and could not be downloaded ({type(error).__name__}: {error}). "
            f"Run once with a network, or {_by_hand(url, path)}",
            source=url,
        ) from error
    finally:
        logger.setLevel(level)
    return ArchiveFiles(path)


class _RefusedError(InputError):
    """The archive arrived and failed its check."""


def _by_hand(url: str, path: Path) -> str:
    return f"get {url} by other means and save it as {path}, or set study.root=FOLDER to a folder that holds the data"
