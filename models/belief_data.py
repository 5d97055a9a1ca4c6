r"""What the belief model is fitted to: the pairs one noise-free player answered, and the tokens it was not asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.comparison import HUMAN, response_positions, same_token
from estimators.errors import InputError, unknown_choice
from estimators.perplexity import candidate_log_terms
from estimators.reports import report_from_log_ratio
from estimators.rounding import RoundingScheme, report_boxes, round_reports, rounding_scheme

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["BeliefData", "belief_data"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_LOGIT_RANGE = (-16.0, 9.0)
_DEFAULT_SURPRISAL = 4.0
_KEY_DECIMALS = 5


@dataclass(frozen=True)
class BeliefData:
    r"""One noise-free player's answers, with what the study knows of the tokens not asked about.

    A *pair* is a distinct (item, candidate) that was asked, the target itself left out; :math:`v_{qx}` is
    :math:`\ln\frac{h(x) g(y)}{h(y) g(x)}`. All log-probabilities are the generator's, in nats; the ``*_item`` fields
    are positions along ``item``, increasing.

    Attributes
    ----------
    study, player, generator, rounding : str
    item : ndarray of int, shape (item,)
        Labels of the items asked.
    target_log_g : ndarray, shape (item,)
        ln g(y).
    surprisal : ndarray, shape (item,)
        E_q, mean of -ln g over the candidates drawn that are not the target.
    unseen_mass : ndarray, shape (item,)
        Probability that g gives to tokens that are neither the target nor among the stored candidates.
    pair_item, pair_log_g, pair_lower, pair_upper : ndarray, shape (pair,)
        Item, ln g(x), and the edges of the box in which v lies (infinite at the ends of the scale). Both edges are v
        itself where reports are not rounded.
    rest_item, rest_log_g : ndarray, shape (rest,)
        The distinct stored candidates that were not asked.
    once_item, once_log_g : ndarray, shape (once,)
        The candidates over which the unseen mass is spread: those drawn once (Good-Turing); where an item has none,
        all of its distinct ones; where it has not even those, one token of the unseen mass.
    """

    study: str
    player: str
    generator: str
    rounding: str
    item: IntArray
    target_log_g: FloatArray
    surprisal: FloatArray
    unseen_mass: FloatArray
    pair_item: IntArray
    pair_log_g: FloatArray
    pair_lower: FloatArray
    pair_upper: FloatArray
    rest_item: IntArray
    rest_log_g: FloatArray
    once_item: IntArray
    once_log_g: FloatArray

    @property
    def is_raw(self) -> bool:
        """Whether v is known exactly."""
        return bool(np.array_equal(self.pair_lower, self.pair_upper))

    @property
    def is_generator_itself(self) -> bool:
        """Whether v is zero everywhere: the gap is then exactly 0 and there is nothing to fit."""
        return self.is_raw and not self.pair_lower.any()

    @property
    def target_logit(self) -> FloatArray:
        """L = logit g(y) clipped to [-16, 9], shape (item,)."""
        log_g = np.minimum(self.target_log_g, -1e-12)
        logit: FloatArray = np.clip(log_g - np.log(-np.expm1(log_g)), *_LOGIT_RANGE)
        return logit


def belief_data(study: xr.Dataset, player: str, rounding: RoundingScheme | str = "none") -> BeliefData:
    """Read one player's answers from a comparison study.

    A player without noise gives the same answer every time, so repeated (item, candidate) pairs count once. The
    study's ``reference_logprob`` is not used: tokens that were never drawn are represented by those drawn once.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    player : str
        A language model of the study.
    rounding : RoundingScheme or str
        What the player's reports are rounded to.

    Returns
    -------
    BeliefData

    Raises
    ------
    InputError
        For the participants (their answers are noisy), an unknown player or rounding, or a study without any response
        on a candidate that is not the target.
    """
    models = study["model"].values.tolist()
    source = f"study {study.attrs.get('name')!r}"
    if player == HUMAN:
        raise InputError(
            f"is {HUMAN!r}, but the belief model is for players without noise; take one of {', '.join(models)}",
            source=source,
            field="player",
        )
    if player not in models:
        raise unknown_choice("player", player, models, source=source)
    scheme = rounding_scheme(rounding) if isinstance(rounding, str) else rounding

    position = response_positions(study)
    items, row = np.unique(position, return_inverse=True)
    sampler = models.index(study.attrs["generator"])
    target_log_g = study["target_logprob"].values[sampler, items].astype(float)
    log_g = study["candidate_logprob"].values[sampler, items].astype(float)
    log_term = candidate_log_terms(study.isel(item=items), player)
    is_target = same_token(study)[items]
    was_asked = np.zeros(log_g.shape, dtype=bool)
    was_asked[row, study["response_candidate"].values] = True

    token = _distinct_tokens(study["candidate_token"].values[items], log_g, ~is_target)
    asked = np.zeros(token.first.size, dtype=bool)
    np.logical_or.at(asked, token.code, was_asked.ravel()[token.drawn])
    if not asked.any():
        raise InputError("has no response on a candidate that is not the target", source=source)
    token_item, column = np.divmod(token.first, log_g.shape[1])
    token_log_g = log_g[token_item, column]
    v = log_term[token_item, column]
    lower, upper = _edges(v[asked], token_log_g[asked], target_log_g[token_item[asked]], scheme)

    n_items = items.size
    seen_mass = np.exp(target_log_g) + np.bincount(token_item, np.exp(token_log_g), n_items)
    unseen_mass = np.maximum(1 - seen_mass, 0.0)
    n_drawn = (~is_target).sum(axis=1)
    surprisal = np.where(
        n_drawn > 0, -np.where(is_target, 0.0, log_g).sum(axis=1) / np.maximum(n_drawn, 1), _DEFAULT_SURPRISAL
    )
    once_item, once_log_g = _stand_ins(token_item, token_log_g, token.count, unseen_mass)
    return BeliefData(
        study=str(study.attrs.get("name")),
        player=player,
        generator=str(study.attrs["generator"]),
        rounding=scheme.name,
        item=study["item"].values[items].astype(np.intp),
        target_log_g=target_log_g,
        surprisal=surprisal,
        unseen_mass=unseen_mass,
        pair_item=token_item[asked],
        pair_log_g=token_log_g[asked],
        pair_lower=lower,
        pair_upper=upper,
        rest_item=token_item[~asked],
        rest_log_g=token_log_g[~asked],
        once_item=once_item,
        once_log_g=once_log_g,
    )


@dataclass(frozen=True)
class _Tokens:
    """Distinct tokens, by item: first place each was drawn (flat), how often, and the token of every draw."""

    first: IntArray
    count: IntArray
    drawn: IntArray
    code: IntArray


def _distinct_tokens(string: NDArray[np.object_], log_g: FloatArray, kept: NDArray[np.bool_]) -> _Tokens:
    """Tell tokens apart by string and log-probability, as one string can stand for many tokens."""
    drawn = np.flatnonzero(kept)
    _, spelling = np.unique(string.astype(str).ravel()[drawn], return_inverse=True)
    key = np.stack([drawn // log_g.shape[1], spelling, np.rint(log_g.ravel()[drawn] * 10**_KEY_DECIMALS)], axis=1)
    _, first, code, count = np.unique(
        key.astype(np.int64), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    return _Tokens(drawn[first].astype(np.intp), count.astype(np.intp), drawn, code.ravel().astype(np.intp))


def _edges(
    v: FloatArray, log_g: FloatArray, target_log_g: FloatArray, scheme: RoundingScheme
) -> tuple[FloatArray, FloatArray]:
    """Edges of the box in which v lies; v itself twice where nothing is rounded."""
    if not scheme.values:
        return v, v
    log_ratio = v + log_g - target_log_g  # D = ln h(x)/h(y); the report is 1 / (1 + e^D)
    value = round_reports(report_from_log_ratio(log_ratio), scheme)
    box = np.searchsorted(np.asarray(scheme.values), value)
    with np.errstate(divide="ignore"):
        edge = report_boxes(scheme)
        minus_logit = np.log1p(-edge) - np.log(edge)
    shift = target_log_g - log_g
    return minus_logit[box, 1] + shift, minus_logit[box, 0] + shift


def _stand_ins(
    token_item: IntArray, token_log_g: FloatArray, count: IntArray, unseen_mass: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Tokens that stand for those never drawn."""
    n_items = unseen_mass.size
    has_once = np.bincount(token_item, count == 1, n_items) > 0
    has_any = np.bincount(token_item, minlength=n_items) > 0
    chosen = np.where(has_once[token_item], count == 1, True) & (unseen_mass[token_item] > 0)
    alone = np.flatnonzero(~has_any & (unseen_mass > 0))
    item = np.concatenate([token_item[chosen], alone])
    log_g = np.concatenate([token_log_g[chosen], np.log(unseen_mass[alone])])
    order = np.argsort(item, kind="stable")
    return item[order].astype(np.intp), log_g[order]
