"""Run folders that others made links in, addresses with passwords, files of settings with mistakes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments import run as command
from shannon_game.experiments.harness.command_line import check_arguments
from shannon_game.experiments.harness.given_keys import public
from shannon_game.experiments.harness.registry import own_function
from tests.experiments.command import run

WORD = "Zq7wvXy"
BOMB = b"a0: &a0 [x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)
)
QUICK = ("+exp=perplexity", "study.n_items=4", "output.print=false")


def main(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "")
    monkeypatch.setattr(sys, "argv", ["shannon-game", *arguments])
    return command.main()


@pytest.mark.parametrize("link", [".hydra", "run.log", "table.csv"])
def test_a_link_in_a_run_folder_leads_nowhere(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "config.yaml").write_text("a: 1\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / link).symlink_to(mine)
    monkeypatch.chdir(tmp_path)
    assert main(*QUICK, "hydra.run.dir=run", monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [(path.name, path.read_text()) for path in mine.iterdir()] == [("config.yaml", "a: 1\n")]


@pytest.mark.parametrize("name", ["run/status.json", "study/mine.yaml"])
def test_a_pipe_is_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).parent.mkdir()
    os.mkfifo(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    more = ("study=mine", "--config-dir", ".") if name.startswith("study") else ()
    assert main(*QUICK, *more, "hydra.run.dir=run", monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.subprocess
def test_what_comes_from_the_environment_or_has_no_setting_stands_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADDRESS", f"postgresql://me:{WORD}@127.0.0.1:1/answers")
    for number, given in enumerate(
        ("study.url=${oc.env:ADDRESS}", f"+study.token={WORD}", f"+study.a={{b: [{WORD}]}}")
    ):
        done = run(tmp_path, *QUICK[::2], "study=collected", given, f"hydra.run.dir=run{number}")
        assert done.returncode == 2
        assert WORD not in done.stderr + done.stdout
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"config.yaml", "overrides.yaml", "status.json", "run.log"}
    assert not [path for path in written if WORD.encode() in path.read_bytes()]


@pytest.mark.subprocess
def test_a_sweep_beside_the_others_is_whole_and_its_ids_are_private(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", *QUICK, "seed=0,1", "sweep=../x")
    assert done.returncode == 0, done.stderr
    files = [path for job in "01" for path in tmp_path.glob(f"**/{job}/**/*") if path.is_file()]
    names = {"participants.csv", "table.csv", "status.json", "overrides.yaml", "run.log"}
    assert {path.name for path in files} >= names
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


@pytest.mark.parametrize(
    "text",
    [
        b"a: [1\n",
        b"name: x\n\tb: 1\n",
        b"name: \xe4\n",
        b"a: 1\na: 2\n",
        b"a: \0\n",
        b"a: !!int b\n",
        b"a: !!python/name:os.system x\n",
        b"a: &a [x, *a]\n",
        BOMB,
    ],
)
def test_a_damaged_file_of_settings_is_one_line(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "mine.yaml").write_bytes(text)
    with pytest.raises(InputError, match=r"mine\.yaml"):
        check_arguments(["--config-dir", str(tmp_path), "+exp=perplexity", "study=mine"])


@pytest.mark.parametrize("dotted", ["os.system", "shutil.rmtree", "builtins.eval", "..", "os..x", "nowhere.f"])
def test_a_function_that_gives_something_else_is_not_called(dotted: str) -> None:
    with pytest.raises(InputError):
        own_function(dotted, "LogMeans", field="estimator.log_mean")


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{WORD}@host/answers",
        f"postgresql+psycopg://me:a@{WORD}@[::1]:5432/answers",
        f"mysql://:{WORD}@host",
        f"host=h password='{WORD} x' user=me",
        f"postgresql://host/answers?user=me&password={WORD}&x=1",
    ],
)
def test_an_address_is_written_without_its_password(text: str) -> None:
    assert WORD not in str(public({"study": {"url": text}, "list": [text]}))


def test_a_small_parquet_file_of_many_rows(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    from shannon_game import cloze_table

    path = tmp_path / "answers.parquet"
    one = pa.table({"context": ["the cat"] * 10**6, "response": ["sat"] * 10**6})
    with pq.ParquetWriter(path, one.schema) as writer:
        for _ in range(4):
            writer.write_table(one)
    assert path.stat().st_size < 10**5
    with pytest.raises(InputError, match="rows in"):
        cloze_table(path=path)
