"""Experiments made of many independent fits: where those are stored, how many run at a time, and their progress."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from estimators.errors import InputError
from experiments.harness.settings import whole_numbers

__all__ = ["n_jobs", "progress_bar", "replicates_path"]

_REPLICATES = "replicates.jsonl"


def n_jobs(cfg: DictConfig) -> int:
    """Processes at a time, ``experiment.n_jobs``."""
    found = whole_numbers(cfg, "n_jobs")
    if len(found) > 1:
        raise InputError(f"is {found}, should be one whole number", field="experiment.n_jobs")
    return found[0]


def replicates_path(cfg: DictConfig) -> Path:
    """File of ``experiment.replicates``; by default a new one in the output folder."""
    if cfg.experiment.replicates is not None:
        return Path(str(cfg.experiment.replicates)).expanduser()
    if not HydraConfig.initialized():
        raise InputError("is null, and there is no output folder; name a file", field="experiment.replicates")
    return Path(HydraConfig.get().runtime.output_dir) / _REPLICATES


def progress_bar(what: str) -> Callable[[int, int], None]:
    """Progress on stderr, counting `what`."""
    from tqdm import tqdm  # noqa: PLC0415

    bar: Any = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = tqdm(total=total, initial=done, desc=what, mininterval=1)
        bar.update(done - bar.n)
        if done == total:
            bar.close()

    return show
