"""What ``help`` and ``--help`` list, and how messages name settings in Python and on the command line."""

from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import Mock

import pandas as pd
import pytest

import shannon_game as sg
from shannon_game import experiments
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.command_line import experiment_help
from tests.experiments.command import run_experiment

FUNCTIONS = {name: getattr(experiments, name) for name in experiments.__all__}
WITH_SETTINGS = {name: each for name, each in FUNCTIONS.items() if hasattr(each, "settings_class")}


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_help_names_every_setting(name: str) -> None:
    function: Any = WITH_SETTINGS[name]
    listed = inspect.getdoc(function) or ""
    own = set(function.settings_class.model_fields)
    # the path of a table is not asked for where a DataFrame is given
    own -= {"path"} if name in ("text_study", "pair_study") else set()
    named = set(inspect.signature(function).parameters)
    assert own <= named
    assert [each for each in own if f"\n{each} : " not in listed and f"\n{each}." not in listed] == []


def test_the_command_lists_the_settings_of_the_study_too() -> None:
    listed = experiment_help("tvd", ["study=cloze_table"])
    for name in ("experiment.n_splits", "study.path", "study.columns.response", "study.missing"):
        assert f"\n{name} " in listed
    assert "provo" in listed.splitlines()[-1]


ANSWERS = pd.DataFrame({"sentence": ["The cat", "A dog"], "Antwort (getippt)": ["sat", "barked"]})


def cloze() -> Any:
    return sg.cloze_simulated(n_items=6, items_per_text=2, vocab_size=40)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sg.cloze_study(ANSWERS),
        lambda: sg.cloze_study(ANSWERS, columns={"context": "sentence", "response": "Antwort"}),
        lambda: sg.cloze_study(ANSWERS, colums={}),
        lambda: sg.cloze_study(ANSWERS.assign(context=[None, "b"], response="x")),
        lambda: sg.comparison_study(ANSWERS, ANSWERS, generator="g"),
        lambda: sg.guess_study(ANSWERS),
        lambda: sg.bet_study(ANSWERS),
        sg.cloze_table,
        sg.norms,
        lambda: sg.provo(root="nowhere"),
        lambda: sg.tvd(cloze(), item="99:3"),
        lambda: sg.tvd(cloze(), interval=2, n_splits="x"),
        lambda: sg.groups(cloze(), variable="age"),
        lambda: sg.reading_times(cloze()),
        lambda: sg.improve(cloze(), oracle_size=1000),
        lambda: sg.human_loss(cloze(), sampler={"draws": "x"}),
        lambda: sg.text_players(sg.simulated(n_items=4, vocab_size=50)),
    ],
)
def test_an_error_in_python_is_no_command_line(call: Any) -> None:
    with pytest.raises(InputError) as error:
        call()
    said = str(error.value)
    assert not any(word in said for word in ("experiment.", "study.", "+exp=", "null", "=true", "model="))


def test_an_error_of_the_command_is_no_python() -> None:
    with pytest.raises(InputError, match=r"^experiment\.item: is '99:3'"):
        run_experiment("+exp=tvd", "study=cloze_simulated", "experiment.item='99:3'")
    with pytest.raises(InputError, match=r"study\.data=NAME is one of"):
        run_experiment("+exp=tvd", "study=norms")


def test_brackets_in_a_column_name_need_no_quoting_in_python() -> None:
    study = sg.cloze_study(ANSWERS, columns={"context": "sentence", "response": "Antwort (getippt)"})
    assert study.sizes["item"] == 2


def test_a_file_of_a_result_is_a_path() -> None:
    found = sg.design(sg.designed_simulated(n_items=20, vocab_size=60), games=["bets"], contexts=[10], n_replicates=5)
    assert found.files
    assert all(found.files[name].is_file() for name in found.files)


def test_the_help_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shannon_game.estimators.errors.find_spec", lambda name: None)
    assert "study.columns.response" in experiment_help("tvd", ["study=cloze_table"])
    absent = Mock(side_effect=ModuleNotFoundError("pymc"))
    monkeypatch.setattr("shannon_game.experiments.harness.registry.resolve_name", absent)
    assert "[bayes]'; then --help lists" in experiment_help("ard", ["study=cloze_table"])
