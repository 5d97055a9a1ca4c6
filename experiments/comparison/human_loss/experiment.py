"""``+exp=human_loss``: the loss of the participants' shared belief beside that of the models, and what it assumes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from omegaconf import DictConfig, ListConfig, OmegaConf

from estimators.comparison import HUMAN, RoundingScheme, control_model, rounding_scheme
from estimators.errors import InputError, unknown_choice
from experiments.comparison.belief import POSTERIOR_COLUMNS, fit_player, posterior_columns, schemes_of
from experiments.comparison.human_loss.figures import curve_figure, loss_figure, sensitivity_figure, top1_figure
from experiments.comparison.human_loss.participants import HumanFit, LossRow, Participants, p_worse_than, timed
from experiments.comparison.human_loss.summary import summary
from experiments.harness.bayes import CONVERGENCE_COLUMNS, check_bayesian, convergence_columns, require_bayes
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import (
    TABLE_COLUMNS,
    chosen_players,
    estimate,
    table_row,
    tail_probability,
    with_n_responses,
)

if TYPE_CHECKING:
    from inference.posterior.sampling import CompiledModel

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
"""Columns after those of :data:`~experiments.harness.settings.TABLE_COLUMNS`; ``p_worse_than_MODEL`` follow."""

_SHORT = ("draws", "tune", "chains", "target_accept")


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
    participants = Participants(cfg, study, control, true_gap)
    rows: list[LossRow] = []
    compiled: dict[str, CompiledModel] = {}
    for player in (name for name in players if name != HUMAN):
        for scheme in schemes_of(cfg):
            with timed(f"{player}, rounding {scheme.name}"):
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
    from inference.comparison.participant_fit import Anchor, top1_weights  # noqa: PLC0415
    from models.comparison.belief import BeliefPriors  # noqa: PLC0415
    from models.comparison.participants import ParticipantPriors  # noqa: PLC0415

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


def _model_row(
    cfg: DictConfig,
    study: xr.Dataset,
    player: str,
    scheme: RoundingScheme,
    *,
    control: str,
    compiled: dict[str, CompiledModel],
    true_gap: Mapping[str, float],
) -> LossRow:
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
        **p_worse_than(gap, true_gap),
        **convergence_columns(fit.convergence),
    }
    return LossRow(values, gap, fit.item, np.median(fit.item_gap_nats, axis=0))


def _unconverged(rows: list[LossRow]) -> tuple[list[str], list[str]]:
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
    rows: list[LossRow],
    humans: list[HumanFit],
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
