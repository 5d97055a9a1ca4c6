"""Human and model next words on the Provo Corpus, as a cloze study.

Data behind "Predict the Next Word: Humans exhibit uncertainty in this task and language models ____" (public
repository ``evgeniael/predict_next_word``), and the Provo Corpus's own table of predictability norms (Luke and
Christianson 2018, OSF ``sjefs``). They are read from the user's folder and are no part of this project.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import xarray as xr

from shannon_game.estimators.cloze import validate_cloze_study
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.cloze.provo_norms import NORMS_FILE, parse_norms
from shannon_game.experiments.studies.cloze.provo_parse import (
    HUMAN_FILES,
    MODEL_FILES,
    RESULT_FILES,
    TRAINING_FILES,
    parse,
)
from shannon_game.experiments.studies.files import Files
from shannon_game.experiments.studies.parsing import add_notes
from shannon_game.experiments.studies.public_data import CachedSettings, public_folder
from shannon_game.experiments.studies.study_file import through_cache
from shannon_game.inference.settings import UserPath

_CACHE_FILE = "provo-{}.nc"
_SHA256 = "files_sha256"


class ProvoSettings(CachedSettings):
    """Settings of :func:`provo`."""

    root: UserPath | None = None
    """Folder of the public repository evgeniael/predict_next_word (with TVD/), or the Provo Corpus's own table
    Provo_Corpus-Predictability_Norms.csv (OSF sjefs; people's answers only), or a folder that holds it; null is
    $SHANNON_DATA/provo."""
    layout: Literal["auto", "repository", "norms"] = "auto"
    """Which of the two root is."""
    cache: bool = True
    """Keep the parsed files between runs."""


@loader(ProvoSettings)
def provo(settings: ProvoSettings) -> xr.Dataset:
    r"""Load the Provo next-word answers, with the models' words and the published results where they are there.

    Items are in the order of (passage, word). Models: ``gpt2``, ``gpt2-ft`` (fine-tuned), ``gpt2-t0.5``
    (temperature 0.5), ``bloom``, ``chatgpt``, ``chatgpt-2`` (a second round of 40), ``chatgpt-diverse`` (asked for
    40 different words at once); none of them with the table of norms, which holds people's answers only.
    ``attrs["published"]`` is JSON of the single published numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from shannon_game import provo
    >>> header = "Text_ID,Text,Word_Number,Word,Response,Response_Count"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "Provo_Corpus-Predictability_Norms.csv"
    ...     n_characters = path.write_text(header + "\n1,There are now,2,are,are,16\n1,There are now,2,are,was,4")
    ...     study = provo(root=path, cache=False)
    >>> study["response_count"].to_numpy()
    array([16,  4], dtype=int32)
    """
    root, layout = _place(settings)
    files, names = _names(root, layout)
    # the folder's own name is part of the key: two copies may have files of the same size and time
    place = f"{layout} {root.resolve()}"
    # named by the place alone: a file of other data or other code is replaced, and none pile up
    path = settings.cache_folder / _CACHE_FILE.format(_sha256(place)[:16])
    key = _sha256("\n".join([place, *files.stamps(names)]))

    def read() -> xr.Dataset:
        return _parsed(files, names, layout)

    study, cache_notes = through_cache(path, key, read) if settings.cache else (read(), [])
    study.attrs["data_sha256"] = study.attrs.pop(_SHA256)
    add_notes(study, cache_notes)
    return validate_cloze_study(study)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _place(settings: ProvoSettings) -> tuple[Path, str]:
    """Where the data are, and in which layout."""
    root, layout = settings.root or public_folder("provo"), settings.layout
    if root is None:
        raise InputError(
            f"is null; give the folder of the public repository (with TVD/), or {NORMS_FILE}: study.root=FOLDER, or "
            "$SHANNON_DATA/provo",
            source="study=provo",
            field="root",
        )
    if not root.exists():
        raise InputError("there is no such file or folder", source=root)
    if layout != "auto":
        return root, layout
    has_norms = root.is_file() or (not (root / "TVD").is_dir() and (root / NORMS_FILE).is_file())
    return root, "norms" if has_norms else "repository"


def _names(root: Path, layout: str) -> tuple[Files, list[str]]:
    if layout == "norms":
        path = root if root.is_file() else root / NORMS_FILE
        if not path.is_file():
            raise InputError(f"there is no {NORMS_FILE}", source=root)
        return Files(path.parent), [path.name]
    if not root.is_dir():
        raise InputError("is no folder; an archive of the repository has to be unpacked first", source=root)
    patterns = (HUMAN_FILES, *MODEL_FILES.values(), *RESULT_FILES, TRAINING_FILES)
    found = {path.relative_to(root).as_posix() for pattern in patterns for path in root.glob(pattern)}
    # a link that leads nowhere is no file that is absent
    names = sorted(found | {name for name in MODEL_FILES.values() if (root / name).is_symlink()})
    if not any(name.startswith(HUMAN_FILES.rpartition("/")[0]) for name in names):
        raise InputError(
            f"has no {HUMAN_FILES}, which holds the human answers (and no {NORMS_FILE}); "
            "give the folder of the public repository",
            source=root,
        )
    return Files(root), names


def _parsed(files: Files, names: Sequence[str], layout: str) -> xr.Dataset:
    contents = dict(files.read(names))
    lines = [f"{name} {hashlib.sha256(content).hexdigest()}\n" for name, content in contents.items()]
    study = parse_norms(contents[names[0]], files.where(names[0])) if layout == "norms" else parse(contents)
    return study.assign_attrs({"name": "provo", "word_rules": "provo", _SHA256: _sha256("".join(lines))})
