"""Studies that were cut, turned or reordered with xarray: the same numbers by label, or one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.estimators import bets, cloze, comparison, rankings
from shannon_game.estimators.errors import InputError

Numbers = Mapping[str, float]


def gaps(study: xr.Dataset) -> Numbers:
    names = ["human", *study["model"].values.tolist()] if "model" in study else ["human"]
    return {name: comparison.estimate_perplexity(study, name).gap.gap_nats for name in names}


def distances(study: xr.Dataset) -> Numbers:
    """TVD of each model's words from people's, over all contexts."""
    words = cloze.study_words(study, human="clean", model="clean", corpus="clean")
    people = cloze.relative_frequencies(words.human)
    return {
        name: float(np.nanmean(cloze.total_variation(people, cloze.relative_frequencies(counts.counts))))
        for name, counts in words.models.items()
    }


def mean_scores(study: xr.Dataset) -> Numbers:
    scores, model = rankings.score_study(study), study["model"].values
    return {str(name): float(scores.linear[model == name].mean()) for name in np.unique(model)}


def bet_loss(study: xr.Dataset) -> Numbers:
    return {"people": float(bets.bet_losses(study, "floor").mean())}


Validator = Callable[[xr.Dataset], xr.Dataset]
KINDS: Mapping[str, tuple[Callable[[], xr.Dataset], Validator, Callable[[xr.Dataset], Numbers]]] = {
    "comparison": (comparison.examples.comparison_study, comparison.validate_comparison_study, gaps),
    "ranking": (rankings.examples.ranking_study, rankings.validate_ranking_study, mean_scores),
    "bet": (bets.examples.bet_study, bets.validate_bet_study, bet_loss),
}


@st.composite
def changes(draw: st.DrawFn, study: xr.Dataset) -> tuple[xr.Dataset, bool]:
    """A study after operations of xarray's, and whether it still holds all that it held."""
    whole = True
    for _ in range(draw(st.integers(1, 3))):
        dim = draw(st.sampled_from(sorted(map(str, study.sizes))))
        size = study.sizes[dim]
        if "both" in study.sizes:
            break
        match draw(st.sampled_from(["transpose", "order", "cut", "drop", "extra", "type", "stack"])):
            case "transpose":
                study = study.transpose(*draw(st.permutations(list(study.sizes))))
            case "order":
                study = study.isel({dim: draw(st.permutations(range(size)))})
            case "cut":
                kept = draw(st.lists(st.integers(0, size - 1), min_size=1, unique=True))
                whole = whole and len(kept) == size
                study = study.isel({dim: kept})
            case "drop":
                study = study.drop_vars(draw(st.sampled_from(sorted(map(str, study.coords)))))
            case "extra":
                study = study.assign_coords(note=(dim, np.arange(size)))
            case "type":
                name = draw(st.sampled_from(sorted(map(str, study.data_vars))))
                if study[name].dtype.kind == "i":
                    study = study.assign({name: study[name].astype(np.int32)})
            case _:
                study = study.stack(both=[dim])
        if not study.coords:
            break
    return study, whole


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_changed_study_gives_its_own_numbers_or_one_line(kind: str, data: st.DataObject) -> None:
    make, validate, numbers = KINDS[kind]
    # as a loader gives it: what points along a dimension says so
    study = validate(make())
    right = numbers(study)
    changed, whole = data.draw(changes(study))
    try:
        found: Mapping[str, Any] = numbers(changed)
    except InputError:
        return
    if whole:
        assert dict(found) == pytest.approx(dict(right), rel=1e-9, nan_ok=True)
    else:
        assert set(found) <= set(right)
        assert all(isinstance(value, float) for value in found.values())


@pytest.mark.parametrize("name", ["mixture", "factors"])
def test_a_model_that_stands_alone_keeps_its_own_distance(name: str) -> None:
    study = cloze.validate_cloze_study(cloze.examples.cloze_study())
    assert distances(study.sel(model=[name])) == pytest.approx({name: distances(study)[name]})
    assert distances(study.isel(model=[1, 0])) == pytest.approx(distances(study))


def test_a_turned_comparison_of_equal_sizes_has_the_same_gap() -> None:
    study = comparison.validate_comparison_study(comparison.examples.comparison_study())
    for turned in (study.transpose(*reversed(list(study.sizes))), study.isel(item=slice(None, None, -1))):
        assert gaps(turned) == pytest.approx(gaps(study))


def test_a_dropped_number_is_one_line() -> None:
    study = cloze.validate_cloze_study(cloze.examples.cloze_study())
    with pytest.raises(InputError, match="model_number"):
        cloze.validate_cloze_study(study.isel(model=[1]).drop_vars("model_number"))


def test_a_prefix_leaves_no_position_beyond_it() -> None:
    study = comparison.validate_comparison_study(comparison.examples.comparison_study())
    with pytest.raises(InputError, match="response_candidate"):
        gaps(study.isel(candidate=[0]))
