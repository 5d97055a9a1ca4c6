"""The loader of designed studies: its config file, its models, its belief, and wrong configs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from shannon_game.experiments.studies.comparison.designed import designed_simulated

TINY: dict[str, Any] = {
    "n_items": 6,
    "vocab_size": 150,
    "design": {"n_draws": 3, "n_answers": 4, "n_comparisons": 5, "n_participants": 9},
}


def test_the_models_know_every_token_that_was_asked_about() -> None:
    study = designed_simulated(**TINY)
    assert study["model"].values.tolist() == ["lm-weak", "lm-medium", "lm-strong"]
    assert study.attrs["generator"] == "lm-medium"
    whole = study["reference_logprob"]
    assert_allclose(np.exp(whole.values.astype(float)).sum(axis=1), 1, atol=1e-4)
    own = study["candidate_logprob"].sel(model="lm-medium")
    for item, column in zip(*np.nonzero(study["candidate_source"].values != "padding"), strict=True):
        token = str(study["candidate_token"].values[item, column])
        assert_allclose(own.values[item, column], whole.isel(item=item).sel(token=token), atol=1e-6)
    assert (study["kl_nats"].sel(model="lm-medium") == 0).all()
    assert (study["kl_nats"].sel(model="lm-weak") > 0).all()
