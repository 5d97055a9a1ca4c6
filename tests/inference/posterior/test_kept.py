"""Fits that are kept: taken where question, data, settings and code are the same, made anew elsewhere or if damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

from shannon_game.estimators import content
from shannon_game.estimators.cloze.examples import two_samples
from shannon_game.estimators.content import UnsureError, content_digest
from shannon_game.inference.examples import normal_model, stand_in_posterior
from shannon_game.inference.posterior import kept, storage
from shannon_game.inference.posterior.arviz_adapter import InferenceData, group
from shannon_game.models import word_pair_data

# what somebody types into a notebook; every other text is another question
TYPED = """
import numpy as np, pymc as pm
from functools import partial
SD = {sd}

def helper(x, power={power}):
    return (lambda y: SD * y ** power {sign} {list})(x)

def outer(factor):
    def question(study, settings):
        '''Words that say nothing of the model.'''
        with pm.Model() as model:
            pm.Normal("mean", {mean}, helper(2.0) * factor)
            pm.Potential("likelihood", np.{function}(model["mean"]))
        return model
    return question

question = partial(outer({factor}), settings={settings})
"""
# as it is typed, and changed
PARTS = {
    "sd": ("1.0", "1.5"),
    "power": ("2", "3"),
    "sign": ("+", "-"),
    "list": ("[1, 2][0]", "[1, 3][0]"),
    "mean": ("0.0", "-0.0"),
    "function": ("exp", "sin"),
    "factor": ("3", "4"),
    "settings": ("{'a': [1.0]}", "{'a': [2.0]}"),
}


def typed(file: str = "<cell>", **changed: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    parts = {name: its[0] for name, its in PARTS.items()}
    exec(compile(TYPED.format_map(parts | changed), file, "exec"), names)
    found: Callable[..., Any] = names["question"]
    return found


def values() -> dict[str, Any]:
    """One of every kind of value."""
    return {
        "typed": typed(f"/tmp/kernel_{os.getpid()}.py"),
        "data": word_pair_data(*two_samples()),
        "table": pd.DataFrame({"word": ["a", "b"], "count": [1, 2]}),
        "study": xr.Dataset({"report": ("response", [0.5, 0.25])}, attrs={"name": "x"}),
        "set": {"a", "b", "c"},
        "masked": np.ma.masked_equal([1, 2], 2),
        "objects": np.array(["a", None], dtype=object),
        "model": kept.numbers_of(normal_model()),
    }


def digests() -> dict[str, str]:
    return {name: content_digest(value) for name, value in values().items()}


@pytest.fixture
def drawn() -> list[int]:
    return []


@pytest.fixture
def draw(drawn: list[int]) -> Callable[[], InferenceData]:
    def one() -> InferenceData:
        drawn.append(len(drawn))
        return stand_in_posterior(normal_model(), n_draws=5, seed=len(drawn))

    return one


def test_a_kept_fit_is_taken_as_it_was_and_only_where_all_is_the_same(
    tmp_path: Path, draw: Callable[[], InferenceData], drawn: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(purpose: str = "tvd", of: Any = (1.0, {"draws": 5}), question: Any = None) -> InferenceData:
        with kept.keep_fits(tmp_path / "fits", question):
            return kept.posterior(purpose, of=of, draw=draw)

    first, again = fit(), fit()
    assert len(drawn) == 1
    for name in ("posterior", "sample_stats"):
        assert group(first, name).identical(group(again, name))
        # sums go through variables in their order
        assert list(group(first, name)) == list(group(again, name))
    others = ({"of": (1.5, {"draws": 5})}, {"of": (1.0, {"draws": 6})})
    for number, changed in enumerate(({"purpose": "ard"}, *others, {"question": typed().func}), start=2):  # type: ignore[attr-defined]
        fit(**changed)
        fit(**changed)
        assert len(drawn) == number
    monkeypatch.setattr(kept, "environment", lambda: "another version of a package")
    fit()
    assert len(drawn) == 6


@pytest.mark.parametrize("name", PARTS)
def test_a_changed_prior_or_likelihood_of_a_user_never_finds_the_old_fit(name: str) -> None:
    assert content_digest(typed(**{name: PARTS[name][1]})) != content_digest(typed())
    # the same cell in another session
    assert content_digest(typed("/tmp/ipykernel_17/other.py")) == content_digest(typed())


def test_a_function_of_a_notebook_counts_by_its_code_whatever_file_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__file__", "/usr/lib/python3/site-packages/ipykernel_launcher.py", raising=False)
    content._is_fixed.cache_clear()
    digests = set()
    for changed in ({}, {"sd": "1.5"}):
        question = typed(**changed).func  # type: ignore[attr-defined]
        question.__qualname__ = "question"
        monkeypatch.setattr(main, "question", question, raising=False)
        digests.add(content_digest(question))
    assert len(digests) == 2


def test_numbers_of_a_model_are_its_data_answers_and_constants() -> None:
    def numbers(constant: float = 1.0, data: float = 2.0, answer: float = 3.0, name: str = "y", who: str = "a") -> str:
        with pm.Model(coords={"who": [who]}) as model:
            used, unused = pm.Data("used", [1.0]), pm.Data("unused", [data])
            assert unused is not used
            pm.Normal(name, pm.Normal("mean", constant) * used, observed=[answer], dims="who")
        return content_digest(kept.numbers_of(model))

    changes: list[dict[str, Any]] = [{}, {"constant": 1.5}, {"data": 1.0}, {"answer": 2.0}, {"name": "z"}, {"who": "b"}]
    assert len({numbers(**one) for one in changes}) == len(changes)
    assert numbers() == numbers()


def test_what_cannot_be_told_surely_is_not_kept(
    tmp_path: Path, draw: Callable[[], InferenceData], drawn: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    class Prior:
        def sd(self) -> float:
            return 1.0

    def reads() -> str:
        return open("prior.txt").read()  # noqa: PTH123

    loop: list[Any] = []
    loop.append(value for value in loop)
    with kept.keep_fits(tmp_path):
        for of in (Prior(), reads, loop, partial(reads), lambda: Prior().sd()):
            for _ in range(2):
                kept.posterior("tvd", of=of, draw=draw)
            with pytest.raises(UnsureError):
                content_digest(of)
    assert len(drawn) == 10
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().err.count("is not kept") == 10


def test_no_damaged_file_changes_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, right, drawn = np.random.default_rng(1), stand_in_posterior(normal_model()), []

    def draw() -> InferenceData:
        drawn.append(1)
        return right

    with kept.keep_fits(tmp_path):
        kept.posterior("tvd", of=(), draw=draw)
        for case in range(45):
            (path,) = tmp_path.iterdir()
            written = bytearray(path.read_bytes())
            at = int(rng.integers(len(written)))
            if case % 3 == 0:
                written[at] ^= 1 << int(rng.integers(8))
            elif case % 3 == 1:
                del written[at:]
            else:
                written[at : at + 64] = bytes(len(written[at : at + 64]))
            damaged = written != path.read_bytes()
            path.write_bytes(written)
            capsys.readouterr()
            drawn.clear()
            found = kept.posterior("tvd", of=(), draw=draw)
            assert group(found, "posterior").equals(group(right, "posterior"))
            assert len(drawn) == damaged
            assert capsys.readouterr().err.count("cannot be read and is made again") == damaged


def test_a_full_disk_stops_nothing(
    tmp_path: Path,
    draw: Callable[[], InferenceData],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "save_posterior", full)
    with kept.keep_fits(tmp_path):
        kept.posterior("tvd", of=(), draw=draw)
    assert "cannot be kept for another run: [Errno 28] No space left on device" in capsys.readouterr().err


@pytest.mark.subprocess
def test_another_process_finds_every_key(tmp_path: Path) -> None:
    own = Path(__file__)
    script = f"import sys; sys.path.insert(0, {str(own.parent)!r}); import {own.stem} as its; print(its.digests())"
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    arguments = [sys.executable, "-c", script]
    found = subprocess.run(arguments, env=environment, check=True, capture_output=True, text=True, timeout=300)
    assert found.stdout.strip() == str(digests())
    assert len(set(digests().values())) == len(values())
