"""What settings are refused, and by what words."""

from __future__ import annotations

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.settings import ModelSettings

FOLDER = {"name": "a", "source": "folder", "path": "somewhere"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "name: is '', should be a text that is not empty"),
        ({"source": "huggingface"}, "source.*huggingface.*hub"),
        ({"path": None}, "path.*is None.*it is set"),
        ({"source": "smollm2"}, "path.*null: the file comes with the package"),
        ({"source": "hub"}, "revision.*is None.*commit"),
        ({"revision": "main"}, "revision.*only a Hub repository has revisions"),
        ({"dtype": "int8"}, "dtype.*int8.*float32"),
        ({"bos": ""}, "bos.*should be a text that is not empty"),
        ({"tokens_per_batch": 0}, "tokens_per_batch: is 0, should be a whole number, 1 or larger"),
        ({"n_layers": 0}, "n_layers.*is 0"),
        ({"temperature": 0}, "temperature: is 0, should be a number above 0"),
        ({"temperature": float("nan")}, "temperature.*nan"),
        ({"quantisation": "4bit"}, "quantisation.*temperature"),
    ],
)
def test_unusable_settings_are_named(changed, message):
    with pytest.raises(InputError, match=message) as caught:
        ModelSettings(**FOLDER | changed)
    assert "\n" not in str(caught.value)


def test_what_is_recorded():
    with pytest.raises(InputError, match="name: has no value yet"):
        ModelSettings(source="smollm2")
    assert ModelSettings(**FOLDER).record()["temperature"] == 1.0
    assert ModelSettings(name="s", source="smollm2", temperature=2).temperature == 2
