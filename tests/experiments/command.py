"""Run the command as a user does: in its own process, from another directory."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hydra import compose, initialize_config_module
from omegaconf import DictConfig

from shannon_game.experiments.harness.job import Job, prepare
from shannon_game.experiments.harness.result import ExperimentResult

ROOT = Path(__file__).parents[2]

TINY = (
    "study.n_items=12",
    "study.n_reference_items=30",
    "study.vocab_size=300",
    "study.n_candidates=40",
    "study.n_participants=8",
    "output.dpi=40",
)
"""Overrides that make the simulated study small."""

FEW_DIVERGENT = "experiment.gate.divergent=16"
"""One draw in 1,000 of the default sampler: one diverges on one processor and none on another, which biases nothing."""

COMPILED_FAST = ("sampler.name=pymc", "sampler.chains=2", "sampler.cores=1")
"""For a few draws: nutpie, whose draws are the faster ones, takes five times as long to compile a model."""


def config(*overrides: str) -> DictConfig:
    """The composed config, as the command has it."""
    with initialize_config_module("shannon_game.conf", version_base="1.3"):
        return compose("config", overrides=list(overrides))


def prepared(*overrides: str) -> Job:
    """Experiment, settings and study of a command line."""
    # an error about a wrong kind of study lists the right ones, which only Hydra knows
    with initialize_config_module("shannon_game.conf", version_base="1.3"):
        return prepare(compose("config", overrides=list(overrides)), overrides)


def run_experiment(*overrides: str) -> ExperimentResult:
    """Result of a command line, in this process."""
    return prepared(*overrides).run()


def environment() -> dict[str, str]:
    # the checkout that is tested, whatever is installed
    return os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}


def command(*arguments: str, patch: str = "") -> list[str]:
    """Command line; ``patch`` is Python that runs before the command, to break something."""
    start = (
        ["-c", f"{patch}\nimport sys\nfrom shannon_game.experiments.run import main\nsys.exit(main())"] if patch else []
    )
    return [sys.executable, *(start or ["-m", "experiments.run"]), *arguments]


@cache
def _forks() -> subprocess.Popen[str]:
    """The process that is forked for every ``run``; it ends with this one."""
    start = [sys.executable, str(Path(__file__).with_name("forked.py"))]
    forks = subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True)
    atexit.register(forks.communicate)
    return forks


def run(folder: Path, *arguments: str, patch: str = "") -> subprocess.CompletedProcess[str]:
    # for the tiers of tests: this too starts Python
    sys.audit("subprocess.Popen", sys.executable, arguments, str(folder), None)
    forks = _forks()
    assert forks.stdin is not None
    assert forks.stdout is not None
    with tempfile.NamedTemporaryFile("r+") as out, tempfile.NamedTemporaryFile("r+") as err:
        asked = {"folder": str(folder), "arguments": arguments, "patch": patch, "environment": environment()}
        print(json.dumps(asked | {"stdout": out.name, "stderr": err.name}), file=forks.stdin, flush=True)
        code = int(forks.stdout.readline())
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def break_experiment(condition: str, what: str) -> str:
    """Patch: the perplexity experiment raises ``what`` where ``condition`` (on ``settings``) holds."""
    return (
        "import shannon_game.experiments.comparison.perplexity as module\n"
        "real = module.perplexity\n"
        "def broken(study, settings):\n"
        f"    if {condition}:\n"
        f"        raise {what}\n"
        "    return real(study, settings)\n"
        "broken.settings_class = real.settings_class\n"
        "module.perplexity = broken\n"
    )


def behind_endpoint(url: str, **more: object) -> list[str]:
    """Overrides of a chat model behind a server on this machine; the fixture ``api_key`` has its key."""
    prices = dict.fromkeys(("usd_per_million_input", "usd_per_million_output", "budget_usd"), 1.0)
    given = {"base_url": url, "model": "fake"} | prices
    added = {"key_env": "FAKE_KEY", "kind": "chat", "backoff_s": 0} | more
    return [
        "model=[api]",
        *(f"models.api.{name}={value}" for name, value in given.items()),
        *(f"+models.api.{name}={value}" for name, value in added.items()),
    ]


def files(folder: Path) -> Sequence[str]:
    """Visible files below a folder, sorted."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and ".hydra" not in path.relative_to(folder).parts
    )
