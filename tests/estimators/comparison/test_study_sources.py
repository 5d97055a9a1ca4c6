"""Where candidates come from, and free answers: what the validator accepts, and line by line what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.comparison import (
    candidate_sources,
    has_free_answers,
    same_token,
    validate_comparison_study,
)
from shannon_game.estimators.errors import InputError
from tests.estimators.comparison.comparison_studies import put, small_study, study_with_answers

MALFORMED: list[tuple[str, Callable[[xr.Dataset], xr.Dataset], str]] = [
    ("unknown source", put("candidate_source", (1, 2), "people"), "candidate_source: is 'people'"),
    ("padded token", put("candidate_token", (0, 11), "a"), r"candidate_token: is 'a' at item 100, candidate 11 .*\"\""),
    ("padded logprob", put("candidate_logprob", (1, 0, 11), -1.0), "candidate_logprob: is -1.0"),
    ("NaN without padding", put("candidate_logprob", (1, 0, 3), np.nan), "candidate_logprob: is nan"),
    (
        "nothing but padding",
        lambda s: put("candidate_source", (2,), "padding")(
            s.assign(
                candidate_token=(s["candidate_token"].dims, np.where(s["item"] == 102, "", s["candidate_token"].T).T),
                candidate_logprob=s["candidate_logprob"].where(s["item"] != 102),
                proposal_logprob=s["proposal_logprob"].where(s["item"] != 102),
            )
        ),
        "candidate_source: is 'padding' for every candidate of item 102",
    ),
    ("padded proposal", put("proposal_logprob", (0, 11), -1.0), "proposal_logprob: is -1.0 at item 100, candidate 11"),
    ("proposal above 1", put("proposal_logprob", (0, 0), 0.1), "proposal_logprob: is 0.1 at item 100, candidate 0"),
    ("inclusion -inf", put("inclusion_logprob", (0, 0), -np.inf), "inclusion_logprob: is -inf at item 100"),
    ("padding shown", put("response_candidate", (0,), 11), "response_candidate: is 11 at response 0 .*padding"),
    ("reference -2", put("response_reference", (3,), -2), "response_reference: is -2"),
    ("padded reference", put("response_reference", (3,), 11), "response_reference: is 11 at response 3 .*padding"),
    ("against itself", lambda s: s.assign(response_reference=s["response_candidate"]), "response_reference: is"),
    ("no batch", lambda s: s.drop_vars("answer_batch"), "answer_batch: is missing; it goes with answer"),
    ("no candidate batch", lambda s: s.drop_vars("candidate_batch"), "candidate_batch: is missing"),
    ("batch -1", put("candidate_batch", (1, 1), -1), "candidate_batch: is -1 at item 101, candidate 1 .*at least 0"),
    ("answer's batch", put("candidate_batch", (0, 10), 0), "candidate_batch: is 0"),
    ("answer -3", put("answer_candidate", (0,), -3), "answer_candidate: is -3 at answer 0 .*-1 for the target, or -2"),
    ("padded answer", put("answer_candidate", (0,), 11), "answer_candidate: is 11 at answer 0 .*padding"),
    ("unknown item", put("answer_item", (0,), 7), "answer_item: is 7 at answer 0 .*no such item"),
]


@pytest.mark.parametrize(("change", "message"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_malformed_sources(change: Callable[[xr.Dataset], xr.Dataset], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        validate_comparison_study(change(study_with_answers()))
    assert str(raised.value).startswith("comparison study 'small'")


def test_the_study_is_right_before_it_is_changed() -> None:
    study = study_with_answers()
    assert validate_comparison_study(study) is study
    assert has_free_answers(study)
    assert not has_free_answers(small_study())
    assert not has_free_answers(study.isel(answer=slice(0)))
    assert validate_comparison_study(study.isel(answer=slice(0))).sizes["answer"] == 0


def test_an_answer_that_is_the_target_says_so() -> None:
    study = small_study()
    row, column = np.argwhere(same_token(study))[0]
    study = study_with_answers()
    item = study["item"].values[row]
    with pytest.raises(InputError, match=rf"answer_candidate: is {column} at answer 0 .*is the target; should be -1"):
        validate_comparison_study(put("answer_candidate", (0,), column)(put("answer_item", (0,), item)(study)))


def test_sources_follow_from_probabilities_where_none_are_named() -> None:
    study = small_study()
    assert (candidate_sources(study) == "generator").all()
    known = np.full((6, 12), np.nan)
    known[:, 4:] = -2.0
    included = np.full((6, 12), np.nan)
    included[:, 8:] = -1.0
    dims = ("item", "candidate")
    study = validate_comparison_study(study.assign(proposal_logprob=(dims, known), inclusion_logprob=(dims, included)))
    expected = ["generator"] * 4 + ["proposal"] * 4 + ["distinct"] * 4
    assert candidate_sources(study).tolist() == [expected] * 6
