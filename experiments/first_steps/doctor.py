"""``shannon-game doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from shannon_game.experiments.first_steps import installed, machine
from shannon_game.inference.progress import counted

_CHECKS: tuple[tuple[str, Callable[[], Iterator[installed.Finding]]], ...] = (
    ("python and packages", installed.packages),
    ("extras", installed.extras),
    ("machine", machine.resources),
    ("caches", machine.caches),
    ("public data", machine.data),
)


@dataclass(frozen=True)
class Section:
    """Findings about one thing."""

    name: str
    findings: tuple[installed.Finding, ...]


def look(*, gpu: bool = True) -> tuple[Section, ...]:
    """Look at everything."""
    found = [Section(name, tuple(check())) for name, check in _CHECKS]
    if gpu:
        at = next(place for place, section in enumerate(found) if section.name == "machine")
        found[at] = Section("machine", (*found[at].findings, *machine.gpus()))
    return tuple(found)


def doctor(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game doctor [--json] [--no-gpu]``."""
    parser = argparse.ArgumentParser(prog="shannon-game doctor", description=__doc__.partition(": ")[2])
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--no-gpu", action="store_true", help="do not import torch to look for a GPU")
    given = parser.parse_args(list(arguments))
    sections = look(gpu=not given.no_gpu)
    problems = [finding for section in sections for finding in section.findings if finding.problem]
    if given.json:
        content = {"problems": len(problems), "sections": [asdict(section) for section in sections]}
        sys.stdout.write(json.dumps(content, indent=2) + "\n")
    else:
        sys.stdout.write(report(sections))
    return 1 if problems else 0


def report(sections: Sequence[Section]) -> str:
    """Lay the findings out as text, what is wrong and its cure first."""
    problems = [finding for section in sections for finding in section.findings if finding.problem]
    lines = [counted(len(problems), "problem")]
    for finding in problems:
        lines += [f"  {finding.name}: {finding.problem}", *([f"    -> {finding.cure}"] if finding.cure else [])]
    for section in sections:
        lines += ["", section.name]
        width = max((len(finding.name) for finding in section.findings), default=0)
        for finding in section.findings:
            cure = f"; {finding.cure}" if finding.cure and not finding.problem else ""
            mark = "!" if finding.problem else " "
            lines.append(f" {mark} {finding.name:<{width}}  {finding.value}{cure}")
    return "\n".join(lines) + "\n"
