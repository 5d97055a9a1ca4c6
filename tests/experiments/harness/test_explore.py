"""The explorer: every item of a study in one page, whatever its texts are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game import explore
from shannon_game.estimators.cloze.examples import cloze_study
from shannon_game.estimators.comparison import comparison_items
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.experiments.comparison.explore import comparison_exploration
from shannon_game.experiments.harness import explore as explore_module
from shannon_game.experiments.harness.explore import _safe_json
from tests.experiments.harness.test_html_page import Page

HOSTILE = [
    "</script><script>window.broken = 1</script>",
    "<!-- <script>",
    '"><img src=x onerror="window.broken = 1">',
    "@@LIBRARY@@ @@DATA@@",
    "\u2028 line \u2029 ends \\u003c",
    "]]> &lt;b&gt; \x00 `${1}` '",
]


@pytest.fixture
def without_library(monkeypatch):
    monkeypatch.setattr(explore_module, "_library", lambda: "/* the plotting library */")


def content(page: str) -> dict:
    return json.loads(Page(page).scripts[0])


def test_comparison_items_are_those_of_the_estimator():
    study = comparison_study()
    found = comparison_exploration(study)
    wanted = comparison_items(study).set_index("item").loc[found.items["item"]]
    np.testing.assert_allclose(found.items["gap_nats_human"], wanted["gap_nats_human"])
    item = found.items["item"].iloc[0]
    # what the site answered by itself is no report
    said = (study["response_item"].to_numpy() == item) & ~study["automatic"].to_numpy()
    own = study.isel(response=np.flatnonzero(said))
    log_ratio = np.log(own["report"] / (1 - own["report"])).to_numpy()
    assert found.items["mean_log_ratio_nats"].iloc[0] == pytest.approx(log_ratio.mean())
    tokens, reports = found.tables[0]
    assert len(reports.rows) == own.sizes["response"]
    assert sum(row[1] for row in tokens.rows[1:]) == own.sizes["response"]
    # probabilities of the target and of a candidate are those of the study
    model = tokens.columns.index("lm-weak: probability")
    assert tokens.rows[0][model] == pytest.approx(
        float(np.exp(study["target_logprob"].sel(model="lm-weak", item=item)))
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_study_leaves_its_place(text, tmp_path, without_library):
    study = cloze_study()
    texts = study["context"].to_numpy().astype(object)
    texts[3] = text
    words = study["word_text"].to_numpy().astype(object)
    words[0] = text
    study = study.assign(context=("item", texts), word_text=("word", words)).assign_attrs(name=text)
    page = explore(study, None, tmp_path / "page.html").read_text(encoding="utf-8")
    clean = explore(cloze_study(), None, tmp_path / "clean.html").read_text(encoding="utf-8")
    assert [tag for tag, _ in Page(page).tags] == [tag for tag, _ in Page(clean).tags]
    assert Page(page).scripts[1:] == Page(clean).scripts[1:]
    assert content(page)["rows"][3][3] == text
    # half a surrogate pair, of a broken file, cannot be written
    assert json.loads(_safe_json("a\ud800")) == "a?"


@given(st.text())
def test_json_in_a_script_is_what_it_was(text):
    safe = _safe_json({text: [text, 1.5, None]})
    assert json.loads(safe) == {text: [text, 1.5, None]}
    assert not set(safe) & set("<>&\u2028\u2029")
