"""The validator, of where candidates come from and of free answers too: what it accepts and, line by line, refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.comparison.study import same_token
from shannon_game.estimators.comparison.study_sources import candidate_sources
from shannon_game.estimators.errors import InputError
from tests.estimators.comparison.comparison_studies import put, small_study, study_with_answers

Row = tuple[str, Callable[[xr.Dataset], xr.Dataset], str]
MALFORMED: list[Row] = [
    ("missing variable", lambda s: s.drop_vars("report"), r"'small', report: is missing; .*\('response',\)"),
    ("wrong dims", lambda s: s.assign(target_token=("candidate", ["a"] * 12)), "target_token: has dims"),
    ("item twice", lambda s: s.assign_coords(item=[100, 101, 102, 103, 104, 100]), "item: 100 is there twice"),
    ("generator", lambda s: s.assign_attrs(generator="gpt"), "unknown generator 'gpt'; choose one of: weak, gen"),
    ("model called human", lambda s: s.assign_coords(model=["human", "gen"]), "model: 'human' is kept"),
    ("NaN", put("candidate_logprob", (1, 2, 3), np.nan), "candidate_logprob: is nan"),
    (
        "distribution above 1",
        lambda s: s.assign(reference_logprob=(("item", "token"), [[-1.0, 0.5]] * 6)),
        "reference_logprob: is 0.5",
    ),
    (
        "negative divergence",
        lambda s: s.assign(kl_nats=(("model", "item"), [[1, 1, 1, 1, -0.5, 1]] * 2)),
        "kl_nats: is -0.5",
    ),
    (
        "truth's divergence",
        lambda s: s.assign(human_kl_nats=("item", [1, 1, 1, 1, np.nan, 1])),
        "human_kl_nats: is nan",
    ),
    ("empty name", put("participant", (2,), ""), r"participant: is '' at response 2 \(1 such\)"),
    ("not asked", put("item_set", (0,), ""), "response_item: is 100 at response 0 .*; an item that is not selected"),
    ("report 0", put("report", (4,), 0.0), "report: is 0.0 at response 4 .*infinite likelihood ratio"),
    ("unknown item", put("response_item", (3,), 999), "response_item: is 999"),
]


MALFORMED_SOURCES: list[Row] = [
    ("unknown source", put("candidate_source", (1, 2), "people"), "candidate_source: is 'people'"),
    ("padded token", put("candidate_token", (0, 11), "a"), r"candidate_token: is 'a' at item 100, candidate 11 .*\"\""),
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
    ("inclusion -inf", put("inclusion_logprob", (0, 0), -np.inf), "inclusion_logprob: is -inf at item 100"),
    ("reference -2", put("response_reference", (3,), -2), "response_reference: is -2"),
    ("against itself", lambda s: s.assign(response_reference=s["response_candidate"]), "response_reference: is"),
    ("no batch", lambda s: s.drop_vars("answer_batch"), "answer_batch: is missing; it goes with answer"),
    ("answer's batch", put("candidate_batch", (0, 10), 0), "candidate_batch: is 0"),
    (
        "answer -3",
        put("answer_candidate", (0,), -3),
        "answer_candidate: is -3 .*-2 to 11; -1 is the target; -2 is a token that",
    ),
    ("unknown item", put("answer_item", (0,), 7), "answer_item: is 7 at answer 0 .*no such item"),
]


@pytest.mark.parametrize(
    ("study", "row"),
    [(small_study, row) for row in MALFORMED] + [(study_with_answers, row) for row in MALFORMED_SOURCES],
    ids=[row[0] for row in (*MALFORMED, *MALFORMED_SOURCES)],
)
def test_malformed_study(study: Callable[[], xr.Dataset], row: Row) -> None:
    with pytest.raises(InputError, match=row[2]) as raised:
        validate_comparison_study(row[1](study()))
    assert str(raised.value).startswith("comparison study 'small'")


def test_what_a_study_may_hold() -> None:
    """Infinities where a distribution rules a token out, rounding above 0, and the first and the last candidate."""
    study = small_study()
    whole = np.full((6, 9), -np.inf)
    whole[:, 0] = 1e-7
    shown = study["response_candidate"].values.copy()
    shown[:2] = 0, 11
    for good in (
        study.assign(reference_logprob=(("item", "token"), whole)),
        study.assign(kl_nats=(("model", "item"), [[0.0, np.inf, 1, 1, 1, 1]] * 2), human_kl_nats=("item", [0.0] * 6)),
        study.assign(human_target_logprob=("item", np.full(6, -1.0))),
        study.assign(response_candidate=("response", shown)),
        study.assign(report=("response", np.full(24, 1e-12))),
    ):
        assert all(
            validate_comparison_study(good)[name].variable.equals(good[name].variable) for name in good.variables
        )


def test_same_token_needs_string_and_log_probability() -> None:
    study = small_study()
    equal = same_token(study)
    assert equal.any()
    row, column = np.argwhere(equal)[0]
    other = put("candidate_logprob", (1, row, column), study["candidate_logprob"].values[1, row, column] - 0.01)(study)
    assert not same_token(other)[row, column]
    assert same_token(other).sum() == equal.sum() - 1


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
