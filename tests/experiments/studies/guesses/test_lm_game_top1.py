"""The loader of the top-1 game: a small copy of the layout, its filters and mistakes; the public numbers exactly."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses import enough_answers, pooled_accuracy
from shannon_game.estimators.guesses.study import guess_contexts
from shannon_game.estimators.layout import notes
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.files import write_manifest
from shannon_game.experiments.studies.guesses.lm_game_top1 import LmGameTop1Settings, lm_game_top1
from tests.experiments.command import config
from tests.experiments.studies.guesses.tiny_top1 import RESPONSES, contents, write_folder


def counts(study: xr.Dataset) -> dict[str, int | None]:
    return {entry["text"]: entry["count"] for entry in notes(study)}


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
    found = {text: count for text, count in counts(study).items() if text.startswith("guesses left out")}
    assert list(found.values()) == [1, 1, 2, 1, 2]
    assert study.attrs["tokens"] == "visible"


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({"items": "word_tokens"}, [1, 5, 6, 11]),
        ({"items": "all"}, [1, 2, 3, 4, 5, 6, 11, 12]),
        ({"anonymous": "keep"}, [1, 2, 5, 6, 8, 11, 12]),
        ({"repeats": "first"}, [1, 2, 6, 11, 12]),
        ({"repeats": "last"}, [2, 5, 6, 11, 12]),
        ({"exclude_participants": []}, [1, 2, 5, 6, 7, 11, 12]),
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
    (missing,) = (text for text in counts(study) if "stored accuracies" in text)
    assert counts(study)[missing] == 5
    data = {name: value for name, value in contents().items() if "model_perfs" not in name}
    assert "stored" not in lm_game_top1(root=write_folder(tmp_path / "none", data)).dims


@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        (RESPONSES, lambda rows: rows[0].__setitem__(4, "two"), "guessed_token_idx: is 'two' in row 0"),
        (RESPONSES, lambda rows: rows[0].__setitem__(5, True), "doc_id: is True in row 0"),
        (RESPONSES, lambda rows: rows[1].__setitem__(2, None), "guess: is None in row 1"),
        (RESPONSES, lambda rows: rows[1].__setitem__(1, ""), "user: is '' in row 1"),
        (RESPONSES, lambda rows: rows[2].pop(), "doc_id: is missing in row 2"),
        (RESPONSES, lambda rows: rows.clear(), "is an empty list"),
        (RESPONSES, lambda rows: rows[0].__setitem__(5, 8), "1 of the 3 files needed are missing"),
        ("docs/doc3.json", lambda tokens: tokens.__setitem__(1, 5), "is 5 at .1."),
        ("docs/doc3.json", lambda tokens: tokens.clear(), "list of the document's tokens"),
        ("results_raw/model_perfs.json", lambda perfs: perfs.update(davinci=56), "davinci: is 56"),
    ],
)
def test_malformed_files(name: str, change: Callable[[Any], Any], part: str, tmp_path: Path) -> None:
    data = contents()
    change(data[name])
    with pytest.raises(InputError, match=part):
        lm_game_top1(root=write_folder(tmp_path, data))


def test_what_is_no_json_or_not_there_is_named(tmp_path: Path) -> None:
    data = contents() | {"docs/doc7.json": b"["}
    with pytest.raises(InputError, match=r"doc7\.json: is not valid JSON"):
        lm_game_top1(root=write_folder(tmp_path / "a", data))
    with pytest.raises(InputError, match="no such folder"):
        lm_game_top1(root=tmp_path / "nowhere")
    shutil.rmtree(write_folder(tmp_path / "b") / "docs")
    with pytest.raises(InputError, match="has no docs/"):
        lm_game_top1(root=tmp_path / "b")


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"repeats": "error"}, r"repeats: participant 11 guessed at token 2 of document 3 more than once"),
        ({"exclude_participants": [11.5]}, r"exclude_participants\[0\]: is 11.5, should be a list, each a text"),
        ({"exclude_participants": ["nobody"]}, "no participant 'nobody'"),
        ({"exclude_participants": ["11", "-22", "3056584949900737159"]}, "anonymous=drop: leaves no guesses"),
        ({"url": "ftp://x"}, "https://"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=part):
        lm_game_top1(**{"root": write_folder(tmp_path), **settings})


def archive(path: Path, data: dict[str, Any], folder: Path) -> Path:
    """A zip file of the layout, below a folder of its own as public hosts make them."""
    write_folder(folder, data)
    with zipfile.ZipFile(path, "w") as file:
        for name in data:
            file.write(folder / name, f"repository-abc/{name}")
    return path


def test_archives_hold_the_same_study(tmp_path: Path) -> None:
    plain = lm_game_top1(root=write_folder(tmp_path / "plain"))
    zipped = lm_game_top1(root=archive(tmp_path / "all.zip", contents(), tmp_path / "again"))
    xr.testing.assert_identical(plain, zipped)
    mixed = tmp_path / "mixed"
    documents = {name: value for name, value in contents().items() if name.startswith("docs/")}
    write_folder(mixed, {name: value for name, value in contents().items() if name not in documents})
    archive(mixed / "data.zip", documents, tmp_path / "documents")
    xr.testing.assert_identical(plain, lm_game_top1(root=mixed))


def test_a_download_is_verified(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    path = archive(tmp_path / f"lm-game-analysis-{LmGameTop1Settings().commit}.zip", contents(), folder)
    manifest = tmp_path / "manifest.csv"
    write_manifest(folder, contents(), manifest)
    study = lm_game_top1(cache_dir=tmp_path, manifest=manifest)
    assert counts(study)["files byte for byte as published, of 5 read"] == 5
    changed = contents()
    changed["docs/doc3.json"][1] = " cut"
    path.unlink()
    archive(path, changed, tmp_path / "changed")
    with pytest.raises(InputError, match="it was changed or damaged"):
        lm_game_top1(cache_dir=tmp_path, manifest=manifest)


def test_the_public_numbers(lm_game_root: Path) -> None:
    """Exactly those of the public file: without testers; visible and word tokens, with and without anon."""
    with_anon = lm_game_top1(root=lm_game_root, anonymous="keep")
    assert counts(with_anon)["guesses left out (exclude_participants): by the 3 excluded participants"] == 25203 - 24175
    assert with_anon.sizes["response"] == 22634
    assert float(with_anon["correct"].mean()) == pytest.approx(0.267474, abs=5e-7)
    words = lm_game_top1(root=lm_game_root, anonymous="keep", items="word_tokens")
    assert words.sizes["response"] == 14442
    assert float(words["correct"].mean()) == pytest.approx(0.262844, abs=5e-7)
    assert words["word_token"].all()
    flagged = with_anon["word_token"].sel(item=with_anon["response_item"]).values
    assert flagged.sum() == 14442
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


def test_the_public_guesses_through_the_command_s_config(lm_game_root: Path) -> None:
    cfg = config("study=lm_game_top1", f"study.root={lm_game_root}", "study.items=word_tokens")
    assert load_study(cfg.study, kind="guess").sizes["response"] < 14442
