"""The documents of the top-1 game: OpenWebText as lists of GPT-2 tokens, joined to texts.

``docs/doc{i}.json`` of the public layout is a list of token strings. A character that the tokenizer cut apart is
U+FFFD there, so that the joined text is not the original in those places; how many documents have it is noted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimators.errors import InputError
from experiments.studies.comparison import lm_game
from experiments.studies.documents.tokens import Document, documents_study
from experiments.studies.files import ArchiveFiles, Files, check_hash, fetch_archive, open_files, read_manifest
from experiments.studies.loader_settings import cache_folder, check_switches, loader_settings, optional_path, public_url

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DEFAULTS", "DOCUMENT_FOLDER", "load", "parse_document"]

DOCUMENT_FOLDER = "docs"

DEFAULTS: Mapping[str, Any] = {
    "name": "lm_game_documents",
    "root": None,
    "documents": None,
    "tokens": False,
    "duplicates": "keep",
    "cache_dir": None,
    "commit": lm_game.DEFAULTS["commit"],
    "url": lm_game.DEFAULTS["url"],
    "manifest": None,
}
"""Every setting with the value it has when it is not given; explained in ``conf/study/lm_game_documents.yaml``."""

_SOURCE = "study=lm_game_documents"
_NAME = re.compile(rf"{DOCUMENT_FOLDER}/doc(\d+)\.json")


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load the documents of the top-1 game as a documents study.

    Parameters
    ----------
    config : mapping
        Settings, see ``conf/study/lm_game_documents.yaml``; one that is absent has its default (:data:`DEFAULTS`).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.documents.study.validate_documents_study`; documents in the order of their numbers.

    Raises
    ------
    InputError
        For an unknown setting or value, missing, malformed or unverifiable files, a failed download.
    """
    options = _options(config)
    manifest = read_manifest(options["manifest"])
    verify = options["root"] is None
    files: Files = (
        _fetched(options, manifest) if options["root"] is None else open_files(options["root"], (DOCUMENT_FOLDER,))
    )
    names, others = _names(files, options, manifest if verify else None)
    digests: dict[str, str] = {}
    documents = []
    for name, content in files.read(names):
        digests[name] = hashlib.sha256(content).hexdigest()
        if verify:
            check_hash(name, digests[name], manifest, source=files.where(name))
        tokens = parse_document(content, files.where(name))
        kept = tuple(tokens) if options["tokens"] else None
        documents.append(Document(Path(name).stem, "".join(tokens), tokens=kept))
    changed = sum(manifest.get(name, digest) != digest for name, digest in digests.items())
    notes = [
        (f"files in {DOCUMENT_FOLDER}/ that are no doc{{i}}.json, not read", others),
        ("documents that differ from the published ones of that name", changed),
    ]
    return documents_study(
        DEFAULTS["name"], documents, digests, source=files.label, duplicates=options["duplicates"], notes=notes
    )


def parse_document(content: bytes, source: str) -> list[str]:
    """Read one document's tokens.

    Parameters
    ----------
    content : bytes
        JSON: a list of strings.
    source : str
        Named in the error.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        If the content is something else; names the position.
    """
    try:
        tokens = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"is not valid JSON ({error}); it has {len(content)} bytes and may be truncated", source=source
        ) from None
    if not isinstance(tokens, list):
        raise InputError(f"holds a {type(tokens).__name__}, should be a list of token strings", source=source)
    odd = next((position for position, token in enumerate(tokens) if not isinstance(token, str)), None)
    if odd is not None:
        raise InputError(f"holds {tokens[odd]!r} at [{odd}], should be a string", source=source)
    return tokens


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    choices = {"duplicates": ("keep", "drop", "error")}
    given = loader_settings(config, DEFAULTS, source=_SOURCE, choices=choices, own_name=True)
    check_switches(given, ["tokens"], source=_SOURCE)
    given["root"] = optional_path(given, "root", source=_SOURCE)
    given["cache_dir"] = cache_folder(given, source=_SOURCE)
    given["manifest"] = optional_path(given, "manifest", source=_SOURCE) or lm_game.MANIFEST
    given["url"] = public_url(given, source=_SOURCE)
    if given["documents"] is not None:
        given["documents"] = _span(given["documents"])
    return given


def _span(value: Any) -> range:
    is_pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    if not is_pair or any(type(bound) is not int for bound in value) or not 0 <= value[0] <= value[1]:
        raise InputError(
            f"is {value!r}, should be [first, last] with 0 <= first <= last, or null", source=_SOURCE, field="documents"
        )
    return range(value[0], value[1] + 1)


def _names(files: Files, options: Mapping[str, Any], manifest: Mapping[str, str] | None) -> tuple[list[str], int]:
    """Names of the documents to read, in the order of their numbers, and how many files are something else."""
    there = files.listed(DOCUMENT_FOLDER) if manifest is None else list(manifest)
    numbers = {name: int(found[1]) for name in there if (found := _NAME.fullmatch(name))}
    others = len(there) - len(numbers) if manifest is None else 0
    wanted = options["documents"]
    names = sorted((name for name in numbers if wanted is None or numbers[name] in wanted), key=numbers.__getitem__)
    if not names:
        raise InputError(
            f"has no document {DOCUMENT_FOLDER}/doc{{i}}.json"
            + (f" with i from {wanted[0]} to {wanted[-1]}; it has {len(numbers)} others" if wanted else ""),
            source=files.label,
            field="study.documents" if wanted else None,
        )
    return names, others


def _fetched(options: Mapping[str, Any], manifest: Mapping[str, str]) -> ArchiveFiles:
    known = [name for name in manifest if _NAME.fullmatch(name)]

    def check(archive: ArchiveFiles) -> None:
        for name, content in archive.read(known):
            check_hash(name, hashlib.sha256(content).hexdigest(), manifest, source=archive.where(name))

    # the archive that study=lm_game downloads
    path = options["cache_dir"] / f"lm-game-analysis-{options['commit']}.zip"
    return fetch_archive(options["url"], path, check)
