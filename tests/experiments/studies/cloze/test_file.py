"""A cloze study as one file: what is read is what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import cloze_file, cloze_simulated, tvd
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note, notes
from shannon_game.experiments.studies.cloze.file import save_cloze_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from tests.estimators.comparison.comparison_studies import small_study
from tests.experiments.studies.comparison.test_file import STRANGE, objects, same


def test_a_study_comes_back_as_it_was(tmp_path: Path) -> None:
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


def test_analyses_of_the_file_are_those_of_the_study(tmp_path: Path) -> None:
    study = cloze_simulated(n_items=8, families=["mixture"])
    found = cloze_file(path=save_cloze_study(study, tmp_path / "study.nc"))
    pd.testing.assert_frame_equal(tvd(found, n_splits=2).table, tvd(study, n_splits=2).table)


def test_files_of_another_kind_are_named(tmp_path: Path) -> None:
    path = save_comparison_study(small_study(), tmp_path / "study.nc")
    with pytest.raises(
        InputError, match=r"'shannon-game comparison study 1', this version .* reads 'shannon-game cloze"
    ):
        cloze_file(path=path)
    cloze_simulated(n_items=4).drop_vars("context").to_netcdf(path, engine="h5netcdf")
    with pytest.raises(InputError, match=r"study\.nc: holds no cloze study that can be used: .*context: is missing"):
        cloze_file(path=path)
    with pytest.raises(InputError, match=r"should be a name ending in \.nc"):
        save_cloze_study(cloze_simulated(n_items=4), tmp_path / "study.txt")
