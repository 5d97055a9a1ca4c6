"""What messages say of a user's own names and of settings, on the command line and in Python."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

import shannon_game as sg
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import _FUNCTIONS, Ask, Load, Set, for_command, quoted
from shannon_game.experiments.harness.job import before
from shannon_game.experiments.harness.shipped import _shipped
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.settings import setting_lines
from tests.experiments.command import prepared

ROOT = Path(__file__).parents[2]
FLOORS = ("estimators", "models", "inference", "experiments")
LIKE_SETTINGS = (
    *("study.csv", "true or false", "null", "None", "experiment.x", "a=b", "study.missing=drop", "+exp=tvd"),
    *("model=[gpt2]", "study=norms", "settings, x", "{0}", "sampler.draws", "x; study.decimal=point", "a: b", "Ü {x}"),
)
NAMES = st.lists(st.sampled_from(LIKE_SETTINGS), min_size=1, max_size=3).map(" ".join)
READERS = {"python": nullcontext, "command": for_command}


def said_of(call: Any, reader: str) -> str:
    with READERS[reader](), pytest.raises(InputError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("column", LIKE_SETTINGS)
def test_a_file_a_column_and_a_cell_are_called_what_they_are(tmp_path: Path, reader: str, column: str) -> None:
    folder = tmp_path / "experiment.x"
    folder.mkdir()
    table = pd.DataFrame({"context": ["The", "A"], column: ["cat", "null"], "number": ["1", "null"]})
    table.to_csv(folder / "study.csv", index=False)
    at = {"path": folder / "study.csv", "columns": {"context": "context", "response": column, "count": "number"}}
    said = said_of(lambda: sg.cloze_table(**at), reader)
    assert said.startswith(f"{folder / 'study.csv'}, number: is 'null' in line 3")
    wrong = {**at["columns"], "context": f"{column}?"}
    assert f"{column}?: is missing" in said_of(lambda: sg.cloze_table(path=at["path"], columns=wrong), reader)


@given(name=NAMES, reader=st.sampled_from(list(READERS)))
def test_no_name_of_the_users_is_rewritten(name: str, reader: str) -> None:
    table = pd.DataFrame({"context": ["a", "b"], "response": ["x", "y"], name: ["m", name]})
    said = said_of(
        lambda: sg.cloze_study(table, columns={"context": "context", "response": "response", "count": name}), reader
    )
    assert f"{name}: is 'm' in row 1" in said
    with READERS[reader]():
        study = sg.cloze_study(table, columns={"context": "context", "response": name})
    assert name in study["word_text"].to_numpy().tolist()
    assert repr(name) in said_of(lambda: sg.tvd(sg.cloze_simulated(n_items=6), players=[name]), reader)


def test_a_model_that_is_called_none() -> None:
    table = pd.DataFrame({"context": "a", "response": ["x", "y", "z"], "model": ["", "None", "null"]})
    names = {name: name for name in table}
    assert sg.cloze_study(table, columns=names)["model"].to_numpy().tolist() == ["None", "null"]
    assert "choose one of: None, null" in said_of(
        lambda: sg.tvd(sg.cloze_study(table, columns=names), players=["x"]), "command"
    )


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1)
    | NAMES,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(VALUES)
def test_a_setting_is_read_as_it_is_told(value: Any) -> None:
    with for_command():
        words = shlex.split(str(Set("study.x", value)))
    assert len(words) == 1
    assert OverridesParser.create().parse_override(words[0]).value() == value
    assert eval(f"dict({Set('study.x', value)})", {}) == {"x": value}


def test_what_settings_look_like() -> None:
    told = Set("generator.control_only", True), Set("model", ["gpt2"]), Ask("tvd"), Load("collected", {"url": "a.db"})
    assert list(map(str, told)) == [
        "generator={'control_only': True}",
        "models={'gpt2': {'source': 'gpt2', ...}}",
        "tvd()",
        "collected_study(url='a.db')",
    ]
    with for_command():
        assert list(map(str, told)) == [
            "generator.control_only=true",
            "model=[gpt2]",
            "+exp=tvd",
            "study=collected study.url=a.db",
        ]


def test_checks_inside_settings_speak_to_their_reader() -> None:
    for reader, none in (("python", "None"), ("command", "null")):
        said = said_of(lambda: ModelSettings(name="a", source="folder"), reader)
        assert f"path: is {none}; with source=folder it is" in said
    with pytest.raises(InputError, match=r"^experiment\.interval: is null, should be"):
        prepared("+exp=tvd", "study=cloze_simulated", "experiment.interval=null")
    with pytest.raises(InputError, match=r"^interval: is None, should be"):
        sg.tvd(sg.cloze_simulated(n_items=6), interval=None)


def declared() -> Iterator[tuple[str, ast.Call, bool]]:
    """Every setting, question and study that a message names: place, call, and whether a function makes it."""

    def inside(node: ast.AST, made: bool) -> Iterator[tuple[ast.Call, bool]]:
        for child in ast.iter_child_nodes(node):
            if (
                isinstance(child, ast.Call)
                and isinstance(child.func, ast.Name)
                and child.func.id in ("Set", "Ask", "Load")
            ):
                yield child, made
            yield from inside(child, made or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    for floor in FLOORS:
        for file in sorted((ROOT / floor).rglob("*.py")):
            if file.name != "messages.py":
                place = str(file.relative_to(ROOT))
                yield from (
                    (f"{place}:{call.lineno}", *one)
                    for one in inside(ast.parse(file.read_text("utf-8")), False)
                    for call in one[:1]
                )


def names_of_settings() -> set[str]:
    names: set[str] = {"model"}
    for group in ("exp", "vary", "of", "look", "study"):
        for file in sorted((ROOT / "conf" / group).rglob("*.yaml")):
            for target in re.findall(r"_target_: (\S+)", file.read_text(encoding="utf-8")):
                module, _, function = target.rpartition(".")
                cls = getattr(import_module(module), function).settings_class
                prefix: Any = "study." if group == "study" else lambda field, cls=cls: before(field, cls)
                for line in setting_lines(cls, prefix):
                    parts = line[0].split(".")
                    names |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    return names


def test_every_setting_that_a_message_names_exists() -> None:
    known = names_of_settings()
    wrong = []
    for place, call, made in declared():
        assert made, f"{place}: is made when the module is imported, before it is known who reads it"
        name = call.args[0]
        if not isinstance(name, ast.Constant):
            continue
        kind, text = call.func.id, str(name.value)  # type: ignore[attr-defined]
        groups = {"Ask": "exp", "Load": "study"}
        if kind in groups:
            wrong += [] if text in _shipped(groups[kind]) else [f"{place}: {text}"]
            settings = call.args[1] if len(call.args) > 1 else None
            keys = [f"study.{key.value}" for key in settings.keys] if isinstance(settings, ast.Dict) else []  # type: ignore[union-attr]
            wrong += [f"{place}: {key}" for key in keys if key not in known]
        elif re.sub(r"^models\.\w+", "models.NAME", text) not in known:
            wrong.append(f"{place}: {text}")
    assert wrong == []


def test_names_on_the_command_line_and_in_python_agree() -> None:
    other = {name: function for name, (function, _) in _shipped("study").items() if name != function}
    assert {name: function for name, function in other.items() if _FUNCTIONS.get(name) != function} == {}


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_a_quoted_text_is_that_text(text: str) -> None:
    assert OverridesParser.create().parse_override(f"study.x={quoted(text)}").value() == text
