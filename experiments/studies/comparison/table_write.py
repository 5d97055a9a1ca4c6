"""Write a comparison study as the plain tables that ``study=comparison_table`` reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.comparison.study_sources import candidate_sources
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels, item_positions, response_positions
from shannon_game.experiments.harness.csv_tables import write_csv
from shannon_game.experiments.studies.comparison.table_columns import CANDIDATE, TARGET

# columns that say where candidates come from -> their variables
_OPTIONAL = {
    **{name: name for name in ("proposal_logprob", "inclusion_logprob")},
    **{name: f"candidate_{name}" for name in ("source", "batch")},
}


def write_comparison_tables(
    study: xr.Dataset,
    pairs: Path | str,
    answers: Path | str | None = None,
    *,
    free_answers: Path | str | None = None,
    distributions: Path | str | None = None,
) -> None:
    """Write a comparison study as tables: what to ask people, what they answered, the generator's distributions.

    :func:`~shannon_game.experiments.studies.comparison.table.comparison_table` reads them.
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
    for name, variable in _OPTIONAL.items():
        if variable in study:
            asked[name] = study[variable].to_numpy().ravel()
    asked = asked[np.ravel(candidate_sources(study) != "padding")]
    _write(asked, Path(pairs))
    if answers is not None:
        columns = {
            "participant": study["participant"].to_numpy(),
            "item": item_labels(study)[response_positions(study)],
            "draw": study["response_candidate"].to_numpy(),
            "report": study["report"].to_numpy(),
        }
        if "response_reference" in study:
            reference = study["response_reference"].to_numpy()
            columns["reference"] = np.where(reference < 0, "", reference.astype(str)).astype(object)
        _write(pd.DataFrame(columns), Path(answers))
    if free_answers is not None:
        _write(_free_answers(study), Path(free_answers))
    if distributions is not None:
        if "reference_logprob" not in study:
            raise InputError(
                "is missing: the study holds no whole distribution", source="study", field="reference_logprob"
            )
        whole = study["reference_logprob"].transpose("item", "token").to_numpy()
        item, token = np.nonzero(np.isfinite(whole))
        columns = {"item": item_labels(study)[item], "token": study["token"].to_numpy()[token]}
        _write(pd.DataFrame(columns | {"logprob": whole[item, token]}), Path(distributions))


def _free_answers(study: xr.Dataset) -> pd.DataFrame:
    if "answer" not in study.dims:
        raise InputError("has no free answers to write", source="study", field="answer")
    position, given = item_positions(study, "answer_item"), study["answer_candidate"].to_numpy()
    token = study["candidate_token"].to_numpy()[position, np.maximum(given, 0)]
    table = pd.DataFrame(
        {
            "item": item_labels(study)[position],
            "participant": study["answer_participant"].to_numpy(),
            "answer": np.where(given == -1, study["target_token"].to_numpy()[position], token),
            "batch": study["answer_batch"].to_numpy(),
        }
    )
    return table[given > -2]


def _write(table: pd.DataFrame, path: Path) -> None:
    if path.suffix != ".csv":
        raise InputError(f"is {str(path)!r}, should be a name ending in .csv", field="path")
    for name in table.select_dtypes(exclude="number"):
        for text in dict.fromkeys(table[name].tolist()):
            if "\0" in text or text.encode("utf-8", "replace").decode("utf-8") != text:
                raise InputError(f"is {text!r}, which a text file cannot hold; leave the item out", field=name)
    write_csv(table, path, marked=True)
