"""Settings inside settings: what a user leaves out is as the whole has it, not as the part by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from shannon_game.inference.settings import Count, Group, Settings, numbers_of


class Sampler(Group):
    name: str = "nutpie"
    draws: Count = 4000
    tune: Count = 1500


@dataclass(frozen=True)
class Gate:
    r_hat: float = 1.01
    ess: float = 400.0


class Short(Settings):
    sampler: Sampler = Sampler(draws=10)
    gate: Annotated[Gate, numbers_of(Gate)] = Gate(ess=50.0)


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
    assert Short(gate={"r_hat": 1.1}).gate == Gate(1.1, 50.0)
    assert Short().changed(gate={"ess": 60}).gate == Gate(1.01, 60)
