"""``+exp=human_loss``: the loss of the participants' shared belief beside that of the models, and what it assumes."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from omegaconf import DictConfig, ListConfig, OmegaConf

from estimators import HUMAN, InputError, PerplexityEstimate, RoundingScheme, control_model, rounding_scheme
from estimators.errors import unknown_choice
from experiments.bayes import CONVERGENCE_COLUMNS, check_bayesian, convergence_columns, require_bayes
from experiments.belief import POSTERIOR_COLUMNS, fit_player, posterior_columns, schemes_of
from experiments.human_loss_figures import curve_figure, loss_figure, sensitivity_figure, top1_figure
from experiments.human_loss_summary import summary
from experiments.outputs import ExperimentResult
from experiments.settings import (
    TABLE_COLUMNS,
    chosen_players,
    chosen_rounding,
    estimate,
    rng_for,
    table_row,
    tail_probability,
    with_n_responses,
)

if TYPE_CHECKING:
    from inference.participant_fit import Anchor, ParticipantFit
    from inference.sampling import CompiledModel
    from models.participants import ParticipantPriors

__all__ = ["HUMAN_LOSS_COLUMNS", "run"]

FloatArray = NDArray[np.float64]

HUMAN_LOSS_COLUMNS = (
    "what",
    "method",
    "anchor",
    "left_out",
    "priors",
    "top1_rate_given",
    "k0_median",
    "k0_lower",
    "k0_upper",
    *POSTERIOR_COLUMNS,
    "p_gap_positive",
    "top1_model_median",
    "top1_model_lower",
    "top1_model_upper",
    "tail_share_median",
    "pareto_k_left_out",
    *CONVERGENCE_COLUMNS,
)
"""Columns after those of :data:`~experiments.settings.TABLE_COLUMNS`; ``p_worse_than_MODEL`` follow."""

_SHORT = ("draws", "tune", "chains", "target_accept")
_FACTORS = {"narrow": 0.5, "wide": 2.0}
_CURVE_DRAWS = 500

log = logging.getLogger("shannon-game")


@dataclass(frozen=True, eq=False)
class _Row:
    """One row of the table, and what stands behind it."""

    cells: dict[str, Any]
    gap_nats: FloatArray
    item: NDArray[np.intp]
    item_median_nats: FloatArray


@dataclass(frozen=True, eq=False)
class _Human:
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


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Fit every language model as a player, and the participants under the chosen anchor, with and without some."""
    _check(cfg)
    study = with_n_responses(cfg, study)
    control = control_model(study, cfg.generator.name, control_only=cfg.generator.control_only)
    players = chosen_players(cfg, study)
    if HUMAN not in players:
        raise InputError(f"has no {HUMAN!r}, whose loss this experiment is about", field="players")
    models = [str(name) for name in study["model"].to_numpy()]
    true_gap = {name: estimate(cfg, study, name, rounding_scheme("none")).true_gap_nats for name in models}

    # mistakes in the data and in who is left out come before any fit
    participants = _Participants(cfg, study, control, true_gap)
    rows: list[_Row] = []
    compiled: dict[str, CompiledModel] = {}
    for player in (name for name in players if name != HUMAN):
        for scheme in schemes_of(cfg):
            with _timed(f"{player}, rounding {scheme.name}"):
                row = _model_row(cfg, study, player, scheme, control=control, compiled=compiled, true_gap=true_gap)
                rows.append(row)

    humans = participants.fits()
    rows += [participants.row(human) for human in humans]
    rows += participants.constrained_rows(humans)
    if cfg.experiment.sensitivity:
        rows += [*participants.without_each(humans), *participants.prior_rows()]

    columns = [*TABLE_COLUMNS, *HUMAN_LOSS_COLUMNS, *(f"p_worse_than_{name}" for name in models)]
    table = pd.DataFrame([row.cells for row in rows], columns=columns)
    curves = {
        human.what: participants.curve(human) for human in humans if human.fit.anchor.name == cfg.experiment.anchor
    }
    dataset = _dataset(table, rows, humans, curves, cfg).assign_attrs(
        generator=control,
        k0_true=participants.true_k0,
        **{f"true_gap_nats_{name}": gap for name, gap in true_gap.items()},
    )
    figures = {
        "human_loss": loss_figure(table, dataset, cfg),
        "k0_curve": curve_figure(table, dataset, cfg),
        "top1": top1_figure(table, dataset, cfg),
    }
    if cfg.experiment.sensitivity:
        figures["sensitivity"] = sensitivity_figure(table, cfg)
    failed, short = _unconverged(rows)
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures=figures,
        summary=summary(table, dataset, cfg),
        warnings=(
            *(f"the posterior did not converge, do not use it: {text}" for text in failed),
            *([f"short fits of the sensitivity that did not reach the gate: {', '.join(short)}"] if short else []),
        ),
        gate_failed=bool(failed) and not cfg.experiment.allow_unconverged,
        posteriors=participants.posteriors,
    )


def _check(cfg: DictConfig) -> None:
    require_bayes()
    from inference.participant_fit import Anchor, top1_weights  # noqa: PLC0415
    from models.belief import BeliefPriors  # noqa: PLC0415
    from models.participants import ParticipantPriors  # noqa: PLC0415

    check_bayesian(cfg, {"priors": ParticipantPriors, "player_priors": BeliefPriors})
    settings = cfg.experiment
    _check_numbers(settings)
    for name in ("sensitivity", "save_posterior"):
        if not isinstance(settings[name], bool):
            raise InputError(f"is {settings[name]!r}, should be true or false", field=f"experiment.{name}")
    if settings.curve.low >= settings.curve.high:
        raise InputError(f"is {settings.curve.low}, should be below curve.high", field="experiment.curve.low")
    Anchor(settings.anchor, k0=float(settings.k0), objective=settings.objective)
    if settings.top1.rate is not None:
        top1_weights([0.5], float(settings.top1.rate), float(settings.top1.se))
    if settings.leave_out != "auto" and not isinstance(settings.leave_out, ListConfig):
        raise InputError(
            f"is {settings.leave_out!r}, should be auto or a list of participants", field="experiment.leave_out"
        )


def _check_numbers(settings: DictConfig) -> None:
    def is_number(value: Any, *, whole: bool) -> bool:
        return isinstance(value, int if whole else int | float) and not isinstance(value, bool)

    for key, lowest in (("n_draws", 100), ("max_refits", 0), ("curve.points", 2)):
        value = OmegaConf.select(settings, key)
        if not is_number(value, whole=True) or value < lowest:
            raise InputError(f"is {value!r}, should be a whole number, {lowest} or larger", field=f"experiment.{key}")
    optional = ["top1.rate"] if settings.top1.rate is not None else []
    for key in ("k0", "curve.low", "curve.high", "top1.se", *optional):
        value = OmegaConf.select(settings, key)
        if not is_number(value, whole=False) or not value > 0:
            raise InputError(f"is {value!r}, should be a positive number", field=f"experiment.{key}")
    for group in ("participant_sampler", "short_sampler"):
        for name, value in settings[group].items():
            if name not in _SHORT:
                raise unknown_choice(f"experiment.{group} setting", name, _SHORT)
            if not is_number(value, whole=name != "target_accept"):
                raise InputError(f"is {value!r}, should be a number", field=f"experiment.{group}.{name}")


@contextmanager
def _timed(what: str) -> Iterator[None]:
    """Say in the log, and where somebody watches, what is done now."""
    start = time.perf_counter()
    yield
    seconds = time.perf_counter() - start
    log.info("%s took %.1f s", what, seconds)
    sys.stderr.write(f"human_loss: {what} took {seconds:.1f} s\n")


def _p_worse(gap: FloatArray, true_gap: Mapping[str, float], weight: FloatArray | None = None) -> dict[str, float]:
    above = {f"p_worse_than_{name}": gap > value for name, value in true_gap.items()}
    above["p_gap_positive"] = gap > 0
    return {name: float(np.average(values, weights=weight)) for name, values in above.items()}


def _model_row(
    cfg: DictConfig,
    study: xr.Dataset,
    player: str,
    scheme: RoundingScheme,
    *,
    control: str,
    compiled: dict[str, CompiledModel],
    true_gap: Mapping[str, float],
) -> _Row:
    result = estimate(cfg, study, player, scheme)
    fit = fit_player(cfg, study, player, scheme, control=control, compiled=compiled, priors="player_priors")
    gap = fit.item_gap_nats.mean(axis=1)
    values = {
        **table_row(result, control),
        "what": f"{player}, rounding {scheme.name}",
        "method": "belief model",
        "anchor": "",
        "left_out": "",
        "priors": "default",
        **posterior_columns(result, gap, tail_probability(cfg)),
        **_p_worse(gap, true_gap),
        **convergence_columns(fit.convergence),
    }
    return _Row(values, gap, fit.item, np.median(fit.item_gap_nats, axis=0))


class _Participants:
    """The participants of a study: data, compiled model, and the fits that share it."""

    def __init__(self, cfg: DictConfig, study: xr.Dataset, control: str, true_gap: Mapping[str, float]) -> None:
        from inference.participant_sensitivity import unusual_participants  # noqa: PLC0415
        from models.participant_data import participant_data, without_participants  # noqa: PLC0415
        from models.participants import ParticipantPriors  # noqa: PLC0415

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

    def fits(self) -> list[_Human]:
        """The analysis asked for, then without the unusual ones, then with the scale assumed."""
        from inference.participant_fit import Anchor  # noqa: PLC0415

        settings = self.cfg.experiment
        with _timed("compiling the participant model"):
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
    ) -> _Human:
        """Fit, and compute what tables and figures need while the model holds these data."""
        from inference.convergence import GateThresholds  # noqa: PLC0415
        from inference.participant_fit import fit_participants  # noqa: PLC0415
        from inference.participant_gap import tail_share  # noqa: PLC0415
        from inference.predictive import complete  # noqa: PLC0415
        from inference.sampling import CompiledModel  # noqa: PLC0415
        from models.participant_data import without_participants  # noqa: PLC0415

        cfg = self.cfg
        program = self.program if program is None else program
        purpose = f"human loss {what} {anchor.name} {' '.join(left_out)} {priors}"
        with _timed(f"participants, {what}, anchor {anchor.name}"):
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
            with _timed(f"log-likelihood and predictions, {what}"):
                name = "human" if what == "everyone" else f"human_{what}"
                self.posteriors[name] = complete(fit.idata, program, seed=self._seed(f"predictive {what}"))
        target = self.study["target_logprob"].sel(item=fit.data.item)
        return _Human(
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
        from inference.participant_fit import compile_participants  # noqa: PLC0415
        from models.participants import participant_model  # noqa: PLC0415

        build: Callable[..., Any] = compile_participants if self.cfg.sampler.name == "nutpie" else participant_model
        return build(self.data, priors)

    def _seed(self, purpose: str) -> int:
        return int(rng_for(self.cfg, purpose).integers(2**31))

    def equation5(self, left_out: tuple[str, ...]) -> PerplexityEstimate:
        """Equation 5 from the same participants' answers."""
        kept = ~np.isin(self.study["participant"].to_numpy().astype(str), left_out)
        return estimate(self.cfg, self.study.isel(response=kept), HUMAN, rounding_scheme("none"))

    def row(self, human: _Human, weight: FloatArray | None = None) -> _Row:
        """One row of the table; `weight` is that of the draws."""
        from inference.participant_sensitivity import weighted_quantile  # noqa: PLC0415

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
            **_p_worse(gap, self.true_gap, weight),
            **convergence_columns(human.fit.convergence),
        }
        for name, draws in (("k0", human.fit.k0), ("top1_model", human.top1)):
            median, lower, upper = weighted_quantile(draws, [0.5, tail, 1 - tail], weight)
            values |= {f"{name}_median": median, f"{name}_lower": lower, f"{name}_upper": upper}
        values["tail_share_median"] = weighted_quantile(human.tail_share, [0.5], weight)[0]
        items = human.fit.item_gap_nats + human.shift_nats
        return _Row(values, gap, human.fit.data.item, np.median(items, axis=0))

    def constrained_rows(self, humans: list[_Human]) -> list[_Row]:
        """The same fits, their draws weighted by the measured top-1 rate."""
        from inference.participant_fit import top1_weights  # noqa: PLC0415

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

    def without_each(self, humans: list[_Human]) -> list[_Row]:
        """Every single participant left out; by a new fit where the weights are no good, as far as settings allow."""
        from inference.model_comparison import K_BAD  # noqa: PLC0415
        from inference.participant_sensitivity import leave_one_out  # noqa: PLC0415

        headline = humans[0]
        known = {human.left_out: human for human in humans if human.fit.anchor.name == headline.fit.anchor.name}
        with _timed("leaving out each participant"):
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
                    **_p_worse(gap, self.true_gap, one.weight),
                    "converged": one.pareto_k <= K_BAD,
                }
                row = _Row(values, gap, headline.fit.data.item, np.full(headline.fit.data.item.size, np.nan))
            row.cells["pareto_k_left_out"] = one.pareto_k
            rows.append(row)
        return rows

    def prior_rows(self) -> list[_Row]:
        """The headline analysis under narrower and wider priors, by short fits."""
        from inference.participant_fit import Anchor  # noqa: PLC0415
        from inference.participant_sensitivity import scaled_priors  # noqa: PLC0415

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

    def curve(self, human: _Human) -> tuple[FloatArray, FloatArray]:
        """Assumed k0, and the gap's quantiles there: (k0,), (quantile, k0)."""
        from inference.participant_gap import loss_gap  # noqa: PLC0415
        from inference.participant_sensitivity import thinned_belief  # noqa: PLC0415

        settings = self.cfg.experiment.curve
        grid = np.geomspace(float(settings.low), float(settings.high), int(settings.points))
        belief = thinned_belief(human.fit.belief, _CURVE_DRAWS)
        tail = tail_probability(self.cfg)
        gaps = [loss_gap(belief, human.fit.scale / k0).mean(axis=1) + human.shift_nats.mean() for k0 in grid]
        return grid, np.quantile(gaps, [tail, 0.5, 1 - tail], axis=1)


def _unconverged(rows: list[_Row]) -> tuple[list[str], list[str]]:
    """Main fits that missed the gate, with the numbers, and short ones, by name."""
    failed, short = [], []
    for values in (row.cells for row in rows):
        if values["converged"] or ", top-1" in values["what"] or values["method"] == "importance weights":
            continue
        name = (
            f"{values['player']}/{values['rounding']}"
            if values["method"] == "belief model"
            else f"humans, {values['what']}"
        )
        if values["left_out"]:
            name += f" {values['left_out']}"
        if values["method"] == "participant model, short fit" or values["priors"] != "default":
            short.append(name)
        else:
            failed.append(
                f"{name}: R-hat {values['r_hat_max']:.3f}, ESS {values['ess_bulk_min']:.0f} (bulk) and "
                f"{values['ess_tail_min']:.0f} (tail), {values['n_divergent']} divergent, "
                f"E-BFMI {values['bfmi_min']:.2f}"
            )
    return failed, short


def _dataset(
    table: pd.DataFrame,
    rows: list[_Row],
    humans: list[_Human],
    curves: Mapping[str, tuple[FloatArray, FloatArray]],
    cfg: DictConfig,
) -> xr.Dataset:
    """The table, draws of every gap, and the curves."""
    n = max(row.gap_nats.size for row in rows)
    gaps = np.full((len(rows), n), np.nan)
    for at, row in enumerate(rows):
        # an exact gap has one draw, which is all of them
        gaps[at, : n if row.gap_nats.size == 1 else row.gap_nats.size] = row.gap_nats
    tail = tail_probability(cfg)
    text = ("what", "player", "rounding", "method", "anchor", "left_out", "priors")
    shown = [human for human in humans if human.what in curves]
    n_kept = max(human.top1.size for human in shown)
    return xr.Dataset(
        {
            "gap_draws_nats": (("estimate", "draw"), gaps, {"units": "nats"}),
            "item_gap_median_nats": (("estimate", "item"), np.stack([row.item_median_nats for row in rows])),
            **{name: ("estimate", table[name].to_numpy()) for name in table if table[name].dtype.kind in "fiu"},
            "converged": ("estimate", table["converged"].to_numpy().astype(np.int8)),
            "curve_gap_nats": (("fit", "quantile", "k0"), np.stack([curve[1] for curve in curves.values()])),
            "top1_draws": (
                ("fit", "kept"),
                np.stack([np.pad(h.top1, (0, n_kept - h.top1.size), constant_values=np.nan) for h in shown]),
            ),
            "tail_share_draws": (
                ("fit", "kept"),
                np.stack(
                    [np.pad(h.tail_share, (0, n_kept - h.tail_share.size), constant_values=np.nan) for h in shown]
                ),
            ),
        },
        coords={
            "item": rows[0].item,
            "fit": np.array(list(curves), dtype=object),
            "quantile": [tail, 0.5, 1 - tail],
            "k0": next(iter(curves.values()))[0],
            **{name: ("estimate", table[name].fillna("").to_numpy(dtype=object)) for name in text},
        },
    )
