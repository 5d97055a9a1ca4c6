"""Commands for tests, each in a process of its own: a fork of this one, as to start Python is half of a short run."""

from __future__ import annotations

import json
import os
import runpy
import sys

# what most commands import
import xarray  # noqa: F401

import shannon_game.experiments.comparison.perplexity
import shannon_game.experiments.run
import shannon_game.experiments.studies.comparison.simulated  # noqa: F401

for line in sys.stdin:
    asked = json.loads(line)
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()

os.environ.clear()
os.environ.update(asked["environment"])
os.chdir(asked["folder"])
for stream, path in enumerate((os.devnull, asked["stdout"], asked["stderr"])):
    os.dup2(os.open(path, os.O_RDWR), stream)
sys.path[0] = asked["folder"]
sys.argv[1:] = asked["arguments"]
exec(asked["patch"])
runpy.run_module("experiments.run", run_name="__main__", alter_sys=True)
