"""What the machine has, what was kept on it, and whether the public data are there and whole."""

from __future__ import annotations

import csv
import hashlib
import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pooch

from shannon_game.experiments.first_steps.installed import Finding
from shannon_game.experiments.studies.public_data import VARIABLE
from shannon_game.inference.progress import counted

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
    for name, folder in (("disk, outputs here", Path.cwd()), ("disk, caches", _existing(_cache()))):
        free = shutil.disk_usage(folder).free / _GB
        little = f"{free:.1f} GB free is little" if free < _LEAST_DISK_GB else ""
        closed = "" if os.access(folder, os.W_OK) else f"nothing can be written to {folder}"
        cure = "make room" if little else "run where files can be written" if closed else ""
        yield Finding(name, f"{free:.1f} GB free ({folder})", little or closed, cure)


def gpus() -> Iterator[Finding]:
    """Look for a GPU, with torch alone: nothing else here uses one."""
    if find_spec("torch") is None:
        yield Finding("GPU", "not looked for: torch, which would use it, is not installed (extra lm)")
        return
    try:
        torch = _torch()
    except Exception as problem:
        # a torch that does not fit the system may raise anything
        said = f"torch cannot be imported: {type(problem).__name__}: {problem}"
        yield Finding("GPU", "unknown", said, "install torch again, the CPU build where there is no GPU")
        return
    names = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    if getattr(torch.backends, "mps", None) is not None and torch.backends.mps.is_available():
        names.append("Apple GPU (mps)")
    yield Finding(
        "GPU", ", ".join(names) or f"none that torch {torch.__version__} can use; models run on the processor"
    )


def _torch() -> Any:
    import torch  # noqa: PLC0415 - seconds, and gigabytes that most have not installed

    return torch


def caches() -> Iterator[Finding]:
    """Say where files are kept between runs, and how much they take."""
    ours = _cache()
    for name, folder in (
        ("parsed data and downloads", ours),
        ("results of language models", ours / "store"),
        ("converted models", ours / "models"),
        ("compiled programs", Path.home() / ".pytensor"),
        ("downloaded models", Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")),
    ):
        n_files, n_bytes = _size(folder, but=(ours / "store", ours / "models") if folder == ours else ())
        said = f"{n_bytes / 1e6:,.1f} MB in {counted(n_files, 'file')}" if n_files else "none"
        yield Finding(name, f"{said} ({folder})")


def data_folder() -> Path | None:
    """Folder of the public studies: ``$SHANNON_DATA``, else ``shared/data`` beside a clone, where there is one."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().resolve()
    # an installed copy lies among packages, beside which nobody puts data
    clone = Path(__file__).parents[2]
    beside = (clone / ".." / "shared" / "data").resolve()
    return beside if (clone / "pyproject.toml").is_file() and beside.is_dir() else None


def data() -> Iterator[Finding]:
    """Look whether the public studies' files are there, each with the hash that it should have."""
    above = data_folder()
    names = ", ".join(_STUDIES)
    cure = f"export SHANNON_DATA=FOLDER, the folder that holds {names}"
    if above is None:
        yield Finding("folder", "SHANNON_DATA is not set", cure=cure)
    else:
        gone = "" if above.is_dir() else "there is no such folder"
        said = VARIABLE if os.environ.get(VARIABLE) else f"beside the project; {VARIABLE} names it for every command"
        yield Finding("folder", f"{above} ({said})", gone, gone and cure)
    for name, where in _STUDIES.items():
        if above is None or not (folder := above / name).is_dir():
            yield Finding(name, "not there" if above is None else f"not there: no folder {above / name}", cure=where)
            continue
        use = f"study={name}" if os.environ.get(VARIABLE) else f"study={name} study.root={folder}"
        wanted = dict(_manifest() if name == "lm_game" else _sums(folder))
        if not wanted:
            yield Finding(name, f"at {folder}, without SHA256SUMS: not checked ({use})")
            continue
        missing = [file for file in wanted if not (folder / file).is_file()]
        others = [file for file, digest in wanted.items() if file not in missing and _hash(folder / file) != digest]
        problem = "; ".join(
            f"{len(files)} of {len(wanted)} files {what}, such as {files[0]}"
            for what, files in (("missing", missing), ("with another content", others))
            if files
        )
        said = f"{len(wanted) - len(missing) - len(others)} files as published ({use})"
        yield Finding(name, said, problem, problem and "get the data again")


def _cache() -> Path:
    return Path(pooch.os_cache("shannon-game"))


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


def _size(folder: Path, but: tuple[Path, ...] = ()) -> tuple[int, int]:
    """Files below a folder and their bytes."""
    n_files = n_bytes = 0
    for root, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if Path(root, each) not in but]
        for file in files:
            try:
                n_bytes += Path(root, file).lstat().st_size
            except OSError:
                # a run that goes on has taken it away
                continue
            n_files += 1
    return n_files, n_bytes


def _manifest() -> Iterator[tuple[str, str]]:
    with _MANIFEST.open(encoding="utf-8", newline="") as file:
        yield from ((row["name"], row["sha256"]) for row in csv.DictReader(file))


def _sums(folder: Path) -> Iterator[tuple[str, str]]:
    """Read what ``sha256sum`` writes."""
    path = folder / "SHA256SUMS"
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        digest, _, name = line.partition("  ")
        yield name.removeprefix("./"), digest


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
