"""The loss of people's shared belief beside that of language models, and what it rests on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison import HUMAN, RoundingScheme, rounding_scheme
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.comparison.estimates import TABLE_COLUMNS, asked_for, chosen_players, compared_schemes
from shannon_game.experiments.comparison.human_loss.figures import (
    curve_figure,
    loss_figure,
    main_rows,
    sensitivity_figure,
    top1_figure,
)
from shannon_game.experiments.comparison.human_loss.rows import PRIOR_FACTORS, LossRow, LossRows
from shannon_game.experiments.comparison.human_loss.settings import HumanLossSettings
from shannon_game.experiments.comparison.human_loss.summary import summary
from shannon_game.experiments.harness.bayes import CONVERGENCE_COLUMNS, gate_failed, several_fits, unconverged
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.tables import short_names, table_variables
from shannon_game.inference.comparison.participant_fit import Anchor, ParticipantFit
from shannon_game.inference.comparison.participant_sensitivity import unusual_participants
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.models.comparison.participant_data import without_participants

__all__ = ["HUMAN_LOSS_COLUMNS", "HumanLossSettings", "human_loss"]

FloatArray = NDArray[np.float64]

_ENDS = ("median", "lower", "upper")
HUMAN_LOSS_COLUMNS = (
    *("what", "method", "anchor", "left_out", "left_out_label", "priors", "top1_rate_given"),
    *(f"gap_{end}_nats" for end in _ENDS),
    *("perplexity_median", "perplexity_posterior_lower", "perplexity_posterior_upper", "error_median_nats"),
    *(f"informed_gap_{end}_nats" for end in _ENDS),
    *(f"one_by_one_most_{end}_nats" for end in _ENDS),
    *(f"k0_{end}" for end in _ENDS),
    *("k0_true", "agreement"),
    *(f"tail_share_{end}" for end in _ENDS),
    *("tail_factor", *(f"top1_model_{end}" for end in _ENDS)),
    *CONVERGENCE_COLUMNS,
)
"""Columns after those of ``TABLE_COLUMNS``, before ``tail_factor_MODEL``.

``gap_*``: the shared belief's, over all items, with the discrepancy of the model's form and of items without any
report or answer; ``informed_gap_*``: over the others. ``one_by_one_most_*``: the mean gap of people one by one if all
noise were private belief; it is at least ``gap_*``. ``tail_factor``: by which factor the belief on tokens never drawn
would have to be multiplied before people's median gap passes that of the weakest model.
"""
_ON_SCREEN = (
    *("what", "perplexity_median", "perplexity_posterior_lower", "perplexity_posterior_upper"),
    *("k0_median", "k0_lower", "k0_upper", "tail_share_median", "tail_factor", "perplexity", "true_perplexity_asked"),
    "converged",
)


@experiment(HumanLossSettings)
def human_loss(study: xr.Dataset, settings: HumanLossSettings) -> ExperimentResult:
    """Estimate the loss of the belief that people share, beside that of every language model as a player.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study, with or without free answers.
    settings : HumanLossSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        Rows of language models as players; of people under the anchors that the study allows, without unusual
        participants, without each one, with other priors, and in closed form. The posteriors are those of people.

    Raises
    ------
    InputError
        If `leave_out` names somebody unknown, reports are not on the grid, or an anchor needs free answers that the
        study lacks.

    Examples
    --------
    >>> from shannon_game import human_loss, simulated
    >>> study = simulated(n_items=12, n_reference_items=30, vocab_size=300, n_candidates=40, n_participants=8)
    >>> result = human_loss(study, players="lm-weak", rounding="none")
    >>> result.table["what"].tolist()
    ['lm-weak, rounding none']
    """
    study, control = asked_for(study, settings)
    players = chosen_players(study, settings.players)
    made = LossRows(study, control, _grid(study, settings), settings)
    models = [name for name in players if name != HUMAN]
    n_fits = len(models) * len(compared_schemes(settings.rounding))
    anchors: list[Anchor] = []
    left_out: tuple[str, ...] = ()
    if HUMAN in players:
        # mistakes in the data and in who is left out come before any fit
        anchors = settings.anchors(made.data.has_answers)
        left_out = tuple(unusual_participants(made.data)) if settings.leave_out == "auto" else settings.leave_out
        without_participants(made.data, left_out)
        _ = made.covariates
        n_fits += len(anchors) + bool(left_out) + len(PRIOR_FACTORS) * settings.sensitivity
    with several_fits(n_fits, settings.sampler):
        rows = [row for name in models for row in made.player(name)]
        rows += _people(made, anchors, left_out) if anchors else []
    return _result(made, rows)


def _people(made: LossRows, anchors: Sequence[Anchor], left_out: Sequence[str]) -> list[LossRow]:
    """Rows of people: under the anchors, without some, in closed form, and of the sensitivity analysis."""
    settings = made.settings
    rows = [made.people("everyone", anchors[0])]
    rows += [made.people("without", anchors[0], left_out=left_out)] if left_out else []
    rate = settings.top1.rate
    weighted = [] if rate is None else [made.with_top1(row, rate) for row in rows]
    rows += [made.at_outcomes(rows[0])] if anchors[0].name == "answers" else []
    rows += [made.people(anchor.name, anchor) for anchor in anchors[1:]]
    rows += [*weighted, *(made.bridge() if made.data.has_answers else [])]
    if settings.sensitivity:
        rows += made.without_each() if made.data.participant.size > 1 else []
        rows += [made.people(f"priors: {name}", anchors[0], priors=name) for name in PRIOR_FACTORS]
    return rows


def _grid(study: xr.Dataset, settings: HumanLossSettings) -> RoundingScheme:
    """The values that participants could report."""
    if settings.grid is not None:
        return rounding_scheme(settings.grid)
    own = json.loads(study.attrs["design"]).get("scale") if "design" in study.attrs else None
    if own is None:
        return settings.rounding.scheme
    return RoundingScheme(**own) if isinstance(own, dict) else rounding_scheme(own)


def _result(made: LossRows, rows: Sequence[LossRow]) -> ExperimentResult:
    settings, name = made.settings, str(made.study.attrs["name"])
    table = _table(made, rows)
    dataset = _dataset(made, rows, table)
    figures = {"human_loss": loss_figure(table, name, settings.estimator, settings.interval)}
    if made.fits:
        figures["k0_curve"] = curve_figure(table, dataset, name, settings.interval)
        figures["top1"] = top1_figure(dataset, name, settings.top1.rate, settings.top1.se)
    if made.fits and settings.sensitivity:
        figures["sensitivity"] = sensitivity_figure(table, name, settings.interval)
    kept = made.fits if settings.save_posterior else {}
    return ExperimentResult(
        table=table,
        dataset=dataset,
        tables={} if made.covariates is None else {"covariates": _effects(made.fits["everyone"], settings.tail)},
        figures=figures,
        text=summary(table, dataset, settings.interval, settings.top1.rate),
        warnings=(*unconverged(made.found), *made.problems),
        gate_failed=gate_failed(settings, {name: found for name, found in made.found.items() if "priors:" not in name}),
        posteriors={HUMAN if what == "everyone" else f"{HUMAN}_{what}": fit.idata for what, fit in kept.items()},
        on_screen=main_rows(table)[list(_ON_SCREEN)],
    )


def _table(made: LossRows, rows: Sequence[LossRow]) -> pd.DataFrame:
    models = [f"tail_factor_{name}" for name in made.study["model"].to_numpy()]
    table = pd.DataFrame([row.cells for row in rows]).reindex(columns=[*TABLE_COLUMNS, *HUMAN_LOSS_COLUMNS, *models])
    labels = short_names(np.unique(made.study["participant"].to_numpy().astype(str)))
    left = [text.split("; ") if text else [] for text in table["left_out"]]
    table["left_out_label"] = [", ".join(labels[name] for name in names) for names in left]
    people = table["player"] == HUMAN
    table["k0_true"] = np.where(people, _true_k0(made) if people.any() else np.nan, np.nan)
    return table


def _true_k0(made: LossRows) -> float:
    """Geometric mean of the slopes of those who compared, where a simulation knows them; bots have none."""
    if "true_slope" not in made.study:
        return float("nan")
    known = made.study.sel(participant_truth=made.data.participant)
    slope = known["true_slope"].to_numpy()
    slope = slope[~known["true_bot"].to_numpy()] if "true_bot" in known else slope
    return float(np.exp(np.log(slope).mean())) if slope.size else float("nan")


def _effects(fit: ParticipantFit, tail: float) -> pd.DataFrame:
    """One row per covariate and what it has an effect on."""
    posterior = group(fit.idata, "posterior")
    rows = []
    for name in ("slope", "bias", "noise"):
        ends = posterior[f"{name}_effect"].quantile([0.5, tail, 1 - tail], ("chain", "draw")).T.to_numpy()
        named = zip(posterior["covariate"].to_numpy().astype(str), ends, strict=True)
        rows += [{"covariate": one, "of": name} | dict(zip(_ENDS, at, strict=True)) for one, at in named]
    return pd.DataFrame(rows)


def _dataset(made: LossRows, rows: Sequence[LossRow], table: pd.DataFrame) -> xr.Dataset:
    """The table, draws of every gap, the curves, and the top-1 rates."""
    asked = np.flatnonzero(np.any([np.isfinite(row.item_median_nats) for row in rows], axis=0))
    variables: dict[str, Any] = {
        "gap_draws_nats": (("estimate", "draw"), _padded([row.gap_nats for row in rows]), {"units": "nats"}),
        "item_gap_median_nats": (("estimate", "item"), np.stack([row.item_median_nats[asked] for row in rows])),
        **table_variables(table, "estimate", but=["generator"]),
    }
    coords: dict[str, Any] = {"item": item_labels(made.study)[asked]}
    attrs: dict[str, Any] = {"generator": made.control}
    shown = {what: fit for what, fit in made.fits.items() if what in ("everyone", "without")}
    if shown:
        k0, level = made.settings.curve.k0, [made.settings.tail, 0.5, 1 - made.settings.tail]
        shift = made.exact_nats(made.data.generator, made.data).mean()
        curves = [np.quantile([fit.gap_at(at) + shift for at in k0], level, axis=1) for fit in shown.values()]
        variables["curve_gap_nats"] = (("fit", "quantile", "k0"), np.stack(curves))
        variables["top1_draws"] = (("fit", "kept"), np.stack([made.top1(fit) for fit in shown.values()]))
        coords |= {"fit": np.array(list(shown), dtype=object), "quantile": level, "k0": k0}
        attrs |= {f"true_gap_nats_{name}": gap for name, gap in made.models(made.data).items()}
    named = ["what", "player", "rounding", "method", "anchor", "left_out", "priors"]
    return xr.Dataset(variables, coords=coords, attrs=attrs).set_coords(named)


def _padded(draws: Sequence[FloatArray]) -> FloatArray:
    """Draws of several rows, NaN where a row has fewer."""
    n = max(each.size for each in draws)
    return np.stack([np.pad(each, (0, n - each.size), constant_values=np.nan) for each in draws])
