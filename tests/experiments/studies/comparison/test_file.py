"""A comparison study as one file, and in the public layout of the game: what is read is what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from shannon_game import cloze_file, cloze_simulated
from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note, notes
from shannon_game.experiments.studies.cloze.file import save_cloze_study
from shannon_game.experiments.studies.comparison.file import comparison_file, save_comparison_study
from shannon_game.experiments.studies.parsing import objects
from tests.estimators.comparison.comparison_studies import small_study

STRANGE = [" cat", "\x00", "\\", "\\u0041", "\ufffd", "😀", "", "\n\r\t", "\\u0000 \x00", " Zürich", "nan", "None"]


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
    found = comparison_file(path=path)
    same(found, study)
    assert notes(found) == notes(study)
    xr.testing.assert_identical(study, before)
    # and once more, over itself
    save_comparison_study(found, path)
    same(comparison_file(path=path), study)
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.nc"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"notes": "no json"}, "notes: is not valid JSON"),
        ({"notes": '[{"text": 1}]'}, r"notes, text: is 1 at \[0\]; should be a valid string"),
        ({"format": "other"}, "format: is 'other', this version"),
        ({"generator": np.array([1.0, 2.0])}, "generator: is array.*, should be a text"),
    ],
)
def test_attributes_of_another_kind_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "study.nc"
    small_study().assign_attrs(change).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match=rf"study\.nc, {message}"):
        comparison_file(path=path)


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
            comparison_file(path=path)
    path.write_bytes(content[:5000])
    with pytest.raises(InputError, match="cannot be read as netCDF"):
        comparison_file(path=path)
    assert capfd.readouterr().err == ""


def test_a_cloze_study_comes_back_as_it_was(tmp_path: Path) -> None:
    study = cloze_simulated(n_items=8, families=["mixture"])
    texts = study["word_text"].to_numpy().astype(object)
    texts[: len(STRANGE)] = objects(STRANGE)
    logprob = np.full(study.sizes["sample"], np.nan)
    logprob[::2] = -1.5
    study = study.assign(word_text=("word", texts), sample_logprob=("sample", logprob, {"units": "nats"}))
    add_note(study, "strange", count=3)
    path = save_cloze_study(study, tmp_path / "study.nc")
    found = cloze_file(path=path)
    same(found, study)
    assert notes(found) == notes(study)
