"""The loss of the participants' shared belief beside that of language models, and what has to be assumed for it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from estimators.comparison import rounding_scheme
from estimators.errors import InputError
from estimators.layout import HUMAN
from experiments.comparison.belief import POSTERIOR_COLUMNS, fit_players
from experiments.comparison.caveats import caveat_warnings
from experiments.comparison.estimates import TABLE_COLUMNS, asked_for, chosen_players, compared_schemes, estimate
from experiments.comparison.human_loss.curves import curve_figure, top1_figure
from experiments.comparison.human_loss.figures import loss_figure, main_rows, sensitivity_figure
from experiments.comparison.human_loss.participants import PRIOR_FACTORS, HumanFit, Participants
from experiments.comparison.human_loss.rows import LossRow, Rows
from experiments.comparison.human_loss.settings import HumanLossSettings
from experiments.comparison.human_loss.summary import summary
from experiments.harness.bayes import CONVERGENCE_COLUMNS, remedy, several_fits
from experiments.harness.result import ExperimentResult, experiment
from experiments.harness.tables import short_names, table_variables
from inference.comparison.participant_sensitivity import unusual_participants
from models.comparison.participant_data import participant_data, without_participants

__all__ = ["HUMAN_LOSS_COLUMNS", "HumanLossSettings", "human_loss"]

FloatArray = NDArray[np.float64]

HUMAN_LOSS_COLUMNS = (
    "what",
    "method",
    "anchor",
    "left_out",
    "left_out_label",
    "priors",
    "top1_rate_given",
    "k0_median",
    "k0_lower",
    "k0_upper",
    *POSTERIOR_COLUMNS,
    "caveat",
    "top1_model_median",
    "top1_model_lower",
    "top1_model_upper",
    "tail_share_median",
    "tail_share_lower",
    "tail_share_upper",
    "above_floor_median_nats",
    "above_floor_upper_nats",
    "pareto_k_left_out",
    *CONVERGENCE_COLUMNS,
)
"""Columns after those of :data:`~experiments.comparison.estimates.TABLE_COLUMNS`.

``caveat`` says what is known against the interval (:func:`~experiments.comparison.caveats.caveats`), so that no column
gives a probability.
"""
_ON_SCREEN = (
    *("what", "perplexity_median", "perplexity_posterior_lower", "perplexity_posterior_upper", "caveat"),
    *("k0_median", "k0_lower", "k0_upper", "tail_share_median", "perplexity", "true_perplexity_asked", "converged"),
)


@experiment(HumanLossSettings)
def human_loss(study: xr.Dataset, settings: HumanLossSettings) -> ExperimentResult:
    """Estimate the loss of the participants' shared belief, beside that of every language model as a player.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    settings : HumanLossSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        Rows of language models, of participants under the chosen anchor and under an assumed scale, with and without
        unusual ones, and of the sensitivity analysis. The posteriors are those of the participants.

    Raises
    ------
    InputError
        If `players` leaves out the participants, `leave_out` names somebody unknown, or reports are not on the grid.

    Examples
    --------
    >>> from experiments import human_loss, simulated
    >>> result = human_loss(simulated(), players="human", sensitivity=False)  # doctest: +SKIP
    """
    study, control = asked_for(study, settings)
    players = chosen_players(study, settings.players)
    if HUMAN not in players:
        raise InputError(f"has no {HUMAN!r}, whose loss this experiment is about", field="players")
    unrounded = rounding_scheme("none")
    models = [str(name) for name in study["model"].to_numpy()]
    truth = {name: estimate(settings, study, name, unrounded) for name in models}

    # mistakes in the data and in who is left out come before any fit
    grid = settings.rounding.scheme if settings.grid is None else rounding_scheme(settings.grid)
    data = participant_data(study, grid)
    left_out = tuple(unusual_participants(data)) if settings.leave_out == "auto" else settings.leave_out
    without_participants(data, left_out)
    participants = Participants(
        study=study,
        data=data,
        grid=grid,
        control=control,
        priors=settings.priors,
        sampler=settings.sampler,
        short_sampler=settings.sampler.with_chains(settings.short_sampler),
        gate=settings.gate,
        n_draws=settings.n_draws,
        k0=settings.curve.k0,
        seed=settings.seed,
        save=settings.save_posterior,
    )
    tail = settings.tail
    made = Rows(participants, truth, lambda part: estimate(settings, part, HUMAN, unrounded), tail)

    others = [name for name in players if name != HUMAN]
    anchor, assumed = settings.anchors
    n_main = 1 + bool(left_out) + (anchor != assumed)
    n_short = settings.max_refits + len(PRIOR_FACTORS) if settings.sensitivity else 0
    n_short += (1 + bool(left_out)) * settings.n_simulated if others else 0
    of_players = len(others) * len(compared_schemes(settings.of_players.rounding))
    also = f", {of_players} to language models" + (f", at most {n_short} short ones" if n_short else "")
    with several_fits(n_main, settings.sampler, also=also, n_also=of_players + n_short):
        rows = [made.player(fit) for fit in fit_players(study, others, settings.of_players)]
        humans = participants.main_fits(anchor, assumed, left_out)
        anchored = [human for human in humans if human.fit.anchor.name == anchor.name]
        if others and settings.n_simulated:
            weakest = max(others, key=lambda name: truth[name].true_gap_nats)
            rows += [made.as_people(human, weakest, settings.n_simulated) for human in anchored]
        rows += [made.main(human) for human in humans]
        if settings.top1.rate is not None:
            rows += [made.top1(human, settings.top1.rate, settings.top1.se) for human in anchored]
        if settings.sensitivity:
            rows += made.without_each(humans, settings.max_refits)
            rows += [made.human(human) for human in participants.prior_fits(anchor)]

    table = pd.DataFrame([row.cells for row in rows], columns=[*TABLE_COLUMNS, *HUMAN_LOSS_COLUMNS])
    labels = short_names(map(str, data.participant))
    left = [text.split("; ") if text else [] for text in table["left_out"]]
    table["left_out_label"] = [", ".join(labels[name] for name in names) for names in left]
    dataset = _dataset(table, rows, anchored, k0=settings.curve.k0, tail=tail).assign_attrs(
        generator=control,
        k0_true=participants.true_k0,
        **{f"true_gap_nats_{name}": found.true_gap_nats for name, found in truth.items()},
    )
    name, interval, measured = study.attrs["name"], settings.interval, (settings.top1.rate, settings.top1.se)
    figures = {
        "human_loss": loss_figure(table, dataset, name, settings.estimator, interval),
        "k0_curve": curve_figure(table, dataset, name, interval),
        "top1": top1_figure(table, dataset, name, *measured),
    }
    if settings.sensitivity:
        figures["sensitivity"] = sensitivity_figure(table, name, interval)
    failed, short = _unconverged(rows)
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures=figures,
        text=summary(table, dataset, interval, settings.top1.rate),
        on_screen=main_rows(table).sort_values("player", key=lambda name: name != HUMAN, kind="stable")[
            list(_ON_SCREEN)
        ],
        warnings=(
            *caveat_warnings(table),
            *(f"the posterior did not converge, do not use it: {text}" for text in failed),
            *(
                [f"short fits (sensitivity, simulated people) that did not reach the gate: {', '.join(short)}"]
                if short
                else []
            ),
        ),
        gate_failed=bool(failed) and not settings.allow_unconverged,
        posteriors=participants.posteriors,
    )


def _unconverged(rows: list[LossRow]) -> tuple[list[str], list[str]]:
    """Main fits that missed the gate, with the numbers, and short ones, by name."""
    failed, short = [], []
    for values in (row.cells for row in rows):
        if values["converged"] or ", top-1" in values["what"] or values["method"] == "importance weights":
            continue
        name = f"humans, {values['what']}" if values["player"] == HUMAN else values["what"]
        if values["left_out"]:
            name += f" {values['left_out']}"
        if values["method"].startswith("participant model, s") or values["priors"] != "default":
            short.append(name)
        else:
            failed.append(
                f"{name}: R-hat {values['r_hat_max']:.3f}, ESS {values['ess_bulk_min']:.0f} (bulk) and "
                f"{values['ess_tail_min']:.0f} (tail), {values['n_divergent']} divergent, "
                f"E-BFMI {values['bfmi_min']:.2f}; {remedy(values['n_divergent'])}"
            )
    return failed, short


def _dataset(
    table: pd.DataFrame,
    rows: list[LossRow],
    shown: list[HumanFit],
    *,
    k0: FloatArray,
    tail: float,
) -> xr.Dataset:
    """The table, draws of every gap, and the curves."""
    n = max(row.gap_nats.size for row in rows)
    gaps = np.full((len(rows), n), np.nan)
    for at, row in enumerate(rows):
        # an exact gap has one draw, which is all of them
        gaps[at, : n if row.gap_nats.size == 1 else row.gap_nats.size] = row.gap_nats
    quantile = [tail, 0.5, 1 - tail]
    curves = [np.quantile(human.curve_nats, quantile, axis=1) for human in shown]
    n_kept = max(human.top1.size for human in shown)
    return xr.Dataset(
        {
            "gap_draws_nats": (("estimate", "draw"), gaps, {"units": "nats"}),
            "item_gap_median_nats": (("estimate", "item"), np.stack([row.item_median_nats for row in rows])),
            **table_variables(table, "estimate", but=["generator"]),
            "curve_gap_nats": (("fit", "quantile", "k0"), np.stack(curves)),
            **{
                f"{name}_draws": (
                    ("fit", "kept"),
                    np.stack([np.pad(one, (0, n_kept - one.size), constant_values=np.nan) for one in draws]),
                )
                for name, draws in (
                    ("top1", [human.top1 for human in shown]),
                    ("tail_share", [human.tail_share for human in shown]),
                )
            },
        },
        coords={
            "item": rows[0].item,
            "fit": np.array([human.what for human in shown], dtype=object),
            "quantile": quantile,
            "k0": k0,
        },
    ).set_coords(["what", "player", "rounding", "method", "anchor", "left_out", "left_out_label", "priors"])
