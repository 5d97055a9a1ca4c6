"""Small comparison studies for tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    QuestionDesign,
    simulate_designed_study,
    validate_comparison_study,
)


def small_study(*, n_items: int = 6, n_candidates: int = 12, n_participants: int = 4, seed: int = 0) -> xr.Dataset:
    """Build a valid study: two models over a vocabulary of nine tokens, the second drew the candidates."""
    rng = np.random.default_rng(seed)
    vocabulary = np.array([f" tok{letter}" for letter in "abcdefgh"] + ["."], dtype=object)
    logits = rng.normal(0, 1.5, (2, n_items, vocabulary.size))
    logprob = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    generator = np.exp(logprob[1])
    drawn = np.stack([rng.choice(vocabulary.size, n_candidates, p=row) for row in generator])
    target = np.array([rng.choice(vocabulary.size, p=row) for row in generator])
    item = 100 + np.arange(n_items)
    at = np.arange(n_items)
    who, which = np.divmod(np.arange(n_participants * n_items), n_items)
    shown = rng.integers(0, n_candidates, n_participants)[who]
    grid = np.array([0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99])
    same = drawn[which, shown] == target[which]
    study = xr.Dataset(
        {
            "context": ("item", np.array([f"context {i}" for i in item], dtype=object)),
            "target_token": ("item", vocabulary[target]),
            "candidate_token": (("item", "candidate"), vocabulary[drawn]),
            "target_logprob": (("model", "item"), logprob[:, at, target]),
            "candidate_logprob": (("model", "item", "candidate"), logprob[:, at[:, None], drawn]),
            "item_set": ("item", np.array(["set 1"] * n_items, dtype=object)),
            "selected": ("item", np.ones(n_items, dtype=bool)),
            "in_reference": ("item", np.ones(n_items, dtype=bool)),
            "participant": ("response", np.array([f"p{i}" for i in who], dtype=object)),
            "response_item": ("response", item[which]),
            "response_candidate": ("response", shown),
            "report": ("response", np.where(same, 0.5, rng.choice(grid, who.size))),
            "automatic": ("response", same),
        },
        coords={"item": item, "model": np.array(["weak", "gen"], dtype=object)},
        attrs={"name": "small", "generator": "gen"},
    )
    return validate_comparison_study(study)


def put(name: str, index: tuple[int, ...], value: object) -> Callable[[xr.Dataset], xr.Dataset]:
    """Change one entry of a variable, in a copy."""

    def change(study: xr.Dataset) -> xr.Dataset:
        values = study[name].values.copy()
        values[index] = value
        return study.assign({name: (study[name].dims, values)})

    return change


def study_with_answers() -> xr.Dataset:
    """Add the optional variables: ten draws, one free answer and one empty cell an item, and two answers an item."""
    study = small_study()
    dims = ("item", "candidate")
    source = np.array([["generator"] * 10 + ["answer", "padding"]] * 6, dtype=object)
    token, logprob = study["candidate_token"].values.copy(), study["candidate_logprob"].values.copy()
    token[:, 10], token[:, 11] = " said", ""
    logprob[:, :, 10], logprob[:, :, 11] = -3.0, np.nan
    unknown = np.full(token.shape, np.nan)
    batch = np.zeros(token.shape, dtype=np.int64)
    batch[:, 10] = 1
    items = study["item"].values
    on_answer = study["participant"].values == "p3"
    study = study.assign(
        candidate_token=(dims, token),
        candidate_logprob=(("model", *dims), logprob),
        candidate_source=(dims, source),
        proposal_logprob=(dims, unknown),
        inclusion_logprob=(dims, unknown),
        candidate_batch=(dims, batch),
        response_candidate=("response", np.where(on_answer, 10, study["response_candidate"].values)),
        automatic=("response", study["automatic"].values & ~on_answer),
        response_reference=("response", np.full(study.sizes["response"], -1)),
        answer_item=("answer", np.concatenate([items, items])),
        answer_participant=("answer", np.array(["q1"] * 6 + ["q2"] * 6, dtype=object)),
        answer_candidate=("answer", np.array([10] * 6 + [-1, -2] * 3)),
        answer_batch=("answer", np.array([1] * 6 + [2] * 6)),
    )
    return validate_comparison_study(study)


def answered_study(*, n_items: int = 6) -> xr.Dataset:
    """Comparison study in which people also continue the contexts freely; most draws and answers are compared."""
    rng = np.random.default_rng(0)
    logit = rng.normal(0.0, 2.0, (n_items, 40))
    log_g, log_h = (each - np.logaddexp.reduce(each, axis=1, keepdims=True) for each in (logit, logit / 2))
    target = (log_g + rng.gumbel(size=log_g.shape)).argmax(axis=1)
    design = QuestionDesign(n_draws=8, n_answers=8, n_comparisons=12, n_participants=20, scale="none")
    exact = ParticipantPopulation(bias=False, slope=False, noise=False, lapses=False)
    study = simulate_designed_study(log_g, log_h, target, design, exact, seed=0, store_reference=False)
    renamed = study.assign_coords(model=np.array(["lm"], dtype=object)).assign_attrs(generator="lm")
    return validate_comparison_study(renamed)
