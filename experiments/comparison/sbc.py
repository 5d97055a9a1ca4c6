"""``+exp=sbc``: simulation-based calibration of a model and its sampler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from omegaconf import DictConfig

from estimators.comparison import HUMAN, player_names, rounding_scheme
from estimators.errors import InputError, unknown_choice
from experiments.harness.bayes import require_bayes
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.outputs import ExperimentResult
from experiments.harness.replication import n_jobs, progress_bar, replicates_path
from experiments.harness.settings import chosen_rounding, numbers_of, rows_of, whole_numbers

if TYPE_CHECKING:
    from inference.posterior.sbc import SbcModel, SbcSettings
    from inference.posterior.sbc_bands import EcdfBand

__all__ = ["MODELS", "SBC_COLUMNS", "run"]

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
"""Columns of the table; see :class:`inference.posterior.sbc.SbcVerdict`.

``inside``: in the quantity's own band; ``inside_together``: in the wider one that holds all quantities at once.
"""

MODELS = ("belief", "belief_rounded", "calibration", "calibration_beta", "reports", "participants", "accuracy")
_BANDS = ("each", "together")
_GOOD, _DOUBTFUL, _BAD = "#0072B2", "#B8860B", "#D55E00"
_N_COLUMNS = 4


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Fit a model to data drawn from it, many times, and judge the ranks of the truth."""
    _check(cfg)
    from inference.posterior.sbc import run_sbc  # noqa: PLC0415 - seconds of imports that only fits should cost
    from inference.posterior.sbc_bands import ecdf_band  # noqa: PLC0415 - seconds of imports that only fits should cost

    model, settings = _model(cfg, study), _settings(cfg)
    rows = run_sbc(
        model,
        int(cfg.experiment.n_fits),
        path=replicates_path(cfg),
        seed=int(cfg.seed),
        settings=settings,
        n_jobs=n_jobs(cfg),
        progress=progress_bar("fits"),
        set_aside=cfg.experiment.replicates is None,
    )
    band = ecdf_band(int(cfg.experiment.n_fits), settings.n_ranked, float(cfg.experiment.probability))
    ranks = pd.DataFrame(rows)
    table = _table(model.name, ranks, settings.n_ranked, float(cfg.experiment.probability))
    outside = _outside(table, cfg)
    return ExperimentResult(
        table=table,
        dataset=_dataset(ranks, band),
        figures={"sbc": figure(ranks, band, table)},
        summary=summary(table, cfg, settings),
        warnings=_warnings(table, outside, cfg),
        gate_failed=bool(outside) and not cfg.experiment.allow_outside,
    )


def _check(cfg: DictConfig) -> None:
    require_bayes()
    settings = cfg.experiment
    if settings.model not in MODELS:
        raise unknown_choice("model", settings.model, MODELS, source="experiment.model")
    if settings.bands not in _BANDS:
        raise unknown_choice("bands", settings.bands, _BANDS, source="experiment.bands")
    for name in ("n_fits", "n_items", "n_pairs", "n_participants", "n_ranked", "n_jobs"):
        if len(whole_numbers(cfg, name)) != 1:
            raise InputError(f"is {settings[name]}, should be one whole number", field=f"experiment.{name}")
    probability = settings.probability
    if not (isinstance(probability, int | float) and 0 < probability < 1):
        raise InputError(f"is {probability!r}, should be between 0 and 1", field="experiment.probability")
    if not isinstance(settings.allow_outside, bool):
        raise InputError(f"is {settings.allow_outside!r}, should be true or false", field="experiment.allow_outside")
    if cfg.sampler.name != "nutpie":
        raise InputError(
            f"is {cfg.sampler.name!r}, but only nutpie compiles a model once for many fits", field="sampler.name"
        )


def _settings(cfg: DictConfig) -> SbcSettings:
    from inference.posterior.sbc import SbcSettings  # noqa: PLC0415

    for name in ("draws", "tune", "chains"):
        value = cfg.sampler[name]
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"is {value!r}, should be a whole number", field=f"sampler.{name}")
    return SbcSettings(
        n_ranked=int(cfg.experiment.n_ranked),
        draws=cfg.sampler.draws,
        tune=cfg.sampler.tune,
        chains=cfg.sampler.chains,
        target_accept=cfg.sampler.target_accept,
    )


def _model(cfg: DictConfig, study: xr.Dataset) -> SbcModel:
    """The model on a small design taken from the study."""
    from inference.comparison import sbc as sbc_models  # noqa: PLC0415

    name, settings = str(cfg.experiment.model), cfg.experiment
    if name in {"belief", "belief_rounded"}:
        from models.comparison.belief import BeliefPriors, belief_data  # noqa: PLC0415

        scheme = chosen_rounding(cfg) if name == "belief_rounded" else rounding_scheme("none")
        if name == "belief_rounded" and scheme == rounding_scheme("none"):
            raise InputError("is 'none', but experiment.model=belief_rounded rounds its answers", field="rounding")
        # any player: its answers are replaced, only which pairs there are is kept
        player = next(player for player in player_names(study) if player != HUMAN)
        design = sbc_models.small_belief_design(belief_data(study, player, scheme), settings.n_items, settings.n_pairs)
        return sbc_models.belief_sbc(design, numbers_of(cfg, "priors", BeliefPriors))
    if name == "accuracy":
        from inference.guesses.sbc import accuracy_sbc, small_accuracy_design  # noqa: PLC0415
        from models.guesses.accuracy_priors import AccuracyPriors  # noqa: PLC0415

        # a design of its own: a comparison study has no guesses
        imagined = small_accuracy_design(settings.n_participants, settings.n_items, settings.n_pairs)
        return accuracy_sbc(imagined, numbers_of(cfg, "priors", AccuracyPriors))
    small = sbc_models.small_study(study, settings.n_items, settings.n_participants)
    if name in {"calibration", "calibration_beta"}:
        from models.comparison.calibration import CalibrationPriors, favoured_outcomes  # noqa: PLC0415

        family = "llo" if name == "calibration" else "beta"
        return sbc_models.calibration_sbc(
            favoured_outcomes(small), family, numbers_of(cfg, "priors", CalibrationPriors)
        )
    if name == "reports":
        from models.comparison.calibration_data import reports_on_truth  # noqa: PLC0415
        from models.comparison.report_process import ReportPriors  # noqa: PLC0415

        return sbc_models.report_sbc(
            reports_on_truth(small, chosen_rounding(cfg)), numbers_of(cfg, "priors", ReportPriors)
        )
    from models.comparison.participant_data import participant_data  # noqa: PLC0415
    from models.comparison.participants import ParticipantPriors  # noqa: PLC0415

    return sbc_models.participant_sbc(
        participant_data(small, chosen_rounding(cfg)), numbers_of(cfg, "priors", ParticipantPriors)
    )


def _table(model: str, ranks: pd.DataFrame, n_ranked: int, probability: float) -> pd.DataFrame:
    from inference.posterior.sbc_bands import judge_ranks  # noqa: PLC0415

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


def _outside(table: pd.DataFrame, cfg: DictConfig) -> list[str]:
    """Quantities that fail the gate."""
    column = "inside" if cfg.experiment.bands == "each" else "inside_together"
    return [str(name) for name in table.loc[~table[column], "quantity"]]


def _warnings(table: pd.DataFrame, outside: Sequence[str], cfg: DictConfig) -> tuple[str, ...]:
    said = []
    if outside:
        said.append(f"the ranks of {', '.join(outside)} are outside their bands: the posterior or its sampler is wrong")
    elif not table["inside"].all():
        alone = ", ".join(table.loc[~table["inside"], "quantity"])
        said.append(f"the ranks of {alone} are outside their own bands, but inside those of all quantities together")
    n_unconverged, n_fits = int(table["n_unconverged"].max()), int(cfg.experiment.n_fits)
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


def summary(table: pd.DataFrame, cfg: DictConfig, settings: SbcSettings) -> str:
    """Say in words whether the posterior is calibrated, and how surely."""
    n_fits, probability = int(cfg.experiment.n_fits), float(cfg.experiment.probability)
    n_inside, n_together, n_all = int(table["inside"].sum()), int(table["inside_together"].sum()), len(table)
    worst = table.sort_values("p_value").iloc[0]
    joint = table.loc[table["quantity"] == "log_likelihood"].iloc[0]
    lucky = 1 - probability**n_all
    text = (
        f"{n_fits} times, parameters and data were drawn from the model **{cfg.experiment.model}** (with the priors of "
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


def figure(ranks: pd.DataFrame, band: EcdfBand, table: pd.DataFrame) -> Figure:
    """Difference of every quantity's ECDF from the diagonal, with the bands."""
    from inference.posterior.sbc_bands import ecdf_counts  # noqa: PLC0415

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
            axes.axhline(0, color="0.6", linewidth=0.6)
            colour = _GOOD if row.inside else _DOUBTFUL if row.inside_together else _BAD
            axes.step(band.point, counts / band.n_fits - band.point, where="mid", color=colour, linewidth=1.1)
            name = row.quantity.replace("log_likelihood", "joint log-likelihood")
            axes.set_title(
                name if row.inside else f"{name}: outside", fontsize=8.5, color="0" if row.inside else colour
            )
            axes.set_xlim(0, 1)
            axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
        for axes in list(grid.flat)[len(table) :]:
            axes.set_visible(False)
        for column in range(_N_COLUMNS):
            # where the last row is not full, the one above carries the numbers
            visible = [axes for axes in grid[:, column] if axes.get_visible()]
            if visible:
                visible[-1].tick_params(labelbottom=True)
                visible[-1].set_xlabel("rank of the truth", fontsize=8.5)
        fig.supylabel("ECDF minus uniform", fontsize=9)
        fig.suptitle(
            f"Simulation-based calibration: {table['model'].iloc[0]}, {band.n_fits} fits",
            fontsize=10,
            x=0.01,
            horizontalalignment="left",
        )
        handles = [
            Patch(color="0.88", label=f"simultaneous {band.probability:.0%} band"),
            Line2D([], [], color=_GOOD, label="inside"),
        ]
        for colour, label, some in (
            (_DOUBTFUL, "outside its own band", ~table["inside"] & table["inside_together"]),
            (_BAD, "outside that of all together", ~table["inside_together"]),
        ):
            if some.any():
                handles.append(Line2D([], [], color=colour, label=label))
        fig.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return fig
