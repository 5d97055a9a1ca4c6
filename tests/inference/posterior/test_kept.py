"""Fits that are kept: taken where model and settings are the same, made anew where anything differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

from inference.examples import normal_model, stand_in_posterior
from inference.posterior import kept as module
from inference.posterior import storage
from inference.posterior.arviz_adapter import InferenceData, group
from inference.posterior.kept import keep_fits, kept

SETTINGS = {"draws": 5, "seed": 1}


def other_model(*, sd: float = 1.0, data: tuple[float, ...] = (0.1, -0.3), name: str = "mean") -> pm.Model:
    with pm.Model() as model:
        values = pm.Data("values", np.array(data))
        pm.Normal("y", pm.Normal(name, 0, sd), 1.0, observed=values)
    return model


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


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (other_model(sd=2.0), SETTINGS),
        (other_model(data=(0.1, 0.3)), SETTINGS),
        (other_model(data=(0.1, -0.3, 0.0)), SETTINGS),
        (other_model(name="centre"), SETTINGS),
        (other_model(), {**SETTINGS, "seed": 2}),
    ],
    ids=["constant", "value", "shape", "name", "setting"],
)
def test_what_differs_in_anything_is_another_fit(model: pm.Model, settings: dict[str, int]) -> None:
    assert module._key(other_model(), SETTINGS) == module._key(other_model(), SETTINGS)
    assert module._key(model, settings) != module._key(other_model(), SETTINGS)


def test_nothing_is_kept_where_nobody_asks(tmp_path: Path, draw: Callable[[], InferenceData], drawn: list[int]) -> None:
    with keep_fits(tmp_path / "fits"), keep_fits(None):
        kept(normal_model(), SETTINGS, draw)
    kept(normal_model(), SETTINGS, draw)
    assert len(drawn) == 2
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_and_a_full_disk_stop_nothing(
    tmp_path: Path,
    draw: Callable[[], InferenceData],
    drawn: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with keep_fits(tmp_path):
        kept(normal_model(), SETTINGS, draw)
        (path,) = tmp_path.glob("*.nc")
        path.write_bytes(path.read_bytes()[:1000])
        kept(normal_model(), SETTINGS, draw)
        assert len(drawn) == 2
        path.unlink()

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(storage, "save_posterior", full)
        kept(normal_model(), SETTINGS, draw)
    said = capsys.readouterr().err
    assert "cannot be read and is made again" in said
    assert "cannot be kept for another run: [Errno 28] No space left on device" in said
