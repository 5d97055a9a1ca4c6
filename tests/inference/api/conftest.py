"""The key that every endpoint of these tests asks for."""

from __future__ import annotations

import pytest

from tests.inference.api.fake_server import KEY


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "*")
