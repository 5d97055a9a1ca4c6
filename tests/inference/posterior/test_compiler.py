"""What compiles models: its headers are read once, and taken."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import numpy as np
import pymc
import pytensor
import pytensor.tensor as pt
from pytensor.link.c import cutils, cvm
from shannon_game.inference.posterior.compiler import QUICK
pytensor.config.gcc__cxxflags += " -Winvalid-pch -Werror=invalid-pch"
x = pt.dvector("x")
print(pytensor.function([x], pt.exp(x).sum(), mode=QUICK)(np.log([1.0, 2.0, 4.0])))
"""


@pytest.mark.subprocess
@pytest.mark.mcmc
@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++, which alone takes headers that were read once")
@pytest.mark.parametrize("flags", ["", "gcc__cxxflags=-O0 -g0,"], ids=["ours", "a user's"])
def test_modules_take_headers_that_were_read_once(tmp_path: Path, flags: str) -> None:
    environment = os.environ | {"PYTENSOR_FLAGS": f"{flags}base_compiledir={tmp_path}"}

    def compiled() -> set[Path]:
        # headers that were made with other flags, or are not there, end in an error of the compiler
        done = subprocess.run(
            [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) == pytest.approx(7)
        return {*tmp_path.glob("*/*.h.gch")}

    first = compiled()
    assert len(first) == 1
    assert compiled() == first
