"""Settings: what is right is kept as it is, what is wrong is said with its place, value and cure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.inference.settings import (
    Count,
    Counts,
    Group,
    Names,
    Positive,
    Probability,
    Settings,
    Text,
    UserPath,
    numbers_of,
    setting_lines,
    settings_from,
    settings_of,
    to_dataclass,
)


@dataclass(frozen=True)
class Scales:
    """Scales of priors.

    Parameters
    ----------
    mu, sigma : float
        Of the normal.
    """

    mu: float = 0.0
    sigma: float = 1.0

    def __post_init__(self) -> None:
        if self.sigma <= 0:
            raise InputError(f"is {self.sigma}, should be above 0", field="sigma")


class Gate(Settings):
    ess: Positive = 400.0
    """Smallest effective sample size."""


class Rounding(Group):
    name: Literal["none", "coarse"] = "none"


class Trial(Settings):
    interval: Probability = 0.9
    """Probability inside
    the interval."""
    n: Count | None = None
    sizes: Counts = (1, 2)
    players: Names | None = None
    label: Text = "trial"
    leave_out: Literal["auto"] | Names = "auto"
    kinds: tuple[Literal["linear", "quadratic"], ...] = ("linear",)
    gate: Gate = Gate()
    rounding: Rounding = Rounding()
    priors: Annotated[Scales, numbers_of(Scales)] = Scales()
    models: Mapping[str, Gate] = {}
    path: UserPath | None = None
    low: Annotated[float, Field(ge=0, le=1)] = 0.0
    high: float = 1.0

    @model_validator(mode="after")
    def _order(self) -> Trial:
        if self.low >= self.high:
            raise InputError(f"is {self.low}, should be below high", field="low")
        return self


def test_names_alone_lists_and_parts_of_groups() -> None:
    trial = Trial(
        sizes=3, players="human", leave_out=["a"], gate={"ess": 3}, rounding="coarse", priors={"mu": 2}, path="~/x"
    )
    assert trial.sizes == (3,)
    assert trial.players == ("human",)
    assert trial.leave_out == ("a",)
    assert trial.gate == Gate(ess=3)
    assert trial.rounding.name == "coarse"
    assert trial.priors == Scales(mu=2)
    assert trial.path == Path.home() / "x"
    assert trial.changed(n=4) == Trial(**{name: getattr(trial, name) for name in trial.model_fields_set}, n=4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"intervall": 0.5}, "run: unknown setting 'intervall'; did you mean 'interval'? choose one of: interval, n,"),
        ({"interval": 1}, "run.interval: is 1, should be a number above 0 and below 1"),
        ({"n": 2.5}, "run.n: is 2.5, should be a whole number, 1 or larger or None"),
        ({"sizes": [1, 0]}, "run.sizes[1]: is 0, should be"),
        ({"leave_out": ["a", True]}, "run.leave_out: is ['a', True], should be one of auto or a list"),
        ({"players": [1.5]}, "run.players[0]: is 1.5, should be a list, each a text that is not empty or None"),
        ({"kinds": ["lin", "quadratc"]}, "one of linear, quadratic; did you mean 'linear'?"),
        ({"label": ""}, "run.label: is '', should be a text that is not empty"),
        ({"gate": {"es": 1}}, "run.gate: unknown setting 'es'; did you mean 'ess'? choose one of: ess"),
        ({"gate": {"ess": -1}}, "run.gate.ess: is -1, should be a number above 0"),
        ({"priors": {"sigma": "a"}}, "run.priors.sigma: is 'a', should be a number"),
        ({"priors": {"sigma": -1.0}}, "run.priors.sigma: is -1.0, should be above 0"),
        ({"path": 3}, "run.path: is 3, should be a path or None"),
        ({"low": 0.5, "high": 0.2}, "run.low: is 0.5, should be below high"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        settings_from(Trial, given, prefix="run.")
    assert message in str(error.value)
    with pytest.raises(InputError) as error:
        Trial(**given)
    assert message.removeprefix("run: ").removeprefix("run.") in str(error.value)


def test_a_setting_without_a_value_is_named() -> None:
    class Needed(Settings):
        path: UserPath

    with pytest.raises(InputError, match=r"^study\.path: has no value yet"):
        settings_from(Needed, {}, prefix="study.")


def test_a_dataclass_keeps_names_defaults_meanings_and_checks() -> None:
    made = settings_of(Scales, "ScaleSettings", base=Settings)
    assert setting_lines(made) == [
        ("mu", "0.0", "a number", "Of the normal."),
        ("sigma", "1.0", "a number", "Of the normal."),
    ]
    assert to_dataclass(Scales, made(mu=2.0)) == Scales(mu=2.0)
    with pytest.raises(InputError, match=r"sigma: is 0\.0"):
        to_dataclass(Scales, made(sigma=0.0))


# what a user leaves out is as the whole has it, not as the part by itself
class Sampler(Group):
    name: str = "nutpie"
    draws: Count = 4000
    tune: Count = 1500


@dataclass(frozen=True)
class Limits:
    r_hat: float = 1.01
    ess: float = 400.0


class Short(Settings):
    sampler: Sampler = Sampler(draws=10)
    gate: Annotated[Limits, numbers_of(Limits)] = Limits(ess=50.0)


@pytest.mark.parametrize(
    ("given", "sampler"),
    [
        ({}, ("nutpie", 10, 1500)),
        ({"sampler": "pymc"}, ("pymc", 10, 1500)),
        ({"sampler": {"tune": 7}}, ("nutpie", 10, 7)),
        ({"sampler": {"draws": 3}}, ("nutpie", 3, 1500)),
        ({"sampler": Sampler()}, ("nutpie", 4000, 1500)),
    ],
)
def test_a_group_keeps_the_defaults_of_the_whole(given: dict[str, Any], sampler: tuple[str, int, int]) -> None:
    found = Short(**given).sampler
    assert (found.name, found.draws, found.tune) == sampler


def test_numbers_keep_the_defaults_of_the_whole() -> None:
    assert Short(gate={"r_hat": 1.1}).gate == Limits(1.1, 50.0)
    assert Short().changed(gate={"ess": 60}).gate == Limits(1.01, 60)


@pytest.mark.parametrize(("given", "names"), [([-372181953, "b"], ("-372181953", "b")), (7, ("7",)), ("b", ("b",))])
def test_a_whole_number_is_a_name(given: Any, names: tuple[str, ...]) -> None:
    found = Trial(players=given, leave_out=given, label=2024)
    assert (found.players, found.leave_out, found.label) == (names, names, "2024")
