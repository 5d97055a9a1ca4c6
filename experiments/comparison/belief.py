"""The loss gap of players without noise from the belief model, beside equation 5 and the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from estimators.comparison import PerplexityEstimate, control_model
from estimators.layout import item_labels
from estimators.perplexity import perplexity_of_loss
from experiments.comparison.caveats import NOT_RELIED_ON, caveat_warnings, caveats
from experiments.comparison.estimates import (
    TABLE_COLUMNS,
    ComparisonSettings,
    EstimatorSettings,
    asked_for,
    bars_label,
    chosen_models,
    compared_schemes,
    estimate,
    player_rows,
    table_row,
)
from experiments.harness.bayes import (
    CONVERGENCE_COLUMNS,
    FITS,
    KEPT,
    PosteriorSettings,
    SamplerSettings,
    convergence_columns,
    fit_model,
    gate_failed,
    several_fits,
    timed,
    unconverged,
    with_all_groups,
)
from experiments.harness.figures import STYLE, TRUTH_ASKED, Series, forest, new_figure, player_label
from experiments.harness.marks import named
from experiments.harness.result import ExperimentResult, experiment
from experiments.harness.settings import rng_for, rows_of
from experiments.harness.tables import table_variables
from inference.comparison.belief_gap import belief_gap, compile_belief
from inference.comparison.participant_sensitivity import weighted_quantile
from inference.posterior.arviz_adapter import group, thin
from inference.progress import advance
from inference.settings import numbers_of
from models.comparison.belief import BeliefPriors, set_answers
from models.comparison.belief_data import BeliefData, belief_data

if TYPE_CHECKING:
    from inference.posterior.arviz_adapter import InferenceData
    from inference.posterior.convergence import Convergence
    from inference.posterior.sampling import CompiledModel

__all__ = [
    "BELIEF_COLUMNS",
    "POSTERIOR_COLUMNS",
    "BeliefSettings",
    "PlayerFit",
    "belief",
    "belief_figure",
    "fit_players",
    "posterior_columns",
]

FloatArray = NDArray[np.float64]

_GAP_DRAWS = 4000
"""Draws for which the gap is computed, evenly spaced: each costs thousands of tokens."""

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

BELIEF_COLUMNS = (*POSTERIOR_COLUMNS, "caveat", *CONVERGENCE_COLUMNS)
"""Columns after those of :data:`~experiments.comparison.estimates.TABLE_COLUMNS`."""

_ON_SCREEN = (
    *("player", "rounding", "perplexity_median", "perplexity_posterior_lower", "perplexity_posterior_upper", "caveat"),
    *("true_perplexity_asked", "perplexity", "error_median_nats", "converged"),
)


class BeliefSettings(ComparisonSettings, PosteriorSettings):
    """Settings of :func:`belief`."""

    sampler: SamplerSettings = SamplerSettings(name="hmc", draws=3000, tune=600, target_accept=0.8)
    """What draws from the posterior."""
    priors: Annotated[BeliefPriors, numbers_of(BeliefPriors)] = BeliefPriors()
    """Scales of the weak priors, as ``{sigma: 1.0}``: only those to change
    (:class:`~models.comparison.belief.BeliefPriors`)."""


@dataclass(frozen=True, eq=False)
class PlayerFit:
    """Posterior draws of a player's gap to the control model.

    Attributes
    ----------
    player, rounding : str
    estimate : PerplexityEstimate
        By the classical estimator.
    item : ndarray of int, shape (item,)
        Labels.
    item_gap_nats : ndarray, shape (draw, item)
        About 4,000 draws.
    convergence : Convergence or None
        None where nothing had to be fitted.
    posterior : InferenceData or None
        About 2,000 of the draws, with all groups, where it is to be saved.
    """

    player: str
    rounding: str
    estimate: PerplexityEstimate
    item: NDArray[Any]
    item_gap_nats: FloatArray
    convergence: Convergence | None = None
    posterior: InferenceData | None = None

    @property
    def name(self) -> str:
        """Player and rounding."""
        return f"{self.player}/{self.rounding}"


@experiment(BeliefSettings)
def belief(study: xr.Dataset, settings: BeliefSettings) -> ExperimentResult:
    """Fit the belief model to every language model as a player, unrounded and under one rounding.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    settings : BeliefSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        One row a player and rounding; a posterior each.

    Raises
    ------
    InputError
        If `players` names people.

    Examples
    --------
    >>> from experiments import belief, simulated
    >>> study = simulated(n_items=12, n_reference_items=30, vocab_size=300, n_candidates=40, n_participants=8)
    >>> result = belief(study, players="lm-weak", sampler={"draws": 500, "chains": 2})  # doctest: +SKIP
    """
    study, control = asked_for(study, settings)
    why = "but the belief model is for players without noise; take language models"
    players = chosen_models(study, settings.players, why)
    tail = (1 - settings.interval) / 2
    n_fits = len(players) * len(compared_schemes(settings.rounding))
    with several_fits(n_fits, settings.sampler):
        fits = list(fit_players(study, players, settings))
    rows = [
        {
            **table_row(fit.estimate, control),
            **posterior_columns(fit.estimate, fit.item_gap_nats.mean(axis=1), tail),
            "caveat": "" if fit.convergence is None else caveats(study),
            **convergence_columns(fit.convergence),
        }
        for fit in fits
    ]
    table = pd.DataFrame(rows, columns=[*TABLE_COLUMNS, *BELIEF_COLUMNS])
    found = {fit.name: fit.convergence for fit in fits}
    return ExperimentResult(
        table=table,
        dataset=_dataset(table, fits, control),
        figures={"belief": belief_figure(table, study.attrs["name"], settings.estimator, settings.interval)},
        text=summary(table, settings.interval),
        warnings=(*unconverged(found), *caveat_warnings(table)),
        gate_failed=gate_failed(settings, found),
        on_screen=table[list(_ON_SCREEN)],
        posteriors={f"{fit.player}_{fit.rounding}": fit.posterior for fit in fits if fit.posterior is not None},
    )


def fit_players(study: xr.Dataset, players: Sequence[str], settings: BeliefSettings) -> Iterator[PlayerFit]:
    """Fit the belief model to players without noise, unrounded and under one rounding."""
    control = control_model(study, settings.generator.name, control_only=settings.generator.control_only)
    programs: dict[str, CompiledModel] = {}
    for player in players:
        for scheme in compared_schemes(settings.rounding):
            result = estimate(settings, study, player, scheme)
            data = belief_data(study, player, scheme)
            # the model measures the gap to the model that drew the candidates; a control's own g(y) shifts it exactly
            target = study["target_logprob"].assign_coords(item=item_labels(study)).sel(item=data.item)
            shift = (target.sel(model=control) - target.sel(model=data.generator)).to_numpy()
            if data.is_generator_itself:
                advance(FITS)  # nothing to sample
                yield PlayerFit(player, scheme.name, result, data.item, shift[None, :])
                continue
            with timed(f"{player}, rounding {scheme.name}"):
                program = _program(data, settings.priors, programs)
                purpose = f"belief sampler {player} {scheme.name}"
                fit = fit_model(settings, program, purpose)
                rng = rng_for(settings.seed, f"belief gap {player} {scheme.name}")
                # every draw of the gap costs thousands of tokens
                gap = belief_gap(group(thin(fit.idata, _GAP_DRAWS), "posterior"), data, rng).item_gap_nats + shift
                posterior = (
                    with_all_groups(fit.idata, program, settings.seed, purpose, keep=KEPT)
                    if settings.save_posterior
                    else None
                )
            yield PlayerFit(player, scheme.name, result, data.item, gap, fit.convergence, posterior)


def _program(data: BeliefData, priors: BeliefPriors, programs: dict[str, CompiledModel]) -> CompiledModel:
    """Model with this player's answers, built once for all players."""
    if data.rounding not in programs:
        programs[data.rounding] = compile_belief(data, priors)
    set_answers(programs[data.rounding].model, data)
    return programs[data.rounding]


def posterior_columns(
    result: PerplexityEstimate, gap: FloatArray, tail: float, weight: FloatArray | None = None
) -> dict[str, float]:
    """Give the values of :data:`POSTERIOR_COLUMNS`."""
    median, lower, upper = weighted_quantile(gap, [0.5, tail, 1 - tail], weight)
    # of no answer that says how far: beyond every number
    perplexity = perplexity_of_loss(result.reference_loss_nats + np.array([median, lower, upper]))
    return {
        "gap_median_nats": median,
        "gap_lower_nats": lower,
        "gap_upper_nats": upper,
        "perplexity_median": perplexity[0],
        "perplexity_posterior_lower": perplexity[1],
        "perplexity_posterior_upper": perplexity[2],
        "error_median_nats": median - result.true_gap_nats,
    }


def _dataset(scalars: pd.DataFrame, fits: Sequence[PlayerFit], control: str) -> xr.Dataset:
    """The table, every draw of the mean gap, and every item's posterior median."""
    n_draws = max(fit.item_gap_nats.shape[0] for fit in fits)
    # an exact gap has one draw, which is all of them
    gaps = np.stack([np.broadcast_to(fit.item_gap_nats.mean(axis=1), n_draws) for fit in fits])
    medians = np.stack([np.median(fit.item_gap_nats, axis=0) for fit in fits])
    return xr.Dataset(
        {
            "gap_draws_nats": (("estimate", "draw"), gaps, {"units": "nats"}),
            "item_gap_median_nats": (("estimate", "item"), medians, {"units": "nats"}),
            **table_variables(scalars, "estimate", but=["generator"]),
        },
        coords={"item": fits[0].item},
        attrs={"generator": control},
    ).set_coords(["player", "rounding"])


def summary(table: pd.DataFrame, interval: float = 0.9) -> str:
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
        unsure = f" ({row.caveat})" * bool(row.caveat)
        unsure += "." if row.converged else ". The posterior did NOT converge."
        lines.append(
            f"{name}gap {row.gap_median_nats:.3f} [{row.gap_lower_nats:.3f}, {row.gap_upper_nats:.3f}] nats, "
            f"equation 5 {row.gap_nats:.3f}, in truth {row.true_gap_nats:.3f} "
            f"({'inside' if inside else 'outside'} the interval){unsure}"
        )
    return (
        "\n".join(lines) + "\n\n"
        "This is for players without noise, who answer from one fixed belief, such as language models. It is not for "
        "humans: their answers also carry noise, bias and slips, which this model would take for belief. "
        f"Posterior medians with {interval:.0%} intervals (equal tails) over the items asked; tokens "
        "that were not asked about are predicted by the model, those never drawn are represented by those drawn once."
    )


def _classical(estimator: str) -> str:
    return "importance sampling (equation 5)" if estimator == "importance" else f"estimator {estimator}"


def belief_figure(
    table: pd.DataFrame, study_name: str = "", estimator: EstimatorSettings | None = None, interval: float = 0.9
) -> Figure:
    """Posterior and equation 5 one below the other, with the truth, on a log axis."""
    rows = player_rows(table)
    rows["label"] += np.where(table["converged"].astype(bool), "", " (not converged)")
    rows["hollow"] = rows["caveat"] != ""
    posterior = Series(
        "perplexity_median",
        "perplexity_posterior_lower",
        "perplexity_posterior_upper",
        label=f"belief model, {interval:.0%}",
        offset=0.14,
    )
    classical = Series(
        "perplexity",
        "perplexity_lower",
        "perplexity_upper",
        label=bars_label(estimator, _classical(table["estimator"].iloc[0])),
        marker="s",
        size=4,
        alpha=0.45,
        capsize=2,
        offset=-0.2,
    )
    truth = Series("true_perplexity_asked", label=TRUTH_ASKED, marker="|", size=20, colour="0.35")
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 1.6 + 0.42 * len(table))
        axes = fig.add_subplot()
        forest(axes, rows, [posterior, classical, truth], scale="log")
        axes.set_xlabel("perplexity per token (log scale)")
        axes.set_title(f"Players without noise, by two methods ({study_name})")
        doubtful = [posterior.handle(hollow=True, label=NOT_RELIED_ON)] if rows["hollow"].any() else []
        named(fig, [*(each.handle() for each in (posterior, classical, truth)), *doubtful], 2)
    return fig
