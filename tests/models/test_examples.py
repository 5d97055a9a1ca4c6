"""The examples in the docstrings of the public names of ``models`` run as they stand."""

from __future__ import annotations

import pytest

import models
from tests.public_names import example_of, public_functions, run_example

FUNCTIONS = public_functions(models)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_runs(name: str) -> None:
    run_example(FUNCTIONS[name])


def test_every_function_has_an_example() -> None:
    assert [name for name, function in FUNCTIONS.items() if not example_of(function)] == []
