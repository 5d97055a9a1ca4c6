"""What people call their items and participants is what every result calls them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import cloze_study, comparison_study, perplexity, tvd
from shannon_game.estimators.comparison import SimulationSettings, estimate_perplexity, simulate_comparison_study
from shannon_game.estimators.layout import item_labels
from tests.experiments.studies.comparison.test_table import tables

N_ASKED = 12
NAMED = [f"q{number}" for number in range(N_ASKED)]


@pytest.fixture(scope="module")
def numbered() -> xr.Dataset:
    # q10 stands before q2 in the order of strings
    sizes = {"n_reference_items": 15, "n_participants": 4, "n_candidates": 5, "vocab_size": 80}
    return simulate_comparison_study(SimulationSettings(n_items=N_ASKED, **sizes))


@pytest.fixture(scope="module")
def own(numbered: xr.Dataset) -> xr.Dataset:
    pairs, answers = tables(numbered)
    return comparison_study(answers, pairs, generator="lm-medium")


def test_point_estimates_name_the_items(numbered: xr.Dataset, own: xr.Dataset) -> None:
    ours, theirs = (estimate_perplexity(study, "human") for study in (own, numbered))
    assert ours.gap.item.tolist() == NAMED
    np.testing.assert_allclose(ours.gap.item_gap_nats, theirs.gap.item_gap_nats)
    assert ours.gap.summary()["item"].tolist() == NAMED
    dataset = perplexity(own, players=["human", "lm-weak"]).dataset
    assert dataset["item"].to_numpy().tolist() == NAMED
    np.testing.assert_allclose(dataset["item_gap_nats"].to_numpy()[0], theirs.gap.item_gap_nats)


def cloze(columns: dict[str, str]) -> xr.Dataset:
    rows = [
        (text, context, word, f"p{who}", said)
        for text in ("T1", "T2")
        for context, word in (("S10", 4), ("S2", 9))
        for who, said in enumerate(("dog", "dog", "cat", "emu"))
    ]
    table = pd.DataFrame(rows, columns=["text", "sentence", "word", "who", "said"])
    table["unique"] = table["text"] + table["sentence"]
    return cloze_study(table, columns={"response": "said", **columns})


@pytest.mark.parametrize(
    ("columns", "labels"),
    [
        ({"context_id": "unique"}, ["T1S10", "T1S2", "T2S10", "T2S2"]),
        ({"context_id": "unique", "text_id": "text"}, ["T1S10", "T1S2", "T2S10", "T2S2"]),
        # ids that start anew in each text say the text
        ({"context_id": "sentence", "text_id": "text"}, ["S10:T1", "S2:T1", "S10:T2", "S2:T2"]),
        ({"context": "unique"}, [0, 1, 2, 3]),
        ({"text_id": "text", "word_num": "word"}, [0, 1, 2, 3]),
    ],
    ids=["id", "id and text", "id in text", "context", "place"],
)
def test_contexts_keep_their_ids(columns: dict[str, str], labels: list[object]) -> None:
    study = cloze(columns)
    assert item_labels(study).tolist() == labels
    dataset = tvd(study, bayes={"n_contexts": None}).dataset
    assert dataset["item"].to_numpy().tolist() == labels
