"""Loaders of documents: encodings, line ends, empty texts and duplicates, in every layout."""

from __future__ import annotations

import codecs
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from shannon_game.estimators.documents import document_tokens
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.documents.lm_game_documents import lm_game_documents
from shannon_game.experiments.studies.documents.texts import texts
from shannon_game.experiments.studies.files import read_manifest
from shannon_game.experiments.studies.lm_game_archive import MANIFEST
from tests.experiments.command import config


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


def test_they_are_studies_of_the_command(tmp_path: Path) -> None:
    root = write(tmp_path / "corpus", {"a.txt": "One.", "docs/doc1.json": '["One", "."]'})
    cfg = config("study=texts", f"study.path={root}", "study.newlines=keep")
    assert load_study(cfg.study, kind="documents").identical(load(root, newlines="keep"))
    cfg = config("study=lm_game_documents", f"study.root={root}", "study.tokens=true")
    assert load_study(cfg.study, kind="documents").identical(game(root, tokens=True))


def test_one_text_and_what_is_repaired(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": codecs.BOM_UTF8 + b"one\r\ntwo\rthree\n"})
    study = load(tmp_path / "a.txt")
    assert study["text"].values.tolist() == ["one\ntwo\nthree\n"]
    said = noted(study)
    assert said["files with a UTF-8 byte order mark, which is no part of the text; removed"] == 1
    assert any("carriage return" in text and count == 1 for text, count in said.items())
    kept = load(tmp_path / "a.txt", newlines="keep")
    assert kept["text"].values.tolist() == ["one\r\ntwo\rthree\n"]
    assert any("carriage returns, kept" in text for text in noted(kept))


@pytest.mark.parametrize(
    ("content", "encoding"),
    [("naïve".encode("cp1252"), "cp1252"), ("naïve".encode("utf-16"), "utf-16"), ("naïve".encode("utf-32"), "utf-32")],
)
def test_other_encodings_are_refused_until_named(content: bytes, encoding: str, tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": content})
    with pytest.raises(InputError, match=r"a\.txt: .*set study.encoding"):
        load(tmp_path / "a.txt")
    assert load(tmp_path / "a.txt", encoding=encoding)["text"].values.tolist() == ["naïve"]


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
        ({"a.txt": "x"}, {"paht": "x"}, "unknown setting 'paht'"),
        ({"a.txt": "x"}, {"name": "text"}, "unknown setting 'name'"),
        ({"a.txt": "x"}, {"path": None}, "path: is None, should be a path"),
        ({"a.txt": "x"}, {"encoding": "utf-9"}, "encoding: is 'utf-9', which is no encoding of text"),
        ({"a.txt": "x"}, {"newlines": "dos"}, "newlines: is 'dos', should be one of unify, keep"),
        ({"a.txt": "x"}, {"duplicates": "first"}, "duplicates: is 'first', should be one of keep, drop, error"),
        ({"a.txt": "x"}, {"id_field": 3}, "id_field: is 3, should be a text that is not empty or null"),
        ({"a.txt": ""}, {}, r"holds no text \(1 read: a\.txt\)"),
        ({"a.md": "x"}, {}, r"has no \.txt file"),
        ({"a.jsonl": "{}"}, {}, r"has no \.txt file; name the file a\.jsonl itself to read it"),
        ({"a.md": "x"}, {"path": "a.md"}, r"is no \.txt, \.jsonl or \.ndjson file"),
        ({"a.txt": "x"}, {"path": "b.txt"}, "there is no such file"),
        ({"a.txt": b"caf\xe9\n"}, {}, r"a\.txt: is not utf-8: byte 0xe9 in line 1"),
        ({"a.txt": "text".encode("utf-16-le")}, {}, r"a\.txt: holds 4 null characters"),
        ({"a.jsonl": "{]"}, {"path": "a.jsonl"}, r"a\.jsonl, line 1: is not valid JSON"),
        ({"a.jsonl": "[1]"}, {"path": "a.jsonl"}, r"line 1: is \[1\], should be an object with a text"),
        ({"a.jsonl": '{"body": "x"}'}, {"path": "a.jsonl"}, r"line 1, text: is missing; the line has body"),
        ({"a.jsonl": '{"text": 3}'}, {"path": "a.jsonl"}, "line 1, text: is 3, should be a string"),
        ({"a.jsonl": '{"text": "x", "id": 1.5}'}, {"path": "a.jsonl", "id_field": "id"}, "id: is 1.5, should be a str"),
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


@pytest.mark.parametrize("archive", [None, "data.zip", "whole.zip"])
def test_documents_of_the_game_in_every_layout(archive: str | None, tmp_path: Path) -> None:
    root = tmp_path
    if archive is None:
        write(root, DOCUMENTS)
        write(root, {"docs/readme.md": "x"})
    else:
        with zipfile.ZipFile(root / archive, "w") as file:
            for name, content in DOCUMENTS.items():
                file.writestr(("" if archive == "data.zip" else "repository-1/") + name, content)
        root = root if archive == "data.zip" else root / archive
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


@pytest.mark.parametrize(
    ("files", "settings", "message"),
    [
        (DOCUMENTS, {"document": [1, 2]}, "unknown setting 'document'"),
        (DOCUMENTS, {"documents": [9, 2]}, r"documents: is \[9, 2\], should be \[first, last\]"),
        (DOCUMENTS, {"documents": 9}, "documents: is 9, should be"),
        (DOCUMENTS, {"documents": [20, 30]}, r"has no document .* with i from 20 to 30; it has 3 others"),
        (DOCUMENTS, {"tokens": "yes"}, "tokens: is 'yes', should be true or false"),
        (DOCUMENTS, {"name": "x"}, "unknown setting 'name'"),
        (DOCUMENTS, {"root": 3}, "root: is 3, should be a path or null"),
        (DOCUMENTS, {"url": "ftp://x"}, "url: is 'ftp://x', should start with https"),
        (DOCUMENTS, {"commit": "../x"}, r"commit: is '\.\./x', should be the name of a commit"),
        ({"other/x": "1"}, {}, r"has no docs/ \(and no data\.zip"),
        ({"docs/x": "1"}, {}, "has no document docs/doc"),
        ({"docs/doc1.json": "[1"}, {}, r"doc1\.json: is not valid JSON"),
        (
            {"docs/doc1.json": '{"a": 1}'},
            {},
            r"doc1\.json: is \{'a': 1\}",
        ),
        ({"docs/doc1.json": '["a", 3]'}, {}, r"doc1\.json: is 3 at \[1\]"),
        ({"docs/doc1.json": "[]"}, {}, "holds no text"),
    ],
)
def test_malformed_documents_of_the_game(
    files: dict[str, Any], settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write(tmp_path, files)
    with pytest.raises(InputError, match=message):
        lm_game_documents(**{"root": str(tmp_path), **settings})


def test_real_documents(lm_game_root: Path) -> None:
    study = game(lm_game_root)
    assert study.sizes["document"] == 469
    assert "published ones" not in "".join(noted(study))


@pytest.mark.parametrize("encoding", ["zlib", "rot13", "base64", "bz2", "hex", "undefined", "no such", "a\0b", ""])
def test_what_is_no_encoding_of_text_is_refused(encoding: str, tmp_path: Path) -> None:
    root = write(tmp_path, {"a.txt": "Hi."})
    with pytest.raises(InputError, match=r"encoding: is .*, which is no encoding of text"):
        texts(path=root, encoding=encoding)


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


def test_a_pipe_among_texts_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.txt")
    for given in (tmp_path, tmp_path / "a.txt"):
        with pytest.raises(InputError, match=r"a\.txt.*: is a pipe"):
            texts(path=given)
