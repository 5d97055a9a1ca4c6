"""The human answers of the next-token game, as a comparison study; and which of them count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.comparison.study import same_token
from shannon_game.estimators.documents.tokens import is_word_token
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.comparison.lm_game_parse import RESPONSE_FILE, parse, question_file
from shannon_game.experiments.studies.comparison.lm_game_settings import LmGameSettings
from shannon_game.experiments.studies.files import MissingFilesError
from shannon_game.experiments.studies.lm_game_archive import QUESTION_FOLDER, RESULT_FOLDER, GameFiles, Kept
from shannon_game.experiments.studies.parsing import Note, add_notes, some_of
from shannon_game.inference.progress import counted


@loader(LmGameSettings)
def lm_game(settings: LmGameSettings) -> xr.Dataset:
    """Load the next-token game as a comparison study.

    Items are the questions asked (``item_set`` names their set) and the reference questions, whose mean -ln g(y) is the
    generator's loss. ``report`` is the probability given to the target; ``row_id`` (response) is the row's own number
    in the response file. Answers pass these steps, each counted in the notes: questions of the sets;
    ``exclude_participants``; ``participants``; ``repeats``; ``items``; ``automatic``. With ``answers=False`` only the
    questions are read, and the study has no responses: the layout as ``build_study`` writes it.

    Probabilities are in (0, 1), log-probabilities in nats.
    """
    parsed = _parsed(settings)
    study = parsed.drop_dims("row").drop_vars("same").assign_coords(model=parsed["model"].to_numpy().tolist())
    item, target = study["item"].to_numpy(), study["target_token"].to_numpy()
    item_set = np.full(len(item), "", dtype=object)
    for name, questions in settings.questions_by_set.items():
        item_set[np.isin(item, questions)] = name
    all_items = settings.items == "all"
    study = study.assign(
        item_set=("item", item_set),
        selected=("item", np.array([all_items or is_word_token(token) for token in target.tolist()])),
        in_reference=("item", np.isin(item, settings.reference_questions)),
    )
    rows = _rows(parsed)
    if settings.answers:
        kept = filtered(rows, settings, study)
        rows, notes = kept.rows, kept.notes
    else:
        notes = [Note(f"answers were not read ({Set('study.answers', False)})")]
    study = study.assign(
        participant=("response", rows["participant"].to_numpy(dtype=object)),
        response_item=("response", rows["question"].to_numpy()),
        response_candidate=("response", rows["sample_index"].to_numpy()),
        report=("response", rows["guess"].to_numpy() / 100.0, {"long_name": "probability given to the target"}),
        automatic=("response", rows["automatic"].to_numpy()),
        row_id=("response", rows["row_id"].to_numpy()),
    )
    people, items = study["participant"].to_numpy().tolist(), np.unique(study["response_item"].to_numpy())
    used = f"answers used, by {counted(len(set(people)), 'participant')} on {counted(len(items), 'question')}"
    add_notes(study, [*notes, Note(used, len(people))])
    return validate_comparison_study(study)


def _parsed(settings: LmGameSettings) -> xr.Dataset:
    names = [*map(question_file, settings.questions), *([RESPONSE_FILE] if settings.answers else [])]
    folders = (QUESTION_FOLDER, RESULT_FOLDER) if settings.answers else (QUESTION_FOLDER,)
    game = GameFiles.open(settings, folders, names)
    try:
        return parse(game, settings.questions, answers=settings.answers)
    except MissingFilesError as error:
        raise InputError(
            f"{error}; {Set('study.sets')} and {Set('study.reference')} say which questions are read, "
            f"{Set('study.leave_out_questions')} which are not, and the public archive {settings.address} has them all"
        ) from None


def _rows(parsed: xr.Dataset) -> pd.DataFrame:
    names = ("row_id", "participant", "guess", "question", "sample_index")
    rows = pd.DataFrame({name: parsed[name].to_numpy() for name in names})
    item, question, shown = parsed["item"].to_numpy(), rows["question"].to_numpy(), rows["sample_index"].to_numpy()
    position = np.minimum(np.searchsorted(item, question), len(item) - 1)
    known = (item[position] == question) & (shown >= 0) & (shown < parsed.sizes["candidate"])
    same = parsed["same"].to_numpy()[position, np.where(known, shown, 0)]
    return rows.assign(automatic=known & same)


_BOXES_PERCENT = (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99)
_COMPARISON = ["participant", "question", "sample_index"]


def filtered(rows: pd.DataFrame, settings: LmGameSettings, study: xr.Dataset) -> Kept:
    """Answers that count, and what the filters noted."""
    kept = Kept(rows, "answers", "study lm_game")
    asked = study["item"].to_numpy()[study["item_set"].to_numpy() != ""]
    others = np.setdiff1d(rows["question"], asked)
    what = f"on questions of no set ({some_of([str(item) for item in others])})"
    kept.keep(rows["question"].isin(asked), what, "sets")
    kept.exclude(settings.exclude_participants, rows["participant"].tolist())
    _check_values(kept, candidates=study.sizes["candidate"])
    _keep_participants(kept, settings)
    _keep_repeats(kept, settings)
    selected = study["item"].to_numpy()[study["selected"].to_numpy()]
    kept.keep(kept.rows["question"].isin(selected), "on targets that are no word token", "items")
    _keep_automatic(kept, settings, study)
    return kept


def _check_values(kept: Kept, *, candidates: int) -> None:
    guess, shown = kept.rows["guess"], kept.rows["sample_index"]
    right = "should be a percentage strictly between 0 and 100: a certain report means an infinite likelihood ratio"
    _refuse(kept.rows, (guess <= 0) | (guess >= 100), "guess", right)
    right = f"the game offers {', '.join(map(str, _BOXES_PERCENT))} percent"
    _refuse(kept.rows, ~guess.isin(_BOXES_PERCENT), "guess", right)
    _refuse(kept.rows, (shown < 0) | (shown >= candidates), "sample_index", f"should be 0 to {candidates - 1}")


def _refuse(rows: pd.DataFrame, bad: pd.Series[bool], column: str, right: str) -> None:
    if bad.any():
        row = rows[bad].iloc[0]
        raise InputError(
            f"is {row[column]} in the row with row_id {row['row_id']} (participant {row['participant']}, "
            f"question {row['question']}; {int(bad.sum())} such); {right}",
            source=RESPONSE_FILE,
            field=column,
        )


def _keep_participants(kept: Kept, settings: LmGameSettings) -> None:
    people, counts = kept.rows["participant"], []
    kept.notes.append(Note("participants who answered questions of the sets", people.nunique()))
    passes, whole = set[str](), set[str]()
    completed = pd.Series(False, kept.rows.index)
    for name, questions in settings.questions_by_set.items():
        inside = kept.rows["question"].isin(questions)
        answers = kept.rows[inside].groupby("participant")["question"]
        asked = answers.nunique()
        given = asked if settings.participants == "complete" else answers.size()
        through = given.index if settings.participants == "all" else given.index[given == len(questions)]
        counts.append(f"{name}: {len(through)}")
        passes |= set(through)
        whole |= set(asked.index[asked == len(questions)])
        completed |= inside & people.isin(through)
    if settings.participants == "paper":
        if whole - passes:
            # the paper counts rows, not questions
            text = (
                "participants who answered every question of a set but gave more rows than it has questions, which "
                "participants=paper leaves out and participants=complete keeps"
            )
            kept.notes.append(Note(text, len(whole - passes)))
        # as in the paper's code: whoever passes in one set keeps the answers given in the others too
        what = "by participants whose number of answers in a set is in no set the number of its questions"
        kept.keep(people.isin(passes), what, "participants=paper")
    elif settings.participants == "complete":
        kept.keep(completed, "in a set of which the participant left out a question", "participants=complete")
    text = f"participants kept (participants={settings.participants}; {', '.join(counts)})"
    kept.notes.append(Note(text, len(passes)))


def _keep_repeats(kept: Kept, settings: LmGameSettings) -> None:
    repeated = len(kept.rows[kept.rows.duplicated(_COMPARISON, keep=False)].drop_duplicates(_COMPARISON))
    how: str = settings.repeats
    if how == "auto":
        # one answer a question is the point of "complete", and the first was given before the truth was shown
        how = "first" if settings.participants == "complete" else "keep"
    kept.keep_repeats(
        _COMPARISON,
        how,
        said="participant {participant} answered question {question} with candidate {sample_index}",
        kept=f"answers that repeat one of {repeated} pairs of a participant and a comparison answered before, kept",
        left_out="further answers of a participant to the same comparison",
    )


def _keep_automatic(kept: Kept, settings: LmGameSettings, study: xr.Dataset) -> None:
    automatic = kept.rows["automatic"].to_numpy()
    positions = np.searchsorted(study["item"].to_numpy(), kept.rows["question"])
    same = same_token(study)[positions, kept.rows["sample_index"].to_numpy()]
    different = automatic & ~same
    odd = automatic & (kept.rows["guess"].to_numpy() != 50)
    if odd.any():
        text = "answers on two equal strings are not the 50% that the site gives there"
        kept.notes.append(Note(text, int(odd.sum()), "warning"))
    verb = {"keep": "kept", "drop": "left out", "drop_different_token": "kept where the token is the same"}
    text = f"automatic answers: both strings were equal and the site answered 50% ({verb[settings.automatic]})"
    kept.notes.append(Note(text, int(automatic.sum())))
    text = "automatic answers on different tokens that share a string (the generator's probabilities differ)"
    kept.notes.append(Note(text, int(different.sum())))
    if settings.automatic == "drop_different_token":
        kept.keep(~different, "automatic, on different tokens that share a string", "automatic=drop_different_token")
    elif settings.automatic == "drop":
        kept.keep(~automatic, "automatic", "automatic=drop")
        text = "automatic answers are left out: a gap counts candidates equal to the target by their share of the draws"
        kept.notes.append(Note(text))
