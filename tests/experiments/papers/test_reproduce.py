"""``+exp=reproduce`` on tiny copies of the layouts: parts, resuming, verdicts, the report; and on the real data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from shannon_game import published
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import quoted
from shannon_game.experiments.harness.job import prepare
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.papers.published_study import (
    DATA_MISSING,
    DIFFERS,
    EXPLAINED,
    NO_VALUE,
    NOT_AVAILABLE,
    NOT_RUN,
    PART_FAILED,
    READ,
    REPRODUCED,
    VERDICTS,
    WITHIN_TOLERANCE,
)
from shannon_game.experiments.papers.reproduce.experiment import (
    PublishedRow,
    ReproduceSettings,
    judged_values,
    of_asked_papers,
    value_of,
)
from shannon_game.experiments.papers.reproduce.parts import PAPERS, PARTS
from shannon_game.experiments.papers.reproduce.report import summary
from shannon_game.experiments.papers.reproduce.run import Outcome, Planned, plan
from tests.experiments.command import ROOT, command, config, environment, run_experiment
from tests.experiments.harness.test_html_page import Page, fetched
from tests.experiments.studies.cloze import tiny_provo
from tests.experiments.studies.guesses import tiny_top1

OVERRIDES = {
    "accuracy": ["experiment.min_answers=5", "experiment.n_replicates=20"],
    "improve": ["experiment.given={n_replicates:20}"],
    "distributions": ["experiment.given={item:['1:3']}"],
    # more samples than there are: refused by the part
    "tvd_sample_size": ["experiment.given={n:[100000]}"],
}
PARTS_RUN = [*OVERRIDES, "ranks"]


def reproduced(data: Path, folder: Path, parts: list[str] = PARTS_RUN, **settings: Any) -> ExperimentResult:
    cfg = config("+exp=reproduce", "output.dpi=30")
    cfg.data.root = str(data)
    given = {"n_jobs": 2, "folder": str(folder), "parts": parts, "overrides": OVERRIDES} | settings
    cfg.experiment = OmegaConf.merge(cfg.experiment, given)
    # as somebody who installed the package and has no checkout, whatever is installed here
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as site:
        Path(site, "shannon_game").symlink_to(ROOT / "shannon_game")
        patch.setenv("PYTHONPATH", site)
        patch.setenv("SHANNON_DATA", str(data))
        patch.chdir(site)
        return prepare(cfg).run()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data's folder")
    tiny_top1.played(root / "lm_game")
    tiny_provo.write(root / "provo")
    return root


@pytest.fixture(scope="module")
def first(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ExperimentResult]:
    folder = tmp_path_factory.mktemp("out") / "parts"
    return folder, reproduced(data, folder)


def stamps(folder: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("*/table.csv")}


@pytest.mark.subprocess
def test_every_value_has_one_verdict(first) -> None:
    _, result = first
    table = result.table
    assert list(table.columns) == [one.name for one in PublishedRow.columns]
    assert len(table) == published().sizes["value"]
    assert set(table["verdict"]) <= set(VERDICTS)
    by_part = table.groupby("part")["verdict"].agg(set)
    assert by_part["ranks"] == {DATA_MISSING}
    assert by_part["tvd_sample_size"] == {PART_FAILED}
    assert by_part["tvd_legacy"] == by_part["perplexity"] == {NOT_RUN}
    assert by_part[""] == {NOT_AVAILABLE}
    # people who do not exist are not those of the paper
    assert by_part["accuracy"] & {DIFFERS, NO_VALUE}
    checked = table[table["part"] == "accuracy"].set_index(["where", "quantity"])
    row = checked.loc[("section 3, the public file", "visible tokens, shared name left out: participants")]
    assert (row["ours"], row["published"], row["verdict"]) == (8, "67", DIFFERS)


def test_a_value_counted_from_other_data_is_not_compared() -> None:
    table = pd.DataFrame({"quantity": ["tvd"], "n_contexts": ["2686"], "ours": ["0.64"]})
    assert value_of(table, {"n_contexts": "2686", "quantity": "tvd"}, "ours") == (0.64, "", "")
    # what a part says of its own number counts: computed where the folder has the samples, read where not
    assert value_of(table.assign(basis=READ), {"quantity": "tvd"}, "ours") == (0.64, "", READ)
    ours, problem, _ = value_of(table, {"n_contexts": "797", "quantity": "tvd"}, "ours")
    assert ours is None
    assert problem == "is of other data: n_contexts is 2686, not 797"


@pytest.mark.subprocess
def test_figures_of_the_papers_stand_in_one_folder(first, data: Path) -> None:
    """Named as in the papers, a subset of a study too; what is not drawn says why."""
    folder, _ = first
    old = stamps(folder)
    drawn = reproduced(data, folder, papers=["provo"], parts=["improve", "distributions"], figures=True)
    # parts that are done are taken, wherever their data were said to be
    assert stamps(folder) == old
    files = drawn.files["paper_figures"]
    index = pd.read_csv(files / "figures.csv", keep_default_na=False)
    assert set(index["paper"]) == {"provo"}
    assert {path.name for path in files.iterdir()} == {*index["file"]} - {""} | {"figures.csv", "sheet.png"}
    of = index.groupby("figure")["file"].agg(list)
    assert of["figure 11"] == ["provo_figure_11.png", "provo_figure_11.svg"]
    assert all(name.startswith("provo_figure_1_text_1") for name in of["figure 1"])
    assert index.loc[index["file"] == "", "note"].str.startswith("not run: ").all()


@pytest.mark.subprocess
def test_finished_parts_are_not_run_again(first, data: Path) -> None:
    folder, before = first
    old = stamps(folder)
    assert set(old) == {"accuracy", "improve", "distributions"}, before.warnings
    # one is asked for again, and one has other settings
    other = OVERRIDES | {"improve": ["experiment.given={n_replicates:21}"]}
    parts = [name for name in PARTS_RUN if name != "tvd_sample_size"]
    after = reproduced(data, folder, parts, again=["distributions"], overrides=other)
    new = stamps(folder)
    assert new["accuracy"] == old["accuracy"]
    assert new["distributions"] > old["distributions"] == new["distributions_before_1"]
    assert new["improve"] > old["improve"]
    same = after.table["part"].isin(["accuracy", ""])
    pd.testing.assert_frame_equal(after.table[same], before.table[same])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["experiment.parts=[tvd_legasy]"],
            "experiment.parts: unknown part or group 'tvd_legasy'; did you mean 'tvd_legacy'",
        ),
        (["+data.prov=x"], "data: unknown setting 'prov'; did you mean 'provo'\\? choose one of: root, lm_game"),
        (["+experiment.overrides.improve=[a]"], r"experiment.overrides.improve: is \['a'\]"),
        (["experiment.of=tvd", "study=provo", "experiment.papers=[provo]"], "experiment.papers: goes without of=tvd"),
        (["experiment.parts=[provo]"], "nothing can be run, data: there is no download; get the repository"),
    ],
)
def test_wrong_settings(tmp_path: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_experiment("+exp=reproduce", f"experiment.folder={tmp_path}", *overrides)
    assert list(tmp_path.iterdir()) == []


def test_a_paper_stands_for_all_of_its_parts() -> None:
    """The first paper has two games, whose data are two groups: every part that one of its values names is run."""
    values = published()
    for paper in PAPERS:
        needed = set(values["part"].to_numpy()[values["paper"].to_numpy() == paper]) - {""}
        assert needed <= set(ReproduceSettings().named([paper])), paper


def test_nothing_is_subtracted_from_a_bound(tmp_path: Path) -> None:
    values = published()
    chosen = (values["part"] == "tvd_legacy") & (values["select"] == "quantity=ece/bloom/oracle1/20 seeds/sd")
    (tmp_path / "tvd_legacy").mkdir()
    (tmp_path / "tvd_legacy" / "table.csv").write_text("quantity,authors_code\nece/bloom/oracle1/20 seeds/sd,0.008\n")
    planned = Planned(PARTS["tvd_legacy"], tmp_path / "tvd_legacy", (), "", may_download=False)
    table = judged_values(values.isel(value=chosen.to_numpy()), [Outcome(planned, "done")])
    assert (table["published"] == "<0.1").any()
    assert table["difference"].isna().tolist() == table["published"].str.startswith("<").tolist()


def test_what_was_not_asked_for_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("quantity,authors_code\n")
    outcomes = [
        Outcome(Planned(part, tmp_path, (), "", may_download=False), "done" if part.paper == "provo" else "not run")
        for part in PARTS.values()
    ]
    table = judged_values(published(), outcomes)
    asked = of_asked_papers(table)
    assert set(asked["paper"]) == {"provo"}
    assert set(table.loc[table["paper"] != "provo", "verdict"]) == {NOT_RUN}
    said = summary(table, outcomes)
    assert f"Of {(asked['origin'] == 'printed').sum()} values that the papers print, 0 are computed" in said
    assert f"Not asked for: {len(table) - len(asked):,}." in said


def test_any_folder_name_reaches_the_part(tmp_path: Path) -> None:
    for name in ("plain", "with space", "it's", "a,b=c", "back\\slash", "end\\'", "Zürich [1]"):
        folder = tmp_path / name / "provo" / "TVD"
        folder.mkdir(parents=True)
        root = str(tmp_path / name)
        data = {"root": root, "lm_game": None, "provo": None, "rank_perplexity": None}
        (one,) = plan([PARTS["improve"]], data=data, folder=tmp_path)
        assert one.problem == ""
        with initialize_config_module("shannon_game.conf", version_base="1.3"):
            assert compose("config", overrides=list(one.overrides)).study.root == str(folder.parent), name
    assert quoted("/a/b-c_1.2") == "/a/b-c_1.2"


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"terminated")]
)
def test_being_stopped_stops_the_parts_and_leaves_what_is_done(
    number: signal.Signals, code: int, word: bytes, data: Path, tmp_path: Path
) -> None:
    arguments = [
        "+exp=reproduce",
        f"data.root={quoted(str(data))}",
        "experiment.parts=[tvd_sample_size_clean]",
        "+experiment.overrides.tvd_sample_size_clean=['n=[10]','experiment.n_repeats=100000000']",
    ]
    process = subprocess.Popen(
        command(*arguments), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, start_new_session=True
    )
    part = tmp_path / "outputs" / "reproduce" / "parts" / "tvd_sample_size_clean"
    log = part / "run.log"
    try:
        end = time.monotonic() + 600
        while not (log.is_file() and "loaded study" in log.read_text()) and time.monotonic() < end:
            time.sleep(0.1)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does: the command and its parts get it
        else:
            process.send_signal(number)  # as a scheduler does: only the command gets it
        _, said = process.communicate(timeout=600)
        assert process.returncode == code, said
        assert word in said
        for folder in (part, part.parents[1]):
            assert json.loads((folder / "status.json").read_text())["status"] == "interrupted"
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)
    finally:
        # a failure must not leave a run without end behind
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_everything_on_the_real_data(
    lm_game_root: Path, provo_root: Path, rank_perplexity_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value without a verdict, none that differs unexpectedly, and not one more excuse than today."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    roots = {"lm_game": lm_game_root, "provo": provo_root, "rank_perplexity": rank_perplexity_root}
    data = [f"data.{name}={root}" for name, root in roots.items()]
    cfg = config("+exp=reproduce", "output.dpi=30", *data, f"experiment.folder={tmp_path / 'parts'}")
    job = prepare(cfg)
    result = job.run()
    table = result.table
    assert not result.gate_failed, result.warnings
    assert len(table) >= 1250
    assert table["ours"].notna().sum() >= 1250
    number = table.groupby(["paper", "verdict"]).size()
    assert number.to_dict() == {
        ("lm_game", REPRODUCED): 231,
        ("lm_game", WITHIN_TOLERANCE): 20,
        ("lm_game", READ): 23,
        ("lm_game", NOT_AVAILABLE): 32,
        ("lm_game", EXPLAINED): 4,
        ("provo", REPRODUCED): 304,
        ("provo", WITHIN_TOLERANCE): 13,
        ("provo", READ): 22,
        ("provo", NOT_AVAILABLE): 34,
        ("provo", EXPLAINED): 3,
        ("rank_perplexity", REPRODUCED): 831,
        ("rank_perplexity", EXPLAINED): 8,
    }
    write_outputs(tmp_path, cfg, job.study, result)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert fetched(page) == []
    # every figure that the Markdown names is in the page
    named = (tmp_path / "report.md").read_text(encoding="utf-8").count("\n![")
    assert [tag for tag, _ in Page(page).tags].count("img") == named >= 19
    assert np.isfinite(table.loc[table["verdict"] == REPRODUCED, "ours"]).all()
