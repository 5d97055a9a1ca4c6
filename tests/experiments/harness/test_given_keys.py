"""A key that is given as a setting is refused and stands in no file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shannon_game.experiments import run as command
from shannon_game.experiments.harness.given_keys import refuse_keys
from tests.experiments.command import run

KEY = "sk-proj-0123456789abcdef"
NAMES = ("api_key", "apikey", "API_KEY", "openai_api_key", "secret", "password", "key", "token", "auth_token")


@pytest.mark.parametrize(
    "override",
    [
        f"+models.api.key_env={KEY}",
        f"+models.api.key_env='{KEY}'",
        f"models.api.key_env=MY_KEY,{KEY}",
        "+models.api.key_env=${oc.env:OPENAI_API_KEY}",
        "+models.api.key_env=openai",
        "+models.api.key_env=0123456789",
        *(f"+models.api.{name}={KEY}" for name in NAMES),
        f"+models.api={{api_key: {KEY}}}",
        f"+models={{api: {{model: m, key_env: {KEY}}}}}",
        f"+experiment.api_key={KEY}",
        f"api_key={KEY}",
        f"models.api.base_url=https://me:{KEY}@host/v1",
        f"models.api.base_url=https://host/v1?key={KEY}",
        f"models.api.base_url=https://host/v1#{KEY}",
        f"models.api.model={KEY}",
        f"study.url=postgresql://me:{KEY}@host/answers",
        f"study.url='host=h password={KEY}'",
        f"experiment.database=mysql://host/answers?user=me&password={KEY}",
    ],
)
@pytest.mark.parametrize("sweep", [False, True])
def test_a_key_on_the_command_line(
    override: str, sweep: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # main() sets it, and reads it
    monkeypatch.setenv("HYDRA_FULL_ERROR", "")
    monkeypatch.setattr(
        sys, "argv", ["shannon-game", *(["-m"] if sweep else []), "+exp=ranks", "study=texts", "model=[api]", override]
    )
    assert command.main() == command.EXIT_INPUT
    said = capsys.readouterr()
    assert "is not given as a setting" in said.err
    assert said.err.count("\n") == 1
    assert KEY not in said.err + said.out
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_key_passes() -> None:
    refuse_keys(
        [
            "+exp=ranks",
            "study=texts",
            "model=[api]",
            "-m",
            "+models.api.key_env=OPENAI_API_KEY,_OTHER_2",
            "+models.api.key_env=''",
            "models.api.base_url=https://host:8000/v1",
            "+models.api.max_tokens=3",
            "experiment.tokenizer=tiktoken:o200k_base",
            "experiment.n_tokens=4",
            "study.path=/data/secret=s/key",
            "+model={smollm2: {path: token}}",
            "study.url=postgresql://me@host:5432/answers",
            "study.url=postgresql://me:${oc.env:WORD}@host/answers",
        ]
    )


@pytest.mark.subprocess
def test_a_run_with_a_key_in_its_file_leaves_it_nowhere(tmp_path: Path) -> None:
    (tmp_path / "mine/model").mkdir(parents=True)
    lines = ["# @package models.api", "source: api", "base_url: https://host/v1", "model: m", f"key_env: {KEY}"]
    (tmp_path / "mine/model/paid.yaml").write_text("\n".join(lines) + "\n")
    arguments = (
        "--config-dir",
        "mine",
        "+exp=ranks",
        "study=texts",
        "model=[paid]",
        "experiment.tokenizer=study",
        "study.path=x",
    )
    # Hydra writes where it is told, and the settings of a sweep beside its jobs
    (tmp_path / "here/.hydra").mkdir(parents=True)
    own = tmp_path / "here/.hydra/own.yaml"
    own.write_text(f"mine: {KEY}")
    run(tmp_path, *arguments, "-m", "seed=1", "hydra.sweep.dir=here/sweep")
    done = run(tmp_path, *arguments, "hydra.run.dir=here/run", "hydra.output_subdir=settings")
    assert done.returncode == 2
    assert own.read_text() == f"mine: {KEY}"
    own.unlink()
    assert done.stderr.startswith("error: settings, key_env: a key is not given as a setting")
    assert KEY not in done.stderr + done.stdout
    written = [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"config.yaml", "multirun.yaml", "run.log", "status.json"}
    for path in written:
        assert KEY.encode() not in path.read_bytes()
