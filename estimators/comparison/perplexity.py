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

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.comparison.diagnostics import WeightDiagnostics, pareto_khat, verdict
from estimators.comparison.log_means import (
    LOG_MEANS,
    ItemTerms,
    LogMeans,
    group_terms,
    leave_one_out_log_weights,
    plain_log_mean,
    rao_blackwell_log_mean,
)
from estimators.comparison.reports import log_ratio_from_report, report_from_log_ratio
from estimators.comparison.rounding import RoundingScheme, round_reports, rounding_scheme
from estimators.comparison.study import SAME_TOKEN_TOLERANCE_NATS
from estimators.errors import InputError, unknown_choice
from estimators.layout import HUMAN, response_positions

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "ESTIMATORS",
    "LossGap",
    "PerplexityEstimate",
    "ResponsePairs",
    "candidate_log_terms",
    "control_model",
    "diagnose_weights",
    "estimate_gap",
    "estimate_perplexity",
    "log_terms",
    "player_names",
    "reference_loss",
    "response_pairs",
    "subsample_responses",
    "true_loss",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Uncertainty = Literal["items", "samples"]
Reference = Literal["reference", "asked"]

_ROUNDING_NATS = 1e-9  # log-weights that differ by less are equal

ESTIMATORS = ("naive", *LOG_MEANS, "rao_blackwell")
"""Names of the estimators: ``naive`` is eq. 3, ``importance`` eqs. 4-5, the others replace its log-mean."""


@dataclass(frozen=True, eq=False)
class ResponsePairs:
    """The pairs (target, candidate) that participants were shown, one a response, sorted by item.

    In a study that nobody answered, built for language models alone, a player is shown every candidate of the items
    asked.

    Read once from a study, it gives the terms of any player under any rounding (:func:`log_terms`).

    Attributes
    ----------
    study : str
        Name of the study, for errors.
    models : tuple of str
    item, participant : ndarray of int, shape (response,)
        Label of the item; code of the participant (position of the candidate where there are no participants: the
        one that a participant sees on every item).
    report : ndarray, shape (response,)
        Probability that the participant gave to the target; NaN where there are no participants.
    model_log_ratio : ndarray, shape (model, response)
        ln q(x|c) - ln q(y|c) of every model, nats.
    sampled_logprob, control_logprob : ndarray, shape (response,)
        ln g(x|c) under the model that drew the candidates, ln g(y|c) under the control, nats.
    candidate : ndarray of object, shape (response,)
        Strings of the candidates.
    draw : ndarray of int, shape (response,)
        Position of the candidate among those drawn for its item; several participants can share one.
    """

    study: str
    models: tuple[str, ...]
    item: IntArray
    participant: IntArray
    report: FloatArray
    model_log_ratio: FloatArray
    sampled_logprob: FloatArray
    control_logprob: FloatArray
    candidate: NDArray[np.object_]
    draw: IntArray

    @cached_property
    def token(self) -> IntArray:
        """Code of every item's candidates: string and generator log-probability, as in ``comparison.same_token``."""
        strings: dict[object, int] = {}
        code = np.array([strings.setdefault(text, len(strings)) for text in self.candidate.tolist()], dtype=np.intp)
        order = np.lexsort((self.sampled_logprob, code, self.item))
        differs = [np.diff(self.item[order]) != 0, np.diff(code[order]) != 0]
        differs.append(np.diff(self.sampled_logprob[order]) > SAME_TOKEN_TOLERANCE_NATS)
        token = np.empty(code.size, dtype=np.intp)
        token[order] = np.concatenate([[0], np.cumsum(np.logical_or.reduce(differs))])
        return token


@dataclass(frozen=True, eq=False)
class LossGap:
    """Loss of a player minus the loss of the generator.

    Attributes
    ----------
    estimator : str
        One of :data:`ESTIMATORS`.
    gap_nats : float
        L_h - L_G, nats a token.
    se_items_nats : float
        Source (i): standard deviation (ddof 0) of the items' log-means over sqrt(N).
    se_samples_nats : float
        Source (ii): noise of the finite number of responses an item, items held fixed.
    n_items, n_responses : int
    item : ndarray, shape (item,)
        Labels of the items, sorted.
    item_gap_nats, item_n : ndarray, shape (item,)
        Log-mean and number of responses of every item.
    terms : ItemTerms
        What the estimate was made from.
    """

    estimator: str
    gap_nats: float
    se_items_nats: float
    se_samples_nats: float
    n_items: int
    n_responses: int
    item: NDArray[Any]
    item_gap_nats: FloatArray
    item_n: IntArray
    terms: ItemTerms = field(repr=False)

    @cached_property
    def diagnostics(self) -> WeightDiagnostics:
        """Whether n is enough; computed when first asked for."""
        return diagnose_weights(self.terms)


@dataclass(frozen=True, eq=False)
class PerplexityEstimate:
    """Perplexity of one player under one rounding, with the interval and the truth where it is known.

    Attributes
    ----------
    player, rounding : str
    gap : LossGap
    reference_loss_nats : float
        L_G, nats a token.
    perplexity, perplexity_lower, perplexity_upper : float
        exp(gap + L_G) and exp(gap + L_G -+ n_se se).
    true_loss_nats, true_gap_nats : float
        Exact loss on the reference items and exact gap on the items asked; NaN for players whose probabilities
        are not known.
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


def estimate_gap(
    log_term: ArrayLike,
    item: ArrayLike,
    *,
    estimator: str = "importance",
    target_logprob: ArrayLike | None = None,
    token: ArrayLike | None = None,
    candidate_logprob: ArrayLike | None = None,
    draw: ArrayLike | None = None,
) -> LossGap:
    """Estimate a loss gap from importance-sampling terms (array layer).

    Parameters
    ----------
    log_term : array_like of float, shape (response,)
        ln w = ln g(y) - ln g(x) + ln h(x)/h(y), nats.
    item : array_like, shape (response,)
        Labels of the items, integers or strings.
    estimator : str
        One of :data:`ESTIMATORS`.
    target_logprob : array_like of float, shape (response,), optional
        ln g(y|c); needed by ``naive``, whose items carry the generator's own spread.
    token, candidate_logprob : array_like, shape (response,), optional
        Identity of the candidate and ln g(x|c) under the model that sampled it; needed by ``rao_blackwell``.
    draw : array_like of int, shape (response,), optional
        Which draw of the item was shown, where several responses can share one; used by ``rao_blackwell``.

    Returns
    -------
    LossGap

    Raises
    ------
    InputError
        For an unknown estimator, shapes that disagree, terms that are not finite, or an argument that the
        estimator needs and did not get.
    """
    terms = group_terms(log_term, item)
    means: LogMeans
    if estimator == "rao_blackwell":
        if token is None or candidate_logprob is None:
            raise InputError("needs token and candidate_logprob", source="estimator 'rao_blackwell'")
        means = rao_blackwell_log_mean(terms, token, candidate_logprob, draw)
    elif estimator == "naive":
        means = plain_log_mean(terms)
    elif estimator in LOG_MEANS:
        means = LOG_MEANS[estimator](terms)
    else:
        raise unknown_choice("estimator", estimator, ESTIMATORS)
    spread_of = means.value
    if estimator == "naive":
        if target_logprob is None:
            raise InputError("needs target_logprob", source="estimator 'naive'")
        if np.shape(target_logprob) != terms.order.shape:
            raise InputError(
                f"has shape {np.shape(target_logprob)}, the terms {terms.order.shape}", field="target_logprob"
            )
        spread_of = means.value - np.asarray(target_logprob, dtype=float)[terms.order][terms.start]
    n_items = terms.label.size
    return LossGap(
        estimator=estimator,
        gap_nats=float(means.value.mean()),
        se_items_nats=float(spread_of.std() / np.sqrt(n_items)),
        se_samples_nats=float(np.sqrt(np.sum(means.se**2)) / n_items),
        n_items=n_items,
        n_responses=terms.log_term.size,
        item=terms.label,
        item_gap_nats=means.value,
        item_n=terms.n,
        terms=terms,
    )


def diagnose_weights(terms: ItemTerms) -> WeightDiagnostics:
    """Pareto tail, KL divergence and required sample size of a set of terms; see :class:`WeightDiagnostics`.

    Parameters
    ----------
    terms : ItemTerms

    Returns
    -------
    WeightDiagnostics
    """
    scaled, _ = terms.scaled()
    share = scaled / terms.sum(scaled)[terms.item]
    log_weight = terms.log_term - plain_log_mean(terms).value[terms.item]
    kl = np.maximum(terms.sum(share * log_weight), 0.0)
    spread = np.sqrt(np.maximum(terms.sum(share * (log_weight - kl[terms.item]) ** 2), 0.0))
    loo = leave_one_out_log_weights(terms)
    loo = loo[np.isfinite(loo)]
    pareto_k = pareto_khat(np.exp(loo - loo.max())) if loo.size else float("nan")
    n_required = float(np.quantile(np.exp(kl + spread), 0.9))
    share_starved = float(np.mean(terms.n * np.exp(-kl) < 2))
    return WeightDiagnostics(
        pareto_k=pareto_k,
        kl_nats=float(kl.mean()),
        n_required=n_required,
        share_starved=share_starved,
        verdict=verdict(
            pareto_k,
            float(np.median(terms.n)),
            n_required,
            share_starved,
            constant=_are_constant(terms, log_weight),
        ),
    )


def _are_constant(terms: ItemTerms, log_weight: FloatArray) -> bool:
    """Whether weights do not vary: within items that have several, or over all items where some have one."""
    if bool((terms.n > 1).all()):
        return bool(np.abs(log_weight).max() < _ROUNDING_NATS)
    return bool(np.ptp(terms.log_term) < _ROUNDING_NATS)


def player_names(study: xr.Dataset) -> list[str]:
    """Players of a study: the participants first, where there are any, then its language models.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.

    Returns
    -------
    list of str
    """
    humans = [HUMAN] if study.sizes["response"] else []
    return [*humans, *study["model"].values.tolist()]


def control_model(study: xr.Dataset, generator: str | None = None, *, control_only: bool = False) -> str:
    """Name of the model whose loss the gap is measured against.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    generator : str, optional
        By default the model that drew the study's candidates.
    control_only : bool
        Allow a model that did not draw them: it then supplies g(y) and L_G, while the sampling density in the
        denominator stays that of the model that did.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If the model is not in the study, or did not draw the candidates and ``control_only`` is false.
    """
    sampler: str = study.attrs["generator"]
    if generator is None or generator == sampler:
        return sampler
    models = study["model"].values.tolist()
    source = f"study {study.attrs.get('name')!r}"
    if generator not in models:
        raise unknown_choice("generator", generator, models, source=source)
    if not control_only:
        raise InputError(
            f"{generator!r} did not draw this study's candidates, {sampler!r} did; use generator={sampler}, or "
            "generator.control_only=true to measure the gap against it with the sampling density kept right",
            source=source,
            field="generator",
        )
    return generator


def response_pairs(study: xr.Dataset, *, control: str | None = None) -> ResponsePairs:
    """Read the pairs that participants were shown from a study.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    control : str, optional
        From :func:`control_model`; by default the model that drew the candidates.

    Returns
    -------
    ResponsePairs

    Raises
    ------
    InputError
        If the study has no response and no item that is asked and selected.
    """
    name = str(study.attrs.get("name"))
    items = study["item"].values
    if study.sizes["response"] == 0:
        position, column = _every_candidate(study, name)
        participant, report = column, np.full(column.size, np.nan)
    else:
        order = np.argsort(study["response_item"].values, kind="stable")
        position = response_positions(study)[order]
        column = study["response_candidate"].values[order].astype(np.intp)
        people: dict[object, int] = {}
        names = study["participant"].values[order].tolist()
        participant = np.array([people.setdefault(who, len(people)) for who in names], dtype=np.intp)
        report = study["report"].values[order]
    models = tuple(study["model"].values.tolist())
    target = study["target_logprob"].values[:, position]
    candidate = study["candidate_logprob"].values[:, position, column]
    sampler = study.attrs["generator"]
    return ResponsePairs(
        study=name,
        models=models,
        item=items[position].astype(np.intp),
        participant=participant,
        report=report,
        model_log_ratio=candidate - target,
        sampled_logprob=candidate[models.index(sampler)],
        control_logprob=target[models.index(control or sampler)],
        candidate=study["candidate_token"].values[position, column],
        draw=column,
    )


def _every_candidate(study: xr.Dataset, name: str) -> tuple[IntArray, IntArray]:
    """Positions along ``item``, sorted by label, and ``candidate`` of all pairs of the items asked."""
    asked = np.flatnonzero((study["item_set"].values != "") & study["selected"].values)
    if not asked.size:
        raise InputError(
            "has no response, and no item that is selected and belongs to an item_set", source=f"study {name!r}"
        )
    asked = asked[np.argsort(study["item"].values[asked], kind="stable")]
    n_candidates = study.sizes["candidate"]
    return np.repeat(asked, n_candidates), np.tile(np.arange(n_candidates), asked.size)


def log_terms(pairs: ResponsePairs, player: str = HUMAN, rounding: RoundingScheme | str = "none") -> FloatArray:
    """Importance-sampling terms ln w of a player on the pairs that the participants were shown.

    Parameters
    ----------
    pairs : ResponsePairs
    player : str
        ``human`` or a model of the study, which answers q(y) / (q(y) + q(x)).
    rounding : RoundingScheme or str
        Applied to the reports of any player.

    Returns
    -------
    ndarray of float, shape (response,)
        Nats, in the order of ``pairs``.

    Raises
    ------
    InputError
        If the player or the rounding is unknown, or the player is ``human`` and nobody answered.
    """
    scheme = rounding_scheme(rounding) if isinstance(rounding, str) else rounding
    if player == HUMAN:
        if np.isnan(pairs.report).any():
            raise InputError("has no response of a participant; its models can play", source=f"study {pairs.study!r}")
        log_ratio = log_ratio_from_report(round_reports(pairs.report, scheme))
    elif player in pairs.models:
        log_ratio = _rounded_log_ratio(pairs.model_log_ratio[pairs.models.index(player)], scheme)
    else:
        raise unknown_choice("player", player, (HUMAN, *pairs.models), source=f"study {pairs.study!r}")
    return pairs.control_logprob - pairs.sampled_logprob + log_ratio


def _rounded_log_ratio(log_ratio: FloatArray, scheme: RoundingScheme) -> FloatArray:
    """Log-ratio that a model's rounded report states; unrounded it is not taken through a probability."""
    if not scheme.values:
        return log_ratio
    return log_ratio_from_report(round_reports(report_from_log_ratio(log_ratio), scheme))


def candidate_log_terms(study: xr.Dataset, player: str, rounding: RoundingScheme | str = "none") -> FloatArray:
    """Terms ln w of a model player on every stored candidate.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    player : str
        A model of the study, or ``human`` where the study carries the human's own log-probabilities
        (a simulation).
    rounding : RoundingScheme or str
        Applied to the player's reports.

    Returns
    -------
    ndarray of float, shape (item, candidate)
        Nats.

    Raises
    ------
    InputError
        If the player's probabilities are not in the study.
    """
    target_q, candidate_q = _player_logprobs(study, player)
    if target_q is None or candidate_q is None:
        raise InputError(
            f"the study has no log-probabilities of player {player!r}, only its answers",
            source=f"study {study.attrs.get('name')!r}",
        )
    scheme = rounding_scheme(rounding) if isinstance(rounding, str) else rounding
    log_ratio = _rounded_log_ratio(candidate_q - target_q[:, None], scheme)
    sampler = study["model"].values.tolist().index(study.attrs["generator"])
    drawn: FloatArray = study["candidate_logprob"].values[sampler]
    target: FloatArray = study["target_logprob"].values[sampler]
    return target[:, None] - drawn + log_ratio


def _player_logprobs(study: xr.Dataset, player: str) -> tuple[FloatArray | None, FloatArray | None]:
    """Ln q(y|c), (item,), and ln q(x|c), (item, candidate); None where the study does not know them."""
    if player == HUMAN:
        if "human_target_logprob" not in study:
            return None, None
        target = study["human_target_logprob"].values
        return target, study["human_candidate_logprob"].values if "human_candidate_logprob" in study else None
    models = study["model"].values.tolist()
    if player not in models:
        raise unknown_choice("player", player, player_names(study), source=f"study {study.attrs.get('name')!r}")
    m = models.index(player)
    return study["target_logprob"].values[m], study["candidate_logprob"].values[m]


def true_loss(study: xr.Dataset, player: str, items: NDArray[np.bool_]) -> float:
    """Exact loss of a player, mean of -ln q(y|c) over some items.

    Parameters
    ----------
    study : xarray.Dataset
    player : str
    items : ndarray of bool, shape (item,)

    Returns
    -------
    float
        Nats a token; NaN for participants whose h(y|c) nobody knows.
    """
    target, _ = _player_logprobs(study, player)
    return float("nan") if target is None else float(-target[items].mean())


def reference_loss(study: xr.Dataset, control: str, reference: Reference, asked: NDArray[np.bool_]) -> float:
    """Compute L_G over the reference items of the study, or over the items that were asked.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    control : str
        From :func:`control_model`.
    reference : {"reference", "asked"}
    asked : ndarray of bool, shape (item,)
        Which items were asked.

    Returns
    -------
    float
        Nats a token.

    Raises
    ------
    InputError
        For an unknown choice, or when no item is a reference item.
    """
    return true_loss(study, control, _reference_items(study, reference, asked))


def _reference_items(study: xr.Dataset, reference: str, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if reference not in get_args(Reference):
        raise unknown_choice("reference", reference, get_args(Reference))
    items: NDArray[np.bool_] = study["in_reference"].values if reference == "reference" else asked
    if not items.any():
        raise InputError("is true for no item, so L_G is not defined", source="study", field="in_reference")
    return items


def subsample_responses(study: xr.Dataset, n: int, rng: np.random.Generator) -> xr.Dataset:
    """Keep n random responses of every item, without replacement; n candidates of a study that nobody answered.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    n : int
        Responses an item.
    rng : numpy.random.Generator

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    InputError
        If n is not positive or an item that was asked has fewer responses (the study fewer candidates).
    """
    if n < 1:
        raise InputError(f"is {n}, should be at least 1", field="n")
    if study.sizes["response"] == 0:
        n_candidates = study.sizes["candidate"]
        if n > n_candidates:
            raise InputError(f"is {n}, but every item has {n_candidates} candidates", field="n")
        # they are independent draws, so that the same columns do for all items
        return study.isel(candidate=np.sort(rng.choice(n_candidates, n, replace=False)))
    item = study["response_item"].values
    labels, code, count = np.unique(item, return_inverse=True, return_counts=True)
    if (count < n).any():
        fewest = int(np.argmin(count))
        raise InputError(f"is {n}, but item {labels[fewest]} has only {count[fewest]} responses", field="n")
    order = np.lexsort((rng.random(item.size), code))
    start = np.concatenate([[0], np.cumsum(count)[:-1]])
    rank = np.arange(item.size) - start[code[order]]
    return study.isel(response=np.sort(order[rank < n]))


def estimate_perplexity(
    study: xr.Dataset,
    player: str = HUMAN,
    *,
    rounding: RoundingScheme | str = "none",
    estimator: str = "importance",
    generator: str | None = None,
    control_only: bool = False,
    uncertainty: Uncertainty = "items",
    n_se: float = 2.0,
    reference: Reference = "reference",
) -> PerplexityEstimate:
    r"""Perplexity of a player on a comparison study.

    .. math:: \mathrm{PPL} = \exp(\mathrm{gap} + L_G), \quad \exp(\mathrm{gap} + L_G \pm n_{se}\, \mathrm{se})

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study (:func:`estimators.comparison.study.validate_comparison_study`).
    player : str
        ``human`` or a model of the study.
    rounding : RoundingScheme or str
        Applied to the player's reports.
    estimator : str
        One of :data:`ESTIMATORS`.
    generator, control_only
        See :func:`control_model`.
    uncertainty : {"items", "samples"}
        Which standard error makes the interval: source (i), the figure bars of the paper, or source (ii). The first
        already contains the second, as the items' log-means vary for both reasons.
    n_se : float
        Half-width of the interval in standard errors.
    reference : {"reference", "asked"}
        Items over which L_G (and the true loss) is averaged. ``naive`` estimates the loss itself and has no L_G:
        there the reference is always the items asked.

    Returns
    -------
    PerplexityEstimate

    Raises
    ------
    InputError
        For an unknown player, rounding, estimator, generator, uncertainty or reference, or a negative ``n_se``.
    """
    if uncertainty not in get_args(Uncertainty):
        raise unknown_choice("uncertainty", uncertainty, get_args(Uncertainty))
    if reference not in get_args(Reference):
        raise unknown_choice("reference", reference, get_args(Reference))
    if not n_se >= 0:
        raise InputError(f"is {n_se}, should be 0 or larger", field="n_se")
    control = control_model(study, generator, control_only=control_only)
    pairs = response_pairs(study, control=control)
    gap = estimate_gap(
        log_terms(pairs, player, rounding),
        pairs.item,
        estimator=estimator,
        target_logprob=pairs.control_logprob,
        token=pairs.token if estimator == "rao_blackwell" else None,
        candidate_logprob=pairs.sampled_logprob,
        draw=pairs.draw,
    )
    asked = np.isin(study["item"].values, gap.item)
    where = _reference_items(study, "asked" if estimator == "naive" else reference, asked)
    base = true_loss(study, control, where)
    half_width = n_se * (gap.se_items_nats if uncertainty == "items" else gap.se_samples_nats)
    loss = gap.gap_nats + base
    return PerplexityEstimate(
        player=player,
        rounding=rounding if isinstance(rounding, str) else rounding.name,
        gap=gap,
        reference_loss_nats=base,
        perplexity=float(np.exp(loss)),
        perplexity_lower=float(np.exp(loss - half_width)),
        perplexity_upper=float(np.exp(loss + half_width)),
        true_loss_nats=true_loss(study, player, where),
        true_gap_nats=true_loss(study, player, asked) - true_loss(study, control, asked),
    )
