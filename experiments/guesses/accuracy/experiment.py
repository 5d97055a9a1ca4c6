"""``+exp=accuracy``: how often people and language models guess the next token, and what people differ by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses import PracticeCurve, participant_accuracy, pooled_accuracy, practice_curve
from shannon_game.estimators.guesses.accuracy import enough_answers
from shannon_game.estimators.guesses.tables import guess_items
from shannon_game.estimators.layout import HUMAN, response_positions
from shannon_game.experiments.documents.majority import majority_figure, majority_text
from shannon_game.experiments.guesses.accuracy.figures import accuracy_figure, participants_figure, practice_figure
from shannon_game.experiments.guesses.accuracy.live import with_live_models
from shannon_game.experiments.guesses.accuracy.majority import majority_table
from shannon_game.experiments.guesses.accuracy.players import LanguageModel, chosen_models, language_models
from shannon_game.experiments.guesses.accuracy.settings import AccuracySettings
from shannon_game.experiments.guesses.accuracy.summary import people_table, summary
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import (
    CONVERGENCE_COLUMNS,
    ConvergenceRow,
    convergence_columns,
    gate_failed,
    unconverged,
)
from shannon_game.experiments.harness.questions import records
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.harness.tables import short_names

if TYPE_CHECKING:
    from shannon_game.experiments.guesses.accuracy.posterior import Posterior


class AccuracyRow(column.Row, last=ConvergenceRow):
    """Some people, an ensemble of them, one of them, a model, or a quantity of the posterior."""

    kind: str = column.key("pooled, majority, posterior, model or participant")
    name: str = column.key("who, or what")
    label: str = column.detail("name in figures")
    tokens: str = column.key("which tokens were guessed")
    source: str = column.detail("where a model's accuracy comes from")
    n_guesses: int = column.context("guesses")
    n_participants: int = column.context("people")
    n_documents: int = column.context("documents")
    accuracy: float = column.headline("share of guesses that are right", interval="{}")
    wilson_lower: float = column.detail("lower end of Wilson's interval")
    wilson_upper: float = column.detail("upper end of Wilson's interval")
    published_n_guesses: int = column.detail("guesses in the paper")
    published_n_participants: int = column.detail("people in the paper")
    published_accuracy: float = column.beside("accuracy", "accuracy in the paper")
    posterior_median: float = column.estimate("posterior of the accuracy, or of the quantity", interval="posterior_{}")
    p_best: float = column.detail("probability that the participant is the best")
    p_beats_every_participant: float = column.beside("accuracy", "probability that the model beats every participant")


PUBLISHED = {
    "everybody": {"n_guesses": 18530, "n_participants": 60, "accuracy": 0.29},
    "enough answers": {"n_guesses": np.nan, "n_participants": 38, "accuracy": 0.30},
}
"""Numbers of section 3 of the paper, for the public game's visible tokens without shared names."""


@dataclass(frozen=True, eq=False)
class _Guesses:
    """Columns of the study by response."""

    correct: NDArray[np.bool_]
    participant: NDArray[np.str_]
    document: NDArray[np.str_]
    n_before: NDArray[np.int64]
    of: dict[str, NDArray[np.bool_]]
    """Which responses are of which kind of tokens; a study of words has that kind alone."""


@experiment(AccuracySettings, row=AccuracyRow)
def accuracy(study: xr.Dataset, settings: AccuracySettings) -> ExperimentResult:
    """Accuracies with intervals, language models beside them, and the posterior of what people differ by.

    Figures 1 and 2 of the paper, and section 3. Its ``tables`` have one row per item
    (:func:`~shannon_game.estimators.guesses.tables.guess_items`), and single numbers about people
    (:func:`people_table`).

    Examples
    --------
    >>> from shannon_game import accuracy, guess_study
    >>> answers = {"participant": ["p", "p", "q"], "document": ["d"] * 3, "position": [0, 1, 0]}
    >>> answers |= {"target": ["a", "cat", "a"], "guess": ["a", "dog", "a"]}
    >>> result = accuracy(guess_study(pd.DataFrame(answers)), posterior=False, min_answers=1, n_replicates=50)
    >>> result.table.loc[0, ["name", "n_guesses", "accuracy"]].tolist()
    ['everybody', 3, 0.6666666666666666]
    """
    chosen_models(settings.players, study)
    study, played = with_live_models(settings, study)
    guesses = _columns(study)
    models = {kind: language_models(study, settings, kind, mask) for kind, mask in guesses.of.items()}
    curve = _practice(settings, guesses)
    found = None
    if settings.posterior:
        from shannon_game.experiments.guesses.accuracy.posterior import fit_posterior  # noqa: PLC0415 - the extra bayes

        kind = _posterior_tokens(settings, guesses)
        found = fit_posterior(settings, study, guesses.of[kind], models[kind])
    majorities = {kind: majority_table(study, settings, mask) for kind, mask in guesses.of.items()}
    together = next((each for each in majorities.values() if len(each)), None)
    table = _table(settings, study, guesses, models, found, majorities)
    dataset = _dataset(table, curve, found)
    people = people_table(
        guesses.correct, guesses.participant, guesses.of, models, min_answers=settings.min_answers,
        n_unseen=study.attrs.get("n_unseen"),
    )  # fmt: skip
    name, interval = str(study.attrs["name"]), settings.interval
    figures = {"accuracy": accuracy_figure(table, name, min_answers=settings.min_answers, interval=interval)}
    figures |= {"participants": participants_figure(table, name, interval=interval)} if found is not None else {}
    figures |= {} if together is None else {"majority": majority_figure(together, name, interval=interval)}
    figures["practice"] = practice_figure(dataset, name, interval=interval)
    verdict = {} if found is None else {"accuracy": found.convergence}
    return ExperimentResult(
        table=table,
        dataset=dataset,
        tables={"items": guess_items(study), "people": people},
        figures=figures,
        text="\n\n".join(
            [summary(table, dataset, settings), *([] if together is None else [majority_text(together)]), *played]
        ),
        warnings=unconverged(verdict),
        gate_failed=gate_failed(settings, verdict),
        posteriors={} if found is None else found.posteriors,
        on_screen=table[table["kind"] != "participant"],
    )


def _columns(study: xr.Dataset) -> _Guesses:
    item = response_positions(study)
    word = study["word_token"].to_numpy()[item]
    visible = np.ones(item.size, dtype=bool)
    of = (
        {"visible": visible, "word": word}
        if word.any() and not word.all()
        else {"word" if word.all() else "visible": visible}
    )
    who, where = study["participant"].to_numpy(), study["item_document"].to_numpy()[item]
    correct, n_before = study["correct"].to_numpy(), study["n_before"].to_numpy()
    return _Guesses(correct, who.astype(str), where.astype(str), n_before, of)


def _posterior_tokens(settings: AccuracySettings, guesses: _Guesses) -> str:
    """The kind of tokens that the posterior is of; a study of words only has no other."""
    if settings.tokens == "word" and "word" not in guesses.of:
        raise InputError("is 'word', but no token of the study is a word", field="tokens")
    return settings.tokens if settings.tokens in guesses.of else "word"


def _practice(settings: AccuracySettings, guesses: _Guesses) -> PracticeCurve:
    mask = guesses.of[_posterior_tokens(settings, guesses)]
    return practice_curve(
        *(column[mask] for column in (guesses.correct, guesses.participant, guesses.n_before)),
        starts=list(settings.practice_starts),
        rng=rng_for(settings.seed, "practice"),
        n_replicates=settings.n_replicates,
        probability=settings.interval,
    )


def _table(  # noqa: PLR0917
    settings: AccuracySettings,
    study: xr.Dataset,
    guesses: _Guesses,
    models: dict[str, list[LanguageModel]],
    fit: Posterior | None,
    majorities: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for kind, mask in guesses.of.items():
        rows += _pooled(settings, study, guesses, kind, mask)
        for row in records(majorities[kind][majorities[kind]["player"] == HUMAN]):
            n = row["n_people"]
            rows.append(
                {**row, "kind": "majority", "name": f"majority of {n:.4g}", "tokens": kind, "n_participants": n}
            )
    rows += [] if fit is None else fit.rows
    for kind, mask in guesses.of.items():
        beats = fit.beats if fit is not None and kind == fit.tokens else {}
        for one in models[kind]:
            beaten = np.nan if one.draws is None else beats.get(one.model, np.nan)
            row = {**vars(one), "kind": "model", "name": one.model, "n_guesses": one.n_guesses or np.nan}
            rows.append({**row, "p_beats_every_participant": beaten})
        rows += _participants(settings, guesses, kind, mask, fit)
    # nothing was sampled, nothing converged
    verdict = dict.fromkeys(CONVERGENCE_COLUMNS, np.nan) if fit is None else convergence_columns(fit.convergence)
    table = AccuracyRow.table({**row, **verdict} for row in rows)
    for name in ("name", "label", "tokens", "source"):
        table[name] = table[name].astype(object).where(table[name].notna(), "")
    return table


def _pooled(
    settings: AccuracySettings, study: xr.Dataset, guesses: _Guesses, kind: str, mask: NDArray[np.bool_]
) -> list[dict[str, Any]]:
    enough = np.zeros_like(mask)
    enough[mask] = enough_answers(guesses.participant[mask], settings.min_answers)
    rows = []
    for name, taken in (("everybody", mask), ("enough answers", enough)):
        if not taken.any():
            continue
        found = pooled_accuracy(
            *(column[taken] for column in (guesses.correct, guesses.participant, guesses.document)),
            rng=rng_for(settings.seed, f"pooled {kind} {name}"),
            n_replicates=settings.n_replicates,
            probability=settings.interval,
        )
        row: dict[str, Any] = {**vars(found), "kind": "pooled", "name": name, "tokens": kind}
        if kind == "visible" and study.attrs["name"] == "lm_game_top1" and study.attrs["tokens"] == "visible":
            row |= {f"published_{key}": value for key, value in PUBLISHED[name].items()}
        rows.append(row)
        half = NormalDist().inv_cdf((1 + settings.interval) / 2) * found.participant_mean_se
        counts = {key: row[key] for key in ("kind", "tokens", "n_guesses", "n_participants", "n_documents")}
        mean = {**counts, "name": f"{name}, mean of participants", "accuracy": found.participant_mean}
        rows.append({**mean, "lower": found.participant_mean - half, "upper": found.participant_mean + half})
    return rows


def _participants(
    settings: AccuracySettings, guesses: _Guesses, kind: str, mask: NDArray[np.bool_], fit: Posterior | None
) -> list[dict[str, Any]]:
    labels = short_names(guesses.participant.tolist())
    found = participant_accuracy(guesses.correct[mask], guesses.participant[mask], probability=settings.interval)
    own: dict[str, dict[str, float]] = fit.participants if fit is not None and fit.tokens == kind else {}
    n_documents = pd.Series(guesses.document[mask]).groupby(guesses.participant[mask]).nunique()
    rows = pd.DataFrame(vars(found)).assign(
        kind="participant",
        name=found.participant,
        label=[labels[name] for name in found.participant],
        tokens=kind,
        n_participants=1,
        n_documents=n_documents.reindex(found.participant).to_numpy(),
        wilson_lower=found.lower,
        wilson_upper=found.upper,
    )
    return [row | own.get(row["name"], {}) for row in records(rows)]


def _dataset(table: pd.DataFrame, curve: PracticeCurve, fit: Posterior | None) -> xr.Dataset:
    practice = {f"practice_{name}": ("bin", values) for name, values in vars(curve).items()}
    found = xr.Dataset(
        AccuracyRow.variables(table, "row", but=["name"]) | practice,
        coords={"row": table["name"].to_numpy(dtype=object)},
    ).set_coords(["kind", "label", "tokens", "source"])
    return found if fit is None else found.merge(fit.dataset).assign_attrs(fit.dataset.attrs)
