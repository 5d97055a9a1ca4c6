"""Marked numbers of the pages are those of the runs in docs/results, and so are the figures beside them."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from shannon_game import published
from shannon_game.inference.comparison.participant_checks import CAMPS_Z, ENDS_P, UNEXPECTED_SHARE
from shannon_game.models.comparison.reports import REPORTS
from tests.benchmarks.participant_sbc import judged
from tests.docs.pages import script
from tests.experiments.command import ROOT


def loaded(folder: Path) -> ModuleType:
    """Import page_numbers from a folder of pages."""
    module = script("page_numbers")
    module.DOCS, module.RESULTS, module.RUNS = folder, folder / "results", folder / "results/runs.csv"
    return module


@pytest.fixture
def pages(tmp_path: Path) -> ModuleType:
    """A page with two numbers and a table, and a figure, all of one run."""
    docs = tmp_path / "docs"
    (docs / "results").mkdir(parents=True)
    (docs / "figures").mkdir()
    (docs / "figures/perplexity.png").write_bytes(b"first")
    (docs / "results/perplexity.csv").write_text("row,perplexity,share_starved\nhuman none,1760.4,.2917\n")
    (tmp_path / "README.md").write_text("no number\n")
    (docs / "page.md").write_text(
        "<!-- perplexity/human none/perplexity .3g -->1,760<!-- = --> and\n"
        "<!-- perplexity/human none/share_starved share -->29%<!-- = -->\n\n"
        "<!-- table perplexity -->\n| row | perplexity | share starved |\n| --- | ---: | ---: |\n"
        "| human none | 1760.4 | .2917 |\n<!-- end -->\n"
    )
    module = loaded(docs)
    run = ("perplexity", "command", "", "", "perplexity.png", module.digest("perplexity.png"))
    names = ["name", "command", "code", "source", "figure", "figure_hash"]
    pd.DataFrame([run], columns=names).to_csv(module.RUNS, index=False)
    return module


def test_numbers_and_figures_of_the_pages_are_of_the_runs_that_they_name() -> None:
    module = loaded(ROOT / "docs")
    marks = [match for path in module.pages() for match in module.NUMBER.finditer(path.read_text(encoding="utf-8"))]
    assert {match["file"] for match in marks} >= {"human_loss", "perplexity", "reproduce"}
    assert module.disagreements() == []
    # every extract has a run, and every mark is one that the patterns see
    assert set(pd.read_csv(module.RUNS)["name"]) == {path.stem for path in module.RESULTS.glob("*.csv")} - {"runs"}
    texts = "".join(path.read_text(encoding="utf-8") for path in module.pages())
    assert texts.count("<!-- = -->") == len(marks)
    assert texts.count("<!-- end -->") == len(module.TABLE.findall(texts))
    # Markdown takes a line that begins with a comment for HTML, and ends the paragraph
    assert re.findall(rf"^ *{module.NUMBER.pattern}", texts, flags=re.MULTILINE) == []


def test_verdicts_are_of_every_published_value() -> None:
    verdicts = loaded(ROOT / "docs").results("reproduce").astype(int)
    assert verdicts.loc["all", "values"] == published().sizes["value"]
    assert (verdicts.drop(columns="values").sum(axis=1) == verdicts["values"]).all()
    origins = ["printed", "printed again", "in files alone"]
    for rows in (verdicts.loc[origins], verdicts.drop(index=["all", *origins])):
        assert (rows.sum() == verdicts.loc["all"]).all()


def test_a_number_that_disagrees_is_found_and_written(pages: ModuleType) -> None:
    assert pages.disagreements() == []
    page = pages.DOCS / "page.md"
    good = page.read_text()
    for old, new in (("1,760<", "1,766<"), ("29%", "30%"), ("1760.4 |", "1766 |")):
        page.write_text(good.replace(old, new))
        (found,) = pages.disagreements()
        assert "should be" in found
        pages.disagreements(write=True)
        assert page.read_text() == good


def test_a_figure_of_another_run_is_found(pages: ModuleType) -> None:
    (pages.DOCS / "figures/perplexity.png").write_bytes(b"second")
    (found,) = pages.disagreements()
    assert "not of the run" in found


ROWS = {
    "ten beliefs": "answers:(?!peaks|shallow)",
    "of these: temperature 0.7": "answers:cold:2:",
    "the generator without": "answers:shallow:",
    "14M model, exact": "game:14M:exact",
    "GPT-2 medium": "game:gpt2-medium:",
}


@pytest.fixture(scope="module")
def studies() -> pd.DataFrame:
    return pd.read_csv(ROOT / "docs" / "results/hidden_recovery.csv")


@pytest.mark.parametrize("label", ROWS)
def test_a_row_is_that_of_its_studies(label: str, studies: pd.DataFrame) -> None:
    own = studies[(studies["engine"] == "gaussian") & studies["cell"].str.match(ROWS[label])]
    error, width = own["gap_median"] - own["gap_truth"], own["gap_upper"] - own["gap_lower"]
    (line,) = re.findall(rf"^\| {label}.*$", (ROOT / "docs" / "participant_model.md").read_text(), re.MULTILINE)
    shown = [float(cell) for cell in line.split("|")[2:-1]]
    assert [shown[0], shown[4]] == [len(own), own["gap_covers"].sum()]
    found = [error.mean(), np.sqrt((error**2).mean()), width.mean()]
    np.testing.assert_allclose(shown[1:4], found, atol=0.00501)


def test_rows_of_people_of_another_form_are_those_of_their_studies() -> None:
    studies, page = (
        pd.read_csv(ROOT / "docs/results/hidden_people.csv"),
        (ROOT / "docs/participant_model.md").read_text(),
    )
    of_study = ["case", "collected", "items", "study"]
    checked = studies.drop_duplicates(of_study)
    two, swapped = checked["case"].isin(["camps", "minority"]), checked["case"] == "swapped"
    everything = studies
    sampled, studies = (studies[studies["engine"] == name] for name in ("nuts", "gaussian"))
    bent = studies["case"].isin(["pull", "prospect"])
    free = checked["collected"] == "answers"
    for rings, of, text in (
        (checked["camps_z"] > CAMPS_Z, ~two, "studies"),
        (checked["camps_z"] > CAMPS_Z, checked["case"] == "camps", "with two camps"),
        (checked["camps_z"] > CAMPS_Z, checked["case"] == "minority", "where a quarter dissents"),
        (studies["ends_p"] < ENDS_P, ~bent, "(0% to 2%) | 0 of"),
        (studies["ends_p"] < ENDS_P, bent, "with a pull toward 50% or prospect weighting"),
        (checked["unexpected"] > UNEXPECTED_SHARE, free & ~swapped, "studies"),
        (checked["unexpected"] > UNEXPECTED_SHARE, free & swapped, "where each item's top word"),
    ):
        assert f"{(rings & of).sum()} of {of.sum()} {text}" in page
    both = sampled.merge(studies, on=of_study, suffixes=("", "_gaussian"))
    off = both["hull_median"] - both["hull_median_gaussian"]
    assert f"of {len(sampled)} studies {sampled['hull_holds'].astype(bool).sum()} hold" in page
    assert f"medians are {off.mean():.2f} nats higher, by {off.abs().max():.2f} at most" in page
    alone = studies[studies["collected"] == "comparisons"]
    for own, text in ((sampled, "({} pass their check)"), (alone, "; {} pass their check)")):
        assert text.format(own["converged"].astype(bool).sum()) in page
    answers, longer = (
        studies[(studies["collected"] == "answers") & (studies["items"] == items)] for items in (60, 120)
    )
    for own in (answers, longer):
        held, others = own["hull_holds"].astype(bool), own["case"] != "swapped"
        assert f"{held.sum()} of {len(held)} hold" in page
        assert f"{held[others].sum()} of {others.sum()} without `swapped`" in page
    shared = longer[longer["case"] == "shared_bias"]["hull_holds"].astype(bool)
    assert f"with 120 items {shared.sum()} of {len(shared)}" in page
    wider = everything[(everything["engine"] == "gaussian wider 2") & (everything["case"] == "shared_bias")]
    assert f"with priors twice as wide {wider['hull_holds'].astype(bool).sum()} of {len(wider)}" in page
    studies = studies[studies["items"] == 60]
    for case, own in answers.groupby("case"):
        (line,) = re.findall(rf"^\| `{case}`.*$", page, re.MULTILINE)
        shown = [cell.strip() for cell in line.split("|")[2:-1]]
        error, width = own["hull_median"] - own["truth"], own["hull_upper"] - own["hull_lower"]
        found = [error.mean(), np.sqrt((error**2).mean()), width.mean()]
        np.testing.assert_allclose([float(cell) for cell in shown[:3]], found, atol=0.00501)
        rings = (own["camps_z"] > CAMPS_Z) | (own["ends_p"] < ENDS_P) | (own["unexpected"] > UNEXPECTED_SHARE)
        alone = studies.loc[(studies["collected"] == "comparisons") & (studies["case"] == case), "hull_holds"]
        held = [f"{its.astype(bool).sum()} of {len(its)}" for its in (own["hull_holds"], alone)]
        assert shown[3:] == [held[0], str(rings.sum()), held[1]]


@pytest.mark.parametrize("collected", ["answers", "comparisons"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_row_of_the_simulated_language_is_that_of_its_studies(collected: str, whole: bool) -> None:
    label = {"answers": "free answers", "comparisons": "comparisons alone"}[collected]
    label += {True: " and whole" if collected == "answers" else ", whole", False: ", no whole"}[whole]
    studies = pd.read_csv(ROOT / "docs/results/simulated_language.csv")
    own = studies[(studies["collected"] == collected) & (studies["whole_distribution"] == whole)]
    error, width = own["median"] - own["truth"], own["upper"] - own["lower"]
    covers = own["truth"].between(own["lower"], own["upper"]).sum()
    (line,) = re.findall(rf"^\| {label} .*$", (ROOT / "docs" / "participant_model.md").read_text(), re.MULTILINE)
    shown = [float(cell) for cell in line.split("|")[2:-1]]
    assert [shown[0], shown[4]] == [len(own), covers]
    np.testing.assert_allclose(shown[1:4], [error.mean(), np.sqrt((error**2).mean()), width.mean()], atol=0.00501)


def test_nuts_is_compared_with_the_gaussian_on_the_same_studies(studies: pd.DataFrame) -> None:
    engines = [studies[studies["engine"] == name] for name in ("nuts", "gaussian")]
    both = engines[0].merge(engines[1], on=["cell", "study"], suffixes=("", "_gaussian"))
    off = both["gap_median"] - both["gap_median_gaussian"]
    assert len(both) == 14
    assert round(off.mean(), 2) == 0.02
    assert round(off.abs().max(), 2) == 0.10


def test_promises_of_designs_are_those_of_their_studies() -> None:
    page = (ROOT / "docs/design_a_study.md").read_text()
    for game, own in pd.read_csv(ROOT / "docs/results/design_promise.csv").groupby("game"):
        (line,) = re.findall(rf"^\| `{game}` \| .*%.*$", page, re.MULTILINE)
        shown = [cell.strip() for cell in line.split("|")[2:-1]]
        error = own["value"] - own["truth"]
        kept, covered = own["width"] <= own["wanted_width"], error.abs() <= own["width"] / 2
        assert len(own) == 200
        assert shown[3:5] == [f"{kept.mean():.1%}", f"{covered.mean():.1%}"]
        assert float(shown[5]) == pytest.approx(error.mean(), abs=5.01e-4)


def test_calibration_and_walks_on_the_pages_are_those_of_their_studies() -> None:
    results, page = ROOT / "docs/results", (ROOT / "docs/participant_model.md").read_text()
    ranks = pd.read_csv(results / "participant_sbc.csv")
    passed, gap = dict[str, tuple[int, int]](), dict[str, float]()
    for report, own in ranks.groupby("report"):
        found = judged(own)["p_value"]
        passed[report], gap[report] = (len(own), int(own["converged"].sum())), found["gap"]
        assert found.min() > 0.05 / len(found)
    main = {name: passed.pop(name) for name in ("shared_bias", "linear")}
    (n, shared), (n_linear, linear) = main.values()
    assert n == n_linear == 200
    assert min(shared, linear) / n > 0.98
    assert f"{shared} of {n} fits of `shared_bias` and {linear} of {n_linear} of `linear` pass" in page
    assert f"(gap: p = {gap['shared_bias']:.2f} and p = {gap['linear']:.2f})" in page
    others = np.sum([*passed.values()], axis=0)
    assert set(passed) | set(main) == set(REPORTS)
    assert f"{others[1]} of {others[0]} pass" in page
    chosen = pd.read_csv(results / "report_likelihoods.csv")
    right = {name: int((own["chosen"] == name).sum()) for name, own in chosen.groupby("report")}
    assert chosen.groupby("report").size().tolist() == [20, 20]
    assert f"in {right['pulled']} of 20 studies with a pull and in {right['equation_6']} of 20 with equation 6" in page
    page = (ROOT / "docs/collect_data.md").read_text()
    for game, own in pd.read_csv(results / "study_walks.csv").groupby("game"):
        (line,) = re.findall(rf"^\| `{game}` \|.*$", page, re.MULTILINE)
        shown = [float(cell) for cell in line.split("|")[2:-1]]
        means = own[["error", "rms_error", "holds", "width", "promised_width"]].mean()
        means["rms_error"] = np.sqrt((own["rms_error"] ** 2).mean())
        np.testing.assert_allclose(shown, [len(own), *means], atol=0.00501)
