"""How results look to a person: one line, a summary, a table; in a notebook too."""

from __future__ import annotations

import numpy as np

from estimators import cloze, comparison, documents, guesses
from tests.estimators.comparison.comparison_studies import small_study


def test_a_line_names_numbers_and_only_the_shape_of_arrays() -> None:
    gap = comparison.estimate_perplexity(small_study(), "weak").gap
    assert "\n" not in repr(gap)
    assert "estimator='importance'" in repr(gap)
    assert f"gap_nats={gap.gap_nats:.4g}" in repr(gap)
    assert "item_gap_nats=float64[6]" in repr(gap)
    assert "terms" not in repr(gap)
    assert repr(documents.ClusteredMean(1.23456, float("nan"))) == "ClusteredMean(mean=1.235, se=nan)"


def test_the_summary_of_an_estimate_says_whether_the_draws_are_enough() -> None:
    estimate = comparison.estimate_perplexity(small_study(), "weak", rounding="coarse")
    first, second, third = estimate.describe().splitlines()
    assert first.startswith(f"weak, rounding coarse: perplexity {estimate.perplexity:.4g} [")
    assert second.startswith(f"gap {estimate.gap.gap_nats:.3f} nats")
    assert third.startswith(f"24 responses to 6 items; verdict: {estimate.gap.diagnostics.verdict} (")


def test_a_table_has_a_row_an_entry_or_one_row_of_numbers() -> None:
    estimate = comparison.estimate_perplexity(small_study(), "weak")
    assert estimate.gap.summary().columns.tolist() == ["item", "item_gap_nats", "item_n"]
    assert estimate.gap.summary()["item"].tolist() == [100, 101, 102, 103, 104, 105]
    one = estimate.summary()
    assert (one.loc[0, "player"], one.loc[0, "perplexity"]) == ("weak", estimate.perplexity)
    assert "gap" not in one
    error = cloze.expected_calibration_error([0.2, 0.9], [0, 1], n_bins=2)
    assert error.summary().columns.tolist() == ["confidence", "accuracy", "count"]


def test_a_notebook_shows_summary_and_ten_rows() -> None:
    names = [f"<p{number}>" for number in range(12)]
    page = guesses.participant_accuracy([1] * 12, names)._repr_html_()
    assert page.count("<tr") == 11
    assert "&lt;p0&gt;" in page
    assert "<p>2 more rows</p>" in page
    assert "<th>accuracy</th>" in page
    assert "more rows" not in guesses.participant_accuracy([1], ["Ann"])._repr_html_()


def test_short_texts_of_every_type() -> None:
    words = cloze.ModelWords(cloze.count_words([0], [0], [1], n_contexts=1), np.array([0]), {"junk": 2}, 3)
    assert repr(words) == "ModelWords(counts=WordCounts(...), item=int64[1], missing={'junk': 2}, n_samples=3)"
    assert "first_seen=None" in repr(cloze.SplitHalves(words.counts, np.zeros((1, 1), int), np.zeros((1, 1), int)))
