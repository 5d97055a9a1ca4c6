"""Studies that were cut, turned or reordered with xarray: the same numbers by label, or one line."""

import pytest

from shannon_game.estimators import cloze, comparison
from shannon_game.estimators.errors import InputError


def test_a_model_keeps_its_own_words_when_others_are_cut() -> None:
    study = cloze.validate_cloze_study(cloze.examples.cloze_study())
    names = study["model"].values.tolist()
    cut = cloze.validate_cloze_study(study.sel(model=[names[1]]))
    for name in ("entry_item", "entry_model"):
        assert name in cut
    kept = study["entry_model"].values == 1
    assert cut["entry_item"].values.tolist() == study["entry_item"].values[kept].tolist()
    assert set(cut["entry_model"].values.tolist()) == {0}


def test_a_turned_comparison_has_the_same_gap() -> None:
    study = comparison.validate_comparison_study(comparison.examples.comparison_study())
    turned = study.transpose(*reversed(list(study.sizes)))
    own = comparison.estimate_perplexity(study).gap.gap_nats
    assert comparison.estimate_perplexity(turned).gap.gap_nats == own


def test_a_dropped_number_is_one_line() -> None:
    study = cloze.validate_cloze_study(cloze.examples.cloze_study())
    with pytest.raises(InputError, match="model_number"):
        cloze.validate_cloze_study(study.isel(model=[1]).drop_vars("model_number"))
