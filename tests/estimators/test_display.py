"""How results look to a person: one line, a summary, a table; in a notebook too."""

from __future__ import annotations

from shannon_game.estimators import cloze, comparison, guesses
from tests.estimators.comparison.comparison_studies import small_study


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
