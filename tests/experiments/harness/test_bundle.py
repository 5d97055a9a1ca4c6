"""A bundle for a repository: whole, the same every time, and nobody's id in it."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import accuracy, bet_perplexity, bounds, bundle, perplexity, pseudonymous
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.estimators.code_identity import package_version
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.examples import guess_study
from shannon_game.experiments.harness.bundle_checks import check_bundle, without_texts
from shannon_game.experiments.harness.csv_tables import read_guarded_csv
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import run


def small_result() -> ExperimentResult:
    figure = new_figure(2, 2)
    figure.add_subplot().plot([1, 2], [1, 3])
    table = pd.DataFrame({"player": ["human", "a_b"], "perplexity": [147.917, np.nan], "verdict": ["100%", "x & y"]})
    people = pd.DataFrame({"participant": ["P2", "P1"], "n": [1, 2]})
    return ExperimentResult(table, xr.Dataset(), {"line": figure}, "Text.", tables={"participants": people})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = {"study": {"root": "/home/somebody/data/lm"}, "seed": 3, "players": ["human"]}
    return bundle(
        pseudonymous(comparison_study())[0],
        small_result(),
        tmp_path / "bundle",
        config=config,
        experiment="perplexity",
        data={"a": "0" * 64},
    )


def test_the_same_run_gives_the_same_bytes(folder, tmp_path):
    packed = (tmp_path / "bundle.zip").read_bytes()
    config = {"study": {"root": "/home/else/lm"}, "seed": 3, "players": ["human"]}
    again = tmp_path / "again" / "bundle"
    study, _ = pseudonymous(comparison_study())
    bundle(study, small_result(), again, config=config, experiment="perplexity", data={"a": "0" * 64})
    assert (tmp_path / "again" / "bundle.zip").read_bytes() == packed
    with zipfile.ZipFile(tmp_path / "bundle.zip") as found:
        assert found.testzip() is None
        assert all(name.startswith("bundle/") for name in found.namelist())
        assert {entry.date_time for entry in found.infolist()} == {(1980, 1, 1, 0, 0, 0)}


HOSTILE = [
    *("1", "2.5", "a", "human", "model", "P1", "=cmd|' /C calc'!A0", "'x,y", 'so "so"', "two\nlines", "*[m](d)*|"),
    *("\\textbf{z}_$", "zoe@example.org"),
]


def with_ids(study: xr.Dataset, ids: list[str]) -> xr.Dataset:
    """The same answers by other people, who sort as the first ones."""
    of = [name for name in study.variables if "participant" in str(name) and study[name].dtype.kind in "OU"]
    people = sorted({who for name in of for who in study[name].to_numpy().tolist()})
    names = dict(zip(people, sorted(ids), strict=False))
    renamed = {name: (study[name].dims, np.array([names[who] for who in study[name].to_numpy()])) for name in of}
    return study.assign_coords({name: renamed[name] for name in of if name in study.coords}).assign(renamed)


@pytest.mark.parametrize(
    ("experiment", "study", "settings"),
    [
        (accuracy, guess_study, {"posterior": False}),
        (bounds, guess_study, {"vocab_size": 100}),
        (bet_perplexity, bet_study, {"posterior": False}),
        (perplexity, comparison_study, {}),
    ],
)
def test_a_bundle_depends_on_nobodys_id_and_has_the_studys_numbers(experiment, study, settings, tmp_path):
    packed = []
    for at, ids in enumerate(([f"p{number:02d}" for number in range(13)], HOSTILE)):
        named = with_ids(study(), ids)
        renamed, key = pseudonymous(named)
        result = experiment(renamed, **settings)
        folder = bundle(renamed, result, tmp_path / str(at) / "bundle", config={"exclude_participants": ids})
        packed.append(folder.with_suffix(".zip").read_bytes())
        assert set(named["participant"].to_numpy()) <= set(key["participant"]) <= set(ids)
        direct = experiment(named, **settings)
        for name, table in {"": direct.table, **direct.tables}.items():
            own = result.tables[name] if name else result.table
            pd.testing.assert_frame_equal(own.select_dtypes("number"), table.select_dtypes("number"))
    assert packed[0] == packed[1]


def test_the_readme_says_how_to_run_it_again(tmp_path):
    overrides = [
        *("+exp=perplexity", "study=comparison_table", "study.path=/home/zoe/my data/a.csv", "output.print=false"),
        *("experiment.exclude_participants=[zoe]", "models.api.base_url=http://127.0.0.1:8000/v1", "hydra.run.dir=/x"),
    ]
    study = pseudonymous(comparison_study())[0].assign_attrs(data_sha256="0" * 64)
    folder = bundle(
        study, small_result(), tmp_path / "b", config={"experiment": {"extra": ["data"]}}, overrides=overrides
    )
    said = (folder / "README.md").read_text(encoding="utf-8").partition("## Run this again")[2].partition("## Files")[0]
    assert "zoe" not in said
    assert (
        "run +exp=perplexity study=comparison_table study.path=.../a.csv experiment.exclude_participants=NOT_SHARED "
        "models.api.base_url=http://127.0.0.1:8000/v1 output.bundle=true hydra.run.dir=again\n"
    ) in said
    assert f'pip install "shannon-game[data]=={package_version()}"' in said
    assert hashlib.sha256((folder / "tables" / "table.csv").read_bytes()).hexdigest() in said
    assert "whose SHA-256 is in `data.csv`" in said


def test_a_study_that_names_people_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"names people; give pseudonymous\(study\)"):
        bundle(comparison_study(), small_result(), tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.subprocess
def test_a_run_keeps_the_key_for_its_owner(tmp_path):
    rows = [(who, "d", place, "x", "x") for who in ("zoe@example.org", "=ann") for place in range(4)]
    columns = ["participant", "document", "position", "guess", "target"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "guesses.csv", index=False)
    given = ("study=guess_table", "study.path=guesses.csv", "experiment.posterior=false")
    done = run(tmp_path, "+exp=accuracy", *given, "output.bundle=true", "hydra.run.dir=out")
    assert done.returncode == 0, done.stderr
    key = tmp_path / "out" / "pseudonyms.csv"
    assert read_guarded_csv(key)["participant"].tolist() == ["=ann", "zoe@example.org"]
    assert key.stat().st_mode & 0o777 == 0o600
    for file in (tmp_path / "out" / "bundle").rglob("*"):
        assert not file.is_file() or not {b"zoe", b"=ann"} & set(re.findall(rb"zoe|=ann", file.read_bytes()))


def verdicts(study: str, tables: dict[str, pd.DataFrame]) -> list[str]:
    return [check.verdict for check in check_bundle(study, tables)]


def test_checks_of_what_may_be_shared():
    plain = {"participants": pd.DataFrame({"participant": ["p1", "p2"], "n": [1, 2]})}
    assert verdicts("simulated", plain) == ["pass"] * 4
    names = {"participants": pd.DataFrame({"participant": ["Ann", "Zoë"]})}
    checks = check_bundle("simulated", names)
    assert [check.verdict for check in checks] == ["warn", "pass", "pass", "pass"]
    assert "Ann" not in checks[0].found
    written = {"items": pd.DataFrame({"modal_answer": ["dog", "zoe@example.org"]})}
    checks = check_bundle("mine", written)
    assert [check.verdict for check in checks] == ["pass", "warn", "warn", "pass"]
    assert checks[1].found.startswith("items.csv, row 2, modal_answer: an e-mail address")
    assert "zoe@" not in checks[1].found
    assert "items.csv: modal_answer" in checks[2].found


@pytest.mark.parametrize("study", ["lm_game", "provo", "rank_perplexity"])
def test_texts_without_a_licence_stay_at_home(study):
    tables = {"items": pd.DataFrame({"item": [1], "context": ["once upon"], "target": ["a"], "tvd": [0.5]})}
    kept, left_out = without_texts(study, tables)
    assert list(kept["items"]) == ["item", "tvd"]
    assert left_out == ["items.csv: context", "items.csv: target"]
    assert check_bundle(study, kept, left_out=left_out)[2].verdict == "warn"
    assert without_texts("mine", tables)[0]["items"].equals(tables["items"])
