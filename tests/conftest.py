"""Fixtures for every test: where the public data are, and which seeds the tests that sample take."""

from __future__ import annotations

import os

# before NumPy is loaded. Threads of linear algebra wait for each other by spinning: small matrices took up to ten times
# the processor time where other tests run beside them
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# PyTensor is imported before the package that sets the first in some tests; without the second it keeps a traceback
# of every variable that a rewrite makes, a tenth of the time that a model takes to compile; without the third g++ takes
# nearly twice as long, and a model calls it a hundred times where nothing is compiled yet
os.environ.setdefault("PYTENSOR_FLAGS", "compile__timeout=3600,traceback__limit=0,gcc__cxxflags=-O0 -g0")

import gc
import importlib
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

_MARKER_OF_IMPORT = {"nutpie": "mcmc", "torch": "torch"}
_missing: set[str] = set()
"""Markers that the running test should have to sample, to start Python or to load torch, and has not."""

DATA = Path(os.environ.get("SHANNON_DATA") or Path(__file__).parents[1] / ".." / "shared" / "data").resolve()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests that sample run with other seeds: what they claim holds for any, at the rate that they state."""
    parser.addoption(
        "--seed-offset", type=int, default=0, help="added to every seed of the tests that simulate and sample"
    )


@pytest.fixture(scope="session")
def seed_offset(request: pytest.FixtureRequest) -> int:
    """Number to add to every seed of a test that simulates and samples."""
    return int(request.config.getoption("--seed-offset"))


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C work: a shell that starts the tests in the background has them, and what they start, ignore it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # how long an example takes is the machine's affair
    hypothesis.settings.register_profile("any machine", deadline=None)
    hypothesis.settings.load_profile("any machine")
    # what is imported stays: to look through it for cycles after every 700 objects took up to a fifth of a session
    gc.set_threshold(20_000)
    sys.addaudithook(_keep_tiers)
    # pytest-xdist would begin with the files of most tests, and leave the longest to one worker at the end
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let workers begin with the files that sample, then those that start processes or load torch."""
    if hasattr(config, "workerinput"):
        cost: Counter[Path] = Counter()
        for item in items:
            marked = {mark.name for mark in item.iter_markers()}
            cost[item.path] += 100 if "mcmc" in marked else 10 if marked & {"subprocess", "torch"} else 1
        items.sort(key=lambda item: -cost[item.path])


def pytest_collection_finish() -> None:
    """Leave the modules and the tests out of every later search for cycles."""
    gc.freeze()


def _keep_tiers(event: str, arguments: tuple[object, ...]) -> None:
    """Fail a test of the unit tier that does what its tier leaves out."""
    marker = None
    if event == "import":
        marker = _MARKER_OF_IMPORT.get(str(arguments[0]))
    elif event == "subprocess.Popen" and "python" in Path(os.fsdecode(str(arguments[0]))).name:
        marker = "subprocess"
    if marker in _missing:
        pytest.fail(f"{event} {arguments[0]}: a test that does this needs the marker {marker}")


@pytest.fixture(autouse=True)
def _no_public_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test read public data because of where the tests are run."""
    monkeypatch.delenv("SHANNON_DATA", raising=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch a test that has none of the markers of the other tiers."""
    marked = {mark.name for mark in item.iter_markers()}
    if not marked & {"mcmc", "subprocess", "torch", "slow"}:
        _missing.update(("mcmc", "subprocess", "torch"))
    yield
    _missing.clear()


def public_folder(name: str, inside: str) -> Path:
    """Folder with public files, found by something inside; the test is skipped where it is absent."""
    if not (DATA / name / inside).exists():
        pytest.skip(f"there is no {inside} in {DATA / name}; set SHANNON_DATA to the folder with the public data")
    return DATA / name


@pytest.fixture(scope="session")
def lm_game_root() -> Iterator[Path]:
    """Folder with the next-token game's public files, which are parsed once for every choice of questions."""
    folder = public_folder("lm_game", "multi_comparisons")
    module = importlib.import_module("shannon_game.experiments.studies.comparison.lm_game")
    parse = module._parsed
    parsed: dict[tuple[str, bool], Any] = {}

    def once(settings: Any) -> Any:
        key = (str(settings.questions), settings.answers)
        if str(settings.root) != str(folder):
            return parse(settings)
        if key not in parsed:
            parsed[key] = parse(settings)
        return parsed[key].copy(deep=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_parsed", once)
        yield folder


@pytest.fixture(scope="session")
def rank_perplexity_root() -> Path:
    """Folder with the four archives of the rank-based perplexity data."""
    return public_folder("rank_perplexity", "n = 30 reftext1.zip")


@pytest.fixture(scope="session")
def provo_root() -> Path:
    """Folder with the public repository of the next-word answers."""
    return public_folder("provo", "TVD")
