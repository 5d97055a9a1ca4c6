"""``+exp=recovery of=sbc``: simulation-based calibration of a model and its sampler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from pydantic import model_validator

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import SamplerSettings
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import label_below, mark, named, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.ranked_fits import RankedSettings, by_quantity, ranked_fits, unconverged_fits
from shannon_game.experiments.harness.registry import own_function
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.posterior.sbc import SbcModel
from shannon_game.inference.posterior.sbc_bands import EcdfBand, ecdf_band, ecdf_counts, judge_ranks
from shannon_game.inference.settings import Count, Probability


class SbcRow(column.Row):
    """One quantity of the model."""

    model: str = column.context("model")
    quantity: str = column.key("quantity")
    n_fits: int = column.context("data sets drawn and fitted")
    rank_mean: float = column.estimate("mean rank of the truth, from 0 to 1")
    deviation: float = column.headline("largest distance of the ECDF, 1 at the band's end")
    p_value: float = column.beside("deviation", "of ranks as far from uniform")
    inside: bool = column.flag("whether the ranks are in the quantity's own band", bad={"False": "†"})
    inside_together: bool = column.flag("whether in the wider one that holds all quantities", bad={"False": "‡"})
    ess_median: float = column.detail("median effective sample size")
    n_unconverged: int = column.detail("fits that did not converge")


MODELS: Mapping[str, str] = {
    **{name: f"shannon_game.inference.comparison.sbc.{name}" for name in ("calibration", "calibration_beta")},
    "accuracy": "shannon_game.inference.guesses.sbc.accuracy",
    "recalibration": "shannon_game.inference.bets.sbc.recalibration",
    "tvd": "shannon_game.inference.cloze.tvd_sbc.tvd",
}
"""Model -> dotted name of the function that makes its design of a study and the settings."""

_GOOD, _DOUBTFUL, _BAD = "#0072B2", "#B8860B", "#D55E00"
_N_COLUMNS = 4


class SbcSettings(RankedSettings):
    model: str = "calibration"
    """calibration, calibration_beta, accuracy, recalibration or tvd, or the dotted name of a
    function of your own: takes the study and these settings, gives an SbcModel."""
    n_items: Count = 16
    """Items of each; accuracy, recalibration and tvd take no study: everybody guesses in half of so many documents,
    bets on so many items, or answers so many contexts."""
    n_pairs: Count = 8
    """Guesses in each document (accuracy)."""
    n_participants: Count = 6
    """Participants of each."""
    probability: Probability = 0.95
    """Probability of the bands, which hold the whole ECDF of a quantity at once."""
    bands: Literal["together", "each"] = "together"
    """What ends the run with exit code 3: a quantity outside the wider bands that hold all quantities with that
    probability (together), or one outside its own (each): of 20 quantities of a right model, one is on average."""
    priors: Mapping[str, float] = {}
    """Priors of the simulation and of the fits; only those to change, such as {slope_spread: 0.5}."""
    sampler: SamplerSettings = SamplerSettings(draws=400, tune=400, chains=2, cores=1)
    """Short chains, one at a time; a fit that mixes badly is made again with longer ones."""

    @model_validator(mode="after")
    def _can_be_done(self) -> SbcSettings:
        if self.model not in MODELS and "." not in self.model:
            raise unknown_choice("model", self.model, MODELS, source="model")
        if self.sampler.name != "nutpie":
            raise InputError(
                f"{self.sampler.name!r} cannot be used; only nutpie compiles a model once for many fits",
                field="sampler",
            )
        return self


@experiment(SbcSettings, row=SbcRow)
def sbc(study: xr.Dataset, settings: SbcSettings) -> ExperimentResult:
    """Fit a model to data drawn from it, many times, and judge the ranks of the truth: one row per quantity."""
    design = own_function(MODELS.get(settings.model, settings.model), "SbcModel", field=Set("experiment.model"))
    model: SbcModel = design(study, settings)
    ranks = ranked_fits(model, settings, settings.sampler)
    band = ecdf_band(settings.n_fits, settings.n_ranked, settings.probability)
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
        n_unconverged = int((~of_quantity["converged"].astype(bool)).sum())
        row: dict[str, Any] = {"model": model, "quantity": quantity, **vars(verdict), "n_unconverged": n_unconverged}
        rows.append(row | {"ess_median": float(of_quantity["ess"].median())})
    # Bonferroni's bound over the quantities
    least = (1 - probability) / len(rows)
    return SbcRow.table({**row, "inside_together": row["p_value"] >= least} for row in rows)


def quantities_outside(table: pd.DataFrame, bands: str) -> list[str]:
    """Quantities whose ranks leave their own bands (``each``) or those of all (``together``)."""
    column = "inside" if bands == "each" else "inside_together"
    return [str(name) for name in table.loc[~table[column], "quantity"]]


def _warnings(table: pd.DataFrame, outside: Sequence[str], n_fits: int) -> tuple[str, ...]:
    said = []
    if outside:
        said.append(f"the ranks of {', '.join(outside)} are outside their bands: do not use this posterior")
    elif not table["inside"].all():
        alone = ", ".join(table.loc[~table["inside"], "quantity"])
        said.append(f"the ranks of {alone} are outside their own bands alone: raise {Set('experiment.n_fits')} to see")
    said += unconverged_fits(table["n_unconverged"].tolist(), n_fits, "their ranks are kept")
    return tuple(said)


def _dataset(ranks: pd.DataFrame, band: EcdfBand) -> xr.Dataset:
    quantities, wide = by_quantity(ranks)
    of_fit = ranks[ranks["quantity"] == quantities[0]]
    return xr.Dataset(
        {
            **wide,
            "converged": ("fit", of_fit["converged"].to_numpy().astype(np.int8)),
            "n_divergent": ("fit", of_fit["n_divergent"].to_numpy()),
            "band_lower": ("point", band.lower),
            "band_upper": ("point", band.upper),
        },
        coords={"quantity": np.array(quantities, dtype=object), "fit": of_fit["fit"].to_numpy(), "point": band.point},
        attrs={"n_ranked": band.n_ranked, "probability": band.probability},
    )


def summary(table: pd.DataFrame, settings: SbcSettings) -> str:
    """Say in words whether the posterior is calibrated, and how surely."""
    probability, n_all = settings.probability, len(table)
    worst = table.sort_values("p_value").iloc[0]
    joint = table.loc[table["quantity"] == "log_likelihood", "inside"].iloc[0]
    bad = [
        f"{row.quantity} (truth {'above' if row.rank_mean > 0.5 else 'below'} the middle of its posterior)"
        for row in rows_of(table[~table["inside"]])
    ]
    return (
        f"**The posterior is calibrated for {int(table['inside'].sum())} of {n_all} quantities**: their ranks are "
        f"inside the {probability:.0%} bands, {int(table['inside_together'].sum())} inside the bands of all together; "
        f"outside: {listed(bad)}. Parameters and data were drawn from the model {settings.model} and fitted "
        f"{settings.n_fits} times; a right model has {n_all * (1 - probability):.1f} quantities outside on "
        f"average. The joint log-likelihood is {'inside' if joint else 'OUTSIDE'}, and the furthest out is "
        f"{worst['quantity']} (p = {worst['p_value']:.3f}; times {n_all} quantities, "
        f"{min(1, worst['p_value'] * n_all):.2f})."
    )


@styled
def sbc_figure(ranks: pd.DataFrame, band: EcdfBand, table: pd.DataFrame) -> Figure:
    """Difference of every quantity's ECDF from the diagonal, with the bands."""
    n_rows = math.ceil(len(table) / _N_COLUMNS)
    fig = new_figure(7.2, 0.9 + 1.35 * n_rows)
    grid = fig.subplots(n_rows, _N_COLUMNS, sharex=True, sharey=True, squeeze=False)
    for axes, row in zip(grid.flat, rows_of(table), strict=False):
        of_quantity = ranks.loc[ranks["quantity"] == row.quantity, "rank"].to_numpy()
        counts = ecdf_counts(of_quantity, band.n_ranked)
        ends = (end / band.n_fits - band.point for end in (band.lower, band.upper))
        axes.fill_between(band.point, *ends, color="0.88", linewidth=0, step="mid")
        axes.axhline(0, color="0.55", linewidth=0.6)
        colour = _GOOD if row.inside else _DOUBTFUL if row.inside_together else _BAD
        axes.step(band.point, counts / band.n_fits - band.point, where="mid", color=colour, linewidth=1.1)
        name = row.quantity.replace("log_likelihood", "joint log-likelihood")
        axes.set_title(name if row.inside else f"{name}: outside", fontsize=8.5, color="0" if row.inside else colour)
        axes.set_xlim(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    label_below(grid, len(table), "rank of the truth", size=8.5)
    fig.supylabel("ECDF minus uniform", fontsize=9)
    titled(
        fig, "Are posteriors right on their own model's data?", f"model {table['model'].iloc[0]}, {band.n_fits} fits"
    )
    handles = [Patch(color="0.88", label=f"simultaneous {band.probability:.0%} band"), mark("inside", _GOOD)]
    for colour, label, some in (
        (_DOUBTFUL, "outside its own band", ~table["inside"] & table["inside_together"]),
        (_BAD, "outside that of all together", ~table["inside_together"]),
    ):
        if some.any():
            handles.append(mark(label, colour))
    named(fig, handles, 4)
    return fig
