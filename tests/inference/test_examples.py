"""The examples in the docstrings of the public names of ``models`` and ``inference`` run as they stand."""

from __future__ import annotations

import pytest

from shannon_game import inference, models
from tests.public_names import example_of, public_functions, run_example

FUNCTIONS = public_functions(models) | public_functions(inference)
# these compile a model for a sampler, which takes seconds each
SAMPLING = {
    name for name, function in FUNCTIONS.items() if any(word in example_of(function) for word in ("tune=", "run_sbc("))
}


# a fit or twenty of them; the others compile one small model
LONG = {"fit_participants", "leave_one_out", "run_sbc"}


def marked(name: str) -> object:
    return pytest.param(name, marks=[pytest.mark.mcmc] * (name in SAMPLING) + [pytest.mark.slow] * (name in LONG))


@pytest.mark.parametrize("name", [marked(name) for name in sorted(FUNCTIONS)])
def test_the_example_runs(name: str) -> None:
    run_example(FUNCTIONS[name])
