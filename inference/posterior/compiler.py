"""How models become functions: C where there is a compiler, and Numba where there is none.

A model of the comparison game is some hundred modules of C, each of which read the same 50,000 lines of headers again,
a third of the compiler's time. They are read once: g++ takes what ``NAME.h.gch`` holds where it was made with the same
flags, and else reads ``NAME.h``, with equal results.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.configdefaults import config
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.c.cmodule import GCC_compiler, std_include_dirs
from pytensor.link.vm import VMLinker

_OF_EVERY_MODULE = "-O3", "-fno-math-errno"
"""What PyTensor says before the flags that follow, of which the last one counts."""
_FLAGS = "-O2 -g0"
"""Besides the headers, they save a quarter of the compiler's time; functions are as fast within 3%."""
_HEADERS = """\
#include <Python.h>
#include "pytensor_mod_helper.h"
#include <math.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>
#include <numpy/npy_math.h>
#include <algorithm>
#include <iostream>
#include <vector>
"""


class _QuickC(VMLinker):
    """PyTensor's own, with flags and headers that save half of the compiler's time."""

    def make_all(self, *given: Any, **named: Any) -> Any:
        """Compile what the cache does not hold."""
        flags = config.gcc__cxxflags  # PyMC has its own, and a user may say how much to optimise
        flags = flags if "-O" in flags else f"{flags} {_FLAGS}"
        with config.change_flags(gcc__cxxflags=f"{flags} {_headers(flags)}"):
            return super().make_all(*given, **named)  # type: ignore[no-untyped-call]


@cache
def _headers(flags: str) -> str:
    """A flag with which modules take headers that were read once; empty where that cannot be."""
    folder = Path(config.compiledir)
    # other compilers refuse headers of other flags, where g++ reads them anew
    is_gcc = re.fullmatch(r"(.*-)?g\+\+(-\d+)?", Path(config.cxx).name)
    if is_gcc is None or sys.platform != "linux" or " " in str(folder):
        return ""
    with config.change_flags(gcc__cxxflags=flags):
        theirs = GCC_compiler.compile_args()  # type: ignore[no-untyped-call]
    places = (f"-I{place}" for place in std_include_dirs())  # type: ignore[no-untyped-call]
    command = [config.cxx, "-g", *_OF_EVERY_MODULE, *theirs, "-fvisibility=hidden", *places]
    made_of = [*command, _HEADERS, np.__version__, pytensor.__version__]
    header = folder / f"headers_{hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]}.h"
    read = header.with_suffix(".h.gch")
    try:
        if not read.exists():
            # elsewhere first: other processes may compile in this folder
            with tempfile.TemporaryDirectory(dir=folder, prefix="headers_") as place:
                source, made = Path(place, header.name), Path(place, read.name)
                source.write_text(_HEADERS)
                subprocess.run(
                    [*command, "-x", "c++-header", str(source), "-o", str(made)], check=True, capture_output=True
                )
                source.replace(header)
                made.replace(read)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"-include {header}"


def _quick() -> Mode:
    if config.cxx:
        linker: VMLinker = _QuickC(use_cloop=True)  # type: ignore[no-untyped-call]
        return Mode(linker, RewriteDatabaseQuery(include=["minimum_compile", "merge"]))
    # Python's own operations would take seven times as long, and those of over 31 parts end in an error
    return Mode("numba", RewriteDatabaseQuery(include=["minimum_compile", "merge", "canonicalize", "fusion"]))


QUICK = _quick()
"""Compiles in a quarter of the time of PyTensor's own mode, to functions that are about as fast here.

Without a C++ compiler it is Numba, which takes a minute or two for a model in every process.
"""
