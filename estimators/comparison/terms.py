"""Importance-sampling terms ln w of a player, read from a comparison study."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray, IntArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.comparison.importance import drawn_responses, pair_logprob, study_proposals
from shannon_game.estimators.comparison.reports import log_ratio_from_report, report_from_log_ratio
from shannon_game.estimators.comparison.rounding import RoundingScheme, round_reports, rounding_scheme
from shannon_game.estimators.comparison.study import COMPARISON, generator_logprobs, read_kind, same_token, token_codes
from shannon_game.estimators.comparison.study_sources import all_from_generator, require_generator_draws
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import HUMAN, response_positions
from shannon_game.estimators.messages import Set


@dataclass(frozen=True, eq=False, repr=False)
class ResponsePairs(Result):
    """The pairs (target, candidate) that participants were shown, one a response, sorted by item.

    In a study that nobody answered a player is shown every candidate of the items asked.

    Attributes
    ----------
    item, participant : ndarray of int, shape (response,)
        Label of the item; code of the participant (without participants, position of the candidate).
    report : ndarray, shape (response,)
        Probability that the participant gave to the target; NaN where there are no participants.
    model_log_ratio : ndarray, shape (model, response)
        ln q(x|c) - ln q(y|c) of every model, nats.
    sampled_logprob, control_logprob : ndarray, shape (response,)
        ln g(x|c) under the model that drew the candidates (of several proposals: their mixture), ln g(y|c) under the
        control, nats.
    candidate : ndarray of object, shape (response,)
        Strings of the candidates.
    draw : ndarray of int, shape (response,)
        Position of the candidate among those drawn for its item; several participants can share one.
    equal, same : ndarray of bool, shape (response,)
        Whether candidate and target are one string, and one token: the ratio of their probabilities is 1.
    unasked : ndarray, shape (response,)
        Share of the item's draws that are the target's token, where no response of the study is on one: nobody was
        asked what is known.
    unasked_term : ndarray, shape (response,)
        ln w of such a draw, nats.
    """

    made_by = "response_pairs(study)"

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
    equal: BoolArray
    same: BoolArray
    unasked: FloatArray
    unasked_term: FloatArray

    @cached_property
    def token(self) -> IntArray:
        """Code of every item's candidates: string and generator log-probability, as in ``comparison.same_token``."""
        return token_codes(self.item, self.candidate, self.sampled_logprob)


def player_names(study: Dataset) -> list[str]:
    """Players of a study: the participants first, where there are any, then its language models."""
    study = COMPARISON.read(study)
    humans = [HUMAN] if study.sizes["response"] else []
    return [*humans, *study["model"].values.tolist()]


def control_model(study: Dataset, generator: str | None = None, *, control_only: bool = False) -> str:
    """Name of the model whose loss the gap is measured against, by default the one that drew the candidates.

    With `control_only` it may be one that did not draw them: it then supplies g(y) and L_G, while the sampling density
    in the denominator stays that of the model that did.
    """
    study, source = COMPARISON.read(study), COMPARISON.source(study)
    sampler, models = study.attrs.get("generator"), study["model"].values.tolist()
    if sampler not in models:
        raise unknown_choice("generator", sampler, models, source=source)
    if generator is None or generator == sampler:
        return str(sampler)
    if generator not in models:
        raise unknown_choice("generator", generator, models, source=source)
    if not control_only:
        cure = (
            f"use {Set('generator', sampler)}, or {Set('generator.control_only', True)} to measure the gap against it"
        )
        problem = f"{generator!r} did not draw this study's candidates, {sampler!r} did; {cure}"
        raise InputError(problem, source=source, field="generator")
    return generator


def response_pairs(study: Dataset, *, control: str | None = None) -> ResponsePairs:
    """Read the pairs that participants were shown; `control` (:func:`control_model`) drew the candidates by default."""
    study, source = COMPARISON.read(study), COMPARISON.source(study)
    items, proposals = study["item"].values, study_proposals(study)
    if study.sizes["response"] == 0:
        position, column = _every_candidate(study, proposals.source >= 0, source)
        participant, report = column, np.full(column.size, np.nan)
    else:
        study = drawn_responses(study)
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
    control_logprob = target[models.index(control or sampler)]
    equal, same = study["candidate_token"].values == study["target_token"].values[:, None], same_token(study)
    share = same.mean(axis=1)[position]
    asked = equal[position, column].any() or not all_from_generator(study)
    return ResponsePairs(
        study=str(study.attrs.get("name")),
        models=models,
        item=items[position].astype(np.intp),
        participant=participant,
        report=report,
        model_log_ratio=candidate - target,
        sampled_logprob=pair_logprob(proposals, position, column),
        control_logprob=control_logprob,
        candidate=study["candidate_token"].values[position, column],
        draw=column,
        equal=equal[position, column],
        same=same[position, column],
        unasked=np.zeros_like(share) if asked else share,
        unasked_term=control_logprob - target[models.index(sampler)],
    )


def _every_candidate(study: Dataset, drawn: BoolArray, source: str) -> tuple[IntArray, IntArray]:
    """Positions along ``item``, sorted by label, and ``candidate`` of all drawn pairs of the items asked."""
    asked = np.flatnonzero((study["item_set"].values != "") & study["selected"].values)
    if not asked.size:
        raise InputError("has no response, and no item that is selected and belongs to an item_set", source=source)
    asked = asked[np.argsort(study["item"].values[asked], kind="stable")]
    row, column = np.nonzero(drawn[asked])
    return asked[row], column


def log_terms(pairs: ResponsePairs, player: str = HUMAN, rounding: RoundingScheme | str = "none") -> FloatArray:
    """Importance-sampling terms ln w of a player on the pairs that the participants were shown, reports rounded.

    Two equal strings have the ratio 1, whatever was reported. Where they were shown to nobody, the mean of an item's w
    has their share of the draws: each w becomes u v + (1 - u) w, with u the share ``unasked`` and v the term of a pair
    of equal tokens.
    """
    ResponsePairs.require(pairs=pairs)
    scheme = rounding_scheme(rounding)
    if player == HUMAN:
        if np.isnan(pairs.report).any():
            problem = "has no response of a participant; its models can play"
            raise InputError(problem, source=f"comparison study {pairs.study!r}")
        log_ratio = np.where(pairs.equal, 0.0, log_ratio_from_report(round_reports(pairs.report, scheme)))
    elif player in pairs.models:
        log_ratio = _rounded_log_ratio(pairs.model_log_ratio[pairs.models.index(player)], scheme, pairs.same)
    else:
        raise unknown_choice("player", player, (HUMAN, *pairs.models), source=f"comparison study {pairs.study!r}")
    terms = pairs.control_logprob - pairs.sampled_logprob + log_ratio
    if not pairs.unasked.any():
        return terms
    with np.errstate(divide="ignore"):
        known = np.log(pairs.unasked) + pairs.unasked_term
    mixed: FloatArray = np.logaddexp(known, np.log1p(-pairs.unasked) + terms)
    return mixed


def _rounded_log_ratio(log_ratio: FloatArray, scheme: RoundingScheme, same: BoolArray) -> FloatArray:
    """Log-ratio that a model's rounded report states; unrounded it is not taken through a probability."""
    if not scheme.values:
        return log_ratio
    return np.where(same, 0.0, log_ratio_from_report(round_reports(report_from_log_ratio(log_ratio), scheme)))


def candidate_log_terms(study: Dataset, player: str, rounding: RoundingScheme | str = "none") -> FloatArray:
    """Terms ln w of a model player (or of simulated people) on every stored candidate."""
    study = COMPARISON.read(study)
    target_q, candidate_q = player_logprobs(study, player)
    require_generator_draws(study, COMPARISON.source(study), "terms of every candidate")
    if target_q is None or candidate_q is None:
        problem = f"the study has no log-probabilities of player {player!r}, only its answers"
        raise InputError(problem, source=COMPARISON.source(study))
    scheme = rounding_scheme(rounding)
    log_ratio = _rounded_log_ratio(candidate_q - target_q[:, None], scheme, same_token(study))
    target, drawn = generator_logprobs(study)
    return target[:, None] - drawn + log_ratio


def player_logprobs(study: Dataset, player: str) -> tuple[FloatArray | None, FloatArray | None]:
    """Ln q(y|c), (item,), and ln q(x|c), (item, candidate); None where the study does not know them."""
    study, source = COMPARISON.read(study), COMPARISON.source(study)
    if player == HUMAN:
        if "human_target_logprob" not in study:
            return None, None
        target = study["human_target_logprob"].values
        return target, study["human_candidate_logprob"].values if "human_candidate_logprob" in study else None
    models = study["model"].values.tolist()
    if player not in models:
        raise unknown_choice("player", player, player_names(study), source=source)
    m = models.index(player)
    return study["target_logprob"].values[m], study["candidate_logprob"].values[m]


def subsample_responses(study: Dataset, n: int, rng: np.random.Generator) -> Dataset:
    """Keep n random responses of every item, without replacement; n candidates of a study that nobody answered.

    Examples
    --------
    >>> study = comparison.examples.comparison_study()
    >>> comparison.subsample_responses(study, 2, np.random.default_rng(0)).sizes["response"]
    12
    """
    study = read_kind(study)
    check_numbers({"n": n}, at_least=1)
    if study.sizes["response"] == 0:
        if "candidate_source" in study or "answer" in study.dims:
            problem = f"is {n}, but the candidates come from several sources; only responses can be thinned"
            raise InputError(problem, field="n")
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
