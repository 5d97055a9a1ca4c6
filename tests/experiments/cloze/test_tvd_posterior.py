"""How long a Bayesian TVD is sampled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shannon_game.estimators.cloze.distributions import count_words
from shannon_game.experiments.cloze.tvd import posterior as tvd_bayes
from shannon_game.experiments.cloze.tvd.posterior import WordPairFits
from shannon_game.experiments.harness.bayes import BayesianSettings


@pytest.mark.parametrize(
    ("more_draws", "passes", "sampled"),
    [(4, [True], [1]), (4, [False, True], [1, 4]), (4, [False, False], [1, 4]), (1, [False], [1])],
)
def test_what_misses_the_gate_is_sampled_longer_once(
    more_draws: int, passes: list[bool], sampled: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []
    verdicts = iter(passes)

    def draw_posterior(settings: Any, model: Any, purpose: str, *, times_draws: int) -> int:
        times.append(times_draws)
        return times_draws

    monkeypatch.setattr(tvd_bayes.bayes, "draw_posterior", draw_posterior)
    monkeypatch.setattr(tvd_bayes, "group", lambda idata, name: idata)
    monkeypatch.setattr(
        tvd_bayes, "tvd_posterior", lambda idata, data, rng: SimpleNamespace(idata=idata, judged=lambda: idata)
    )
    monkeypatch.setattr(tvd_bayes, "check_convergence", lambda idata, gate: SimpleNamespace(passed=next(verdicts)))
    counts = count_words(np.zeros(2, int), np.array([0, 1]), np.array([3, 2]), n_contexts=1)
    settings = BayesianSettings(sampler="pymc")
    fit = WordPairFits(settings, more_draws=more_draws).fit(counts, counts, "a test")
    posterior, found = fit.posterior, fit.convergence
    assert times == sampled
    assert posterior.idata == sampled[-1]
    assert found.passed == passes[-1]
