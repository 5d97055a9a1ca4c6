"""The help: what it costs, that it is Hydra's, and that no name in it is broken."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest

from experiments.harness import help as command_help_module
from experiments.harness.help import command_help, experiment_help
from experiments.harness.job import before
from experiments.harness.registry import entry_of, load_target
from inference.settings import setting_lines
from tests.experiments.command import ROOT, config, environment


@pytest.mark.parametrize("name", ["perplexity", "design", "collect", "tvd"])
def test_every_setting_stands_in_one_piece_with_its_meaning(name: str) -> None:
    text = experiment_help(name, width=100)
    settings = load_target(entry_of(config(f"+exp={name}").experiment, what="experiment"), what="experiment")
    lines = setting_lines(settings.settings_class, lambda key: before(key, settings.settings_class))
    for key, _, _, meaning in lines:
        assert f"\n{key} " in text
        # words that are too long for a column may be broken
        for word in meaning.split():
            assert len(word) > 15 or word in text


@pytest.mark.subprocess
def test_the_help_is_the_one_that_hydra_prints() -> None:
    # with another setting the command leaves it to Hydra
    command = [sys.executable, "-m", "experiments.run", "--help", "seed=1"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == command_help().split()


@pytest.mark.subprocess
def test_the_help_imports_no_library_of_tables_or_figures() -> None:
    code = (
        "import sys; sys.argv = ['shannon-game', '--help']\n"
        "from experiments.run import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'pandas', 'xarray', 'matplotlib', 'scipy', 'h5netcdf', 'rich.table', 'torch', 'pymc'}\n"
        "print('found:', *sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "found:", done.stderr


def test_the_example_is_right() -> None:
    assert doctest.testmod(command_help_module).failed == 0
