"""The sweep of the command in Python: an experiment under every combination of settings, as one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from hydra import compose, initialize_config_module
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.messages import in_yaml
from shannon_game.estimators.schema import is_dataset
from shannon_game.experiments.harness.command_line import models_by_path, one_line, search_path
from shannon_game.experiments.harness.job import SHARED, prepare
from shannon_game.experiments.harness.registry import installed_configs
from shannon_game.experiments.harness.sweep import SweptJob, expanded, settings_of, summary_table, swept_settings

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def sweep(
    experiment: str, study: xr.Dataset | str | list[str] | None = None, *, n_jobs: int = 1, **settings: Any
) -> pd.DataFrame:
    """Run an experiment under every combination of some settings, as the command does with ``-m``.

    Parameters
    ----------
    experiment : str
        Its name, as in ``+exp=perplexity``.
    study : Dataset, str or list of str
        A study, or the name of a loader; default that of the experiment.
    n_jobs : int
        Processes that share the jobs (joblib).
    **settings
        By their names on the command line, such as ``n`` or ``**{"study.path": "texts"}``. A list is swept, a tuple is
        one value.

    Returns
    -------
    DataFrame
        Rows of every job's ``table.csv``, after ``job`` and a column ``sweep.SETTING`` for each swept setting: the
        command's ``summary.csv`` without ``status`` and ``error``.

    Raises
    ------
    InputError
        If a setting or the study is wrong; the first job that fails ends the sweep.

    Examples
    --------
    >>> import shannon_game as sg
    >>> study = sg.simulated(n_items=12, n_reference_items=30, vocab_size=300, n_candidates=40, n_participants=8)
    >>> table = sg.sweep("perplexity", study, n=[2, 4], rounding=["none", "coarse"], players=("lm-weak",))
    >>> table.drop_duplicates(["sweep.n", "rounding"])[["sweep.n", "rounding", "perplexity"]].round(1)
       sweep.n rounding  perplexity
    0        2     none        18.7
    2        2   coarse        12.1
    3        4     none        23.6
    5        4   coarse        16.4
    """
    import pandas as pd  # noqa: PLC0415 - the command needs none for its help

    data: Any = study if is_dataset(study) else None
    given = {**({} if data is not None or study is None else {"study": study}), **settings}
    texts = [f"{name}={','.join(map(in_yaml, its if isinstance(its, list) else [its]))}" for name, its in given.items()]
    with _in_one_line():
        jobs = expanded(models_by_path([f"+exp={experiment}", *texts]))
    if n_jobs == 1:
        tables = [_table(job, data) for job in jobs]
    else:
        require_packages(("joblib",), "bayes", source="sweep")
        from joblib import Parallel, delayed  # noqa: PLC0415 - an extra has it

        tables = Parallel(n_jobs=n_jobs)(delayed(_table)(job, data) for job in jobs)
    done = [
        SweptJob(at, "ok", settings_of(job), "", its) for at, (job, its) in enumerate(zip(jobs, tables, strict=True))
    ]
    made = summary_table(done).drop(columns=["status", "error"])
    for name in ["job", *(f"sweep.{name}" for name in swept_settings(done))]:
        with suppress(ValueError, TypeError):
            made[name] = pd.to_numeric(made[name])
    return made.infer_objects()


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(one_line(error, ("experiment", "study", *SHARED)), source="sweep") from error


def _table(overrides: Sequence[str], study: xr.Dataset | None) -> pd.DataFrame:
    with _in_one_line(), initialize_config_module("shannon_game.conf", version_base="1.3"):
        cfg = compose("config", overrides=[*overrides, *search_path([], installed_configs())])
        return prepare(cfg, overrides, study=study).run().table
