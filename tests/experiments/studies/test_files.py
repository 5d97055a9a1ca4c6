"""The view of a folder or an archive: the same bytes, nothing extracted, nothing hostile read; and the download."""

from __future__ import annotations

import gc
import zipfile
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.files import Files, check_hash, open_files
from shannon_game.experiments.studies.lm_game_archive import fetch_archive
from tests.experiments.studies.conftest import address

CONTENTS = {"data/a.json": b"[1]", "data/b.json": b"[2, 3]", "results/r.json": b"{}"}
FOLDERS = ("data", "results")


def folder(root: Path, names: tuple[str, ...] = tuple(CONTENTS)) -> Path:
    root.mkdir(exist_ok=True)
    for name in names:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(CONTENTS[name])
    return root


def archive(path: Path, members: dict[str, bytes] = CONTENTS, prefix: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(prefix + name, content)
    return path


@pytest.mark.parametrize("prefix", ["", "repository-abc/", "a/b/"])
@pytest.mark.parametrize("layout", ["folder", "archive", "both"])
def test_every_layout_gives_the_same_bytes(tmp_path: Path, layout: str, prefix: str) -> None:
    root = tmp_path / "root"
    if layout == "folder":
        folder(root)
    elif layout == "archive":
        root = archive(tmp_path / "whole.zip", CONTENTS | {"other.txt": b"x"}, prefix)
    else:
        folder(root, ("results/r.json",))
        archive(root / "data.zip", {name: CONTENTS[name] for name in ("data/a.json", "data/b.json")}, prefix)
    view = open_files(root, FOLDERS)
    before = sorted(tmp_path.rglob("*"))
    assert dict(view.read(list(CONTENTS))) == CONTENTS
    assert [name for name, _ in view.read(["data/b.json", "data/a.json"])] == ["data/b.json", "data/a.json"]
    assert sorted(tmp_path.rglob("*")) == before
    assert "a.json" in view.where("data/a.json")


# ------------------------------------------------------------------------------------------- download


def readable(view: Files) -> None:
    list(view.read(list(CONTENTS)))


def test_a_download_is_kept_and_used_again(
    tmp_path: Path, server: ThreadingHTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    body = archive(tmp_path / "source.zip", CONTENTS, "repository/").read_bytes()
    server.pages["/data.zip"] = (200, body, len(body))  # type: ignore[attr-defined]
    path = tmp_path / "cache" / "kept.zip"
    for _ in range(2):
        view = fetch_archive(f"{address(server)}/data.zip", path, readable)
        assert dict(view.read(list(CONTENTS))) == CONTENTS
    assert server.requests == ["/data.zip"]  # type: ignore[attr-defined]
    assert [file.name for file in path.parent.iterdir()] == ["kept.zip"]
    assert capsys.readouterr().err == f"downloading {address(server)}/data.zip to {path}, once\n"


# requests leaves the socket of a response that broke off to the garbage collector
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        ("not found", "404"),
        ("broken off", "could not be downloaded"),
        ("truncated", "not a readable zip archive"),
        ("refused", "could not be downloaded"),
        ("hash", r"member data/a\.json: has SHA-256 00"),
    ],
)
def test_a_failed_download_says_what_to_do_and_leaves_nothing(
    tmp_path: Path, server: ThreadingHTTPServer, failure: str, expected: str
) -> None:
    body = archive(tmp_path / "source.zip").read_bytes()
    short = body[: len(body) // 2]
    pages = {
        "broken off": (200, short, len(body)),
        "truncated": (200, short, len(short)),
        "hash": (200, body, len(body)),
    }
    server.pages["/data.zip"] = pages.get(failure, (404, b"", 0))  # type: ignore[attr-defined]
    url = "http://127.0.0.1:9/data.zip" if failure == "refused" else f"{address(server)}/data.zip"

    def check(view: Files) -> None:
        readable(view)
        if failure == "hash":
            check_hash("data/a.json", "00", {"data/a.json": "11"}, source=view.where("data/a.json"))

    path = tmp_path / "cache" / "kept.zip"
    with pytest.raises(InputError, match=expected) as raised:
        fetch_archive(url, path, check)
    message = str(raised.value)
    assert f"get {url} by other means and save it as {path}, or root='FOLDER'" in message
    assert list(path.parent.iterdir()) == []
    del raised
    gc.collect()
