"""A machine without a C++ compiler, as a container of Python alone is: posteriors need none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CODE = """
import json
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from shannon_game.inference.posterior.gaussian import Program
with pm.Model() as model:
    x = pm.Flat("x", shape=33)
    pm.Potential("terms", pt.add(*[(at + 1) * pt.exp(x[at]) for at in range(33)]))
program = Program(model)
value, slope = program.logp(np.log(np.arange(1.0, 34.0)))
print(json.dumps([float(value), [float(each) for each in slope]]))
"""


@pytest.mark.subprocess
@pytest.mark.mcmc
def test_a_density_of_many_terms_needs_no_compiler(tmp_path: Path) -> None:
    without = os.environ | {"PYTENSOR_FLAGS": f"cxx=,base_compiledir={tmp_path}"}
    done = subprocess.run([sys.executable, "-c", CODE], env=without, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    value, slope = json.loads(done.stdout)
    assert value == pytest.approx(33 * 34 * 67 / 6)
    np.testing.assert_allclose(slope, np.arange(1, 34) ** 2)
