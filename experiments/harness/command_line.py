"""The words of the command line, put so that Hydra's grammar reads in them what the user meant."""

from __future__ import annotations

import inspect
import io
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException
from hydra.main import get_args_parser  # type: ignore[attr-defined]
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from shannon_game.estimators.code_identity import package_version
from shannon_game.estimators.errors import InputError, how_to_install, unknown_choice
from shannon_game.estimators.messages import quoted
from shannon_game.experiments.harness import sweep
from shannon_game.experiments.harness.given_keys import refuse_keys
from shannon_game.experiments.harness.job import before, read_of_the_run
from shannon_game.experiments.harness.registry import entry_of, installed_configs, known, load_target
from shannon_game.experiments.harness.result import CHOICES
from shannon_game.experiments.harness.yaml_text import parse_yaml
from shannon_game.inference.settings import setting_lines

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

OWN_COMMANDS: Mapping[str, tuple[str, str, str]] = {
    "doctor": ("shannon_game.experiments.first_steps.doctor", "doctor", ""),
    "demo": ("shannon_game.experiments.first_steps.demo", "demo", ""),
    "study": ("shannon_game.experiments.planning.own_study", "study_command", "collect"),
    "board": ("shannon_game.experiments.boards.merge", "board_command", ""),
    "answers": ("shannon_game.experiments.collect.__main__", "main", "collect"),
}
"""First words that are no experiment -> module and function, imported when it is called, and the extra it needs."""

_Line = tuple[str, str, str, str]
_SEARCH_PATH = "hydra.searchpath="
_LAUNCHERS = {"joblib", "submitit_local", "submitit_slurm", "ray"}
# of a list or a mapping: what stands in quotes, or between signs
_PIECE = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'",:{}\[\]]+""")
# a list, a mapping, a text in quotes: what the user wrote for Hydra is left as it is
_HAS_STRUCTURE = re.compile(r"\s*[{\['\"]|.*\$\{", flags=re.DOTALL)


def readable(text: str, *, multirun: bool) -> str:
    """Quote the value of a setting that Hydra cannot read, such as the name of a column with brackets.

    Outside a sweep, several values with a space between them are one text too: the shell was told to keep the space.
    """
    parser = OverridesParser.create()
    key, equals, value = text.partition("=")
    if not equals and not text.startswith("~"):
        names = [name for name in (*_names_of("exp"), *OWN_COMMANDS) if name.isidentifier()]
        if text not in names and get_close_matches(text, names):
            raise unknown_choice("experiment or command", text, names, source="command line")
        raise InputError(
            f"is no setting; +exp={text} asks for an experiment, setting=value sets one",
            source="command line",
            field=text,
        )
    as_text = f"{key}={quoted(value)}" if equals and not _HAS_STRUCTURE.match(value) else _letters_quoted(text)
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


def _letters_quoted(text: str) -> str:
    """Quote what has letters that Hydra's grammar does not know, such as an umlaut, in a list or a mapping."""

    def piece(found: re.Match[str]) -> str:
        word = found[0].strip()
        if found[0][0] in "'\"" or word.isascii():
            return found[0]
        return found[0].replace(word, quoted(word))

    key, equals, value = text.partition("=")
    return key + equals + _PIECE.sub(piece, value)


def search_path(arguments: Sequence[str], more: Iterable[str]) -> list[str]:
    """Join the folders of the user's ``hydra.searchpath`` and more of them, since Hydra takes the setting once."""
    parser = OverridesParser.create()
    given = [parser.parse_override(text).value() for text in arguments if text.startswith(_SEARCH_PATH)]
    folders = [*(str(each) for value in given for each in (value if isinstance(value, list) else [value])), *more]
    return [f"{_SEARCH_PATH}[{','.join(map(quoted, folders))}]"] if folders else []


def _names_of(group: str) -> list[str]:
    folder = files("shannon_game.conf") / group
    names = [file.name for file in folder.iterdir()] if group and folder.is_dir() else []
    store = ConfigStore.instance()
    names += store.list(group) if group in store.list("") else []
    return sorted(name.removesuffix(".yaml") for name in names)


def one_line(error: BaseException, settings: Sequence[str]) -> str:  # noqa: PLR0911 - one return a kind of mistake
    """Say in one line what is wrong, where Hydra and OmegaConf say it in many."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, option = error.missing_cfg_file.rpartition("/")
        # of a list of names Hydra does not say what there is
        options = error.options or _names_of(group)
        if group == "hydra/launcher" and option in _LAUNCHERS:
            return how_to_install(f"launcher {option!r}", "sweeps")
        if group == "model" and Path(option).exists():
            return f"unknown model {option!r}; the folder or file here is ./{option}: write model=[./{option}]"
        if options:
            return str(unknown_choice("experiment" if group == "exp" else group, option, options))
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


def no_experiment() -> InputError:
    """Build the error for a command without an experiment: it lists those that there are."""
    names = sorted(entry.name.removesuffix(".yaml") for entry in (files("shannon_game.conf") / "exp").iterdir())
    asked = "write shannon-game NAME (the same as +exp=NAME)"
    return InputError(f"no experiment was asked for; {asked}, with NAME one of: {', '.join(names)}")


def experiment_help(name: str, more: Sequence[str] = (), *, width: int = 120) -> str:
    """Say what an experiment answers, and every setting of it and of its study: default, what is right, meaning."""
    with initialize_config_module("shannon_game.conf", version_base="1.3"):
        cfg = compose("config", overrides=[f"+exp={name}", *more])
        entry = entry_of(cfg.experiment, what="experiment")
        others = known("study", kinds=entry.kinds)
    try:
        function: Any = load_target(entry, what="experiment", to_run=False)
    except InputError as lacking:
        return f"+exp={name} takes a {' or '.join(entry.kinds)} study. {lacking}; then --help lists its settings."
    own = function.settings_class
    summary = inspect.cleandoc(function.__doc__ or "").split("\n\n")[0]
    parts = [f"+exp={name} takes a {' or '.join(entry.kinds)} study. {summary}\n"]
    parts += _setting_table(_as_composed(cfg, setting_lines(own, lambda name: before(name, own))), width)
    parts.append(f"\nOf the run: {read_of_the_run(own)}.")
    for setting, choices in getattr(function, "choices", {}).items():
        parts.append(f"With {setting}=NAME it asks something else, with other settings: {', '.join(choices)}.")
    if entry.extra:
        parts.append(f"Needs the extra {', '.join(entry.extra)}.")
    study = entry_of(cfg.study, what="study")
    loader: Any = load_target(study, what="study", to_run=False)
    about = inspect.cleandoc(loader.__doc__ or "").split("\n\n")[0]
    parts.append(f"\nstudy={study.name}: {about}\n")
    parts += _setting_table(_as_composed(cfg, setting_lines(loader.settings_class, "study.")), width)
    parts.append(f"\nOther studies: {', '.join(others)}. Their settings: +exp={name} study=NAME --help")
    return "\n".join(parts)


def _as_composed(cfg: DictConfig, lines: Iterable[_Line]) -> list[_Line]:
    """Settings with the defaults of the YAML files, where these have others than the classes."""
    values = [OmegaConf.select(cfg, key) for key, *_ in lines]
    shown = [value if isinstance(value, str | int | float) and not isinstance(value, bool) else "" for value in values]
    return [(line[0], str(its) or line[1], *line[2:]) for its, line in zip(shown, lines, strict=True)]


def _setting_table(lines: Sequence[_Line], width: int) -> list[str]:
    """Settings in columns; a name that is broken over two lines cannot be copied, the rest can be."""
    from rich.console import Console  # noqa: PLC0415 - every run imports this module, few show help
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("setting", no_wrap=True)
    table.add_column("default", overflow="fold", max_width=26)
    table.add_column("takes", overflow="fold", ratio=2)
    table.add_column("meaning", overflow="fold", ratio=3)
    for line in lines:
        table.add_row(*line)
    width = max(width, max((len(line[0]) for line in lines), default=0) + 80)
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False, markup=False).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def _say_and_leave(text: str) -> None:
    sys.stdout.write(text.rstrip() + "\n")
    sys.exit(0)


def _long_form(text: str) -> str:
    """Read ``collect``, the name of an experiment, as ``+exp=collect``."""
    named = text.isidentifier() and files("shannon_game.conf").joinpath("exp", f"{text}.yaml").is_file()
    return f"+exp={text}" if named else text


def models_by_path(arguments: Sequence[str]) -> list[str]:
    """Read ``model=[smollm2,openai-community/gpt2,./mine]``: with a slash it is a repository of the Hub or a folder.

    Generators with a slash, ``generator=./mine,./other``, are models of the run too, and go by their names.
    """
    from shannon_game.experiments.harness.language_models import found_at  # noqa: PLC0415 - few commands name a model

    given: list[str] = []
    named: list[str] = []
    for text in arguments:
        key, _, value = text.partition("=")
        if key not in ("model", "generator") or "/" not in value or "{" in value:
            given.append(text)
            continue
        names = [name.strip() for name in value.strip("[]").split(",")]
        named += [name for name in names if "/" in name or key == "model"]
        if key == "generator":
            given.append(f"generator.name={','.join(quoted(Path(name).name) for name in names)}")
    known = [name for name in named if "/" not in name]
    given += [f"model=[{','.join(known)}]"] if known else []
    used = set(known)
    for name in dict.fromkeys(name for name in named if "/" in name):
        settings = found_at(name)
        key = re.sub(r"\W", "_", settings["name"])
        # two of one name are refused where all models are known
        key += "_" * (key in used)
        used.add(key)
        given += [f"+models.{key}.{field}={quoted(its)}" for field, its in settings.items()]
    return given


def _check_groups(given: Mapping[str, Override]) -> None:
    """Hydra looks a number or a list up as the name of a file of settings, and says so in many lines."""
    for name, override in given.items():
        options = [] if override.is_sweep_override() else _names_of(name)
        value = override.value()
        # several models may be named, of the user's own folder too
        names = value if name == "model" and isinstance(value, list) else [value]
        if options and not all(isinstance(each, str | dict) for each in names):
            raise unknown_choice(name, value, options, source="command line")


def _check_lists(given: Mapping[str, Override]) -> None:
    """Refuse a list of which a part is set by name, over which OmegaConf fails."""
    for name, override in given.items():
        inner = next((other for other in given if other.startswith(f"{name}.")), None)
        if inner is not None and isinstance(override.value(), list):
            raise InputError(f"is a list, and {inner} is set as if it were none", source="command line", field=name)


def _check_files(folder: str | None, overrides: Iterable[str]) -> None:
    """Refuse a damaged file of the user's settings, over which Hydra fails in many lines, or without an end."""
    for text in overrides if folder else ():
        group, _, value = text.lstrip("+~").partition("=")
        for name in value.strip("[]").split(","):
            path = Path(str(folder), group, f"{name.strip()}.yaml")
            try:
                if path.exists() and not path.is_file():
                    raise InputError("is no file; move it, or name another", source=path)
                parse_yaml(path.read_text(encoding="utf-8"), path)
            except UnicodeDecodeError as error:
                raise InputError(f"is no UTF-8: {error.reason} at byte {error.start + 1}", source=path) from error
            except (OSError, ValueError) as error:
                # no file of settings: Hydra says what there is
                if isinstance(error, InputError):
                    raise
                if isinstance(error, ValueError) and path.is_file():
                    raise InputError(f"is no YAML: {error}", source=path) from error


def check_arguments(arguments: Sequence[str]) -> list[str]:
    """Refuse, before Hydra makes a folder, what can only go wrong; give the rest as Hydra reads it."""
    arguments = models_by_path(arguments)
    if "--version" in arguments:
        _say_and_leave(f"shannon-game {package_version()}")
    # settings on both sides of a flag, which Hydra's own parser refuses
    options = get_args_parser().parse_intermixed_args(list(arguments))
    flags = [text for text in arguments if text not in options.overrides]
    options.overrides = [_long_form(text) for text in options.overrides]
    arguments = [*flags, *options.overrides]
    refuse_keys(options.overrides)
    asked = [text.partition("=")[2] for text in options.overrides if text.lstrip("+").startswith("exp=")]
    if len(asked) > 1:
        raise InputError("a run answers one; start one for each", source="command line", field=", ".join(asked))
    if options.help and asked:
        own = [f"file://{Path(options.config_dir).absolute()}"] if options.config_dir else []
        chosen = [text for text in options.overrides if text.partition("=")[0] in ("study", *CHOICES)]
        chosen += search_path(options.overrides, [*own, *installed_configs()])
        _say_and_leave(experiment_help(asked[0], chosen))
    _check_files(options.config_dir, options.overrides)
    multirun = options.multirun or any(text.lstrip("+") == "hydra.mode=MULTIRUN" for text in options.overrides)
    plain = {text: readable(text, multirun=multirun) for text in options.overrides}
    arguments = [plain.get(text, text) for text in arguments if not text.startswith(_SEARCH_PATH)]
    arguments += search_path(options.overrides, installed_configs())
    if options.help or options.hydra_help or options.cfg or options.info or options.shell_completion:
        return arguments
    given: dict[str, Override] = {
        override.get_key_element().lstrip("+"): override
        for override in OverridesParser.create().parse_overrides(list(plain.values()))
    }
    if "exp" in given and not given["exp"].is_add():
        raise InputError(f"is added with a plus sign: +exp={given['exp'].value()}", source="command line", field="exp")
    if not {"exp", "experiment", "experiment.name"} & set(given):
        raise no_experiment()
    _check_groups(given)
    _check_lists(given)
    resume = "resume" in given and given["resume"].value() is True
    if not multirun:
        if resume:
            raise InputError("goes with a sweep: add -m and sweep=NAME", source="command line", field="resume")
        for name, override in given.items():
            if override.is_sweep_override():
                raise InputError("has several values; add -m to run each of them", source="command line", field=name)
        return arguments
    if "exp" in given and given["exp"].is_sweep_override():
        raise InputError("a sweep runs one experiment; start one sweep for each", source="command line", field="exp")
    sweep.check_folder(given, resume=resume)
    return arguments
