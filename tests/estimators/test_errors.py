"""The one exception for wrong input, and what is said about a missing package."""

from __future__ import annotations

import pytest

from shannon_game.estimators.errors import InputError, require_packages, unknown_choice


def test_a_message_starts_with_the_place() -> None:
    assert str(InputError("is wrong")) == "is wrong"
    assert str(InputError("is wrong", source="a.csv", field="rank")) == "a.csv, rank: is wrong"
    assert str(InputError("is wrong", field="rank")) == "rank: is wrong"


def test_an_unknown_name_lists_the_valid_ones() -> None:
    error = unknown_choice("rounding", "half", ("none", "tenths"), source="settings")
    assert str(error) == "settings: unknown rounding 'half'; choose one of: none, tenths"


def test_only_what_is_missing_is_asked_for() -> None:
    assert str(unknown_choice("rounding", "half", ["none"])) == "unknown rounding 'half'; choose one of: none"
    require_packages(("numpy", "math"), "bayes")
    with pytest.raises(InputError, match=r"^here, it: no_such_package not installed; .*'.\[bayes\]'$"):
        require_packages(("numpy", "no_such_package"), "bayes", source="here", field="it")
