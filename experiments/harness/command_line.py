"""The words of the command line, put so that Hydra's grammar reads in them what the user meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from estimators.errors import InputError, how_to_install, unknown_choice

__all__ = ["SEARCH_PATH", "one_line", "quoted", "readable", "search_path"]

SEARCH_PATH = "hydra.searchpath="
"""Override with the folders in which Hydra looks besides ours."""

_LAUNCHER_EXTRAS = {"joblib": "joblib", "submitit_local": "slurm", "submitit_slurm": "slurm", "ray": "ray"}
_BEFORE_QUOTE = re.compile(r"(\\+)('|$)")
_PLAIN = re.compile(r"[\w./~@-]+")
# a list, a mapping, a text in quotes: what the user wrote for Hydra is left as it is
_HAS_STRUCTURE = re.compile(r"\s*[{\['\"]|.*\$\{", flags=re.DOTALL)


def quoted(text: str) -> str:
    r"""A string as Hydra's grammar of overrides reads it, whatever it holds.

    Examples
    --------
    >>> quoted("data/game"), quoted("Antwort (getippt)"), quoted("don't")
    ('data/game', "'Antwort (getippt)'", "'don\\'t'")
    """
    if _PLAIN.fullmatch(text):
        return text
    # a backslash counts only before a quote
    escaped = _BEFORE_QUOTE.sub(r"\1\1\2", text).replace("'", "\\'")
    return f"'{escaped}'"


def readable(text: str, *, multirun: bool) -> str:
    """Quote the value of a setting that Hydra cannot read, such as the name of a column with brackets.

    Outside a sweep, several values with a space between them are one text too: the shell was told to keep the space.

    Parameters
    ----------
    text : str
        ``setting=value``.
    multirun : bool
        Whether the command is a sweep.

    Raises
    ------
    InputError
        If it cannot be read as a setting and its value.

    Examples
    --------
    >>> readable("study.columns.response=Antwort (getippt)", multirun=False)
    "study.columns.response='Antwort (getippt)'"
    """
    parser = OverridesParser.create()
    key, equals, value = text.partition("=")
    if not equals and not text.startswith("~"):
        raise InputError(
            f"is no setting; +exp={text} asks for an experiment, setting=value sets one",
            source="command line",
            field=text,
        )
    as_text = f"{key}={quoted(value)}" if equals and not _HAS_STRUCTURE.match(value) else text
    try:
        is_sweep = parser.parse_override(text).is_sweep_override()
    except HydraException:
        try:
            parser.parse_override(as_text)
        except HydraException as error:
            reason = " ".join(str(error).partition("See https")[0].split())
            raise InputError(
                "cannot be read; write setting=value, a list as [a,b], a mapping as {a: 1}, a text with such signs as "
                f"\"'...'\" ({reason})",
                source="command line",
                field=text,
            ) from error
        return as_text
    return as_text if is_sweep and not multirun and " " in value.strip() else text


def search_path(arguments: Sequence[str], more: Iterable[str]) -> list[str]:
    """Join the folders of the user's ``hydra.searchpath`` and more of them, since Hydra takes the setting once.

    Returns
    -------
    list of str
        The one setting; empty if there is no folder.
    """
    parser = OverridesParser.create()
    given = [parser.parse_override(text).value() for text in arguments if text.startswith(SEARCH_PATH)]
    folders = [*(str(each) for value in given for each in (value if isinstance(value, list) else [value])), *more]
    return [f"{SEARCH_PATH}[{','.join(map(quoted, folders))}]"] if folders else []


def one_line(error: BaseException, settings: Sequence[str]) -> str:  # noqa: PLR0911 - one return a kind of mistake
    """Say in one line what is wrong, where Hydra and OmegaConf say it in many.

    Parameters
    ----------
    error : BaseException
    settings : sequence of str
        Those at the root of the config.
    """
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, option = error.missing_cfg_file.rpartition("/")
        extra = _LAUNCHER_EXTRAS.get(option) if group == "hydra/launcher" else None
        if extra is not None:
            return how_to_install(f"launcher {option!r}", extra)
        return str(unknown_choice("experiment" if group == "exp" else group, option, error.options))
    text = " ".join(str(error).split())
    if isinstance(error, MissingMandatoryValue):
        key = text.rpartition("full_key: ")[2].split(" ")[0]
        return f"{key} has no value yet; add {key}=... to the command (`--cfg job` shows the settings)"
    unknown = re.match(r"Could not override '([^'@]+)[^']*'\.( No match in the defaults list)?", text)
    if isinstance(error, HydraException) and unknown:
        name, root = unknown[1], unknown[1].partition(".")[0]
        if unknown[2]:
            return f"command line, {name}: does nothing here; neither the run nor this experiment has such a group"
        if root in (*settings, "hydra"):
            return f"unknown setting {name!r}; add `--cfg all` to the command to see the settings that exist"
        return str(unknown_choice("setting", root, settings, source="command line"))
    if isinstance(error, HydraException) and isinstance(error.__cause__, OmegaConfBaseException):
        text += " " + " ".join(str(error.__cause__).split())
    # OmegaConf goes on about where the key stands in its tree of objects
    problem, _, rest = text.partition(" full_key: ")
    key = rest.split(" ")[0]
    return f"{problem} ({key})" if key and key not in problem else problem
