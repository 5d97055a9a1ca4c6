"""Which answers of the next-token game count: the filters of its loader."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison import same_token
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.comparison.lm_game_parse import RESPONSE_FILE, Parsed
from shannon_game.experiments.studies.comparison.lm_game_settings import LmGameSettings
from shannon_game.experiments.studies.filters import Kept
from shannon_game.experiments.studies.parsing import Note, some_of

__all__ = ["equal_strings", "filtered"]

_BOXES_PERCENT = (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99)


def filtered(parsed: Parsed, settings: LmGameSettings, study: xr.Dataset) -> Kept:
    """Answers that count, and what the filters noted."""
    rows = Kept(np.arange(len(parsed.guess)), "answers", "study lm_game")
    asked = study["item"].values[study["item_set"].values != ""]
    others = np.setdiff1d(parsed.response_item, asked)
    what = f"on questions of no set ({some_of([str(item) for item in others])})"
    rows.keep(np.isin(parsed.response_item, asked), what, "sets")
    rows.exclude(settings.exclude_participants, parsed.participants[parsed.participant_code])
    _check_values(rows, parsed, settings, candidates=study.sizes["candidate"])
    _keep_participants(rows, parsed, settings)
    _keep_repeats(rows, parsed, settings)
    selected = study["item"].values[study["selected"].values]
    rows.keep(np.isin(parsed.response_item[rows.at], selected), "on targets that are no word token", "items")
    _keep_automatic(rows, parsed, settings, study)
    return rows


def _check_values(rows: Kept, parsed: Parsed, settings: LmGameSettings, *, candidates: int) -> None:
    guess = parsed.guess[rows.at]
    bad = ~((guess > 0) & (guess < 100))
    if bad.any():
        raise _row_error(
            parsed,
            rows.at[bad],
            "guess",
            parsed.guess,
            "should be a percentage strictly between 0 and 100: a certain report means an infinite likelihood ratio",
        )
    bad = ~np.isin(guess, _BOXES_PERCENT)
    if bad.any() and settings.off_grid == "error":
        raise _row_error(
            parsed,
            rows.at[bad],
            "guess",
            parsed.guess,
            f"the game offers {', '.join(map(str, _BOXES_PERCENT))} percent; study.off_grid=keep takes it anyway",
        )
    if bad.any():
        text = f"answers off the game's grid of percentages, kept; the first is {guess[bad][0]:g} percent"
        rows.notes.append(Note(text, int(bad.sum()), "warning"))
    shown = parsed.response_candidate[rows.at]
    bad = (shown < 0) | (shown >= candidates)
    if bad.any():
        raise _row_error(
            parsed, rows.at[bad], "sample_index", parsed.response_candidate, f"should be 0 to {candidates - 1}"
        )


def _row_error(parsed: Parsed, bad: NDArray[np.intp], column: str, values: NDArray[Any], right: str) -> InputError:
    row = int(bad[0])
    return InputError(
        f"is {values[row]} in the row with row_id {parsed.row_id[row]} (participant {_participant(parsed, row)}, "
        f"question {parsed.response_item[row]}; {len(bad)} such); {right}",
        source=RESPONSE_FILE,
        field=column,
    )


def _participant(parsed: Parsed, row: int) -> str:
    return str(parsed.participants[parsed.participant_code[row]])


def _keep_participants(rows: Kept, parsed: Parsed, settings: LmGameSettings) -> None:
    people = parsed.participant_code[rows.at]
    items = parsed.response_item[rows.at]
    counts = []
    passes = np.zeros(len(parsed.participants), dtype=bool)
    completed = np.zeros(len(rows.at), dtype=bool)
    for name, questions in settings.questions_by_set.items():
        inside = np.isin(items, questions)
        if settings.participants == "complete":
            pairs = np.unique(np.stack([people[inside], items[inside]]), axis=1)
            answers = np.bincount(pairs[0], minlength=len(passes))
        else:
            answers = np.bincount(people[inside], minlength=len(passes))
        through = answers > 0 if settings.participants == "all" else answers == len(questions)
        counts.append(f"{name}: {int(through.sum())}")
        passes |= through
        completed |= inside & through[people]
    if settings.participants == "paper":
        # as in the paper's code: whoever passes in one set keeps the answers given in the others too
        what = "by participants whose number of answers in a set is in no set the number of its questions"
        _note_repeaters(rows, parsed, settings, passes)
        rows.keep(passes[people], what, "participants=paper")
    elif settings.participants == "complete":
        rows.keep(completed, "in a set of which the participant left out a question", "participants=complete")
    rows.notes.append(
        Note(f"participants kept (participants={settings.participants}; {', '.join(counts)})", int(passes.sum()))
    )


def _note_repeaters(rows: Kept, parsed: Parsed, settings: LmGameSettings, passes: NDArray[np.bool_]) -> None:
    """Note who answered a whole set and is left out all the same, because the paper counts rows, not questions."""
    people = parsed.participant_code[rows.at]
    items = parsed.response_item[rows.at]
    answered_all = np.zeros(len(passes), dtype=bool)
    for questions in settings.questions_by_set.values():
        inside = np.isin(items, questions)
        pairs = np.unique(np.stack([people[inside], items[inside]]), axis=1)
        answered_all |= np.bincount(pairs[0], minlength=len(passes)) == len(questions)
    lost = int((answered_all & ~passes).sum())
    if lost:
        text = (
            "participants who answered every question of a set but gave more rows than it has questions, which "
            "participants=paper leaves out and participants=complete keeps"
        )
        rows.notes.append(Note(text, lost))


def _keep_repeats(rows: Kept, parsed: Parsed, settings: LmGameSettings) -> None:
    columns = (parsed.participant_code, parsed.response_item, parsed.response_candidate)
    keys = np.stack([column[rows.at] for column in columns], axis=1)
    repeated = int((np.unique(keys, axis=0, return_counts=True)[1] > 1).sum())
    how: str = settings.repeats
    if how == "auto":
        # one answer a question is the point of "complete", and the first was given before the truth was shown
        how = "first" if settings.participants == "complete" else "keep"

    def said(row: int) -> str:
        return (
            f"participant {_participant(parsed, row)} answered question {parsed.response_item[row]} with candidate "
            f"{parsed.response_candidate[row]}"
        )

    rows.keep_repeats(
        keys,
        how,
        row_id=parsed.row_id,
        said=said,
        kept=f"answers that repeat one of {repeated} pairs of a participant and a comparison answered before, kept",
        left_out="further answers of a participant to the same comparison",
    )


def _keep_automatic(rows: Kept, parsed: Parsed, settings: LmGameSettings, study: xr.Dataset) -> None:
    automatic = equal_strings(parsed)[rows.at]
    positions = np.searchsorted(parsed.item, parsed.response_item[rows.at])
    same = same_token(study)[positions, parsed.response_candidate[rows.at]]
    different = automatic & ~same
    odd = automatic & (parsed.guess[rows.at] != 50)
    if odd.any():
        text = "answers on two equal strings are not the 50% that the site gives there"
        rows.notes.append(Note(text, int(odd.sum()), "warning"))
    verb = {"keep": "kept", "drop": "left out", "drop_different_token": "kept where the token is the same"}
    text = f"automatic answers: both strings were equal and the site answered 50% ({verb[settings.automatic]})"
    rows.notes.append(Note(text, int(automatic.sum())))
    text = "automatic answers on different tokens that share a string (the generator's probabilities differ)"
    rows.notes.append(Note(text, int(different.sum())))
    if settings.automatic == "drop_different_token":
        rows.keep(~different, "automatic, on different tokens that share a string", "automatic=drop_different_token")
    elif settings.automatic == "drop":
        rows.keep(~automatic, "automatic", "automatic=drop")
        text = "automatic answers are left out: candidates equal to the target are part of the mean, so a gap is biased"
        rows.notes.append(Note(text, None, "warning"))


def equal_strings(parsed: Parsed) -> NDArray[np.bool_]:
    """Whether target and candidate are the same string; false where the question or candidate does not exist."""
    positions = np.minimum(np.searchsorted(parsed.item, parsed.response_item), len(parsed.item) - 1)
    count = parsed.candidate_code.shape[1]
    known = (parsed.item[positions] == parsed.response_item) & (parsed.response_candidate >= 0)
    known &= parsed.response_candidate < count
    shown = parsed.candidate_code[positions, np.where(known, parsed.response_candidate, 0)]
    equal: NDArray[np.bool_] = known & (shown == parsed.target_code[positions])
    return equal
