"""Small simulated studies, for the examples of the documentation and for a first try of a model."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from estimators.comparison import (
    HUMAN,
    ParticipantPopulation,
    QuestionDesign,
    SimulationSettings,
    TokenPool,
    known_contexts,
    report_from_log_ratio,
    simulate_comparison_study,
    simulate_designed_study,
    simulate_questions,
    validate_comparison_study,
)
from estimators.comparison.simulation.language import draw_tokens, simulate_language

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["answered_study", "comparison_study", "designed_study", "token_pool_example"]


@cache
def comparison_study() -> xr.Dataset:
    """Comparison study of 6 items and 5 participants."""
    settings = SimulationSettings(
        n_items=6, n_reference_items=8, n_participants=5, n_candidates=12, vocab_size=60, rounding="interface"
    )
    return simulate_comparison_study(settings)


def answered_study(
    *,
    n_items: int = 6,
    n_drawn: int = 8,
    n_answers: int = 8,
    vocab_size: int = 40,
    temperature: float = 2.0,
    noise_nats: float = 0.0,
    n_people: int = 4,
    seed: int = 0,
) -> xr.Dataset:
    """Comparison study in which people also continue the contexts freely, and every draw and answer is compared."""
    import xarray as xr  # noqa: PLC0415 - as in the simulation

    rng = np.random.default_rng(seed)
    logit = rng.normal(0.0, 2.0, (n_items, vocab_size))
    log_g = logit - np.logaddexp.reduce(logit, axis=1, keepdims=True)
    log_h = logit / temperature - np.logaddexp.reduce(logit / temperature, axis=1, keepdims=True)
    # Gumbel's way to draw tokens; targets are draws of the generator
    gumbel = rng.gumbel(size=(n_items, 1 + n_drawn + n_answers, vocab_size))
    target = (log_g + gumbel[:, 0]).argmax(axis=1)
    drawn = (log_g[:, None] + gumbel[:, 1 : 1 + n_drawn]).argmax(axis=2)
    answer = (log_h[:, None] + gumbel[:, 1 + n_drawn :]).argmax(axis=2)
    width = n_drawn + n_answers
    token, source = np.full((n_items, width), -1), np.full((n_items, width), "padding", dtype=object)
    answered = np.full(answer.shape, -1)
    token[:, :n_drawn], source[:, :n_drawn] = drawn, "generator"
    for q in range(n_items):
        new = np.setdiff1d(answer[q], [*drawn[q], target[q]])
        token[q, n_drawn : n_drawn + new.size], source[q, n_drawn : n_drawn + new.size] = new, "answer"
        for j in np.flatnonzero(answer[q] != target[q]):
            answered[q, j] = np.flatnonzero(token[q] == answer[q, j])[0]
    row, column = np.nonzero(token >= 0)
    at = np.arange(n_items)
    log_ratio = log_h[row, token[row, column]] - log_h[row, target[row]]
    log_ratio += np.where(token[row, column] == target[row], 0.0, noise_nats * rng.normal(size=row.size))
    names = np.array([f" t{i:02d}" for i in range(vocab_size)] + [""], dtype=object)
    dims, empty = ("item", "candidate"), token < 0
    people = np.array([f"p{i}" for i in range(n_people)], dtype=object)
    study = xr.Dataset(
        {
            "context": ("item", np.array([f"context {q}" for q in at], dtype=object)),
            "target_token": ("item", names[target]),
            "candidate_token": (dims, names[token]),
            "candidate_source": (dims, source),
            "candidate_batch": (dims, (source == "answer").astype(np.int64)),
            "target_logprob": (("model", "item"), log_g[at, target][None]),
            "candidate_logprob": (("model", *dims), np.where(empty, np.nan, log_g[at[:, None], token])[None]),
            "human_target_logprob": ("item", log_h[at, target]),
            "human_candidate_logprob": (dims, np.where(empty, np.nan, log_h[at[:, None], token])),
            "item_set": ("item", np.array(["asked"] * n_items, dtype=object)),
            "selected": ("item", np.ones(n_items, dtype=bool)),
            "in_reference": ("item", np.ones(n_items, dtype=bool)),
            "participant": ("response", people[np.arange(row.size) % n_people]),
            "response_item": ("response", row),
            "response_candidate": ("response", column),
            "report": ("response", report_from_log_ratio(log_ratio)),
            "automatic": ("response", token[row, column] == target[row]),
            "answer_item": ("answer", np.repeat(at, n_answers)),
            "answer_participant": ("answer", people[np.arange(answered.size) % n_people]),
            "answer_candidate": ("answer", answered.ravel()),
            "answer_batch": ("answer", np.ones(answered.size, dtype=np.int64)),
        },
        coords={"item": at, "model": np.array(["lm"], dtype=object)},
        attrs={"name": "answered freely", "generator": "lm"},
    )
    return validate_comparison_study(study)


@cache
def designed_study() -> xr.Dataset:
    """Comparison study of 8 items with 4 draws, 6 free answers and 12 comparisons each, on a slider."""
    language = simulate_language(SimulationSettings(n_items=8, n_reference_items=8, vocab_size=300))
    target = draw_tokens(language.true_logprob, 1, np.random.default_rng(0))[:, 0]
    return simulate_designed_study(
        language.player_logprob["lm-medium"],
        language.player_logprob[HUMAN],
        target,
        QuestionDesign(n_draws=4, n_answers=6, n_comparisons=12, n_participants=18, scale="slider"),
        ParticipantPopulation(),
        seed=0,
        tokens=language.vocabulary.tolist(),
    )


def repeated_study() -> xr.Dataset:
    """Simulate a study in which everybody compares two tokens of an item, one after the other."""
    language = simulate_language(SimulationSettings(n_items=40, n_reference_items=40, vocab_size=300))
    return simulate_designed_study(
        language.player_logprob["lm-medium"],
        language.player_logprob[HUMAN],
        draw_tokens(language.true_logprob, 1, np.random.default_rng(0))[:, 0],
        QuestionDesign(n_draws=8, n_answers=4, n_comparisons=12, n_comparisons_each=2, n_participants=20),
        ParticipantPopulation(),
        private_sd_nats=1.0,
        seed=0,
    )


def token_pool_example() -> TokenPool:
    """Draws, answers and reports of eight people on four items of three tokens."""
    known = known_contexts(np.log([[0.5, 0.3, 0.2]] * 4), np.log([[0.6, 0.2, 0.2]] * 4), [0, 1, 2, 0])
    return simulate_questions(
        known,
        np.arange(4),
        ParticipantPopulation(),
        n_people=8,
        n_draws=6,
        n_answers=6,
        n_comparisons=4,
        rng=np.random.default_rng(0),
    )
