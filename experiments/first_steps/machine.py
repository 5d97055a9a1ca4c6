"""What the machine has, what was kept on it, and whether the public data are there and whole."""

from __future__ import annotations

import csv
import os
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from shannon_game.estimators.content import file_sha256
from shannon_game.experiments.harness.findings import Finding
from shannon_game.experiments.studies.public_data import VARIABLE
from shannon_game.inference.disk import cache_folder

_GB = 1e9
_LEAST_DISK_GB = 1.0
_LEAST_MEMORY_GB = 2.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_MANIFEST = Path(__file__).parents[1] / "studies" / "lm_game_manifest.csv"
_STUDIES = {
    "lm_game": "study=lm_game downloads it",
    "provo": 'get the public repository of "Predict the Next Word"',
    "rank_perplexity": "study=rank_perplexity downloads it",
}
"""Folder of a study -> how to get it."""


def resources() -> Iterator[Finding]:
    """Look at processors, memory and disk."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = ", ".join(f"{name}={os.environ[name]}" for name in _THREADS if name in os.environ)
    yield Finding("processors", f"{usable} usable" + (f" ({limits})" if limits else ""))
    memory = _memory_gb()
    if memory is not None:
        little = f"{memory:.1f} GB is little" if memory < _LEAST_MEMORY_GB else ""
        cure = "posteriors and language models may stop for want of memory; close programs or use a larger machine"
        yield Finding("memory", f"{memory:.1f} GB free", little, little and cure)
    for name, folder in (("disk, outputs here", Path.cwd()), ("disk, caches", _existing(cache_folder()))):
        free = shutil.disk_usage(folder).free / _GB
        little = f"{free:.1f} GB free is little" if free < _LEAST_DISK_GB else ""
        closed = "" if os.access(folder, os.W_OK) else f"nothing can be written to {folder}"
        cure = "make room" if little else "run where files can be written" if closed else ""
        yield Finding(name, f"{free:.1f} GB free ({folder})", little or closed, cure)
    compiler = shutil.which("clang++" if sys.platform == "darwin" else "g++")
    none = "none: human_loss compiles for minutes in every run"
    yield Finding("C++ compiler", compiler or none, cure="" if compiler else "install g++ (of conda: gxx)")


def gpus() -> Iterator[Finding]:
    """Look for a GPU, with torch alone: nothing else here uses one."""
    if find_spec("torch") is None:
        yield Finding("GPU", "not looked for: torch, which would use it, is not installed (extra lm)")
        return
    try:
        torch = import_module("torch")
    except Exception as problem:
        # a torch that does not fit the system may raise anything
        said = f"torch cannot be imported: {type(problem).__name__}: {problem}"
        yield Finding("GPU", "unknown", said, "install torch again, the CPU build where there is no GPU")
        return
    names = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    if getattr(torch.backends, "mps", None) is not None and torch.backends.mps.is_available():
        names.append("Apple GPU (mps)")
    none = f"none that torch {torch.__version__} can use; models run on the processor"
    yield Finding("GPU", ", ".join(names) or none)


def caches() -> Iterator[Finding]:
    """Say where files are kept between runs."""
    ours = cache_folder()
    for name, folder in (
        ("parsed data and downloads", ours),
        ("results of language models", ours / "store"),
        ("converted models", ours / "models"),
        ("compiled programs", Path.home() / ".pytensor"),
        ("downloaded models", Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")),
    ):
        yield Finding(name, str(folder) if folder.exists() else f"none ({folder})")


def data() -> Iterator[Finding]:
    """Look whether the public studies' files are there, each with the hash that it should have."""
    names = ", ".join(_STUDIES)
    cure = f"export SHANNON_DATA=FOLDER, the folder that holds {names}"
    above = Path(os.environ.get(VARIABLE) or "").expanduser().resolve()
    is_set = bool(os.environ.get(VARIABLE))
    gone = f"{VARIABLE} is {above}, and there is no such folder" if is_set and not above.is_dir() else ""
    yield Finding(
        "folder", str(above) if is_set else f"{VARIABLE} is not set", gone, "" if is_set and not gone else cure
    )
    for name, where in _STUDIES.items():
        folder = above / name
        if not is_set or not folder.is_dir():
            yield Finding(name, f"not there: no folder {folder}" if is_set else "not there", cure=where)
            continue
        wanted = dict(_manifest() if name == "lm_game" else _sums(folder))
        if not wanted:
            yield Finding(name, f"at {folder}, without SHA256SUMS: not checked")
            continue
        missing = [file for file in wanted if not (folder / file).is_file()]
        others = [
            file for file, digest in wanted.items() if file not in missing and file_sha256(folder / file) != digest
        ]
        problem = "; ".join(
            f"{len(files)} of {len(wanted)} files {what}, such as {files[0]}"
            for what, files in (("missing", missing), ("with another content", others))
            if files
        )
        said = f"{len(wanted) - len(missing) - len(others)} files as published"
        yield Finding(name, said, problem, problem and "get the data again")


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _memory_gb() -> float | None:
    """Memory that a new program can take; None where the system does not say it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 / _GB for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None


def _manifest() -> Iterator[tuple[str, str]]:
    with _MANIFEST.open(encoding="utf-8", newline="") as file:
        yield from ((row["name"], row["sha256"]) for row in csv.DictReader(file))


def _sums(folder: Path) -> Iterator[tuple[str, str]]:
    """Read what ``sha256sum`` writes."""
    path = folder / "SHA256SUMS"
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        digest, _, name = line.partition("  ")
        yield name.removeprefix("./"), digest
