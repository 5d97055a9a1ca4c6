"""Write a comparison study as the plain tables that ``study=comparison_table`` reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from estimators.comparison import response_positions, validate_comparison_study
from estimators.errors import InputError
from estimators.layout import item_labels
from experiments.studies.comparison.table import CANDIDATE, TARGET

__all__ = ["write_comparison_tables"]


def write_comparison_tables(study: xr.Dataset, pairs: Path | str, answers: Path | str | None = None) -> None:
    """Write a comparison study as two tables: what to ask people, and what they answered.

    :func:`~experiments.studies.comparison.table.comparison_table` reads them.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study, such as ``study.nc`` of ``+exp=build_study``. Which of its items are reference items is not
        written.
    pairs : Path or str
        One row an item and candidate; ends in ``.csv``.
    answers : Path or str, optional
        One row a response; ends in ``.csv``.

    Raises
    ------
    InputError
        If the study is not valid, a name does not end in ``.csv``, or a string of the study cannot stand in a text file
        (a null character, half of a surrogate pair); names it.
    """
    validate_comparison_study(study)
    n_items, n_candidates = study.sizes["item"], study.sizes["candidate"]
    of = np.repeat(np.arange(n_items), n_candidates)
    asked = pd.DataFrame(
        {
            "item": item_labels(study)[of],
            "draw": np.tile(np.arange(n_candidates), n_items),
            "context": study["context"].to_numpy()[of],
            "target": study["target_token"].to_numpy()[of],
            "candidate": study["candidate_token"].to_numpy().ravel(),
        }
    )
    for m, model in enumerate(study["model"].to_numpy().tolist()):
        asked[TARGET + model] = study["target_logprob"].to_numpy()[m][of]
        asked[CANDIDATE + model] = study["candidate_logprob"].to_numpy()[m].ravel()
    _write(asked, Path(pairs))
    if answers is not None:
        given = {
            "participant": "participant",
            "draw": "response_candidate",
            "report": "report",
        }
        columns = {name: study[variable].to_numpy() for name, variable in given.items()}
        columns["item"] = item_labels(study)[response_positions(study)]
        _write(pd.DataFrame(columns)[["participant", "item", "draw", "report"]], Path(answers))


def _write(table: pd.DataFrame, path: Path) -> None:
    if path.suffix != ".csv":
        raise InputError(f"is {str(path)!r}, should be a name ending in .csv", field="path")
    for name in table.select_dtypes(exclude="number"):
        for text in dict.fromkeys(table[name].tolist()):
            if "\0" in text or text.encode("utf-8", "replace").decode("utf-8") != text:
                raise InputError(f"is {text!r}, which a text file cannot hold; leave the item out", field=name)
    table.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
