"""``shannon-game --completion bash|zsh|fish``: a script that completes experiments, studies and settings' groups.

Names stand in the script, so that a press of Tab starts no Python.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files

from estimators.errors import InputError, unknown_choice

__all__ = ["SHELLS", "completion", "names", "script"]

_OWN = ("doctor", "demo")
_FLAGS = ("--help", "--version", "--multirun", "--cfg", "--completion")

_BASH = """\
_shannon_game() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local word="${line##* }"
    COMPREPLY=()
    if [[ "$word" == *=* ]]; then
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

    Returns
    -------
    dict of str to list of str

    Examples
    --------
    >>> found = names()
    >>> "perplexity" in found["+exp="], "simulated" in found["study="]
    (True, True)
    """
    groups = sorted(
        folder.name for folder in files("conf").iterdir() if folder.is_dir() and folder.name != "__pycache__"
    )
    groups.remove("exp")
    return {f"{'+' if group == 'exp' else ''}{group}=": _options(group) for group in ("exp", *groups)}


def _options(group: str) -> list[str]:
    found = (file.name for file in files("conf").joinpath(group).iterdir())
    return sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))


def script(shell: str) -> str:
    """Script that a shell reads to complete ``shannon-game``.

    Parameters
    ----------
    shell : {"bash", "zsh", "fish"}

    Returns
    -------
    str

    Raises
    ------
    InputError
        For another shell.

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
    }
    text = SHELLS[shell]
    for mark, names_there in parts.items():
        text = text.replace(mark, names_there)
    return text


def completion(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game --completion SHELL``: print the shell's script.

    Parameters
    ----------
    arguments : sequence of str

    Returns
    -------
    int
        0.

    Raises
    ------
    InputError
        If there is not one shell, or it is not known.
    """
    if len(arguments) != 1:
        raise InputError(f"has {len(arguments)} values, should have one of: {', '.join(SHELLS)}", field="--completion")
    sys.stdout.write(script(arguments[0]))
    return 0
