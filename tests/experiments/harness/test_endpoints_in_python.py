"""An endpoint that Python names wrongly is answered by what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.documents.surprisal import SurprisalSettings

ENDPOINT = {"source": "api", "base_url": "http://localhost:1/v1", "model": "m"}


@pytest.mark.parametrize(
    ("models", "message"),
    [(["api"], "'source': 'api'"), ([{**ENDPOINT, "name": "x"}], "choose one of: source, base_url, model")],
)
def test_settings_of_an_endpoint(models: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        SurprisalSettings(models=models)


def test_one_distance_is_a_list_of_it() -> None:
    assert TvdSettings(distance="kl_nats").distance == ("kl_nats",)
