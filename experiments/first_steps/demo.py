"""``shannon-game demo``: a look at what the toolkit does, on studies that need no file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.experiments.harness.csv_tables import write_csv
from shannon_game.experiments.harness.html_page import html_page
from shannon_game.experiments.harness.outputs import save_figures
from shannon_game.experiments.harness.registry import EXTRAS
from shannon_game.experiments.harness.tables import markdown_table
from shannon_game.inference.manifest import replaced
from shannon_game.inference.progress import duration, say, stage

if TYPE_CHECKING:
    import pandas as pd

    from shannon_game.experiments.harness.result import ExperimentResult

_DPI = 110
_MANY_ROWS = 12


@dataclass(frozen=True)
class Part:
    """One question of the demonstration: what its figure shows, how a notebook asks it, what must be installed."""

    title: str
    says: str
    python: str
    run: Callable[[], ExperimentResult]
    extra: str = ""


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


def write_demo(folder: Path, parts: Sequence[Part]) -> Path:
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
        result.answer,
        "<details><summary>Table and warnings</summary>",
        markdown_table(summary.head(_MANY_ROWS)),
        *warnings,
        "</details>",
    ]


def _perplexity() -> ExperimentResult:
    from shannon_game import perplexity, simulated  # noqa: PLC0415 - each question imports what it needs

    return perplexity(simulated())


def _tvd() -> ExperimentResult:
    from shannon_game import cloze_simulated, tvd  # noqa: PLC0415

    return tvd(cloze_simulated())


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


def _accuracy() -> ExperimentResult:
    from shannon_game import accuracy, guess_study  # noqa: PLC0415

    first = guesses_until_right().groupby(["participant", "position"], as_index=False).first()
    return accuracy(guess_study(first, name="first guesses"), posterior=False, min_answers=40)


def _bounds() -> ExperimentResult:
    from shannon_game import bounds, guess_study  # noqa: PLC0415

    return bounds(guess_study(guesses_until_right(), name="guesses until right"), vocab_size=1000)


def _posterior() -> ExperimentResult:
    from shannon_game import human_loss, simulated  # noqa: PLC0415

    return human_loss(simulated(), players=["lm-medium", "lm-weak"], rounding="none")


_RUNS = {
    "perplexity": _perplexity,
    "tvd": _tvd,
    "accuracy": _accuracy,
    "bounds": _bounds,
    "posterior": _posterior,
}


def demo_parts() -> list[Part]:
    """Read the questions, in the order of the page."""
    import yaml  # noqa: PLC0415

    text = files("shannon_game.experiments.first_steps").joinpath("demo.yaml").read_text(encoding="utf-8")
    return [Part(**{**each, "run": _RUNS[each["run"]]}) for each in yaml.safe_load(text)]
