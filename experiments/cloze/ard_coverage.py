"""``+exp=ard_coverage``: intervals of the relevance regression on data drawn from the model, a few hundred times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from omegaconf import DictConfig, ListConfig

from estimators.errors import InputError
from experiments.cloze.ard.settings import design_columns, main_variant, names_of
from experiments.cloze.settings import whole
from experiments.harness.bayes import require_bayes
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.outputs import ExperimentResult
from experiments.harness.replication import n_jobs, progress_bar, replicates_path
from experiments.harness.settings import numbers_of, tail_probability

if TYPE_CHECKING:
    from models.cloze.ard_data import ArdData

__all__ = ["COVERAGE_COLUMNS", "run"]

COVERAGE_COLUMNS = (
    "quantity",
    "n_fits",
    "coverage",
    "coverage_se",
    "right",
    "rank_mean",
    "p_value",
    "inside_band",
    "ess_median",
    "n_unconverged",
)
"""Columns of the table.

``coverage`` is how often the interval held the truth, ``coverage_se`` its standard error if it is right, ``right`` if
it is in ``experiment.accepted``; the others are of simulation-based calibration
(:class:`inference.posterior.sbc.SbcVerdict`).
"""


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Draw parameters and data from the model on a study's design, fit, and count what the intervals hold."""
    tail_probability(cfg)
    require_bayes()
    from scipy.stats import binom  # noqa: PLC0415

    from inference.cloze.ard_sbc import ard_sbc, interval_coverage  # noqa: PLC0415 - seconds that only fits should cost
    from inference.posterior.sbc import SbcSettings, run_sbc  # noqa: PLC0415
    from inference.posterior.sbc_bands import judge_ranks  # noqa: PLC0415
    from models.cloze.ard import ArdPriors  # noqa: PLC0415

    low, high = _accepted(cfg)
    n_fits, n_ranked = whole(cfg, "n_fits"), whole(cfg, "n_ranked")
    if cfg.sampler.name != "nutpie":
        raise InputError(
            f"is {cfg.sampler.name!r}, but only nutpie compiles a model once for many fits", field="sampler.name"
        )
    variant = main_variant(cfg)
    data = _design(cfg, study)
    model = ard_sbc(
        data, prior=variant.prior, likelihood=variant.likelihood, priors=numbers_of(cfg, "priors", ArdPriors)
    )
    settings = SbcSettings(
        n_ranked=n_ranked,
        draws=int(cfg.sampler.draws),
        tune=int(cfg.sampler.tune),
        chains=int(cfg.sampler.chains),
        target_accept=float(cfg.sampler.target_accept),
    )
    rows = run_sbc(
        model,
        n_fits,
        path=replicates_path(cfg),
        seed=int(cfg.seed),
        settings=settings,
        n_jobs=n_jobs(cfg),
        progress=progress_bar("fits"),
        set_aside=cfg.experiment.replicates is None,
    )
    ranks = pd.DataFrame(rows)
    table = interval_coverage(ranks, n_ranked, float(cfg.experiment.interval))
    verdicts = {name: judge_ranks(own["rank"].to_numpy(), n_ranked) for name, own in ranks.groupby("quantity")}
    by_name = ranks.groupby("quantity")
    table["right"] = table["coverage"].between(low, high)
    table["rank_mean"] = [verdicts[name].rank_mean for name in table["quantity"]]
    table["p_value"] = [verdicts[name].p_value for name in table["quantity"]]
    table["inside_band"] = [verdicts[name].inside for name in table["quantity"]]
    table["ess_median"] = table["quantity"].map(by_name["ess"].median())
    table["n_unconverged"] = table["quantity"].map((~ranks["converged"].astype(bool)).groupby(ranks["quantity"]).sum())
    table["quantity"] = [_readable(str(name), data) for name in table["quantity"]]
    table = table[list(COVERAGE_COLUMNS)]
    outside = [str(name) for name in table.loc[~table["right"], "quantity"]]
    strays = binom.cdf(np.ceil(low * n_fits) - 1, n_fits, cfg.experiment.interval) + binom.sf(
        np.floor(high * n_fits), n_fits, cfg.experiment.interval
    )
    warnings = []
    if outside:
        warnings.append(
            f"the share of intervals that hold the truth is outside {low:g} to {high:g} for {', '.join(outside)} "
            f"({len(table) * strays:.1f} such are expected of a right model with {n_fits} fits)"
        )
    own = table["quantity"].str.startswith("coefficient")
    pooled = float(table.loc[own, "coverage"].mean())
    is_right = low <= pooled <= high and low <= float(table["coverage"].mean()) <= high
    if not is_right:
        warnings.append(f"the intervals of the coefficients together hold {pooled:.1%}: the posterior is wrong")
    if table["n_unconverged"].max():
        warnings.append(
            f"{int(table['n_unconverged'].max())} of {n_fits} fits did not converge even with longer chains; they count"
        )
    mean = float(table["coverage"].mean())
    summary = (
        f"{n_fits} times, parameters and data ({data.target.size} rows, {data.text.size} texts) were drawn from the "
        f"model of `+exp=ard` ({variant.prior}, {variant.likelihood}) with its own priors, and the model was fitted to "
        f"them. Its {cfg.experiment.interval:.0%} intervals hold the truth in {mean:.1%} of all cases, those of the "
        f"coefficients in **{pooled:.1%}**; for "
        f"**{int(table['right'].sum())} of {len(table)}** quantities the share is within {low:.0%} to {high:.0%} "
        f"(a right one strays by {table['coverage_se'].iloc[0]:.1%}, its standard error). The ranks of "
        f"{int(table['inside_band'].sum())} of {len(table)} quantities are uniform within their own 95% bands."
    )
    return ExperimentResult(
        table=table,
        dataset=_dataset(ranks, table),
        figures={"coverage": figure(table, cfg, low, high)},
        summary=summary,
        warnings=tuple(warnings),
        gate_failed=not is_right and not cfg.experiment.allow_outside,
    )


def _accepted(cfg: DictConfig) -> tuple[float, float]:
    value = cfg.experiment.accepted
    if not isinstance(value, ListConfig) or len(value) != 2 or not 0 <= value[0] < value[1] <= 1:
        raise InputError(f"is {value!r}, should be two shares: [0.86, 0.94]", field="experiment.accepted")
    if not isinstance(cfg.experiment.allow_outside, bool):
        raise InputError(
            f"is {cfg.experiment.allow_outside!r}, should be true or false", field="experiment.allow_outside"
        )
    return float(value[0]), float(value[1])


def _design(cfg: DictConfig, study: xr.Dataset) -> ArdData:
    """First contexts of the first texts, with their exact predictors and errors."""
    from models.cloze.ard_columns import measured_error  # noqa: PLC0415
    from models.cloze.ard_data import ard_data  # noqa: PLC0415

    columns = design_columns(cfg, study)
    n_texts, n_items = whole(cfg, "n_texts"), whole(cfg, "n_items_per_text")
    frame = pd.DataFrame({"text": columns.text, "position": columns.position})
    texts = frame["text"].drop_duplicates().to_numpy()[:n_texts]
    number = frame.groupby("text")["position"].rank(method="dense").to_numpy()
    small = columns.take((frame["text"].isin(texts).to_numpy()) & (number <= n_items))
    return ard_data(
        small.target,
        small.predictors,
        text=small.text,
        item=small.item,
        player=small.player,
        measured=measured_error(small, names_of(cfg, "measured", empty=True)),
    )


def _readable(quantity: str, data: ArdData) -> str:
    """Name of a quantity with the predictor's instead of its position."""
    name, _, inside = quantity.partition("[")
    if name in ("coefficient", "scale"):
        return f"{name} of {data.predictor[int(inside[:-1])]}"
    if name in ("latent_mean", "latent_spread"):
        return f"{name} of {data.noisy[int(inside[:-1])]}"
    return quantity


def _dataset(ranks: pd.DataFrame, table: pd.DataFrame) -> xr.Dataset:
    names = list(dict.fromkeys(ranks["quantity"]))
    wide = {
        column: (("quantity", "fit"), np.stack([ranks.loc[ranks["quantity"] == name, column] for name in names]))
        for column in ("rank", "truth", "posterior_mean", "posterior_sd", "ess", "r_hat")
    }
    return xr.Dataset(
        {**wide, "coverage": ("covered", table["coverage"].to_numpy())},
        coords={"quantity": np.array(names, dtype=object), "covered": table["quantity"].to_numpy(dtype=object)},
    )


def figure(table: pd.DataFrame, cfg: DictConfig, low: float, high: float) -> Figure:
    """Share of intervals that hold the truth, by quantity."""
    from scipy.stats import beta  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        fig = new_figure(6.4, 1.2 + 0.2 * len(table))
        axes = fig.subplots()
        at = -np.arange(len(table))
        axes.axvspan(low, high, color="0.92", linewidth=0, label="accepted")
        axes.axvline(cfg.experiment.interval, color="0.5", linewidth=0.9, linestyle="--", label="nominal")
        n_held = table["coverage"] * table["n_fits"]
        # Jeffreys' interval, which stays between 0 and 1
        ends = [beta.ppf(p, n_held + 0.5, table["n_fits"] - n_held + 0.5) for p in (0.05, 0.95)]
        arms = np.abs(np.stack(ends) - table["coverage"].to_numpy())
        axes.errorbar(
            table["coverage"],
            at,
            xerr=arms,
            fmt="o",
            color="#0072B2",
            markersize=4,
            label="observed, 90% interval",
        )
        axes.set_yticks(at, [name.replace("_", " ") for name in table["quantity"]])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(at[-1] - 0.7, 0.7)
        axes.set_xlabel(f"share of {cfg.experiment.interval:.0%} intervals that hold the truth")
        fig.legend(loc="outside lower center", ncols=3)
        fig.suptitle(
            f"Coverage on {int(table['n_fits'].iloc[0])} data sets drawn from the model",
            x=0.01,
            ha="left",
            fontsize=10.5,
        )
    return fig
