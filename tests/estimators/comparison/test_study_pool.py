"""The token pool of a study: counted by loops over its rows."""

from __future__ import annotations

import numpy as np

from shannon_game.estimators.comparison import scaled_bridge
from shannon_game.estimators.comparison.examples import designed_study
from shannon_game.estimators.comparison.token_pool import study_pool


def test_tokens_are_those_of_loops() -> None:
    study = designed_study()
    pool, items = study_pool(study)
    log_g = study["candidate_logprob"].sel(model=study.attrs["generator"]).values
    log_g_target = study["target_logprob"].sel(model=study.attrs["generator"]).values
    for at, q in enumerate(items):
        target = str(study["target_token"].values[q])
        here = np.flatnonzero(pool.item == at)
        assert pool.is_target[here].tolist() == [True] + [False] * (here.size - 1)
        drawn: dict[str, int] = {target: 0}
        answers: dict[str, int] = {target: 0}
        offset = {target: 0.0}
        for c, token in enumerate(study["candidate_token"].values[q].tolist()):
            source = study["candidate_source"].values[q, c]
            if source == "padding":
                continue
            drawn[token] = drawn.get(token, 0) + (source == "generator")
            offset.setdefault(token, float(log_g_target[q] - log_g[q, c]))
            answers.setdefault(token, 0)
        for row in np.flatnonzero(study["answer_item"].values == study["item"].values[q]):
            c = int(study["answer_candidate"].values[row])
            answers[target if c == -1 else study["candidate_token"].values[q, c]] += 1
        # tokens of an item in the order in which they appear, strings being distinct here
        assert pool.n_drawn[here].tolist() == list(drawn.values())
        assert pool.n_answered[here].tolist() == [answers[token] for token in drawn]
        np.testing.assert_allclose(pool.offset_nats[here], [offset[token] for token in drawn], atol=1e-6)
        reports = study["report"].values[(study["response_item"].values == study["item"].values[q])]
        mine = np.isin(pool.report_token, here)
        np.testing.assert_allclose(
            np.sort(pool.report_log_ratio[mine]), np.sort(np.log1p(-reports) - np.log(reports)), atol=1e-6
        )
    assert pool.answer_person.max() < pool.n_people


def test_only_items_with_draws_and_answers_stay() -> None:
    study = designed_study()
    silent = study["answer_item"].values == study["item"].values[2]
    pool, items = study_pool(study.isel(answer=np.flatnonzero(~silent)))
    assert items.tolist() == [0, 1, *range(3, 8)]
    assert pool.n_items == 7
    assert np.isfinite(scaled_bridge(pool).gap_nats)
