"""Gaps by class of token: contributions that sum to the gap, levels by hand, and the public game."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import lm_game, perplexity, simulated
from shannon_game.estimators.documents.tokens import TOKEN_CLASSES, token_class
from shannon_game.experiments.comparison.token_classes import FACTORS, class_table, item_levels, token_classes


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (" cat", "word"),
        (" Cat", "capital"),
        ("ing", "continuation"),
        (" 4th", "number"),
        (",", "punctuation"),
        (" .\n", "line break"),
        ("\ufffd", "other"),
        (" Über", "capital"),
    ],
)
def test_classes_of_tokens(token: str, expected: str) -> None:
    assert token_class(token) == expected
    assert expected in TOKEN_CLASSES


def test_means_and_contributions_by_hand() -> None:
    items = pd.DataFrame(
        {
            "gap_nats_human": [1.0, 3.0, 2.0, np.nan],
            "gap_nats_m": [0.0, 1.0, 4.0, np.nan],
            "surprisal_nats_m": [2.0, 3.0, 4.0, 5.0],
            "surprisal_nats_g": [1.0, 1.0, 1.0, 1.0],
        }
    )
    levels = {"class": np.array(["word", "word", "number", "number"], dtype=object)}
    table = class_table(items, levels, ["human", "m"], "g").set_index(["player", "level"])
    human, model = table.loc[("human", "word")], table.loc[("m", "word")]
    assert (human["gap_nats"], human["se_items_nats"], human["n_items"]) == (2, 1, 2)
    assert human["contribution_nats"] == pytest.approx(4 / 3)
    # a question that nobody answered is in no class
    assert table.loc[("human", "number"), "n_items"] == 1
    assert np.isnan(table.loc[("human", "number"), "se_items_nats"])
    assert np.isnan(human["true_gap_nats"])
    # exact gaps 1 and 2 against the people's 1 and 3
    assert (model["true_gap_nats"], model["human_minus_player_nats"]) == (1.5, 0.5)
    assert model["se_human_minus_player_nats"] == pytest.approx(0.5)


def test_contributions_sum_to_the_gap() -> None:
    study = simulated(n_items=20, n_reference_items=30, vocab_size=200, n_candidates=30, n_participants=8)
    table = token_classes(study, context_words=[2, 5]).table
    gaps = perplexity(study, rounding="none").table.set_index("player")["gap_nats"]
    for (player, _), own in table.groupby(["player", "factor"]):
        assert own["contribution_nats"].sum() == pytest.approx(gaps[player], abs=1e-12)
        assert own["n_items"].sum() == 20


def test_perplexities_are_powers_of_two_of_the_loss_in_bits() -> None:
    study = simulated(n_items=12, n_reference_items=12, vocab_size=100, n_candidates=20, n_participants=8)
    table = perplexity(study).table
    np.testing.assert_allclose(2 ** table["loss_bits"], table["perplexity"])
    np.testing.assert_allclose(table["gap_bits"] * np.log(2), table["gap_nats"])


def test_the_game_s_people_lose_on_words(lm_game_root: Path) -> None:
    """70 of the 120 items are words; people's estimate there is .97 nats above the 14M model's exact loss."""
    table = token_classes(lm_game(root=lm_game_root)).table.set_index(["player", "level"])
    word = table.loc[("14M", "word")]
    assert word["n_items"] == 70
    assert word["true_gap_nats"] == pytest.approx(1.21, abs=0.005)
    assert word["human_minus_player_nats"] == pytest.approx(0.97, abs=0.005)
    assert table.loc[("human", "word"), "contribution_nats"] == pytest.approx(1.27, abs=0.005)


def test_levels_by_hand() -> None:
    targets = [" the"] * 10 + [" cat", " cat", " dog"]
    contexts = ["one two", "one two three"] * 5 + ["a b c d e", "a b c d", ""]
    found = item_levels(pd.DataFrame({"context": contexts, "target": targets}), (2, 4))
    assert tuple(found) == FACTORS
    assert found["frequency"].tolist() == ["10 times or more"] * 10 + ["2 to 9 times"] * 2 + ["once"]
    expected = ["0 to 2 words", "3 to 4 words"] * 5 + ["5 words or more", "3 to 4 words", "0 to 2 words"]
    assert found["context"].tolist() == expected
