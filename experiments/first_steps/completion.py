"""``shannon-game --completion bash|zsh|fish``: a script that completes experiments, studies and settings' groups.

Names stand in the script, so that a press of Tab starts no Python. In bash it also completes the settings of the
experiment on the line (``experiment.``): the first time it asks ``--completion settings NAME``, and keeps the answer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files

from omegaconf import OmegaConf

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.experiments.harness.choice import CHOICES
from shannon_game.experiments.harness.job import before
from shannon_game.experiments.harness.stand_ins import import_for_settings
from shannon_game.inference.settings import setting_lines

_OWN = ("doctor", "demo")
_FLAGS = ("--help", "--version", "--multirun", "--cfg", "--completion")

SHELLS = ("bash", "zsh", "fish")


def names() -> dict[str, list[str]]:
    """Groups of settings as on the command line, ``+exp=`` the first, and what each may be."""
    groups = sorted(
        folder.name
        for folder in files("shannon_game.conf").iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
    )
    groups.remove("exp")
    return {f"{'+' if group == 'exp' else ''}{group}=": _options(group) for group in ("exp", *groups)}


def _options(group: str) -> list[str]:
    found = (file.name for file in files("shannon_game.conf").joinpath(group).iterdir())
    return sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))


def script(shell: str) -> str:
    """Script that a shell reads to complete ``shannon-game``."""
    if shell not in SHELLS:
        raise unknown_choice("shell", shell, SHELLS, source="--completion")
    found = names()
    words = [*found["+exp="], *_OWN, *_FLAGS]
    parts = {
        "@VALUES@": " ".join(f"{group}{option}" for group, options in found.items() for option in options),
        "@STARTS@": " ".join([*found, *words]),
        "@GROUPS@": " ".join(found),
        "@WORDS@": " ".join(words),
        "@PATTERN@": "|".join(found),
        "@CHOICES@": "|".join(f"{name}=*" for name in CHOICES),
        "@EXPERIMENTS@": " ".join(found["+exp="]),
    }
    text = files("shannon_game.experiments.first_steps").joinpath(f"completion.{shell}").read_text(encoding="utf-8")
    for mark, names_there in parts.items():
        text = text.replace(mark, names_there)
    return text


def settings(name: str, choice: str = "") -> list[str]:
    """Names of the settings of an experiment, or of its choice, each with the sign that its value follows."""
    known = _options("exp")
    if name not in known:
        raise unknown_choice("experiment", name, known, source="--completion settings")
    group, _, option = choice.partition("=")
    target = _target(group, option) if option in (_options(group) if group in CHOICES else ()) else None
    target = target or str(_target("exp", name))
    of_class, _ = import_for_settings(target)
    lines = setting_lines(of_class.settings_class, lambda key: before(key, of_class.settings_class))
    return [f"{key}=" for key, *_ in lines]


def _target(group: str, name: str) -> str | None:
    """Function that a file of settings names; None where it leaves that to its experiment."""
    text = files("shannon_game.conf").joinpath(group, f"{name}.yaml").read_text(encoding="utf-8")
    found: str | None = OmegaConf.select(OmegaConf.create(text), "experiment._target_")
    return found


def completion(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game --completion SHELL``: print the shell's script; or ``settings NAME``, of an experiment."""
    if len(arguments) in (2, 3) and arguments[0] == "settings":
        sys.stdout.write("\n".join(settings(*arguments[1:])) + "\n")
        return 0
    if len(arguments) != 1:
        raise InputError(f"has {len(arguments)} values, should have one of: {', '.join(SHELLS)}", field="--completion")
    sys.stdout.write(script(arguments[0]))
    return 0
