"""``+exp=mixture``: what a run writes, a study whose truth is known, and the public answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shannon_game import cloze_simulated, cloze_study, mixture
from shannon_game.estimators.errors import InputError


def two_kinds_of_words(share_of_people: float) -> pd.DataFrame:
    """Half of the people say "yes" and half "no"; the text has what they say at a share of its places, else "maybe"."""
    rows = []
    for text in range(6):
        for number in range(10):
            target = ("yes", "no")[number % 2] if number < 10 * share_of_people else "maybe"
            place = {"text_id": f"t{text}", "word_num": number + 1, "context": "well", "target": target}
            rows += [{**place, "source": "human", "word": word, "count": 20} for word in ("yes", "no")]
            rows.append({**place, "source": "model", "word": "maybe", "count": 40})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_people_have_the_weight_of_the_words_that_they_alone_know(share: float) -> None:
    table = two_kinds_of_words(share)
    people = table[table["source"] == "human"].rename(columns={"word": "response"})
    samples = table[table["source"] == "model"].rename(columns={"word": "response"})
    study = cloze_study(
        pd.concat([people.assign(model=None), samples.assign(model="m")], ignore_index=True).drop(columns="source")
    )
    row = mixture(study, vocab_size=1000).table.iloc[0]
    assert row["weight_people"] == pytest.approx(share, abs=1e-3)
    # closed form: a word of people has half of their weight
    expected = -share * np.log(share / 2) - (1 - share) * np.log(1 - share)
    assert row["loss_both_nats"] == pytest.approx(expected, abs=1e-3)
    assert row["gain_nats"] > 0


def test_what_is_refused() -> None:
    study = cloze_simulated(n_items=6, items_per_text=6, vocab_size=40)
    with pytest.raises(InputError, match=r"model 'mixture': has 6 contexts .* of 1 text; weights need two texts"):
        mixture(study)
    with pytest.raises(InputError, match=r"vocab_size: is 3, should be at least"):
        mixture(cloze_simulated(n_items=12, items_per_text=3, vocab_size=40), vocab_size=3)
