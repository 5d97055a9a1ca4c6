"""What tests of experiments with language models share: tiny models with texts, and the key of an endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


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
