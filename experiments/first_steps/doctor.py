"""``shannon-game doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

from shannon_game.experiments.first_steps import machine
from shannon_game.experiments.harness.findings import Finding
from shannon_game.inference.progress import counted

_OURS = "shannon-game"
_OLDEST = (3, 11)

PURPOSES = {
    "bayes": "posteriors: human_loss, ard, accuracy, calibration, ...",
    "data": "stored answers: Parquet, workbooks, baselines (tvd, ard, ranks, ...)",
    "lm": "language models on this machine: surprisal, build_study, tvd model=[...], corpus_sample, ...",
    "words": "words of languages without spaces, and lemmas: word rules of cloze studies",
    "api": "language models behind an endpoint: model=api",
    "collect": "games in a browser: collect",
    "samplers": "sampler=numpyro, sampler=blackjax",
    "sweeps": "sweeps on several cores, a Slurm cluster, a Ray cluster: hydra/launcher=joblib, submitit_slurm, ray",
}
"""Extra that a user may want -> what it is for."""


Sections = Mapping[str, Sequence[Finding]]


def look(*, gpu: bool = True) -> Sections:
    """Look at everything."""
    return {
        "python and packages": list(packages()),
        "extras": list(extras()),
        "machine": [*machine.resources(), *(machine.gpus() if gpu else ())],
        "caches": list(machine.caches()),
        "public data": list(machine.data()),
    }


def doctor(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game doctor [--no-gpu]``, or ``shannon-game doctor plan.yaml`` before a study is launched."""
    parser = argparse.ArgumentParser(prog="shannon-game doctor", description=__doc__.partition(": ")[2])
    parser.add_argument("--no-gpu", action="store_true", help="do not import torch to look for a GPU")
    parser.add_argument("plan", nargs="?", type=Path, help="plan of a study: what is missing before its launch")
    given = parser.parse_args(list(arguments))
    if given.plan is None:
        sections = look(gpu=not given.no_gpu)
    else:
        from shannon_game.experiments.collect.checklist import study_findings  # noqa: PLC0415 - the extra collect

        sections = {f"study of {given.plan}": list(study_findings(given.plan))}
    sys.stdout.write(report(sections))
    return int(any(finding.problem for finding in chain(*sections.values())))


def report(sections: Sections) -> str:
    """Lay the findings out as text, what is wrong and its cure first."""
    problems = [finding for finding in chain(*sections.values()) if finding.problem]
    lines = [counted(len(problems), "problem")]
    for finding in problems:
        lines += [f"  {finding.name}: {finding.problem}", *([f"    -> {finding.cure}"] if finding.cure else [])]
    for section, findings in sections.items():
        lines += ["", section]
        width = max((len(finding.name) for finding in findings), default=0)
        for finding in findings:
            cure = f"; {finding.cure}" if finding.cure and not finding.problem else ""
            lines.append(f" {'!' if finding.problem else ' '} {finding.name:<{width}}  {finding.value}{cure}")
    return "\n".join(lines) + "\n"


def packages() -> Iterator[Finding]:
    """Look at Python, this project and the packages that every run needs."""
    running = platform.python_version()
    old = "" if sys.version_info >= _OLDEST else f"{running} is too old"
    yield Finding("Python", f"{running} ({sys.executable})", old, old and "install Python 3.11 or newer")
    needed = _requirements()
    if needed is None:
        problem = "is not installed, only its folder is here; versions and extras are not known"
        yield Finding(_OURS, "not installed", problem, _install(""))
        return
    place = Path(str(distribution(_OURS).locate_file("")))
    yield Finding(_OURS, f"{version(_OURS)} (metadata in {place})")
    yield from (_checked(each, cure=_install("")) for each in needed if each.marker is None or each.marker.evaluate())


def extras() -> Iterator[Finding]:
    """Look at every extra: complete, absent, or with a version that does not fit."""
    needed = _requirements()
    for extra, purpose in PURPOSES.items():
        of_extra = list(_of_extra(needed or [], extra))
        if not of_extra:
            continue
        found = [_checked(each, cure=_install(extra)) for each in of_extra]
        missing = [each.name for each in found if each.value == _ABSENT]
        wrong = [each for each in found if each.problem and each.value != _ABSENT]
        if wrong:
            yield Finding(extra, purpose, "; ".join(f"{each.name} {each.problem}" for each in wrong), _install(extra))
        elif missing:
            names = ", ".join(missing)
            state = f"{_ABSENT} ({names})" if len(missing) == len(found) else f"installed but for {names}"
            yield Finding(extra, f"{state}: {purpose}", cure=_install(extra))
        else:
            yield Finding(extra, f"installed: {purpose}")


_ABSENT = "not installed"


def _requirements() -> list[Requirement] | None:
    try:
        return [Requirement(text) for text in requires(_OURS) or []]
    except PackageNotFoundError:
        return None


def _of_extra(needed: list[Requirement], extra: str) -> Iterator[Requirement]:
    """Requirements of an extra, those of the extras that it names among them."""
    for each in needed:
        if (
            each.marker is not None
            and each.marker.evaluate({"extra": extra})
            and not each.marker.evaluate({"extra": ""})
        ):
            if each.name == _OURS:
                for other in each.extras:
                    yield from _of_extra(needed, other)
            else:
                yield each


def _checked(needed: Requirement, *, cure: str) -> Finding:
    try:
        found = version(needed.name)
    except PackageNotFoundError:
        return Finding(needed.name, _ABSENT, "is not installed", cure)
    if needed.specifier.contains(found, prereleases=True):
        return Finding(needed.name, found)
    return Finding(needed.name, found, f"is {found}, should be {needed.specifier}", cure)


def _install(extra: str) -> str:
    pins = "constraints.txt" if sys.version_info < (3, 12) else "constraints-3.12.txt"
    return f"in the project's folder: pip install -c {pins} " + (f"'.[{extra}]'" if extra else ".")
