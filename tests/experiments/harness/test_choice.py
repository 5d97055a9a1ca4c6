"""A question that a setting chooses: command and notebook ask the same function."""

from __future__ import annotations

import pytest

from shannon_game import experiments
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.choice import CHOICES
from tests.experiments.command import ROOT, TINY, config, prepared


@pytest.mark.parametrize("name", ["perplexity", "recovery", "design"])
def test_command_and_notebook_have_the_same_choices(name: str) -> None:
    ((setting, others),) = getattr(experiments, name).choices.items()
    assert setting in CHOICES
    assert {path.stem for path in (ROOT / "conf" / setting).glob("*.yaml")} > set(others)
    for option, target in others.items():
        assert config(f"+exp={name}", f"{setting}={option}").experiment._target_ == target


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(InputError, match="bootstrap"):
        experiments.perplexity(prepared("+exp=perplexity", *TINY).study, vary="bootstrp")
