"""``shannon-game doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import chain

from shannon_game.experiments.first_steps import installed, machine
from shannon_game.experiments.first_steps.installed import Finding
from shannon_game.inference.progress import counted

Sections = Mapping[str, Sequence[Finding]]


def look(*, gpu: bool = True) -> Sections:
    """Look at everything."""
    return {
        "python and packages": list(installed.packages()),
        "extras": list(installed.extras()),
        "machine": [*machine.resources(), *(machine.gpus() if gpu else ())],
        "caches": list(machine.caches()),
        "public data": list(machine.data()),
    }


def doctor(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game doctor [--no-gpu]``."""
    parser = argparse.ArgumentParser(prog="shannon-game doctor", description=__doc__.partition(": ")[2])
    parser.add_argument("--no-gpu", action="store_true", help="do not import torch to look for a GPU")
    sections = look(gpu=not parser.parse_args(list(arguments)).no_gpu)
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
