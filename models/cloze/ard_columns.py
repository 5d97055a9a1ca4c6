"""From a cloze study to the rows of the regression, other people on each side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze.answer_statistics import answer_statistics, pooled_covariance
from shannon_game.estimators.cloze.distributions import WordCounts, entropy_nats, relative_frequencies
from shannon_game.estimators.cloze.split_halves import (
    SplitHalves,
    random_split_halves,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from shannon_game.estimators.cloze.study import context_labels
from shannon_game.estimators.cloze.study_words import StudyWords, study_words
from shannon_game.estimators.cloze.words import WordRules, word_rules
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.models.cloze.ard_data import Measured

if TYPE_CHECKING:
    import xarray as xr


PREDICTORS = ("human_entropy", "model_entropy", "oracle_tvd", "context_length")
"""Predictors of the paper; every other name is a numeric variable of the study with the dim ``item``."""

Design = Literal["disjoint", "resplit", "shared"]
DESIGNS: tuple[str, ...] = get_args(Design)

_MEASURED = ("human_entropy", "oracle_tvd")


@dataclass(frozen=True, eq=False)
class ArdColumns:
    """Rows of a regression: one for each context and model."""

    target: FloatArray  # TVD between the model and one group of people
    predictors: Mapping[str, FloatArray]
    position: NDArray[np.intp]  # along the study's ``item``
    text: NDArray[np.str_]  # text, (text, word) and model
    item: NDArray[np.str_]
    player: NDArray[np.str_]
    # (item, 2, 2): errors of ``human_entropy`` and ``oracle_tvd``, items in the order of ``np.unique(item)``
    covariance: FloatArray | None = None
    notes: tuple[tuple[str, int], ...] = ()  # what was left out, and how often

    def take(self, rows: NDArray[np.bool_]) -> ArdColumns:
        """Keep some rows; errors of items without a row go."""
        kept = np.isin(np.unique(self.item), self.item[rows])
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in ("target", "position", "text", "item", "player")},
            predictors={name: values[rows] for name, values in self.predictors.items()},
            covariance=None if self.covariance is None else self.covariance[kept],
        )


def clean_columns(
    study: xr.Dataset,
    models: Sequence[str],
    predictors: Sequence[str],
    *,
    rng: np.random.Generator,
    target_answers: int = 18,
    oracle_answers: int = 9,
    design: Design | str = "disjoint",
    rules: WordRules | None = None,
) -> ArdColumns:
    """Rows whose target and human predictors come from different people.

    Of each context's answers, `target_answers` drawn at random make the target (TVD between them and the model's cpd),
    and twice `oracle_answers` others make ``human_entropy`` and ``oracle_tvd`` (averaged over all ways to halve them),
    with the covariance of their errors. Numbers of answers are the same in all contexts, so that biases of small
    samples are alike. Failed samples, junk and blanks are dropped; several entries of a model for one context are
    pooled.

    Parameters
    ----------
    target_answers, oracle_answers : int, optional
        A context with fewer answers than ``target_answers + 2 * oracle_answers`` is left out and counted.
    design : {"disjoint", "resplit", "shared"}, optional
        "shared" is the paper's: all answers are halved once, the target is to oracle 1, ``oracle_tvd`` between the
        oracles, and the entropy of all answers. "resplit" averages ``oracle_tvd`` over all ways to halve them. Only
        "disjoint" has errors of measurement.
    rules : WordRules, optional
        For all sides; by default the study's own.

    Examples
    --------
    >>> people = {"target_answers": 10, "oracle_answers": 5, "rng": np.random.default_rng(0)}
    >>> study, names = cloze.examples.cloze_study(), ("human_entropy", "word_num")
    >>> columns = models.clean_columns(study, ["mixture"], names, **people)
    >>> len(columns.target), sorted(columns.predictors)
    (12, ['human_entropy', 'word_num'])
    """
    if design not in DESIGNS:
        raise unknown_choice("design", design, DESIGNS)
    for name, value in (("target_answers", target_answers), ("oracle_answers", oracle_answers)):
        if value < 2:
            raise InputError(f"is {value}, should be at least 2", field=name)
    rules = rules or word_rules(str(study.attrs.get("word_rules", "clean")))
    words = study_words(study, human=rules, model=rules, corpus=rules, models=list(models))
    answers = words.answers()
    needed = target_answers + 2 * oracle_answers
    asked = np.unique(np.concatenate([words.models[name].item for name in models]))
    enough = asked[answers.totals[asked] >= needed]
    notes = _left_out(words, models)
    if enough.size < asked.size:
        notes.append((f"contexts with fewer than {needed} answers left out", int(asked.size - enough.size)))
    if not enough.size:
        most = int(answers.totals[asked].max(initial=0))
        fits = f"; {most - 2 * (most // 4)} and {most // 4} would do" if most > 7 else ""
        raise InputError(
            f"no context has {needed} answers (at most {most}): a model is compared with "
            f"target_answers={target_answers} people, and two groups of "
            f"oracle_answers={oracle_answers} others with each other{fits}",
            field="target_answers",
        )
    people = answers.take(enough)
    if design == "disjoint":
        target_part, human_part = _disjoint(people, target_answers, 2 * oracle_answers, rng)
        entropy, oracle_tvd = (statistics := answer_statistics(human_part)).value
    else:
        oracles = random_split_halves(people, n_splits=1, rng=rng)
        target_part = _part(people, oracles.first[0])
        entropy, oracle_tvd = answer_statistics(people).value
        if design == "shared":
            oracle_tvd = tvd_between_split_halves(oracles)[0]
    lengths = context_lengths(study)
    target, made, item, player = [], [], [], []
    for name in models:
        own = words.models[name]
        q = relative_frequencies(own.counts)
        here = np.flatnonzero(np.isin(own.item, enough) & (own.counts.totals > 0))
        at = np.searchsorted(enough, own.item[here])
        taken = q.take(here)
        part = target_part.take(at)
        whole = SplitHalves(part, part.count[None, :], part.count[None, :])
        target.append(tvd_to_split_halves(taken, whole)[0])
        made.append(
            {
                "human_entropy": entropy[at],
                "model_entropy": entropy_nats(taken),
                "oracle_tvd": oracle_tvd[at],
                "context_length": lengths[enough[at]],
            }
        )
        item.append(enough[at])
        player += [name] * here.size
    position = np.concatenate(item)
    together = {name: np.concatenate([columns[name] for columns in made]) for name in PREDICTORS}
    found = columns_of(study, np.concatenate(target), together, predictors, position, player)
    if design != "disjoint":
        return replace(found, notes=tuple(notes))
    used = np.unique(position)
    covariance = pooled_covariance(statistics)[np.searchsorted(enough, used)]
    by_label = np.argsort(context_labels(study)[used], kind="stable")
    return replace(found, covariance=covariance[by_label], notes=tuple(notes))


def measured_error(columns: ArdColumns, names: Sequence[str]) -> Measured | None:
    """Errors of those of `names` that are predictors of the columns; None if they have none of them."""
    for name in names:
        if name not in _MEASURED:
            raise unknown_choice("measured predictor", name, _MEASURED)
    kept = [name for name in _MEASURED if name in names and name in columns.predictors]
    if not kept:
        return None
    if columns.covariance is None:
        raise InputError("are not known for these columns", field="errors of measurement")
    at = [_MEASURED.index(name) for name in kept]
    return Measured(tuple(kept), columns.covariance[:, at][:, :, at])


def study_column(study: xr.Dataset, name: str) -> FloatArray:
    """A numeric variable of the study by item, as a predictor."""
    usable = [
        str(variable)
        for variable in study.data_vars
        if study[variable].dims == ("item",) and study[variable].dtype.kind in "iufb"
    ]
    if name not in usable:
        raise unknown_choice("predictor", name, [*PREDICTORS, *usable])
    values: FloatArray = study[name].to_numpy().astype(float)
    return values


def columns_of(  # noqa: PLR0917 - each is one column
    study: xr.Dataset,
    target: FloatArray,
    made: Mapping[str, FloatArray],
    predictors: Sequence[str],
    position: NDArray[np.intp],
    player: Sequence[str],
) -> ArdColumns:
    """Put a target and the predictors made for it together, with those that are variables of the study."""
    if not predictors or len(set(predictors)) < len(predictors):
        raise InputError(f"is {list(predictors)}; name at least one, and each once", field="predictors")
    chosen = {
        name: np.asarray(made[name], dtype=float) if name in made else study_column(study, name)[position]
        for name in predictors
    }
    return ArdColumns(
        # a sum of shares that should be 1 can miss it by a rounding error
        target=np.clip(np.where(np.abs(target - 1) < 1e-12, 1.0, target), 0.0, 1.0),
        predictors=chosen,
        position=position,
        text=study["text_id"].to_numpy()[position].astype(str),
        item=context_labels(study)[position],
        player=np.asarray(player, dtype=str),
    )


def context_lengths(study: xr.Dataset) -> FloatArray:
    """Words of each context."""
    return np.array([len(text.split(" ")) for text in study["context"].to_numpy().tolist()], dtype=float)


def _disjoint(counts: WordCounts, first: int, second: int, rng: np.random.Generator) -> tuple[WordCounts, WordCounts]:
    """Two disjoint random parts of each context's answers, of the sizes asked for."""
    answers = np.repeat(np.arange(len(counts.count)), counts.count)
    context = counts.context[answers]
    shuffled = answers[np.lexsort((rng.random(len(answers)), context))]
    rank = np.arange(len(answers)) - (np.cumsum(counts.totals) - counts.totals)[context]
    of_first = np.bincount(shuffled[rank < first], minlength=len(counts.count))
    of_second = np.bincount(shuffled[(rank >= first) & (rank < first + second)], minlength=len(counts.count))
    return _part(counts, of_first), _part(counts, of_second)


def _part(counts: WordCounts, part: NDArray[np.int64]) -> WordCounts:
    kept = part > 0
    return WordCounts(counts.context[kept], counts.word[kept], part[kept], counts.n_contexts)


def _left_out(words: StudyWords, models: Sequence[str]) -> list[tuple[str, int]]:
    notes = [(f"answers left out as {reason}", int(number)) for reason, number in words.human_missing.items() if number]
    for name in models:
        for reason, number in words.models[name].missing.items():
            if number:
                notes.append((f"samples of {name} left out as {reason}", int(number)))
    return notes
