"""A simulated comparison study: true distributions, players at stated losses, noisy participants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray
from shannon_game.estimators.comparison.simulation.language import (
    context_texts,
    divergence,
    draw_tokens,
    looked_up,
    simulate_language,
)
from shannon_game.estimators.comparison.simulation.participants import draw_participants, simulate_reports
from shannon_game.estimators.comparison.simulation.settings import LANGUAGE_MODELS, SimulationSettings, random_stream
from shannon_game.estimators.comparison.study import validate_comparison_study
from shannon_game.estimators.errors import check_memory
from shannon_game.estimators.layout import HUMAN, add_note


def simulate_comparison_study(settings: SimulationSettings | None = None) -> Dataset:
    """Simulate a comparison study, as a loader would give it, together with the truth.

    Returns
    -------
    xarray.Dataset
        Passes :func:`validate_comparison_study`. Items are labelled 0, 1, ...; the asked ones come first and have
        ``item_set`` "asked". The context is text drawn from the unigram base, for show. In addition:

        - ``human_target_logprob``, ``human_candidate_logprob``: the participants' shared belief h, nats;
        - ``kl_nats``, ``human_kl_nats``: KL(player || generator), nats;
        - ``true_bias``, ``true_slope``, ``true_noise``, ``true_lapse`` (participant_truth);
        - attributes ``settings`` and ``truth``: the settings as JSON; JSON with ``entropy_nats`` and
          ``expected_loss_nats`` of every player, means over all items of H(T) and of H(T) + KL(T || player).

    Examples
    --------
    >>> settings = comparison.SimulationSettings(n_items=6, n_reference_items=8, n_candidates=12, vocab_size=50)
    >>> study = comparison.simulate_comparison_study(settings)
    >>> dict(study.sizes)
    {'item': 8, 'candidate': 12, 'model': 3, 'response': 174, 'participant_truth': 29}
    """
    import xarray as xr  # noqa: PLC0415  (an import of estimators needs NumPy and SciPy only)

    settings = SimulationSettings() if settings is None else settings
    field = "vocab_size" if settings.vocab_size > settings.n_reference_items else "n_reference_items"
    cells = settings.n_reference_items * (settings.vocab_size + 2 * settings.n_candidates)
    # four players' log-probabilities and what they are made of, four bytes each
    check_memory(40 * cells + 16 * settings.n_participants * settings.n_items, source="simulation", field=field)
    items = simulate_items(settings)
    seed, n_asked, n_items = settings.seed, settings.n_items, settings.n_reference_items

    people = draw_participants(settings.participants, settings.n_participants, seed)
    names = participant_names(settings.n_participants)
    order = random_stream(settings.seed, "shown").permutation(settings.n_candidates)
    shown = np.resize(order, settings.n_participants)
    log_odds = (items.target_logprob[HUMAN][:n_asked, None] - items.candidate_logprob[HUMAN][:n_asked])[:, shown].T
    same = items.same[:n_asked][:, shown].T
    report = np.empty(log_odds.shape)
    for person in range(settings.n_participants):
        report[person] = simulate_reports(
            log_odds[person],
            rng=random_stream(seed, "participant", person, 1),
            bias=people.bias[person],
            slope=people.slope[person],
            noise_sd=people.noise_sd[person],
            lapse_rate=people.lapse_rate[person],
            automatic=same[person],
            rounding=settings.rounding,
        )

    study = xr.Dataset(
        {
            "context": ("item", items.context),
            "target_token": ("item", items.target_token),
            "candidate_token": (("item", "candidate"), items.candidate_token),
            "target_logprob": (("model", "item"), _by_model(items.target_logprob)),
            "candidate_logprob": (("model", "item", "candidate"), _by_model(items.candidate_logprob)),
            "item_set": ("item", np.where(np.arange(n_items) < n_asked, "asked", "")),
            "selected": ("item", np.ones(n_items, dtype=bool)),
            "in_reference": ("item", np.ones(n_items, dtype=bool)),
            "participant": ("response", np.repeat(names, n_asked)),
            "response_item": ("response", np.tile(np.arange(n_asked), len(names))),
            "response_candidate": ("response", np.repeat(shown, n_asked)),
            "report": ("response", report.ravel()),
            "automatic": ("response", same.ravel()),
            "human_target_logprob": ("item", items.target_logprob[HUMAN]),
            "human_candidate_logprob": (("item", "candidate"), items.candidate_logprob[HUMAN]),
            "kl_nats": (("model", "item"), _by_model(items.kl_nats)),
            "human_kl_nats": ("item", items.kl_nats[HUMAN]),
            "true_bias": ("participant_truth", people.bias),
            "true_slope": ("participant_truth", people.slope),
            "true_noise": ("participant_truth", people.noise_sd),
            "true_lapse": ("participant_truth", people.lapse_rate),
        },
        coords={"item": np.arange(n_items), "model": np.asarray(LANGUAGE_MODELS), "participant_truth": names},
        attrs={"name": "simulated", "generator": settings.generator, "seed": seed, "settings": settings.to_json()},
    )
    if settings.store_reference:
        study["reference_logprob"] = (("item", "token"), items.reference_logprob)
        study = study.assign_coords(token=items.vocabulary)
    losses = {player: round(settings.entropy_nats + excess, 12) for player, excess in settings.excess_nats.items()}
    study.attrs["truth"] = json.dumps({"entropy_nats": settings.entropy_nats, "expected_loss_nats": losses})
    add_note(study, f"simulated with seed {seed}: items, of which the first {n_asked} are asked", count=n_items)
    add_note(study, "responses, every participant answering every asked item", count=report.size)
    add_note(study, "answers that were automatic because the candidate was the target", count=int(same.sum()))
    return validate_comparison_study(study)


def _by_model(found: Mapping[str, FloatArray]) -> FloatArray:
    return np.stack([found[model] for model in LANGUAGE_MODELS])


def participant_names(n: int) -> NDArray[np.str_]:
    """Names of simulated participants."""
    return np.asarray([f"p{person:03d}" for person in range(n)])


@dataclass(frozen=True)
class SimulatedItems:
    """What is drawn before anybody is asked."""

    context: NDArray[np.str_]
    target_token: NDArray[np.str_]
    candidate_token: NDArray[np.str_]
    target_logprob: Mapping[str, FloatArray]
    candidate_logprob: Mapping[str, FloatArray]
    kl_nats: Mapping[str, FloatArray]
    same: BoolArray
    reference_logprob: NDArray[np.float32] | None = None
    vocabulary: NDArray[np.str_] | None = None


def simulate_items(settings: SimulationSettings) -> SimulatedItems:
    """Draw targets and candidates from a simulated language and look up what every player gives to them."""
    language = simulate_language(settings)
    seed = settings.seed
    generator = language.player_logprob[settings.generator]
    target = draw_tokens(language.true_logprob, 1, random_stream(seed, "target"))
    candidate = draw_tokens(generator, settings.n_candidates, random_stream(seed, "candidate"))
    found = {player: looked_up(logprob, target, candidate) for player, logprob in language.player_logprob.items()}
    return SimulatedItems(
        context=context_texts(language, settings.n_reference_items, random_stream(seed, "context")),
        target_token=language.vocabulary[target[:, 0]],
        candidate_token=language.vocabulary[candidate],
        target_logprob={player: pair[0] for player, pair in found.items()},
        candidate_logprob={player: pair[1] for player, pair in found.items()},
        kl_nats={player: divergence(logprob, generator) for player, logprob in language.player_logprob.items()},
        same=candidate == target,
        reference_logprob=np.minimum(generator, 0) if settings.store_reference else None,
        vocabulary=language.vocabulary if settings.store_reference else None,
    )
