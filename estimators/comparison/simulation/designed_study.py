"""Comparison studies of any design, with known truth: draws, free answers, comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import Dataset, IntArray
from shannon_game.estimators.checks import check_numbers, check_switches
from shannon_game.estimators.comparison.simulation.language import divergence, looked_up
from shannon_game.estimators.comparison.simulation.players import (
    NO_TOKEN,
    Asked,
    Cells,
    Mixture,
    Players,
    ask_comparisons,
    candidate_cells,
    draw_players,
    own_losses,
    who_is_asked,
)
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, QuestionDesign
from shannon_game.estimators.comparison.simulation.study import participant_names
from shannon_game.estimators.comparison.study import validate_comparison_study
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import add_note

FloatArray = NDArray[Any]
Player = Literal["belief", "equation_6"]

_MASS_TOLERANCE = 1e-3  # of the probabilities of 50,000 tokens in single precision
_SOURCE = "designed study"
_SLACK_NATS = 1e-6  # float32 softmax can round a probability to a hair above one


def simulate_designed_study(
    generator_logprob: ArrayLike,
    belief_logprob: ArrayLike,
    target: ArrayLike,
    design: QuestionDesign,
    people: ParticipantPopulation,
    *,
    seed: int,
    belief_weights: ArrayLike | None = None,
    tokens: Sequence[str] | None = None,
    answer_exponent: float = 1.0,
    private_sd_nats: float = 0.0,
    bots: float = 0.0,
    player: Player = "belief",
    posterior_weight: float = 1.0,
    store_reference: bool = True,
) -> Dataset:
    r"""Simulate a comparison study of a given design, by people whose belief is given.

    Each participant is asked at most one comparison of an item, and others answer it freely as far as there are
    enough people. An item's distinct tokens other than the target come in random order, and again until
    ``n_comparisons`` are asked. Participant u reports of candidate x and target y

    .. math:: \mathrm{logit}\, r = k_u \left(\ln \frac{h_u(y)}{h_u(x)} + \lambda \ln \frac{g(x)}{g(y)} + \mathrm{bias}_u
              \right) + \mathrm{Normal}(0, \mathrm{noise}_u)

    or lapses, rounded to the scale; :math:`\lambda` is zero for ``belief`` and `posterior_weight` for ``equation_6``.

    Parameters
    ----------
    generator_logprob, belief_logprob : array_like, shape (item, vocab)
        ln g and ln h of every token, nats: finite and normalised. With `belief_weights` the belief has shape
        (component, item, vocab).
    target : array_like of int, shape (item,)
        Position along vocab, whose strings are `tokens`, by default " t0", " t1", ...
    belief_weights : array_like, shape (participant, component), optional
        Each participant believes, answers and reports a mixture of the components with these weights. The shared
        belief is the mixture with the mean weights.
    answer_exponent : float
        Free answers are drawn with probabilities proportional to h^answer_exponent: 3 is near the mode, .5 flatter.
    private_sd_nats : float
        Each participant believes ln h + Normal(0, private_sd_nats) of each token, fixed within participant and item.
    bots : float
        Share of the participants who answer anything: any token, .5 or any value of the scale.
    player : {"belief", "equation_6"}
        Whether people report h(y) / (h(y) + h(x)), or the posterior probability that y is the true token.
    posterior_weight : float
        Of ``equation_6``: 1 is the best report under the plain logarithmic score, 0 that under the proper one.
    store_reference : bool
        Also store the generator's whole distribution.

    Returns
    -------
    xarray.Dataset
        With ``human_target_logprob``, ``human_candidate_logprob``, ``human_kl_nats`` of the shared belief; the people's
        ``true_bias``, ``true_slope``, ``true_noise``, ``true_lapse``, ``true_bot`` (participant_truth); and where
        beliefs differ ``human_mean_loss_nats`` (item), the mean over participants of -ln h_u(y).

    Examples
    --------
    >>> logit = np.random.default_rng(0).normal(0, 2, (5, 40))
    >>> log_g = logit - np.logaddexp.reduce(logit, axis=1, keepdims=True)
    >>> design = comparison.QuestionDesign(n_draws=4, n_answers=3, n_comparisons=5, n_participants=9)
    >>> people = comparison.ParticipantPopulation()
    >>> study = comparison.simulate_designed_study(log_g, log_g, np.zeros(5, int), design, people, seed=0)
    >>> study.sizes["response"], study.sizes["answer"]
    (25, 15)
    """
    for name, value, kind in (("design", design, QuestionDesign), ("people", people, ParticipantPopulation)):
        if not isinstance(value, kind):
            raise InputError(f"is {value!r}, should be a {kind.__name__}", source=_SOURCE, field=name)
    mixture = None if belief_weights is None else _mixture(belief_logprob, belief_weights, design.n_participants)
    belief = belief_logprob if mixture is None else mixture.shared()
    log_g, log_h, y = _checked_arrays(generator_logprob, belief, target)
    if tokens is not None and len(tokens) != log_g.shape[1]:
        problem = f"has {len(tokens)} entries, should have one a token ({log_g.shape[1]})"
        raise InputError(problem, source=_SOURCE, field="tokens")
    if player not in get_args(Player):
        raise unknown_choice("player", player, get_args(Player), source=_SOURCE)
    check_numbers({"seed": seed}, _SOURCE, whole=True, at_least=0)
    check_numbers({"answer_exponent": answer_exponent}, _SOURCE, above=0)
    check_numbers({"private_sd_nats": private_sd_nats}, _SOURCE, at_least=0)
    check_numbers({"bots": bots}, _SOURCE, at_least=0, at_most=1)
    check_numbers({"posterior_weight": posterior_weight}, _SOURCE)
    check_switches({"store_reference": store_reference}, _SOURCE)
    players = draw_players(
        people,
        design.n_participants,
        log_h,
        log_g,
        bots=bots,
        private_sd_nats=private_sd_nats,
        posterior_weight=posterior_weight if player == "equation_6" else 0.0,
        seed=seed,
        mixture=mixture,
    )
    answering, comparing = who_is_asked(design, y.size, seed)
    cells = candidate_cells(players, y, design, answering, answer_exponent)
    asked = ask_comparisons(players, y, design, cells, comparing)
    names = np.array([f" t{x}" for x in range(log_g.shape[1])] if tokens is None else list(tokens), dtype=object)
    study = _dataset(players, y, cells, asked, answering=answering, tokens=names)
    if store_reference:
        study["reference_logprob"] = (("item", "token"), np.minimum(log_g, 0))
        study = study.assign_coords(token=names)
    study.attrs |= {"seed": seed, "design": design.to_json(), "true_private_variance_nats2": private_sd_nats**2}
    return validate_comparison_study(study)


def _dataset(
    players: Players, target: IntArray, cells: Cells, asked: Asked, *, answering: IntArray, tokens: NDArray[np.object_]
) -> Dataset:
    import xarray as xr  # noqa: PLC0415  (an import of estimators needs NumPy and SciPy only)

    n_items, n_people = target.size, players.bot.size
    at, names, dims = np.arange(n_items), participant_names(n_people), ("item", "candidate")
    empty = cells.token == NO_TOKEN
    shown = np.where(empty, target[:, None], cells.token)  # any token, for cells that are emptied below

    def of(logprob: FloatArray) -> tuple[FloatArray, FloatArray]:
        target_logprob, candidate_logprob = looked_up(logprob, target[:, None], shown)
        return target_logprob, np.where(empty, np.nan, candidate_logprob)

    g_target, g_candidate = of(players.generator)
    h_target, h_candidate = of(players.belief)
    strings = tokens[np.concatenate([target, shown.ravel()])]
    study = xr.Dataset(
        {
            "context": ("item", np.array([f"context {q}" for q in at], dtype=object)),
            "target_token": ("item", strings[:n_items]),
            "candidate_token": (dims, np.where(empty, "", strings[n_items:].reshape(shown.shape))),
            "candidate_source": (dims, cells.source),
            "target_logprob": (("model", "item"), g_target[None]),
            "candidate_logprob": (("model", *dims), g_candidate[None]),
            "human_target_logprob": ("item", h_target),
            "human_candidate_logprob": (dims, h_candidate),
            "human_kl_nats": ("item", divergence(players.belief, players.generator)),
            "item_set": ("item", np.full(n_items, "asked", dtype=object)),
            "selected": ("item", np.ones(n_items, dtype=bool)),
            "in_reference": ("item", np.ones(n_items, dtype=bool)),
            "participant": ("response", names[asked.participant]),
            "response_item": ("response", asked.item),
            "response_candidate": ("response", asked.candidate),
            "report": ("response", asked.report),
            "automatic": ("response", np.zeros(asked.item.size, dtype=bool)),
            "true_bias": ("participant_truth", players.people.bias),
            "true_slope": ("participant_truth", players.people.slope),
            "true_noise": ("participant_truth", players.people.noise_sd),
            "true_lapse": ("participant_truth", players.people.lapse_rate),
            "true_bot": ("participant_truth", players.bot),
        },
        coords={"item": at, "model": np.array(["generator"], dtype=object), "participant_truth": names},
        attrs={"name": "designed", "generator": "generator"},
    )
    if players.mixture is not None or players.private_sd_nats > 0:
        study["human_mean_loss_nats"] = ("item", own_losses(players, target).mean(axis=0), {"units": "nats"})
    if answering.size:
        study["candidate_batch"] = (dims, cells.batch)
        study["answer_item"] = ("answer", np.repeat(at, answering.shape[1]))
        study["answer_participant"] = ("answer", names[answering.ravel()])
        study["answer_candidate"] = ("answer", cells.answer_cell.ravel())
        study["answer_batch"] = ("answer", np.tile(cells.answer_batch, n_items))
    add_note(study, "simulated: items, all asked", count=n_items)
    add_note(study, "comparisons", count=asked.item.size)
    add_note(study, "free answers", count=answering.size)
    add_note(study, "participants who answer anything", count=int(players.bot.sum()))
    return study


def _mixture(components: ArrayLike, belief_weights: ArrayLike, n_participants: int) -> Mixture:
    """Components and weights that fit each other; each component is a distribution."""
    logprob, weights = np.asarray(components), np.asarray(belief_weights, dtype=float)
    if logprob.dtype.kind != "f" or logprob.ndim != 3 or 0 in logprob.shape:
        right = "with belief_weights it should be floats of shape (component, item, vocab)"
        problem = f"has dtype {logprob.dtype} and shape {logprob.shape}; {right}"
        raise InputError(problem, source=_SOURCE, field="belief_logprob")
    if weights.shape != (n_participants, len(logprob)):
        problem = f"has shape {weights.shape}, should be (participant, component) = {(n_participants, len(logprob))}"
        raise InputError(problem, source=_SOURCE, field="belief_weights")
    if not ((weights >= 0).all() and np.allclose(weights.sum(axis=1), 1, atol=_SLACK_NATS)):
        problem = "should be at least 0 and sum to 1 for each participant"
        raise InputError(problem, source=_SOURCE, field="belief_weights")
    for part in logprob:
        _check_logprob("belief_logprob", part)
    return Mixture(logprob, weights)


def _checked_arrays(
    generator_logprob: ArrayLike, belief_logprob: ArrayLike, target: ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Arrays of the right shapes and ranges; single precision stays single."""
    log_g, log_h, y = np.asarray(generator_logprob), np.asarray(belief_logprob), np.asarray(target)
    for name, value in (("generator_logprob", log_g), ("belief_logprob", log_h)):
        if value.dtype.kind != "f" or value.ndim != 2 or value.shape != log_g.shape or 0 in value.shape:
            problem = f"has dtype {value.dtype} and shape {value.shape}; should be floats of shape (item, vocab)"
            raise InputError(problem, source=_SOURCE, field=name)
        _check_logprob(name, value)
    if y.dtype.kind not in "iu" or y.shape != log_g.shape[:1]:
        problem = f"has dtype {y.dtype} and shape {y.shape}, should be integers of shape (item,) = {log_g.shape[:1]}"
        raise InputError(problem, source=_SOURCE, field="target")
    outside = (y < 0) | (y >= log_g.shape[1])
    if outside.any():
        problem = f"is {y[outside][0]}, should be 0 to {log_g.shape[1] - 1}, a position along vocab"
        raise InputError(problem, source=_SOURCE, field="target")
    return log_g, log_h, y.astype(np.intp)


def _check_logprob(name: str, value: FloatArray) -> None:
    """Refuse what is not finite and normalised, (item, vocab)."""
    bad = ~np.isfinite(value) | (value > _SLACK_NATS)
    if bad.any():
        problem = f"is {value[bad][0]} ({int(bad.sum())} such), should be finite and at most 0"
        raise InputError(problem, source=_SOURCE, field=name)
    mass = np.exp(value).sum(axis=1, dtype=float)
    if np.abs(mass - 1).max() > _MASS_TOLERANCE:
        item = int(np.abs(mass - 1).argmax())
        raise InputError(f"sums to {mass[item]:g} at item {item}, should sum to 1", source=_SOURCE, field=name)
