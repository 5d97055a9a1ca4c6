"""Loaders of documents: encodings, line ends, empty texts and duplicates, in every layout."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from shannon_game.estimators.documents.study import document_tokens
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.documents.lm_game_documents import lm_game_documents
from shannon_game.experiments.studies.documents.texts import texts
from shannon_game.experiments.studies.files import read_manifest
from shannon_game.experiments.studies.lm_game_archive import MANIFEST


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def noted(study: xr.Dataset) -> dict[str, int]:
    return {entry["text"]: entry["count"] for entry in notes(study)}


def load(path: Path, **settings: Any) -> xr.Dataset:
    return texts(path=path, **settings)


def test_a_folder_of_texts(tmp_path: Path) -> None:
    root = write(
        tmp_path / "corpus",
        {
            "train/b.txt": "Second.",
            "train/deep/a.TXT": "Zürich — naïve",
            "test/a.txt": "First.",
            "c.txt": "No split.",
            "readme.md": "not a text",
            ".hidden/d.txt": "not visible",
        },
    )
    study = load(root)
    assert dict(zip(study["document"].values, study["text"].values, strict=True)) == {
        "c.txt": "No split.",
        "test/a.txt": "First.",
        "train/b.txt": "Second.",
        "train/deep/a.TXT": "Zürich — naïve",
    }
    assert study["split"].values.tolist() == ["all", "test", "train", "train"]
    assert study.attrs["name"] == "corpus"
    assert noted(study) == {"documents used": 4}
    before = study.attrs["data_sha256"]
    write(root, {"c.txt": "No splits."})
    assert load(root).attrs["data_sha256"] != before


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        {"text": "One.\r\nMore.", "id": 7, "part": "dev", "other": []},
        {"text": "Two \ud83d\ude00", "id": "x", "part": "dev"},
        {"text": "  \n", "id": "blank", "part": "dev"},
        {"text": "half \ud83d", "id": "y", "part": "test"},
    ]
    content = "\n\n".join(json.dumps(line) for line in lines) + "\n"
    write(tmp_path, {"c.jsonl": content.replace("\n", "\r\n")})
    study = load(tmp_path / "c.jsonl", id_field="id", split_field="part")
    assert study["document"].values.tolist() == ["7", "x", "y"]
    assert study["text"].values.tolist() == ["One.\nMore.", "Two 😀", "half \ufffd"]
    assert study["split"].values.tolist() == ["dev", "dev", "test"]
    said = noted(study)
    assert said["empty lines, skipped"] == 3
    assert said["documents without text, left out: blank"] == 1
    assert said["documents with half of a surrogate pair, which no file can hold; it was made U+FFFD"] == 1
    assert load(tmp_path / "c.jsonl")["document"].values.tolist() == ["c.jsonl:1", "c.jsonl:3", "c.jsonl:7"]


def test_empty_files_and_duplicates(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "same", "b.txt": "", "c.txt": "same", "d.txt": " \n\t", "e.txt": "other"})
    study = load(tmp_path)
    assert study["document"].values.tolist() == ["a.txt", "c.txt", "e.txt"]
    said = noted(study)
    assert said["documents without text, left out: b.txt, d.txt"] == 2
    assert any("kept; intervals take them for independent: c.txt as a.txt" in text for text in said)
    dropped = load(tmp_path, duplicates="drop")
    assert dropped["document"].values.tolist() == ["a.txt", "e.txt"]
    assert any("left out whose text was there before: c.txt as a.txt" in text for text in noted(dropped))
    with pytest.raises(InputError, match=r"'c\.txt' has the same text as 'a\.txt' \(1 such\)"):
        load(tmp_path, duplicates="error")


@pytest.mark.parametrize(
    ("files", "settings", "message"),
    [
        ({"a.txt": ""}, {}, r"holds no text \(1 read: a\.txt\)"),
        ({"a.jsonl": "{}"}, {}, r"has no \.txt file; name the file a\.jsonl itself to read it"),
        ({"a.txt": b"caf\xe9\n"}, {}, r"a\.txt: is not UTF-8: byte 0xe9 in line 1"),
        ({"a.txt": "text".encode("utf-16-le")}, {}, r"a\.txt: holds 4 null characters"),
        ({"a.jsonl": '{"body": "x"}'}, {"path": "a.jsonl"}, r"line 1, text: is missing; the line has body"),
        (
            {"a.jsonl": '{"text": "x", "id": 1}\n{"text": "y", "id": "1"}'},
            {"path": "a.jsonl", "id_field": "id"},
            "document: '1' is there twice",
        ),
    ],
)
def test_malformed_texts(files: dict[str, str | bytes], settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    root = write(tmp_path, files)
    path = settings.get("path", "")
    given = {**settings, "path": None if path is None else str(root / path)}
    with pytest.raises(InputError, match=message):
        texts(**given)


# ------------------------------------------------------------------------------------------- the top-1 game's

DOCUMENTS = {
    "docs/doc9.json": json.dumps(["The", " cat", " sat", "."]),
    "docs/doc10.json": json.dumps(["\n", "A", " \ufffd", "\ufffd", "\x00"]),
    "docs/doc2.json": json.dumps(["Once", " more"]),
}


def game(root: Path, **settings: Any) -> xr.Dataset:
    return lm_game_documents(root=root, **settings)


@pytest.mark.parametrize("archive", [None, "whole.zip"])
def test_documents_of_the_game_in_every_layout(archive: str | None, tmp_path: Path) -> None:
    root = tmp_path
    if archive is None:
        write(root, DOCUMENTS)
        write(root, {"docs/readme.md": "x"})
    else:
        with zipfile.ZipFile(root / archive, "w") as file:
            for name, content in DOCUMENTS.items():
                file.writestr(f"repository-1/{name}", content)
        root /= archive
    study = game(root, tokens=True)
    assert study["document"].values.tolist() == ["doc2", "doc9", "doc10"]
    assert study["text"].values.tolist() == ["Once more", "The cat sat.", "\nA \ufffd\ufffd\x00"]
    assert document_tokens(study, 1) == ["The", " cat", " sat", "."]
    said = noted(study)
    assert said.get("files in docs/ that are no doc{i}.json, not read") == (1 if archive is None else None)
    assert said["documents with U+FFFD, where characters were lost or cut apart before this study read them"] == 1
    # the published documents of these names are others
    assert any("differ from the published" in text for text in said) == any(
        name in read_manifest(MANIFEST) for name in DOCUMENTS
    )
    some = game(root, documents=[2, 9])
    assert some["document"].values.tolist() == ["doc2", "doc9"]
    assert "token" not in some


@pytest.mark.parametrize("name", [b"caf\xe9.txt", b"two\nlines.txt", b"sub\xff/a.txt", b"\x1b[2J.txt"])
def test_a_name_that_cannot_be_printed_is_refused(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / "given" / os.fsdecode(name)
    path.parent.mkdir(parents=True)
    path.write_text("Hi.")
    for given in (tmp_path / "given", path):
        if given == path and given.name.isprintable():
            continue
        with pytest.raises(InputError, match=r"has a name that is no printable UTF-8") as caught:
            texts(path=given)
        assert str(caught.value).isprintable()
