"""A comparison study in one netCDF file: ``study.nc`` of ``+exp=build_study``, or one that another program wrote.

And what log-probabilities and answers of a comparison study cannot be, whoever wrote them down.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels, response_positions
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.parsing import Note, shown
from shannon_game.experiments.studies.study_file import StudyFileSettings, read_valid_study, write_study

_KIND = "comparison"


def save_comparison_study(study: xr.Dataset, path: Path | str) -> Path:
    """Write a comparison study as netCDF, in one step."""
    return write_study(validate_comparison_study(study), path, kind=_KIND)


@loader(StudyFileSettings)
def comparison_file(settings: StudyFileSettings) -> xr.Dataset:
    """Load a comparison study from a netCDF file.

    ``attrs["name"]`` is the study's own name, or the file's where it has none.

    Examples
    --------
    >>> from shannon_game import comparison_file, simulated
    >>> from shannon_game.experiments.studies.comparison.file import save_comparison_study
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> study = simulated(n_items=5, n_reference_items=10, vocab_size=100, n_candidates=4)
    >>> with TemporaryDirectory() as folder:
    ...     comparison_file(path=save_comparison_study(study, Path(folder) / "study.nc")).sizes["item"]
    10
    """
    return read_valid_study(settings.path, _KIND, _checked)


def _checked(study: xr.Dataset) -> xr.Dataset:
    if "item_name" in study and "item_id" not in study:
        # what files of earlier versions call it
        study = study.rename(item_name="item_id")
    return check_contradictions(validate_comparison_study(study), None)


# half-precision passes in other batches, and two printed digits, differ by less
_SLACK_NATS = 0.05
_SLACK = 0.01
# half of a character: many tokens are this string
_MANY = "\ufffd"


def check_contradictions(study: xr.Dataset, source: object) -> xr.Dataset:
    """Refuse a valid comparison study that cannot be, and return it unchanged otherwise."""
    candidate = study["candidate_token"].to_numpy()
    same = candidate == study["target_token"].to_numpy()[:, None]
    names = item_labels(study)
    for model in study["model"].to_numpy().tolist():
        its = study.sel(model=model)
        total = np.exp(its["target_logprob"].to_numpy()[:, None]) + np.exp(its["candidate_logprob"].to_numpy())
        bad = ~same & (total > 1 + _SLACK)
        if bad.any():
            item, draw = map(int, np.argwhere(bad)[0])
            raise InputError(
                f"item {names[item]}: candidate {shown(candidate[item, draw])} and the target "
                f"have the probability {total[item, draw]:.4g} together ({int(bad.sum())} such); it should be ln p",
                source=source,
                field=f"log-probabilities of {model}",
            )
    wrong = study["automatic"].to_numpy() & ~same[response_positions(study), study["response_candidate"].to_numpy()]
    if wrong.any():
        row, number = int(np.flatnonzero(wrong)[0]), int(wrong.sum())
        problem = f"is true at response {row} ({number} such), whose two strings differ; it is for equal strings"
        raise InputError(problem, source=source, field="automatic")
    return study


def string_contradictions(study: xr.Dataset) -> list[Note]:
    """Count candidates whose string has other log-probabilities in the same context, of a candidate or the target.

    Different tokens may be one string, so that this is a doubt and no mistake.
    """
    candidate, found = study["candidate_token"].to_numpy(), []
    # the target stands beside its candidates
    token = np.column_stack([study["target_token"].to_numpy(), candidate])
    many = np.array([[_MANY in text for text in row] for row in token.tolist()], dtype=bool).reshape(token.shape)
    for model in study["model"].to_numpy().tolist():
        its = study.sel(model=model)
        both = np.column_stack([its["target_logprob"].to_numpy(), its["candidate_logprob"].to_numpy()])
        apart = ((_spread(token, both) > _SLACK_NATS) & ~many)[:, 1:]
        if apart.any():
            item, draw = map(int, np.argwhere(apart)[0])
            what = f"candidates whose string has several log-probabilities of {model} in one context"
            text = f"{what}, the first {shown(candidate[item, draw])}; kept as different tokens"
            found.append(Note(text, int(apart.sum()), "warning"))
    return found


def _spread(token: NDArray[np.object_], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far apart the values of one string in one context are."""
    code = pd.factorize(token.ravel())[0] + np.repeat(np.arange(len(token)), token.shape[1]) * token.size
    groups = pd.Series(values.ravel()).groupby(code)
    spread = groups.transform("max") - groups.transform("min")
    return np.asarray(spread, dtype=float).reshape(token.shape)
