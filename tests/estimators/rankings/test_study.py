from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.rankings.scores import average_score
from shannon_game.estimators.rankings.study import conditioned_on_other_text, score_study, validate_ranking_study


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


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reference_token", ("token", ["", "b"]), "reference_token: is '' at token 0"),
        ("position", ("token", [0, 0]), r"tokens 0 and 1 are the same place \(model m, text t, .*a window each"),
        ("ranked_logprob", (("token", "rank"), [[-0.5, -0.1], [-0.5, np.nan]]), "is -0.1 at token 0, rank 1 .*above"),
        ("ranked_logprob", (("token", "rank"), [[-0.5, -np.inf], [-0.5, np.nan]]), "of a token that was ranked"),
        ("ranked_logprob", (("token", "rank"), [[np.nan, -2.0], [-0.5, np.nan]]), "NaN may stand after"),
        ("ranked_logprob", (("token", "rank"), [[-0.5, -2.0], [-0.5, -1.0]]), "ranked_token: is (None|nan) at token 1"),
        ("reference_logprob", ("token", [np.nan, -8.0]), "reference_logprob: is nan"),
    ],
)
def test_malformed(name: str, value, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        validate_ranking_study(study(**{name: value}))
    assert str(raised.value).startswith("ranking study 'tiny', ")


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
    # every score of the same ranks, and their mean
    assert whole.k == 50
    assert whole.reciprocal.tolist() == [1, 1 / 40]
    np.testing.assert_allclose(whole.exponential, [[1, np.exp(-39 * decay)] for decay in (0.1, 0.3)])
    np.testing.assert_allclose(whole.average, average_score([1, 40], 50))
    one = score_study(study(), decays=(0.5,), top_k=1)
    assert (one.k, one.exponential.shape) == (1, (1, 2))
    np.testing.assert_allclose(one.average, average_score([1, np.inf], 1, decays=(0.5,)))
    # as an API with 20 ranked tokens would have shown it
    assert score_study(study(), whole_vocabulary=True, top_k=20).rank.tolist() == [1, np.inf]


def test_settings_reach_the_scores() -> None:
    tied = study(
        ranked_token=(("token", "rank"), np.array([["c", "a"], ["c", "b"]], dtype=object)),
        ranked_logprob=(("token", "rank"), np.log([[0.3, 0.3], [0.5, 0.2]])),
    )
    assert score_study(tied, tie="listed").rank.tolist() == [2, 2]
    assert score_study(tied, tie="best").rank.tolist() == [1, 2]
    # among the best one only; the rest has .7 and .5, and no more than the listed one
    one = score_study(tied, top_k=1, censoring="bound")
    np.testing.assert_allclose(one.logprob_nats, np.log([0.3, 0.5]))
    assert one.censored.tolist() == [True, True]
    # (1 - .3) / 7 and (1 - .5) / 7
    even = score_study(tied, top_k=1, censoring="uniform", vocab_size=8)
    np.testing.assert_allclose(even.logprob_nats, np.log([0.1, 0.5 / 7]))
    np.testing.assert_allclose(score_study(tied, top_k=1, offset_nats=1.0).logprob_nats, np.log([0.3, 0.5]) - 1)
    # only a whole vocabulary has ranks beyond the list
    with pytest.raises(InputError, match="needs reference_rank in the study, and top_k"):
        score_study(tied, whole_vocabulary=True)


@pytest.mark.parametrize(
    ("settings", "dropped", "message"),
    [
        ({"match": "id"}, "ranked_id", "match: is 'id', but the study has no ranked_id"),
        ({"censoring": "exact"}, "reference_logprob", "the study has no reference_logprob"),
        ({"top_k": 3}, "reference_logprob", "top_k: is 3, but the study lists 2"),
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
    with pytest.raises(InputError, match="match: is 'id', should be stripped or exact"):
        conditioned_on_other_text(given, match="id")
    with pytest.raises(InputError, match="generated_token: is missing"):
        conditioned_on_other_text(given.drop_vars("generated_token"))
