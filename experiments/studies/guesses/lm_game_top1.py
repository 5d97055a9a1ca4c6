"""The top-1 game: people guess the next token of a text, as a guess study.

Section 3 of the paper of :mod:`shannon_game.experiments.studies.lm_game_archive`: ``docs/doc{i}.json`` is the list of
token strings of one document, ``results_raw/res_accuracy_anonym.json`` holds every guess as ``[row_id, user, guess,
(ignored), guessed_token_idx, doc_id]``, ``results_raw/model_perfs*.json`` the accuracies of language models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from shannon_game.estimators.documents.tokens import is_visible_token
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.study import is_word_position, prior_guesses, validate_guess_study
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.files import MissingFilesError
from shannon_game.experiments.studies.lm_game_archive import (
    DOCUMENT_FOLDER,
    RESULT_FOLDER,
    GameFiles,
    GameSettings,
    Kept,
    parse_document,
)
from shannon_game.experiments.studies.parsing import (
    Name,
    Note,
    Real,
    Text,
    Whole,
    add_notes,
    checked,
    objects,
    parse_json,
    whole_characters,
)
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Names

RESPONSE_FILE = f"{RESULT_FOLDER}/res_accuracy_anonym.json"

_ROW_FIELDS = ("row_id", "user", "guess", "answer", "guessed_token_idx", "doc_id")
N_DOCUMENTS = 10_000  # the site's first training rounds had other texts, with numbers from here on
_PLACE = ["document", "position"]
_ROWS = TypeAdapter(list[tuple[Whole, Name, Text, Any, Whole, Whole]])
_ACCURACIES = TypeAdapter(dict[str, Annotated[Real, Field(ge=0, le=1)]])
_SAMPLED = 1000  # guesses on which the authors' script asked each language model
# file -> which tokens it is of, and on how many guesses (0: unknown; those shares are of no round number)
_STORED: Mapping[str, tuple[str, int]] = {
    "model_perfs.json": ("visible", _SAMPLED),
    "model_perfs_origin.json": ("visible", 0),
    "model_perfs_new_new_orig.json": ("visible", _SAMPLED),
    "model_perfs_new_new_new_orig.json": ("visible", _SAMPLED),
    "model_perfs_new.json": ("word", _SAMPLED),
    "model_perfs_new_new.json": ("word", _SAMPLED),
    "model_perfs_new_new_new.json": ("word", _SAMPLED),
}

TESTERS = ("-6247052403041399844", "7513247084907933005", "3056584949900737159")
"""Participants who tested the site, left out by the authors."""

_SHARED_NAME = "1812031566398576187"  # the hash of it
_HASH_OF_NO_NAME = "0"  # Python's, with which the names were made anonymous
_UNSEEN = "of tokens that cannot be seen: a line break, a part of a character, nothing"


class LmGameTop1Settings(GameSettings):
    exclude_participants: Names = TESTERS
    """Names (hashes) of participants to leave out; by default those who tested the site."""
    anonymous: Literal["drop", "keep"] = "drop"
    """The guesses under the one name that everybody shared who gave none; keep takes them as one participant, anon."""
    items: Literal["all", "visible", "word_tokens"] = "visible"
    """Guesses that count, by their target.

    visible: no line break, no part of a character, not empty. word_tokens: a space and letters, followed by a token
    that starts with a space.
    """
    repeats: Literal["keep", "first", "last", "error"] = "keep"
    """What to do with further guesses at the same place, after the right token was shown; keep as the paper."""


@loader(LmGameTop1Settings)
def lm_game_top1(settings: LmGameTop1Settings) -> xr.Dataset:
    """Load the top-1 game as a guess study.

    A guess is right where its string is the document's token. Guesses pass these steps, each counted in the notes:
    ``exclude_participants``; documents and positions that do not exist; ``anonymous``; ``items``; ``repeats``. The
    order of ``row_id`` is the order in time; ``n_before`` counts a participant's guesses before any of these steps.

    The study has targets, guesses, whole texts, and the accuracies of language models that the files hold; ``row_id``
    (response) is the row's own number.
    """
    # the other files are verified as they are read: only the guesses say which documents are needed
    game = GameFiles.open(settings, (DOCUMENT_FOLDER, RESULT_FOLDER), [RESPONSE_FILE])
    try:
        [(_, content)] = game.read([RESPONSE_FILE])
        rows, row_notes = _read_rows(content, game.where(RESPONSE_FILE))
        tokens = _read_documents(game, sorted(set(rows["document"][_exists(rows)])))
    except MissingFilesError as error:
        raise InputError(f"{error}; the public archive {settings.address} has them all") from None
    stored, missing = _read_stored(game)
    kept = _filtered(rows.merge(tokens, on=_PLACE, how="left", sort=False), settings)
    study = _study(kept.rows, tokens, settings).assign_attrs(data_sha256=game.sha256).assign(stored)
    if settings.items == "visible":
        study.attrs["n_unseen"] = sum(note.count for note in kept.notes if _UNSEEN in note.text)
    missing_notes = [Note("files of stored accuracies that are not there: " + ", ".join(missing), len(missing))]
    add_notes(
        study,
        (*game.notes(), *row_notes, *kept.notes, *(missing_notes if missing else []), *_kept_notes(study, settings)),
    )
    return validate_guess_study(study)


def document_file(number: int) -> str:
    """Name of one document's file."""
    return f"{DOCUMENT_FOLDER}/doc{number}.json"


def _read_documents(game: GameFiles, numbers: Sequence[int]) -> pd.DataFrame:
    found = []
    for number, (name, content) in zip(numbers, game.read([document_file(number) for number in numbers]), strict=True):
        # half of a surrogate pair becomes U+FFFD, as any other part of a character
        tokens = [whole_characters(token) for token in parse_document(content, game.where(name))]
        if not tokens:
            raise InputError("is empty, should be a list of the document's tokens", source=game.where(name))
        starts = np.cumsum([0, *map(len, tokens[:-1])])
        columns = {"position": np.arange(len(tokens)), "target": objects(tokens), "start": starts}
        found.append(pd.DataFrame(columns | {"following": objects([*tokens[1:], ""])}).assign(document=number))
    return pd.concat(found) if found else pd.DataFrame(columns=[*_PLACE, "target", "start", "following"])


def _words(rows: pd.DataFrame) -> NDArray[np.bool_]:
    pairs = zip(rows["target"], rows["following"], strict=True)
    return np.array([is_word_position(token, following) for token, following in pairs], dtype=bool)


def _read_rows(content: bytes, source: str) -> tuple[pd.DataFrame, list[Note]]:
    data = checked(_ROWS.validate_python, parse_json(content, source), source, _ROW_FIELDS)
    if not data:
        raise InputError(f"is an empty list, should hold [{', '.join(_ROW_FIELDS)}]", source=source)
    columns = ["row_id", "participant", "guess", "ignored", "position", "document"]
    rows = pd.DataFrame(data, columns=columns).drop(columns="ignored")
    rows = rows.sort_values("row_id", kind="stable", ignore_index=True).assign(
        participant=lambda found: found["participant"].map(str),
        guess=lambda found: objects(list(map(whole_characters, found["guess"]))),
        token=lambda found: found["position"],
        position=lambda found: found["position"] - 1,
    )
    rows["n_before"] = prior_guesses(rows["participant"].to_numpy(dtype=str))
    notes = [Note("guesses in the file, by everybody who tried", len(rows))]
    repeated = int(rows.duplicated("row_id").sum())
    if repeated:
        text = "rows with a row_id that was there before; kept, but which came first is not known"
        notes.append(Note(text, repeated, "warning"))
    return rows, notes


def _read_stored(game: GameFiles) -> tuple[dict[str, Any], list[str]]:
    entries: list[tuple[str, float, str, int, str]] = []
    missing = []
    for name, (tokens, n) in _STORED.items():
        path = f"{RESULT_FOLDER}/{name}"
        try:
            [(_, content)] = game.read([path])
        except MissingFilesError:
            missing.append(name)
            continue
        source = game.where(path)
        data = checked(_ACCURACIES.validate_python, parse_json(content, source), source)
        entries += [(model, accuracy, tokens, n, name) for model, accuracy in data.items()]
    stored = pd.DataFrame(entries, columns=["model", "accuracy", "tokens", "n", "source"])
    return {f"stored_{name}": ("stored", column.to_numpy()) for name, column in stored.items() if entries}, missing


def _exists(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which guesses are on documents that exist, by their number."""
    return rows["document"].between(0, N_DOCUMENTS - 1)


def _filtered(rows: pd.DataFrame, settings: LmGameTop1Settings) -> Kept:
    kept = Kept(rows, "guesses", "study lm_game_top1")
    kept.exclude(settings.exclude_participants, rows["participant"].tolist(), known=TESTERS)
    kept.keep(_exists(kept.rows), f"on documents that do not exist (doc_id from 0 to {N_DOCUMENTS - 1})")
    kept.keep(kept.rows["target"].notna(), "at positions outside their document (guessed_token_idx)")
    anonymous = kept.rows["participant"] == _SHARED_NAME
    if settings.anonymous == "drop":
        kept.keep(~anonymous, "under the name that people shared who gave none", "anonymous=drop")
    elif anonymous.any():
        text = "guesses under the name that people shared who gave none; they count as one participant (anonymous=keep)"
        kept.notes.append(Note(text, int(anonymous.sum()), "warning"))
    if settings.items != "all":
        kept.keep(kept.rows["target"].map(is_visible_token).astype(bool), _UNSEEN, "items")
    if settings.items == "word_tokens":
        kept.keep(_words(kept.rows), "of tokens that are no whole word", "items=word_tokens")
    kept.keep_repeats(
        ["participant", *_PLACE],
        settings.repeats,
        said="participant {participant} guessed at token {token} of document {document}",
        kept="guesses at a place at which the participant had guessed before, and had been shown the token; kept",
        left_out="of a participant at the same place",
    )
    return kept


def _study(rows: pd.DataFrame, tokens: pd.DataFrame, settings: LmGameTop1Settings) -> xr.Dataset:
    asked = rows.groupby(_PLACE)
    items = rows.loc[asked.head(1).index].sort_values(_PLACE)
    texts = tokens[tokens["document"].isin(items["document"])].groupby("document")["target"].agg("".join)
    names = rows["participant"].to_numpy(dtype=object)
    if settings.anonymous == "keep":
        names = np.where(names == _SHARED_NAME, "anon", names)
    return xr.Dataset(
        {
            "text": ("document", objects(texts.tolist())),
            "item_document": ("item", items["document"].astype(str).to_numpy(dtype=object)),
            "item_position": ("item", items["position"].to_numpy(dtype=np.int64)),
            "target_token": ("item", items["target"].to_numpy(dtype=object)),
            "target_start": ("item", items["start"].to_numpy(dtype=np.int64)),
            "word_token": ("item", _words(items)),
            "participant": ("response", names),
            "response_item": ("response", asked.ngroup().to_numpy(dtype=np.int64)),
            "guess": ("response", rows["guess"].to_numpy(dtype=object)),
            "correct": ("response", (rows["guess"] == rows["target"]).to_numpy(dtype=bool)),
            "n_before": ("response", rows["n_before"].to_numpy()),
            "row_id": ("response", rows["row_id"].to_numpy()),
        },
        coords={"document": objects(texts.index.astype(str).tolist()), "item": np.arange(len(items))},
        attrs={"name": "lm_game_top1", "tokens": "word" if settings.items == "word_tokens" else settings.items},
    )


def _kept_notes(study: xr.Dataset, settings: LmGameTop1Settings) -> list[Note]:
    names = study["participant"].to_numpy().tolist()
    people = len(set(names))
    nameless = names.count(_HASH_OF_NO_NAME)
    notes = []
    if nameless:
        text = (
            f"guesses by user {_HASH_OF_NO_NAME}, the hash of an empty name: perhaps several people; kept as one, as "
            "in the paper (exclude_participants leaves them out)"
        )
        notes.append(Note(text, nameless))
    text = (
        f"guesses used (items={settings.items}), by {counted(people, 'participant')} in "
        f"{counted(study.sizes['document'], 'document')}"
    )
    return [*notes, Note(text, study.sizes["response"])]
