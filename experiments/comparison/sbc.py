"""Simulation-based calibration of a model and its sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from hydra.utils import get_method
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pydantic import model_validator

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.experiments.comparison.estimates import RoundingSettings
from shannon_game.experiments.harness.bayes import SamplerSettings
from shannon_game.experiments.harness.figures import STYLE, new_figure
from shannon_game.experiments.harness.marks import label_below, mark, named, titled
from shannon_game.experiments.harness.replication import ReplicationSettings, replicates_path
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rows_of
from shannon_game.inference.posterior.sbc import SbcModel, run_sbc
from shannon_game.inference.posterior.sbc import SbcSettings as FitSettings
from shannon_game.inference.posterior.sbc_bands import EcdfBand, ecdf_band, ecdf_counts, judge_ranks
from shannon_game.inference.progress import stage
from shannon_game.inference.settings import Count, Probability

__all__ = ["MODELS", "SBC_COLUMNS", "SbcSettings", "judged_quantities", "quantities_outside", "sbc", "sbc_figure"]

SBC_COLUMNS = (
    "model",
    "quantity",
    "n_fits",
    "rank_mean",
    "deviation",
    "p_value",
    "inside",
    "inside_together",
    "ess_median",
    "n_unconverged",
)
"""Columns of the table; see :class:`shannon_game.inference.posterior.sbc.SbcVerdict`.

``inside``: in the quantity's own band; ``inside_together``: in the wider one that holds all quantities at once.
"""

MODELS: Mapping[str, str] = {
    **{
        name: f"shannon_game.experiments.comparison.sbc_designs.{name}"
        for name in ("calibration", "calibration_beta", "reports")
    },
    "accuracy": "shannon_game.experiments.guesses.sbc_designs.accuracy",
    "recalibration": "shannon_game.experiments.bets.sbc_designs.recalibration",
    "tvd": "shannon_game.experiments.cloze.sbc_designs.tvd",
}
"""Model -> dotted name of the function that makes its design of a study and the settings."""

_GOOD, _DOUBTFUL, _BAD = "#0072B2", "#B8860B", "#D55E00"
_N_COLUMNS = 4


class SbcSettings(ReplicationSettings, Seeded):
    """Settings of :func:`sbc`."""

    model: str = "calibration"
    """calibration, calibration_beta, reports, accuracy, recalibration or tvd (sampler=hmc), or the dotted name of a
    function of your own: takes the study and these settings, gives an SbcModel."""
    n_fits: Count = 200
    """Data sets drawn and fitted."""
    n_items: Count = 16
    """Items of each; accuracy, recalibration and tvd take no study: everybody guesses in half of so many documents,
    bets on so many items, or answers so many contexts."""
    n_pairs: Count = 8
    """Guesses in each document (accuracy)."""
    n_participants: Count = 6
    """Participants of each."""
    n_ranked: Count = 63
    """Posterior draws, nearly independent, among which the truth is ranked."""
    probability: Probability = 0.95
    """Probability of the bands, which hold the whole ECDF of a quantity at once."""
    bands: Literal["together", "each"] = "together"
    """What ends the run with exit code 3: a quantity outside the wider bands that hold all quantities with that
    probability (together), or one outside its own (each): of 20 quantities of a right model, one is on average."""
    allow_outside: bool = False
    """End with exit code 0 all the same; the table and the warnings say it either way."""
    priors: Mapping[str, float] = {}
    """Priors of the simulation and of the fits; only those to change, such as {slope_spread: 0.5}."""
    rounding: RoundingSettings = RoundingSettings()
    """The grid to which answers are rounded."""
    sampler: SamplerSettings = SamplerSettings(draws=400, tune=400, chains=2, cores=1)
    """Short chains, one at a time; a fit that mixes badly is made again with longer ones."""

    @model_validator(mode="after")
    def _can_be_done(self) -> SbcSettings:
        if self.model not in MODELS and "." not in self.model:
            raise unknown_choice("model", self.model, MODELS, source="model")
        if self.sampler.name not in {"nutpie", "hmc"}:
            raise InputError(
                f"{self.sampler.name!r} cannot be used; only nutpie and hmc compile a model once for many fits",
                field="sampler",
            )
        return self


@experiment(SbcSettings)
def sbc(study: xr.Dataset, settings: SbcSettings) -> ExperimentResult:
    """Fit a model to data drawn from it, many times, and judge the ranks of the truth (simulation-based calibration).

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study, whose first items and participants are the design.
    settings : SbcSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        One row a quantity, :data:`SBC_COLUMNS`.
    """
    design = get_method(MODELS.get(settings.model, settings.model))
    model: SbcModel = design(study, settings)
    of_fits = FitSettings(
        n_ranked=settings.n_ranked,
        draws=settings.sampler.draws,
        tune=settings.sampler.tune,
        chains=settings.sampler.chains,
        target_accept=settings.sampler.target_accept,
        sampler=settings.sampler.name,
    )
    with stage("fits", announced=True) as show:
        rows = run_sbc(
            model,
            settings.n_fits,
            path=replicates_path(settings),
            seed=settings.seed,
            settings=of_fits,
            n_jobs=settings.n_jobs,
            progress=show,
            set_aside=settings.set_aside,
        )
    band = ecdf_band(settings.n_fits, settings.n_ranked, settings.probability)
    ranks = pd.DataFrame(rows)
    table = judged_quantities(model.name, ranks, settings.n_ranked, settings.probability)
    outside = quantities_outside(table, settings.bands)
    return ExperimentResult(
        table=table,
        dataset=_dataset(ranks, band),
        figures={"sbc": sbc_figure(ranks, band, table)},
        text=summary(table, settings),
        warnings=_warnings(table, outside, settings.n_fits),
        gate_failed=bool(outside) and not settings.allow_outside,
    )


def judged_quantities(model: str, ranks: pd.DataFrame, n_ranked: int, probability: float) -> pd.DataFrame:
    """Verdict on the ranks of every quantity: the table of :func:`sbc`."""
    rows = []
    for quantity, of_quantity in ranks.groupby("quantity", sort=False):
        verdict = judge_ranks(of_quantity["rank"].to_numpy(), n_ranked, probability)
        rows.append(
            {
                "model": model,
                "quantity": quantity,
                **vars(verdict),
                "ess_median": float(of_quantity["ess"].median()),
                "n_unconverged": int((~of_quantity["converged"].astype(bool)).sum()),
            }
        )
    for row in rows:  # Bonferroni's bound over the quantities
        row["inside_together"] = row["p_value"] >= (1 - probability) / len(rows)
    return pd.DataFrame(rows, columns=list(SBC_COLUMNS))


def quantities_outside(table: pd.DataFrame, bands: str) -> list[str]:
    """Quantities whose ranks leave their own bands (``each``) or those of all (``together``)."""
    column = "inside" if bands == "each" else "inside_together"
    return [str(name) for name in table.loc[~table[column], "quantity"]]


def _warnings(table: pd.DataFrame, outside: Sequence[str], n_fits: int) -> tuple[str, ...]:
    said = []
    if outside:
        said.append(f"the ranks of {', '.join(outside)} are outside their bands: the posterior or its sampler is wrong")
    elif not table["inside"].all():
        alone = ", ".join(table.loc[~table["inside"], "quantity"])
        said.append(f"the ranks of {alone} are outside their own bands, but inside those of all quantities together")
    n_unconverged = int(table["n_unconverged"].max())
    if n_unconverged:
        said.append(f"{n_unconverged} of {n_fits} fits did not converge even with longer chains; their ranks are kept")
    return tuple(said)


def _dataset(ranks: pd.DataFrame, band: EcdfBand) -> xr.Dataset:
    """Every rank, truth and posterior mean, and the bands."""
    quantities = list(dict.fromkeys(ranks["quantity"]))
    wide = {
        name: np.stack([ranks.loc[ranks["quantity"] == q, name].to_numpy() for q in quantities])
        for name in ("rank", "truth", "posterior_mean", "posterior_sd", "ess", "r_hat")
    }
    of_fit = ranks[ranks["quantity"] == quantities[0]]
    return xr.Dataset(
        {
            **{name: (("quantity", "fit"), values) for name, values in wide.items()},
            "converged": ("fit", of_fit["converged"].to_numpy().astype(np.int8)),
            "n_divergent": ("fit", of_fit["n_divergent"].to_numpy()),
            "band_lower": ("point", band.lower),
            "band_upper": ("point", band.upper),
        },
        coords={
            "quantity": np.array(quantities, dtype=object),
            "fit": of_fit["fit"].to_numpy(),
            "point": band.point,
        },
        attrs={"n_ranked": band.n_ranked, "probability": band.probability},
    )


def summary(table: pd.DataFrame, settings: SbcSettings) -> str:
    """Say in words whether the posterior is calibrated, and how surely."""
    n_fits, probability = settings.n_fits, settings.probability
    n_inside, n_together, n_all = int(table["inside"].sum()), int(table["inside_together"].sum()), len(table)
    worst = table.sort_values("p_value").iloc[0]
    joint = table.loc[table["quantity"] == "log_likelihood"].iloc[0]
    lucky = 1 - probability**n_all
    text = (
        f"**The ranks of {n_inside} of {n_all} quantities are inside their bands.** "
        f"{n_fits} times, parameters and data were drawn from the model **{settings.model}** (with the priors of "
        f"the fits), and the model was fitted to the data. If posterior and sampler are right, the rank of each true "
        f"value among {settings.n_ranked} nearly independent posterior draws is uniform. The ECDF of the ranks stays "
        f"inside the simultaneous {probability:.0%} band for **{n_inside} of {n_all}** quantities; that of the joint "
        f"log-likelihood is {'inside' if joint['inside'] else 'OUTSIDE'}. A right model has "
        f"{n_all * (1 - probability):.1f} quantities outside on average (and, were they independent, at least one in "
        f"{lucky:.0%} of such runs). Inside the wider bands that hold all quantities at once with {probability:.0%} "
        f"are **{n_together} of {n_all}**. The furthest out is {worst['quantity']} (p = {worst['p_value']:.3f}; times "
        f"{n_all} quantities, {min(1, worst['p_value'] * n_all):.2f})."
    )
    bad = table[~table["inside"]]
    lines = [
        f"- **{row.quantity}** is outside its own band{'' if row.inside_together else ' and that of all together'} "
        f"(p = {row.p_value:.4f}): the truth is {'above' if row.rank_mean > 0.5 else 'below'} the middle of its "
        f"posterior on average (mean rank {row.rank_mean:.2f})."
        for row in rows_of(bad)
    ]
    return "\n\n".join([text, *(["\n".join(lines)] if lines else [])])


def sbc_figure(ranks: pd.DataFrame, band: EcdfBand, table: pd.DataFrame) -> Figure:
    """Difference of every quantity's ECDF from the diagonal, with the bands."""
    n_rows = math.ceil(len(table) / _N_COLUMNS)
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 0.9 + 1.35 * n_rows)
        grid = fig.subplots(n_rows, _N_COLUMNS, sharex=True, sharey=True, squeeze=False)
        for axes, row in zip(grid.flat, rows_of(table), strict=False):
            of_quantity = ranks.loc[ranks["quantity"] == row.quantity, "rank"].to_numpy()
            counts = ecdf_counts(of_quantity, band.n_ranked)
            axes.fill_between(
                band.point,
                band.lower / band.n_fits - band.point,
                band.upper / band.n_fits - band.point,
                color="0.88",
                linewidth=0,
                step="mid",
            )
            axes.axhline(0, color="0.55", linewidth=0.6)
            colour = _GOOD if row.inside else _DOUBTFUL if row.inside_together else _BAD
            axes.step(band.point, counts / band.n_fits - band.point, where="mid", color=colour, linewidth=1.1)
            name = row.quantity.replace("log_likelihood", "joint log-likelihood")
            axes.set_title(
                name if row.inside else f"{name}: outside", fontsize=8.5, color="0" if row.inside else colour
            )
            axes.set_xlim(0, 1)
            axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        label_below(grid, len(table), "rank of the truth", size=8.5)
        fig.supylabel("ECDF minus uniform", fontsize=9)
        titled(fig, f"Simulation-based calibration: {table['model'].iloc[0]}, {band.n_fits} fits", size=10)
        handles = [Patch(color="0.88", label=f"simultaneous {band.probability:.0%} band"), mark("inside", _GOOD)]
        for colour, label, some in (
            (_DOUBTFUL, "outside its own band", ~table["inside"] & table["inside_together"]),
            (_BAD, "outside that of all together", ~table["inside_together"]),
        ):
            if some.any():
                handles.append(mark(label, colour))
        named(fig, handles, 4)
    return fig
