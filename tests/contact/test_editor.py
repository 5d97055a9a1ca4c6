"""An editor or a notebook asks where a name is defined: Jedi, which completes in both, answers across packages."""

from __future__ import annotations

from pathlib import Path

import jedi
import pytest

ROOT = Path(__file__).parents[2]
NAMES = (
    ("estimators.comparison.gap", "estimate_gap"),
    ("estimators.errors", "InputError"),
    ("estimators.schema", "Schema"),
    ("models.comparison.participants", "participant_model"),
    ("models.cloze.tvd", "word_pair_data"),
    ("inference.disk", "write_whole"),
    ("inference.posterior.sampling", "sample"),
    ("experiments.studies.files", "read_bytes"),
    ("experiments.harness.result", "ExperimentResult"),
    ("experiments.comparison.perplexity", "perplexity"),
)


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_an_editor_finds_the_definition_of_an_imported_name(module: str, name: str) -> None:
    script = jedi.Script(
        f"from shannon_game.{module} import {name}\n{name}",
        path=ROOT / "tests" / "somewhere.py",
        project=jedi.Project(ROOT),
        environment=jedi.InterpreterEnvironment(),
    )
    places = script.goto(2, 0, follow_imports=True)
    assert [(place.name, place.type in ("function", "class")) for place in places] == [(name, True)]
    assert Path(str(places[0].module_path)).resolve().is_relative_to(ROOT)


def test_an_editor_completes_the_public_names() -> None:
    here = jedi.InterpreterEnvironment()
    script = jedi.Script("import shannon_game as sg\nsg.perp", project=jedi.Project(ROOT), environment=here)
    assert "perplexity" in {completion.name for completion in script.complete(2, 7)}
