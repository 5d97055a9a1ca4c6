"""The examples in the docstrings of estimators: every public function and result has one, and it gives what it says."""

from __future__ import annotations

import doctest
import inspect

import pytest

import estimators

PUBLIC = {
    f"{kind}.{name}": getattr(getattr(estimators, kind), name)
    for kind in estimators.__all__
    if inspect.ismodule(getattr(estimators, kind))
    for name in getattr(estimators, kind).__all__
}
SHOWN = {name: what for name, what in PUBLIC.items() if inspect.isfunction(what) or inspect.isclass(what)}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_that_runs(name: str) -> None:
    found = doctest.DocTestParser().get_examples(inspect.getdoc(SHOWN[name]) or "")
    shows = [example for example in found if example.want]
    assert shows, "no example shows a result"
    test = doctest.DocTest(found, {}, name, None, None, None)
    text: list[str] = []
    assert doctest.DocTestRunner().run(test, out=text.append).failed == 0, "".join(text)
