"""Rows of the table of human loss: one a fit, or one a weighting of its draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from estimators.comparison import PerplexityEstimate
from experiments.comparison.belief import PlayerFit, posterior_columns
from experiments.comparison.caveats import caveats
from experiments.comparison.estimates import table_row
from experiments.comparison.human_loss.participants import HumanFit, Participants
from experiments.harness.bayes import convergence_columns, timed
from experiments.harness.settings import rng_for
from inference.comparison.participant_fit import top1_weights
from inference.comparison.participant_sensitivity import leave_one_out, weighted_quantile
from inference.posterior.model_comparison import K_BAD

__all__ = ["LossRow", "Rows"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LossRow:
    """One row of the table, and what stands behind it."""

    cells: dict[str, Any]
    gap_nats: FloatArray
    item: NDArray[Any]
    item_median_nats: FloatArray


@dataclass(frozen=True, eq=False)
class Rows:
    """What every row needs besides its fit.

    Attributes
    ----------
    participants : Participants
    truth : mapping of str to PerplexityEstimate
        Of every language model without rounding, for its true loss.
    equation5 : callable
        Takes a study, estimates the participants' perplexity by the classical estimator.
    tail : float
        Probability below the intervals.
    """

    participants: Participants
    truth: Mapping[str, PerplexityEstimate]
    equation5: Callable[[xr.Dataset], PerplexityEstimate]
    tail: float

    def player(self, fit: PlayerFit) -> LossRow:
        """Row of a language model as a player."""
        gap = fit.item_gap_nats.mean(axis=1)
        what = {"what": f"{fit.player}, rounding {fit.rounding}", "method": "belief model", "anchor": ""}
        cells = {**what, "left_out": "", "priors": "default", **convergence_columns(fit.convergence)}
        return self._row(fit.estimate, cells, gap, fit.item, item_median=np.median(fit.item_gap_nats, axis=0))

    def human(self, human: HumanFit, weight: FloatArray | None = None) -> LossRow:
        """Row of a fit to the participants; `weight` is that of the draws."""
        cells: dict[str, Any] = {
            "what": human.what,
            "method": "participant model",
            "anchor": human.fit.anchor.name,
            "left_out": "; ".join(human.left_out),
            "priors": human.priors,
            **convergence_columns(human.fit.convergence),
        }
        for name, draws in (("k0", human.fit.k0), ("top1_model", human.top1), ("tail_share", human.tail_share)):
            median, lower, upper = weighted_quantile(draws, [0.5, self.tail, 1 - self.tail], weight)
            cells |= {f"{name}_median": median, f"{name}_lower": lower, f"{name}_upper": upper}
        items = np.median(human.fit.item_gap_nats + human.shift_nats, axis=0)
        return self._row(
            self._equation5(human.left_out),
            cells,
            human.gap_nats,
            human.fit.data.item,
            item_median=items,
            weight=weight,
        )

    def main(self, human: HumanFit) -> LossRow:
        """Row of a main fit, with how far it is above the least loss that any scale of the curve gives."""
        row = self.human(human)
        if human.fit.anchor.name == "outcomes":
            median, upper = np.quantile(human.above_floor_nats, [0.5, 1 - self.tail])
            row.cells.update(above_floor_median_nats=median, above_floor_upper_nats=upper)
        return row

    def top1(self, human: HumanFit, rate: float, se: float) -> LossRow:
        """Row of the same fit, its draws weighted by the measured top-1 rate."""
        row = self.human(human, top1_weights(human.top1, rate, se))
        row.cells.update(what=f"{human.what}, top-1 rate", top1_rate_given=rate)
        return row

    def as_people(self, human: HumanFit, player: str, times: int) -> LossRow:
        """Row of simulated people with a player's belief and the participants' way to report, draws of all fits."""
        pairs = list(self.participants.as_people(human, player, times))
        fits = [fit for _, fit in pairs]
        items = np.concatenate([fit.item_gap_nats for fit in fits]) + human.shift_nats
        worst = max((fit.convergence for fit in fits), key=lambda found: found.r_hat_max)
        cells: dict[str, Any] = {
            "player": player,
            "rounding": self.participants.grid.name,
            "what": f"{player}, as people{'' if human.what == 'everyone' else f', {human.what}'}",
            "method": "participant model, simulated",
            "anchor": human.fit.anchor.name,
            "left_out": "; ".join(human.left_out),
            "priors": human.priors,
            **convergence_columns(worst),
        }
        truth = self.truth[player]
        result = replace(
            self._equation5(human.left_out, pairs[0][0].study),
            true_loss_nats=truth.true_loss_nats,
            true_gap_nats=truth.true_gap_nats,
        )
        return self._row(result, cells, items.mean(axis=1), human.fit.data.item, item_median=np.median(items, axis=0))

    def without_each(self, humans: Sequence[HumanFit], max_refits: int) -> list[LossRow]:
        """Leave out every single participant; by a new fit where the weights are no good, as far as allowed."""
        headline = humans[0]
        anchor = headline.fit.anchor
        known = {human.left_out: human for human in humans if human.fit.anchor.name == anchor.name}
        with timed("leaving out each participant"):
            ones = list(leave_one_out(headline.fit, rng_for(self.participants.seed, "leave one out")))
        bad = sorted((one for one in ones if not one.pareto_k <= K_BAD), key=lambda one: -one.pareto_k)
        bad = [one for one in bad if (one.participant,) not in known]
        again = {one.participant for one in bad[:max_refits]}
        rows = []
        for one in ones:
            left_out = (one.participant,)
            if left_out in known:
                row = self.human(known[left_out])
                row.cells.update(what="without one")
            elif one.participant in again:
                row = self.human(self.participants.fit("without one", anchor, left_out=left_out, short=True))
                row.cells.update(method="participant model, short fit")
            else:
                what = {"what": "without one", "method": "importance weights", "anchor": anchor.name}
                cells = {**what, "left_out": one.participant, "priors": "default", "converged": one.pareto_k <= K_BAD}
                gap, item = one.gap_nats + headline.shift_nats.mean(), headline.fit.data.item
                missing = np.full(item.size, np.nan)
                result = self._equation5(left_out)
                row = self._row(result, cells, gap, item, item_median=missing, weight=one.weight)
            row.cells["pareto_k_left_out"] = one.pareto_k
            rows.append(row)
        return rows

    def _equation5(self, left_out: tuple[str, ...], study: xr.Dataset | None = None) -> PerplexityEstimate:
        """Equation 5 from the same participants' answers, real or simulated."""
        study = self.participants.study if study is None else study
        return self.equation5(study.isel(response=~np.isin(study["participant"].to_numpy().astype(str), left_out)))

    def _row(
        self,
        result: PerplexityEstimate,
        cells: Mapping[str, Any],
        gap: FloatArray,
        item: NDArray[Any],
        *,
        item_median: FloatArray,
        weight: FloatArray | None = None,
    ) -> LossRow:
        whole = {
            **table_row(result, self.participants.control),
            **cells,
            **posterior_columns(result, gap, self.tail, weight),
        }
        # the generator's own gap is exact
        people = None if cells["method"] == "belief model" else self.participants.data.participant.size
        whole["caveat"] = "" if gap.size == 1 else caveats(self.participants.study, people)
        return LossRow(whole, gap, item, item_median)
