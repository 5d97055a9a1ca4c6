"""An experiment as a laboratory keeps it, one untidy workbook, by the commands of the page to regions and slopes."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.docs.pages import DOCS
from tests.experiments.tiny_language_models import write_models
from tests.walks.test_reading_times_page import run

pytestmark = [pytest.mark.subprocess, pytest.mark.torch]

REGIONS = ("subject", "verb", "article", "object", "spill")
NOUNS = ("dog", "cat", "river", "letter", "window", "farmer", "nurse", "engine")
SLOW = 80.0
"""Milliseconds that an object and the word after it cost more in one condition."""


def write_workbook(folder: Path) -> pd.DataFrame:
    """Sheets of sentences and times: practice, an empty cell, a pause, a key held down, a word of another version."""
    rng = np.random.default_rng(3)
    sentences = [
        {"item": item, "condition": name, "sentence": f"{noun} saw the {NOUNS[(item + shift) % 8]} today"}
        for item, noun in enumerate(NOUNS, 1)
        for name, shift in (("expected", 1), ("odd", 4))
    ]
    rows = [{"subj": "s1", "block": "practice", "item": 99, "condition": "p", "word_nr": 1, "word": "try", "RT": 300.0}]
    for reader in range(10):
        pace = 300 + 8 * reader
        for sentence in sentences[reader % 2 :: 2]:
            for number, word in enumerate(str(sentence["sentence"]).split(), 1):
                slow = SLOW * (sentence["condition"] == "odd" and number > 3)
                own = {"subj": f"s{reader}", "block": "main", "word_nr": number, "word": word}
                own |= {"region": REGIONS[number - 1], "RT": pace + slow + rng.normal(0, 20)}
                rows.append({**own, "item": sentence["item"], "condition": sentence["condition"]})
    times = pd.DataFrame(rows)
    for at, value in ((7, np.nan), (12, 8000.0), (18, 3.0)):
        times.loc[at, "RT"] = value
    times.loc[24, "word"] = "cloud"
    with pd.ExcelWriter(folder / "experiment.xlsx") as book:
        pd.DataFrame(sentences).to_excel(book, sheet_name="sentences", index=False)
        times.to_excel(book, sheet_name="times", index=False)
    return times


def test_a_workbook_becomes_regions_and_slopes_by_the_commands_of_the_page(tmp_path: Path) -> None:
    times = write_workbook(tmp_path)
    write_models(tmp_path)
    lines = (DOCS / "own_reading_study.md").read_text(encoding="utf-8").splitlines()
    steps = [shlex.split(line)[1:] for line in lines if line.startswith("shannon-game ")]
    models = f"model=[{tmp_path / 'a'},{tmp_path / 'b'}]"
    steps = [[models if word.startswith("model=") else word for word in words] for words in steps]
    run(tmp_path, tmp_path, [[*words, "output.dpi=40", "output.print=false"] for words in steps])

    found = pd.read_csv(tmp_path / "times/regions.csv")
    assert list(dict.fromkeys(found["region"])) == list(REGIONS)
    kept = times.drop(index=[0, 7, 12, 18, 24])
    plain = kept.assign(RT=kept["RT"] + kept["RT"].mean() - kept.groupby("subj")["RT"].transform("mean"))
    expected = plain.groupby(["region", "condition"])["RT"].agg(["mean", "size"])
    both = found.set_index(["region", "condition"]).join(expected)
    np.testing.assert_allclose(both["mean_ms"], both["mean"], rtol=1e-9)
    assert (both["n_times"] == both["size"]).all()
    # the effect is in the regions that have it, outside the intervals of both, and in no other
    apart = {
        region: own.loc["odd", "lower_ms"] > own.loc["expected", "upper_ms"]
        for region, own in found.set_index("condition").groupby("region")
    }
    assert {region for region, is_apart in apart.items() if is_apart} == {"object", "spill"}
    words = pd.read_csv(tmp_path / "surprisal/words.csv")
    mine = words[(words["model"] == "a") & words["document"].str.endswith(".odd") & (words["word_num"] == 4)]
    own = found[(found["region"] == "object") & (found["condition"] == "odd")]
    assert own["surprisal_nats_a"].item() == pytest.approx(mine["surprisal_nats"].mean())
    # of the times that are no times, and of another word, none is left
    assert pd.read_csv(tmp_path / "times/items.csv")["n_times"].sum() == len(kept)
    for name in ("regions", "reading_times"):
        assert (tmp_path / f"times/figures/{name}.svg").stat().st_size
