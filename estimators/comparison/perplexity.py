r"""Human perplexity by importance sampling (Shlegeris et al. 2022, section 4).

Nobody can state h(y|c), but a report gives the ratio h(x|c)/h(y|c). With candidates *x* drawn from a generator *g*

.. math::

    \frac{1}{h(y|c)} = \sum_x \frac{h(x|c)}{h(y|c)}
    = E_{x \sim g}\!\left[\frac{1}{g(x|c)} \frac{h(x|c)}{h(y|c)}\right]

so that the mean over items of the log of the sample mean estimates the loss (eq. 3, ``naive``). Multiplying every term
by g(y|c) estimates the loss gap to the generator instead (eqs. 4-5, ``importance``), whose items vary far less:

.. math:: L_h - L_G \approx \frac1N \sum_q \ln \frac1{n_q} \sum_j w_{qj}, \qquad
          w = \frac{g(y|c)}{g(x|c)} \frac{h(x|c)}{h(y|c)}

and :math:`\exp(\mathrm{gap} + L_G)` is the perplexity, with L_G known from as many items as one likes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.comparison.gap import LossGap, estimate_gap
from shannon_game.estimators.comparison.importance import study_proposals
from shannon_game.estimators.comparison.item_terms import ItemTerms
from shannon_game.estimators.comparison.log_means import LogMeans
from shannon_game.estimators.comparison.rounding import RoundingScheme, rounding_scheme
from shannon_game.estimators.comparison.study import COMPARISON
from shannon_game.estimators.comparison.terms import control_model, log_terms, player_logprobs, response_pairs
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import HUMAN, item_labels
from shannon_game.estimators.perplexity import perplexity_of_loss

Uncertainty = Literal["items", "samples"]
Reference = Literal["reference", "asked"]


@dataclass(frozen=True, eq=False, repr=False)
class PerplexityEstimate(Result):
    """Perplexity of one player under one rounding, with the interval and the truth where it is known.

    Attributes
    ----------
    reference_loss_nats : float
        L_G, nats per token.
    perplexity, perplexity_lower, perplexity_upper : float
        exp(gap + L_G) and exp(gap + L_G -+ z se), none below 1. The gap is not cut.
    true_loss_nats, true_gap_nats : float
        Exact loss on the reference items and exact gap on the items asked; NaN where probabilities are unknown.
    """

    player: str
    rounding: str
    gap: LossGap
    reference_loss_nats: float
    perplexity: float
    perplexity_lower: float
    perplexity_upper: float
    true_loss_nats: float
    true_gap_nats: float


def estimate_perplexity(
    study: Dataset,
    player: str = HUMAN,
    *,
    rounding: RoundingScheme | str = "none",
    estimator: str | Callable[[ItemTerms], LogMeans] = "importance",
    generator: str | None = None,
    control_only: bool = False,
    uncertainty: Uncertainty = "items",
    interval: float = 0.9,
    reference: Reference = "reference",
) -> PerplexityEstimate:
    r"""Perplexity of a player on a comparison study.

    .. math:: \mathrm{PPL} = \exp(\mathrm{gap} + L_G), \quad \exp(\mathrm{gap} + L_G \pm z\, \mathrm{se})

    Parameters
    ----------
    player : str
        ``human`` or a model of the study.
    rounding : RoundingScheme or str
        Applied to the player's reports.
    estimator : str or callable
        See :func:`estimate_gap`.
    generator, control_only
        See :func:`control_model`.
    uncertainty : {"items", "samples"}
        Standard error of the interval: source (i), the bars of the paper's figures, which contains source (ii), or
        (ii).
    interval : float
        Probability inside the interval, which is normal: its z is 1.645 for 0.9, 2 for the paper's bars of 0.954.
    reference : {"reference", "asked"}
        Items over which L_G (and the true loss) is averaged. ``naive`` estimates the loss itself, of the items asked.

    Examples
    --------
    >>> found = comparison.estimate_perplexity(comparison.examples.comparison_study(), "lm-strong")
    >>> round(found.perplexity, 2), round(found.gap.gap_nats, 3)
    (10.88, -0.271)
    """
    study = COMPARISON.read(study)
    if uncertainty not in get_args(Uncertainty):
        raise unknown_choice("uncertainty", uncertainty, get_args(Uncertainty))
    if reference not in get_args(Reference):
        raise unknown_choice("reference", reference, get_args(Reference))
    check_numbers({"interval": interval}, above=0, below=1)
    control = control_model(study, generator, control_only=control_only)
    gap = _gap(study, player, rounding, estimator, control)
    asked = np.isin(study["item"].values, gap.item)
    by_label = np.argsort(study["item"].values, kind="stable")
    gap = replace(gap, item=item_labels(study)[by_label][asked[by_label]])
    where = _reference_items(study, "asked" if estimator == "naive" else reference, asked)
    base = true_loss(study, control, where)
    half_width = NormalDist().inv_cdf((1 + interval) / 2) * (
        gap.se_items_nats if uncertainty == "items" else gap.se_samples_nats
    )
    loss = gap.gap_nats + base
    return PerplexityEstimate(
        player=player,
        rounding=rounding_scheme(rounding).name,
        gap=gap,
        reference_loss_nats=base,
        perplexity=perplexity_of_loss(loss),
        perplexity_lower=perplexity_of_loss(loss - half_width),
        perplexity_upper=perplexity_of_loss(loss + half_width),
        true_loss_nats=true_loss(study, player, where),
        true_gap_nats=true_loss(study, player, asked) - true_loss(study, control, asked),
    )


def _gap(
    study: Dataset,
    player: str,
    rounding: RoundingScheme | str,
    estimator: str | Callable[[ItemTerms], LogMeans],
    control: str,
) -> LossGap:
    pairs = response_pairs(study, control=control)
    if estimator == "rao_blackwell" and (study_proposals(study).source > 0).any():
        problem = "needs candidates that are i.i.d. draws from the generator, all of them"
        raise InputError(problem, source="estimator 'rao_blackwell'")
    return estimate_gap(
        log_terms(pairs, player, rounding),
        pairs.item,
        estimator=estimator,
        target_logprob=pairs.control_logprob,
        token=pairs.token if estimator == "rao_blackwell" else None,
        candidate_logprob=pairs.sampled_logprob,
        draw=pairs.draw,
    )


def true_loss(study: Dataset, player: str, items: NDArray[np.bool_]) -> float:
    """Exact loss of a player: mean of -ln q(y|c) over some items (a mask), nats; NaN where h(y|c) is unknown."""
    study = COMPARISON.read(study)
    target, _ = player_logprobs(study, player)
    return float("nan") if target is None else float(-target[items].mean())


def reference_loss(study: Dataset, control: str, reference: Reference, asked: NDArray[np.bool_]) -> float:
    """Compute L_G of a control (:func:`control_model`) over the reference items, or a mask of those asked."""
    study = COMPARISON.read(study)
    return true_loss(study, control, _reference_items(study, reference, asked))


def _reference_items(study: Dataset, reference: str, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if reference not in get_args(Reference):
        raise unknown_choice("reference", reference, get_args(Reference))
    items: NDArray[np.bool_] = study["in_reference"].values if reference == "reference" else asked
    if not items.any():
        raise InputError("is true for no item, so L_G is not defined", source="study", field="in_reference")
    return items
