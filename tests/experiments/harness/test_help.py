"""The help: what it costs, that it is Hydra's, and that no name in it is broken."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shannon_game.experiments.harness.registry import EXTRAS
from tests.experiments.command import ROOT, environment


@pytest.mark.subprocess
def test_help_of_every_experiment_and_study_prints_without_any_extra() -> None:
    absent = sorted({package for packages in EXTRAS.values() for package in packages} | {"numba", "pytensor"})
    code = (
        "import sys\n"
        "class Without:\n"
        "    def __init__(self, finder):\n        self.finder = finder\n"
        "    def __getattr__(self, name):\n        return getattr(self.finder, name)\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        absent = name.partition('.')[0] in {absent}\n"
        "        return None if absent else self.finder.find_spec(name, path, target)\n"
        "sys.meta_path[:] = map(Without, sys.meta_path)\n"
        "from importlib.resources import files\n"
        "from omegaconf import OmegaConf\n"
        "from shannon_game.experiments.harness.help import experiment_help\n"
        "from shannon_game.experiments.harness.stand_ins import import_for_settings\n"
        "from shannon_game.inference.settings import setting_lines\n"
        "for group in ('exp', 'study'):\n"
        "    for file in files('shannon_game.conf').joinpath(group).iterdir():\n"
        "        if not file.name.endswith('.yaml'):\n            continue\n"
        "        node = OmegaConf.create(file.read_text())\n"
        "        function, missing = import_for_settings((node.get('experiment') or node)['_target_'])\n"
        "        assert setting_lines(function.settings_class) is not None\n"
        "        assert function.__doc__, file.name\n"
        "print(experiment_help('human_loss'))\n"
        "sys.argv = ['shannon-game', 'human_loss']\n"
        "from shannon_game.experiments.run import main\n"
        "print(main())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert "\nexperiment.grid " in done.stdout
    assert "pip install -c constraints.txt '.[bayes]'\n" in done.stdout
    # what cannot run is refused as before
    assert done.stdout.splitlines()[-1] == "2"
