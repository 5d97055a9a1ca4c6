from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from estimators import InputError
from estimators.ranking import conditioned_on_other_text, score_study, validate_ranking_study


def study(**changes) -> xr.Dataset:
    """Two tokens, two ranks."""
    variables = {
        "model": ("token", ["m", "m"]),
        "text": ("token", ["t", "t"]),
        "context_length": ("token", [4, 4]),
        "window": ("token", ["w", "w"]),
        "position": ("token", [0, 1]),
        "reference_token": ("token", [" a", " b"]),
        "generated_token": ("token", [" a", " b"]),
        "ranked_token": (("token", "rank"), np.array([["a", "c"], ["c", None]], dtype=object)),
        "ranked_logprob": (("token", "rank"), [[-0.5, -2.0], [-0.5, np.nan]]),
        "reference_logprob": ("token", [-0.5, -8.0]),
        "reference_rank": ("token", [1.0, 40.0]),
        "reference_id": ("token", [5, 6]),
        "ranked_id": (("token", "rank"), [[5, 7], [7, -1]]),
    }
    return xr.Dataset({**variables, **changes}, attrs={"name": "tiny"})


def test_a_valid_study_is_returned_unchanged() -> None:
    given = study()
    assert validate_ranking_study(given) is given


@pytest.mark.parametrize("name", ["model", "window", "position", "ranked_token", "ranked_logprob"])
def test_missing_variable(name: str) -> None:
    with pytest.raises(InputError, match=f"tiny.*{name}: is missing"):
        validate_ranking_study(study().drop_vars(name))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("model", ("token", ["m", ""]), "model: is '' at token 1"),
        ("model", ("token", [1.0, 2.0]), "model: has dtype float64"),
        ("model", ("rank", ["m", "m"]), r"model: has dims \('rank',\)"),
        ("reference_token", ("token", ["", "b"]), "reference_token: is '' at token 0"),
        ("context_length", ("token", [4, 0]), "context_length: is 0 at token 1"),
        ("position", ("token", [0, -1]), "position: is -1"),
        ("position", ("token", [0, 0]), "tokens 0 and 1 are the same place.*a window each"),
        ("position", ("token", [0.0, 1.0]), "position: has dtype float64"),
        ("ranked_logprob", (("token", "rank"), [[-0.5, -0.1], [-0.5, np.nan]]), "is -0.1 at token 0, rank 2.*above"),
        ("ranked_logprob", (("token", "rank"), [[0.5, -2.0], [-0.5, np.nan]]), "no log-probability"),
        ("ranked_logprob", (("token", "rank"), [[-0.5, -np.inf], [-0.5, np.nan]]), "of a token that was ranked"),
        ("ranked_logprob", (("token", "rank"), [[np.nan, -2.0], [-0.5, np.nan]]), "has a gap"),
        ("ranked_logprob", (("token", "rank"), [[-0.5, -2.0], [-0.5, -1.0]]), "ranked_token: is (None|nan) at token 1"),
        ("reference_logprob", ("token", [0.5, -8.0]), "reference_logprob: is 0.5"),
        ("reference_logprob", ("token", [np.nan, -8.0]), "reference_logprob: is nan"),
        ("reference_rank", ("token", [0.0, 4.0]), "reference_rank: is 0.0"),
    ],
)
def test_malformed(name: str, value, message: str) -> None:
    with pytest.raises(InputError, match=message):
        validate_ranking_study(study(**{name: value}))


def test_not_a_dataset_and_no_tokens() -> None:
    with pytest.raises(InputError, match="is a dict"):
        validate_ranking_study({})
    with pytest.raises(InputError, match="token: is empty"):
        validate_ranking_study(study().isel(token=slice(0, 0)))


def test_scores_of_a_study() -> None:
    scores = score_study(study())
    assert scores.rank.tolist() == [1, np.inf]
    assert scores.linear.tolist() == [1, 0]
    assert scores.logprob_nats.tolist() == [-0.5, -3.5]
    assert scores.censored.tolist() == [False, True]
    assert score_study(study(), match="exact").rank.tolist() == [np.inf, np.inf]
    assert score_study(study(), match="id").rank.tolist() == [1, np.inf]
    whole = score_study(study(), whole_vocabulary=True, top_k=50, censoring="exact")
    assert whole.rank.tolist() == [1, 40]
    assert whole.linear.tolist() == [1, pytest.approx(11 / 50)]
    assert whole.logprob_nats.tolist() == [-0.5, -8]
    assert not whole.censored.any()
    # as an API with 20 ranked tokens would have shown it
    assert score_study(study(), whole_vocabulary=True, top_k=20).rank.tolist() == [1, np.inf]


@pytest.mark.parametrize(
    ("settings", "dropped", "message"),
    [
        ({"match": "id"}, "ranked_id", "match: is 'id', but the study has no ranked_id"),
        ({"censoring": "exact"}, "reference_logprob", "the study has no reference_logprob"),
        ({"whole_vocabulary": True}, "model", "whole_vocabulary: needs reference_rank"),
        ({"top_k": 3}, "text", "top_k: is 3, but the study lists 2"),
    ],
)
def test_settings_that_the_study_cannot_serve(settings: dict, dropped: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        score_study(study().drop_vars(dropped), **settings)


def test_reused_completions() -> None:
    """The second token follows a sampled token that was not the text's; the third starts a new completion."""
    n = 4
    ranked = np.array([["a", "x"], ["x", "b"], ["c", "x"], ["d", "x"]], dtype=object)
    given = xr.Dataset(
        {
            **{name: ("token", [name] * n) for name in ("model", "text", "window")},
            "context_length": ("token", [4] * n),
            "position": ("token", np.arange(n)),
            "reference_token": ("token", [" a", " b", " c", " d"]),
            "generated_token": ("token", ["zzz", "b", "c", "d"]),
            "ranked_token": (("token", "rank"), ranked),
            "ranked_logprob": (("token", "rank"), [[-0.5, -2.0]] * n),
        }
    )
    assert conditioned_on_other_text(given).tolist() == [False, True, False, False]
    assert conditioned_on_other_text(given.isel(token=[2, 0, 3, 1])).tolist() == [False, False, False, True]
    # of another text, which is a completion of its own
    other = given.assign(text=("token", ["text", "other", "text", "text"]))
    assert not conditioned_on_other_text(other).any()
    # letter by letter no ranked token is the reference, which has a space before it: no completion goes on
    assert not conditioned_on_other_text(given, match="exact").any()
    spaced = given.assign(
        reference_token=("token", ["a", "x", "c", "d"]), generated_token=("token", [" a", "x", "c", "d"])
    )
    assert conditioned_on_other_text(spaced, match="exact").tolist() == [False, True, True, True]
    assert not conditioned_on_other_text(spaced, match="stripped").any()
    with pytest.raises(InputError, match="match: is 'id', should be stripped or exact"):
        conditioned_on_other_text(given, match="id")
    with pytest.raises(InputError, match="generated_token: is missing"):
        conditioned_on_other_text(given.drop_vars("generated_token"))
