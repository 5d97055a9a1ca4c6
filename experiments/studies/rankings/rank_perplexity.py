"""The stored API answers behind the thesis on rank-based perplexity, as a ranking study.

Data of "An Alternative to Perplexity for the Evaluation of Long-context Large Language Models" (de Jong, 2024),
published without a licence: four zip archives of workbooks are read as they are from the user's folder, or downloaded
for the user and verified, and are no part of this project.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note
from shannon_game.estimators.messages import Set
from shannon_game.estimators.rankings.study import conditioned_on_other_text, validate_ranking_study
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.files import read_bytes
from shannon_game.experiments.studies.public_data import Address, Commit, PublicSettings, downloaded, public_folder
from shannon_game.experiments.studies.rankings.rank_perplexity_workbooks import (
    ARCHIVES,
    Archive,
    Workbook,
    check_sheet,
    ranked_tokens,
    read_workbooks,
)
from shannon_game.inference.settings import UserPath

_STORED = ("stored_linear", "stored_reciprocal", "stored_perplexity", "stored_exponential_01", "stored_exponential_03")
# of the workbooks, in their order
_CELLS = ("reference_token", "generated_token", "tokens", "logprobs", *_STORED)
_OF_TOKEN = ("model", "text", "context_length", "window", "position", *_CELLS[:2], "part", *_STORED)


class RankPerplexitySettings(PublicSettings):
    root: UserPath | None = None
    """Folder with the four published zip archives, as they are; null downloads and verifies them once into
    cache_dir."""
    part: Literal["all", "main", "repeats"] = "all"
    """main: 8 lengths, a window each; repeats: 5 windows at length 128; all."""
    commit: Commit = "2e6f4fe44843f900ecf9ecbae92d0b6e38aa3920"
    """Commit of the public repository; it replaces {commit} in url."""
    url: Address = "https://raw.githubusercontent.com/ChielToto/Rank-Based-Perplexity/{commit}/{file}"
    """Address of the public archives; {file} is replaced by the name of each."""


@loader(RankPerplexitySettings)
def rank_perplexity(settings: RankPerplexitySettings) -> xr.Dataset:
    """Load the stored answers as a ranking study.

    A window is "main", or "start N" for a repeat (N is the index of its first scored token). Beside the variables of
    a ranking study, ``part`` (token) is "main" or "repeats", and the scores that the workbooks store are kept as
    ``stored_linear``, ``stored_reciprocal``, ``stored_exponential_01``, ``stored_exponential_03`` and
    ``stored_perplexity`` (of the whole window), to compare with.
    """
    archives = [archive for archive in ARCHIVES if settings.part in ("all", archive.part)]
    folder = settings.root or public_folder("rank_perplexity") or _fetched(settings, archives)
    missing = [archive.name for archive in archives if not (folder / archive.name).is_file()]
    if missing:
        problem = f"has no {', '.join(map(repr, missing))}; the folder needed is the one with the four published zip"
        raise InputError(
            f"{problem} archives, as they are ({Set('study.part', 'main')} needs the first two only)", source=folder
        )
    contents = {archive: read_bytes(folder / archive.name) for archive in archives}
    hashes = {archive: hashlib.sha256(content).hexdigest() for archive, content in contents.items()}
    study = _study(
        [
            book
            for archive, content in contents.items()
            for book in read_workbooks(archive, content, folder / archive.name)
            if not book.is_averages
        ]
    )
    study.attrs["data_sha256"] = hashlib.sha256("\n".join(hashes.values()).encode()).hexdigest()
    changed = [archive.name for archive in archives if hashes[archive] != archive.sha256]
    if changed:
        add_note(study, f"archives that are not the published ones: {', '.join(changed)}", count=len(changed))
    wrong = int(conditioned_on_other_text(study).sum())
    add_note(
        study,
        f"tokens, of {study.sizes['token']:,}, whose ranking was made after another text than the reference: a "
        "completion was gone on with while its top-ranked token was right, whatever had been sampled (kept, as in the "
        "thesis)",
        count=wrong,
        level="warning",
    )
    return validate_ranking_study(study)


def _fetched(settings: RankPerplexitySettings, archives: list[Archive]) -> Path:
    folder = settings.cache_folder / "rank_perplexity"
    for archive in archives:
        url = settings.address.replace("{file}", quote(archive.name))
        hint = f"set {Set('study.root', 'FOLDER')} to a folder with the four archives"
        downloaded(url, folder / archive.name, hint, checksum=f"sha256:{archive.sha256}")
    return folder


def _study(books: list[Workbook]) -> xr.Dataset:
    if not books:
        raise InputError("the archives hold no scored token", source="study rank_perplexity")
    for book in books:
        check_sheet(book)
    rows = pd.concat(map(_rows, books), ignore_index=True)
    tokens, logprobs = ranked_tokens(books)
    shape = (len(rows), max(map(len, tokens)))
    ranked, logprob = np.full(shape, None, dtype=object), np.full(shape, np.nan)
    for at, (names, values) in enumerate(zip(tokens, logprobs, strict=True)):
        ranked[at, : len(names)] = names
        logprob[at, : len(values)] = values
    variables: dict[str, Any] = {name: ("token", rows[name].to_numpy()) for name in _OF_TOKEN}
    variables["ranked_token"] = (("token", "rank"), ranked)
    variables["ranked_logprob"] = (("token", "rank"), logprob, {"units": "nats"})
    return xr.Dataset(variables, attrs={"name": "rank_perplexity"})


def _rows(book: Workbook) -> pd.DataFrame:
    found = pd.DataFrame(book.rows[1:], columns=_CELLS).astype(dict.fromkeys(_STORED, float))
    return found.assign(
        model=book.model,
        text=book.archive.text,
        context_length=book.length,
        window="main" if book.start is None else f"start {book.start}",
        position=np.arange(len(found)),
        part=book.archive.part,
    )
