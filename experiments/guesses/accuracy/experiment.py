"""``+exp=accuracy``: how often people and language models guess the next token, and what people differ by."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf

from estimators.errors import InputError, unknown_choice
from estimators.guesses import PracticeCurve, enough_answers, participant_accuracy, pooled_accuracy, practice_curve
from estimators.layout import response_positions
from experiments.guesses.accuracy.figures import accuracy_figure, checks_figure, forest, practice_figure
from experiments.guesses.accuracy.live import with_live_models
from experiments.guesses.accuracy.players import LanguageModel, chosen_models, language_models
from experiments.guesses.accuracy.posterior import Posterior, fit_posterior
from experiments.guesses.accuracy.summary import summary
from experiments.harness.bayes import CONVERGENCE_COLUMNS, check_bayesian, convergence_columns, require_bayes
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import rng_for, tail_probability, whole_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ACCURACY_COLUMNS", "PUBLISHED", "run"]

FloatArray = NDArray[np.float64]

ACCURACY_COLUMNS = (
    "kind",
    "name",
    "tokens",
    "source",
    "n_guesses",
    "n_participants",
    "n_documents",
    "accuracy",
    "lower",
    "upper",
    "wilson_lower",
    "wilson_upper",
    "published_n_guesses",
    "published_n_participants",
    "published_accuracy",
    "posterior_median",
    "posterior_lower",
    "posterior_upper",
    "p_best",
    "p_beats_every_participant",
    *CONVERGENCE_COLUMNS,
)
"""Columns of the table.

``kind``: ``pooled`` (people together; bounds from the bootstrap over participants and documents), ``participant``
(bounds are Wilson's), ``model`` (see :class:`experiments.guesses.accuracy.players.LanguageModel`), ``posterior``
(quantities without a raw counterpart). Posterior accuracies are of fresh texts like the study's.
"""

_ON_SCREEN = (
    *("kind", "name", "tokens", "n_guesses", "n_participants", "accuracy", "lower", "upper", "published_accuracy"),
    *("posterior_median", "posterior_lower", "posterior_upper", "p_beats_every_participant", "converged"),
)

PUBLISHED = {
    "everybody": {"n_guesses": 18530, "n_participants": 60, "accuracy": 0.29},
    "enough answers": {"n_guesses": np.nan, "n_participants": 38, "accuracy": 0.30},
}
"""Numbers of section 3 of the paper, for the public game's visible tokens without shared names."""

_KINDS = {"visible": "visible tokens", "word": "word tokens"}


@dataclass(frozen=True, eq=False)
class _Guesses:
    """Columns of the study by response."""

    correct: NDArray[np.bool_]
    participant: NDArray[np.str_]
    document: NDArray[np.str_]
    n_before: NDArray[np.int64]
    of: dict[str, NDArray[np.bool_]]
    """Which responses are of which kind of tokens; a study of words has that kind alone."""


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Accuracies with intervals, language models beside them, and the posterior of the accuracy model."""
    _check(cfg, study)
    study, played = with_live_models(cfg, study)
    guesses = _columns(study)
    models = _language_models(cfg, study, guesses)
    curve = _practice(cfg, guesses)
    fit = None
    if cfg.experiment.posterior:
        kind = _posterior_tokens(cfg, guesses)
        fit = fit_posterior(cfg, study, guesses.of[kind], models[kind])
    table = _table(cfg, study, guesses, models, fit)
    dataset = _dataset(table, curve, fit)
    figures: dict[str, Figure] = {"accuracy": accuracy_figure(table, cfg)}
    if fit is not None:
        figures |= {"participants": forest(table, cfg), "practice": practice_figure(dataset, cfg)}
        figures["checks"] = checks_figure(dataset, cfg)
    else:
        figures["practice"] = practice_figure(dataset, cfg)
    bad = fit is not None and not fit.convergence.passed
    reasons = "; ".join(fit.convergence.reasons) if fit is not None else ""
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures=figures,
        summary="\n\n".join([summary(table, dataset, cfg), *played]),
        warnings=(f"the posterior did not converge, do not use it: {reasons}",) if bad else (),
        gate_failed=bad and not cfg.experiment.allow_unconverged,
        posteriors={} if fit is None else {"accuracy": fit.idata},
        on_screen=_on_screen(table),
    )


def _check(cfg: DictConfig, study: xr.Dataset) -> None:
    settings = cfg.experiment
    tail_probability(cfg)
    for name in ("min_answers", "n_replicates", "n_predictive"):
        if len(whole_numbers(cfg, name)) != 1:
            raise InputError(f"is {settings[name]}, should be one whole number", field=f"experiment.{name}")
    if not isinstance(settings.posterior, bool):
        raise InputError(f"is {settings.posterior!r}, should be true or false", field="experiment.posterior")
    if settings.tokens not in _KINDS:
        raise unknown_choice("tokens", settings.tokens, _KINDS, source="experiment.tokens")
    if cfg.n is not None:
        raise InputError(f"is {cfg.n}, but this experiment takes every guess; leave it null", field="n")
    starts = settings.practice_starts
    if not OmegaConf.is_list(starts) or not all(type(start) is int for start in starts):
        raise InputError(f"is {starts}, should be a list of whole numbers", field="experiment.practice_starts")
    chosen_models(cfg, study)
    if settings.posterior:
        require_bayes()
        from models.guesses.accuracy import AccuracyPriors  # noqa: PLC0415

        check_bayesian(cfg, {"priors": AccuracyPriors})


def _columns(study: xr.Dataset) -> _Guesses:
    item = response_positions(study)
    word = study["word_token"].to_numpy()[item]
    everything = np.ones(item.size, dtype=bool)
    of = {"word": word} if word.all() else {"visible": everything, **({"word": word} if word.any() else {})}
    return _Guesses(
        correct=study["correct"].to_numpy(),
        participant=study["participant"].to_numpy().astype(str),
        document=study["item_document"].to_numpy()[item].astype(str),
        n_before=study["n_before"].to_numpy(),
        of=of,
    )


def _posterior_tokens(cfg: DictConfig, guesses: _Guesses) -> str:
    """The kind of tokens that the posterior is of; a study of words only has no other."""
    if cfg.experiment.tokens in guesses.of:
        return str(cfg.experiment.tokens)
    if cfg.experiment.tokens == "word":
        raise InputError("is 'word', but no token of the study is a word", field="experiment.tokens")
    return "word"


def _language_models(cfg: DictConfig, study: xr.Dataset, guesses: _Guesses) -> dict[str, list[LanguageModel]]:
    names = chosen_models(cfg, study)
    return {
        kind: language_models(
            study,
            names,
            tokens=kind,
            responses=mask,
            probability=float(cfg.experiment.interval),
            n_draws=int(cfg.experiment.n_replicates),
            rng=rng_for(cfg, f"language models {kind}"),
        )
        for kind, mask in guesses.of.items()
    }


def _practice(cfg: DictConfig, guesses: _Guesses) -> PracticeCurve:
    mask = guesses.of[_posterior_tokens(cfg, guesses)]
    return practice_curve(
        guesses.correct[mask],
        guesses.participant[mask],
        guesses.n_before[mask],
        starts=list(cfg.experiment.practice_starts),
        rng=rng_for(cfg, "practice"),
        n_replicates=int(cfg.experiment.n_replicates),
        probability=float(cfg.experiment.interval),
    )


# ------------------------------------------------------------------------------------------------ table


def _table(
    cfg: DictConfig,
    study: xr.Dataset,
    guesses: _Guesses,
    models: dict[str, list[LanguageModel]],
    fit: Posterior | None,
) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for kind, mask in guesses.of.items():
        rows += _pooled(cfg, study, guesses, kind, mask)
    if fit is not None:
        rows += fit.rows
    for kind, mask in guesses.of.items():
        for one in models[kind]:
            row: dict[str, Any] = {"kind": "model", "name": one.model, "tokens": kind, "source": one.source}
            row |= {"n_guesses": one.n_guesses or np.nan, "accuracy": one.accuracy}
            row |= {"lower": one.lower, "upper": one.upper}
            beats = fit is not None and kind == fit.tokens and one.draws is not None
            row["p_beats_every_participant"] = fit.beats[one.model] if fit is not None and beats else np.nan
            rows.append(row)
        rows += _participants(cfg, guesses, kind, mask, fit)
    # nothing was sampled, nothing converged
    verdict = dict.fromkeys(CONVERGENCE_COLUMNS, np.nan) if fit is None else convergence_columns(fit.convergence)
    table = pd.DataFrame([{**row, **verdict} for row in rows], columns=list(ACCURACY_COLUMNS))
    for name in ("name", "tokens", "source"):
        table[name] = table[name].fillna("").astype(object)
    return table


def _pooled(
    cfg: DictConfig, study: xr.Dataset, guesses: _Guesses, kind: str, mask: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    enough = np.zeros_like(mask)
    enough[mask] = enough_answers(guesses.participant[mask], int(cfg.experiment.min_answers))
    rows = []
    for name, taken in (("everybody", mask), ("enough answers", enough)):
        if not taken.any():
            continue
        found = pooled_accuracy(
            guesses.correct[taken],
            guesses.participant[taken],
            guesses.document[taken],
            rng=rng_for(cfg, f"pooled {kind} {name}"),
            n_replicates=int(cfg.experiment.n_replicates),
            probability=float(cfg.experiment.interval),
        )
        row: dict[str, Any] = {"kind": "pooled", "name": name, "tokens": kind, "n_guesses": found.n_guesses}
        row |= {"n_participants": found.n_participants, "n_documents": found.n_documents, "accuracy": found.accuracy}
        row |= {key: getattr(found, key) for key in ("lower", "upper", "wilson_lower", "wilson_upper")}
        if kind == "visible" and study.attrs["name"] == "lm_game_top1" and study.attrs["tokens"] == "visible":
            row |= {f"published_{key}": value for key, value in PUBLISHED[name].items()}
        rows.append(row)
        z = NormalDist().inv_cdf((1 + float(cfg.experiment.interval)) / 2)
        half = z * found.participant_mean_se
        mean: dict[str, Any] = {"kind": "pooled", "name": f"{name}, mean of participants", "tokens": kind}
        mean |= {"n_guesses": found.n_guesses, "n_participants": found.n_participants}
        mean |= {"n_documents": found.n_documents, "accuracy": found.participant_mean}
        rows.append({**mean, "lower": found.participant_mean - half, "upper": found.participant_mean + half})
    return rows


def _participants(
    cfg: DictConfig, guesses: _Guesses, kind: str, mask: NDArray[np.bool_], fit: Posterior | None
) -> list[dict[str, Any]]:
    found = participant_accuracy(
        guesses.correct[mask], guesses.participant[mask], probability=float(cfg.experiment.interval)
    )
    own: dict[str, dict[str, float]] = fit.participants if fit is not None and fit.tokens == kind else {}
    documents = pd.DataFrame({"who": guesses.participant[mask], "where": guesses.document[mask]})
    n_documents = documents.groupby("who")["where"].nunique()
    return [
        {
            "kind": "participant",
            "name": name,
            "tokens": kind,
            "n_guesses": int(found.n_guesses[at]),
            "n_participants": 1,
            "n_documents": int(n_documents[name]),
            "accuracy": float(found.accuracy[at]),
            "lower": float(found.lower[at]),
            "upper": float(found.upper[at]),
            "wilson_lower": float(found.lower[at]),
            "wilson_upper": float(found.upper[at]),
            **own.get(name, {}),
        }
        for at, name in enumerate(found.participant.tolist())
    ]


def _on_screen(table: pd.DataFrame) -> pd.DataFrame:
    """Everything but the single participants, and only the columns that say something."""
    shown = table.loc[table["kind"] != "participant", list(_ON_SCREEN)]
    return shown.dropna(axis="columns", how="all")


def _dataset(table: pd.DataFrame, curve: PracticeCurve, fit: Posterior | None) -> xr.Dataset:
    """The table, the practice curve, and what the posterior's figures show."""
    numbers = {
        str(name): ("row", table[name].to_numpy().astype(float))
        for name in table
        if name not in {"kind", "name", "tokens", "source", *CONVERGENCE_COLUMNS}
    }
    found = xr.Dataset(
        {**numbers, **{f"practice_{name}": ("bin", values) for name, values in vars(curve).items()}},
        coords={
            **{name: ("row", table[name].to_numpy(dtype=object)) for name in ("kind", "tokens", "source")},
            "row": table["name"].to_numpy(dtype=object),
        },
    )
    return found if fit is None else found.merge(fit.dataset).assign_attrs(fit.dataset.attrs)
