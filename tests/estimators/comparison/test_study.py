"""The validator: what it accepts and, line by line, what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.comparison import is_word_token, response_positions, same_token, validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note, notes
from tests.estimators.comparison.comparison_studies import put, small_study

MALFORMED: list[tuple[str, Callable[[xr.Dataset], xr.Dataset], str]] = [
    ("missing variable", lambda s: s.drop_vars("report"), r"'small', report: is missing; .*\('response',\)"),
    ("wrong dims", lambda s: s.assign(target_token=("candidate", ["a"] * 12)), "target_token: has dims"),
    ("no item labels", lambda s: s.drop_vars("item"), "item: has no coordinate values"),
    ("no items", lambda s: s.isel(item=slice(0)), "item: is empty"),
    ("item twice", lambda s: s.assign_coords(item=[100, 101, 102, 103, 104, 100]), "item: 100 is there twice"),
    ("selected not bool", lambda s: s.assign(selected=s["selected"] * 1), "selected: has dtype int"),
    ("generator", lambda s: s.assign_attrs(generator="gpt"), "unknown generator 'gpt'; choose one of: weak, gen"),
    ("model called human", lambda s: s.assign_coords(model=["human", "gen"]), "model: 'human' is kept"),
    ("NaN", put("candidate_logprob", (1, 2, 3), np.nan), "candidate_logprob: is nan"),
    ("positive", put("target_logprob", (0, 0), 0.2), "target_logprob: is 0.2 at model weak, item 100 .* at most 0"),
    (
        "distribution above 1",
        lambda s: s.assign(reference_logprob=(("item", "token"), [[-1.0, 0.5]] * 6)),
        "reference_logprob: is 0.5",
    ),
    ("truth -inf", lambda s: s.assign(human_target_logprob=("item", np.full(6, -np.inf))), "human_target_logprob: is"),
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
    ("negative candidate", put("response_candidate", (2,), -1), "response_candidate: is -1 at response 2"),
    ("empty name", put("participant", (2,), ""), r"participant: is '' at response 2 \(1 such\)"),
    ("not asked", put("item_set", (0,), ""), "response_item: is 100 at response 0 .*; an item that is not selected"),
    ("not selected", put("selected", (1,), False), "response_item: is 101 at response 1 .*; an item that is not"),
    ("report 0", put("report", (4,), 0.0), "report: is 0.0 at response 4 .*infinite likelihood ratio"),
    ("candidate index", put("response_candidate", (0,), 12), "response_candidate: is 12"),
    ("unknown item", put("response_item", (3,), 999), "response_item: is 999"),
]


@pytest.mark.parametrize(("change", "message"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_malformed_study(change: Callable[[xr.Dataset], xr.Dataset], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        validate_comparison_study(change(small_study()))
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
        assert validate_comparison_study(good) is good


def test_response_positions_in_any_item_order() -> None:
    study = small_study()
    shuffled = study.isel(item=[3, 0, 5, 1, 4, 2])
    np.testing.assert_array_equal(shuffled["item"].values[response_positions(shuffled)], study["response_item"])


def test_same_token_needs_string_and_log_probability() -> None:
    study = small_study()
    equal = same_token(study)
    assert equal.any()
    row, column = np.argwhere(equal)[0]
    other = put("candidate_logprob", (1, row, column), study["candidate_logprob"].values[1, row, column] - 0.01)(study)
    assert not same_token(other)[row, column]
    assert same_token(other).sum() == equal.sum() - 1


@pytest.mark.parametrize(
    ("token", "word"), [(" he", True), (" né", True), (" 4th", False), ("he", False), (" he's", False), (" ", False)]
)
def test_word_token(token: str, word: bool) -> None:
    assert is_word_token(token) is word


def test_notes_survive_in_attributes() -> None:
    study = small_study()
    add_note(study, "rows dropped", count=3)
    add_note(study, "odd file", level="warning")
    assert notes(study) == [
        {"level": "info", "text": "rows dropped", "count": 3},
        {"level": "warning", "text": "odd file", "count": None},
    ]
    assert isinstance(study.attrs["notes"], str)  # netCDF keeps strings only
