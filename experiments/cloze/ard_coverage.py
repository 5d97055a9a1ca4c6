"""``+exp=recovery of=ard``: intervals of the relevance regression on data drawn from the model, a few hundred times."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic import model_validator
from scipy.stats import beta, binom

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Ask, Set
from shannon_game.experiments.cloze.ard.figures import predictor_label
from shannon_game.experiments.cloze.ard.settings import RelevanceSettings, data_of, design_columns
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import SamplerSettings
from shannon_game.experiments.harness.figures import Series, forest
from shannon_game.experiments.harness.marks import named
from shannon_game.experiments.harness.questions import one_panel
from shannon_game.experiments.harness.ranked_fits import RankedSettings, by_quantity, ranked_fits, unconverged_fits
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.inference.cloze.ard_sbc import ard_sbc, interval_coverage
from shannon_game.inference.posterior.sbc_bands import judge_ranks
from shannon_game.inference.settings import Count, Names, Probability
from shannon_game.models.cloze.ard_data import ArdData


class ArdCoverageRow(column.Row):
    """One quantity of the model."""

    quantity: str = column.key("quantity")
    n_fits: int = column.context("data sets drawn and fitted")
    coverage: float = column.headline("share of intervals that hold the truth", se="coverage_se")
    right: bool = column.flag("whether the coverage is in experiment.accepted", bad={"False": "†"})
    rank_mean: float = column.detail("mean rank of the truth, from 0 to 1")
    p_value: float = column.detail("of ranks as far from uniform")
    inside_band: bool = column.flag("whether the ranks are in their own 95% band", bad={"False": "‡"})
    ess_median: float = column.detail("median effective sample size")
    n_unconverged: int = column.detail("fits that did not converge")


class ArdCoverageSettings(RelevanceSettings, RankedSettings):
    players: Names | None = ("factors",)
    """The model whose contexts make the design; its words are not used."""
    predictors: Names = ("human_entropy", "model_entropy", "oracle_tvd", "word_num")
    """As in ard (simulated contexts are all of one length)."""
    n_texts: Count = 8
    """Texts of the design."""
    n_items_per_text: Count = 15
    """Contexts of the design: the first of each text."""
    interval: Probability = 0.9
    """Probability inside the intervals."""
    accepted: tuple[float, float] = (0.86, 0.94)
    """Share of intervals that hold the truth, if they are right: exit code 3 where that over all coefficients, or all
    quantities, is outside. One of twenty quantities of a right model strays out with 200 fits."""
    n_ranked: Count = 99
    """Posterior draws, nearly independent, among which the truth is ranked."""
    sampler: SamplerSettings = SamplerSettings(draws=300, tune=300, chains=2, cores=1)
    """What draws from the posterior of a fit."""

    @model_validator(mode="after")
    def _possible(self) -> ArdCoverageSettings:
        if not 0 <= self.accepted[0] < self.accepted[1] <= 1:
            raise InputError(f"is {list(self.accepted)}, should be two shares: [0.86, 0.94]", field="accepted")
        if self.sampler.name != "nutpie":
            problem = f"is {self.sampler.name!r}, but only nutpie compiles a model once for many fits"
            raise InputError(problem, field=Set("sampler.name"))
        return self


@experiment(ArdCoverageSettings, row=ArdCoverageRow)
def ard_coverage(study: xr.Dataset, settings: ArdCoverageSettings) -> ExperimentResult:
    """Draw parameters and data from the model on a study's design, fit, and count what the intervals hold."""
    (low, high), n_fits = settings.accepted, settings.n_fits
    data = _design(study, settings)
    model = ard_sbc(data, prior=settings.prior, likelihood=settings.likelihood, priors=settings.priors)
    ranks = ranked_fits(model, settings, settings.sampler)
    table = _table(ranks, data, settings)
    names, wide = by_quantity(ranks)
    own = table["quantity"].str.startswith("coefficient")
    pooled, mean = float(table.loc[own, "coverage"].mean()), float(table["coverage"].mean())
    is_right = low <= pooled <= high and low <= mean <= high
    text = (
        f"**{settings.interval:.0%} intervals of coefficients hold the truth in {pooled:.1%}**, and those of all "
        f"quantities in {mean:.1%}. {n_fits} times, parameters and data ({data.target.size} rows, {data.text.size} "
        f"texts) were drawn from the model of `{Ask('ard')}` ({settings.prior}, {settings.likelihood}) and fitted. "
        f"**{int(table['right'].sum())} of {len(table)}** quantities are within {low:.0%} to {high:.0%} (standard "
        f"error {table['coverage_se'].iloc[0]:.1%}); the ranks of {int(table['inside_band'].sum())} are uniform within "
        "their own 95% bands."
    )
    wrong = f"the intervals of the coefficients together hold {pooled:.1%}: do not use this posterior"
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(wide, coords={"quantity": np.array(names, dtype=object)}),
        figures={"coverage": ard_coverage_figure(table, interval=settings.interval, accepted=settings.accepted)},
        text=text,
        warnings=(*_warnings(table, settings), *([] if is_right else [wrong])),
        gate_failed=not is_right and not settings.allow_outside,
    )


def _table(ranks: pd.DataFrame, data: ArdData, settings: ArdCoverageSettings) -> pd.DataFrame:
    table = interval_coverage(ranks, settings.n_ranked, settings.interval)
    by_name = ranks.groupby("quantity")
    verdicts = [
        judge_ranks(by_name.get_group(name)["rank"].to_numpy(), settings.n_ranked) for name in table["quantity"]
    ]
    return table.assign(
        right=table["coverage"].between(*settings.accepted),
        rank_mean=[verdict.rank_mean for verdict in verdicts],
        p_value=[verdict.p_value for verdict in verdicts],
        inside_band=[verdict.inside for verdict in verdicts],
        ess_median=table["quantity"].map(by_name["ess"].median()),
        n_unconverged=table["quantity"].map((~ranks["converged"].astype(bool)).groupby(ranks["quantity"]).sum()),
        quantity=[_readable(str(name), data) for name in table["quantity"]],
    )


def _warnings(table: pd.DataFrame, settings: ArdCoverageSettings) -> list[str]:
    (low, high), n_fits = settings.accepted, settings.n_fits
    poor = unconverged_fits(table["n_unconverged"].tolist(), n_fits, "they count")
    outside = ", ".join(table.loc[~table["right"], "quantity"])
    if not outside:
        return poor
    strays = binom.cdf(np.ceil(low * n_fits) - 1, n_fits, settings.interval)
    strays += binom.sf(np.floor(high * n_fits), n_fits, settings.interval)
    said = f"the share of intervals that hold the truth is outside {low:g} to {high:g} for {outside} "
    return [f"{said}({len(table) * strays:.1f} such are expected of a right model with {n_fits} fits)", *poor]


def _design(study: xr.Dataset, settings: ArdCoverageSettings) -> ArdData:
    columns = design_columns(study, settings)
    frame = pd.DataFrame({"text": columns.text, "position": columns.position})
    texts = frame["text"].drop_duplicates().to_numpy()[: settings.n_texts]
    number = frame.groupby("text")["position"].rank(method="dense").to_numpy()
    small = columns.take((frame["text"].isin(texts).to_numpy()) & (number <= settings.n_items_per_text))
    return data_of(small, settings)


def _readable(quantity: str, data: ArdData) -> str:
    name, _, inside = quantity.partition("[")
    if name in ("coefficient", "scale"):
        return f"{name} of {data.predictor[int(inside[:-1])]}"
    if name in ("latent_mean", "latent_spread"):
        return f"{name} of {data.noisy[int(inside[:-1])]}"
    return quantity


def _quantity_label(name: str) -> str:
    kind, of, predictor = name.partition(" of ")
    return kind.replace("_", " ") + (of + predictor_label(predictor) if of else "")


def ard_coverage_figure(
    table: pd.DataFrame, *, interval: float = 0.9, accepted: tuple[float, float] = (0.86, 0.94)
) -> Figure:
    """Draw the share of intervals that hold the truth, by quantity."""
    n_held = table["coverage"] * table["n_fits"]
    # Jeffreys' interval, which stays between 0 and 1
    low, high = (beta.ppf(p, n_held + 0.5, table["n_fits"] - n_held + 0.5) for p in (0.05, 0.95))
    rows = table.assign(label=table["quantity"].map(_quantity_label), low=low, high=high)
    series = Series("coverage", "low", "high", label="observed, 90% interval", size=4, capsize=0)
    with one_panel(
        4.5,
        1.2 + 0.2 * len(table),
        "Do intervals of the regression hold the truth?",
        grid=None,
    ) as (fig, axes):
        accept = axes.axvspan(*accepted, color="0.92", linewidth=0, label="accepted")
        nominal = axes.axvline(interval, color="0.5", linewidth=0.9, linestyle="--", label="nominal")
        forest(axes, rows, [series])
        axes.set_xlabel(f"share of {interval:.0%} intervals with the truth, {int(table['n_fits'].iloc[0])} fits")
        named(fig, [accept, nominal, series.handle(colour="#0072B2")])
    return fig
