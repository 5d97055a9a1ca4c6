"""Settings by chance, the way a command line takes: one line that says what is wrong, or a result."""

from __future__ import annotations

import errno
import random
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from zlib import crc32

import matplotlib.pyplot as plt
import pytest
from hydra import compose, initialize_config_module
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.command_line import check_arguments, one_line
from shannon_game.experiments.harness.job import SHARED, Job, before, prepare
from shannon_game.experiments.harness.registry import entry_of, load_target
from shannon_game.inference.settings import Settings
from tests.experiments.command import TINY
from tests.experiments.studies.hostile.tables import KINDS, PAIRS, written
from tests.experiments.studies.hostile.test_hostile_inputs import in_time

CLOZE = ("study=cloze_simulated", "study.n_items=4")
GUESSES, RANKS = ("study=guess_table", "study.path=guesses.csv"), ("study=ranking_table", "study.path=ranks.csv")
TABLES = ("study=comparison_table", "study.pairs=pairs.csv", "study.answers=answers.csv", "study.generator=lm")
UNIFORM = ("experiment.back_offs=[uniform]", "experiment.vocab_size=1000")
COMMANDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("perplexity", "practice"), TINY[:5]),
    **{
        f"perplexity {vary}": (f"vary={vary}", *TINY[:5])
        for vary in ("rounding", "sample_size", "bootstrap", "token_classes")
    },
    "perplexity of a table": TABLES,
    "accuracy of a table": (*GUESSES, "experiment.min_answers=1", "experiment.posterior=false"),
    "bounds of a table": GUESSES,
    "bet_perplexity": ("experiment.posterior=false",),
    "bet_perplexity of a table": ("study=bet_table", "study.path=bets.csv", *UNIFORM, "experiment.posterior=false"),
    "bounds of ranks": RANKS,
    **dict.fromkeys(("tvd", "distributions", "improve"), CLOZE),
    "tvd of a table": ("study=cloze_table", "study.path=counts.csv"),
    "groups": (),
    "pool of a table": ("study=estimates", "study.path=estimates.csv"),
}
FITTED = ("human_loss", "calibration", "recovery", "recovery sbc", "perplexity extrapolation", "design", "collect")
"""Prepared and not run: they take minutes."""
COMMANDS |= dict.fromkeys(FITTED, ()) | {
    "recovery sbc": ("of=sbc",),
    "perplexity extrapolation": ("vary=extrapolation",),
}
PLAIN = """
-1 0 1.5 -0.0 1e20 1e-320 99999999999999999999 -9223372036854775809 nan -inf null 0x10 1_000 2026-11-23 true [] [[1]]
[null] [nan] [1,1] [-1,0] [a,b] {} {a:1} {1:{2:3}} '' two [1,two,3.5] [0.5,0.1] [1e308,1e308] é😀 a/../b nowhere.csv
${oc.env:HOME} ${seed} ${nothing} '${' all auto [all] 1:30 '\\x00' human [human]
"""
VALUES = (*PLAIN.split(), "' '", "'a b'", "x" * 300)
NUMBERS = ("0", "1", "2", "3", "7", "0.001", "0.1", "0.5", "0.9", "0.999", "1.0", "1.5", "100", "-1", "1e-300", "1e300")
LISTS = ("[1]", "[2,1]", "[1,2,3]", "[0.1,0.9]", "[0.9,0.1]", "[0,1]", "[human]", "[lm-weak,human]", "[a]", "[]")


def composed(arguments: tuple[str, ...]) -> Job:
    overrides = check_arguments(list(arguments))
    with initialize_config_module("shannon_game.conf", version_base="1.3"):
        return prepare(compose("config", overrides=overrides), overrides)


def fitting(annotation: Any) -> tuple[str, ...]:
    """Values of a type."""
    if get_origin(annotation) is Literal:
        return tuple(map(str, get_args(annotation)))
    text = str(annotation)
    return LISTS if "tuple" in text else NUMBERS if "int" in text or "float" in text else ("true", "false", *VALUES)


def leaves(cls: type[Settings], prefix: str) -> list[tuple[str, tuple[str, ...]]]:
    """Settings of a class and of those that it holds, as on the command line, and values of their type."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for name, field in cls.model_fields.items():
        path = (before(name, cls) if prefix == "experiment." else prefix) + name
        inner = field.annotation
        found.append((path, fitting(inner)))
        if isinstance(inner, type) and issubclass(inner, Settings):
            found += leaves(inner, f"{path}.")
    return found


@lru_cache
def settings_of(name: str) -> list[tuple[str, tuple[str, ...]]]:
    found = []
    with initialize_config_module("shannon_game.conf", version_base="1.3"):
        cfg = compose("config", overrides=[f"+exp={name.split(maxsplit=1)[0]}", *COMMANDS[name]])
        for what in ("experiment", "study"):
            cls = load_target(entry_of(cfg[what], what=what), what=what).settings_class
            found += leaves(cls, f"{what}.")
    # a posterior takes minutes
    return [
        (path, values) for path, values in found if not path.startswith(("experiment.posterior", "experiment.bayes"))
    ]


def outcome(name: str, rng: random.Random) -> tuple[str, str]:
    chosen = rng.sample(settings_of(name), rng.choice((1, 1, 2)))
    changes = [f"{path}={rng.choice(values if rng.random() < 0.6 else VALUES)}" for path, values in chosen]
    arguments = (f"+exp={name.split(maxsplit=1)[0]}", *COMMANDS[name], *changes)
    said = " ".join(arguments)[:300]
    try:
        with in_time(), warnings.catch_warnings(action="ignore"):
            job = composed(arguments)
            if name not in FITTED:
                job.run()
    except (InputError, HydraException, OmegaConfBaseException, MemoryError, OSError) as error:
        if type(error) is OSError and error.errno != errno.ENAMETOOLONG:
            return "wrong", f"{said}: {error}"
        line = one_line(error, ("experiment", "study", *SHARED))
        return ("refused", said) if line and line.isprintable() else ("wrong", f"{said}: no line: {line!r}")
    except BaseException as error:
        return "wrong", f"{said}: {type(error).__name__}: {str(error)[:200]}"
    plt.close("all")
    return "read", said


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_settings_by_chance(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed_offset: int) -> None:
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    found = [outcome(name, random.Random(crc32(f"{name} {at} {seed_offset}".encode()))) for at in range(20)]
    assert [said for what, said in found if what == "wrong"] == []


def files(folder: Path) -> None:
    for name, kind in KINDS.items():
        rows = PAIRS if name == "pairs" else kind.make(random.Random(0))
        (folder / f"{name}.csv").write_text(written(rows), encoding="utf-8")
