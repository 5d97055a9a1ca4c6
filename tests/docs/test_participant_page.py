"""The table of accuracy on the page of the participant model, from the studies behind it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

DOCS = Path(__file__).parents[2] / "docs"
ROWS = {
    "ten beliefs": "answers:(?!peaks|shallow)",
    "of these: temperature 0.7": "answers:cold:2:",
    "of these: the last 8 tokens": "answers:short:",
    "half of the belief": "answers:peaks:",
    "the generator without": "answers:shallow:",
    "14M model, exact": "game:14M:exact",
    "14M model, rounded": "game:14M:rounded",
    "GPT-2 medium": "game:gpt2-medium:",
    "three beliefs": "live:.*:small",
}


@pytest.fixture(scope="module")
def studies() -> pd.DataFrame:
    return pd.read_csv(DOCS / "results/hidden_recovery.csv")


@pytest.mark.parametrize("label", ROWS)
def test_a_row_is_that_of_its_studies(label: str, studies: pd.DataFrame) -> None:
    own = studies[(studies["engine"] == "gaussian") & studies["cell"].str.match(ROWS[label])]
    error, width = own["gap_median"] - own["gap_truth"], own["gap_upper"] - own["gap_lower"]
    (line,) = re.findall(rf"^\| {label}.*$", (DOCS / "participant_model.md").read_text(), re.MULTILINE)
    shown = [float(cell) for cell in line.split("|")[2:-1]]
    assert [shown[0], shown[4]] == [len(own), own["gap_covers"].sum()]
    found = [error.mean(), np.sqrt((error**2).mean()), width.mean()]
    np.testing.assert_allclose(shown[1:4], found, atol=0.00501)


def test_nuts_is_compared_with_the_gaussian_on_the_same_studies(studies: pd.DataFrame) -> None:
    engines = [studies[studies["engine"] == name] for name in ("nuts", "gaussian")]
    both = engines[0].merge(engines[1], on=["cell", "study"], suffixes=("", "_gaussian"))
    off = both["gap_median"] - both["gap_median_gaussian"]
    assert len(both) == 14
    assert round(off.mean(), 2) == 0.02
    assert round(off.abs().max(), 2) == 0.10
