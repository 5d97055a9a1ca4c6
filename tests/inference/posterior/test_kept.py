"""Fits that are kept: taken where all that decides them is the same, made anew where anything differs or is damaged."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.ops import wrap_py
from pytensor.graph.op import Op

from shannon_game.estimators.cloze.examples import two_samples
from shannon_game.inference.examples import normal_model, stand_in_posterior
from shannon_game.inference.posterior import kept as module
from shannon_game.inference.posterior import storage
from shannon_game.inference.posterior.arviz_adapter import InferenceData, group
from shannon_game.inference.posterior.kept import keep_fits, kept
from shannon_game.models import word_pair_data, word_pair_model
from shannon_game.models.cloze.word_pair_density import word_pair_density

SETTINGS = {"draws": 5, "seed": 1}
TWO = {"two": ["a", "b"]}


class Scaled(Op):
    """An operation by hand, whose code PyTensor cannot look into."""

    itypes: ClassVar = [pt.dvector]
    otypes: ClassVar = [pt.dvector]

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = self.factor * inputs[0]


class ScaledOtherwise(Scaled):
    """The same attributes, other code."""

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = self.factor + inputs[0]


def model_of(build: Callable[[Any, Any], Any], **coords: Any) -> pm.Model:
    """Two parameters and what is built of them."""
    with pm.Model(coords=coords or None) as model:
        build(pm.Normal("a"), pm.Normal("b"))
    return model


def observed(value: Callable[[Any, Any], Any]) -> pm.Model:
    return model_of(lambda a, b: pm.Normal("y", value(a, b), 1, observed=[1.0, 2.0]))


def custom(factor: float) -> pm.Model:
    def log_density(value: Any, mean: Any) -> Any:
        return -factor * (value - mean) ** 2

    return model_of(lambda a, _: pm.CustomDist("y", a, logp=log_density, observed=np.ones(2)))


def by_function(factor: float) -> pm.Model:
    @wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])
    def scaled(x: Any) -> Any:
        return factor * x

    return model_of(lambda a, b: pm.Potential("p", scaled(pt.stack([a, b])).sum()))


def inner_graph(value: Callable[[Any], Any]) -> pm.Model:
    x = pt.dscalar()
    return model_of(lambda a, _: pm.Potential("p", OpFromGraph([x], [value(x)])(a)))


def repeated(value: Callable[[Any], Any]) -> pm.Model:
    def build(a: Any, _: Any) -> None:
        steps = pytensor.scan(value, outputs_info=[a], n_steps=3, return_updates=False)
        pm.Potential("p", steps[-1])

    return model_of(build)


def with_data(values: tuple[float, ...], *, second: bool = False) -> pm.Model:
    def build(a: Any, b: Any) -> None:
        data = [pm.Data("first", np.array(values)), pm.Data("second", np.array(values))]
        pm.Normal("y", a + b * data[second], 1, observed=[1.0, 2.0])

    return model_of(build)


def free(make: Callable[[], Any], **coords: Any) -> pm.Model:
    return model_of(lambda *_: make(), **coords)


MODELS: Mapping[str, Callable[[], pm.Model]] = {
    **{f.__name__: lambda f=f: observed(f) for f in (operator.add, operator.sub, operator.mul, operator.truediv)},
    **{f"pt.{f.name}": lambda f=f: observed(f) for f in (pt.maximum, pt.minimum)},
    "b - a": lambda: observed(lambda a, b: b - a),
    "rows": lambda: observed(lambda a, b: pt.stack([[a, b], [b, b]]).sum(axis=0)),
    "columns": lambda: observed(lambda a, b: pt.stack([[a, b], [b, b]]).sum(axis=1)),
    "dot": lambda: observed(lambda a, b: pt.stack([a, b]) @ pt.stack([b, 1])),
    # of no diagonal matrix, for which PyTensor 3 knows that the two are one
    "custom 1": lambda: custom(1.0),
    "custom 2": lambda: custom(2.0),
    "function 1": lambda: by_function(1.0),
    "function 2": lambda: by_function(2.0),
    "inner exp": lambda: inner_graph(pt.exp),
    "inner sin": lambda: inner_graph(pt.sin),
    "scan 1": lambda: repeated(lambda x: x + 1),
    "scan 2": lambda: repeated(lambda x: x * 2),
    "op 1": lambda: model_of(lambda a, b: pm.Potential("p", Scaled(1.0)(pt.stack([a, b])).sum())),
    "op 2": lambda: model_of(lambda a, b: pm.Potential("p", Scaled(2.0)(pt.stack([a, b])).sum())),
    "op 3": lambda: model_of(lambda a, b: pm.Potential("p", ScaledOtherwise(1.0)(pt.stack([a, b])).sum())),
    "two terms": lambda: model_of(lambda a, b: [pm.Potential("p", a), pm.Potential("q", b)]),
    "other order": lambda: model_of(lambda a, b: [pm.Potential("q", b), pm.Potential("p", a)]),
    "deterministic": lambda: model_of(lambda a, b: pm.Deterministic("d", a + b)),
    "another name": lambda: model_of(lambda a, b: pm.Deterministic("e", a + b)),
    "data": lambda: with_data((1.0, 2.0)),
    "data, one number": lambda: with_data((1.0, 2.5)),
    "data of another name": lambda: with_data((1.0, 2.0), second=True),
    "observed": lambda: free(lambda: pm.Normal("y", observed=1.0)),
    "observed otherwise": lambda: free(lambda: pm.Normal("y", observed=-0.0)),
    "free": lambda: free(lambda: pm.Normal("y")),
    "start": lambda: free(lambda: pm.Normal("y", initval=0.5)),
    "start of the prior": lambda: free(lambda: pm.Normal("y", initval="prior")),
    "spread": lambda: free(lambda: pm.Normal("y", 0, 2)),
    "scale": lambda: free(lambda: pm.HalfNormal("y")),
    "scale without transform": lambda: free(lambda: pm.HalfNormal("y", default_transform=None)),
    "ordered": lambda: free(
        lambda: pm.Normal("y", shape=2, initval=[0.0, 1.0], transform=pm.distributions.transforms.ordered)
    ),
    "two": lambda: free(lambda: pm.Normal("y", shape=2)),
    "dims": lambda: free(lambda: pm.Normal("y", dims="two"), **TWO),
    "coords": lambda: free(lambda: pm.Normal("y", dims="two"), two=["a", "c"]),
    "unused dims": lambda: free(lambda: pm.Normal("y", shape=2), **TWO),
}


@cache
def keys_of_models() -> dict[str, str]:
    return {name: module._key(make(), SETTINGS) for name, make in MODELS.items()}


@pytest.fixture
def drawn() -> list[int]:
    return []


@pytest.fixture
def draw(drawn: list[int]) -> Callable[[], InferenceData]:
    def one() -> InferenceData:
        drawn.append(len(drawn))
        return stand_in_posterior(normal_model(), n_draws=5, seed=len(drawn))

    return one


def test_a_kept_fit_is_taken_as_it_was(tmp_path: Path, draw: Callable[[], InferenceData], drawn: list[int]) -> None:
    with keep_fits(tmp_path / "fits"):
        first, again = (kept(normal_model(), SETTINGS, draw) for _ in range(2))
    assert len(drawn) == 1
    for name in ("posterior", "sample_stats"):
        assert group(first, name).identical(group(again, name))
        # sums go through variables in their order
        assert list(group(first, name)) == list(group(again, name))


def test_no_two_models_share_a_key_and_a_model_built_again_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    found = keys_of_models()
    for name, key in found.items():
        assert [other for other in found if found[other] == key] == [name]
    assert keys_of_models.__wrapped__() == found
    assert module._key(normal_model(), {**SETTINGS, "seed": 2}) != module._key(normal_model(), SETTINGS)
    before = module._key(normal_model(), SETTINGS)
    monkeypatch.setattr(module, "environment", lambda: "another version of a package")
    assert module._key(normal_model(), SETTINGS) != before


def test_a_written_density_counts_with_its_start_its_jitter_and_what_its_functions_hold() -> None:
    data = word_pair_data(*two_samples())
    density, other, again = (word_pair_density(data, pooled=pooled) for pooled in (False, True, False))
    changed = [
        density,
        other,
        replace(density, start=density.start + 1),
        replace(density, jitter=0.5),
        replace(density, function=other.expand),
        replace(density, expand=lambda x, **_: {"tvd": x}),
    ]
    keys = [module._key(word_pair_model(data), {"density": one}, by_model=False) for one in (*changed, again)]
    assert keys[-1] == keys[0]
    assert len(set(keys)) == len(changed)


def test_what_cannot_be_told_surely_is_not_kept(
    tmp_path: Path, draw: Callable[[], InferenceData], drawn: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    def read(x: Any) -> Any:
        return float(Path("factor.txt").open().read()) * x if open("factor.txt") else x  # noqa: PTH123

    operation = wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])(read)
    with keep_fits(tmp_path):
        for _ in range(2):
            kept(model_of(lambda a, _: pm.Potential("p", operation(a))), SETTINGS, draw)
    assert len(drawn) == 2
    assert not list(tmp_path.iterdir())
    assert "is not kept" in capsys.readouterr().err


def test_no_damaged_file_changes_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, model, right, drawn = np.random.default_rng(1), normal_model(), stand_in_posterior(normal_model()), []

    def draw() -> InferenceData:
        drawn.append(1)
        return right

    with keep_fits(tmp_path):
        kept(model, SETTINGS, draw)
        for case in range(45):
            (path,) = tmp_path.iterdir()
            content = bytearray(path.read_bytes())
            at = int(rng.integers(len(content)))
            if case % 3 == 0:
                content[at] ^= 1 << int(rng.integers(8))
            elif case % 3 == 1:
                del content[at:]
            else:
                content[at : at + 64] = bytes(len(content[at : at + 64]))
            damaged = content != path.read_bytes()
            path.write_bytes(content)
            capsys.readouterr()
            drawn.clear()
            found = kept(model, SETTINGS, draw)
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
    with keep_fits(tmp_path):
        kept(normal_model(), SETTINGS, draw)
    assert "cannot be kept for another run: [Errno 28] No space left on device" in capsys.readouterr().err


@pytest.mark.subprocess
def test_another_process_finds_every_key(tmp_path: Path) -> None:
    own = Path(__file__)
    script = (
        f"import sys; sys.path.insert(0, {str(own.parent)!r}); import {own.stem} as its; print(its.keys_of_models())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    arguments = [sys.executable, "-c", script]
    found = subprocess.run(arguments, env=environment, check=True, capture_output=True, text=True, timeout=300)
    assert found.stdout.strip() == str(keys_of_models())
