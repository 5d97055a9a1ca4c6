"""A comparison study of one's own from plain tables: the candidates of every item, people's answers, distributions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison import SOURCES, validate_comparison_study
from shannon_game.estimators.messages import Load
from shannon_game.experiments.harness.result import loader, of_frames
from shannon_game.experiments.studies.comparison.file import check_contradictions, string_contradictions
from shannon_game.experiments.studies.comparison.table_answers import (
    Asked,
    answers_of,
    distributions_of,
    forecasts_of,
    free_answers_of,
)
from shannon_game.experiments.studies.comparison.table_columns import (
    ANSWERS,
    CANDIDATE,
    DISTRIBUTIONS,
    FORECASTS,
    FREE_ANSWERS,
    OPTIONAL,
    PAIRS,
    TARGET,
    ComparisonColumns,
    ComparisonLayout,
)
from shannon_game.experiments.studies.parsing import Note, add_notes, counting, shown
from shannon_game.experiments.studies.plain_table import Table, table_of
from shannon_game.experiments.studies.table_file import TableFile, read_table
from shannon_game.inference.settings import UserPath

_ITEM_SET = "answered"
_CELLS = ("item", "candidate")


class ComparisonTableSettings(ComparisonLayout, TableFile):
    pairs: UserPath | None = None
    """Table with one row per candidate of an item; null for answers that say themselves what came true (outcome).

    Beside the columns below it holds, for every language model NAME, target_logprob_NAME and candidate_logprob_NAME:
    ln p(target | context) and ln p(candidate | context), nats. Every item has as many candidates as the others, all
    independent draws from the generator, repeats kept. Items that nobody answered are reference items only.
    """
    answers: UserPath | None = None
    """Table with one row per answer; null for a study that only the language models play."""
    free_answers: UserPath | None = None
    """Table with one row per free answer, a token with which a person continued the context; null where nobody did."""
    distributions: UserPath | None = None
    """Table with one row per item and token of the generator's vocabulary, its whole distribution (Parquet for large
    ones); null where only draws are known."""


@loader(ComparisonTableSettings)
def comparison_table(settings: ComparisonTableSettings) -> xr.Dataset:
    """Load a comparison study from two tables.

    See :func:`comparison_study`.
    """

    def read(which: str, of: str, needed: Sequence[str]) -> Table | None:
        path, wanted = getattr(settings, which), settings.columns.of(which, needed).values()
        return None if path is None else read_table(path, of=of, how=settings, wanted=wanted)

    # rows of practice are people's
    every = settings.changed(where={}, where_not={})
    if settings.pairs is None:
        name = settings.answers.stem if settings.answers else ""
        is_whole = settings.free_answers is not None or settings.distributions is not None
        alone = None if is_whole else read("answers", "answer", FORECASTS)
        return forecasts_of(alone, settings, name)
    pairs = read_table(settings.pairs, of="pair", how=every, wanted=settings.columns.of("pairs", PAIRS).values())
    answers, free = read("answers", "answer", ANSWERS), read("free_answers", "free answer", FREE_ANSWERS)
    whole = None
    if settings.distributions is not None:
        wanted = settings.columns.of("distributions", DISTRIBUTIONS).values()
        whole = read_table(settings.distributions, of="token", how=every, wanted=wanted)
    return _study(answers, pairs, free, settings, name=settings.pairs.stem, whole=whole)


@of_frames(ComparisonLayout)
def comparison_study(
    answers: pd.DataFrame | None,
    candidates: pd.DataFrame | None = None,
    *,
    generator: str | None = None,
    free_answers: pd.DataFrame | None = None,
    distributions: pd.DataFrame | None = None,
    name: str = "comparison study",
    **settings: Any,
) -> xr.Dataset:
    """Make a comparison study of two DataFrames; the columns may have other names, see `columns`.

    Parameters
    ----------
    answers : pandas.DataFrame or None
        One row per answer: ``item``, ``draw`` (which candidate of the item was shown), ``participant``, ``report`` (the
        probability given to the target). None for a study that only the language models play. Without candidates
        ``outcome`` says whether what ``report`` is of came true, and a study of forecasts needs no ``draw``.
    candidates : pandas.DataFrame, optional
        One row per drawn token: ``item``, ``draw`` (tells the draws of an item apart), ``context``, ``target``,
        ``candidate``; and for the generator and every other language model ``target_logprob_NAME`` and
        ``candidate_logprob_NAME``, ln p in nats. Every item has as many candidates as the others, all independent draws
        from the generator, repeats kept; or ``source`` says where each comes from.
    generator : str, optional
        The language model that drew the candidates.
    free_answers : pandas.DataFrame, optional
        One row per free answer: ``item``, ``participant``, ``answer`` (as candidates write it), maybe ``batch``.
    distributions : pandas.DataFrame, optional
        One row per item and token of the generator's vocabulary: ``item``, ``token`` (as candidates write it),
        ``logprob``, ln p under the generator in nats. Probabilities of an item sum to one.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        Passes :func:`~shannon_game.estimators.comparison.study.validate_comparison_study`, or without candidates
        :func:`~shannon_game.estimators.comparison.study.validate_forecast_study`; ``item_id`` (item) is what the
        DataFrame calls the items. Those that nobody answered are reference items only. An answer on a candidate that is
        the target's very string counts as ``automatic``: it says nothing of a belief.

    Examples
    --------
    >>> import pandas as pd
    >>> from shannon_game import comparison_study, perplexity
    >>> asked = [["q1", 1, " sat", " is", -3.0, -1.0], ["q1", 2, " sat", " sat", -3.0, -3.0]]
    >>> asked += [["q2", 1, " ran", " and", -2.0, -1.5], ["q2", 2, " ran", " was", -2.0, -1.0]]
    >>> columns = ["item", "draw", "target", "candidate", "target_logprob_gpt2", "candidate_logprob_gpt2"]
    >>> candidates = pd.DataFrame(asked, columns=columns).assign(context=["The cat", "The cat", "A dog", "A dog"])
    >>> said = [["q1", 1, "ann", 0.7], ["q1", 1, "bo", 0.6], ["q2", 1, "ann", 0.5], ["q2", 2, "bo", 0.8]]
    >>> answers = pd.DataFrame(said, columns=["item", "draw", "participant", "report"])
    >>> study = comparison_study(answers, candidates, generator="gpt2")
    >>> result = perplexity(study, players="human", rounding="none")
    >>> round(result.table["perplexity"].item(), 3)
    1.96
    """
    layout = ComparisonLayout(generator=generator, **settings)
    if candidates is None:
        is_whole = answers is None or free_answers is not None or distributions is not None
        alone = None if is_whole else table_of(answers, "answers", of="answer", needed=FORECASTS)
        return forecasts_of(alone, layout, name)
    asked = table_of(candidates, "candidates", of="candidate", needed=PAIRS)
    said = None if answers is None else table_of(answers, "answers", of="answer", needed=ANSWERS)
    free = None if free_answers is None else table_of(free_answers, "free_answers", of="answer", needed=FREE_ANSWERS)
    whole = (
        None if distributions is None else table_of(distributions, "distributions", of="token", needed=DISTRIBUTIONS)
    )
    return _study(said, asked, free, layout, name=name, whole=whole)


def _study(
    answers: Table | None,
    pairs: Table,
    free: Table | None,
    settings: ComparisonLayout,
    *,
    name: str,
    whole: Table | None = None,
) -> xr.Dataset:
    asked, variables, models = _questions(pairs, settings.columns)
    answered = np.zeros(len(asked.names), dtype=bool)
    if answers is None:
        answered[:] = True
        variables |= {what: ("response", np.empty(0, dtype=kind)) for what, kind in _NO_ANSWERS.items()}
    else:
        variables |= answers_of(answers, asked, settings)
        item, draw = variables["response_item"][1], variables["response_candidate"][1]
        answered[item] = True
        same = asked.candidate[item, draw] == asked.target[item]
        if "response_reference" in variables:
            same &= variables["response_reference"][1] == -1
        variables["automatic"] = ("response", same.astype(bool))
    if free is not None:
        variables |= free_answers_of(free, asked, settings.columns, variables)
        answered[variables["answer_item"][1]] = True
    variables["item_set"] = ("item", np.where(answered, _ITEM_SET, "").astype(object))
    given = [table for table in (pairs, answers, free, whole) if table is not None]
    digest = hashlib.sha256("".join(table.sha256 for table in given).encode()).hexdigest()
    study = xr.Dataset(
        variables,
        coords={"item": np.arange(len(asked.names)), "model": np.array(models, dtype=object)},
        attrs={"name": name, "generator": settings.generator, "data_sha256": digest},
    )
    if whole is not None and settings.generator in models:
        study = study.assign(distributions_of(whole, asked, settings.columns, study, answered))
    of_tables = [note for table in given for note in table.notes]
    add_notes(study, [*of_tables, *string_contradictions(study), *_notes(study, answered)])
    return check_contradictions(validate_comparison_study(study), pairs.source)


_NO_ANSWERS: Mapping[str, Any] = {
    "participant": object,
    "report": float,
    "automatic": bool,
    **dict.fromkeys(("response_item", "response_candidate"), np.int64),
}


def _questions(given: Table, columns: ComparisonColumns) -> tuple[Asked, dict[str, Any], list[str]]:
    pairs = columns.read(given, "pairs", PAIRS, OPTIONAL)
    models = _models(given)
    pairs.read_one_mark("target", "candidate")
    of = pairs.groups("item", what="item")
    names = list(map(str, pairs["item"][of.first]))
    _check_draws(pairs, of.of_row, names)
    size = np.bincount(of.of_row)
    rows = np.full((len(of), int(size.max())), -1)
    rows[np.arange(size.max()) < size[:, None]] = np.argsort(of.of_row, kind="stable")

    def cells(name: str, fill: object) -> NDArray[Any]:
        found: NDArray[Any] = pairs[name][np.maximum(rows, 0)]
        found[rows < 0] = fill
        return found

    asked = Asked(names, cells("draw", ""), of.one("target"), cells("candidate", ""))
    nats = {"units": "nats"}
    variables: dict[str, Any] = {
        "context": ("item", of.one("context")),
        "target_token": ("item", asked.target),
        "candidate_token": (_CELLS, asked.candidate),
        "item_id": ("item", np.array(names, dtype=object)),
        **dict.fromkeys(("selected", "in_reference"), ("item", np.ones(len(of), dtype=bool))),
    }
    pairs.refuse_other_lead("candidate", asked.candidate, asked.target[:, None])
    if "source" in pairs:
        # a row is no padding
        unknown = ~np.isin(pairs["source"].astype(str), SOURCES[:-1])
        pairs.refuse(unknown, "source", f"should be one of: {', '.join(SOURCES[:-1])}")
        variables["candidate_source"] = (_CELLS, cells("source", "padding"))
    elif (rows < 0).any():
        variables["candidate_source"] = (_CELLS, np.where(rows < 0, "padding", "generator").astype(object))
    for name in ("proposal_logprob", "inclusion_logprob"):
        if name in pairs:
            variables[name] = (_CELLS, cells(name, np.nan), nats)
    if "batch" in pairs:
        variables["candidate_batch"] = (_CELLS, cells("batch", 0).astype(np.int64))
    target = np.stack([of.one(TARGET + model) for model in models])
    candidate = np.stack([cells(CANDIDATE + model, np.nan) for model in models])
    variables["target_logprob"] = (("model", "item"), target, nats)
    variables["candidate_logprob"] = (("model", *_CELLS), candidate, nats)
    return asked, variables, models


def _check_draws(pairs: Table, item: NDArray[np.intp], names: list[str]) -> None:
    twice = pd.DataFrame({"item": item, "draw": pairs["draw"]}).duplicated().to_numpy()
    right = "number every draw of an item, those that gave the same token too"
    pairs.refuse(twice, "draw", lambda row: f"which item {shown(names[item[row]])} has before; {right}")
    size = np.bincount(item)
    if (size != size[0]).any() and "source" not in pairs:
        odd = int(np.argmax(size != size[0]))
        problem = f"{shown(names[odd])} has {size[odd]} candidates, {shown(names[0])} has {size[0]}"
        right = "every item needs as many, or a column that says where each comes from (source)"
        raise pairs.error(f"{problem}; {right}", "item")


def _models(pairs: Table) -> list[str]:
    """Names of the language models, each of which has both columns."""
    found = {
        prefix: [name.removeprefix(prefix) for name in pairs.names if name.startswith(prefix)]
        for prefix in (TARGET, CANDIDATE)
    }
    for model in dict.fromkeys((*found[TARGET], *found[CANDIDATE])):
        columns = {prefix + model: prefix + model for prefix in found}
        pairs.check_columns(columns, hint=f"model {model!r} needs it")
    if not found[TARGET]:
        hint = "it names no language model: the generator at least needs target_logprob_NAME and candidate_logprob_NAME"
        alone = Load("comparison_table", {"answers": "FILE", "columns.outcome": None})
        raise pairs.missing(TARGET + "NAME", f"{hint}; without one, {alone} is enough for calibration")
    return found[TARGET]


def _notes(study: xr.Dataset, answered: NDArray[np.bool_]) -> list[Note]:
    pairs = study[["participant", "response_item", "response_candidate"]].to_dataframe()
    equal = (study["candidate_token"] == study["target_token"]).all("candidate").to_numpy() & ~answered
    return counting(
        Note("items whose candidates are all the target, unanswered; answers of 0.5 count them", int(equal.sum())),
        Note("items that nobody answered: reference items only", int((~answered).sum())),
        Note("answers on two equal strings, which say nothing of a belief (automatic)", int(study["automatic"].sum())),
        Note("answers of a participant to a pair answered before; kept", int(pairs.duplicated().sum()), "warning"),
    )
