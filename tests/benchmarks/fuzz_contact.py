"""Draw settings, texts, tables and run folders as an outsider brings them, and class what the command does with each.

    python -m tests.benchmarks.fuzz_contact --cases 300 --seed 0

A case runs in a process with a limit in seconds. Its class is "numbers", "one line" (exit code 2 and one line), "failed
check" (exit code 3), "traceback" or "hang". Another source of cases is a function in :data:`SOURCES`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Case = Sequence[str]
"""Arguments of the command, which runs in a folder that the source has filled."""

_VALUES = (
    *[
        "-1",
        "0",
        "1",
        "2",
        "0.5",
        "1e400",
        "nan",
        "null",
        "true",
        "[]",
        "{}",
        "[a,b]",
        "${eval:1}",
        "${seed}",
        "${oc.env:NO}",
        "é",
        "os.system",
        "../x",
        "human",
        "''",
        "1",
        "2",
    ],
    *("99999999999999999999", "'a b'", "postgresql://me:word@host/a"),
)
_SETTINGS = [
    "seed",
    "n",
    "players",
    "estimator",
    "rounding",
    "estimator.log_mean",
    "estimator.uncertainty",
    "output.dpi",
    "+rounding.values",
    "generator",
    "study.n_participants",
    "study.entropy_nats",
    "+study.token",
    "output.html",
    "output.print",
    "+models.a.source",
    "sampler",
    "resume",
    "study.rounding",
    "hydra.run.dir",
]
_CELLS = (
    *("", "the cat", "sat", "1", "1.0", "-inf", "nan", "null", "true", "a,b", '"', "=1+1", "\t", "é", "\ufeff", "0.5"),
    "x" * 5000,
)
_QUICK = ("study.n_items=3", "output.print=false")


def settings(draw: np.random.Generator, _folder: Path) -> Case:
    """A command on the simulated study with one to three settings at random."""
    names = draw.choice(_SETTINGS, size=draw.integers(1, 4), replace=False)
    given = [f"{name}={draw.choice(_VALUES)}" for name in names]
    return ["+exp=perplexity", *_QUICK, *given]


def tables(draw: np.random.Generator, folder: Path) -> Case:
    """A table of answers with cells at random, now and then damaged."""
    rows = [["context", "response", "participant"], *draw.choice(_CELLS, size=(int(draw.integers(0, 9)), 3)).tolist()]
    content = "\n".join(",".join(row) for row in rows).encode(str(draw.choice(["utf-8", "utf-16", "utf-8-sig"])))
    if draw.random() < 0.3:
        content = content[: draw.integers(0, len(content) + 1)] + bytes(draw.integers(0, 256, size=3, dtype=np.uint8))
    (folder / "answers.csv").write_bytes(content)
    return ["+exp=groups", "study=cloze_table", "study.path=answers.csv", "output.print=false"]


def texts(draw: np.random.Generator, folder: Path) -> Case:
    """A folder of texts for a question that needs no language model."""
    for number in range(int(draw.integers(0, 4))):
        (folder / f"{number}.txt").write_text(" ".join(draw.choice(_CELLS, size=20)), encoding="utf-8")
    chosen = draw.choice(["study.path=.", "study.path=0.txt", "study.path=nowhere"])
    return ["+exp=surprisal", "study=texts", str(chosen), "model=[ngram]", "output.print=false"]


def folders(draw: np.random.Generator, folder: Path) -> Case:
    """A run folder in which something stands already."""
    run = folder / "run"
    run.mkdir()
    kind = draw.integers(0, 5)
    name = str(
        draw.choice([".hydra", "status.json", "run.log", "table.csv", ".running", ".shannon-game-attempt", "mine"])
    )
    if kind == 0:
        (run / name).symlink_to(folder)
    elif kind == 1:
        (run / name).mkdir()
    elif kind > 1:
        (run / name).write_bytes(bytes(draw.integers(0, 256, size=9, dtype=np.uint8)) if kind == 2 else b"{}")
    return ["+exp=perplexity", *_QUICK, "hydra.run.dir=run"]


def yaml_files(draw: np.random.Generator, folder: Path) -> Case:
    """A file of settings of the user's with lines at random."""
    lines = draw.choice(
        ["a: 1", "name: x", "\tb: 2", "- c", "d: [", "kind: cloze", "e: &e [1]", "f: *e", "_target_: os.system"], 4
    )
    (folder / "study").mkdir()
    (folder / "study" / "mine.yaml").write_text("\n".join(lines), encoding="utf-8")
    return ["--config-dir", ".", "+exp=perplexity", "study=mine"]


SOURCES: dict[str, Callable[[np.random.Generator, Path], Case]] = {
    each.__name__: each for each in (settings, tables, texts, folders, yaml_files)
}
"""Name of a source -> what draws a case of it; another module may add its own before :func:`count`."""


def classify(case: Case, folder: Path, seconds: float) -> tuple[str, str]:
    """Class of a case, and what was printed last."""
    command = [sys.executable, "-m", "shannon_game.experiments.run", *case]
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "hang", ""
    said = done.stderr.decode(errors="replace")
    errors = [line for line in said.splitlines() if "error:" in line]
    last = (errors or said.splitlines() or [""])[-1]
    if done.returncode in (0, 3):
        return ("numbers" if done.returncode == 0 else "failed check"), last
    is_one_line = done.returncode == 2 and len(errors) == 1 and "Traceback" not in said
    return ("one line" if is_one_line else "traceback"), last


def count(cases: int, seed: int, *, seconds: float = 120.0) -> Counter[tuple[str, str]]:
    """Classes of so many cases by source; whatever is neither numbers nor one line is printed with its arguments."""
    found: Counter[tuple[str, str]] = Counter()
    for number in range(cases):
        draw = np.random.default_rng([seed, number])
        name = list(SOURCES)[number % len(SOURCES)]
        with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
            case = SOURCES[name](draw, Path(place))
            verdict, last = classify(case, Path(place), seconds)
        found[name, verdict] += 1
        if verdict in ("traceback", "hang"):
            print(f"{verdict}: case {number} of seed {seed}, {name}: {list(case)}: {last}", flush=True)
    return found


def main() -> int:
    """Draw, class and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0, help="limit of a case")
    given = parser.parse_args()
    found = count(given.cases, given.seed, seconds=given.seconds)
    for (name, verdict), number in sorted(found.items()):
        print(f"{name:12} {verdict:12} {number}")
    return int(any(verdict in ("traceback", "hang") for _, verdict in found))


if __name__ == "__main__":
    sys.exit(main())
