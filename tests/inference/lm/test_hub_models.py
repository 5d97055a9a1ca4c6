"""The models of ``conf/model`` that come from the Hub."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from shannon_game.inference.lm.settings import ModelSettings
from tests.experiments.command import ROOT

HUB = [path for path in (ROOT / "conf" / "model").glob("*.yaml") if "\nsource: hub\n" in path.read_text("utf-8")]


@pytest.mark.parametrize("path", HUB, ids=lambda path: path.stem)
def test_settings_are_whole_and_say_the_size_that_is_checked(path: Path) -> None:
    text = path.read_text("utf-8")
    settings = ModelSettings(**yaml.safe_load(text))
    assert text.startswith(f"# @package models.{path.stem}\n")
    assert f"{settings.n_parameters:,} parameters" in text
