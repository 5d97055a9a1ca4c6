"""The top-1 game: people guess the next token of a text, as a guess study.

Section 3 of the paper of :mod:`shannon_game.experiments.studies.lm_game_archive`: ``docs/doc{i}.json`` is the list of
token strings of one document, ``results_raw/res_accuracy_anonym.json`` holds every guess as ``[row_id, user, guess,
(ignored), guessed_token_idx, doc_id]``, ``results_raw/model_perfs*.json`` the accuracies of language models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.documents.tokens import is_visible_token
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.study import is_word_position, prior_guesses, validate_guess_study
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.files import MissingFilesError
from shannon_game.experiments.studies.filters import Kept
from shannon_game.experiments.studies.guesses.lm_game_top1_parse import (
    N_DOCUMENTS,
    RESPONSE_FILE,
    Rows,
    document_exists,
    parse_rows,
    read_documents,
    read_stored,
)
from shannon_game.experiments.studies.lm_game_archive import DOCUMENT_FOLDER, RESULT_FOLDER, GameFiles, GameSettings
from shannon_game.experiments.studies.parsing import Note, add_notes
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Names, Text

__all__ = ["TESTERS", "LmGameTop1Settings", "lm_game_top1"]

TESTERS = ("-6247052403041399844", "7513247084907933005", "3056584949900737159")
"""Participants who tested the site, left out by the authors."""

_HASH_OF_NO_NAME = "0"  # Python's, with which the names were made anonymous


_UNSEEN = "of tokens that cannot be seen: a line break, a part of a character, nothing"


class LmGameTop1Settings(GameSettings):
    """Settings of the top-1 game."""

    exclude_participants: Names = TESTERS
    """Names (hashes) of participants to leave out; by default those who tested the site."""
    anonymous: Literal["drop", "keep"] = "drop"
    """The guesses under the one name that everybody shared who gave none; keep takes them as one participant, anon."""
    anonymous_name: Text = "1812031566398576187"
    """That name (hash)."""
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

    Parameters
    ----------
    settings : LmGameTop1Settings, optional
        Or its fields by name.

    Returns
    -------
    xarray.Dataset
        Passes :func:`shannon_game.estimators.guesses.study.validate_guess_study`, with targets, guesses, whole texts,
        and the accuracies of language models that the files hold; ``row_id`` (response) is the row's own number.

    Raises
    ------
    InputError
        For missing, malformed or unverifiable files, a failed download, and a filter that leaves nothing; names the
        file, the field and the value.

    Examples
    --------
    >>> from shannon_game import lm_game_top1
    >>> study = lm_game_top1(root="FOLDER", items="word_tokens")  # doctest: +SKIP
    >>> float(study["correct"].mean())  # doctest: +SKIP
    """
    # the other files are verified as they are read: only the guesses say which documents are needed
    game = GameFiles.open(settings, (DOCUMENT_FOLDER, RESULT_FOLDER), [RESPONSE_FILE])
    try:
        [(_, content)] = game.read([RESPONSE_FILE])
        rows, row_notes = parse_rows(content, game.where(RESPONSE_FILE))
        documents = read_documents(game, np.unique(rows.document[document_exists(rows)]).tolist())
    except MissingFilesError as error:
        raise InputError(f"{error}; the public archive {settings.address} has them all") from None
    stored, missing = read_stored(game)
    kept = _filtered(rows, documents, settings)
    study = _study(rows, documents, kept.at, settings).assign_attrs(data_sha256=game.sha256).assign(stored)
    if settings.items == "visible":
        study.attrs["n_unseen"] = sum(note.count for note in kept.notes if _UNSEEN in note.text)
    missing_notes = [Note("files of stored accuracies that are not there: " + ", ".join(missing), len(missing))]
    add_notes(
        study,
        (*game.notes(), *row_notes, *kept.notes, *(missing_notes if missing else []), *_kept_notes(study, settings)),
    )
    return validate_guess_study(study)


def _filtered(rows: Rows, documents: Mapping[int, list[str]], settings: LmGameTop1Settings) -> Kept:
    kept = Kept(np.arange(rows.row_id.size), "guesses", "study lm_game_top1")
    kept.exclude(settings.exclude_participants, rows.participant, known=TESTERS)
    known = document_exists(rows)
    kept.keep(known[kept.at], f"on documents that do not exist (doc_id from 0 to {N_DOCUMENTS - 1})")
    length = np.array([len(documents[n]) for n in rows.document[kept.at].tolist()])
    position = rows.position[kept.at]
    kept.keep((position >= 0) & (position < length), "at positions outside their document (guessed_token_idx)")
    anonymous = rows.participant[kept.at] == settings.anonymous_name
    if settings.anonymous == "drop":
        kept.keep(~anonymous, "under the name that people shared who gave none", "anonymous=drop")
    elif anonymous.any():
        text = "guesses under the name that people shared who gave none; they count as one participant (anonymous=keep)"
        kept.notes.append(Note(text, int(anonymous.sum()), "warning"))
    if settings.items != "all":
        visible = np.array([is_visible_token(_token(documents, rows, at)) for at in kept.at])
        kept.keep(visible, _UNSEEN, "items")
    if settings.items == "word_tokens":
        words = np.array([_is_word(documents, rows, at) for at in kept.at])
        kept.keep(words, "of tokens that are no whole word", "items=word_tokens")
    _keep_repeats(kept, rows, settings)
    return kept


def _token(documents: Mapping[int, list[str]], rows: Rows, at: int) -> str:
    return documents[int(rows.document[at])][int(rows.position[at])]


def _is_word(documents: Mapping[int, list[str]], rows: Rows, at: int) -> bool:
    tokens, position = documents[int(rows.document[at])], int(rows.position[at])
    return is_word_position(tokens[position], tokens[position + 1] if position + 1 < len(tokens) else None)


def _keep_repeats(kept: Kept, rows: Rows, settings: LmGameTop1Settings) -> None:
    person = np.unique(rows.participant, return_inverse=True)[1]

    def said(row: int) -> str:
        return (
            f"participant {rows.participant[row]} guessed at token {rows.position[row] + 1} of document "
            f"{rows.document[row]}"
        )

    kept.keep_repeats(
        np.stack([person, rows.document, rows.position], axis=1)[kept.at],
        settings.repeats,
        row_id=rows.row_id,
        said=said,
        kept="guesses at a place at which the participant had guessed before, and had been shown the token; kept",
        left_out="of a participant at the same place",
    )


def _study(
    rows: Rows, documents: Mapping[int, list[str]], taken: NDArray[np.intp], settings: LmGameTop1Settings
) -> xr.Dataset:
    place = np.stack([rows.document[taken], rows.position[taken]], axis=1)
    items, response_item = np.unique(place, axis=0, return_inverse=True)
    numbers = np.unique(items[:, 0]).tolist()
    lengths = {n: np.cumsum([0, *map(len, documents[n])]) for n in numbers}
    targets = [documents[n][at] for n, at in items.tolist()]
    following = [documents[n][at + 1] if at + 1 < len(documents[n]) else None for n, at in items.tolist()]
    names = rows.participant.astype(object)
    if settings.anonymous == "keep":
        names[names == settings.anonymous_name] = "anon"
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
        attrs={"name": "lm_game_top1", "tokens": "word" if settings.items == "word_tokens" else settings.items},
    )


def _kept_notes(study: xr.Dataset, settings: LmGameTop1Settings) -> list[Note]:
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
    text = (
        f"guesses used (items={settings.items}), by {counted(people, 'participant')} in "
        f"{counted(study.sizes['document'], 'document')}"
    )
    return [*notes, Note(text, study.sizes["response"])]
