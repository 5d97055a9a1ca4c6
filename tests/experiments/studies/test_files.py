"""The view of a folder or an archive: the same bytes, nothing extracted, nothing hostile read; and the download."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import socket
import stat
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies import files
from shannon_game.experiments.studies.downloads import fetch_archive
from shannon_game.experiments.studies.files import (
    ArchiveFiles,
    FolderFiles,
    MissingFilesError,
    check_hash,
    open_files,
    read_bytes,
    read_manifest,
    regular_file,
    write_manifest,
)

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
    stamps = view.stamps(list(CONTENTS))
    assert stamps == open_files(root, FOLDERS).stamps(list(CONTENTS))
    victim = next(path for path in before if path.suffix == ".zip" or path.name == "a.json")
    victim.write_bytes(victim.read_bytes() + b" ")
    assert view.stamps(list(CONTENTS)) != stamps


def test_a_mac_archive_and_a_deeper_copy_do_not_confuse_the_prefix(tmp_path: Path) -> None:
    members = {"x/data/a.json": b"right", "__MACOSX/data/a.json": b"wrong", "x/old/data/a.json": b"older"}
    view = ArchiveFiles(archive(tmp_path / "a.zip", members))
    assert dict(view.read(["data/a.json"])) == {"data/a.json": b"right"}


def test_two_places_for_one_folder_are_an_error(tmp_path: Path) -> None:
    view = ArchiveFiles(archive(tmp_path / "a.zip", {"x/data/a.json": b"", "y/data/a.json": b""}))
    with pytest.raises(InputError, match=r"a\.zip: has data/ in more than one place: x/, y/"):
        list(view.read(["data/a.json"]))


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (os.mkfifo, "is a pipe, should be a regular file"),
        (Path.mkdir, "is a folder, should be"),
        (lambda path: path.symlink_to("/dev/zero"), "is a device, should be"),
        (lambda path: path.symlink_to("nowhere"), "there is no such file"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels"),
        (lambda path: path.write_bytes(b"12345"), "has 5 bytes, more than the 4 that are read"),
    ],
)
def test_what_is_no_regular_file_is_refused_before_it_is_opened(
    tmp_path: Path, make: Callable[[Path], object], problem: str
) -> None:
    path = tmp_path / "given"
    make(path)
    for door in (regular_file, read_bytes):
        with pytest.raises(InputError, match=rf"given, study\.path: {problem}"):
            door(path, field="study.path", limit_bytes=4)


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "file/inside"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be read: (File name too long|embedded null)|there is no such file"):
        read_bytes(tmp_path / name)


def test_a_pipe_among_the_files_of_a_folder_is_refused(tmp_path: Path) -> None:
    view = open_files(folder(tmp_path / "root"), FOLDERS)
    (tmp_path / "root/data/a.json").unlink()
    os.mkfifo(tmp_path / "root/data/a.json")
    with pytest.raises(InputError, match=r"data/a\.json: is a pipe"):
        list(view.read(list(CONTENTS)))


def test_missing_roots_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: there is no such folder or zip archive.*data/ and results/"):
        open_files(tmp_path / "nowhere", FOLDERS)
    (tmp_path / "readme.txt").write_text("")
    with pytest.raises(InputError, match=r"has no data/ \(and no data\.zip that could.*found here: readme\.txt"):
        open_files(tmp_path, FOLDERS)
    with pytest.raises(InputError, match=r"readme\.txt: is not a readable zip archive"):
        list(open_files(tmp_path / "readme.txt", FOLDERS).read(["data/a.json"]))


def test_an_archive_without_the_folder_says_what_to_do_with_an_inner_one(tmp_path: Path) -> None:
    view = ArchiveFiles(archive(tmp_path / "a.zip", {"x/data.zip": b""}))
    with pytest.raises(InputError, match=r"has no folder data/; it holds x/data\.zip: unpack the outer archive"):
        list(view.read(["data/a.json"]))


@pytest.mark.parametrize("make", [folder, lambda path: archive(path.with_suffix(".zip"))])
def test_missing_files_are_named_and_counted(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    view = open_files(make(tmp_path / "root"), FOLDERS)
    wanted = ["data/a.json", *(f"data/z{i}.json" for i in range(7))]
    with pytest.raises(
        MissingFilesError, match=r"root.*: 7 of the 8 files needed are missing: data/z0\.json,.* and 2 more"
    ):
        next(view.read(wanted))


def member(name: str, *, mode: int = 0, size: int | None = None, flags: int = 0) -> bytes:
    """A zip with a good member and one of any name, kind and declared size."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        target.writestr("data/a.json", b"good")
        info = zipfile.ZipInfo("PLACE")
        info.external_attr = mode << 16
        target.writestr(info, b"evil")
        info.orig_filename = info.filename = name
        info.flag_bits |= flags
        if size is not None:
            info.file_size = size
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (member("/etc/passwd"), r"'/etc/passwd' has an absolute path"),
        (member("../evil"), r"'\.\./evil' leads out"),
        (member("data/../../evil"), r"'data/\.\./\.\./evil' leads out"),
        (member("C:/evil"), r"'C:/evil' has a drive letter"),
        (member("data\\..\\evil"), r".* has a backslash"),
        (member("data/a\0b"), r".* has a null character"),
        (member("data/link", mode=stat.S_IFLNK | 0o777), r"'data/link' is a symbolic link"),
        (member("data/pipe", mode=stat.S_IFIFO | 0o644), r"'data/pipe' is not a plain file"),
        (member("data/secret", flags=1), r"'data/secret' is encrypted"),
        (member("data/huge", size=files.MEMBER_LIMIT_BYTES + 1), r"'data/huge' would unpack to 268435457 bytes"),
        (member("data/a.json"), r"'data/a\.json' is there twice"),
    ],
)
def test_a_hostile_member_refuses_the_whole_archive(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "evil.zip"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"evil\.zip: member {problem}.*the archive is refused"):
        next(ArchiveFiles(path).read(["data/a.json"]))


def test_the_sum_of_sizes_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    view = ArchiveFiles(archive(tmp_path / "a.zip"))
    monkeypatch.setattr(files, "_TOTAL_LIMIT_BYTES", 10)
    with pytest.raises(InputError, match=r"would unpack to 11 bytes, more than 10"):
        next(view.read(["data/a.json"]))


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("data/a.json", b"unmistakable")
    path.write_bytes(path.read_bytes().replace(b"unmistakable", b"unmistakEble"))
    with pytest.raises(InputError, match=r"a\.zip, member data/a\.json: cannot be unpacked.*CRC"):
        next(ArchiveFiles(path).read(["data/a.json"]))


def test_the_manifest_lists_what_it_was_made_from(tmp_path: Path) -> None:
    path = tmp_path / "manifest.csv"
    write_manifest(folder(tmp_path / "root"), reversed(CONTENTS), path)
    manifest = read_manifest(path)
    assert list(manifest) == sorted(CONTENTS)
    assert manifest["data/a.json"] == hashlib.sha256(b"[1]").hexdigest()
    check_hash("data/a.json", manifest["data/a.json"], manifest, source="a.zip")
    with pytest.raises(InputError, match=r"a\.zip: has SHA-256 00, the published file has [0-9a-f]{64}"):
        check_hash("data/a.json", "00", manifest, source="a.zip")
    with pytest.raises(InputError, match=r"a\.zip: is not in the manifest"):
        check_hash("data/z.json", "00", manifest, source="a.zip")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "header name,sha256"),
        ("file,hash\n", "header name,sha256"),
        ("name,sha256\na.json,12\n", r"line 2 is 'a\.json,12'"),
        ("name,sha256\na.json\n", r"line 2 is 'a\.json'"),
    ],
)
def test_a_malformed_manifest(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "manifest.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"manifest\.csv: .*{problem}"):
        read_manifest(path)


def test_a_missing_manifest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.csv, study\.manifest: there is no such file"):
        read_manifest(tmp_path / "manifest.csv")


# ------------------------------------------------------------------------------------------- download


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.requests.append(self.path)  # type: ignore[attr-defined]
        status, body, declared = self.server.pages.get(self.path, (404, b"", 0))  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Content-Length", str(declared))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    monkeypatch.setenv("NO_PROXY", "*")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.pages = {}  # type: ignore[attr-defined]
    server.requests = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}/data.zip"


def readable(view: ArchiveFiles) -> None:
    list(view.read(list(CONTENTS)))


def test_a_download_is_kept_and_used_again(
    tmp_path: Path, server: ThreadingHTTPServer, capsys: pytest.CaptureFixture[str]
) -> None:
    body = archive(tmp_path / "source.zip", CONTENTS, "repository/").read_bytes()
    server.pages["/data.zip"] = (200, body, len(body))  # type: ignore[attr-defined]
    path = tmp_path / "cache" / "kept.zip"
    for _ in range(2):
        view = fetch_archive(address(server), path, readable)
        assert dict(view.read(list(CONTENTS))) == CONTENTS
    assert server.requests == ["/data.zip"]  # type: ignore[attr-defined]
    assert [file.name for file in path.parent.iterdir()] == ["kept.zip"]
    assert capsys.readouterr().err == f"downloading {address(server)} to {path}, once\n"


# requests leaves the socket of a response that broke off to the garbage collector
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("failure", ["not found", "server error", "broken off", "truncated", "refused", "hash"])
def test_a_failed_download_says_what_to_do_and_leaves_nothing(
    tmp_path: Path, server: ThreadingHTTPServer, failure: str
) -> None:
    body = archive(tmp_path / "source.zip").read_bytes()
    short = body[: len(body) // 2]
    url, check = address(server), readable
    pages = {
        "not found": (404, b"", 0),
        "server error": (503, b"", 0),
        "broken off": (200, short, len(body)),
        "truncated": (200, short, len(short)),
        "hash": (200, body, len(body)),
    }
    server.pages["/data.zip"] = pages.get(failure)  # type: ignore[attr-defined]
    if failure == "refused":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{free.getsockname()[1]}/data.zip"
    if failure == "hash":

        def check(view: ArchiveFiles) -> None:
            check_hash("data/a.json", "00", {"data/a.json": "11"}, source=view.where("data/a.json"))

    expected = {
        "not found": "404",
        "server error": "503",
        "broken off": "could not be downloaded",
        "truncated": "not a readable zip archive",
        "refused": "could not be downloaded",
        "hash": r"member data/a\.json: has SHA-256 00",
    }
    path = tmp_path / "cache" / "kept.zip"
    with pytest.raises(InputError, match=expected[failure]) as raised:
        fetch_archive(url, path, check)
    message = str(raised.value)
    assert f"get {url} by other means and save it as {path}, or set study.root=FOLDER" in message
    assert list(path.parent.iterdir()) == []
    assert "tmp" not in message.replace(str(tmp_path), "")
    del raised
    gc.collect()


def test_a_file_put_into_the_cache_by_hand_needs_no_network(tmp_path: Path) -> None:
    path = archive(tmp_path / "kept.zip")
    view = fetch_archive("http://127.0.0.1:9/none.zip", path, readable)
    assert dict(view.read(list(CONTENTS))) == CONTENTS


def test_a_folder_view_names_the_file_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "data" / "a.json").mkdir(parents=True)
    with pytest.raises(InputError, match=r"a\.json: is a folder"):
        next(FolderFiles(tmp_path).read(["data/a.json"]))
