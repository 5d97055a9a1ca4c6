"""The human answers of the next-token game, as a comparison study."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison import is_word_token, validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.cache import through_cache
from shannon_game.experiments.studies.comparison.lm_game_filters import equal_strings, filtered
from shannon_game.experiments.studies.comparison.lm_game_parse import (
    RESPONSE_FILE,
    Parsed,
    from_cached,
    parse,
    question_file,
    to_cached,
)
from shannon_game.experiments.studies.comparison.lm_game_settings import LmGameSettings
from shannon_game.experiments.studies.files import MissingFilesError
from shannon_game.experiments.studies.lm_game_archive import QUESTION_FOLDER, RESULT_FOLDER, GameFiles
from shannon_game.experiments.studies.parsing import Note, add_notes
from shannon_game.inference.progress import counted

__all__ = ["lm_game"]

_MODEL_NAMES = {
    "gelu_two_layers": "14M",
    "gelu_twelve_layers": "gpt2-small",
    "gelu_twenty_four_layers": "gpt2-medium",
}


@loader(LmGameSettings)
def lm_game(settings: LmGameSettings) -> xr.Dataset:
    """Load the next-token game as a comparison study.

    Items are the questions asked (``item_set`` names their set) and the reference questions, whose mean -ln g(y) is the
    generator's loss. ``report`` is the probability given to the target; ``row_id`` (response) is the row's own number
    in the response file. Answers pass these steps, each counted in the notes: questions of the sets;
    ``exclude_participants``; ``participants``; ``repeats``; ``items``; ``automatic``. With ``answers=False`` only the
    questions are read, and the study has no responses: the layout as ``+exp=build_study`` writes it.

    Parameters
    ----------
    settings : LmGameSettings, optional
        Or its fields by name.

    Returns
    -------
    xarray.Dataset
        Passes :func:`shannon_game.estimators.comparison.study.validate_comparison_study`; probabilities in (0, 1),
        log-probabilities in nats. ``attrs["data_sha256"]`` identifies the contents of the files read, whatever the
        layout.

    Raises
    ------
    InputError
        For missing, malformed or unverifiable files, a failed download, and a filter that leaves nothing; names the
        file, the field and the value.

    Examples
    --------
    >>> from shannon_game import lm_game, perplexity
    >>> study = lm_game(root="FOLDER", participants="complete")  # doctest: +SKIP
    >>> perplexity(study, players="human").table["perplexity"]  # doctest: +SKIP
    """
    parsed, cache_notes = _parsed(settings)
    study, model_notes = _items(parsed, settings)
    if settings.answers:
        rows = filtered(parsed, settings, study)
        taken, notes = rows.at, rows.notes
    else:
        taken, notes = np.arange(0), [Note("answers were not read (answers=false)")]
    study = study.assign(
        participant=("response", parsed.participants[parsed.participant_code[taken]]),
        response_item=("response", parsed.response_item[taken]),
        response_candidate=("response", parsed.response_candidate[taken]),
        report=("response", parsed.guess[taken] / 100.0, {"long_name": "probability given to the target"}),
        automatic=("response", equal_strings(parsed)[taken]),
        row_id=("response", parsed.row_id[taken]),
    )
    add_notes(study, (*parsed.notes, *cache_notes, *model_notes, *notes, _used(study)))
    return validate_comparison_study(study)


def _used(study: xr.Dataset) -> Note:
    people = len(set(study["participant"].values.tolist()))
    items = len(np.unique(study["response_item"].values))
    return Note(
        f"answers used, by {counted(people, 'participant')} on {counted(items, 'question')}", study.sizes["response"]
    )


def _parsed(settings: LmGameSettings) -> tuple[Parsed, list[Note]]:
    names = [*map(question_file, settings.questions), *([RESPONSE_FILE] if settings.answers else [])]
    folders = (QUESTION_FOLDER, RESULT_FOLDER) if settings.answers else (QUESTION_FOLDER,)
    game = GameFiles.open(settings, folders, names)
    try:
        # the cache holds no empty arrays, and without answers there are some
        if not (settings.cache and settings.answers):
            return parse(game, settings.questions, answers=settings.answers), []
        # one cache file per place and range of questions, replaced when its key no longer fits: it cannot pile up
        place = _sha256(str(Path(game.files.label).resolve()), *names)[:16]
        manifest_key = _sha256(*(f"{name} {digest}" for name, digest in game.manifest.items()))
        key = _sha256(str(game.verify), manifest_key, *game.files.stamps(names))
        cached, notes = through_cache(
            settings.cache_folder / f"lm_game-{place}.nc", key, lambda: to_cached(parse(game, settings.questions))
        )
    except MissingFilesError as error:
        raise InputError(
            f"{error}; study.sets and study.reference say which questions are read, study.leave_out_questions which "
            f"are not, and the public archive {settings.address} has them all"
        ) from None
    return from_cached(cached), notes


def _sha256(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _items(parsed: Parsed, settings: LmGameSettings) -> tuple[xr.Dataset, list[Note]]:
    models, notes = _models(parsed)
    target = parsed.vocabulary[parsed.target_code]
    item_set = np.full(len(parsed.item), "", dtype=object)
    for name, questions in settings.questions_by_set.items():
        item_set[np.isin(parsed.item, questions)] = name
    selected = np.ones(len(parsed.item), dtype=bool)
    if settings.items == "word_tokens":
        selected = np.fromiter(map(is_word_token, target), dtype=bool, count=len(target))
    nats = {"units": "nats"}
    study = xr.Dataset(
        {
            "context": ("item", parsed.context),
            "target_token": ("item", target),
            "candidate_token": (("item", "candidate"), parsed.vocabulary[parsed.candidate_code]),
            "target_logprob": (("model", "item"), parsed.target_logprob, nats),
            "candidate_logprob": (("model", "item", "candidate"), parsed.candidate_logprob, nats),
            "item_set": ("item", item_set),
            "selected": ("item", selected),
            "in_reference": ("item", np.isin(parsed.item, settings.reference_questions)),
        },
        coords={"item": parsed.item, "model": models},
        attrs={
            "name": "lm_game",
            "generator": models[parsed.generator_index],
            "data_sha256": parsed.data_sha256,
        },
    )
    return study, notes


def _models(parsed: Parsed) -> tuple[list[str], list[Note]]:
    stripped = [name.strip("/") for name in parsed.generator_names]
    unknown = [name for name in stripped if name not in _MODEL_NAMES]
    notes = []
    if unknown:
        text = f"models that this loader does not know and calls by the names in the files: {', '.join(unknown)}"
        notes.append(Note(text, len(unknown), "warning"))
    return [_MODEL_NAMES.get(name, name) for name in stripped], notes
