"""The human answers of the next-token game, as a comparison study.

Data of "Language Models Are Better Than Humans at Next-token Prediction" (Shlegeris, Roger, Chan,
McLean), published without a licence: they are read from the user's folder, or downloaded for the
user into a cache and verified, and are no part of this project. The settings and their defaults
are in ``conf/study/lm_game.yaml``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from estimators.code_identity import code_hash
from estimators.comparison import is_word_token, same_token, validate_comparison_study
from estimators.errors import InputError
from estimators.notes import add_note
from experiments.studies.cache import DamagedCacheError, read_cache, write_cache
from experiments.studies.comparison.lm_game_parse import (
    QUESTION_FOLDER,
    RESPONSE_FILE,
    Note,
    Parsed,
    from_cached,
    parse,
    question_file,
    to_cached,
)
from experiments.studies.files import (
    ArchiveFiles,
    Files,
    MissingFilesError,
    check_hash,
    fetch_archive,
    open_files,
    read_manifest,
    write_manifest,
)
from experiments.studies.loader_settings import cache_folder, check_switches, loader_settings, optional_path, public_url

__all__ = ["DEFAULTS", "MANIFEST", "load", "make_manifest"]

MANIFEST = Path(__file__).with_name("lm_game_manifest.csv")
"""SHA-256 of the published files, see :func:`make_manifest`."""

DEFAULTS: Mapping[str, Any] = {
    "name": "lm_game",
    "root": None,
    "participants": "paper",
    "exclude_participants": (),
    "repeats": "auto",
    "items": "all",
    "automatic": "keep",
    "off_grid": "error",
    "answers": True,
    "sets": {"set 1": (10000, 10039), "set 2": (20010, 20089)},
    "reference": (10000, 10999),
    "cache": True,
    "cache_dir": None,
    "commit": "ac1482b79ed7912a3f6c0fb11e29c6677ce0ad9c",
    "url": "https://github.com/FabienRoger/lm-game-analysis/archive/{commit}.zip",
    "manifest": None,
}
"""Every setting with the value it has when it is not given."""

_SOURCE = "study=lm_game"
_CHOICES = {
    "participants": ("paper", "complete", "all"),
    "repeats": ("auto", "keep", "first", "last", "error"),
    "items": ("all", "word_tokens"),
    "automatic": ("keep", "drop_different_token", "drop"),
    "off_grid": ("error", "keep"),
}
_MODEL_NAMES = {
    "gelu_two_layers": "14M",
    "gelu_twelve_layers": "gpt2-small",
    "gelu_twenty_four_layers": "gpt2-medium",
}
_BOXES_PERCENT = (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99)
_LISTED = 5


@dataclass(frozen=True)
class _Options:
    root: Path | None
    participants: str
    exclude_participants: tuple[str, ...]
    repeats: str
    items: str
    automatic: str
    off_grid: str
    answers: bool
    sets: Mapping[str, range]
    reference: range
    cache: bool
    cache_dir: Path
    commit: str
    url: str
    manifest: Path

    @property
    def questions(self) -> list[int]:
        return sorted({item for span in (*self.sets.values(), self.reference) for item in span})


@dataclass
class _Rows:
    """Answers that the filters have left, as positions in the response file, and what the filters noted."""

    kept: NDArray[np.intp]
    notes: list[Note] = field(default_factory=list)

    def keep(self, mask: NDArray[np.bool_], what: str, setting: str) -> None:
        """Keep the answers where `mask` holds and note how many went."""
        dropped = int((~mask).sum())
        if mask.size and not mask.any():
            raise InputError(
                f"leaves no answer: all {mask.size} that were left are {what}", source=_SOURCE, field=setting
            )
        self.kept = self.kept[mask]
        if dropped:
            self.notes.append(Note(f"answers left out ({setting}): {what}", dropped))


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load the next-token game as a comparison study.

    Items are the questions asked (``item_set`` names their set) and the reference questions, whose
    mean -ln g(y) is the generator's loss. ``report`` is the probability given to the target;
    ``row_id`` (response) is the row's own number in the response file. Answers pass these steps,
    each counted in the notes: questions of the sets; ``exclude_participants``; ``participants``;
    ``repeats``; ``items``; ``automatic``. With ``answers=false`` only the questions are read, and the
    study has no responses: the layout as ``+exp=build_study`` writes it.

    Parameters
    ----------
    config : mapping
        Settings, see ``conf/study/lm_game.yaml``; one that is absent has its default (:data:`DEFAULTS`).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.comparison.study.validate_comparison_study`; probabilities in (0, 1),
        log-probabilities in nats. ``attrs["data_sha256"]`` identifies the contents of the files
        read, whatever the layout.

    Raises
    ------
    InputError
        For an unknown setting or value, missing, malformed or unverifiable files, a failed
        download, and a filter that leaves nothing; names the file, the field and the value.
    """
    options = _options(config)
    parsed, cache_notes = _parsed(options)
    study, model_notes = _items(parsed, options)
    no_answers = _Rows(np.arange(0), [Note("answers were not read (answers=false)")])
    rows = _filtered(parsed, options, study) if options.answers else no_answers
    taken = rows.kept
    report = parsed.guess[taken] / 100.0
    study = study.assign(
        participant=("response", parsed.participants[parsed.participant_code[taken]]),
        response_item=("response", parsed.response_item[taken]),
        response_candidate=("response", parsed.response_candidate[taken]),
        report=("response", report, {"long_name": "probability given to the target"}),
        automatic=("response", _equal_strings(parsed)[taken]),
        row_id=("response", parsed.row_id[taken]),
    )
    for note in (*parsed.notes, *cache_notes, *model_notes, *rows.notes, *_kept_notes(study)):
        add_note(study, note.text, count=note.count, level=note.level)
    return validate_comparison_study(study)


def make_manifest(root: Path, path: Path = MANIFEST) -> None:
    """Write the manifest of hashes from a folder with the published files.

    It lists the questions, the documents, the two response files and the stored accuracies. Run
    ``python -c "from pathlib import Path; from experiments.studies.comparison.lm_game import make_manifest;
    make_manifest(Path('FOLDER'))"`` after a change of the pinned commit.

    Parameters
    ----------
    root : Path
        Folder with ``multi_comparisons/``, ``docs/`` and ``results_raw/``.
    path : Path, optional
        The CSV file to write.
    """
    names = [
        file.relative_to(root).as_posix()
        for pattern in (
            f"{QUESTION_FOLDER}/doc*.json",
            "docs/doc*.json",
            "results_raw/res_*_anonym.json",
            "results_raw/model_perfs*.json",
        )
        for file in root.glob(pattern)
    ]
    write_manifest(root, names, path)


# ------------------------------------------------------------------------------------------- settings


def _options(config: Mapping[str, Any]) -> _Options:
    given = loader_settings(config, DEFAULTS, source=_SOURCE, choices=_CHOICES, own_name=True)
    check_switches(given, ("cache", "answers"), source=_SOURCE)
    url = public_url(given, source=_SOURCE)
    excluded = given["exclude_participants"]
    if not _is_list(excluded):
        raise InputError(f"is {excluded!r}, should be a list of names", source=_SOURCE, field="exclude_participants")
    return _Options(
        root=optional_path(given, "root", source=_SOURCE),
        participants=given["participants"],
        exclude_participants=tuple(str(name) for name in excluded),
        repeats=given["repeats"],
        items=given["items"],
        automatic=given["automatic"],
        off_grid=given["off_grid"],
        answers=given["answers"],
        sets=_sets(given["sets"]),
        reference=_span(given["reference"], "reference"),
        cache=given["cache"],
        cache_dir=cache_folder(given, source=_SOURCE),
        commit=given["commit"],
        url=url,
        manifest=optional_path(given, "manifest", source=_SOURCE) or MANIFEST,
    )


def _sets(value: Any) -> dict[str, range]:
    if not isinstance(value, Mapping) or not value:
        raise InputError(f"is {value!r}, should map names to [first, last]", source=_SOURCE, field="sets")
    sets = {str(name): _span(span, f"sets.{name}") for name, span in value.items()}
    if "" in sets:
        raise InputError("has an empty name", source=_SOURCE, field="sets")
    seen: dict[int, str] = {}
    for name, span in sets.items():
        for item in span:
            if seen.setdefault(item, name) != name:
                raise InputError(
                    f"question {item} is in both {seen[item]!r} and {name!r}; a question has one set",
                    source=_SOURCE,
                    field="sets",
                )
    return sets


def _span(value: Any, setting: str) -> range:
    if not _is_list(value) or len(value) != 2 or any(type(bound) is not int for bound in value):
        raise InputError(f"is {value!r}, should be [first, last]", source=_SOURCE, field=setting)
    first, last = value
    if not 0 <= first <= last:
        raise InputError(f"is [{first}, {last}], should have 0 <= first <= last", source=_SOURCE, field=setting)
    return range(first, last + 1)


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


# ---------------------------------------------------------------------------------- files and the cache


def _parsed(options: _Options) -> tuple[Parsed, list[Note]]:
    items = options.questions
    names = [*map(question_file, items), *([RESPONSE_FILE] if options.answers else [])]
    manifest = read_manifest(options.manifest)
    verify = options.root is None
    if options.root is None:
        files: Files = _fetched(options, names, manifest)
    else:
        folders = (QUESTION_FOLDER, RESPONSE_FILE.split("/")[0]) if options.answers else (QUESTION_FOLDER,)
        files = open_files(options.root, folders)
    try:
        # the cache holds no empty arrays, and without answers there are some
        if not (options.cache and options.answers):
            return parse(files, items, manifest=manifest, verify=verify, answers=options.answers), []
        return _through_cache(options, files, names, manifest, verify=verify)
    except MissingFilesError as error:
        raise InputError(
            f"{error}; study.sets and study.reference say which questions are read, "
            f"and the public archive {options.url} has them all"
        ) from None


def _through_cache(
    options: _Options, files: Files, names: Sequence[str], manifest: Mapping[str, str], *, verify: bool
) -> tuple[Parsed, list[Note]]:
    notes = []
    # one cache file per place and range of questions, replaced when its key no longer fits: it cannot pile up
    place = _sha256(str(Path(files.label).resolve()), *names)[:16]
    path = options.cache_dir / f"lm_game-{place}.nc"
    manifest_key = _sha256(*(f"{name} {digest}" for name, digest in manifest.items()))
    key = _sha256(code_hash("experiments.studies"), str(verify), manifest_key, *files.stamps(names))
    try:
        cached = read_cache(path, key)
        if cached is not None:
            return from_cached(cached), []
    except DamagedCacheError as error:
        notes.append(Note(f"the cache file {path.name} was damaged ({error}) and was made again", 1, "warning"))
    parsed = parse(files, options.questions, manifest=manifest, verify=verify)
    try:
        write_cache(path, key, to_cached(parsed))
    except OSError as error:
        text = f"the cache folder {path.parent} cannot be written to ({error.strerror or error}); nothing was cached"
        notes.append(Note(text, None, "warning"))
    return parsed, notes


def _fetched(options: _Options, names: Sequence[str], manifest: Mapping[str, str]) -> ArchiveFiles:
    def check(archive: ArchiveFiles) -> None:
        for name, content in archive.read(names):
            check_hash(name, hashlib.sha256(content).hexdigest(), manifest, source=archive.where(name))

    unlisted = [name for name in names if name not in manifest]
    if unlisted:
        raise InputError(
            f"lists no hash for {len(unlisted)} of the {len(names)} files needed (the first is {unlisted[0]}), so a "
            "download could not be verified; set study.root=FOLDER, or sets and reference to published questions",
            source=options.manifest.name,
        )
    return fetch_archive(options.url, options.cache_dir / f"lm-game-analysis-{options.commit}.zip", check)


def _sha256(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


# ------------------------------------------------------------------------------------------------ items


def _items(parsed: Parsed, options: _Options) -> tuple[xr.Dataset, list[Note]]:
    models, notes = _models(parsed)
    vocabulary, context = _encodable(parsed.vocabulary), _encodable(parsed.context)
    repaired = int((vocabulary != parsed.vocabulary).sum() + (context != parsed.context).sum())
    if repaired:
        text = "strings with half of a surrogate pair, which no file can hold; shown as U+FFFD"
        notes.append(Note(text, repaired))
    target = vocabulary[parsed.target_code]
    item_set = np.full(len(parsed.item), "", dtype=object)
    for name, span in options.sets.items():
        item_set[np.isin(parsed.item, span)] = name
    selected = np.ones(len(parsed.item), dtype=bool)
    if options.items == "word_tokens":
        selected = np.fromiter(map(is_word_token, target), dtype=bool, count=len(target))
    nats = {"units": "nats"}
    study = xr.Dataset(
        {
            "context": ("item", context),
            "target_token": ("item", target),
            "candidate_token": (("item", "candidate"), vocabulary[parsed.candidate_code]),
            "target_logprob": (("model", "item"), parsed.target_logprob, nats),
            "candidate_logprob": (("model", "item", "candidate"), parsed.candidate_logprob, nats),
            "item_set": ("item", item_set),
            "selected": ("item", selected),
            "in_reference": ("item", np.isin(parsed.item, options.reference)),
        },
        coords={"item": parsed.item, "model": models},
        attrs={
            "name": "lm_game",
            "generator": models[parsed.generator_index],
            "data_sha256": parsed.data_sha256,
        },
    )
    return study, notes


def _encodable(strings: NDArray[np.object_]) -> NDArray[np.object_]:
    """Replace halves of surrogate pairs, which JSON can hold and UTF-8 (hence Arrow strings and netCDF) cannot."""
    whole = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in strings.tolist()]
    return np.array(whole, dtype=object)


def _models(parsed: Parsed) -> tuple[list[str], list[Note]]:
    stripped = [name.strip("/") for name in parsed.generator_names]
    unknown = [name for name in stripped if name not in _MODEL_NAMES]
    notes = []
    if unknown:
        text = f"models that this loader does not know and calls by the names in the files: {', '.join(unknown)}"
        notes.append(Note(text, len(unknown), "warning"))
    return [_MODEL_NAMES.get(name, name) for name in stripped], notes


# ---------------------------------------------------------------------------------------------- answers


def _filtered(parsed: Parsed, options: _Options, study: xr.Dataset) -> _Rows:
    rows = _Rows(np.arange(len(parsed.guess)))
    asked = study["item"].values[study["item_set"].values != ""]
    others = np.setdiff1d(parsed.response_item, asked)
    what = f"on questions of no set ({_some([str(item) for item in others])})"
    rows.keep(np.isin(parsed.response_item, asked), what, "sets")
    _exclude(rows, parsed, options)
    _check_values(rows, parsed, options, candidates=study.sizes["candidate"])
    _keep_participants(rows, parsed, options)
    _keep_repeats(rows, parsed, options)
    selected = study["item"].values[study["selected"].values]
    rows.keep(np.isin(parsed.response_item[rows.kept], selected), "on targets that are no word token", "items")
    _keep_automatic(rows, parsed, options, study)
    return rows


def _exclude(rows: _Rows, parsed: Parsed, options: _Options) -> None:
    for name in options.exclude_participants:
        if name not in parsed.participants:
            raise InputError(
                f"there is no participant {name!r} among the {len(parsed.participants)}; they are called "
                f"{_some(parsed.participants.tolist())}",
                source=_SOURCE,
                field="exclude_participants",
            )
    excluded = np.isin(parsed.participants.astype(str), options.exclude_participants)
    mask = ~excluded[parsed.participant_code[rows.kept]]
    rows.keep(mask, f"by the {len(set(options.exclude_participants))} excluded participants", "exclude_participants")


def _check_values(rows: _Rows, parsed: Parsed, options: _Options, *, candidates: int) -> None:
    guess = parsed.guess[rows.kept]
    bad = ~((guess > 0) & (guess < 100))
    if bad.any():
        raise _row_error(
            parsed,
            rows.kept[bad],
            "guess",
            parsed.guess,
            "should be a percentage strictly between 0 and 100: a certain report means an infinite likelihood ratio",
        )
    bad = ~np.isin(guess, _BOXES_PERCENT)
    if bad.any() and options.off_grid == "error":
        raise _row_error(
            parsed,
            rows.kept[bad],
            "guess",
            parsed.guess,
            f"the game offers {', '.join(map(str, _BOXES_PERCENT))} percent; study.off_grid=keep takes it anyway",
        )
    if bad.any():
        text = f"answers off the game's grid of percentages, kept; the first is {guess[bad][0]:g} percent"
        rows.notes.append(Note(text, int(bad.sum()), "warning"))
    shown = parsed.response_candidate[rows.kept]
    bad = (shown < 0) | (shown >= candidates)
    if bad.any():
        raise _row_error(
            parsed, rows.kept[bad], "sample_index", parsed.response_candidate, f"should be 0 to {candidates - 1}"
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


def _keep_participants(rows: _Rows, parsed: Parsed, options: _Options) -> None:
    people = parsed.participant_code[rows.kept]
    items = parsed.response_item[rows.kept]
    counts = []
    passes = np.zeros(len(parsed.participants), dtype=bool)
    completed = np.zeros(len(rows.kept), dtype=bool)
    for name, span in options.sets.items():
        inside = np.isin(items, span)
        if options.participants == "complete":
            pairs = np.unique(np.stack([people[inside], items[inside]]), axis=1)
            answers = np.bincount(pairs[0], minlength=len(passes))
        else:
            answers = np.bincount(people[inside], minlength=len(passes))
        through = answers > 0 if options.participants == "all" else answers == len(span)
        counts.append(f"{name}: {int(through.sum())}")
        passes |= through
        completed |= inside & through[people]
    if options.participants == "paper":
        # as in the paper's code: whoever passes in one set keeps the answers given in the others too
        what = "by participants whose number of answers in a set is in no set the number of its questions"
        _note_repeaters(rows, parsed, options, passes)
        rows.keep(passes[people], what, "participants=paper")
    elif options.participants == "complete":
        rows.keep(completed, "in a set of which the participant left out a question", "participants=complete")
    rows.notes.append(
        Note(f"participants kept (participants={options.participants}; {', '.join(counts)})", int(passes.sum()))
    )


def _note_repeaters(rows: _Rows, parsed: Parsed, options: _Options, passes: NDArray[np.bool_]) -> None:
    """Note who answered a whole set and is left out all the same, because the paper counts rows, not questions."""
    people = parsed.participant_code[rows.kept]
    items = parsed.response_item[rows.kept]
    answered_all = np.zeros(len(passes), dtype=bool)
    for span in options.sets.values():
        inside = np.isin(items, span)
        pairs = np.unique(np.stack([people[inside], items[inside]]), axis=1)
        answered_all |= np.bincount(pairs[0], minlength=len(passes)) == len(span)
    lost = int((answered_all & ~passes).sum())
    if lost:
        text = (
            "participants who answered every question of a set but gave more rows than it has questions, which "
            "participants=paper leaves out and participants=complete keeps"
        )
        rows.notes.append(Note(text, lost))


def _keep_repeats(rows: _Rows, parsed: Parsed, options: _Options) -> None:
    keys = np.stack([column[rows.kept] for column in _key_columns(parsed)], axis=1)
    first = _first_of_key(keys)
    again = ~first
    if not again.any():
        return
    how = options.repeats
    if how == "auto":
        # one answer a question is the point of "complete", and the first was given before the truth was shown
        how = "first" if options.participants == "complete" else "keep"
    if how == "error":
        row = int(rows.kept[again][0])
        raise InputError(
            f"participant {_participant(parsed, row)} answered question {parsed.response_item[row]} with candidate "
            f"{parsed.response_candidate[row]} more than once ({int(again.sum())} such answers, this one has row_id "
            f"{parsed.row_id[row]}); study.repeats=first, last or keep says what to do",
            source=RESPONSE_FILE,
            field="row_id",
        )
    if how == "keep":
        repeated = len(np.unique(keys[again], axis=0))
        text = f"answers that repeat one of {repeated} pairs of a participant and a comparison answered before, kept"
        rows.notes.append(Note(text, int(again.sum())))
        return
    mask = first if how == "first" else _first_of_key(keys[::-1])[::-1]
    rows.keep(mask, f"further answers of a participant to the same comparison; the {how} one counts", f"repeats={how}")


def _key_columns(parsed: Parsed) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    return parsed.participant_code, parsed.response_item, parsed.response_candidate


def _first_of_key(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, axis=0, return_index=True)[1]] = True
    return first


def _keep_automatic(rows: _Rows, parsed: Parsed, options: _Options, study: xr.Dataset) -> None:
    automatic = _equal_strings(parsed)[rows.kept]
    positions = np.searchsorted(parsed.item, parsed.response_item[rows.kept])
    same = same_token(study)[positions, parsed.response_candidate[rows.kept]]
    different = automatic & ~same
    odd = automatic & (parsed.guess[rows.kept] != 50)
    if odd.any():
        text = "answers on two equal strings are not the 50% that the site gives there"
        rows.notes.append(Note(text, int(odd.sum()), "warning"))
    verb = {"keep": "kept", "drop": "left out", "drop_different_token": "kept where the token is the same"}
    text = f"automatic answers: both strings were equal and the site answered 50% ({verb[options.automatic]})"
    rows.notes.append(Note(text, int(automatic.sum())))
    text = "automatic answers on different tokens that share a string (the generator's probabilities differ)"
    rows.notes.append(Note(text, int(different.sum())))
    if options.automatic == "drop_different_token":
        rows.keep(~different, "automatic, on different tokens that share a string", "automatic=drop_different_token")
    elif options.automatic == "drop":
        rows.keep(~automatic, "automatic", "automatic=drop")
        text = "automatic answers are left out: candidates equal to the target are part of the mean, so a gap is biased"
        rows.notes.append(Note(text, None, "warning"))


def _equal_strings(parsed: Parsed) -> NDArray[np.bool_]:
    """Whether target and candidate are the same string; false where the question or candidate does not exist."""
    positions = np.minimum(np.searchsorted(parsed.item, parsed.response_item), len(parsed.item) - 1)
    count = parsed.candidate_code.shape[1]
    known = (parsed.item[positions] == parsed.response_item) & (parsed.response_candidate >= 0)
    known &= parsed.response_candidate < count
    shown = parsed.candidate_code[positions, np.where(known, parsed.response_candidate, 0)]
    equal: NDArray[np.bool_] = known & (shown == parsed.target_code[positions])
    return equal


def _kept_notes(study: xr.Dataset) -> list[Note]:
    people = len(set(study["participant"].values.tolist()))
    items = len(np.unique(study["response_item"].values))
    return [Note(f"answers used, by {people} participants on {items} questions", study.sizes["response"])]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
