"""Public data: a setting before the environment before a download, and a job knows which data it read."""

from __future__ import annotations

from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.resume import job_identity
from shannon_game.experiments.studies.comparison.lm_game import lm_game
from shannon_game.experiments.studies.public_data import VARIABLE, downloaded, with_public_folders
from shannon_game.experiments.studies.rankings.rank_perplexity import rank_perplexity
from tests.experiments.command import config
from tests.experiments.studies.comparison.tiny_lm_game import CONFIG, RESPONSES, contents, write_folder
from tests.experiments.studies.conftest import address

NOWHERE = "http://127.0.0.1:9/{commit}/{file}"


@pytest.fixture
def above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder above that of a small study, named by the environment."""
    write_folder(tmp_path / "data" / "lm_game", contents())
    monkeypatch.setenv(VARIABLE, str(tmp_path / "data"))
    return tmp_path / "data"


def test_a_study_is_read_from_the_environments_folder_unless_a_setting_names_one(above: Path, tmp_path: Path) -> None:
    settings = {**CONFIG, "participants": "all", "repeats": "keep", "cache_dir": tmp_path, "url": NOWHERE}
    n_answers = lm_game(**settings).sizes["response"]
    fewer = contents()
    fewer[RESPONSES] = fewer[RESPONSES][:3]
    write_folder(tmp_path / "other", fewer)
    assert lm_game(**settings, root=tmp_path / "other").sizes["response"] == 3 < n_answers


def test_a_folder_without_the_study_is_said_and_one_that_is_not_there_refused(
    above: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="could not be downloaded"):
        rank_perplexity(cache_dir=tmp_path, url=NOWHERE)
    assert f"{VARIABLE}={above} has no rank_perplexity/" in capsys.readouterr().err
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))
    for read in (lambda: lm_game(cache_dir=tmp_path), lambda: with_public_folders(config("study=provo"))):
        with pytest.raises(InputError, match=f"environment, {VARIABLE}: is .*gone', and there is no such folder"):
            read()
    assert with_public_folders(config("study=simulated")) == config("study=simulated")


@pytest.mark.parametrize("checksum", [f"sha256:{0:064}", f"git:{0:040}"])
def test_a_download_with_another_hash_is_not_kept(tmp_path: Path, server: ThreadingHTTPServer, checksum: str) -> None:
    server.pages["/a.zip"] = (200, b"other", 5)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"could not be downloaded \(ValueError.*unpack it yourself"):
        downloaded(f"{address(server)}/a.zip", tmp_path / "kept/a.zip", "unpack it yourself", checksum=checksum)
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize(("of", "setting"), [("study=lm_game", "study.root"), ("+exp=reproduce", "data.lm_game")])
def test_a_job_is_another_one_when_the_environments_data_change(above: Path, of: str, setting: str) -> None:
    plain = config(*([] if of.startswith("+") else ["+exp=perplexity"]), of)
    first = job_identity(with_public_folders(plain))
    assert set(first.data) == {setting}
    assert first == job_identity(with_public_folders(plain))
    path = above / "lm_game" / RESPONSES
    path.write_text(path.read_text() + " ")
    assert job_identity(with_public_folders(plain)).data != first.data
    assert first != job_identity(plain)
