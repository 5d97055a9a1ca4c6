"""People who guess together, from tables as others keep them: of guesses, and of cloze answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import shannon_game as sg
from shannon_game.estimators.errors import InputError

SAID = {
    "The cook stirred the": "soup soup pot soup",
    "The pilot landed the": "jet plane jet plane",
    "She opened the": "door box door door",
}
TARGET = ("soup", "plane", "box")


def guesses() -> pd.DataFrame:
    rows = [
        (f"p{person}", f"d{at}", 4, target, word)
        for at, (said, target) in enumerate(zip(SAID.values(), TARGET, strict=True))
        for person, word in enumerate(said.split())
    ]
    # one of them comes back, and one writes in capitals
    rows += [("p3", "d0", 4, "soup", "pot")]
    rows[9] = ("p1", "d2", 4, "box", " Door")
    return pd.DataFrame(rows, columns=["participant", "document", "position", "target", "guess"])


def test_a_table_of_guesses_has_rows_by_number_of_people() -> None:
    result = sg.accuracy(sg.guess_study(guesses()), posterior=False, min_answers=1, n_replicates=20)
    its = result.table[result.table["kind"] == "majority"].set_index("name")["accuracy"]
    # 3 of 4, 2 of 4, none; three people of two kinds are right by majority, four share the second word
    assert its["majority of 1"] == pytest.approx((0.75 + 0.5 + 0) / 3)
    assert its["majority of 3"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert its["majority of 4"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert "majority" in result.figures
    assert "The most frequent word of n people" in result.text
    asked = sg.accuracy(sg.guess_study(guesses()), posterior=False, min_answers=1, n_replicates=20, ensemble=[2])
    assert set(asked.table[asked.table["kind"] == "majority"]["name"]) == {"majority of 2", "majority of 4"}


def test_who_is_predicted_is_not_in_the_ensemble() -> None:
    rows = [
        (context, word, target)
        for (context, said), target in zip(SAID.items(), TARGET, strict=True)
        for word in said.split()
    ]
    study = sg.cloze_study(pd.DataFrame(rows, columns=["context", "response", "target"]))
    table = sg.tvd(study, ensemble=[1, 3]).table.set_index(["predicts", "n_people"])["accuracy"]
    # pairs of different people who said the same: 6, 4 and 6 of 12
    assert table["another person's answer", 1] == pytest.approx((6 + 4 + 6) / 36)
    # the three others: they agree on the word of 3 of 4, or share it, and 2 of 3 others gave another word
    assert table["another person's answer", 3].to_numpy() == pytest.approx(np.full(2, (0.75 + 0.0 + 0.75) / 3))
    assert table["word of the text", 4] == pytest.approx((1 + 0.5 + 0) / 3)
    with pytest.raises(InputError, match="has 0 contexts with 9 people or more"):
        sg.tvd(study, ensemble=[9])


def test_people_who_do_not_overlap_have_no_row() -> None:
    alone = guesses().drop_duplicates("document")
    result = sg.accuracy(sg.guess_study(alone), posterior=False, min_answers=1, n_replicates=20)
    assert "majority" not in set(result.table["kind"])
