"""The human answers of the next-token game, as a comparison study."""

from __future__ import annotations

import hashlib
import json

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

    Probabilities are in (0, 1), log-probabilities in nats.

    Examples
    --------
    >>> from shannon_game import lm_game, perplexity
    >>> study = lm_game(root="FOLDER", participants="complete")  # doctest: +SKIP
    >>> perplexity(study, players="human").table["perplexity"]  # doctest: +SKIP
    """
    parsed, notes = _parsed(settings)
    study, rows = _items(parsed, settings), _rows(parsed)
    notes += _unknown_models(parsed)
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
    add_notes(study, (*notes, _used(study)))
    return validate_comparison_study(study)


def _used(study: xr.Dataset) -> Note:
    people = len(set(study["participant"].to_numpy().tolist()))
    items = len(np.unique(study["response_item"].to_numpy()))
    return Note(
        f"answers used, by {counted(people, 'participant')} on {counted(items, 'question')}", study.sizes["response"]
    )


def _parsed(settings: LmGameSettings) -> tuple[xr.Dataset, list[Note]]:
    names = [*map(question_file, settings.questions), *([RESPONSE_FILE] if settings.answers else [])]
    folders = (QUESTION_FOLDER, RESULT_FOLDER) if settings.answers else (QUESTION_FOLDER,)
    game = GameFiles.open(settings, folders, names)
    try:
        # the cache holds no empty arrays, and without answers there are some
        if not (settings.cache and settings.answers):
            return parse(game, settings.questions, answers=settings.answers), []
        # one cache file per place and range of questions, replaced when its key no longer fits: it cannot pile up
        place = _sha256(str(game.files.root.resolve()), *names)[:16]
        manifest_key = _sha256(*(f"{name} {digest}" for name, digest in game.manifest.items()))
        key = _sha256(str(game.verify), manifest_key, *game.files.stamps(names))
        path = settings.cache_folder / f"lm_game-{place}.nc"
        return through_cache(path, key, lambda: parse(game, settings.questions))
    except MissingFilesError as error:
        raise InputError(
            f"{error}; study.sets and study.reference say which questions are read, study.leave_out_questions which "
            f"are not, and the public archive {settings.address} has them all"
        ) from None


def _sha256(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _rows(parsed: xr.Dataset) -> pd.DataFrame:
    """Answers, and which are automatic: target and candidate are one string."""
    names = ("row_id", "participant", "guess", "question", "sample_index")
    rows = pd.DataFrame({name: parsed[name].to_numpy() for name in names})
    item, question, shown = parsed["item"].to_numpy(), rows["question"].to_numpy(), rows["sample_index"].to_numpy()
    position = np.minimum(np.searchsorted(item, question), len(item) - 1)
    known = (item[position] == question) & (shown >= 0) & (shown < parsed.sizes["candidate"])
    code = parsed["candidate_code"].to_numpy()[position, np.where(known, shown, 0)]
    return rows.assign(automatic=known & (code == parsed["target_code"].to_numpy()[position]))


def _items(parsed: xr.Dataset, settings: LmGameSettings) -> xr.Dataset:
    models = _models(parsed)
    vocabulary, item = parsed["vocabulary"].to_numpy(), parsed["item"].to_numpy()
    target = vocabulary[parsed["target_code"].to_numpy()]
    item_set = np.full(len(item), "", dtype=object)
    for name, questions in settings.questions_by_set.items():
        item_set[np.isin(item, questions)] = name
    selected = np.ones(len(item), dtype=bool)
    if settings.items == "word_tokens":
        selected = np.fromiter(map(is_word_token, target), dtype=bool, count=len(target))
    nats = {"units": "nats"}
    return xr.Dataset(
        {
            "context": ("item", parsed["context"].to_numpy()),
            "target_token": ("item", target),
            "candidate_token": (("item", "candidate"), vocabulary[parsed["candidate_code"].to_numpy()]),
            **{
                name: (parsed[name].dims, parsed[name].to_numpy(), nats)
                for name in ("target_logprob", "candidate_logprob")
            },
            "item_set": ("item", item_set),
            "selected": ("item", selected),
            "in_reference": ("item", np.isin(item, settings.reference_questions)),
        },
        coords={"item": item, "model": models},
        attrs={
            "name": "lm_game",
            "generator": models[int(parsed.attrs["generator_index"])],
            "data_sha256": parsed.attrs["files_sha256"],
            "notes": parsed.attrs["notes"],
        },
    )


def _models(parsed: xr.Dataset) -> list[str]:
    stripped = [name.strip("/") for name in json.loads(parsed.attrs["generator_names"])]
    return [_MODEL_NAMES.get(name, name) for name in stripped]


def _unknown_models(parsed: xr.Dataset) -> list[Note]:
    unknown = [name for name in _models(parsed) if name not in _MODEL_NAMES.values()]
    text = f"models that this loader does not know and calls by the names in the files: {', '.join(unknown)}"
    return [Note(text, len(unknown), "warning")] if unknown else []
