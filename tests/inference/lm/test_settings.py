"""What settings are refused, and by what words."""

from __future__ import annotations

import pytest

from estimators.errors import InputError
from inference.lm.settings import ModelSettings, model_settings

FOLDER = {"name": "a", "source": "folder", "path": "somewhere"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": ""}, "name.*is empty"),
        ({"name": 3}, "name.*is 3, should be text"),
        ({"source": "huggingface"}, "source.*huggingface.*hub"),
        ({"source": None}, "source.*is missing"),
        ({"source": ["hub"]}, "source.*should be text"),
        ({"path": None}, "path.*is None.*it is set"),
        ({"path": 3}, "path.*is 3, should be text"),
        ({"path": ""}, "path.*should be text"),
        ({"source": "smollm2"}, "path.*null: the file comes with the package"),
        ({"source": "hub"}, "revision.*is None.*commit"),
        ({"revision": "main"}, "revision.*only a Hub repository has revisions"),
        ({"dtype": "int8"}, "dtype.*int8.*float32"),
        ({"dtype": None}, "dtype.*should be text"),
        ({"device": None}, "device.*should be text"),
        ({"bos": None}, "bos.*should be text"),
        ({"bos": ""}, "bos.*should be text"),
        ({"tokens_per_batch": 0}, "tokens_per_batch.*is 0.*at least 1"),
        ({"tokens_per_batch": 1.5}, "tokens_per_batch.*is 1.5"),
        ({"tokens_per_batch": True}, "tokens_per_batch.*is True"),
        ({"logits_mib": None}, "logits_mib.*is None"),
        ({"logits_mib": 0}, "logits_mib.*is 0"),
        ({"n_layers": 0}, "n_layers.*is 0"),
        ({"n_layers": "two"}, "n_layers.*'two'"),
        ({"temperature": 0}, "temperature.*is 0, should be a number above 0"),
        ({"temperature": -1.0}, "temperature.*-1.0"),
        ({"temperature": float("nan")}, "temperature.*nan"),
        ({"temperature": float("inf")}, "temperature.*inf"),
        ({"temperature": "hot"}, "temperature.*'hot'"),
        ({"temperature": True}, "temperature.*True"),
        ({"temperature": None}, "temperature.*None"),
        ({"compile": "yes"}, "compile.*'yes'.*true or false"),
        ({"cache": 1}, "cache.*is 1"),
        ({"quantisation": "4bit"}, "quantisation.*temperature"),
    ],
)
def test_unusable_settings_are_named(changed, message):
    with pytest.raises(InputError, match=message) as caught:
        model_settings(FOLDER | changed)
    assert "\n" not in str(caught.value)


def test_settings_from_a_mapping():
    assert model_settings(FOLDER) == ModelSettings(**FOLDER)
    named = {key: value for key, value in FOLDER.items() if key != "name"}
    assert model_settings(named, name="b").name == "b"
    assert model_settings(FOLDER, name="b").name == "a"
    assert model_settings(FOLDER | {"control_only": True}) == ModelSettings(**FOLDER)
    with pytest.raises(InputError, match=r"name.*is missing"):
        model_settings(named)
    assert ModelSettings(**FOLDER).record()["temperature"] == 1.0
    assert ModelSettings(name="s", source="smollm2", temperature=2).temperature == 2
