"""Every public function of estimators, and every public class that is no result, has an example that runs."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest

from shannon_game import estimators
from shannon_game.estimators.display import Result

PUBLIC = {
    f"{kind}.{name}": getattr(getattr(estimators, kind), name)
    for kind in estimators.__all__
    if inspect.ismodule(getattr(estimators, kind))
    for name in getattr(estimators, kind).__all__
}
SHOWN = {
    name: what
    for name, what in PUBLIC.items()
    if inspect.isfunction(what) or (inspect.isclass(what) and not issubclass(what, Result))
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_that_runs(name: str) -> None:
    found = doctest.DocTestParser().get_examples(inspect.getdoc(SHOWN[name]) or "")
    assert any(example.want for example in found), "no example shows a result"
    # as numpydoc has it, NumPy is imported already
    test = doctest.DocTest(found, {"np": np}, name, None, None, None)
    text: list[str] = []
    assert doctest.DocTestRunner().run(test, out=text.append).failed == 0, "".join(text)
