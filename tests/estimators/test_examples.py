"""Every public function of estimators has an example that runs."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

from shannon_game import estimators
from tests.public_names import public_functions

KINDS = {name: getattr(estimators, name) for name in estimators.__all__ if inspect.ismodule(getattr(estimators, name))}
FUNCTIONS = {f"{kind}.{name}": what for kind in KINDS for name, what in public_functions(KINDS[kind]).items()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_example_that_runs(name: str) -> None:
    found = doctest.DocTestParser().get_examples(inspect.getdoc(FUNCTIONS[name]) or "")
    assert any(example.want for example in found), "no example shows a result"
    test = doctest.DocTest(found, {"np": np, **KINDS}, name, None, None, None)
    text: list[str] = []
    assert doctest.DocTestRunner().run(test, out=text.append).failed == 0, "".join(text)
