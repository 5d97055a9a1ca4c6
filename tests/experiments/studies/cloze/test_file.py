"""A cloze study as one file: what is read is what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shannon_game import cloze_file, cloze_simulated
from shannon_game.estimators.layout import add_note, notes
from shannon_game.experiments.studies.cloze.file import save_cloze_study
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
