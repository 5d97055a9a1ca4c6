"""The loader of the simulated study: its config file, and the item filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import OmegaConf

from estimators.comparison import is_word_token, response_positions
from estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from estimators.comparison.simulation.study import simulate_comparison_study
from estimators.errors import InputError
from estimators.notes import notes
from experiments.studies.comparison.simulated import load

CONFIG = Path(__file__).parents[4] / "conf" / "study" / "simulated.yaml"
TINY = {"n_items": 12, "n_reference_items": 30, "n_participants": 5, "n_candidates": 40, "vocab_size": 300}


def whole_config() -> Any:
    """The file where Hydra puts it, beside the run's seed."""
    return OmegaConf.create({"seed": 0, "study": OmegaConf.load(CONFIG)})


def test_the_config_holds_every_setting_with_its_default() -> None:
    config: Any = OmegaConf.to_container(whole_config().study, resolve=True)
    assert next(iter(config)) == "name"
    assert (config.pop("name"), config.pop("items")) == ("simulated", "all")
    config["participants"] = ParticipantPopulation(**config["participants"])
    default = SimulationSettings()
    assert config.keys() == vars(default).keys()
    assert SimulationSettings(**config) == default
    assert vars(config["participants"]) == vars(default.participants)


def test_the_config_file_as_a_mapping_is_read() -> None:
    config = OmegaConf.merge(whole_config().study, TINY, {"participants": {"noise": False}})
    study = load(config)  # type: ignore[arg-type]
    expected = SimulationSettings(**TINY, participants=ParticipantPopulation(noise=False))
    assert study.identical(simulate_comparison_study(expected))


def test_word_tokens_only() -> None:
    everything = load(TINY)
    words = load(TINY | {"items": "word_tokens"})
    is_word = np.array([is_word_token(str(token)) for token in everything["target_token"].values])
    asked = everything["item_set"].values != ""
    assert 0 < (is_word & asked).sum() < asked.sum()
    np.testing.assert_array_equal(words["selected"].values, is_word)
    assert set(words["response_item"].values.tolist()) == set(np.flatnonzero(is_word & asked).tolist())
    kept = is_word[response_positions(everything)]
    np.testing.assert_array_equal(words["report"].values, everything["report"].values[kept])
    assert words["in_reference"].all(), "the reference loss stays the one of all items"
    left_out = {note["text"]: note["count"] for note in notes(words)[-2:]}
    assert list(left_out.values()) == [int((asked & ~is_word).sum()), int((~kept).sum())]


def test_a_filter_that_leaves_nothing_is_an_error() -> None:
    seed = next(
        seed
        for seed in range(100)
        if not is_word_token(str(load(TINY | {"n_items": 1, "seed": seed})["target_token"].values[0]))
    )
    with pytest.raises(InputError, match="items: word_tokens leaves none of the 1 asked items"):
        load(TINY | {"n_items": 1, "seed": seed, "items": "word_tokens"})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n_item": 3}, "unknown key 'n_item'; choose one of: name, items, n_items"),
        ({"root": "data"}, "unknown key 'root'"),
        ({"items": "words"}, "unknown items 'words'; choose one of: all, word_tokens"),
        ({"participants": {"slope_mean": 1}}, "unknown participants key 'slope_mean'.*slope_median"),
        ({"participants": 29}, "participants: is 29, should be a mapping"),
        ({"participants": {"slope_median": 0}}, "slope_median: is 0"),
        ({"excess_nats": [1, 2]}, "excess_nats: is .*, should be a mapping"),
        ({"excess_nats": {"lm-huge": 1}}, "unknown player in excess_nats 'lm-huge'"),
        ({"n_items": 0}, "n_items: is 0"),
        ({"generator": "gpt2-small"}, "unknown generator 'gpt2-small'"),
    ],
    ids=repr,
)
def test_wrong_configs_are_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        load(TINY | change)
