"""What tests of experiments share: tiny models with texts, the key of an endpoint, a look at every result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shannon_game.experiments.harness import result


@pytest.fixture(scope="session", autouse=True)
def _results_begin_with_their_answer() -> Iterator[None]:
    """Refuse a text whose first sentence holds no number, and a table of more than eight columns."""
    answer = result._answer

    def checked(*asked: Any) -> result.ExperimentResult:
        found = answer(*asked)
        first = re.split(r"(?<=\.)\s", found.text.strip())[0]
        assert re.search(r"\d| no | not |unknown", first), first
        assert len(found.summary().columns) <= 8
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "_answer", checked)
        yield


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models of ``write_models`` and with texts."""
    from tests.experiments.tiny_language_models import write_models, write_texts

    folder = tmp_path_factory.mktemp("tiny")
    write_models(folder)
    write_texts(folder / "texts")
    return folder


@pytest.fixture(scope="module")
def api_key() -> Iterator[None]:
    """The key of the endpoint that stands for a paid one."""
    from tests.inference.api.fake_server import KEY

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAKE_KEY", KEY)
        patch.setenv("NO_PROXY", "*")
        yield
