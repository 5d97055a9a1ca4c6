"""Small comparison studies for tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison import report_from_log_ratio, validate_comparison_study


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


def players(rng: np.random.Generator, n_items: int = 100, size: int = 1500) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Items of a language with a long tail: the generator, and the people as in docs' table (ln g, ln h)."""
    unigram = -1.2 * np.log(np.arange(1, size + 1))
    logit = unigram + rng.normal(0, 4.0, (n_items, size))
    log_g = logit - np.logaddexp.reduce(logit, axis=1, keepdims=True)
    hot = log_g / 2 - np.logaddexp.reduce(log_g / 2, axis=1, keepdims=True)
    cold = log_g / 0.7 - np.logaddexp.reduce(log_g / 0.7, axis=1, keepdims=True)
    base = unigram - np.logaddexp.reduce(unigram)
    mixed = np.logaddexp(np.log(0.6) + log_g, np.log(0.4) + base)
    return {"hot2": (log_g, hot), "cold.7": (log_g, cold), "mixuni": (log_g, mixed)}


def draws(log_p: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Tokens (item, n) drawn from rows of log-probabilities."""
    cumulative = np.exp(log_p).cumsum(axis=1)
    return np.stack([np.searchsorted(row / row[-1], rng.random(n)) for row in cumulative])


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
