r"""What the belief model is fitted to: the pairs one noise-free player answered, and the tokens it was not asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimators.comparison import HUMAN
from estimators.comparison.reports import report_from_log_ratio
from estimators.comparison.rounding import RoundingScheme, report_boxes, round_reports, rounding_scheme
from estimators.comparison.terms import candidate_log_terms
from estimators.errors import InputError, unknown_choice
from models.comparison.tokens import clipped_logit, study_tokens

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["BeliefData", "belief_data"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class BeliefData:
    r"""One noise-free player's answers, with what the study knows of the tokens not asked about.

    A *pair* is a distinct (item, candidate) that was asked, the target itself left out; :math:`v_{qx}` is
    :math:`\ln\frac{h(x) g(y)}{h(y) g(x)}`. All log-probabilities are the generator's, in nats; the ``*_item`` fields
    are positions along ``item``, increasing.

    Attributes
    ----------
    study, player, generator, rounding : str
    item : ndarray of int or str, shape (item,)
        Labels of the items asked; the owner's own where the study has them.
    target_log_g : ndarray, shape (item,)
        ln g(y).
    surprisal : ndarray, shape (item,)
        E_q, mean of -ln g over the candidates drawn that are not the target.
    unseen_mass : ndarray, shape (item,)
        Probability that g gives to tokens that are neither the target nor among the stored candidates.
    pair_item, pair_log_g, pair_lower, pair_upper : ndarray, shape (pair,)
        Item, ln g(x), and the edges of the box in which v lies (infinite at the ends of the scale). Both edges are v
        itself where reports are not rounded.
    pair_box : ndarray of int, shape (pair,)
        Which of the values that can be reported was given, from the lowest; 0 where reports are not rounded.
    box_edges : ndarray, shape (box + 1,)
        Edges of the boxes in log-odds of the report, -inf and inf first and last; empty where reports are not rounded.
    pair_frequency, rest_frequency, tail_frequency : ndarray, shape (pair,), (rest,), (tail,)
        How much more frequent the token is than the item's target in the study's other items, nats; see
        :func:`models.comparison.tokens.token_frequency`.
    rest_item, rest_log_g : ndarray, shape (rest,)
        The distinct stored candidates that were not asked.
    tail_item, tail_log_g, tail_mass : ndarray, shape (tail,)
        Good-Turing stand-ins for undrawn tokens: item, ln g at which the model is evaluated, and the probability
        under g that each stands for.
    """

    study: str
    player: str
    generator: str
    rounding: str
    item: NDArray[Any]
    target_log_g: FloatArray
    surprisal: FloatArray
    unseen_mass: FloatArray
    pair_item: IntArray
    pair_log_g: FloatArray
    pair_lower: FloatArray
    pair_upper: FloatArray
    pair_frequency: FloatArray
    pair_box: IntArray
    box_edges: FloatArray
    rest_item: IntArray
    rest_log_g: FloatArray
    rest_frequency: FloatArray
    tail_item: IntArray
    tail_log_g: FloatArray
    tail_frequency: FloatArray
    tail_mass: FloatArray

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
        return clipped_logit(self.target_log_g)


def belief_data(study: xr.Dataset, player: str, rounding: RoundingScheme | str = "none") -> BeliefData:
    """Read one player's answers from a comparison study.

    A player without noise gives the same answer every time, so repeated (item, candidate) pairs count once.

    Good-Turing stand-ins for undrawn tokens: see :func:`models.comparison.tokens.study_tokens`.

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
        For the participants (their answers are noisy), an unknown player or rounding, a study without any response
        on a candidate that is not the target, or a candidate that the generator's whole distribution does not have.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import comparison_study
    >>> data = models.belief_data(comparison_study(), "lm-weak", "interface")
    >>> data.item.size, data.pair_item.size, data.is_raw
    (6, 16, False)
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
    scheme = rounding_scheme(rounding)

    token = study_tokens(study)
    asked = np.bincount(token.response_token[token.response_token >= 0], minlength=token.item.size) > 0
    if not asked.any():
        raise InputError("has no response on a candidate that is not the target", source=source)
    v = candidate_log_terms(study.isel(item=token.position), player)[token.item, token.column][asked]
    shift = token.target_log_g[token.item[asked]] - token.log_g[asked]
    box, edges = _boxes(v - shift, scheme)
    lower, upper = (shift - edges[box + 1], shift - edges[box]) if edges.size else (v, v)
    return BeliefData(
        study=str(study.attrs.get("name")),
        player=player,
        generator=str(study.attrs["generator"]),
        rounding=scheme.name,
        item=token.label,
        target_log_g=token.target_log_g,
        surprisal=token.surprisal,
        unseen_mass=token.unseen_mass,
        pair_item=token.item[asked],
        pair_log_g=token.log_g[asked],
        pair_lower=lower,
        pair_upper=upper,
        pair_frequency=token.frequency[asked],
        pair_box=box,
        box_edges=edges,
        rest_item=token.item[~asked],
        rest_log_g=token.log_g[~asked],
        rest_frequency=token.frequency[~asked],
        tail_item=token.tail_item,
        tail_log_g=token.tail_log_g,
        tail_frequency=token.tail_frequency,
        tail_mass=token.tail_mass,
    )


def _boxes(log_ratio: FloatArray, scheme: RoundingScheme) -> tuple[IntArray, FloatArray]:
    """Box of every report 1 / (1 + e^D), given D = ln h(x)/h(y), and the edges of all boxes, log-odds of the report."""
    if not scheme.values:
        return np.zeros(log_ratio.size, dtype=np.intp), np.empty(0)
    value = round_reports(report_from_log_ratio(log_ratio), scheme)
    probability = report_boxes(scheme)
    edge = np.append(probability[:, 0], probability[-1, 1])
    with np.errstate(divide="ignore"):
        log_odds = np.log(edge) - np.log1p(-edge)
    return np.searchsorted(np.asarray(scheme.values), value).astype(np.intp), log_odds
