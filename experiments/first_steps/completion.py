"""``shannon-game --completion bash|zsh|fish``: a script that completes experiments, studies and settings' groups.

Names stand in the script, so that a press of Tab starts no Python. In bash it also completes the settings of the
experiment on the line (``experiment.``): the first time it asks ``--completion settings NAME``, and keeps the answer.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files

from omegaconf import OmegaConf

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.experiments.harness.job import before
from shannon_game.experiments.harness.stand_ins import import_for_settings
from shannon_game.inference.settings import setting_lines

__all__ = ["SHELLS", "completion", "names", "script", "settings"]

_OWN = ("doctor", "demo")
_FLAGS = ("--help", "--version", "--multirun", "--cfg", "--completion")

_BASH = """\
_shannon_game() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local word="${line##* }"
    COMPREPLY=()
    if [[ "$word" == experiment.* && "$word" != *=* ]]; then
        local asked="" each
        for each in $line; do
            case "$each" in
                +exp=*) asked="${each#+exp=}" ;;
                *) if [[ " @EXPERIMENTS@ " == *" $each "* ]]; then asked="${asked:-$each}"; fi ;;
            esac
        done
        if [[ -n "$asked" ]]; then
            # seconds the first time: it starts Python
            if [[ "$_SHANNON_GAME_ASKED" != "$asked" ]]; then
                _SHANNON_GAME_SETTINGS="$(shannon-game --completion settings "$asked" 2> /dev/null)"
                _SHANNON_GAME_ASKED="$asked"
            fi
            COMPREPLY=($(compgen -W "$_SHANNON_GAME_SETTINGS" -- "$word"))
            compopt -o nospace 2> /dev/null
        fi
    elif [[ "$word" == *=* ]]; then
        COMPREPLY=($(compgen -W "@VALUES@" -- "$word"))
        # where a word ends at the sign, bash replaces only what follows it
        if [[ "$COMP_WORDBREAKS" == *=* ]]; then COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}"); fi
    else
        COMPREPLY=($(compgen -W "@STARTS@" -- "$word"))
        if [[ "${#COMPREPLY[@]}" == 1 && "${COMPREPLY[0]}" == *= ]]; then compopt -o nospace 2> /dev/null; fi
    fi
}
complete -o default -F _shannon_game shannon-game
"""

_ZSH = """\
if ! type compdef > /dev/null; then autoload -Uz compinit && compinit -u; fi
_shannon_game() {
    local -a values groups words
    values=(@VALUES@)
    groups=(@GROUPS@)
    words=(@WORDS@)
    if [[ "$PREFIX" == *=* ]]; then
        compadd -a values
        [[ "${PREFIX%%=*}=" == (@PATTERN@) ]] || _default
    else
        compadd -S '' -a groups
        compadd -a words
    fi
}
compdef _shannon_game shannon-game
"""

_FISH = """\
complete -c shannon-game -e
complete -c shannon-game -f -n 'string match -q "*=*" -- (commandline -ct)' -a '@VALUES@'
complete -c shannon-game -f -n 'not string match -q "*=*" -- (commandline -ct)' -a '@STARTS@'
"""

SHELLS: Mapping[str, str] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""Shell -> the script, names left open."""


def names() -> dict[str, list[str]]:
    """Groups of settings as on the command line, ``+exp=`` the first, and what each may be.

    Examples
    --------
    >>> found = names()
    >>> "perplexity" in found["+exp="], "simulated" in found["study="]
    (True, True)
    """
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
    """Script that a shell reads to complete ``shannon-game``.

    Examples
    --------
    >>> "+exp=perplexity" in script("fish")
    True
    """
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
        "@EXPERIMENTS@": " ".join(found["+exp="]),
    }
    text = SHELLS[shell]
    for mark, names_there in parts.items():
        text = text.replace(mark, names_there)
    return text


def settings(name: str) -> list[str]:
    """Names of the settings of an experiment, each with the sign that its value follows.

    Examples
    --------
    >>> "experiment.half_samples=" in settings("bootstrap")
    True
    """
    known = _options("exp")
    if name not in known:
        raise unknown_choice("experiment", name, known, source="--completion settings")
    text = files("shannon_game.conf").joinpath("exp", f"{name}.yaml").read_text(encoding="utf-8")
    target = str(OmegaConf.select(OmegaConf.create(text), "experiment._target_"))
    of_class, _ = import_for_settings(target)
    lines = setting_lines(of_class.settings_class, lambda key: before(key, of_class.settings_class))
    return [f"{key}=" for key, *_ in lines]


def completion(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game --completion SHELL``: print the shell's script; or ``settings NAME``, of an experiment."""
    if len(arguments) == 2 and arguments[0] == "settings":
        sys.stdout.write("\n".join(settings(arguments[1])) + "\n")
        return 0
    if len(arguments) != 1:
        raise InputError(f"has {len(arguments)} values, should have one of: {', '.join(SHELLS)}", field="--completion")
    sys.stdout.write(script(arguments[0]))
    return 0
