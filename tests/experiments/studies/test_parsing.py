"""JSON that would overflow the stack is refused, whatever a library made of the recursion limit."""

from __future__ import annotations

import sys

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.parsing import parse_json


@pytest.mark.parametrize("limit", [1000, 1_000_000])
@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, '["\\ud800", ' + "[" * 200_000])
def test_deep_nesting_is_refused(text: str, limit: int) -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        with pytest.raises(InputError, match="nested"):
            parse_json(text, "deep.json")
        assert parse_json('["[[[[", {"a\\"[": [1]}]', "strings.json") == ["[[[[", {'a"[': [1]}]
    finally:
        sys.setrecursionlimit(before)
