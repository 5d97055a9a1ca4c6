"""Human and model next words on the Provo Corpus, as a cloze study.

Data behind "Predict the Next Word: Humans exhibit uncertainty in this task and language models ____" (public
repository ``evgeniael/predict_next_word``), and the Provo Corpus's own table of predictability norms (Luke and
Christianson 2018, OSF ``sjefs``). They are read from the user's folder and are no part of this project.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.cloze import validate_cloze_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Load, Set, word
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.cloze.provo_parse import (
    HUMAN_FILES,
    MODEL_FILES,
    RESULT_FILES,
    TRAINING_FILES,
    parse,
)
from shannon_game.experiments.studies.cloze.provo_tokens import with_tokens
from shannon_game.experiments.studies.cloze.rows import cloze_dataset
from shannon_game.experiments.studies.files import Files, read_bytes
from shannon_game.experiments.studies.parsing import Note, add_notes, counting, objects
from shannon_game.experiments.studies.plain_table import Table, finished, specification
from shannon_game.experiments.studies.public_data import public_folder
from shannon_game.experiments.studies.table_file import TableFile, text_columns
from shannon_game.inference.settings import Settings, UserPath

NORMS_FILE = "Provo_Corpus-Predictability_Norms.csv"
_OFF_TOTAL = "contexts whose counts do not sum to Total_Response_Count; the counts are used"
_TAGS = specification(id="text_id", text="tag", whole="word_num")
_SPEC = specification(
    id="Text_ID",
    text_or_empty="Text Word Response",
    whole="Word_Number Response_Count",
    whole_or_empty="Total_Response_Count",
)


class ProvoSettings(Settings):
    root: UserPath | None = None
    """Folder of the public repository evgeniael/predict_next_word (with TVD/), or the Provo Corpus's own table
    Provo_Corpus-Predictability_Norms.csv (OSF sjefs; people's answers only), or a folder that holds it; null is
    $SHANNON_DATA/provo."""
    layout: Literal["auto", "repository", "norms"] = "auto"
    """Which of the two root is."""
    tokens: bool = False
    """Read GPT-2's probabilities of tokens (appendix D), too, where the folder has them: gigabytes."""
    tags: UserPath | None = None
    """CSV file with text_id, word_num and tag, the part of speech of each context's last word: ``tag_NOUN`` and so on
    become predictors."""


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
    ...     study = provo(root=path)
    >>> study["response_count"].to_numpy()
    array([16,  4], dtype=int32)
    """
    root, layout = _place(settings)
    files, names = _names(root, layout)
    study = _parsed(files, names, layout)
    if settings.tokens:
        study = with_tokens(study, root)
    return validate_cloze_study(study if settings.tags is None else _tagged(study, settings.tags))


def _tagged(study: xr.Dataset, path: Path) -> xr.Dataset:
    """Add a variable of zeros and ones for each part of speech."""
    content = read_bytes(path, field="tags")
    table = _table(content, str(path), _TAGS, "tag")
    of = dict(zip(zip(table["text_id"].tolist(), table["word_num"].tolist(), strict=True), table["tag"], strict=True))
    places = zip(study["text_id"].to_numpy().astype(str).tolist(), study["word_num"].to_numpy().tolist(), strict=True)
    tags = [of.get(place) for place in places]
    if None in tags:
        at = tags.index(None)
        missing = f"text {study['text_id'][at].item()}, word {study['word_num'][at].item()}"
        raise InputError(f"has no tag of {tags.count(None)} contexts, the first {missing}", source=path, field="tag")
    codes, names = pd.factorize(objects([str(tag) for tag in tags]), sort=True)
    study = study.assign({f"tag_{name}": ("item", (codes == at).astype(float)) for at, name in enumerate(names)})
    digest = hashlib.sha256(content + study.attrs["data_sha256"].encode()).hexdigest()
    return study.assign_attrs(data_sha256=digest)


def _place(settings: ProvoSettings) -> tuple[Path, str]:
    root, layout = settings.root or public_folder("provo"), settings.layout
    if root is None:
        raise InputError(
            f"is {word(None)}; give the folder of the public repository (with TVD/), or {NORMS_FILE}: "
            f"{Set('study.root', 'FOLDER')}, or $SHANNON_DATA/provo",
            source=Load("provo"),
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
    # 2,640 lists of appendix E by oracle, of which no value is printed
    found = {name for name in found if not name.endswith("_reps.json")}
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
    lines = "".join(f"{name} {hashlib.sha256(content).hexdigest()}\n" for name, content in contents.items())
    digest = hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
    study = _norms(contents[names[0]], files.where(names[0])) if layout == "norms" else parse(contents)
    return study.assign_attrs({"name": "provo", "word_rules": "provo", "data_sha256": digest})


def _norms(content: bytes, where: str) -> xr.Dataset:
    """Read ``Provo_Corpus-Predictability_Norms.csv`` (OSF ``sjefs``).

    Needs the columns Text_ID, Text (the whole passage), Word_Number (of the word asked for), Word, Response and
    Response_Count; Total_Response_Count, where it is there, has to be the sum of the counts or the difference is
    noted. The context is the first Word_Number - 1 space-separated tokens of the passage.
    """
    table = _table(content, where, _SPEC, "answer", ["Total_Response_Count"])
    of = table.groups("Text_ID", "Word_Number", what="context")
    number = table["Word_Number"][of.first].astype(np.int32)
    tokens = [re.split(" +", text.strip()) for text in table["Text"][of.first].tolist()]
    length = np.array(list(map(len, tokens)))[of.of_row]
    beyond = (table["Word_Number"] < 2) | (table["Word_Number"] > length + 1)
    table.refuse(beyond, "Word_Number", "should be the number of a word of the passage after its first")
    words = [word.strip() for word in table["Word"][of.first].tolist()]
    printed = [own[at - 1] if at <= len(own) else "" for own, at in zip(tokens, number.tolist(), strict=True)]
    same = [_letters(word) == _letters(own) for word, own in zip(words, printed, strict=True)]
    said, texts = pd.factorize(table["Response"])
    count = table["Response_Count"].astype(np.int32)
    off = 0
    if "Total_Response_Count" in table:
        total = pd.Series(table["Total_Response_Count"]).groupby(of.of_row).last().dropna()
        off = int((total != np.bincount(of.of_row, weights=count)[total.index]).sum())
    blank = sum(not text.strip() for text in table["Response"].tolist())
    target = "contexts where Word is not the token of Text at Word_Number; Word is taken as the target"
    counted = counting(
        Note("blank answers, kept as blank strings that no analysis counts as a word", blank),
        Note(_OFF_TOTAL, off, "warning"),
        Note(target, same.count(False), "warning"),
    )
    text_id = table["Text_ID"][of.first]
    notes = [*table.notes, Note(f"contexts, from {len(set(text_id.tolist()))} passages", len(of))]
    arrays = {
        "item": np.arange(len(of)),
        "text_id": text_id,
        "word_num": number,
        "context": objects([" ".join(own[: at - 1]) for own, at in zip(tokens, number.tolist(), strict=True)]),
        "target_word": objects([own if right else word for word, own, right in zip(words, printed, same, strict=True)]),
        "response_item": of.of_row.astype(np.int32),
        "response_word": said.astype(np.int32),
        "response_count": count,
        "word_text": objects(list(texts)),
    }
    study = cloze_dataset(arrays, {"published": "{}"})
    add_notes(study, [*notes, *counted])
    return study


def _table(content: bytes, where: str, spec: Mapping[str, str], of: str, optional: Sequence[str] = ()) -> Table:
    notes: list[Note] = []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        notes.append(Note("the table is not UTF-8; read as Windows-1252", 1))
    columns, lines = text_columns(text, Path(where), TableFile(separator="comma"), (), notes)
    cells = pd.DataFrame({name: objects(column) for name, column in columns.items()}, dtype=object)
    table = finished(Table(cells, where, "", lines, "line", notes=notes), of=of, once=False)
    return table.named({name: name for name in spec}, spec, optional=optional)


def _letters(word: str) -> str:
    return re.sub(r"\W", "", word).lower()
