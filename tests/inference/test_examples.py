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


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - SAMPLING))
def test_the_example_runs(name: str) -> None:
    run_example(FUNCTIONS[name])


# half a minute to two for each; the others are the examples of one sampler and one calibration
LONG = {"compile_belief", "compile_participants", "fit_participants", "leave_one_out"}


@pytest.mark.mcmc
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in sorted(SAMPLING)]
)
def test_the_example_that_samples_runs(name: str) -> None:
    run_example(FUNCTIONS[name])
