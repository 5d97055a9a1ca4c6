"""Comparison studies of any design, with known truth: draws, free answers, comparisons, stepping stones.

What people believe and report is :mod:`estimators.comparison.simulation.players`'s, what they are asked next
:mod:`estimators.comparison.simulation.questions`'s, the arrays of the study
:mod:`estimators.comparison.simulation.designed`'s.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.comparison.rounding import RoundingScheme, rounding_scheme
from estimators.comparison.simulation.designed import designed_study
from estimators.comparison.simulation.players import Players, draw_players
from estimators.comparison.simulation.settings import (
    ParticipantPopulation,
    check_count,
    check_number,
    check_switch,
)
from estimators.errors import InputError, unknown_choice

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Player", "QuestionDesign", "simulate_designed_study"]

FloatArray = NDArray[Any]
IntArray = NDArray[np.intp]
Player = Literal["belief", "equation_6"]

_MASS_TOLERANCE = 1e-3  # of the probabilities of 50,000 tokens in single precision
_SLACK_NATS = 1e-6  # float32 softmax can round a probability to a hair above one


@dataclass(frozen=True)
class QuestionDesign:
    """What people are asked about each item, and how they may answer.

    Parameters
    ----------
    n_draws : int
        Independent draws of the generator an item, repeats kept.
    n_answers : int
        Free answers an item, each by another participant.
    n_batches : int
        Batches of free answers, of equal sizes as far as possible.
    n_comparisons : int
        Comparisons an item, each by another participant.
    scale : RoundingScheme or str
        Values that can be reported: a scheme, or a name in :data:`~estimators.comparison.rounding.SCHEMES`.
    n_participants : int
    chains : bool
        Whether stepping stones are asked about where most tokens lie beyond an end of the scale.
    n_stones : int
        Stepping stones an item at most, independent draws of a distribution proportional to the square root of the
        generator's.

    Raises
    ------
    InputError
        Names the field, its value and what would be right.

    Examples
    --------
    >>> from estimators import comparison
    >>> comparison.QuestionDesign(n_answers=0, scale="interface").n_comparisons
    12
    """

    n_draws: int = 6
    n_answers: int = 8
    n_batches: int = 1
    n_comparisons: int = 12
    scale: RoundingScheme | str = "slider"
    n_participants: int = 29
    chains: bool = False
    n_stones: int = 3

    def __post_init__(self) -> None:
        source = "question design"
        for name in ("n_draws", "n_batches", "n_comparisons", "n_participants"):
            check_count(name, getattr(self, name), source, at_least=1)
        for name in ("n_answers", "n_stones"):
            check_count(name, getattr(self, name), source, at_least=0)
        check_switch("chains", self.chains, source)
        for name in ("n_answers", "n_comparisons"):
            if getattr(self, name) > self.n_participants:
                raise InputError(
                    f"is {getattr(self, name)}, should be at most n_participants ({self.n_participants}): "
                    "each is another participant's",
                    source=source,
                    field=name,
                )
        if self.n_batches > max(self.n_answers, 1):
            raise InputError(
                f"is {self.n_batches}, should be at most n_answers ({self.n_answers})", source=source, field="n_batches"
            )
        scheme = rounding_scheme(self.scale)
        if self.chains and len(scheme.values) == 2:
            raise InputError(
                f"is {scheme.name!r}, whose two values are both ends; chains need a scale with values between them",
                source=source,
                field="scale",
            )

    def to_json(self) -> str:
        """Write the design as one JSON object; a scheme of one's own as an object in it."""
        scale = self.scale if isinstance(self.scale, str) else asdict(self.scale)
        return json.dumps({**{name: getattr(self, name) for name in self.__dataclass_fields__}, "scale": scale})


def simulate_designed_study(
    generator_logprob: ArrayLike,
    belief_logprob: ArrayLike,
    target: ArrayLike,
    design: QuestionDesign,
    people: ParticipantPopulation,
    *,
    seed: int,
    tokens: Sequence[str] | None = None,
    answer_exponent: float = 1.0,
    private_sd_nats: float = 0.0,
    bots: float = 0.0,
    player: Player = "belief",
    posterior_weight: float = 1.0,
) -> xr.Dataset:
    r"""Simulate a comparison study of a given design, by people whose belief is given.

    Each participant is asked at most one comparison of an item, and others answer it freely as far as there are
    enough people. An item's distinct tokens other than the target come in random order, and again until
    ``n_comparisons`` are asked. Participant u reports of candidate x and reference b (the target y, or a stone)

    .. math:: \mathrm{logit}\, r = k_u \left(\ln \frac{h_u(b)}{h_u(x)} + \lambda \ln \frac{g(b)}{g(x)} + \mathrm{bias}_u
              \right) + \mathrm{Normal}(0, \mathrm{noise}_u)

    or lapses, rounded to the scale; :math:`\lambda` is zero for ``belief`` and `posterior_weight` for ``equation_6``.

    Parameters
    ----------
    generator_logprob, belief_logprob : array_like, shape (item, vocab)
        ln g and ln h of every token, nats: finite and normalised.
    target : array_like of int, shape (item,)
        The item's target, a position along vocab.
    design : QuestionDesign
    people : ParticipantPopulation
    seed : int
    tokens : sequence of str, length vocab, optional
        Their strings; by default " t0", " t1", ...
    answer_exponent : float
        Free answers are drawn with probabilities proportional to h^answer_exponent: 3 is near the mode, .5 flatter.
    private_sd_nats : float
        Each participant believes ln h + Normal(0, private_sd_nats) of each token, fixed within participant and item.
    bots : float
        Share of the participants who answer anything: any token, .5 or any value of the scale.
    player : {"belief", "equation_6"}
        Whether people report their belief's h(b) / (h(b) + h(x)), or the posterior probability that b is the true
        token and x a draw of the generator.
    posterior_weight : float
        Of ``equation_6``: 1 is the best report under the plain logarithmic score, 0 that under the proper one.

    Returns
    -------
    xarray.Dataset
        Passes :func:`~estimators.comparison.study.validate_comparison_study`. In addition to the study's own
        variables: ``human_target_logprob``, ``human_candidate_logprob``, ``human_kl_nats`` of the shared belief;
        ``true_bias``, ``true_slope``, ``true_noise``, ``true_lapse`` and ``true_bot``, dim ``participant_truth``;
        attribute ``design``, JSON. Stones have the source "proposal" and are candidates after the last batch.

    Raises
    ------
    InputError
        Names the argument, its value and what would be right.

    Notes
    -----
    Whether a stone is asked about depends on earlier reports of the item, so that stones are independent draws of
    their proposal given the number of them, and that number depends on the reports.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators import comparison
    >>> logit = np.random.default_rng(0).normal(0, 2, (5, 40))
    >>> log_g = logit - np.logaddexp.reduce(logit, axis=1, keepdims=True)
    >>> design = comparison.QuestionDesign(n_draws=4, n_answers=3, n_comparisons=5, n_participants=9)
    >>> people = comparison.ParticipantPopulation()
    >>> study = comparison.simulate_designed_study(log_g, log_g, np.zeros(5, int), design, people, seed=0)
    >>> study.sizes["response"], study.sizes["answer"]
    (25, 15)
    """
    log_g, log_h, y = _checked_arrays(generator_logprob, belief_logprob, target)
    source = "designed study"
    for name, value, kind in (("design", design, QuestionDesign), ("people", people, ParticipantPopulation)):
        if not isinstance(value, kind):
            raise InputError(f"is {value!r}, should be a {kind.__name__}", source=source, field=name)
    if tokens is not None and len(tokens) != log_g.shape[1]:
        raise InputError(
            f"has {len(tokens)} entries, should have one a token ({log_g.shape[1]})", source=source, field="tokens"
        )
    if player not in get_args(Player):
        raise unknown_choice("player", player, get_args(Player), source=source)
    check_count("seed", seed, source, at_least=0)
    check_number("answer_exponent", answer_exponent, source, above=0.0)
    check_number("private_sd_nats", private_sd_nats, source, at_least=0.0)
    check_number("bots", bots, source, at_least=0.0, at_most=1.0)
    check_number("posterior_weight", posterior_weight, source)
    players: Players = draw_players(
        people,
        design.n_participants,
        log_h,
        log_g,
        bots=bots,
        private_sd_nats=private_sd_nats,
        posterior_weight=posterior_weight if player == "equation_6" else 0.0,
        seed=seed,
    )
    study = designed_study(players, y, design, answer_exponent=answer_exponent, tokens=tokens)
    study.attrs["design"] = design.to_json()
    return study


def _checked_arrays(
    generator_logprob: ArrayLike, belief_logprob: ArrayLike, target: ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Arrays of the right shapes and ranges; single precision stays single."""
    source = "designed study"
    log_g, log_h, y = np.asarray(generator_logprob), np.asarray(belief_logprob), np.asarray(target)
    for name, value in (("generator_logprob", log_g), ("belief_logprob", log_h)):
        if value.dtype.kind != "f" or value.ndim != 2 or value.shape != log_g.shape or 0 in value.shape:
            raise InputError(
                f"has dtype {value.dtype} and shape {value.shape}; both should be floats of one shape (item, vocab)",
                source=source,
                field=name,
            )
        bad = ~np.isfinite(value) | (value > _SLACK_NATS)
        if bad.any():
            raise InputError(
                f"is {value[bad][0]} ({int(bad.sum())} such), should be finite and at most 0: whatever one of both may "
                "say has a probability under the other",
                source=source,
                field=name,
            )
        mass = np.exp(value).sum(axis=1, dtype=float)
        if np.abs(mass - 1).max() > _MASS_TOLERANCE:
            item = int(np.abs(mass - 1).argmax())
            raise InputError(f"sums to {mass[item]:g} at item {item}, should sum to 1", source=source, field=name)
    if y.dtype.kind not in "iu" or y.shape != log_g.shape[:1]:
        raise InputError(
            f"has dtype {y.dtype} and shape {y.shape}, should be integers of shape (item,) = {log_g.shape[:1]}",
            source=source,
            field="target",
        )
    outside = (y < 0) | (y >= log_g.shape[1])
    if outside.any():
        raise InputError(
            f"is {y[outside][0]}, should be 0 to {log_g.shape[1] - 1}, a position along vocab",
            source=source,
            field="target",
        )
    return log_g, log_h, y.astype(np.intp)
