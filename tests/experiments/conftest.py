"""Every result that a test of an experiment makes is looked at as a reader does."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from shannon_game.experiments.harness import result
from shannon_game.experiments.harness.tables import split_constants


@pytest.fixture(scope="session", autouse=True)
def _results_begin_with_their_answer() -> Iterator[None]:
    """Refuse a text whose first sentence holds no number, and a table of more than eight columns."""
    whole = result._as_called

    def checked(found: result.ExperimentResult) -> result.ExperimentResult:
        first = re.split(r"(?<=\.)\s", found.text.strip())[0]
        assert re.search(r"\d| no | not |unknown", first), first
        assert len(split_constants(found.summary())[0].columns) <= 8
        return whole(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "_as_called", checked)
        yield
