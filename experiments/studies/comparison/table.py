"""A comparison study of one's own from two plain tables: the candidates of every item, and people's answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from estimators.comparison import validate_comparison_study
from estimators.layout import add_note
from experiments.harness.result import loader
from experiments.studies.comparison.checks import check_contradictions, string_contradictions
from experiments.studies.comparison.table_answers import answers_of
from experiments.studies.comparison.table_columns import ComparisonColumns, ComparisonLayout
from experiments.studies.comparison.table_sources import FREE_ANSWERS, cells, free_answers_of, sources_of
from experiments.studies.parsing import add_notes, shown
from experiments.studies.plain_table import Table, in_notebook, missing_column, refuse_other_lead, table_of
from experiments.studies.table_file import read_table
from experiments.studies.table_settings import TableFile
from inference.settings import UserPath

__all__ = ["ComparisonTableSettings", "comparison_study", "comparison_table"]

_PAIRS = ("item", "draw", "context", "target", "candidate")
_LOGPROBS = ("proposal_logprob", "inclusion_logprob")
_ANSWERS = ("item", "draw", "participant", "report")
TARGET, CANDIDATE = "target_logprob_", "candidate_logprob_"
"""What the columns of a language model begin with."""

_ITEM_SET = "answered"


class ComparisonTableSettings(ComparisonLayout, TableFile):
    """Settings of a comparison study in two tables (CSV and the like, or Parquet)."""

    pairs: UserPath
    """Table with one row a candidate of an item.

    Beside the columns below it holds, for every language model NAME, target_logprob_NAME and candidate_logprob_NAME:
    ln p(target | context) and ln p(candidate | context), nats. Every item has as many candidates as the others, all
    independent draws from the generator, repeats kept. Items that nobody answered are reference items only.
    """
    answers: UserPath | None = None
    """Table with one row an answer; null for a study that only the language models play."""
    free_answers: UserPath | None = None
    """Table with one row a free answer, a token with which a person continued the context; null where nobody did."""


@loader(ComparisonTableSettings)
def comparison_table(settings: ComparisonTableSettings) -> xr.Dataset:
    """Load a comparison study from two tables.

    Parameters
    ----------
    settings : ComparisonTableSettings, optional
        Or its fields by name.

    Returns
    -------
    xarray.Dataset
        See :func:`comparison_study`.

    Raises
    ------
    InputError
        For a table that cannot be read, a missing column, or a bad cell; names file, column, row.

    Examples
    --------
    >>> from experiments import comparison_table, perplexity
    >>> study = comparison_table(  # doctest: +SKIP
    ...     pairs="pairs.csv", answers="answers.csv", generator="gpt2", columns={"participant": "worker"}
    ... )
    >>> perplexity(study).table  # doctest: +SKIP
    """
    columns = settings.columns
    pairs = read_table(settings.pairs, of="pair", how=settings, wanted=[getattr(columns, name) for name in _PAIRS])
    answers = None
    if settings.answers is not None:
        wanted = [columns.of_answers(name) for name in _ANSWERS]
        answers = read_table(settings.answers, of="answer", how=settings, wanted=wanted)
    free = None
    if settings.free_answers is not None:
        wanted = [columns.of_free_answers(name) for name in FREE_ANSWERS]
        free = read_table(settings.free_answers, of="free answer", how=settings, wanted=wanted)
    return _study(answers, pairs, free, settings, name=settings.pairs.stem)


@in_notebook
def comparison_study(
    answers: pd.DataFrame | None,
    candidates: pd.DataFrame,
    *,
    generator: str,
    free_answers: pd.DataFrame | None = None,
    percent: bool = False,
    columns: Mapping[str, Any] | ComparisonColumns | None = None,
    name: str = "comparison study",
    **settings: Any,
) -> xr.Dataset:
    """Make a comparison study of two DataFrames; the columns may have other names, see `columns`.

    Parameters
    ----------
    answers : pandas.DataFrame or None
        One row an answer: ``item``, ``draw`` (which candidate of the item was shown), ``participant``, ``report`` (the
        probability given to the target). None for a study that only the language models play.
    candidates : pandas.DataFrame
        One row a drawn token: ``item``, ``draw`` (tells the draws of an item apart), ``context``, ``target``,
        ``candidate``; and ``target_logprob_NAME`` and ``candidate_logprob_NAME``, ln p(target | context) and
        ln p(candidate | context) in nats, for the generator and every other language model. Every item has as many
        candidates as the others, all independent draws from the generator, repeats kept.

        Candidates of other kinds say so by ``source`` ("generator", "proposal", "distinct" or "answer"), with
        ``proposal_logprob`` and ``inclusion_logprob`` where they are known; items may then have different numbers of
        them. ``batch`` is the batch of free answers after which a token was a candidate. In the answers, ``reference``
        is the draw that the candidate was compared with, empty for the target.
    generator : str
        The language model that drew the candidates.
    free_answers : pandas.DataFrame, optional
        One row a free answer: ``item``, ``participant``, ``answer`` (a token, as the candidates write it), and
        ``batch`` if there were several.
    percent : bool, optional
        Reports are percentages.
    columns : mapping of str to str, optional
        Column of the DataFrames by the name above: ``{"participant": "worker"}``; what the answers alone call
        otherwise: ``{"answers": {"item": "question"}}``.
    name : str, optional
        Of the study.
    **settings
        ``extremes``, ``missing``: see :class:`ComparisonTableSettings`.

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.comparison.study.validate_comparison_study`. Items are numbered in the order of the
        candidates; ``item_id`` (item) is what the DataFrame calls them. All items are reference items; those that
        nobody answered are nothing else. An answer on a candidate that is the target's very string counts as
        ``automatic``: it says nothing of a belief.

    Raises
    ------
    InputError
        For a missing column or a bad cell; names column and row, and lists the columns that there are.

    Examples
    --------
    >>> import pandas as pd
    >>> from experiments import comparison_study, perplexity
    >>> candidates = pd.DataFrame(
    ...     {
    ...         "item": ["q1", "q1", "q2", "q2"],
    ...         "draw": [1, 2, 1, 2],
    ...         "context": ["The cat", "The cat", "A dog", "A dog"],
    ...         "target": [" sat", " sat", " ran", " ran"],
    ...         "candidate": [" is", " sat", " and", " was"],
    ...         "target_logprob_gpt2": [-3.0, -3.0, -2.0, -2.0],
    ...         "candidate_logprob_gpt2": [-1.0, -3.0, -1.5, -1.0],
    ...     }
    ... )
    >>> answers = pd.DataFrame(
    ...     {
    ...         "item": ["q1", "q1", "q2", "q2"],
    ...         "draw": [1, 1, 1, 2],
    ...         "participant": ["ann", "bo", "ann", "bo"],
    ...         "report": [0.7, 0.6, 0.5, 0.8],
    ...     }
    ... )
    >>> study = comparison_study(answers, candidates, generator="gpt2")
    >>> result = perplexity(study, players="human", rounding="none")
    >>> round(result.table["perplexity"].item(), 3)
    1.96
    """
    given: dict[str, Any] = {} if columns is None else {"columns": columns}
    layout = ComparisonLayout(generator=generator, percent=percent, **given, **settings)
    asked = table_of(candidates, "candidates", of="candidate", needed=_PAIRS)
    said = None if answers is None else table_of(answers, "answers", of="answer", needed=_ANSWERS)
    free = None if free_answers is None else table_of(free_answers, "free_answers", of="answer", needed=FREE_ANSWERS)
    return _study(said, asked, free, layout, name=name)


def _study(
    answers: Table | None, pairs: Table, free: Table | None, settings: ComparisonLayout, *, name: str
) -> xr.Dataset:
    columns = settings.columns
    pairs.check_columns({each: getattr(columns, each) for each in _PAIRS})
    pairs.refuse_misspelt({each: getattr(columns, each) for each in (*_PAIRS, *_LOGPROBS, "source", "batch")})
    variables, names, draws, rows = _questions(pairs, columns)
    models = _models(pairs, rows, names, variables)
    answered = np.zeros(len(names), dtype=bool)
    if answers is None:
        variables |= _NO_ANSWERS
        answered[:] = True
    else:
        own = {f"answers.{each}" if each in _PAIRS else each: columns.of_answers(each) for each in _ANSWERS}
        answers.check_columns(own)
        answers.refuse_misspelt(own | {"reference": columns.reference})
        variables |= answers_of(answers, names, draws, settings)
        item, draw = variables["response_item"][1], variables["response_candidate"][1]
        answered[item] = True
        same = variables["candidate_token"][1][item, draw] == variables["target_token"][1][item]
        if "response_reference" in variables:
            same &= variables["response_reference"][1] == -1
        variables["automatic"] = ("response", same.astype(bool))
    if free is not None:
        own = {
            f"free_answers.{each}" if each != "answer" else each: columns.of_free_answers(each) for each in FREE_ANSWERS
        }
        free.check_columns(own)
        variables |= free_answers_of(free, columns, names, variables)
        answered[variables["answer_item"][1]] = True
    variables["item_set"] = ("item", np.where(answered, _ITEM_SET, "").astype(object))
    given = [table for table in (pairs, answers, free) if table is not None]
    digests = "".join(table.sha256 for table in given)
    study = xr.Dataset(
        variables,
        coords={"item": np.arange(len(names)), "model": np.array(models, dtype=object)},
        attrs={
            "name": name,
            "generator": settings.generator,
            "data_sha256": hashlib.sha256(digests.encode()).hexdigest(),
        },
    )
    add_notes(study, [note for table in given for note in table.notes])
    add_notes(study, string_contradictions(study))
    _add_notes(study, answered)
    return check_contradictions(validate_comparison_study(study), pairs.source)


def _questions(
    pairs: Table, columns: ComparisonColumns
) -> tuple[dict[str, Any], list[str], NDArray[np.object_], NDArray[np.intp]]:
    """Variables of the candidates, names of the items, the table's name of each (item, candidate), and their rows."""
    item, draw = pairs.ids(columns.item), pairs.ids(columns.draw)
    twice = pd.DataFrame({"item": item, "draw": draw}).duplicated().to_numpy()
    if twice.any():
        row = int(np.flatnonzero(twice)[0])
        raise pairs.error(
            f"is {shown(draw[row])} in {pairs.where(row)}, which item {shown(item[row])} has before; number every "
            "draw of an item, those that gave the same token too",
            columns.draw,
        )
    code, uniques = pd.factorize(item)
    names = list(map(str, uniques))
    size = np.bincount(code)
    if (size != size[0]).any() and columns.source not in pairs.names:
        odd = int(np.flatnonzero(size != size[0])[0])
        raise pairs.error(
            f"{shown(names[odd])} has {size[odd]} candidates, {shown(names[0])} has {size[0]}; every item "
            "needs as many, or a column that says where each comes from (source)",
            columns.item,
        )
    order = np.argsort(code, kind="stable")
    rows = np.full((len(names), int(size.max())), -1)
    rows[np.arange(size.max()) < size[:, None]] = order
    # a text may begin with the target: nothing stands before it
    context, target = pairs.texts(columns.context), pairs.filled(columns.target)
    everywhere = np.ones(len(names), dtype=bool)
    variables: dict[str, Any] = {
        "context": ("item", _of_item(pairs, context, rows, names, columns.context)),
        "target_token": ("item", _of_item(pairs, target, rows, names, columns.target)),
        "candidate_token": (("item", "candidate"), cells(pairs.filled(columns.candidate), rows, "")),
        "item_id": ("item", np.array(names, dtype=object)),
        "selected": ("item", everywhere),
        "in_reference": ("item", everywhere),
    }
    refuse_other_lead(pairs, columns.candidate, variables["candidate_token"][1], variables["target_token"][1][:, None])
    variables |= sources_of(pairs, columns, rows)
    return variables, names, cells(draw, rows, ""), rows


def _of_item(
    pairs: Table, values: NDArray[Any], rows: NDArray[np.intp], names: Sequence[str], column: str
) -> NDArray[Any]:
    """What the rows of an item agree on."""
    found = values[np.maximum(rows, 0)]
    differs = ((found != found[:, :1]) & (rows >= 0)).any(axis=1)
    if differs.any():
        raise pairs.error(f"differs between the rows of item {names[int(np.flatnonzero(differs)[0])]!r}", column)
    first: NDArray[Any] = found[:, 0]
    return first


def _models(pairs: Table, rows: NDArray[np.intp], names: Sequence[str], variables: dict[str, Any]) -> list[str]:
    """Add the log-probabilities of every model that has both columns; returns the models' names."""
    present = pairs.names
    targets = [name.removeprefix(TARGET) for name in present if name.startswith(TARGET)]
    candidates = [name.removeprefix(CANDIDATE) for name in present if name.startswith(CANDIDATE)]
    for model in dict.fromkeys((*targets, *candidates)):
        for prefix, found in ((TARGET, targets), (CANDIDATE, candidates)):
            if model not in found:
                raise missing_column(prefix + model, present, source=pairs.source, hint=f"model {model!r} needs it")
    if not targets:
        hint = "it names no language model: the generator at least needs target_logprob_NAME and candidate_logprob_NAME"
        raise missing_column(TARGET + "NAME", present, source=pairs.source, hint=hint)
    target = [_of_item(pairs, pairs.logprobs(TARGET + name), rows, names, TARGET + name) for name in targets]
    candidate = [cells(pairs.logprobs(CANDIDATE + name), rows, np.nan) for name in targets]
    variables["target_logprob"] = (("model", "item"), np.stack(target), {"units": "nats"})
    variables["candidate_logprob"] = (("model", "item", "candidate"), np.stack(candidate), {"units": "nats"})
    return targets


_NO_ANSWERS: Mapping[str, Any] = {
    "participant": ("response", np.empty(0, dtype=object)),
    "response_item": ("response", np.empty(0, dtype=np.int64)),
    "response_candidate": ("response", np.empty(0, dtype=np.int64)),
    "report": ("response", np.empty(0)),
    "automatic": ("response", np.empty(0, dtype=bool)),
}


def _add_notes(study: xr.Dataset, answered: NDArray[np.bool_]) -> None:
    if not answered.all():
        add_note(study, "items that nobody answered: reference items only", count=int((~answered).sum()))
    same = int(study["automatic"].sum())
    if same:
        add_note(study, "answers on two equal strings, which say nothing of a belief (automatic)", count=same)
    pairs = pd.DataFrame(
        {name: study[name].to_numpy() for name in ("participant", "response_item", "response_candidate")}
    )
    again = int(pairs.duplicated().sum())
    if again:
        text = "answers of a participant to a pair answered before; kept"
        add_note(study, text, count=again, level="warning")
