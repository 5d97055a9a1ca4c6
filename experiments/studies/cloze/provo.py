"""Human and model next words on the Provo Corpus, as a cloze study.

Data behind "Predict the Next Word: Humans exhibit uncertainty in this task and language models ____" (public
repository ``evgeniael/predict_next_word``), and the Provo Corpus's own table of predictability norms (Luke and
Christianson 2018, OSF ``sjefs``). They are read from the user's folder and are no part of this project. The settings
are in ``conf/study/provo.yaml``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from estimators.cloze.study import validate_cloze_study
from estimators.code_identity import code_hash
from estimators.errors import InputError
from estimators.notes import add_note
from experiments.studies.cache import DamagedCacheError, read_cache, write_cache
from experiments.studies.cloze.provo_norms import NORMS_FILE, parse_norms
from experiments.studies.cloze.provo_parse import HUMAN_FILES, MODEL_FILES, RESULT_FILES, parse
from experiments.studies.cloze.rows import Note, Parsed, arrays_from_cached, cached_from_arrays, cloze_dataset
from experiments.studies.files import FolderFiles
from experiments.studies.loader_settings import cache_folder, check_switches, loader_settings

__all__ = ["DEFAULTS", "load"]

DEFAULTS: Mapping[str, Any] = {
    "name": "provo",
    "root": None,
    "layout": "auto",
    "cache": True,
    "cache_dir": None,
}
"""Every setting with the value it has when it is not given."""

_SOURCE = "study=provo"
_LAYOUTS = ("auto", "repository", "norms")
_CACHE_FILE = "provo-{}.nc"


@dataclass(frozen=True)
class _Options:
    root: Path
    layout: str
    cache: bool
    cache_dir: Path


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load the Provo next-word answers, with the models' words and the published results where they are there.

    Parameters
    ----------
    config : mapping
        Settings, see ``conf/study/provo.yaml``; one that is absent has its default (:data:`DEFAULTS`).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.cloze.study.validate_cloze_study`. Items are in the order of (passage, word). Models:
        ``gpt2``, ``gpt2-ft`` (fine-tuned), ``gpt2-t0.5`` (temperature 0.5), ``bloom``, ``chatgpt``, ``chatgpt-2``
        (a second round of 40), ``chatgpt-diverse`` (asked for 40 different words at once); none of them with the
        table of norms, which holds people's answers only. ``attrs["published"]`` is JSON of the single published
        numbers, ``attrs["data_sha256"]`` identifies the files.

    Raises
    ------
    InputError
        For an unknown setting or value, and for missing or malformed files; names the file and the place in it.
    """
    options = _options(config)
    parsed, digest, cache_notes = _parsed(options)
    study = cloze_dataset(
        parsed.arrays,
        {
            "name": "provo",
            "word_rules": "provo",
            "data_sha256": digest,
            "published": json.dumps(parsed.published, sort_keys=True),
        },
    )
    for note in (*parsed.notes, *cache_notes):
        add_note(study, note.text, count=note.count, level=note.level)
    return validate_cloze_study(study)


def _options(config: Mapping[str, Any]) -> _Options:
    given = loader_settings(config, DEFAULTS, source=_SOURCE, choices={"layout": _LAYOUTS})
    check_switches(given, ["cache"], source=_SOURCE)
    if not isinstance(given["root"], str | Path) or not str(given["root"]):
        raise InputError(
            f"is {given['root']!r}; give the folder of the public repository (with TVD/), or {NORMS_FILE}: "
            "study.root=FOLDER",
            source=_SOURCE,
            field="root",
        )
    root = Path(given["root"]).expanduser()
    if not root.exists():
        raise InputError("there is no such file or folder", source=root)
    layout = given["layout"]
    if layout == "auto":
        layout = "norms" if root.is_file() or (not (root / "TVD").is_dir() and (root / NORMS_FILE).is_file()) else ""
        layout = layout or "repository"
    return _Options(root, layout, given["cache"], cache_folder(given, source=_SOURCE))


def _names(options: _Options) -> tuple[FolderFiles, list[str]]:
    root = options.root
    if options.layout == "norms":
        path = root if root.is_file() else root / NORMS_FILE
        if not path.is_file():
            raise InputError(f"there is no {NORMS_FILE}", source=root)
        return FolderFiles(path.parent), [path.name]
    if not root.is_dir():
        raise InputError("is no folder; an archive of the repository has to be unpacked first", source=root)
    patterns = (HUMAN_FILES, *MODEL_FILES.values(), *RESULT_FILES)
    names = sorted({path.relative_to(root).as_posix() for pattern in patterns for path in root.glob(pattern)})
    if not any(name.startswith(HUMAN_FILES.rpartition("/")[0]) for name in names):
        raise InputError(
            f"has no {HUMAN_FILES}, which holds the human answers (and no {NORMS_FILE}); "
            "give the folder of the public repository",
            source=root,
        )
    return FolderFiles(root), names


def _parsed(options: _Options) -> tuple[Parsed, str, list[Note]]:
    files, names = _names(options)
    # the folder's own name is part of the key: two copies may have files of the same size and time
    place = f"{options.layout} {options.root.resolve()}"
    lines = [place, code_hash("experiments.studies"), *files.stamps(names)]
    key, name = (
        hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() for text in ("\n".join(lines), place)
    )
    # named by the place alone: a file of other data or other code is replaced, and none pile up
    path = options.cache_dir / _CACHE_FILE.format(name[:16])
    notes: list[Note] = []
    if options.cache:
        try:
            cached = read_cache(path, key)
        except DamagedCacheError as error:
            notes.append(Note(f"cache file {path.name} was damaged ({error}) and is written anew", None, "warning"))
            cached = None
        if cached is not None:
            values = cached.values
            kept = [Note(text, count, level) for text, count, level in values["notes"]]
            return Parsed(arrays_from_cached(cached), values["published"], kept), values["data_sha256"], notes
    contents = dict(files.read(names))
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode("utf-8", "surrogateescape"))
    if options.layout == "norms":
        parsed = parse_norms(next(iter(contents.values())), files.where(names[0]))
    else:
        parsed = parse(contents)
    if options.cache:
        values = {
            "notes": [astuple(note) for note in parsed.notes],
            "published": parsed.published,
            "data_sha256": digest.hexdigest(),
        }
        try:
            write_cache(path, key, cached_from_arrays(parsed.arrays, values))
        except OSError as error:
            notes.append(Note(f"cache not written ({error}); the next run reads the files again", None, "warning"))
    return parsed, digest.hexdigest(), notes
