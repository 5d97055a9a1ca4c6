"""Loss gap of people by the bridge, from a study in which they also continued the contexts freely."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.bridge import BridgeMeans, bridge_log_means
from estimators.comparison.bridge_errors import clustered_se, report_se
from estimators.comparison.chains import TokenLogRatios, token_log_ratios
from estimators.comparison.gap import LossGap
from estimators.comparison.importance import Proposals, draws_by_item, mixture_logprob, study_proposals
from estimators.comparison.item_terms import group_terms
from estimators.comparison.log_means import items_se
from estimators.comparison.overlap import OverlapDiagnostics, diagnose_overlap
from estimators.comparison.rounding import RoundingScheme
from estimators.comparison.study import COMPARISON
from estimators.comparison.study_sources import NOT_A_CANDIDATE, TARGET_POSITION, has_free_answers, response_references
from estimators.comparison.study_tokens import candidate_tokens
from estimators.comparison.terms import control_model
from estimators.errors import InputError
from estimators.layout import item_positions, response_positions

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["BridgeGap", "bridge_gap"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class BridgeGap(LossGap):
    """Loss gap by the bridge: a :class:`~estimators.comparison.gap.LossGap`, and what a bridge has more.

    Attributes
    ----------
    estimator, gap_nats, se_items_nats, n_items, n_responses, item, item_gap_nats
        As in a :class:`~estimators.comparison.gap.LossGap`.
    se_samples_nats : float
        Noise of the finite number of draws and answers, items held fixed; asymptotic.
    item_n : ndarray of int, shape (item,)
        Draws and answers of every item.
    terms : ItemTerms
        Importance terms of the draws alone.
    se_clustered_nats : float
        Standard error over items and participants: what a participant's answers and reports have in common on
        different items is added to source (i) (two-way clusters, Cameron, Gelbach & Miller 2011).
    se_reports_nats : float
        Noise of the reports, with the variance that reports on one token have; NaN where none was compared twice.
    n_answers, n_unknown_answers : int
        Free answers to the items asked, and how many of them no report values: they are left out.
    n_tokens, n_censored, n_unconnected : int
        Tokens compared; those whose log-ratio rests on an end of the scale, and those that no chain of reports
        connects with the target.
    n_one_sided : int
        Items left out, for which there are draws or answers only.
    means : BridgeMeans
    overlap : OverlapDiagnostics

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import answered_study
    >>> gap = comparison.bridge_gap(answered_study())
    >>> gap.n_answers, gap.n_unknown_answers
    (48, 0)
    """

    made_by = "bridge_gap(study)"

    se_clustered_nats: float
    se_reports_nats: float
    n_answers: int
    n_unknown_answers: int
    n_tokens: int
    n_censored: int
    n_unconnected: int
    n_one_sided: int
    means: BridgeMeans = field(repr=False)
    overlap: OverlapDiagnostics = field(repr=False)

    @property
    def diagnostics(self) -> OverlapDiagnostics:
        """Whether draws and answers overlap enough."""
        return self.overlap


def bridge_gap(
    study: xr.Dataset,
    *,
    rounding: RoundingScheme | str = "none",
    control: str | None = None,
    ends: tuple[float, float] | None = None,
    drop_ends: bool = False,
) -> BridgeGap:
    """Estimate the loss gap of people from draws, their free answers, and their reports on both.

    A draw counts where it was asked about; all draws of an item count where reports value all their tokens. A free
    answer counts where a report values its token, and the target needs none. Every answer is taken for a draw of h:
    people who answer with their most probable word have a smaller gap here than they should.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study with free answers. Where its draws come from several proposals, their probabilities of the
        answers' tokens have to be known too (``proposal_logprob``, ``proposal_target_logprob``).
    rounding : RoundingScheme or str
        Applied to the reports.
    control : str, optional
        From :func:`~estimators.comparison.terms.control_model`; by default the model that drew the candidates.
    ends : tuple of float, optional
        See :func:`~estimators.comparison.chains.token_log_ratios`.
    drop_ends : bool
        See :func:`~estimators.comparison.chains.combine_comparisons`.

    Returns
    -------
    BridgeGap

    Raises
    ------
    InputError
        If the study has no free answers or reports, no item has draws and answers that reports value, or a
        probability is unknown that the bridge needs.

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import answered_study
    >>> gap = comparison.bridge_gap(answered_study())
    >>> round(gap.gap_nats, 2), gap.diagnostics.verdict
    (0.04, 'enough draws')
    """
    source = COMPARISON.source(study)
    if not has_free_answers(study):
        raise InputError(
            "has no free answers (answer_item, answer_candidate and the others along answer), which are the bridge's "
            "draws of people; without them: importance, jackknife, delta, psis",
            source=source,
            field="answer",
        )
    control = control_model(study, control, control_only=True)
    code, proposals = candidate_tokens(study), study_proposals(study)
    ratios = token_log_ratios(study, rounding=rounding, ends=ends, drop_ends=drop_ends)
    known = _known_ratios(study, code, ratios)
    drawn, answers = _used_draws(study, proposals, known), _answers(study, code, known)
    position = np.concatenate([drawn[0], answers.position[answers.used]])
    token = np.concatenate([code[drawn], answers.token[answers.used]])
    answered = np.repeat([False, True], [drawn[0].size, int(answers.used.sum())])
    log_ratio = np.where(token == TARGET_POSITION, 0.0, known[position, np.maximum(token, 0)])
    target = study["target_logprob"].values[study["model"].values.tolist().index(control), position]
    log_weight = target + log_ratio - _proposed(study, proposals, drawn, position, token)
    labels = study["item"].values
    means = bridge_log_means(log_weight, labels[position], answered)
    unknown = int((~answers.used).sum())
    overlap = diagnose_overlap(
        means, log_weight, answered, token=token, share_unknown_answers=unknown / max(answers.used.size, 1)
    )
    kept = means.item >= 0
    n_items = means.label.size
    in_means = np.isin(study["response_item"].values, means.label)
    return BridgeGap(
        estimator="bridge",
        gap_nats=float(means.value.mean()),
        se_items_nats=items_se(means.value),
        se_samples_nats=float(np.sqrt(np.sum(means.se**2)) / n_items),
        n_items=n_items,
        n_responses=int(in_means.sum()),
        item=means.label,
        item_gap_nats=means.value,
        item_n=means.n_drawn + means.n_answered,
        terms=group_terms(log_weight[kept & ~answered], labels[position[kept & ~answered]]),
        se_clustered_nats=clustered_se(
            study, means, code, position=position, token=token, who=answers.who[answers.used], answered=answered
        ),
        se_reports_nats=report_se(study, means, ratios, position, token),
        n_answers=answers.used.size,
        n_unknown_answers=unknown,
        n_tokens=ratios.token.size,
        n_censored=ratios.n_censored,
        n_unconnected=ratios.n_unconnected,
        n_one_sided=means.n_one_sided,
        means=means,
        overlap=overlap,
    )


@dataclass(frozen=True, eq=False)
class _Answers:
    position: IntArray  # along item
    token: IntArray  # code of the token within the item
    who: NDArray[np.object_]
    used: BoolArray  # whether its log-ratio is known


def _asked(study: xr.Dataset) -> BoolArray:
    asked: BoolArray = (study["item_set"].values != "") & study["selected"].values
    return asked


def _known_ratios(study: xr.Dataset, code: IntArray, ratios: TokenLogRatios) -> FloatArray:
    """Log-ratio of every cell's token, (item, candidate); 0 for the target, NaN where no report says it."""
    by_token = np.full(code.shape, np.nan)
    order = np.argsort(study["item"].values)
    row = order[np.searchsorted(study["item"].values, ratios.item, sorter=order)]
    by_token[row, ratios.token] = ratios.log_ratio
    known = np.take_along_axis(by_token, np.maximum(code, 0), axis=1)
    known[code == TARGET_POSITION] = 0.0
    known[code == NOT_A_CANDIDATE] = np.nan
    return known


def _used_draws(study: xr.Dataset, proposals: Proposals, known: FloatArray) -> tuple[IntArray, IntArray]:
    """Positions along item and candidate of the draws that count."""
    drawn = (proposals.source >= 0) & _asked(study)[:, None]
    shown = np.zeros(drawn.shape, dtype=bool)
    position = response_positions(study)
    shown[position, study["response_candidate"].values] = True
    reference = response_references(study)
    shown[position[reference >= 0], reference[reference >= 0]] = True
    valued: BoolArray = ~np.isnan(known)
    # reports on some of the draws: a token that was drawn twice is not known twice as often
    every: BoolArray = np.all(valued | ~drawn, axis=1)
    rows, columns = np.nonzero(drawn & valued & (shown | every[:, None]))
    return rows, columns


def _answers(study: xr.Dataset, code: IntArray, known: FloatArray) -> _Answers:
    position = item_positions(study, "answer_item")
    asked = _asked(study)[position]
    position, who = position[asked], study["answer_participant"].values[asked]
    given = study["answer_candidate"].values[asked]
    token = np.where(given >= 0, code[position, np.maximum(given, 0)], given)
    value = np.where(token >= 0, known[position, np.maximum(token, 0)], np.nan)
    return _Answers(position, token, who, (token == TARGET_POSITION) | ~np.isnan(value))


def _proposed(
    study: xr.Dataset, proposals: Proposals, drawn: tuple[IntArray, IntArray], position: IntArray, token: IntArray
) -> FloatArray:
    """Ln of what one draw of the item's sample gives to each token used, of draws and of answers."""
    n_items, n_proposals = proposals.source.shape[0], proposals.target.shape[0]
    counts = np.zeros((n_proposals, n_items), dtype=np.intp)
    if drawn[0].size:
        found = draws_by_item(proposals.source[drawn], drawn[0], n_proposals)
        counts[:, : found.shape[1]] = found
    value = np.where(
        token == TARGET_POSITION,
        proposals.target[:, position],
        proposals.candidate[:, position, np.maximum(token, 0)],
    )
    there = counts.sum(axis=0)[position] > 0
    logprob = np.zeros(position.size)  # of items without a draw, which the bridge leaves out
    logprob[there] = mixture_logprob(value[:, there], counts[:, position[there]])
    if np.isnan(logprob).any():
        first = int(np.flatnonzero(np.isnan(logprob))[0])
        what = "the target" if token[first] == TARGET_POSITION else f"candidate {token[first]}"
        name = "proposal_target_logprob" if token[first] == TARGET_POSITION else "proposal_logprob"
        raise InputError(
            f"is unknown for {what} of item {study['item'].values[position[first]]} "
            f"({int(np.isnan(logprob).sum())} such), which was drawn or answered; a bridge needs what each proposal of "
            "an item gives to all its tokens (inclusion_... for distinct draws)",
            source=proposals.study,
            field=name,
        )
    return logprob
