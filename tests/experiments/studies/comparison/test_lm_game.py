"""The loader of the next-token game: golden counts on the real files, filters and malformed input on a tiny study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.comparison.study import same_token
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes, response_positions
from shannon_game.experiments.studies.comparison.lm_game import lm_game
from shannon_game.experiments.studies.lm_game_archive import MANIFEST
from tests.experiments.studies.comparison.tiny_lm_game import (
    ANNA,
    BORIS,
    CONFIG,
    RESPONSES,
    broken,
    contents,
    question,
    question_name,
    write_folder,
    write_manifest,
)
from tests.oracles import lm_game as oracle


def tiny(root: Path, **settings: Any) -> xr.Dataset:
    return lm_game(**{"root": str(root), **CONFIG, **settings})


def counts(study: xr.Dataset, text: str) -> list[int | None]:
    """Counts of the notes that hold a text."""
    return [note["count"] for note in notes(study) if text in note["text"]]


# ------------------------------------------------------------------------------------------- real data


@pytest.fixture(scope="module")
def study(lm_game_root: Path) -> xr.Dataset:
    return lm_game(root=lm_game_root)


def test_the_paper_selection(study: xr.Dataset) -> None:
    assert (study.sizes["item"], study.sizes["candidate"]) == (1080, 400)
    assert study.attrs["generator"] == "gpt2-small"
    assert [int((study["item_set"] == name).sum()) for name in ("set 1", "set 2", "")] == [40, 80, 960]
    assert int(study["in_reference"].sum()) == 1000
    assert bool(study["selected"].all())
    automatic = study["automatic"].values
    same = same_token(study)[response_positions(study), study["response_candidate"].values]
    assert (int(automatic.sum()), int((automatic & ~same).sum())) == (584, 49)
    assert bool((study["report"].values[automatic] == 0.5).all())
    assert counts(study, "on questions of no set") == [6]
    assert counts(study, "automatic answers: both") == [584]
    assert counts(study, "automatic answers on different tokens") == [49]
    assert counts(study, "byte for byte as published") == [1081]
    assert [note for note in notes(study) if note["level"] == "warning"] == []


def test_against_loops_over_the_files(lm_game_root: Path, study: xr.Dataset) -> None:
    answers = oracle.paper_answers(lm_game_root)
    assert len(answers) == study.sizes["response"]
    position, shown = response_positions(study), study["response_candidate"].values
    generator = list(study["model"].values).index("gpt2-small")
    columns = {
        "participant": study["participant"].values.astype(int),
        "item": study["response_item"].values,
        "report": study["report"].values,
        "target": study["target_token"].values[position],
        "candidate": study["candidate_token"].values[position, shown],
        "target_logprob": study["target_logprob"].values[generator, position],
        "candidate_logprob": study["candidate_logprob"].values[generator, position, shown],
    }
    for name, values in columns.items():
        assert values.tolist() == [getattr(answer, name) for answer in answers], name


def test_the_manifest_is_that_of_the_real_files(lm_game_root: Path, tmp_path: Path) -> None:
    patterns = ("multi_comparisons/doc*.json", "docs/doc*.json", "results_raw/res_*_anonym.json")
    files = [file for each in (*patterns, "results_raw/model_perfs*.json") for file in lm_game_root.glob(each)]
    names = [file.relative_to(lm_game_root).as_posix() for file in files]
    write_manifest(lm_game_root, names, tmp_path / "manifest.csv")
    assert (tmp_path / "manifest.csv").read_bytes() == MANIFEST.read_bytes()


# ------------------------------------------------------------------------------------------- tiny study


def test_a_tiny_study_in_full(tmp_path: Path) -> None:
    study = tiny(write_folder(tmp_path))
    validate_comparison_study(study)
    assert study["item"].values.tolist() == [100, 101, 102, 103, 104, 105]
    assert study["item_set"].values.tolist() == ["first", "first", "", "second", "second", "second"]
    assert study["in_reference"].values.tolist() == [True] * 3 + [False] * 3
    for item in study["item"].values.tolist():
        data, found = question(item), study.sel(item=item)
        assert found["context"].item() == data["input_str"].replace("\ud83d", "\N{REPLACEMENT CHARACTER}")
        assert found["target_token"].item() == data["correct_token_str"]
        assert found["candidate_token"].values.tolist() == data["generated_token_strs"]
        assert found["candidate_logprob"].values.tolist() == data["generated_logprobss"]
    assert study["participant"].values.tolist() == [str(ANNA)] * 2 + [str(BORIS)] * 4
    assert study["response_item"].values.tolist() == [100, 101, 103, 104, 105, 100]
    assert study["response_candidate"].values.tolist() == [1, 1, 0, 2, 2, 2]
    assert study["report"].values.tolist() == pytest.approx([0.1, 0.9, 0.5, 0.7, 0.2, 0.01])
    assert study["row_id"].values.tolist() == [0, 1, 2, 3, 4, 5]
    assert study["automatic"].values[2]
    assert counts(study, "answers left out (sets): on questions of no set (999)") == [1]
    assert counts(study, "answers left out (participants=paper)") == [4]
    assert counts(study, "participants kept (participants=paper; first: 1, second: 1)") == [2]


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        ({"participants": "all"}, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ({"participants": "all", "repeats": "first"}, [0, 1, 2, 3, 4, 5, 6, 7, 9]),
        ({"participants": "complete"}, [0, 1, 2, 3, 4, 6, 7]),
        ({"participants": "complete", "repeats": "keep"}, [0, 1, 2, 3, 4, 6, 7, 8]),
        ({"exclude_participants": [str(ANNA)]}, [2, 3, 4, 5]),
    ],
)
def test_filters(tmp_path: Path, settings: dict[str, Any], rows: list[int]) -> None:
    study = tiny(write_folder(tmp_path), **settings)
    assert study["row_id"].values.tolist() == rows
    dropped = sum(n["count"] for n in notes(study) if n["text"].startswith("answers left out"))
    assert dropped == len(contents()[RESPONSES]) - len(rows)
    assert counts(study, "answers used") == [len(rows)]


def test_questions_left_out(tmp_path: Path) -> None:
    """A set without one question is as if it had never had it; whoever answered the others answered it whole."""
    root = write_folder(tmp_path)
    (root / question_name(104)).write_bytes(b"\0" * 100)
    with pytest.raises(InputError, match=r"doc104\.json: has 100 NUL bytes.*leave_out_questions=\[104\] leaves"):
        tiny(root)
    left = tiny(root, leave_out_questions=[104])
    assert left["item"].values.tolist() == [100, 101, 102, 103, 105]
    assert left.identical(tiny(root, sets={"first": [100, 101], "second": [[103, 103], [105, 105]]}))
    assert counts(left, "on questions of no set (104, 999)") == [3]
    (root / question_name(104)).unlink()
    with pytest.raises(InputError, match=r"1 of the 7 files needed are missing.*leave_out_questions which"):
        tiny(root)
    assert left.identical(tiny(root, leave_out_questions=[104]))


# --------------------------------------------------------------------------------------- malformed input


def named(name: str) -> Callable[[Any], Any]:
    """A change of the name of the first language model."""
    return lambda data: data["generator_names"].__setitem__(0, name)


BAD_QUESTIONS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda data: data.update(id=100), r"id: is 100, the file name says 101"),
    (lambda data: data["generated_token_strs"].pop(), r"generated_logprobss: has lists of \[5, 5, 5\]"),
    (lambda data: data["generated_logprobss"][1].pop(), r"generated_logprobss: has lists of \[5, 4, 5\]"),
    (lambda data: data["generation_probs"].pop(), r"generation_probs: has 4 numbers"),
    (lambda data: data.update(generator_index=2), r"generator_index: is 2, but 1 in .*doc100\.json; one study has"),
    (named("two\nlines"), r"generator_names: holds 'two\\nlines', .* printable"),
    (named("gelu_twelve_layers/"), r"generator_names: .* every model should be named once"),
]


@pytest.mark.parametrize(("change", "problem"), BAD_QUESTIONS)
def test_a_malformed_question(tmp_path: Path, change: Callable[[Any], Any], problem: str) -> None:
    with pytest.raises(InputError, match=rf"doc101\.json[:,] .*{problem}"):
        tiny(write_folder(tmp_path, broken(question_name(101), change)))
