"""Tables with candidates of several sources, chains and free answers: written and read again, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.comparison.table import comparison_study, comparison_table
from shannon_game.experiments.studies.comparison.table_write import write_comparison_tables
from tests.estimators.comparison.comparison_studies import answered_study, study_with_answers

Frames = dict[str, pd.DataFrame]
Change = Callable[[Frames], object]


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    return {name: tmp_path / f"{name}.csv" for name in ("pairs", "answers", "free_answers")}


def written(study: xr.Dataset, paths: dict[str, Path]) -> None:
    write_comparison_tables(study, paths["pairs"], paths["answers"], free_answers=paths["free_answers"])


def frames(study: xr.Dataset, paths: dict[str, Path]) -> Frames:
    written(study, paths)
    return {name: pd.read_csv(path, keep_default_na=False) for name, path in paths.items()}


@pytest.mark.parametrize("make", [answered_study, study_with_answers])
def test_tables_that_were_written_are_the_study(make: Callable[[], xr.Dataset], paths: dict[str, Path]) -> None:
    study = make()
    written(study, paths)
    again = comparison_table(**paths, generator=study.attrs["generator"])
    shared = [
        *("candidate_token", "candidate_logprob", "target_logprob", "candidate_source", "candidate_batch"),
        *("report", "response_candidate", "automatic"),
    ]
    width = again.sizes["candidate"]  # cells that are empty for every item are not written
    for name in [*shared, *(each for each in ("response_reference", "proposal_logprob") if each in study)]:
        expected = study[name].isel(candidate=slice(width)) if "candidate" in study[name].dims else study[name]
        if expected.dtype == float:
            np.testing.assert_allclose(again[name].to_numpy(), expected.to_numpy(), rtol=1e-12)
        else:
            assert again[name].to_numpy().tolist() == expected.to_numpy().tolist()
    kept = study.isel(answer=np.flatnonzero(study["answer_candidate"].to_numpy() > -2))
    for name in ("answer_participant", "answer_candidate", "answer_batch"):
        assert again[name].to_numpy().tolist() == kept[name].to_numpy().tolist()


def changed(table: str, column: str, value: object) -> Change:
    def change(given: Frames) -> None:
        given[table] = given[table].astype({column: object})
        given[table].loc[1, column] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed("pairs", "source", "people"), "candidates, source: is 'people' in row 2, should be one of: generator"),
        (changed("pairs", "proposal_logprob", 0.5), r"candidates, proposal_logprob: is .*0\.5.* should be ln p"),
        (changed("answers", "reference", "x9"), "answers, reference: is 'x9' in row 2, should be a draw of the item"),
        (changed("free_answers", "item", "q9"), "free_answers, item: is 'q9' in row 2, should be an item of the pairs"),
        (changed("free_answers", "batch", 0), "answer_batch: is 0 at answer 1 .*at least 1"),
        (lambda given: given["pairs"].pop("source"), "every item needs as many, or a column that says where"),
    ],
)
def test_wrong_tables(change: Change, message: str, paths: dict[str, Path]) -> None:
    study = answered_study()
    unknown = study["candidate_logprob"].isel(model=0, drop=True) * np.nan
    study = study.assign(
        proposal_logprob=unknown, response_reference=("response", np.full(study.sizes["response"], -1))
    )
    given = frames(study, paths)
    change(given)
    with pytest.raises(InputError, match=message):
        comparison_study(given["answers"], given["pairs"], free_answers=given["free_answers"], generator="lm")
