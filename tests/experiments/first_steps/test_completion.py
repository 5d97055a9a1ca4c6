"""Completion: that the real shells offer what the folders of settings hold."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.first_steps import completion
from shannon_game.experiments.first_steps.completion import names, script
from tests.experiments.command import ROOT

PARTS = [
    ("+exp=perp", {"+exp=perplexity"}),
    ("study=lm_game_", {"study=lm_game_documents", "study=lm_game_top1"}),
    ("sampler=", {f"sampler={path.stem}" for path in (ROOT / "conf/sampler").glob("*.yaml")}),
    ("stu", {"study="}),
    ("doc", {"doctor"}),
    ("human_l", {"human_loss"}),
    ("study=nothing_like_it", set()),
]


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


@pytest.fixture
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "completion"
    path.write_text(script(request.param), encoding="utf-8")
    return path


def test_every_yaml_file_is_offered() -> None:
    found = {f"conf/{group.strip('+=')}/{name}.yaml" for group, options in names().items() for name in options}
    assert found == {path.relative_to(ROOT).as_posix() for path in (ROOT / "conf").glob("*/*.yaml")}


@pytest.mark.parametrize("source", ["bash"], indirect=True)
@pytest.mark.parametrize(("typed", "offered"), PARTS)
@pytest.mark.parametrize("breaks", [" =:", " "])
def test_bash(source: Path, typed: str, offered: set[str], breaks: str) -> None:
    needs("bash")
    code = (
        f'COMP_WORDBREAKS="{breaks}"; source {source}; COMP_LINE="shannon-game {typed}"; COMP_POINT=${{#COMP_LINE}}; '
        '_shannon_game; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True)
    # what bash puts in the place of the word that it sees
    kept = typed.partition("=")[0] + "=" if "=" in typed and "=" in breaks else ""
    assert {kept + line for line in done.stdout.split()} == offered


@pytest.mark.parametrize("source", ["bash"], indirect=True)
@pytest.mark.parametrize(
    "line",
    [
        "+exp=perplexity vary=bootstrap experiment.half",
        "perplexity vary=bootstrap n=10 experiment.half",
        "experiment.half",
    ],
)
def test_bash_completes_the_settings_of_the_experiment_on_the_line(source: Path, line: str) -> None:
    needs("bash")
    code = (
        # what the command would say; it is asked once
        f'shannon-game() {{ echo "$3 $4" >> {source}.asked; echo experiment.half_samples= experiment.cluster=; }}; '
        f'source {source}; COMP_LINE="shannon-game {line}"; COMP_POINT=${{#COMP_LINE}}; '
        '_shannon_game; _shannon_game; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True)
    known = "bootstrap" in line
    assert done.stdout.split() == (["experiment.half_samples="] if known else [])
    assert not known or Path(f"{source}.asked").read_text(encoding="utf-8") == "perplexity vary=bootstrap\n"


def test_settings_are_those_of_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert completion.completion(["settings", "perplexity", "vary=bootstrap"]) == 0
    found = capsys.readouterr().out.split()
    assert "experiment.half_samples=" in found
    assert all(name.endswith("=") for name in found)
    assert "experiment.half_samples=" not in completion.settings("perplexity")
    with pytest.raises(InputError, match="did you mean 'perplexity'"):
        completion.settings("perplexty")


@pytest.mark.parametrize("source", ["fish"], indirect=True)
@pytest.mark.parametrize(("typed", "offered"), PARTS)
def test_fish(source: Path, typed: str, offered: set[str], tmp_path: Path) -> None:
    needs("fish")
    code = f"source {source}; complete -C 'shannon-game {typed}'"
    home = os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True, check=True, env=home)
    assert set(done.stdout.split()) == offered


@pytest.mark.parametrize("source", ["zsh"], indirect=True)
@pytest.mark.parametrize(("typed", "line"), [("+exp=perp", "+exp=perplexity"), ("stu", "study="), ("doc", "doctor")])
def test_zsh(source: Path, typed: str, line: str, tmp_path: Path) -> None:
    needs("zsh")
    # its completion works on a line that is being edited: a terminal, a Tab, and what then stands on the line
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(HOME=str(tmp_path), TERM="dumb", PS1="")
        os.execvp("zsh", ["zsh", "-f", "-i"])
    os.write(terminal, f"source {source}; shannon-game() {{ print said:$1: }}; print rea''dy\n".encode())
    assert "ready" in _read(terminal, "ready")
    os.write(terminal, f"shannon-game {typed}\t\n".encode())
    assert f"said:{line}:" in _read(terminal, f"said:{line}:")
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(child, 0)


def _read(terminal: int, wanted: str, seconds: float = 300) -> str:
    """Read what a terminal shows until a text has come."""
    shown, end = "", time.monotonic() + seconds
    while wanted not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    return shown


@pytest.mark.parametrize("arguments", [[], ["tcsh"], ["bash", "zsh"]])
def test_another_shell_is_refused(arguments: list[str]) -> None:
    with pytest.raises(InputError, match="bash, zsh, fish"):
        completion.completion(arguments)
