"""Tables with a row per item and a row per participant, against the estimates and loops over responses."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.comparison import (
    SimulationSettings,
    comparison_items,
    comparison_participants,
    estimate_gap,
    estimate_perplexity,
    score,
    simulate_comparison_study,
)
from shannon_game.estimators.comparison.terms import log_terms, response_pairs
from shannon_game.estimators.errors import InputError

STUDY = simulate_comparison_study(
    SimulationSettings(n_items=6, n_reference_items=9, n_participants=4, n_candidates=5, vocab_size=80)
)
SHUFFLED = STUDY.isel(response=np.random.default_rng(0).permutation(STUDY.sizes["response"]))


@pytest.mark.parametrize("settings", [{}, {"rounding": "coarse"}, {"estimator": "jackknife"}])
def test_gaps_of_items_are_those_of_the_estimate(settings: dict[str, str]) -> None:
    table = comparison_items(SHUFFLED, **settings).set_index("item")
    for player in ("human", *STUDY["model"].to_numpy().tolist()):
        gap = estimate_perplexity(STUDY, player, **settings).gap
        np.testing.assert_allclose(table.loc[gap.item, f"gap_nats_{player}"], gap.item_gap_nats)
        assert table[f"gap_nats_{player}"].mean() == pytest.approx(gap.gap_nats)


def test_an_item_has_its_counts_and_surprisals() -> None:
    table = comparison_items(SHUFFLED, ["human"])
    asked = STUDY["response_item"].to_numpy()
    automatic, report = STUDY["automatic"].to_numpy(), STUDY["report"].to_numpy()
    assert len(table) == STUDY.sizes["item"]
    for row in table.itertuples():
        mine = asked == row.item
        assert row.n_responses == mine.sum()
        assert row.n_participants == len(set(STUDY["participant"].to_numpy()[mine]))
        own = report[mine & ~automatic]
        np.testing.assert_allclose(row.mean_report, own.mean() if own.size else np.nan)
    np.testing.assert_array_equal(table["surprisal_nats_lm-weak"], -STUDY["target_logprob"].sel(model="lm-weak"))
    assert not [name for name in table if name.startswith("gap_nats_lm")]


def test_a_study_that_nobody_answered_has_the_models_gaps() -> None:
    table = comparison_items(STUDY.isel(response=[]))
    assert (table["n_responses"] == 0).all()
    assert table["mean_report"].isna().all()
    assert "gap_nats_human" not in table
    assert np.isfinite(table.loc[:5, "gap_nats_lm-weak"]).all()
    with pytest.raises(InputError, match="nobody answered"):
        comparison_participants(STUDY.isel(response=[]))


def test_participants() -> None:
    automatic = np.zeros(STUDY.sizes["response"], dtype=bool)
    automatic[::7] = True
    study = SHUFFLED.assign(automatic=("response", automatic))
    table = comparison_participants(study)
    who = study["participant"].to_numpy()
    assert table["participant"].tolist() == list(dict.fromkeys(who))
    pairs = response_pairs(study)
    order = np.argsort(study["response_item"].to_numpy(), kind="stable")
    told, answered = ~automatic[order], log_terms(pairs)
    for row in table.itertuples():
        mine = who[order] == row.participant
        report = pairs.report[mine & told]
        assert (row.n_responses, row.n_items) == (mine.sum(), len(set(pairs.item[mine])))
        assert row.mean_report == pytest.approx(report.mean())
        assert row.share_right == pytest.approx(np.mean([1 if p > 0.5 else 0.5 if p == 0.5 else 0 for p in report]))
        assert row.mean_score == pytest.approx(score(report, pairs.control_logprob[mine & told]).mean())
        assert row.gap_nats == pytest.approx(estimate_gap(answered[mine], pairs.item[mine]).gap_nats)
