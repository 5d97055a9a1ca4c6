"""Texts as other programs write them: offsets are the user's, and what nobody sees is said with document and place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import experiments
from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.documents.texts import text_study, texts
from tests.inference.lm import tiny_models

# as jsPsych on Windows, Word and a web page leave them
SENTENCES = {
    "plain": "The girl fed the ducks.",
    "nbsp": "The girl fed\u00a0the ducks.",
    "zwsp": "The girl fed \u200bthe ducks.",
    "bom": "\ufeffThe girl fed the ducks.",
    "softhyphen": "The girl fed the du\u00adcks.",
    "nfd": "The cafe\u0301 was full.",
    "double": "The girl  fed the ducks.",
    "trailing": "The girl fed the ducks. ",
    "leading": " There is a spoon.",
    "curly": "He didn\u2019t wait.",
}
PLACES = {
    "nbsp": "nbsp at 12 (U+00A0)",
    "zwsp": "zwsp at 13 (U+200B)",
    "bom": "bom at 0 (U+FEFF)",
    "softhyphen": "softhyphen at 19 (U+00AD)",
    "nfd": "nfd at 7",
    "double": "double at 8",
    "trailing": "trailing at 23",
    "leading": "leading at 0",
}


def test_what_readers_do_not_see_is_noted_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "sentences.csv"
    table = pd.DataFrame({"item": list(SENTENCES), "text": list(SENTENCES.values())})
    table.to_csv(path, index=False)
    for study in (texts(path=path, id_field="item"), text_study(table, id_field="item")):
        assert study["text"].to_numpy().tolist() == list(SENTENCES.values())
        said = "\n".join(note["text"] for note in notes(study) if note["level"] == "warning")
        assert all(place in said for place in PLACES.values())
        assert "plain" not in said
        assert "curly" not in said


WINDOWS = "The cat\r\nsat on mats."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    return str(tiny_models.save(folder, "gpt2", tiny_models.byte_level()))


@pytest.mark.torch
@pytest.mark.parametrize(("regions", "cells"), [(("first", "end"), {"first": 13, "end": 15}), ("word", {"word": "on"})])
def test_offsets_are_those_of_the_text_given(
    regions: str | tuple[str, str], cells: dict[str, object], model: str, tmp_path: Path
) -> None:
    table = pd.DataFrame({"text": [WINDOWS, "Rain fell."], **{name: [cell, None] for name, cell in cells.items()}})
    path = tmp_path / "sentences.csv"
    table.to_csv(path, index=False)
    plain = experiments.surprisal([WINDOWS.replace("\r", "")], models=[model], store=tmp_path / "store").tables["words"]
    for study in (text_study(table, regions=regions), texts(path=path, regions=regions)):
        result = experiments.surprisal(study, models=[model], store=tmp_path / "store")
        (region,) = result.tables["regions"].itertuples()
        assert (region.region, WINDOWS[region.start : region.stop]) == ("on", "on")
        words = result.tables["words"].query("document == @study.document.values[0]")
        assert [WINDOWS[a:b] for a, b in zip(words["start"], words["stop"], strict=True)] == words["word"].tolist()
        np.testing.assert_allclose(words["surprisal_bits"], plain["surprisal_bits"], atol=1e-4)
        assert region.surprisal_bits == pytest.approx(words["surprisal_bits"].iloc[3])
        tokens = result.tables["tokens"].query("document == @study.document.values[0]")
        ends = zip(tokens["start"], tokens["stop"], tokens["token"], strict=True)
        assert all(WINDOWS[int(a) : int(b)].replace("\r\n", "\n") == token for a, b, token in ends)
        assert any("carriage return" in note["text"] and "1" in note["text"] for note in notes(study))


@pytest.mark.torch
def test_a_notebook_is_told_what_happened_to_its_texts(model: str, tmp_path: Path) -> None:
    result = experiments.surprisal(["Hi there.", "   ", WINDOWS], models=[model], store=tmp_path / "store")
    said = "\n".join(result.warnings)
    assert "documents without text, left out: 2" in said
    assert "carriage return" in said
    # the one token of a text has nothing before it
    alone = {"tiny": {"source": "folder", "path": model, "bos": "none"}}
    result = experiments.surprisal(["Rain fell.", "x"], models=alone, store=tmp_path / "store")
    assert set(result.tables["words"]["document"]) == {"1"}
    assert any("no token that can be scored" in warning and ": 2" in warning for warning in result.warnings)
