"""Studies that were cut, turned or reordered with xarray: the same numbers by label, or one line."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.estimators import cloze, comparison
from shannon_game.estimators.errors import InputError
from tests.contact.cut_studies import KINDS, changed, distances, gaps, left


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(draw=st.randoms(use_true_random=False))
def test_a_changed_study_gives_its_own_numbers_or_one_line(kind: str, draw: random.Random) -> None:
    make, validate, numbers = KINDS[kind]
    # as a loader gives it: what points along a dimension says so
    study = validate(make())
    new, kept = changed(study, draw)
    try:
        found = numbers(new)
    except InputError:
        return
    plain = left(study, kept)
    assert plain is not None
    # an operation may have made single floats of doubles
    assert dict(found) == pytest.approx(dict(numbers(plain)), rel=1e-5, nan_ok=True)


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
