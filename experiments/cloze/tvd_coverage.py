"""``+exp=tvd_coverage``: how often the interval of the Bayesian TVD holds the truth, and how far off the raw one is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from omegaconf import DictConfig, OmegaConf
from tqdm import tqdm

from estimators.cloze.distances import total_variation
from estimators.cloze.distributions import relative_frequencies
from estimators.cloze.simulation import simulate_cloze_study
from estimators.cloze.study_words import study_words
from estimators.cloze.tvd_bias import tvd_with_baseline
from estimators.cloze.words import WORD_RULES
from estimators.errors import InputError
from experiments.cloze.settings import require_scipy
from experiments.cloze.tvd.posterior import WordPairFits
from experiments.harness.bayes import check_bayesian, convergence_columns
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import rng_for, rows_of, tail_probability, whole_numbers
from experiments.studies.cloze.simulated import simulation_settings

__all__ = ["run"]

_FAMILY = {
    "mixture": "own words",
    "factors": "other probabilities",
    "ranks": "other ranks",
    "tail": "other tail",
    "same": "the same",
}


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Draw studies of several sizes from known distributions, and estimate every context's TVD."""
    if cfg.study.name != "cloze_simulated":
        raise InputError("needs the truth: use study=cloze_simulated", source="settings", field="study")
    require_scipy()
    tail = tail_probability(cfg)
    base = simulation_settings(OmegaConf.to_container(cfg.study, resolve=True))  # type: ignore[arg-type]
    check_bayesian(cfg, {})
    fits, warnings = WordPairFits(cfg), []
    sizes = whole_numbers(cfg, "n")
    rows: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    cases = [(n, family) for n in sizes for family in base.families]
    for n, family in tqdm(cases, desc="coverage", unit="study", leave=False):
        rng = rng_for(cfg, f"coverage {n} {family}")
        one = simulate_cloze_study(replace(base, n_answers=n, n_samples=n, families=(family,)), rng)
        none = WORD_RULES["none"]
        words = study_words(one, human=none, model=none, corpus=none)
        human, model = words.answers(), words.models[family].counts
        truth = one["true_tvd"].to_numpy()[0]
        raw = total_variation(relative_frequencies(human), relative_frequencies(model))
        corrected = tvd_with_baseline(human, model).corrected
        for pooled in (True, False) if cfg.experiment.unpooled else (True,):
            posterior, found = fits.fit(human, model, f"coverage fit {n} {family} {pooled}", pooled=pooled)
            if not found.passed:
                warnings.append(f"{n} answers, {_FAMILY[family]}: did not converge: {'; '.join(found.reasons)}")
            lower, upper = posterior.interval(1 - 2 * tail)
            inside = (lower <= truth) & (truth <= upper)
            rows.append(
                {
                    "n": n,
                    "family": family,
                    "pooled": pooled,
                    "n_contexts": len(truth),
                    "true_tvd": float(truth.mean()),
                    "tvd": float(raw.mean()),
                    "tvd_corrected": float(np.nanmean(corrected)),
                    "tvd_bayes": float(posterior.mean().mean()),
                    "coverage": float(inside.mean()),
                    "se_coverage": float(np.sqrt(inside.mean() * (1 - inside.mean()) / len(truth))),
                    "share_truth_below": float((truth < lower).mean()),
                    "width": float((upper - lower).mean()),
                    **convergence_columns(found),
                }
            )
            if pooled:
                points.append(
                    {
                        "n": n,
                        "family": family,
                        "truth": truth,
                        "raw": raw,
                        "mean": posterior.mean(),
                        "lower": lower,
                        "upper": upper,
                    }
                )
    table = pd.DataFrame(rows)
    dataset = xr.Dataset(
        {
            name: (("case", "item"), np.stack([point[name] for point in points]))
            for name in ("truth", "raw", "mean", "lower", "upper")
        },
        coords={"case": [f"{point['family']}, {point['n']}" for point in points], "item": study["item"].to_numpy()},
    )
    return ExperimentResult(
        table,
        dataset,
        {"tvd_coverage": figure(points, table, cfg)},
        summary(table, cfg),
        warnings=tuple(warnings),
        gate_failed=bool(warnings) and not cfg.experiment.allow_unconverged,
    )


def summary(table: pd.DataFrame, cfg: DictConfig) -> str:
    """Say what covers and what does not."""
    known = table[table["pooled"] & (table["family"] != "same")]
    lines = []
    for n, rows in known.groupby("n", sort=False):
        each = ", ".join(f"{_FAMILY[row.family]} {row.coverage:.0%}" for row in rows_of(rows))
        lines.append(
            f"- {n} answers and {n} samples: the raw TVD is off by {(rows['tvd'] - rows['true_tvd']).mean():+.3f} on "
            f"average, the posterior mean by {(rows['tvd_bayes'] - rows['true_tvd']).mean():+.3f}; "
            "the interval holds the truth in "
            f"{rows['coverage'].mean():.0%} ({each})"
        )
    text = f"Share of contexts whose {float(cfg.experiment.interval):.0%} interval holds the true TVD:\n\n" + "\n".join(
        lines
    )
    if (table["family"] == "same").any():
        text += (
            "\n\nWhere both distributions are the same (TVD 0) no interval can hold the truth, as every draw of the "
            "posterior is above it: read an interval that starts near zero as compatible with no difference."
        )
    return text


def figure(points: list[dict[str, Any]], table: pd.DataFrame, cfg: DictConfig) -> Figure:
    """Raw TVD and posterior intervals against the truth, a panel a family and size."""
    sizes = list(dict.fromkeys(point["n"] for point in points))
    families = list(dict.fromkeys(point["family"] for point in points))
    with mpl.rc_context(STYLE):
        fig = new_figure(1.9 * len(families) + 0.6, 1.95 * len(sizes) + 0.8)
        axes = fig.subplots(len(sizes), len(families), sharex=True, sharey=True, squeeze=False)
        for point in points:
            ax = axes[sizes.index(point["n"]), families.index(point["family"])]
            ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle="--")
            ax.scatter(point["truth"], point["raw"], s=5, color="#D55E00", clip_on=False, label="raw TVD", zorder=2)
            hit = (point["lower"] <= point["truth"]) & (point["truth"] <= point["upper"])
            for mask, colour, name in ((hit, "#0072B2", "interval with the truth"), (~hit, "#CC79A7", "without it")):
                ax.vlines(
                    point["truth"][mask],
                    point["lower"][mask],
                    point["upper"][mask],
                    color=colour,
                    linewidth=0.8,
                    label=name,
                )
            row = table[(table["n"] == point["n"]) & (table["family"] == point["family"]) & table["pooled"]].iloc[0]
            ax.text(0.97, 0.04, f"covers {row['coverage']:.0%}", transform=ax.transAxes, ha="right", fontsize=8)
            ax.set_xlim(-0.04, 1)
            ax.set_ylim(0, 1)
        for column, family in enumerate(families):
            axes[0, column].set_title(_FAMILY[family])
            axes[-1, column].set_xlabel("true TVD")
        for row_index, n in enumerate(sizes):
            axes[row_index, 0].set_ylabel(f"{n} answers\nestimate")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=3)
        fig.suptitle(
            f"{float(cfg.experiment.interval):.0%} posterior intervals of the TVD where it is known",
            x=0.01,
            ha="left",
            fontsize=10,
        )
    return fig
