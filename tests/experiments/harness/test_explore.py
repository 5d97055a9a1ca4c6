"""The explorer: every item of a study in one page, whatever its texts are."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from shannon_game import explore, perplexity
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.estimators.cloze import cloze_items
from shannon_game.estimators.cloze.examples import cloze_study
from shannon_game.estimators.comparison import comparison_items
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.documents.examples import documents_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.examples import guess_study
from shannon_game.estimators.rankings import score_study
from shannon_game.estimators.rankings.examples import ranking_study
from shannon_game.experiments.bets.explore import bet_exploration
from shannon_game.experiments.cloze.explore import cloze_exploration
from shannon_game.experiments.comparison.explore import comparison_exploration
from shannon_game.experiments.guesses.explore import guess_exploration
from shannon_game.experiments.harness import explore as explore_module
from shannon_game.experiments.harness.exploration import BETTER, best_of, posterior_tables
from shannon_game.experiments.harness.explore import MAX_ITEMS, _safe_json, check_explorer, explorer_page
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.rankings.explore import ranking_exploration
from shannon_game.inference.posterior.arviz_adapter import from_groups

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


class Scripts(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []
        self._inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._inside = tag == "script"
        if self._inside:
            self.found.append("")

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            self.found[-1] += data


def content(page: str) -> dict:
    return json.loads(Scripts(page).found[0])


STUDIES = {
    "comparison": (comparison_study, comparison_exploration),
    "cloze": (cloze_study, cloze_exploration),
    "guess": (guess_study, guess_exploration),
    "ranking": (ranking_study, ranking_exploration),
    "bet": (bet_study, bet_exploration),
}


@pytest.mark.parametrize("kind", STUDIES)
def test_every_kind_makes_a_page(kind, tmp_path, without_library):
    study, describe = STUDIES[kind][0](), STUDIES[kind][1]
    page = explore(study, None, tmp_path / "page.html").read_text(encoding="utf-8")
    found, shown = describe(study), content(page)
    assert "@@" not in page
    assert len(Scripts(page).found) == 3
    assert not {"link", "img", "iframe", "base"} & set(Scripts(page).tags)
    assert not re.search(r"\b(src|href)\s*=\s*[\"']?https?:", page)
    assert len(shown["rows"]) == len(shown["details"]) == len(found.items) == len(found.tables)
    assert [column["name"] for column in shown["columns"]] == [str(name) for name in found.items.columns]
    assert all(shown["columns"][axis]["number"] for axis in shown["axes"])
    assert set(found.shown) <= set(found.items.columns)
    # a table's rows are as long as its head
    for tables in found.tables:
        for table in tables:
            assert {len(row) for row in table.rows} <= {len(table.columns)}


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


def test_cloze_answers_are_counted():
    study = cloze_study()
    found = cloze_exploration(study)
    table = found.tables[0][0]
    people = {row[0].removesuffix(" (target)"): row[1] for row in table.rows if row[1]}
    own = study["response_item"].to_numpy() == study["item"].to_numpy()[0]
    words = study["word_text"].to_numpy()[study["response_word"].to_numpy()[own]]
    counts = study["response_count"].to_numpy()[own] if "response_count" in study else np.ones(own.sum())
    assert people == pd.Series(counts).groupby(words).sum().to_dict()
    assert sum(row[2] for row in table.rows) == pytest.approx(1)
    np.testing.assert_allclose(found.items["tvd_mixture"], cloze_items(study)["tvd_mixture"])


def test_ranks_are_those_of_the_estimator():
    study = ranking_study()
    found = ranking_exploration(study.drop_vars("reference_rank"))
    rank = score_study(study).rank
    row = found.items.iloc[13]
    same = [(study[name] == row[name]).to_numpy() for name in ("text", "context_length", "window", "position")]
    at = np.flatnonzero(np.logical_and.reduce([*same, (study["model"] == "large").to_numpy()]))
    assert rank[at].tolist() == [row["rank_large"]]


def test_stakes_of_an_answer_add_up():
    table = bet_exploration(bet_study()).tables[0][0]
    people = {row[0] for row in table.rows}
    assert sum(row[2] for row in table.rows) == pytest.approx(len(people))


def test_numbers_and_warnings_of_the_run_are_there(tmp_path, without_library):
    study = comparison_study()
    result = perplexity(study, rounding="none")
    shown = content(explore(study, result, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert shown["warnings"] == list(result.warnings)
    assert len(shown["table"]["rows"]) == len(result.summary())


def test_a_posterior_with_draws_by_item_is_shown():
    draws = np.arange(2 * 101 * 3, dtype=float).reshape(2, 101, 3)
    coords = {"chain": [0, 1], "draw": np.arange(101), "item": ["a", "b", "c"], "person": ["p", "q", "r"]}
    dims = ("chain", "draw")
    posterior = xr.Dataset({"s": ((*dims, "item"), draws), "other": ((*dims, "person"), draws)}, coords=coords)
    result = ExperimentResult(
        pd.DataFrame(), xr.Dataset(), {}, "", posteriors={"human": from_groups({"posterior": posterior})}
    )
    found = posterior_tables(result, ["c", "a", "x", "b"])
    assert [len(tables) for tables in found] == [1, 1, 0, 1]
    assert found[0][0].rows == [["human", "s", *np.quantile(draws[..., 2], [0.5, 0.05, 0.95]).tolist()]]
    assert posterior_tables(None, ["a"]) == [[]]


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
    assert Scripts(page).tags == Scripts(clean).tags
    assert Scripts(page).found[1:] == Scripts(clean).found[1:]
    assert content(page)["rows"][3][3] == text
    # half a surrogate pair, of a broken file, cannot be written
    assert json.loads(_safe_json("a\ud800")) == "a?"


@given(st.text())
def test_json_in_a_script_is_what_it_was(text):
    safe = _safe_json({text: [text, 1.5, None]})
    assert json.loads(safe) == {text: [text, 1.5, None]}
    assert not set(safe) & set("<>&\u2028\u2029")


def test_what_is_not_finite_is_told_apart(without_library):
    study = guess_study()
    found = guess_exploration(study)
    found.items["n_guesses"] = np.resize([np.inf, -np.inf, np.nan, 1.23456789], len(found.items))
    shown = content(explorer_page(found, name="a"))
    at = [column["name"] for column in shown["columns"]].index("n_guesses")
    assert [row[at] for row in shown["rows"][:4]] == ["inf", "-inf", None, 1.2346]


def test_a_study_that_is_too_large_is_cut_and_says_so(without_library):
    study = guess_study()
    few = guess_exploration(study)
    many = pd.concat([few.items] * (MAX_ITEMS // len(few.items) + 1), ignore_index=True)
    times = len(many) // len(few.items)
    found = type(few)(**{**few.__dict__, "items": many, "tables": list(few.tables) * times})
    shown = content(explorer_page(found, name="a"))
    assert len(shown["rows"]) == len(shown["details"]) == MAX_ITEMS
    assert f"The first {MAX_ITEMS:,} of {len(many):,} are shown" in shown["about"]


def test_nobody_alone_is_better():
    assert best_of({"human": [1.0]}).tolist() == [""]
    nan = float("nan")
    values = {"a": [1, nan, 3, nan], "b": [2, 2, 3, nan], "c": [3, 1, 4, nan]}
    assert best_of(values).tolist() == ["a", "c", "tie", ""]
    assert best_of(values, highest=True).tolist() == ["c", "b", "c", ""]
    assert BETTER in comparison_exploration(comparison_study()).items


def test_refused_before_the_run(monkeypatch):
    with pytest.raises(InputError, match="needs a study with items: comparison, cloze"):
        check_explorer(documents_study())
    monkeypatch.setattr(explore_module, "_NEEDED", ("a_package_that_is_not_here",))
    with pytest.raises(InputError, match=r"output.explore: a_package_that_is_not_here not installed.*\[data\]"):
        check_explorer()


def test_the_library_is_inside_and_ends_no_script(tmp_path):
    page = explore(guess_study(), None, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "vegaEmbed=" in page
    assert len(Scripts(page).found) == 3
    assert len(page) < 2_000_000
