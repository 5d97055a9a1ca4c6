"""``+exp=belief``: the loss gap of players without noise from the belief model, beside equation 5 and the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from omegaconf import DictConfig, OmegaConf

from estimators.comparison import HUMAN, PerplexityEstimate, RoundingScheme, control_model, rounding_scheme
from estimators.errors import InputError
from experiments.harness.bayes import (
    CONVERGENCE_COLUMNS,
    check_bayesian,
    convergence_columns,
    gate,
    require_bayes,
    sample_model,
)
from experiments.harness.figures import (
    STYLE,
    TRUTH_ASKED,
    finite_range,
    log_perplexity_axis,
    new_figure,
    player_colours,
    player_label,
)
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import (
    TABLE_COLUMNS,
    chosen_players,
    chosen_rounding,
    estimate,
    rng_for,
    rows_of,
    table_row,
    tail_probability,
    with_n_responses,
)
from inference.posterior.arviz_adapter import group

if TYPE_CHECKING:
    from inference.posterior.convergence import Convergence
    from inference.posterior.sampling import CompiledModel
    from models.comparison.belief_data import BeliefData

__all__ = ["BELIEF_COLUMNS", "POSTERIOR_COLUMNS", "PlayerFit", "fit_player", "posterior_columns", "run", "schemes_of"]

POSTERIOR_COLUMNS = (
    "gap_median_nats",
    "gap_lower_nats",
    "gap_upper_nats",
    "perplexity_median",
    "perplexity_posterior_lower",
    "perplexity_posterior_upper",
    "error_median_nats",
)
"""What a posterior says of a gap; see :func:`posterior_columns`."""

BELIEF_COLUMNS = (*POSTERIOR_COLUMNS, *CONVERGENCE_COLUMNS)
"""Columns after those of :data:`~experiments.harness.settings.TABLE_COLUMNS`."""


FloatArray = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class PlayerFit:
    """Posterior draws of a player's gap to the control model.

    Attributes
    ----------
    item : ndarray of int, shape (item,)
        Labels.
    item_gap_nats : ndarray, shape (draw, item)
    convergence : Convergence or None
        None where nothing had to be fitted.
    """

    item: np.ndarray[Any, np.dtype[np.intp]]
    item_gap_nats: FloatArray
    convergence: Convergence | None


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Fit the belief model to every language model as a player, unrounded and under the config's rounding."""
    _check(cfg)
    study = with_n_responses(cfg, study)
    control = control_model(study, cfg.generator.name, control_only=cfg.generator.control_only)
    players = _players(cfg, study)
    compiled: dict[str, CompiledModel] = {}
    rows, fits, results = [], [], []
    for player in players:
        for scheme in schemes_of(cfg):
            result = estimate(cfg, study, player, scheme)
            fit = fit_player(cfg, study, player, scheme, control=control, compiled=compiled)
            found = posterior_columns(result, fit.item_gap_nats.mean(axis=1), tail_probability(cfg))
            rows.append({**table_row(result, control), **found, **convergence_columns(fit.convergence)})
            fits.append(fit)
            results.append(result)
    table = pd.DataFrame(rows, columns=[*TABLE_COLUMNS, *BELIEF_COLUMNS])
    failed = [
        f"{row['player']}/{row['rounding']}: {'; '.join(fit.convergence.reasons)}"
        for row, fit in zip(rows, fits, strict=True)
        if fit.convergence is not None and not fit.convergence.passed
    ]
    return ExperimentResult(
        table=table,
        dataset=_dataset(rows, fits, control),
        figures={"belief": figure(table, cfg)},
        summary=summary(table, cfg),
        warnings=tuple(f"the posterior did not converge, do not use it: {text}" for text in failed),
        gate_failed=bool(failed) and not cfg.experiment.allow_unconverged,
    )


def _check(cfg: DictConfig) -> None:
    require_bayes()
    from models.comparison.belief import BeliefPriors  # noqa: PLC0415

    check_bayesian(cfg, {"priors": BeliefPriors})


def _players(cfg: DictConfig, study: xr.Dataset) -> list[str]:
    players = chosen_players(cfg, study)
    if cfg.players is None:
        return [player for player in players if player != HUMAN]
    if HUMAN in players:
        raise InputError(
            f"names {HUMAN!r}, but the belief model is for players without noise; take language models",
            field="players",
        )
    return players


def schemes_of(cfg: DictConfig) -> list[RoundingScheme]:
    """No rounding and the config's, which may be the same."""
    return list(dict.fromkeys([rounding_scheme("none"), chosen_rounding(cfg)]))


def fit_player(
    cfg: DictConfig,
    study: xr.Dataset,
    player: str,
    scheme: RoundingScheme,
    *,
    control: str,
    compiled: dict[str, CompiledModel],
    priors: str = "priors",
) -> PlayerFit:
    """Fit the belief model to a player without noise.

    Parameters
    ----------
    cfg : DictConfig
    study : xarray.Dataset
    player : str
        A language model.
    scheme : RoundingScheme
        How its reports are rounded.
    control : str
        The model to which the gap is.
    compiled : dict
        Programs by rounding, of this and of other players; a new one is added.
    priors : str
        Key under ``experiment`` of the priors to change.

    Returns
    -------
    PlayerFit
    """
    from inference.comparison.belief_gap import belief_gap  # noqa: PLC0415 - seconds of imports that only a fit should cost
    from models.comparison.belief import belief_data  # noqa: PLC0415

    data = belief_data(study, player, scheme)
    # the model measures the gap to the model that drew the candidates; a control's own g(y) shifts it exactly
    target = study["target_logprob"].sel(item=data.item)
    shift = (target.sel(model=control) - target.sel(model=data.generator)).to_numpy()
    if data.is_generator_itself:
        return PlayerFit(data.item, shift[None, :], None)
    idata = sample_model(cfg, _program(cfg, data, compiled, priors), f"belief sampler {player} {scheme.name}")
    gap = belief_gap(group(idata, "posterior"), data, rng_for(cfg, f"belief gap {player} {scheme.name}"))
    return PlayerFit(data.item, gap.item_gap_nats + shift, gate(cfg, idata))


def _program(cfg: DictConfig, data: BeliefData, compiled: dict[str, CompiledModel], key: str) -> Any:
    """Model with this player's answers; for nutpie compiled once for all players."""
    from inference.comparison.belief_gap import compile_belief  # noqa: PLC0415
    from models.comparison.belief import BeliefPriors, belief_model, set_answers  # noqa: PLC0415

    priors = BeliefPriors(**OmegaConf.to_container(cfg.experiment[key]))  # type: ignore[arg-type]
    if cfg.sampler.name != "nutpie":
        return belief_model(data, priors)
    if data.rounding not in compiled:
        compiled[data.rounding] = compile_belief(data, priors)
    set_answers(compiled[data.rounding].model, data)
    return compiled[data.rounding]


def posterior_columns(
    result: PerplexityEstimate, gap: FloatArray, tail: float, weight: FloatArray | None = None
) -> dict[str, float]:
    """Give the values of :data:`POSTERIOR_COLUMNS`.

    Parameters
    ----------
    result : PerplexityEstimate
        Of the same player, for the loss to which the gap is added, and the truth.
    gap : ndarray, shape (draw,)
        Nats.
    tail : float
        Probability below the interval.
    weight : ndarray, shape (draw,), optional
        Of the draws.
    """
    from inference.comparison.participant_sensitivity import weighted_quantile  # noqa: PLC0415

    median, lower, upper = weighted_quantile(gap, [0.5, tail, 1 - tail], weight)
    base = result.reference_loss_nats
    return {
        "gap_median_nats": median,
        "gap_lower_nats": lower,
        "gap_upper_nats": upper,
        "perplexity_median": np.exp(base + median),
        "perplexity_posterior_lower": np.exp(base + lower),
        "perplexity_posterior_upper": np.exp(base + upper),
        "error_median_nats": median - result.true_gap_nats,
    }


def _dataset(rows: list[dict[str, Any]], fits: list[PlayerFit], control: str) -> xr.Dataset:
    """The table, every draw of the mean gap, and every item's posterior median."""
    scalars = pd.DataFrame(rows)
    n_draws = max(fit.item_gap_nats.shape[0] for fit in fits)
    # an exact gap has one draw, which is all of them
    gaps = np.stack([np.broadcast_to(fit.item_gap_nats.mean(axis=1), n_draws) for fit in fits])
    medians = np.stack([np.median(fit.item_gap_nats, axis=0) for fit in fits])
    return xr.Dataset(
        {
            "gap_draws_nats": (("estimate", "draw"), gaps, {"units": "nats"}),
            "item_gap_median_nats": (("estimate", "item"), medians, {"units": "nats"}),
            **{name: ("estimate", scalars[name].to_numpy()) for name in scalars if scalars[name].dtype.kind in "fiu"},
            "converged": ("estimate", scalars["converged"].to_numpy().astype(np.int8)),
        },
        coords={
            "item": fits[0].item,
            "player": ("estimate", scalars["player"].to_numpy(dtype=object)),
            "rounding": ("estimate", scalars["rounding"].to_numpy(dtype=object)),
        },
    ).assign_attrs(generator=control)


def summary(table: pd.DataFrame, cfg: DictConfig) -> str:
    """Say in words what the model found, for whom it is meant, and how far it is from the truth."""
    lines = []
    for row in rows_of(table):
        name = f"- **{player_label(row.player)}**, rounding {row.rounding}: "
        if np.isnan(row.r_hat_max) and row.converged:
            lines.append(
                f"{name}its answers are the generator's own, so that the gap is exactly "
                f"{row.gap_median_nats:.3f} nats; nothing was fitted."
            )
            continue
        inside = row.gap_lower_nats <= row.true_gap_nats <= row.gap_upper_nats
        unsure = "" if row.converged else " The posterior did NOT converge."
        lines.append(
            f"{name}gap {row.gap_median_nats:.3f} [{row.gap_lower_nats:.3f}, {row.gap_upper_nats:.3f}] nats, "
            f"equation 5 {row.gap_nats:.3f}, in truth {row.true_gap_nats:.3f} "
            f"({'inside' if inside else 'outside'} the interval).{unsure}"
        )
    return (
        "This is for players without noise, who answer from one fixed belief, such as language models. It is not for "
        "humans: their answers also carry noise, bias and slips, which this model would take for belief. "
        f"Posterior medians with {cfg.experiment.interval:.0%} intervals (equal tails) over the items asked; tokens "
        "that were not asked about are predicted by the model, those never drawn are represented by those drawn once."
        "\n\n" + "\n".join(lines)
    )


def figure(table: pd.DataFrame, cfg: DictConfig) -> Figure:
    """Posterior and equation 5 one below the other, with the truth, on a log axis."""
    players = list(dict.fromkeys(table["player"]))
    colours = player_colours(players)
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 1.6 + 0.42 * len(table))
        axes = fig.add_subplot()
        heights, labels = [], []
        height = 0.0
        for player in players:
            for row in rows_of(table[table["player"] == player]):
                colour = colours[player]
                for middle, low, high, at, marker in (
                    (
                        row.perplexity_median,
                        row.perplexity_posterior_lower,
                        row.perplexity_posterior_upper,
                        height + 0.14,
                        "o",
                    ),
                    (row.perplexity, row.perplexity_lower, row.perplexity_upper, height - 0.2, "s"),
                ):
                    bar = [[max(middle - low, 0)], [max(high - middle, 0)]]
                    axes.errorbar(
                        middle,
                        at,
                        xerr=bar,
                        fmt=marker,
                        color=colour,
                        alpha=1.0 if marker == "o" else 0.45,
                        markerfacecolor=colour if row.rounding == "none" else "white",
                        markersize=5.5 if marker == "o" else 4,
                        capsize=3 if marker == "o" else 2,
                        zorder=3,
                    )
                axes.plot(row.true_perplexity_asked, height, marker="|", markersize=20, markeredgewidth=2, color="0.35")
                heights.append(height)
                name = player_label(player) if row.rounding == "none" else f"rounded: {row.rounding}"
                labels.append(name if row.converged else f"{name} (not converged)")
                height -= 1.0
            height -= 0.4
        axes.set_yticks(heights, labels)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(height + 0.6, 0.7)
        log_perplexity_axis(
            axes,
            "x",
            *finite_range(
                table["perplexity_lower"],
                table["perplexity_upper"],
                table["perplexity_posterior_lower"],
                table["perplexity_posterior_upper"],
                table["true_perplexity_asked"],
            ),
        )
        axes.set_xlabel("perplexity per token (log scale)")
        axes.set_title(f"Players without noise: belief model and equation 5 ({cfg.study.name})")
        estimator = cfg.estimator
        handles = [
            Line2D(
                [], [], marker="o", color="0.3", markersize=5.5, label=f"belief model, {cfg.experiment.interval:.0%}"
            ),
            Line2D(
                [],
                [],
                marker="s",
                color="0.3",
                alpha=0.45,
                markersize=4,
                label=f"{estimator.name} \N{PLUS-MINUS SIGN} {estimator.n_se:g} se ({estimator.uncertainty})",
            ),
            Line2D([], [], marker="|", color="0.35", markersize=14, markeredgewidth=2, linestyle="", label=TRUTH_ASKED),
        ]
        if (table["rounding"] != "none").any():
            handles.append(
                Line2D([], [], marker="o", color="0.3", markerfacecolor="white", linestyle="", label="rounded reports")
            )
        fig.legend(handles=handles, loc="outside lower center", ncols=2)
    return fig
