"""The human answers of the next-token game, as a comparison study."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.comparison import is_word_token, validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.comparison.lm_game_filters import filtered
from shannon_game.experiments.studies.comparison.lm_game_parse import RESPONSE_FILE, parse, question_file
from shannon_game.experiments.studies.comparison.lm_game_settings import LmGameSettings
from shannon_game.experiments.studies.files import MissingFilesError
from shannon_game.experiments.studies.lm_game_archive import QUESTION_FOLDER, RESULT_FOLDER, GameFiles
from shannon_game.experiments.studies.parsing import Note, add_notes
from shannon_game.experiments.studies.study_file import through_cache
from shannon_game.inference.progress import counted


@loader(LmGameSettings)
def lm_game(settings: LmGameSettings) -> xr.Dataset:
    """Load the next-token game as a comparison study.

    Items are the questions asked (``item_set`` names their set) and the reference questions, whose mean -ln g(y) is the
    generator's loss. ``report`` is the probability given to the target; ``row_id`` (response) is the row's own number
    in the response file. Answers pass these steps, each counted in the notes: questions of the sets;
    ``exclude_participants``; ``participants``; ``repeats``; ``items``; ``automatic``. With ``answers=False`` only the
    questions are read, and the study has no responses: the layout as ``+exp=build_study`` writes it.

    Probabilities are in (0, 1), log-probabilities in nats.

    Examples
    --------
    >>> from shannon_game import lm_game, perplexity
    >>> study = lm_game(root="FOLDER", participants="complete")  # doctest: +SKIP
    >>> perplexity(study, players="human").table["perplexity"]  # doctest: +SKIP
    """
    parsed, notes = _parsed(settings)
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
        rows, notes = kept.rows, notes + kept.notes
    else:
        notes.append(Note("answers were not read (answers=false)"))
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


def _parsed(settings: LmGameSettings) -> tuple[xr.Dataset, list[Note]]:
    names = [*map(question_file, settings.questions), *([RESPONSE_FILE] if settings.answers else [])]
    folders = (QUESTION_FOLDER, RESULT_FOLDER) if settings.answers else (QUESTION_FOLDER,)
    game = GameFiles.open(settings, folders, names)
    try:
        # the cache holds no empty arrays, and without answers there are some
        if not (settings.cache and settings.answers):
            return parse(game, settings.questions, answers=settings.answers), []

        def make() -> xr.Dataset:
            return parse(game, settings.questions)

        return through_cache("lm_game", settings.cache_folder, game.files, names, make, game.verify, game.manifest)
    except MissingFilesError as error:
        raise InputError(
            f"{error}; study.sets and study.reference say which questions are read, study.leave_out_questions which "
            f"are not, and the public archive {settings.address} has them all"
        ) from None


def _rows(parsed: xr.Dataset) -> pd.DataFrame:
    """Answers, and which are automatic: target and candidate are one string."""
    names = ("row_id", "participant", "guess", "question", "sample_index")
    rows = pd.DataFrame({name: parsed[name].to_numpy() for name in names})
    item, question, shown = parsed["item"].to_numpy(), rows["question"].to_numpy(), rows["sample_index"].to_numpy()
    position = np.minimum(np.searchsorted(item, question), len(item) - 1)
    known = (item[position] == question) & (shown >= 0) & (shown < parsed.sizes["candidate"])
    same = parsed["same"].to_numpy()[position, np.where(known, shown, 0)]
    return rows.assign(automatic=known & same)
