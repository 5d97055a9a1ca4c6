"""The loader of the top-1 game: a small copy of the layout, its filters and mistakes; the public numbers exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shannon_game.estimators.guesses import pooled_accuracy
from shannon_game.estimators.guesses.accuracy import enough_answers
from shannon_game.estimators.guesses.study import guess_contexts
from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.guesses.lm_game_top1 import lm_game_top1
from tests.experiments.studies.conftest import noted
from tests.experiments.studies.guesses.tiny_top1 import contents, write_folder


def test_filters_and_their_counts(tmp_path: Path) -> None:
    root = write_folder(tmp_path)
    study = lm_game_top1(root=root)
    assert study["row_id"].values.tolist() == [1, 2, 5, 6, 11, 12]
    assert study["participant"].values.tolist() == ["11", "11", "11", "-22", "-22", "-22"]
    assert study["correct"].values.tolist() == [False, True, True, True, False, False]
    # Anna's fifth guess comes after four others, two of them invisible; Boris's invalid ones count as practice
    assert study["n_before"].values.tolist() == [0, 1, 4, 0, 3, 4]
    item = study.sel(item=study["response_item"])
    assert item["target_token"].values.tolist() == [" cat", " sat", " cat", " cat", " ran", " fast"]
    assert item["word_token"].values.tolist() == [True, False, True, True, True, False]
    assert item["item_position"].values.tolist() == [1, 2, 1, 1, 2, 3]
    assert item["item_document"].values.tolist() == ["3", "3", "3", "3", "7", "7"]
    assert guess_contexts(study) == ["The", "The cat", "A dog", "A dog ran"]
    found = {text: count for text, count in noted(study).items() if text.startswith("guesses left out")}
    assert list(found.values()) == [1, 1, 2, 1, 2]
    assert study.attrs["tokens"] == "visible"


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({"items": "word_tokens"}, [1, 5, 6, 11]),
        ({"items": "all"}, [1, 2, 3, 4, 5, 6, 11, 12]),
        ({"anonymous": "keep"}, [1, 2, 5, 6, 8, 11, 12]),
        ({"repeats": "first"}, [1, 2, 6, 11, 12]),
        ({"exclude_participants": ["-22"]}, [1, 2, 5]),
    ],
)
def test_settings(settings: dict[str, Any], rows: list[int], tmp_path: Path) -> None:
    study = lm_game_top1(**{"root": write_folder(tmp_path), **settings})
    expected = sorted([*rows, 7]) if settings.get("exclude_participants") == ["-22"] else rows
    assert study["row_id"].values.tolist() == expected
    if "anonymous" in settings:
        assert "anon" in study["participant"].values
        assert any(entry["level"] == "warning" for entry in notes(study))


def test_stored_accuracies_say_which_tokens_and_what_is_missing(tmp_path: Path) -> None:
    study = lm_game_top1(root=write_folder(tmp_path))
    assert study["stored_model"].values.tolist() == ["davinci", "fairseq-125m"]
    assert study["stored_tokens"].values.tolist() == ["visible", "word"]
    assert study["stored_n"].values.tolist() == [1000, 1000]
    (missing,) = (text for text in noted(study) if "stored accuracies" in text)
    assert noted(study)[missing] == 5
    data = {name: value for name, value in contents().items() if "model_perfs" not in name}
    assert "stored" not in lm_game_top1(root=write_folder(tmp_path / "none", data)).dims


def test_the_public_numbers(lm_game_root: Path) -> None:
    """Exactly those of the public file: without testers; visible and word tokens, with and without anon."""
    with_anon = lm_game_top1(root=lm_game_root, anonymous="keep")
    assert noted(with_anon)["guesses left out (exclude_participants): by the 3 excluded participants"] == 25203 - 24175
    assert with_anon.sizes["response"] == 22634
    assert float(with_anon["correct"].mean()) == pytest.approx(0.267474, abs=5e-7)
    words = with_anon["word_token"].sel(item=with_anon["response_item"]).values
    assert words.sum() == 14442
    assert float(with_anon["correct"].values[words].mean()) == pytest.approx(0.262844, abs=5e-7)
    study = lm_game_top1(root=lm_game_root)
    assert study.sizes["response"] == 18029
    who = study["participant"].values
    assert len(set(who)) == 67
    assert float(study["correct"].mean()) == pytest.approx(0.285595, abs=5e-7)
    kept = enough_answers(who, 50)
    place = study["item_document"].sel(item=study["response_item"]).values
    found = pooled_accuracy(
        study["correct"].values[kept], who[kept], place[kept], rng=np.random.default_rng(0), n_replicates=100
    )
    assert found.n_participants == 38
    assert found.accuracy == pytest.approx(0.289595, abs=5e-7)
    stored = dict(zip(study["stored_model"].values.tolist(), study["stored_accuracy"].values.tolist(), strict=True))
    assert stored["davinci"] == 0.56
