"""A comparison study as one file, and in the public layout of the game: what is read is what was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note, notes
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.comparison.file import comparison_file, save_comparison_study
from shannon_game.experiments.studies.comparison.lm_game import lm_game
from shannon_game.experiments.studies.comparison.lm_game_write import write_lm_game
from tests.estimators.comparison.comparison_studies import small_study
from tests.experiments.command import config
from tests.experiments.studies.comparison.tiny_lm_game import CONFIG, write_folder

STRANGE = [" cat", "\x00", "\\", "\\u0041", "\ufffd", "😀", "", "\n\r\t", "\\u0000 \x00", " Zürich", "nan", "None"]


def objects(values: list[str]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def strange_study() -> xr.Dataset:
    """A study whose strings are all that a tokenizer can give."""
    study = small_study().copy()
    for name in ("context", "target_token", "candidate_token", "participant"):
        old = study[name]
        values = [STRANGE[i % len(STRANGE)] or ("x" if name == "participant" else "") for i in range(old.size)]
        study[name] = (old.dims, objects(values).reshape(old.shape))
    # a token that was the target may be another one now, and both together are no more than all
    for name in ("target_logprob", "candidate_logprob"):
        study[name] = study[name] - 1
    study["automatic"] = study["automatic"] & False
    add_note(study, "strange", count=3)
    return validate_comparison_study(study)


def load(path: Path) -> xr.Dataset:
    return comparison_file(path=path)


def same(found: xr.Dataset, wanted: xr.Dataset) -> None:
    """Equal in everything, the hash of the file apart."""
    assert set(found.variables) == set(wanted.variables)
    for name, variable in wanted.variables.items():
        assert found[name].dims == variable.dims
        assert found[name].dtype.kind == variable.dtype.kind or {found[name].dtype.kind, variable.dtype.kind} <= {
            *"OUT"
        }
        if variable.dtype.kind in "OUT":
            assert found[name].values.tolist() == variable.values.tolist(), name
        else:
            assert found[name].dtype == variable.dtype
            np.testing.assert_array_equal(found[name].values, variable.values)
    attributes = {key: value for key, value in wanted.attrs.items() if key != "data_sha256"}
    assert {key: found.attrs[key] for key in attributes} == attributes
    assert len(found.attrs["data_sha256"]) == 64


@pytest.mark.parametrize("make", [small_study, strange_study, lambda: strange_study().isel(response=slice(0))])
def test_a_study_comes_back_as_it_was(make: Callable[[], xr.Dataset], tmp_path: Path) -> None:
    study = make()
    before = study.copy(deep=True)
    path = save_comparison_study(study, tmp_path / "study.nc")
    found = load(path)
    same(found, study)
    assert notes(found) == notes(study)
    xr.testing.assert_identical(study, before)
    # and once more, over itself
    save_comparison_study(found, path)
    same(load(path), study)
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.nc"]


def test_it_is_a_study_of_the_command(tmp_path: Path) -> None:
    path = save_comparison_study(small_study(), tmp_path / "study.nc")
    cfg = config("+exp=perplexity", "study=comparison_file", f"study.path={path}")
    same(load_study(cfg.study, kind="comparison"), small_study())


def test_other_tools_read_the_strings(tmp_path: Path) -> None:
    path = save_comparison_study(small_study(), tmp_path / "study.nc")
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        assert dataset["target_token"].values.tolist() == small_study()["target_token"].values.tolist()
        assert dataset.attrs["format"] == "shannon-game comparison study 1"


def test_a_file_of_another_program_needs_no_mark_of_ours(tmp_path: Path) -> None:
    study = small_study()
    del study.attrs["name"]
    study.to_netcdf(tmp_path / "mine.nc", engine="h5netcdf")
    assert load(tmp_path / "mine.nc").attrs["name"] == "mine"


def test_files_that_are_no_study_are_named(tmp_path: Path) -> None:
    path = tmp_path / "study.nc"
    path.write_bytes(b"not a netCDF file")
    with pytest.raises(InputError, match=r"study\.nc: cannot be read as netCDF"):
        load(path)
    with pytest.raises(InputError):
        save_comparison_study(small_study(), path)
    path.unlink()
    save_comparison_study(small_study(), path)
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(InputError, match=r"study\.nc: cannot be read as netCDF"):
        load(path)
    small_study().drop_vars("context").to_netcdf(path, engine="h5netcdf")
    with pytest.raises(
        InputError, match=r"study\.nc: holds no comparison study that can be used: .*context: is missing"
    ):
        load(path)
    small_study().assign_attrs(format="shannon-game comparison study 9").to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match="format: is 'shannon-game comparison study 9', this version"):
        load(path)
    broken = small_study()
    broken["context"].attrs["string_escape"] = "rot13"
    broken.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match="string_escape: is 'rot13'"):
        load(path)


@pytest.mark.parametrize("name", ["study.txt", "no/folder/study.nc"])
def test_wrong_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"should be a name ending in \.nc in a folder that exists"):
        save_comparison_study(small_study(), tmp_path / name)
    with pytest.raises(InputError, match="context: is missing"):
        save_comparison_study(small_study().drop_vars("context"), tmp_path / "study.nc")


# ---------------------------------------------------------------------------------- the layout of the game

GAME = {**CONFIG, "cache": False, "participants": "all"}


def test_the_games_own_loader_reads_what_was_written(tmp_path: Path) -> None:
    first = lm_game(**{**GAME, "root": str(write_folder(tmp_path / "public"))})
    folder = write_lm_game(first, tmp_path / "written")
    second = lm_game(**{**GAME, "root": str(folder)})
    variables = ["context", "target_token", "candidate_token", "participant", "report", "automatic", "row_id"]
    for name in (*variables, "item", "model", "item_set", "in_reference", "response_item", "response_candidate"):
        assert second[name].values.tolist() == first[name].values.tolist(), name
    for name in ("target_logprob", "candidate_logprob"):
        np.testing.assert_array_equal(second[name].values, first[name].values)
    assert second.attrs["generator"] == first.attrs["generator"]


def test_the_fields_are_those_of_the_public_files(tmp_path: Path) -> None:
    public = write_folder(tmp_path / "public")
    study = lm_game(**{**GAME, "root": str(public)})
    folder = write_lm_game(study, tmp_path / "written")
    for item in study["item"].values.tolist():
        name = f"multi_comparisons/doc{item}.json"
        ours, theirs = (json.loads((root / name).read_text()) for root in (folder, public))
        assert set(ours) == set(theirs)
        assert ours["generator_names"] == ["14M", "gpt2-small", "gpt2-medium"]
        for field in set(theirs) - {"generator_names", "generation_probs", "input_str"}:
            assert ours[field] == theirs[field]
        np.testing.assert_allclose(ours["generation_probs"], theirs["generation_probs"])


def test_a_study_without_answers_in_the_games_layout(tmp_path: Path) -> None:
    study = small_study().isel(response=slice(0))
    folder = write_lm_game(study, tmp_path / "written")
    assert not (folder / "results_raw").exists()
    items = study["item"].values.tolist()
    span = [min(items), max(items)]
    settings = {"root": str(folder), "sets": {"built": span}, "reference": span, "cache": False}
    found = lm_game(**{**settings, "answers": False})
    assert found.sizes["response"] == 0
    for name in ("context", "target_token", "candidate_token"):
        assert found[name].values.tolist() == study[name].values.tolist()
    np.testing.assert_array_equal(found["candidate_logprob"].values, study["candidate_logprob"].values)
    assert "answers were not read (answers=false)" in [entry["text"] for entry in notes(found)]
    with pytest.raises(InputError, match="has no results_raw/"):
        lm_game(**settings)
    with pytest.raises(InputError, match="answers: is 'no', should be true or false"):
        lm_game(**{**settings, "answers": "no"})


@pytest.mark.parametrize("report", [*(percent / 100 for percent in range(1, 100)), 1e-9, np.nextafter(1, 0), 1 / 3])
def test_reports_survive_being_percentages(report: float, tmp_path: Path) -> None:
    study = small_study()
    study["report"] = ("response", np.full(study.sizes["response"], report))
    folder = write_lm_game(study, tmp_path)
    rows = json.loads((folder / "results_raw/res_loss_anonym.json").read_text())
    (found,) = {row[2] / 100.0 for row in rows}
    # no number divided by 100 gives 1/3; the nearest is one bit off
    assert found == report if report != 1 / 3 else abs(found - report) <= np.spacing(report)


def test_what_has_no_place_in_the_layout(tmp_path: Path) -> None:
    study = small_study()
    models = study["model"].values.tolist()
    renamed = study.assign_coords(model=[f"{name}/" if name == "gen" else name for name in models])
    renamed.attrs["generator"] = "gen/"
    with pytest.raises(InputError, match="model: is 'gen/'; the layout drops slashes"):
        write_lm_game(renamed, tmp_path)
    negative = study.isel(response=slice(0)).assign_coords(item=-1 - np.arange(study.sizes["item"]))
    with pytest.raises(InputError, match=r"item: is -\d+; the layout numbers its questions from 0"):
        write_lm_game(negative, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"notes": "no json"}, "notes: is not valid JSON"),
        ({"notes": "{}"}, "notes: is {}, should be a list of objects"),
        ({"notes": '[{"text": 1}]'}, "notes: is .*, should be a list of objects"),
        ({"notes": 5}, "notes: is .*5.*, should be a text"),
        ({"format": np.array([1, 2])}, r"format: is array\(\[1, 2\]\), should be a text"),
        ({"format": "other"}, "format: is 'other', this version"),
        ({"generator": np.array([1.0, 2.0])}, "generator: is array.*, should be a text"),
        ({"name": 3}, "name: is .*3.*, should be a text"),
    ],
)
def test_attributes_of_another_kind_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "study.nc"
    small_study().assign_attrs(change).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match=rf"study\.nc, {message}"):
        load(path)


def test_a_file_damaged_after_it_was_written_is_not_opened(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDF5 waits for ever in some damaged files, where nothing in this process can stop it."""
    path = save_comparison_study(small_study(), tmp_path / "study.nc")
    content = path.read_bytes()
    monkeypatch.setattr(xr, "open_dataset", lambda *given, **named: pytest.fail("it was opened"))
    for at in range(0, len(content) - 60, 997):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(InputError, match="was damaged after it was written"):
            load(path)
    path.write_bytes(content[:5000])
    with pytest.raises(InputError, match="cannot be read as netCDF"):
        load(path)
    assert capfd.readouterr().err == ""


def test_a_file_that_another_program_wrote_or_changed_is_read(tmp_path: Path) -> None:
    path = save_comparison_study(small_study(), tmp_path / "study.nc")
    with h5py.File(path, "r+") as file:
        file.attrs["name"] = "edited"
    assert load(path).attrs["name"] == "edited"


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    study = small_study()
    for wrong, message in [
        (study.assign(automatic=~study["automatic"]), "automatic: is true at response .* whose two strings differ"),
        (study.assign(target_logprob=study["target_logprob"] * 0), "and the target have the probability"),
    ]:
        path = save_comparison_study(wrong, tmp_path / "study.nc")
        with pytest.raises(InputError, match=f"holds no comparison study that can be used: .*{message}"):
            load(path)
