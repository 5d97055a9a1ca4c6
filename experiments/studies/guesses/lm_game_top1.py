"""The top-1 game: people guess the next token of a text, as a guess study.

Data of section 3 of "Language Models Are Better Than Humans at Next-token Prediction" (Shlegeris, Roger, Chan, McLean),
in the public layout of :mod:`experiments.studies.comparison.lm_game`: ``docs/doc{i}.json`` is the list of token strings
of one document, ``results_raw/res_accuracy_anonym.json`` holds every guess as ``[row_id, user, guess, (ignored),
guessed_token_idx, doc_id]``, ``results_raw/model_perfs*.json`` the accuracies of language models. The settings and
their defaults are in ``conf/study/lm_game_top1.yaml``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from estimators.documents.tokens import is_visible_token
from estimators.errors import InputError
from estimators.guesses.study import is_word_position, prior_guesses, validate_guess_study
from estimators.notes import add_note
from experiments.studies.comparison import lm_game
from experiments.studies.comparison.lm_game_parse import Note, digest_of, publication_notes
from experiments.studies.files import (
    ArchiveFiles,
    MissingFilesError,
    check_hash,
    fetch_archive,
    open_files,
    read_manifest,
)
from experiments.studies.guesses.lm_game_top1_parse import (
    DOCUMENTS,
    N_DOCUMENTS,
    RESPONSE_FILE,
    RESULTS,
    Rows,
    document_exists,
    document_file,
    parse_document,
    parse_rows,
    read_files,
    read_stored,
)
from experiments.studies.loader_settings import cache_folder, loader_settings, optional_path, public_url

__all__ = ["DEFAULTS", "TESTERS", "load"]

TESTERS = ("-6247052403041399844", "7513247084907933005", "3056584949900737159")
"""Participants who tested the site, left out by the authors."""

DEFAULTS: Mapping[str, Any] = {
    "name": "lm_game_top1",
    "root": None,
    "exclude_participants": TESTERS,
    "anonymous": "drop",
    "anonymous_name": "1812031566398576187",
    "items": "visible",
    "repeats": "keep",
    "cache_dir": None,
    "commit": lm_game.DEFAULTS["commit"],
    "url": lm_game.DEFAULTS["url"],
    "manifest": None,
}
"""Every setting with the value it has when it is not given."""

_SOURCE = "study=lm_game_top1"
_CHOICES = {
    "anonymous": ("drop", "keep"),
    "items": ("all", "visible", "word_tokens"),
    "repeats": ("keep", "first", "last", "error"),
}
_HASH_OF_NO_NAME = "0"  # Python's, with which the names were made anonymous


@dataclass(frozen=True)
class _Options:
    root: Path | None
    exclude_participants: tuple[str, ...]
    anonymous: str
    anonymous_name: str
    items: str
    repeats: str
    cache_dir: Path
    commit: str
    url: str
    manifest: Path


@dataclass
class _Kept:
    """Rows that the filters have left, and what the filters noted."""

    at: NDArray[np.intp]
    notes: list[Note] = field(default_factory=list)

    def keep(self, mask: NDArray[np.bool_], what: str) -> None:
        """Keep the rows where `mask` (over those left) holds, and note how many went."""
        dropped = int((~mask).sum())
        if self.at.size and not mask.any():
            raise InputError(f"no guess is left: all {dropped} that were left are {what}", source=_SOURCE)
        self.at = self.at[mask]
        if dropped:
            self.notes.append(Note(f"guesses left out: {what}", dropped))


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load the top-1 game as a guess study.

    A guess is right where its string is the document's token. Guesses pass these steps, each counted in the notes:
    ``exclude_participants``; documents and positions that do not exist; ``anonymous``; ``items``; ``repeats``. The
    order of ``row_id`` is the order in time; ``n_before`` counts a participant's guesses before any of these steps.

    Parameters
    ----------
    config : mapping
        Settings, see ``conf/study/lm_game_top1.yaml``; one that is absent has its default (:data:`DEFAULTS`).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.guesses.study.validate_guess_study`, with targets, guesses, whole texts, and the
        accuracies of language models that the files hold; ``row_id`` (response) is the row's own number.

    Raises
    ------
    InputError
        For an unknown setting or value, missing, malformed or unverifiable files, a failed download, and a filter that
        leaves nothing; names the file, the field and the value.
    """
    options = _options(config)
    manifest = read_manifest(options.manifest)
    verify = options.root is None
    files = _fetched(options, manifest) if options.root is None else open_files(options.root, (DOCUMENTS, RESULTS))
    digests: dict[str, str] = {}
    try:
        content = read_files(files, [RESPONSE_FILE], digests)
        rows, row_notes = parse_rows(content[RESPONSE_FILE], files.where(RESPONSE_FILE))
        numbers = np.unique(rows.document[document_exists(rows)]).tolist()
        content = read_files(files, [document_file(number) for number in numbers], digests)
    except MissingFilesError as error:
        raise InputError(f"{error}; the public archive {options.url} has them all") from None
    documents = {n: parse_document(content[document_file(n)], files.where(document_file(n))) for n in numbers}
    stored, missing = read_stored(files, digests)
    if verify:
        for name, digest in digests.items():
            check_hash(name, digest, manifest, source=files.where(name))
    kept = _filtered(rows, documents, options)
    study = _study(rows, documents, kept.at, options).assign_attrs(data_sha256=digest_of(digests))
    study = study.assign(stored) if stored else study
    missing_notes = [Note("files of stored accuracies that are not there: " + ", ".join(missing), len(missing))]
    for note in (
        *publication_notes(digests, manifest),
        *row_notes,
        *kept.notes,
        *(missing_notes if missing else []),
        *_kept_notes(study, options),
    ):
        add_note(study, note.text, count=note.count, level=note.level)
    return validate_guess_study(study)


# ------------------------------------------------------------------------------------------- settings


def _options(config: Mapping[str, Any]) -> _Options:
    given = loader_settings(config, DEFAULTS, source=_SOURCE, choices=_CHOICES, own_name=True)
    url = public_url(given, source=_SOURCE)
    excluded = given["exclude_participants"]
    if not isinstance(excluded, Sequence) or isinstance(excluded, str | bytes):
        raise InputError(f"is {excluded!r}, should be a list of names", source=_SOURCE, field="exclude_participants")
    return _Options(
        root=optional_path(given, "root", source=_SOURCE),
        exclude_participants=tuple(map(str, excluded)),
        anonymous=given["anonymous"],
        anonymous_name=str(given["anonymous_name"]),
        items=given["items"],
        repeats=given["repeats"],
        cache_dir=cache_folder(given, source=_SOURCE),
        commit=given["commit"],
        url=url,
        manifest=optional_path(given, "manifest", source=_SOURCE) or lm_game.MANIFEST,
    )


# ---------------------------------------------------------------------------------------------- files


def _fetched(options: _Options, manifest: Mapping[str, str]) -> ArchiveFiles:
    def check(archive: ArchiveFiles) -> None:
        # the documents are checked when they are read: only the guesses say which ones are needed
        for name, content in archive.read([RESPONSE_FILE]):
            check_hash(name, hashlib.sha256(content).hexdigest(), manifest, source=archive.where(name))

    return fetch_archive(options.url, options.cache_dir / f"lm-game-analysis-{options.commit}.zip", check)


# ---------------------------------------------------------------------------------------------- filters


def _filtered(rows: Rows, documents: Mapping[int, list[str]], options: _Options) -> _Kept:
    kept = _Kept(np.arange(rows.row_id.size))
    for name in options.exclude_participants:
        if name not in rows.participant and name not in TESTERS:
            raise InputError(
                f"there is no participant {name!r} among the {np.unique(rows.participant).size}",
                source=_SOURCE,
                field="exclude_participants",
            )
    excluded = np.isin(rows.participant, options.exclude_participants)
    kept.keep(~excluded, f"by the {len(options.exclude_participants)} excluded participants (exclude_participants)")
    known = document_exists(rows)
    kept.keep(known[kept.at], f"on documents that do not exist (doc_id from 0 to {N_DOCUMENTS - 1})")
    length = np.array([len(documents[n]) for n in rows.document[kept.at].tolist()])
    position = rows.position[kept.at]
    kept.keep((position >= 0) & (position < length), "at positions outside their document (guessed_token_idx)")
    anonymous = rows.participant[kept.at] == options.anonymous_name
    if options.anonymous == "drop":
        kept.keep(~anonymous, "under the name that people shared who gave none (anonymous=drop)")
    elif anonymous.any():
        text = "guesses under the name that people shared who gave none; they count as one participant (anonymous=keep)"
        kept.notes.append(Note(text, int(anonymous.sum()), "warning"))
    if options.items != "all":
        visible = np.array([is_visible_token(_token(documents, rows, at)) for at in kept.at])
        kept.keep(visible, "of tokens that cannot be seen: a line break, a part of a character, nothing")
    if options.items == "word_tokens":
        words = np.array([_is_word(documents, rows, at) for at in kept.at])
        kept.keep(words, "of tokens that are no whole word (items=word_tokens)")
    _keep_repeats(kept, rows, options)
    return kept


def _token(documents: Mapping[int, list[str]], rows: Rows, at: int) -> str:
    return documents[int(rows.document[at])][int(rows.position[at])]


def _is_word(documents: Mapping[int, list[str]], rows: Rows, at: int) -> bool:
    tokens, position = documents[int(rows.document[at])], int(rows.position[at])
    return is_word_position(tokens[position], tokens[position + 1] if position + 1 < len(tokens) else None)


def _keep_repeats(kept: _Kept, rows: Rows, options: _Options) -> None:
    person = np.unique(rows.participant, return_inverse=True)[1]
    keys = np.stack([person, rows.document, rows.position], axis=1)[kept.at]
    again = ~_first_of_key(keys)
    if not again.any():
        return
    if options.repeats == "error":
        row = kept.at[again][0]
        raise InputError(
            f"participant {rows.participant[row]} guessed at token {rows.position[row] + 1} of document "
            f"{rows.document[row]} more than once ({int(again.sum())} such guesses, this one has row_id "
            f"{rows.row_id[row]}); study.repeats=first, last or keep says what to do",
            source=RESPONSE_FILE,
            field="row_id",
        )
    if options.repeats == "keep":
        text = "guesses at a place at which the participant had guessed before, and had been shown the token; kept"
        kept.notes.append(Note(text, int(again.sum())))
        return
    mask = ~again if options.repeats == "first" else _first_of_key(keys[::-1])[::-1]
    kept.keep(mask, f"of a participant at the same place; the {options.repeats} one counts (repeats)")


def _first_of_key(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, axis=0, return_index=True)[1]] = True
    return first


# ------------------------------------------------------------------------------------------------ study


def _study(rows: Rows, documents: Mapping[int, list[str]], taken: NDArray[np.intp], options: _Options) -> xr.Dataset:
    place = np.stack([rows.document[taken], rows.position[taken]], axis=1)
    items, response_item = np.unique(place, axis=0, return_inverse=True)
    numbers = np.unique(items[:, 0]).tolist()
    lengths = {n: np.cumsum([0, *map(len, documents[n])]) for n in numbers}
    targets = [documents[n][at] for n, at in items.tolist()]
    following = [documents[n][at + 1] if at + 1 < len(documents[n]) else None for n, at in items.tolist()]
    names = rows.participant.astype(object)
    if options.anonymous == "keep":
        names[names == options.anonymous_name] = "anon"
    return xr.Dataset(
        {
            "text": ("document", np.array(["".join(documents[n]) for n in numbers], dtype=object)),
            "item_document": ("item", items[:, 0].astype(str).astype(object)),
            "item_position": ("item", items[:, 1]),
            "target_token": ("item", np.array(targets, dtype=object)),
            "target_start": ("item", np.array([lengths[n][at] for n, at in items.tolist()], dtype=np.int64)),
            "word_token": ("item", np.array(list(map(is_word_position, targets, following)), dtype=bool)),
            "participant": ("response", names[taken]),
            "response_item": ("response", response_item.ravel().astype(np.int64)),
            "guess": ("response", rows.guess[taken]),
            "correct": ("response", rows.guess[taken] == np.array(targets, dtype=object)[response_item.ravel()]),
            "n_before": ("response", prior_guesses(rows.participant)[taken]),
            "row_id": ("response", rows.row_id[taken]),
        },
        coords={"document": np.array(list(map(str, numbers)), dtype=object), "item": np.arange(len(items))},
        attrs={"name": "lm_game_top1", "tokens": "word" if options.items == "word_tokens" else options.items},
    )


def _kept_notes(study: xr.Dataset, options: _Options) -> list[Note]:
    names = study["participant"].values.tolist()
    people = len(set(names))
    nameless = names.count(_HASH_OF_NO_NAME)
    notes = []
    if nameless:
        text = (
            f"guesses by user {_HASH_OF_NO_NAME}, the hash of an empty name: perhaps several people; kept as one, as "
            "in the paper (exclude_participants leaves them out)"
        )
        notes.append(Note(text, nameless))
    text = f"guesses used (items={options.items}), by {people} participants in {study.sizes['document']} documents"
    return [*notes, Note(text, study.sizes["response"])]
