"""``shannon-game demo``: a look at what the toolkit does, on studies that need no file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.experiments.harness.csv_tables import write_csv
from shannon_game.experiments.harness.html_page import html_page
from shannon_game.experiments.harness.registry import EXTRAS
from shannon_game.experiments.harness.report import save_figures
from shannon_game.experiments.harness.tables import markdown_table
from shannon_game.inference.manifest import replaced
from shannon_game.inference.progress import duration, say, stage

if TYPE_CHECKING:
    import pandas as pd

    from shannon_game.experiments.harness.result import ExperimentResult

_DPI = 110
_MANY_ROWS = 12


@dataclass(frozen=True)
class DemoStep:
    """One question of the demonstration: what its figure shows, how a notebook asks it, what must be installed."""

    title: str
    says: str
    python: str
    """Leaves a ``result``."""
    extra: str = ""

    def run(self) -> ExperimentResult:
        """Ask the question as the page shows it."""
        names: dict[str, ExperimentResult] = {}
        exec(self.python, names)
        return names["result"]


def demo(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game demo [FOLDER]``: one folder with an HTML page of figures and what each says."""
    parser = argparse.ArgumentParser(prog="shannon-game demo", description=__doc__.partition(": ")[2])
    parser.add_argument("folder", nargs="?", type=Path, help="where to write (outputs/demo/TIME)")
    given = parser.parse_args(list(arguments))
    folder = given.folder or Path("outputs", "demo", f"{datetime.now().astimezone():%Y-%m-%d_%H-%M-%S}")
    start = time.monotonic()
    page = write_demo(folder, demo_parts())
    say(f"took {duration(time.monotonic() - start)}; open this page in a browser:")
    sys.stdout.write(f"{page}\n")
    return 0


def write_demo(folder: Path, parts: Sequence[DemoStep]) -> Path:
    """Answer the questions and write figures, tables and the page."""
    lines = [
        "# What Shannon game does",
        "People and language models guess the next word; here are numbers that follow. All studies on this page are "
        "simulated, so that the truth is known. `shannon-game --help` lists every question, `shannon-game doctor` what "
        "is installed.",
    ]
    with replaced(folder, "demo") as staging, stage("demo", len(parts)) as show:
        for number, part in enumerate(parts):
            show(number, now=part.title)
            lines += [f"## {part.title}", part.says, f"```python\n{part.python}\n```"]
            try:
                if part.extra:
                    require_packages(EXTRAS[part.extra], part.extra)
            except InputError as missing:
                lines.append(f"**Left out:** {missing}")
                continue
            lines += _answer(staging, f"{number + 1}", part.run())
        show(len(parts))
        (staging / "demo.html").write_text(html_page("\n\n".join(lines) + "\n", [staging]), encoding="utf-8")
    return (folder / "demo.html").resolve()


def _answer(folder: Path, name: str, result: ExperimentResult) -> list[str]:
    figures = {f"{name}_{key}": figure for key, figure in result.figures.items()}
    save_figures(folder, figures, dpi=_DPI)
    write_csv(result.table, folder / f"{name}_table.csv")
    summary = result.summary()
    warnings = [f"**Warning:** {text}" for text in result.warnings]
    return [
        *(f"![{figure}]({figure}.png)" for figure in figures),
        result.text,
        "<details><summary>Table and warnings</summary>",
        markdown_table(summary.head(_MANY_ROWS)),
        *warnings,
        "</details>",
    ]


def guesses_until_right(*, n_people: int = 12, n_words: int = 40, seed: int = 0) -> pd.DataFrame:
    """Simulate people who guess every word until they have it."""
    import pandas as pd  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    # some words are nearly known and some are not
    hit = rng.beta(0.9, 1.3, n_words).clip(0.05, 0.95)
    rows = [
        (f"p{person:02d}", "story", word, f"word {word}", f"word {word}" if guess == taken else f"guess {guess}")
        for person in range(n_people)
        for word, taken in enumerate(rng.geometric(hit).clip(max=20).tolist())
        for guess in range(1, taken + 1)
    ]
    return pd.DataFrame(rows, columns=["participant", "document", "position", "target", "guess"])


def demo_parts() -> list[DemoStep]:
    """Read the questions, in the order of the page."""
    import yaml  # noqa: PLC0415

    text = files("shannon_game.experiments.first_steps").joinpath("demo.yaml").read_text(encoding="utf-8")
    return [DemoStep(**each) for each in yaml.safe_load(text)]
