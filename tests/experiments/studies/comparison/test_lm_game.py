"""The loader of the next-token game: golden counts on the real files, filters and malformed input on a tiny study."""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.comparison import response_positions, same_token, validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.comparison.lm_game import lm_game
from shannon_game.experiments.studies.comparison.lm_game_settings import LmGameSettings
from shannon_game.experiments.studies.files import read_manifest, write_manifest
from shannon_game.experiments.studies.lm_game_archive import MANIFEST, make_manifest
from tests.experiments.command import config
from tests.experiments.studies.comparison.tiny_lm_game import (
    ANNA,
    BORIS,
    CLARA,
    CONFIG,
    DORA,
    RESPONSES,
    TOKENS,
    broken,
    contents,
    question,
    question_name,
    write_archive,
    write_folder,
)
from tests.oracles import lm_game as oracle

COMMIT = LmGameSettings().commit


def tiny(root: Path, **settings: Any) -> xr.Dataset:
    return lm_game(**{"root": str(root), "cache": False, **CONFIG, **settings})


def counts(study: xr.Dataset, text: str) -> list[int | None]:
    """Counts of the notes that hold a text."""
    return [note["count"] for note in notes(study) if text in note["text"]]


def warnings(study: xr.Dataset) -> list[str]:
    """Texts of the warnings, without the one that a study made here always has."""
    texts = [note["text"] for note in notes(study) if note["level"] == "warning"]
    return [text for text in texts if "differ from the published ones" not in text]


def gap(study: xr.Dataset) -> float:
    """Eq. 5 in a few lines of NumPy: an independent reader of the Dataset, not the estimator."""
    position = response_positions(study)
    generator = study.attrs["generator"]
    target = study["target_logprob"].sel(model=generator).values[position]
    candidate = study["candidate_logprob"].sel(model=generator).values[position, study["response_candidate"].values]
    term = np.exp(target - candidate) * (1 / study["report"].values - 1)
    answers = np.bincount(position)
    asked = answers > 0
    return float(np.log(np.bincount(position, term)[asked] / answers[asked]).mean())


# ------------------------------------------------------------------------------------------- real data


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def real(lm_game_root: Path, cache_dir: Path) -> Callable[..., xr.Dataset]:
    return lambda **settings: lm_game(root=lm_game_root, cache_dir=cache_dir, **settings)


def test_the_paper_selection(real: Callable[..., xr.Dataset]) -> None:
    study = real()
    assert study.sizes["item"] == 1080
    assert study.sizes["candidate"] == 400
    assert study["model"].values.tolist() == ["14M", "gpt2-small", "gpt2-medium"]
    assert study.attrs["generator"] == "gpt2-small"
    assert study.sizes["response"] == 1640
    assert len(set(study["participant"].values)) == 29
    asked = study["item_set"].values[response_positions(study)]
    people = study["participant"].values
    assert [len(set(people[asked == name])) for name in ("set 1", "set 2")] == [19, 11]
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


def test_the_reference_losses(real: Callable[..., xr.Dataset]) -> None:
    study = real()
    loss = -study["target_logprob"]
    reference = loss.isel(item=study["in_reference"].values).mean("item").values
    np.testing.assert_allclose(reference, [4.606471, 3.193813847884036, 2.919429], atol=5e-7)
    assert reference[1] == pytest.approx(3.193813847884036, abs=1e-13)
    asked = loss.isel(item=study["item_set"].values != "").mean("item").values
    assert asked[1] == pytest.approx(3.096526837139572, abs=1e-13)
    np.testing.assert_allclose(asked, [4.015328, 3.096527, 2.752187], atol=5e-7)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (1640, 29, 120, 1.802837)),
        ({"items": "word_tokens"}, (1156, 29, 84, 1.953377)),
        ({"automatic": "drop_different_token"}, (1591, 29, 117, 1.927905)),
    ],
)
def test_golden_gaps(
    real: Callable[..., xr.Dataset], settings: dict[str, str], expected: tuple[int, int, int, float]
) -> None:
    study = real(**settings)
    people, items = len(set(study["participant"].values)), len(set(study["response_item"].values))
    assert (study.sizes["response"], people, items) == expected[:3]
    assert gap(study) == pytest.approx(expected[3], abs=5e-7)


@pytest.mark.parametrize(
    ("settings", "responses", "participants"),
    [
        ({"participants": "complete"}, 22 * 40 + 13 * 80, 33),
        ({"participants": "complete", "repeats": "last"}, 22 * 40 + 13 * 80, 33),
        ({"participants": "all"}, 3939, 54),
        ({"participants": "all", "repeats": "first"}, 2280, 54),
        ({"repeats": "error"}, 1640, 29),
        ({"automatic": "drop"}, 1640 - 584, 29),
    ],
)
def test_other_selections(
    real: Callable[..., xr.Dataset], settings: dict[str, str], responses: int, participants: int
) -> None:
    study = real(**settings)
    assert (study.sizes["response"], len(set(study["participant"].values))) == (responses, participants)


def test_repeated_answers_are_counted_in_pairs_and_rows(real: Callable[..., xr.Dataset]) -> None:
    study = real(participants="all")
    keys = list(
        zip(*(study[name].values for name in ("participant", "response_item", "response_candidate")), strict=True)
    )
    repeated = {key for key in set(keys) if keys.count(key) > 1}
    assert counts(study, f"repeat one of {len(repeated)} pairs") == [len(keys) - len(set(keys))]


def test_an_exclusion_on_the_real_data(real: Callable[..., xr.Dataset]) -> None:
    person = str(real()["participant"].values[0])
    study = real(exclude_participants=[int(person)])
    assert len(set(study["participant"].values)) == 28
    assert person not in study["participant"].values
    assert counts(study, "by the 1 excluded participants") == [sum(row[1] == int(person) for row in raw_rows(real))]


def raw_rows(real: Callable[..., xr.Dataset]) -> list[list[Any]]:
    study = real(participants="all")
    return [
        [number, int(name)] for number, name in zip(study["row_id"].values, study["participant"].values, strict=True)
    ]


def test_against_loops_over_the_files(lm_game_root: Path, real: Callable[..., xr.Dataset]) -> None:
    study = real()
    answers = oracle.paper_answers(lm_game_root)
    assert len(answers) == study.sizes["response"]
    assert oracle.human_gap(answers) == pytest.approx(1.802837, abs=5e-7)
    assert gap(study) == pytest.approx(oracle.human_gap(answers), abs=1e-12)
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
    assert oracle.mean_loss(lm_game_root, list(oracle.REFERENCE), 1) == pytest.approx(3.193813847884036, abs=1e-12)


def test_every_question_as_in_its_file(lm_game_root: Path, real: Callable[..., xr.Dataset]) -> None:
    study = real()
    for item in (10000, 10018, 10999, 20010, 20089):
        data = oracle.read_question(lm_game_root, item)
        found = study.sel(item=item)
        assert found["context"].item() == data["input_str"].replace("\ud83d", "\N{REPLACEMENT CHARACTER}")
        assert found["target_token"].item() == data["correct_token_str"]
        assert found["candidate_token"].values.tolist() == data["generated_token_strs"]
        assert found["candidate_logprob"].values.tolist() == data["generated_logprobss"]
        assert found["target_logprob"].values.tolist() == data["correct_logprobs"]


def test_both_layouts_of_the_real_files_and_the_download(
    lm_game_root: Path, real: Callable[..., xr.Dataset], tmp_path: Path
) -> None:
    names = [name for name in read_manifest(MANIFEST) if name.startswith("multi") or name == RESPONSES]
    data: dict[str, Any] = {name: (lm_game_root / name).read_bytes() for name in names}
    # the public copy has a malformed question that was never asked
    data["multi_comparisons/doc20156.json"] = b'{"id": 20156, '
    responses = {RESPONSES: data.pop(RESPONSES)}
    root = write_folder(tmp_path / "both", responses)
    write_archive(root / "data.zip", data, prefix="some folder/")
    expected = real()
    assert lm_game(root=root, cache=False).identical(expected)
    # what a download leaves in the cache, verified against the manifest that the project ships
    archive = tmp_path / "cache" / f"lm-game-analysis-{COMMIT}.zip"
    write_archive(archive, data | responses, prefix=f"lm-game-analysis-{COMMIT}/")
    settings = LmGameSettings(cache_dir=tmp_path / "cache", url="http://127.0.0.1:9/none")
    assert lm_game(settings).identical(expected)
    assert lm_game(settings, root=archive, cache=False).identical(expected)


def test_the_manifest_is_that_of_the_real_files(lm_game_root: Path, tmp_path: Path) -> None:
    make_manifest(lm_game_root, tmp_path / "manifest.csv")
    assert (tmp_path / "manifest.csv").read_bytes() == MANIFEST.read_bytes()


# ------------------------------------------------------------------------------------------- tiny study


def test_the_command_gives_what_the_function_gives(tmp_path: Path) -> None:
    root = write_folder(tmp_path)
    # sets given on the command line are all sets
    sets = "study.sets={first:[100,101],second:[103,105]}"
    cfg = config(
        "+exp=perplexity", "study=lm_game", f"study.root={root}", "study.cache=false", sets, "study.reference=[100,102]"
    )
    assert load_study(cfg.study, kind="comparison").identical(tiny(root))


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
        ({"participants": "all", "repeats": "last"}, [0, 1, 2, 3, 4, 5, 7, 8, 9]),
        ({"participants": "complete"}, [0, 1, 2, 3, 4, 6, 7]),
        ({"participants": "complete", "repeats": "keep"}, [0, 1, 2, 3, 4, 6, 7, 8]),
        ({"participants": "complete", "repeats": "last"}, [0, 1, 2, 3, 4, 7, 8]),
        ({"exclude_participants": [str(ANNA)]}, [2, 3, 4, 5]),
        ({"exclude_participants": [BORIS, DORA]}, [0, 1]),
    ],
)
def test_filters(tmp_path: Path, settings: dict[str, Any], rows: list[int]) -> None:
    study = tiny(write_folder(tmp_path), **settings)
    assert study["row_id"].values.tolist() == rows
    dropped = sum(n["count"] for n in notes(study) if n["text"].startswith("answers left out"))
    assert dropped == len(contents()[RESPONSES]) - len(rows)
    assert counts(study, "answers used") == [len(rows)]


def test_a_repeated_key_is_an_error_if_asked_for(tmp_path: Path) -> None:
    root = write_folder(tmp_path)
    with pytest.raises(
        InputError,
        match=rf"participant {CLARA} answered question 100 with candidate 3 more than once \(1 such.*row_id 8\)",
    ):
        tiny(root, participants="all", repeats="error")
    assert tiny(root, repeats="error").sizes["response"] == 6


def different_tokens(data: dict[str, Any]) -> None:
    """Boris saw candidate 0 of question 103, now another token with the target's string."""
    data["generated_token_strs"][0] = data["correct_token_str"]
    data["generated_logprobss"][1][0] = data["correct_logprobs"][1] - 0.5
    data["generation_probs"][0] = math.exp(data["generated_logprobss"][1][0])


@pytest.mark.parametrize(
    ("automatic", "change", "kept"),
    [
        ("keep", None, True),
        ("drop_different_token", None, True),
        ("drop", None, False),
        ("keep", different_tokens, True),
        ("drop_different_token", different_tokens, False),
        ("drop", different_tokens, False),
    ],
)
def test_automatic_answers(tmp_path: Path, automatic: str, change: Callable[[Any], None] | None, kept: bool) -> None:
    root = write_folder(tmp_path, broken(question_name(103), change) if change else None)
    study = tiny(root, automatic=automatic)
    assert (2 in study["row_id"].values) == kept
    assert counts(study, "automatic answers: both") == [int(tiny(root)["automatic"].sum())]
    assert counts(study, "automatic answers on different tokens") == [1 if change else 0]
    assert bool(warnings(study)) == (automatic == "drop")


def test_word_tokens(tmp_path: Path) -> None:
    study = tiny(write_folder(tmp_path), items="word_tokens", participants="all")
    words = {" cat", " dog", " Zürich"}
    expected = [token in words for token in study["target_token"].values]
    assert study["selected"].values.tolist() == expected
    assert True in expected
    assert False in expected
    assert set(study["response_item"].values) <= set(study["item"].values[expected])
    assert study.sizes["item"] == 6


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"participants": "paper", "exclude_participants": [ANNA, BORIS]}, r"participants=paper: leaves no answers"),
        ({"participants": "complete", "sets": {"s": [100, 105]}}, r"participants=complete: leaves no answers: all 10"),
        (
            {"exclude_participants": [ANNA, BORIS, CLARA, DORA], "participants": "all"},
            r"exclude_participants: leaves no",
        ),
        ({"sets": {"s": [102, 102]}}, r"sets: leaves no answers: all 11 that were left are on questions of no set"),
    ],
)
def test_an_empty_result_names_the_filter(tmp_path: Path, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        tiny(write_folder(tmp_path), **settings)


def test_an_empty_item_filter(tmp_path: Path) -> None:
    data = contents()
    for item in range(100, 106):
        data[question_name(item)]["correct_token_str"] = ","
    with pytest.raises(
        InputError, match=r"items: leaves no answers: all 6 that were left are on targets that are no word"
    ):
        tiny(write_folder(tmp_path, data), items="word_tokens")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"particpants": "paper"}, r"unknown setting 'particpants'; did you mean 'participants'\? choose one of: "),
        ({"participants": "some"}, r"participants: is 'some', should be one of paper, complete, all"),
        ({"repeats": "drop"}, r"repeats: is 'drop', should be one of auto, keep, first, last, error"),
        ({"items": "words"}, r"items: is 'words', should be one of all, word_tokens"),
        ({"automatic": True}, r"automatic: is True, should be one of keep, drop_different_token, drop"),
        ({"off_grid": "drop"}, r"off_grid: is 'drop', should be one of error, keep"),
        ({"name": "provo"}, r"unknown setting 'name'"),
        ({"cache": "yes"}, r"cache: is 'yes', should be true or false"),
        ({"root": 3}, r"root: is 3, should be a path or null"),
        ({"root": ""}, r"root: is '', should be a path"),
        ({"exclude_participants": True}, r"exclude_participants: is True, should be a list"),
        (
            {"exclude_participants": [12]},
            r"exclude_participants: there is no participant '12' among the 4.* 11, -22, 33",
        ),
        ({"sets": [1, 2]}, r"sets: is \[1, 2\], should map names to \[first, last\]"),
        ({"sets": {"a": []}}, r"sets\.a: is \[\], should be \[first, last\]"),
        ({"sets": {"a": 3}}, r"sets\.a: is 3, should be \[first, last\]"),
        ({"sets": {"a": [3, 4, "5"]}}, r"sets\.a: is \[3, 4, '5'\], should be"),
        ({"sets": {"a": [3, 4, True]}}, r"sets\.a: is \[3, 4, True\], should be"),
        ({"sets": {"a": [3, 4, [7, 5]]}}, r"sets\.a: is \[3, 4, \[7, 5\]\], should be"),
        ({"sets": {"a": [3, 4, 3]}}, r"sets\.a: is \[3, 4, 3\], which names a question twice"),
        ({"sets": {"a": [0, 10**10]}}, r"sets\.a: is .*, which are more than 1,000,000 questions"),
        ({"reference": [0, 10**10]}, r"reference: is .*, which are more than 1,000,000 questions"),
        ({"leave_out_questions": [99]}, r"leave_out_questions: question 99 is in no set and not in the reference"),
        ({"leave_out_questions": [100, 101]}, r"leave_out_questions: leaves no question of first"),
        ({"leave_out_questions": 100}, r"leave_out_questions: is 100, should be a list"),
        ({"sets": {}}, r"sets: is \{\}, should map"),
        ({"sets": {"a": [103, 101]}}, r"sets\.a: is \[103, 101\], should be \[first, last\] with 0 <= first <= last"),
        ({"sets": {"a": [100, 101], "b": [101, 102]}}, r"question 101 is in both 'a' and 'b'"),
        ({"sets": {"": [100, 101]}}, r"sets: has an empty name"),
        ({"reference": [True, 100]}, r"reference: is \[True, 100\], should be \[first, last\]"),
        ({"commit": "../up"}, r"commit: is '../up'"),
        ({"url": "file:///etc"}, r"url: is 'file:///etc', should start with https"),
        ({"manifest": "no-such.csv"}, r"no-such\.csv, study\.manifest: there is no such file"),
    ],
)
def test_bad_settings(tmp_path: Path, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        lm_game(**{"root": str(write_folder(tmp_path)), "cache": False, **CONFIG, **settings})


def test_sets_of_single_questions(tmp_path: Path) -> None:
    root = write_folder(tmp_path)
    whole = tiny(root, sets={"first": [100, 101], "second": [103, 105]})
    single = tiny(
        root, sets={"first": [[100, 100], [101, 101]], "second": [103, [104, 105]]}, reference=[100, 101, 102]
    )
    assert single.identical(whole)
    chosen = tiny(root, sets={"mine": [100, 103, 105]}, participants="all")
    assert chosen["item"][chosen["item_set"] == "mine"].values.tolist() == [100, 103, 105]
    assert counts(chosen, "on questions of no set") == [5]


def test_questions_left_out(tmp_path: Path) -> None:
    """A set without one question is as if it had never had it; whoever answered the others answered it whole."""
    root = write_folder(tmp_path)
    (root / question_name(104)).write_bytes(b"\0" * 100)
    with pytest.raises(InputError, match=r"doc104\.json: has 100 NUL bytes.*study\.leave_out_questions=\[104\] leaves"):
        tiny(root)
    left = tiny(root, leave_out_questions=[104])
    assert left["item"].values.tolist() == [100, 101, 102, 103, 105]
    assert left.identical(tiny(root, sets={"first": [100, 101], "second": [[103, 103], [105, 105]]}))
    assert counts(left, "on questions of no set (104, 999)") == [3]
    (root / question_name(104)).unlink()
    with pytest.raises(InputError, match=r"1 of the 6 files needed are missing.*study\.leave_out_questions which"):
        tiny(root)
    assert left.identical(tiny(root, leave_out_questions=[104]))


# --------------------------------------------------------------------------------------- malformed input


def put(*path: Any) -> Callable[[Any], None]:
    """A change that sets data[path[0]][path[1]]... to the last argument."""
    *inner, last, value = path

    def change(data: Any) -> None:
        for key in inner:
            data = data[key]
        data[last] = value

    return change


def dropped(field: str) -> Callable[[Any], None]:
    return lambda data: data.pop(field)


def popped(*path: Any) -> Callable[[Any], None]:
    """A change that takes the last element of a list away."""

    def change(data: Any) -> None:
        for key in path:
            data = data[key]
        data.pop()

    return change


def no_result(change: Callable[[Any], Any]) -> Callable[[Any], None]:
    def changed(data: Any) -> None:
        change(data)

    return changed


BAD_QUESTIONS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda data: json.dumps(data).encode()[:200], r"is not valid JSON \(.*\); it has 200 bytes and may be truncated"),
    (lambda data: json.dumps(data)[:-1].encode() + b', "id": 100}', r"id: is there twice in one object"),
    (lambda _: [1, 2], r"is \[1, 2\]"),
    (put("id", 100), r"id: is 100, the file name says 101"),
    (put("input_str", None), r"input_str: is None"),
    (put("generated_token_strs", []), r"generated_token_strs: is \[\]"),
    (put("generated_token_strs", 2, None), r"generated_token_strs: is None at \[2\]"),
    (popped("generated_token_strs"), r"generated_logprobss: has lists of \[5, 5, 5\]"),
    (popped("generated_logprobss", 1), r"generated_logprobss: has lists of \[5, 4, 5\]"),
    (popped("correct_logprobs"), r"correct_logprobs: has 2 numbers"),
    (popped("generation_probs"), r"generation_probs: has 4 numbers"),
    (put("correct_logprobs", 1, -(10**400)), r"correct_logprobs: is -10{9}"),
    (put("correct_logprobs", 0, 0.25), r"correct_logprobs: is 0\.25 at \[0\]"),
    (put("generator_index", 3), r"generator_index: is 3, should be 0 to 2"),
    (put("generator_index", 2), r"generator_index: is 2, but 1 in .*doc100\.json; one study has"),
    (put("generator_names", 0, "two\nlines"), r"generator_names: holds 'two\\nlines'; .* printable"),
    (put("generator_names", 0, "gelu_twelve_layers/"), r"generator_names: .* every model should be named once"),
    *((no_result(dropped(field)), rf"{field}: is missing") for field in question(100) if field != "generation_probs"),
]


@pytest.mark.parametrize(("change", "problem"), BAD_QUESTIONS)
def test_a_malformed_question(tmp_path: Path, change: Callable[[Any], Any], problem: str) -> None:
    with pytest.raises(InputError, match=rf"doc101\.json[:,] .*{problem}"):
        tiny(write_folder(tmp_path, broken(question_name(101), change)))


def test_fewer_candidates_than_the_other_questions(tmp_path: Path) -> None:
    def change(data: Any) -> None:
        for part in (data["generated_token_strs"], *data["generated_logprobss"], data["generation_probs"]):
            part.pop()

    with pytest.raises(
        InputError, match=r"doc101\.json, generated_token_strs: has 4 candidates, but .*doc100\.json has 5"
    ):
        tiny(write_folder(tmp_path, broken(question_name(101), change)))


@pytest.mark.parametrize("value", [0.9, -1.0])
def test_probabilities_that_disagree_are_counted(tmp_path: Path, value: float) -> None:
    change = put("generation_probs", 3, value)
    study = tiny(write_folder(tmp_path, broken(question_name(104), change)))
    assert [text for text in warnings(study) if "doc104.json; the log-probabilities were used" in text]
    assert counts(study, "generation_probs") == [1]
    expected = tiny(write_folder(tmp_path))
    assert study.drop_attrs().identical(expected.drop_attrs())


def test_probabilities_may_be_absent(tmp_path: Path) -> None:
    study = tiny(write_folder(tmp_path, broken(question_name(104), no_result(dropped("generation_probs")))))
    assert warnings(study) == []


BAD_RESPONSES: list[tuple[Callable[[Any], Any], str]] = [
    (lambda _: {"rows": []}, r"is \{'rows': \[\]\}"),
    (lambda _: [], r"holds no answers"),
    (put(1, [1, 2, 3, 4]), r"sample_index: is missing in row 1"),
    (put(1, "row"), r"is 'row' in row 1"),
    (put(2, 0, None), r"row_id: is None in row 2"),
    (put(2, 1, ""), r"user: is '' in row 2"),
    (put(2, 2, True), r"guess: is True in row 2"),
    (put(2, 2, 10**400), r"guess: is 10{9}.* in row 2"),
    (put(2, 3, 2**70), r"question_id: is 1180591620717411303424 in row 2"),
    (put(2, 2, 0), r"guess: is 0\.0 in the row with row_id 2 \(participant -22, question 103; 1 such\)"),
    (put(2, 2, 140), r"guess: is 140\.0 in the row"),
    (put(2, 2, 55.0), r"guess: is 55\.0 in the row with row_id 2 .*the game offers 1, 10, 20,.*study\.off_grid=keep"),
    (put(2, 4, -1), r"sample_index: is -1 in the row with row_id 2 .*should be 0 to 4"),
]


@pytest.mark.parametrize(("change", "problem"), BAD_RESPONSES)
def test_malformed_responses(tmp_path: Path, change: Callable[[Any], Any], problem: str) -> None:
    with pytest.raises(InputError, match=rf"res_loss_anonym\.json[:,] .*{problem}"):
        tiny(write_folder(tmp_path, broken(RESPONSES, change)))


@pytest.mark.parametrize("change", [put(2, 2, 0), put(2, 4, 5), put(2, 4, -1), put(2, 4, 10**6)])
def test_an_excluded_participant_cannot_spoil_the_data(tmp_path: Path, change: Callable[[Any], None]) -> None:
    root = write_folder(tmp_path, broken(RESPONSES, change))
    assert tiny(root, exclude_participants=[BORIS])["row_id"].values.tolist() == [0, 1]


def test_reports_off_the_grid_can_be_kept(tmp_path: Path) -> None:
    study = tiny(write_folder(tmp_path, broken(RESPONSES, put(2, 2, 55.5))), off_grid="keep")
    assert study["report"].values[2] == pytest.approx(0.555)
    assert counts(study, "off the game's grid of percentages, kept; the first is 55.5 percent") == [1]
    # it is also the one automatic answer, which the site never gives but as 50%
    assert counts(study, "not the 50% that the site gives") == [1]
    assert len(warnings(study)) == 2


def test_a_repeated_row_id_is_counted(tmp_path: Path) -> None:
    study = tiny(write_folder(tmp_path, broken(RESPONSES, put(2, 0, 1))))
    assert counts(study, "with a row_id that was there before") == [1]


def test_models_with_other_names_keep_them(tmp_path: Path) -> None:
    data = contents()
    for item in range(100, 106):
        data[question_name(item)]["generator_names"] = ["big/", "gelu_twelve_layers/", "small"]
    study = tiny(write_folder(tmp_path, data))
    assert study["model"].values.tolist() == ["big", "gpt2-small", "small"]
    assert counts(study, "does not know and calls by the names in the files: big, small") == [2]


@pytest.mark.parametrize("layout", ["folder", "archive"])
def test_missing_questions_are_named_with_a_hint(tmp_path: Path, layout: str) -> None:
    data = contents()
    del data[question_name(102)], data[question_name(104)]
    root = write_folder(tmp_path, data) if layout == "folder" else write_archive(tmp_path / "a.zip", data)
    with pytest.raises(
        InputError,
        match=r"2 of the [67] files needed are missing: multi_comparisons/doc102\.json, "
        r"multi_comparisons/doc104\.json; study\.sets and study\.reference say which questions are read",
    ):
        tiny(root)


def test_missing_responses(tmp_path: Path) -> None:
    data = contents()
    del data[RESPONSES]
    root = write_folder(tmp_path, data)
    with pytest.raises(InputError, match=r"has no results_raw/"):
        tiny(root)
    (root / "results_raw").mkdir()
    with pytest.raises(InputError, match=r"1 of the 1 files needed are missing: results_raw/res_loss_anonym\.json"):
        tiny(root)


def test_questions_outside_the_ranges_do_not_matter(tmp_path: Path) -> None:
    data = contents() | {question_name(156): b'{"id": 156,', "multi_comparisons/notes.txt": b"x"}
    assert tiny(write_folder(tmp_path / "a", data)).identical(tiny(write_folder(tmp_path / "b")))


# ------------------------------------------------------------------------------------- layouts and cache


def test_every_layout_gives_the_same_study(tmp_path: Path) -> None:
    expected = tiny(write_folder(tmp_path / "folder"))
    data = contents()
    root = write_folder(tmp_path / "both", {RESPONSES: data.pop(RESPONSES)})
    write_archive(root / "data.zip", data)
    assert tiny(root).identical(expected)
    assert tiny(write_archive(tmp_path / "whole.zip", prefix="lm-game-analysis-abc/")).identical(expected)
    assert len(expected.attrs["data_sha256"]) == 64
    changed = write_folder(tmp_path / "changed", broken(RESPONSES, put(0, 2, 20.0)))
    assert tiny(changed).attrs["data_sha256"] != expected.attrs["data_sha256"]


def cached(root: Path, cache_dir: Path, **settings: Any) -> xr.Dataset:
    return tiny(root, cache=True, cache_dir=str(cache_dir), **settings)


def test_a_cached_study_is_the_same_whatever_the_filters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, cache_dir = write_folder(tmp_path / "root"), tmp_path / "cache"
    assert cached(root, cache_dir).identical(tiny(root))
    expected = {name: tiny(root, participants=name) for name in ("paper", "complete", "all")}
    monkeypatch.setattr("shannon_game.experiments.studies.comparison.lm_game.parse", None)
    for name, study in expected.items():
        assert cached(root, cache_dir, participants=name).identical(study)
    assert len(list(cache_dir.iterdir())) == 1


@pytest.mark.parametrize("layout", ["folder", "archive"])
def test_a_changed_file_is_never_served_from_the_cache(tmp_path: Path, layout: str) -> None:
    root = write_folder(tmp_path / "root") if layout == "folder" else write_archive(tmp_path / "a.zip")
    changed = root / RESPONSES if layout == "folder" else root
    before = changed.stat()
    assert cached(root, tmp_path / "cache")["report"].values[0] == 0.1
    data = broken(RESPONSES, put(0, 2, 20.0))
    if layout == "folder":
        write_folder(root, {RESPONSES: data[RESPONSES]})
        assert changed.stat().st_size == before.st_size
    else:
        write_archive(root, data)
    # even with its time put back
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert changed.stat().st_mtime_ns == before.st_mtime_ns
    assert cached(root, tmp_path / "cache")["report"].values[0] == 0.2
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_damaged_cache_is_reported_and_made_again(tmp_path: Path) -> None:
    root, cache_dir = write_folder(tmp_path / "root"), tmp_path / "cache"
    expected = cached(root, cache_dir)
    (file,) = cache_dir.iterdir()
    file.write_bytes(file.read_bytes()[:5000])
    study = cached(root, cache_dir)
    assert len(warnings(study)) == 1
    assert f"the cache file {file.name} was damaged" in warnings(study)[0]
    assert study.drop_attrs().identical(expected.drop_attrs())
    assert cached(root, cache_dir).identical(expected)


def test_a_cache_folder_that_cannot_be_written_to_is_a_warning(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "root")
    (tmp_path / "cache").write_text("a file is in the way")
    study = cached(root, tmp_path / "cache")
    assert len(warnings(study)) == 1
    assert "cannot be written to" in warnings(study)[0]
    assert study.drop_attrs().identical(tiny(root).drop_attrs())


# ---------------------------------------------------------------------------------------------- download


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a server on this machine that offers what is in tmp_path/site."""
    monkeypatch.setenv("NO_PROXY", "*")
    (tmp_path / "site").mkdir()
    handler = partial(QuietHandler, directory=str(tmp_path / "site"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "manifest.csv"
    write_manifest(write_folder(tmp_path / "published"), contents(), path)
    return path


def fetched(tmp_path: Path, site: str, manifest: Path, **settings: Any) -> xr.Dataset:
    settings = {"cache_dir": str(tmp_path / "cache"), "url": f"{site}/{{commit}}.zip", "commit": "abc", **settings}
    return lm_game(**{**CONFIG, "manifest": str(manifest), **settings})


def test_without_a_root_the_archive_is_fetched_once(tmp_path: Path, site: str, manifest: Path) -> None:
    source = write_archive(tmp_path / "site" / "abc.zip", prefix="lm-game-analysis-abc/")
    expected = tiny(tmp_path / "published", manifest=str(manifest))
    assert fetched(tmp_path, site, manifest).identical(expected)
    assert counts(expected, "byte for byte as published") == [7]
    source.unlink()
    assert fetched(tmp_path, site, manifest).identical(expected)
    assert fetched(tmp_path, site, manifest, cache=False).identical(expected)
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".nc", ".zip"]


def changed_question() -> dict[str, Any]:
    return broken(question_name(104), put("input_str", "another context"))


def test_a_fetched_archive_with_other_contents_is_refused(tmp_path: Path, site: str, manifest: Path) -> None:
    write_archive(tmp_path / "site" / "abc.zip", changed_question(), prefix="x/")
    with pytest.raises(
        InputError, match=r"member multi_comparisons/doc104\.json: has SHA-256 .*, the published file has"
    ):
        fetched(tmp_path, site, manifest)
    assert list((tmp_path / "cache").iterdir()) == []


def test_an_archive_put_into_the_cache_by_hand_is_verified_too(tmp_path: Path, site: str, manifest: Path) -> None:
    archive = write_archive(tmp_path / "cache" / "lm-game-analysis-abc.zip", changed_question())
    # the same archive as a folder of the user's own is read, and what differs is counted
    study = cached(archive, tmp_path / "cache", manifest=str(manifest))
    assert counts(study, "differ from the published ones of that name, the first is multi_comparisons/doc104.json") == [
        1
    ]
    with pytest.raises(
        InputError, match=r"lm-game-analysis-abc\.zip, member multi_comparisons/doc104\.json: has SHA-256"
    ):
        fetched(tmp_path, site, manifest)


def test_a_fetched_archive_that_lacks_a_file_is_refused(tmp_path: Path, site: str, manifest: Path) -> None:
    data = contents()
    del data[question_name(101)]
    write_archive(tmp_path / "site" / "abc.zip", data)
    with pytest.raises(InputError, match=r"1 of the 7 files needed are missing: multi_comparisons/doc101\.json"):
        fetched(tmp_path, site, manifest)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_truncated_archive_is_not_used_the_next_time(tmp_path: Path, site: str, manifest: Path) -> None:
    source = write_archive(tmp_path / "site" / "abc.zip")
    whole = source.read_bytes()
    source.write_bytes(whole[:-50])
    with pytest.raises(InputError, match="not a readable zip archive"):
        fetched(tmp_path, site, manifest)
    source.write_bytes(whole)
    assert fetched(tmp_path, site, manifest).sizes["response"] == 6


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_offline_without_a_cache_says_what_to_do(
    tmp_path: Path, manifest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError) as raised:
        fetched(tmp_path, f"http://127.0.0.1:{port}", manifest)
    place = tmp_path / "cache" / "lm-game-analysis-abc.zip"
    message = str(raised.value)
    assert f"get http://127.0.0.1:{port}/abc.zip by other means and save it as {place}" in message
    assert "set study.root=FOLDER" in message
    shutil.copy(write_archive(tmp_path / "elsewhere.zip"), place)
    assert fetched(tmp_path, f"http://127.0.0.1:{port}", manifest).sizes["response"] == 6
    del raised
    gc.collect()


def test_a_page_that_is_not_there(tmp_path: Path, site: str, manifest: Path) -> None:
    with pytest.raises(InputError, match=r"abc\.zip: the data are not in the cache and could not be downloaded .*404"):
        fetched(tmp_path, site, manifest)


def test_questions_that_no_manifest_lists_cannot_be_fetched(tmp_path: Path, site: str) -> None:
    with pytest.raises(
        InputError, match=r"lists no hash for 6 of the 7 files needed \(the first is multi_.*doc100\.json"
    ):
        lm_game(**CONFIG, cache_dir=tmp_path, url=site)


def test_tokens_of_the_tiny_study_are_awkward() -> None:
    """The layouts and the cache are only tested on strings that can go wrong if there are some."""
    assert {"\x00", "\ufffd", " Zürich"} <= set(TOKENS)
    drawn = {token for item in range(100, 106) for token in question(item)["generated_token_strs"]}
    assert drawn == set(TOKENS)
