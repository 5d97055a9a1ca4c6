"""Fits of the participants for ``+exp=human_loss``: everyone, without some, other priors, other scales."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf

from estimators.comparison import HUMAN, PerplexityEstimate, rounding_scheme
from experiments.comparison.belief import posterior_columns
from experiments.harness.bayes import convergence_columns
from experiments.harness.settings import chosen_rounding, estimate, rng_for, table_row, tail_probability

if TYPE_CHECKING:
    from inference.comparison.participant_fit import Anchor, ParticipantFit
    from models.comparison.participants import ParticipantPriors

__all__ = ["HumanFit", "LossRow", "Participants", "p_worse_than", "timed"]

FloatArray = NDArray[np.float64]

_FACTORS = {"narrow": 0.5, "wide": 2.0}
_CURVE_DRAWS = 500

log = logging.getLogger("shannon-game")


@dataclass(frozen=True, eq=False)
class LossRow:
    """One row of the table, and what stands behind it."""

    cells: dict[str, Any]
    gap_nats: FloatArray
    item: NDArray[np.intp]
    item_median_nats: FloatArray


@dataclass(frozen=True, eq=False)
class HumanFit:
    """A fit to the participants with what was computed from it."""

    what: str
    fit: ParticipantFit
    left_out: tuple[str, ...]
    priors: str
    shift_nats: FloatArray
    top1: FloatArray
    tail_share: FloatArray

    @property
    def gap_nats(self) -> FloatArray:
        """Mean gap to the control model, (draw,)."""
        gap: FloatArray = self.fit.gap_nats + self.shift_nats.mean()
        return gap


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say in the log, and where somebody watches, what is done now."""
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    log.info("%s took %.1f s", what, seconds)
    sys.stderr.write(f"human_loss: {what} took {seconds:.1f} s\n")


def p_worse_than(gap: FloatArray, true_gap: Mapping[str, float], weight: FloatArray | None = None) -> dict[str, float]:
    """Posterior probability that the gap is above that of each model whose truth is known, and above zero."""
    above = {f"p_worse_than_{name}": gap > value for name, value in true_gap.items()}
    above["p_gap_positive"] = gap > 0
    return {name: float(np.average(values, weights=weight)) for name, values in above.items()}


class Participants:
    """The participants of a study: data, compiled model, and the fits that share it."""

    def __init__(self, cfg: DictConfig, study: xr.Dataset, control: str, true_gap: Mapping[str, float]) -> None:
        from inference.comparison.participant_sensitivity import unusual_participants  # noqa: PLC0415
        from models.comparison.participant_data import participant_data, without_participants  # noqa: PLC0415
        from models.comparison.participants import ParticipantPriors  # noqa: PLC0415

        self.cfg, self.study, self.control, self.true_gap = cfg, study, control, true_gap
        grid = cfg.experiment.grid
        self.data = participant_data(study, chosen_rounding(cfg) if grid is None else str(grid))
        chosen = cfg.experiment.leave_out
        self.left_out = tuple(unusual_participants(self.data) if chosen == "auto" else map(str, chosen))
        without_participants(self.data, self.left_out)
        given: Any = OmegaConf.to_container(cfg.experiment.priors)
        self.priors: ParticipantPriors = ParticipantPriors(**given)
        self.posteriors: dict[str, Any] = {}
        self.program: Any = None

    @property
    def true_k0(self) -> float:
        """Geometric mean of the participants' slopes where a simulation knows them."""
        if "true_slope" not in self.study:
            return float("nan")
        slope = self.study["true_slope"].sel(participant_truth=self.data.participant).to_numpy()
        return float(np.exp(np.log(slope).mean()))

    def fits(self) -> list[HumanFit]:
        """The analysis asked for, then without the unusual ones, then with the scale assumed."""
        from inference.comparison.participant_fit import Anchor  # noqa: PLC0415

        settings = self.cfg.experiment
        with timed("compiling the participant model"):
            self.program = self._built(self.priors)
        assumed = Anchor("assumed", k0=float(settings.k0))
        anchor = assumed if settings.anchor == "assumed" else Anchor(settings.anchor, objective=settings.objective)
        found = [self.fit("everyone", anchor)]
        if self.left_out:
            found.append(self.fit("without", anchor, left_out=self.left_out))
        if anchor is not assumed:
            found.append(self.fit("assumed", assumed))
        return found

    def fit(
        self,
        what: str,
        anchor: Anchor,
        *,
        left_out: tuple[str, ...] = (),
        priors: str = "default",
        program: Any = None,
        short: bool = False,
    ) -> HumanFit:
        """Fit, and compute what tables and figures need while the model holds these data."""
        from inference.comparison.participant_fit import fit_participants  # noqa: PLC0415
        from inference.comparison.participant_gap import tail_share  # noqa: PLC0415
        from inference.posterior.convergence import GateThresholds  # noqa: PLC0415
        from inference.posterior.predictive import complete  # noqa: PLC0415
        from inference.posterior.sampling import CompiledModel  # noqa: PLC0415
        from models.comparison.participant_data import without_participants  # noqa: PLC0415

        cfg = self.cfg
        program = self.program if program is None else program
        purpose = f"human loss {what} {anchor.name} {' '.join(left_out)} {priors}"
        with timed(f"participants, {what}, anchor {anchor.name}"):
            sampler: Any = OmegaConf.to_container(
                cfg.experiment.short_sampler if short else cfg.experiment.participant_sampler
            )
            fit = fit_participants(
                without_participants(self.data, left_out),
                priors=self.priors,
                anchor=anchor,
                compiled=program if isinstance(program, CompiledModel) else None,
                thresholds=GateThresholds(**cfg.experiment.gate),
                keep=int(cfg.experiment.n_draws),
                seed=self._seed(purpose),
                sampler=cfg.sampler.name,
                cores=cfg.sampler.cores,
                **sampler,
            )
        if cfg.experiment.save_posterior and not short:
            with timed(f"log-likelihood and predictions, {what}"):
                name = "human" if what == "everyone" else f"human_{what}"
                self.posteriors[name] = complete(fit.idata, program, seed=self._seed(f"predictive {what}"))
        target = self.study["target_logprob"].sel(item=fit.data.item)
        return HumanFit(
            what=what,
            fit=fit,
            left_out=left_out,
            priors=priors,
            shift_nats=(target.sel(model=self.control) - target.sel(model=fit.data.generator)).to_numpy(),
            top1=fit.top1_rate(rng_for(cfg, f"top1 {purpose}")),
            tail_share=tail_share(fit.belief, fit.temperature).mean(axis=1),
        )

    def _built(self, priors: ParticipantPriors) -> Any:
        """Model of everyone's answers; for nutpie compiled."""
        from inference.comparison.participant_fit import compile_participants  # noqa: PLC0415
        from models.comparison.participants import participant_model  # noqa: PLC0415

        build: Callable[..., Any] = compile_participants if self.cfg.sampler.name == "nutpie" else participant_model
        return build(self.data, priors)

    def _seed(self, purpose: str) -> int:
        return int(rng_for(self.cfg, purpose).integers(2**31))

    def equation5(self, left_out: tuple[str, ...]) -> PerplexityEstimate:
        """Equation 5 from the same participants' answers."""
        kept = ~np.isin(self.study["participant"].to_numpy().astype(str), left_out)
        return estimate(self.cfg, self.study.isel(response=kept), HUMAN, rounding_scheme("none"))

    def row(self, human: HumanFit, weight: FloatArray | None = None) -> LossRow:
        """One row of the table; `weight` is that of the draws."""
        from inference.comparison.participant_sensitivity import weighted_quantile  # noqa: PLC0415

        tail = tail_probability(self.cfg)
        result = self.equation5(human.left_out)
        gap = human.gap_nats
        values: dict[str, Any] = {
            **table_row(result, self.control),
            "what": human.what,
            "method": "participant model",
            "anchor": human.fit.anchor.name,
            "left_out": "; ".join(human.left_out),
            "priors": human.priors,
            **posterior_columns(result, gap, tail, weight),
            **p_worse_than(gap, self.true_gap, weight),
            **convergence_columns(human.fit.convergence),
        }
        for name, draws in (("k0", human.fit.k0), ("top1_model", human.top1)):
            median, lower, upper = weighted_quantile(draws, [0.5, tail, 1 - tail], weight)
            values |= {f"{name}_median": median, f"{name}_lower": lower, f"{name}_upper": upper}
        values["tail_share_median"] = weighted_quantile(human.tail_share, [0.5], weight)[0]
        items = human.fit.item_gap_nats + human.shift_nats
        return LossRow(values, gap, human.fit.data.item, np.median(items, axis=0))

    def constrained_rows(self, humans: list[HumanFit]) -> list[LossRow]:
        """The same fits, their draws weighted by the measured top-1 rate."""
        from inference.comparison.participant_fit import top1_weights  # noqa: PLC0415

        rate = self.cfg.experiment.top1.rate
        if rate is None:
            return []
        rows = []
        for human in humans:
            if human.fit.anchor.name != self.cfg.experiment.anchor:
                continue
            weight = top1_weights(human.top1, float(rate), float(self.cfg.experiment.top1.se))
            row = self.row(human, weight)
            row.cells.update(what=f"{human.what}, top-1 rate", top1_rate_given=float(rate))
            rows.append(row)
        return rows

    def without_each(self, humans: list[HumanFit]) -> list[LossRow]:
        """Every single participant left out; by a new fit where the weights are no good, as far as settings allow."""
        from inference.comparison.participant_sensitivity import leave_one_out  # noqa: PLC0415
        from inference.posterior.model_comparison import K_BAD  # noqa: PLC0415

        headline = humans[0]
        known = {human.left_out: human for human in humans if human.fit.anchor.name == headline.fit.anchor.name}
        with timed("leaving out each participant"):
            ones = list(leave_one_out(headline.fit, rng_for(self.cfg, "leave one out")))
        bad = sorted((one for one in ones if not one.pareto_k <= K_BAD), key=lambda one: -one.pareto_k)
        bad = [one for one in bad if (one.participant,) not in known]
        again = {one.participant for one in bad[: int(self.cfg.experiment.max_refits)]}
        rows = []
        for one in ones:
            values: dict[str, Any]
            if (one.participant,) in known:
                row = self.row(known[one.participant,])
                row.cells.update(what="without one")
            elif one.participant in again:
                human = self.fit("without one", headline.fit.anchor, left_out=(one.participant,), short=True)
                row = self.row(human)
                row.cells.update(method="participant model, short fit")
            else:
                gap = one.gap_nats + headline.shift_nats.mean()
                result = self.equation5((one.participant,))
                values = {
                    **table_row(result, self.control),
                    "what": "without one",
                    "method": "importance weights",
                    "anchor": headline.fit.anchor.name,
                    "left_out": one.participant,
                    "priors": "default",
                    **posterior_columns(result, gap, tail_probability(self.cfg), one.weight),
                    **p_worse_than(gap, self.true_gap, one.weight),
                    "converged": one.pareto_k <= K_BAD,
                }
                row = LossRow(values, gap, headline.fit.data.item, np.full(headline.fit.data.item.size, np.nan))
            row.cells["pareto_k_left_out"] = one.pareto_k
            rows.append(row)
        return rows

    def prior_rows(self) -> list[LossRow]:
        """The headline analysis under narrower and wider priors, by short fits."""
        from inference.comparison.participant_fit import Anchor  # noqa: PLC0415
        from inference.comparison.participant_sensitivity import scaled_priors  # noqa: PLC0415

        settings = self.cfg.experiment
        anchor = Anchor(
            settings.anchor,
            k0=float(settings.k0) if settings.anchor == "assumed" else 1.0,
            objective=settings.objective,
        )
        rows = []
        for name, factor in _FACTORS.items():
            program = self._built(scaled_priors(self.priors, factor))
            rows.append(self.row(self.fit(f"priors: {name}", anchor, priors=name, program=program, short=True)))
        return rows

    def curve(self, human: HumanFit) -> tuple[FloatArray, FloatArray]:
        """Assumed k0, and the gap's quantiles there: (k0,), (quantile, k0)."""
        from inference.comparison.participant_gap import loss_gap  # noqa: PLC0415
        from inference.comparison.participant_sensitivity import thinned_belief  # noqa: PLC0415

        settings = self.cfg.experiment.curve
        grid = np.geomspace(float(settings.low), float(settings.high), int(settings.points))
        belief = thinned_belief(human.fit.belief, _CURVE_DRAWS)
        tail = tail_probability(self.cfg)
        gaps = [loss_gap(belief, human.fit.scale / k0).mean(axis=1) + human.shift_nats.mean() for k0 in grid]
        return grid, np.quantile(gaps, [tail, 0.5, 1 - tail], axis=1)
