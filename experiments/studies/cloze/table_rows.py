"""From the rows of a table to a cloze study: which answers count, what is noted or refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze import validate_cloze_study
from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.content import file_sha256
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.cells import folded
from shannon_game.experiments.studies.cloze.answers import answer_notes
from shannon_game.experiments.studies.cloze.rows import cloze_dataset
from shannon_game.experiments.studies.cloze.scores import Contexts, key_parts, target_logprobs
from shannon_game.experiments.studies.cloze.table_columns import ClozeRowSettings
from shannon_game.experiments.studies.cloze.table_weights import SUM_SLACK, row_weights
from shannon_game.experiments.studies.parsing import Note, add_notes, counting, objects, shown
from shannon_game.experiments.studies.plain_table import Table

# words that files only score stand under the same name in the published files
_TARGETS = "corpus"
_JOIN = "\x1f"
OTHER = "another_word"
"""Answer that stands for those that published shares leave out."""
_SAME_ANSWER = ["item", "model", "participant_group", "response"]


@dataclass(frozen=True, eq=False)
class _Items:
    """Contexts: the key of each, the item of each row, and their variables."""

    keys: list[str]
    of_row: NDArray[np.intp]
    arrays: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return len(self.keys)


def study_of_rows(table: Table, settings: ClozeRowSettings, *, name: str, notes: Sequence[Note]) -> xr.Dataset:
    """Make a study of the rows of a table, whose columns have the loader's own names."""
    if settings.n_answers is not None and "proportion" not in table:
        raise InputError("goes with a column of proportions", source=table.source, field="n_answers")
    items, rows, incomplete = _complete_rows(table, settings)
    blank = (rows["response"].str.strip() == "") | rows["response"].isin(settings.missing)
    rows["word"] = rows["response"].where(~blank, "")
    people, of_models = rows[rows["model"] == ""], rows[rows["model"] != ""]
    again = people.duplicated(["item", "participant"]) if "participant" in table else people["item"] < 0
    repeats = int(again.sum())
    if settings.first_answers:
        people = people[~again]
    rest = list[Note]()
    if "proportion" in table and settings.proportions == "another_word":
        people, rest = _with_other_words(people, items)
    if not len(people):
        raise InputError("holds no human answer: every row names a model", source=table.source)
    models, scored = _with_scores(of_models, table, settings, items)
    # words of people and of models in the order of the table, then those that were only scored
    words = pd.factorize(pd.concat([rows["word"], people["word"], models.loc[models["source"] == 1, "word"]]))[1]
    arrays = _of_people(table, people, words)
    answered = np.isin(np.arange(len(items)), arrays["response_item"])
    if not answered.all():
        first = items.keys[int(np.argmin(answered))]
        problem = f"{int((~answered).sum())} contexts have no human answer, the first is {first[-60:]!r}"
        raise InputError(f"{problem}; leave them out", source=table.source)
    found = [*table.notes, *notes, *rest]
    if "response_proportion" in arrays:
        found += _proportions(table, arrays, items, settings)
    if len(models):
        arrays |= _samples(models, words)
        arrays["source"] = np.array([SAMPLES, *([_TARGETS] if scored else [])], dtype=object)
        if of_models["share"].any():
            found.append(_model_shares(table, arrays, items, settings))
        elif not settings.scores:
            # without any probability none is known
            del arrays["sample_logprob"]
    arrays |= items.arrays | {"word_text": objects(list(words)), "item": np.arange(len(items))}
    digests = [table.sha256, *(file_sha256(file.path) for file in settings.scores.values())]
    sha256 = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    study = cloze_dataset(arrays, {"name": name, "word_rules": settings.word_rules, "data_sha256": sha256})
    alike = int(pd.Series(items.arrays["context"]).duplicated(keep=False).sum()) if "context" in table else 0
    further = "left out" if settings.first_answers else f"all kept; {Set('study.first_answers', True)} keeps the first"
    counted = counting(
        Note(
            f"blank answers (empty, null, or listed in {Set('study.missing')}), kept as blank strings; distributions "
            f"leave them out unless the word rules keep them ({Set('experiment.words.blank', 'keep')})",
            int(blank.sum()),
        ),
        Note("rows without a context, a weight or a participant, left out", incomplete, "warning"),
        Note(f"further answers of a participant to the same context, {further}", repeats, "warning"),
        Note("contexts with the same text as another one and an id of their own, kept apart", alike),
    )
    found += [*scored, Note("contexts", len(items)), Note("rows with a human answer", len(people))]
    add_notes(study, (*found, *counted, *answer_notes(study)))
    return validate_cloze_study(study)


def _complete_rows(table: Table, settings: ClozeRowSettings) -> tuple[_Items, pd.DataFrame, int]:
    """The contexts, the rows that count, and how many are left out."""
    _check_answers(table)
    weight, is_share = row_weights(table, percent=settings.percent)
    rows = pd.DataFrame({"response": table["response"], "weight": weight, "share": is_share})
    nobody = objects([""] * len(table))
    for what in ("model", "participant", "participant_group"):
        rows[what] = table[what] if what in table.names else nobody
    parts = key_parts(table)

    def complete(rows: pd.DataFrame, bad: NDArray[np.bool_], problem: str) -> pd.DataFrame:
        if bad.any() and not settings.drop_incomplete:
            where = table.where(int(rows.index[int(np.argmax(bad))]))
            hint = f"{Set('study.drop_incomplete', True)} leaves such rows out"
            raise InputError(f"{where}: {problem}; {hint}", source=table.source)
        return rows[~bad].copy()

    nameless = np.logical_or.reduce([part == "" for part in parts.values()])
    rows = complete(rows, nameless, "does not say which context")
    if not len(rows):
        raise InputError("holds no answer", source=table.source)
    items = _items(table, parts, rows.index.to_numpy())
    rows["item"] = items.of_row
    needed = " and no ".join(name for name in ("count", "proportion") if name in table)
    rows = complete(rows, rows["weight"].isna().to_numpy(), f"has no {needed}")
    _refuse_again(table, rows)
    if "participant" in table:
        nameless = ((rows["participant"] == "") & (rows["model"] == "")).to_numpy()
        rows = complete(rows, nameless, "has no participant")
    return items, rows, len(table) - len(rows)


def _check_answers(table: Table) -> None:
    if table.cells["response"].dtype.kind in "biufcO":
        cells = objects(table.cells["response"].tolist())
        other = np.array([not isinstance(cell, str) and not pd.isna(cell) for cell in cells.tolist()], dtype=bool)
        table.refuse(other, "response", "should be a string: TRUE and 1.0 do not say what was typed", cells)


def _items(table: Table, parts: Mapping[str, NDArray[np.object_]], rows: NDArray[np.intp]) -> _Items:
    joined = [_JOIN.join(said) for said in zip(*(part[rows] for part in parts.values()), strict=True)]
    of_row, keys = pd.factorize(objects(joined))
    at = np.unique(of_row, return_index=True)[1]
    first = rows[at]
    arrays: dict[str, NDArray[Any]] = {name: objects([""] * len(keys)) for name in ("context", "target_word")}
    for name, variable in (("context", "context"), ("target", "target_word")):
        if name in table:
            arrays[variable] = table[name][first]
            _check_same(table, name, rows, arrays[variable][of_row])
    text = table["text_id"][first] if "text_id" in table else objects([""] * len(keys))
    arrays["text_id"] = objects([name or "1" for name in text.tolist()])
    if "word_num" in table:
        arrays["word_num"] = table["word_num"][first].astype(np.int32)
    else:
        number = pd.Series(arrays["text_id"]).groupby(arrays["text_id"]).cumcount() + 1
        arrays["word_num"] = np.asarray(number, dtype=np.int32)
    places = pd.DataFrame({"text": arrays["text_id"], "word": arrays["word_num"]})
    twice = places.duplicated().to_numpy()
    if twice.any():
        one = int(np.argmax(twice))
        before = keys[int(np.argmax((places == places.iloc[one]).all(axis=1)))].replace(_JOIN, " ")
        problem = f"text {places['text'][one]}, word {places['word'][one]} is another context already ({before!r})"
        hint = "leave columns.word_num or columns.context_id out"
        raise InputError(f"{table.where(int(first[one]))}: {problem}; {hint}", source=table.source)
    if "context_id" in table:
        ids = table["context_id"][first]
        # ids that start anew in each text
        again = len(set(ids.tolist())) < len(ids)
        arrays["item_id"] = objects([key.replace(_JOIN, ":") for key in keys]) if again else ids
    return _Items(list(keys), of_row, arrays)


def _check_same(table: Table, name: str, rows: NDArray[np.intp], before: NDArray[np.object_]) -> None:
    """Refuse another text in a later row of a context; an empty cell says nothing."""
    kept = table.take(rows)
    pairs = zip(kept[name].tolist(), before.tolist(), strict=True)
    other = np.array([text not in ("", one) and folded(text) != folded(one) for text, one in pairs], dtype=bool)
    kept.refuse(other, name, lambda row: f"but {before[row][-60:]!r} in another row of the same context")


def _refuse_again(table: Table, rows: pd.DataFrame) -> None:
    """A count of each answer is there once; rows that count one each are answers, one by one."""
    if "count" not in table and "proportion" not in table:
        return
    first = rows.assign(row=rows.index).groupby(_SAME_ANSWER)[["row", "weight"]].transform("first")
    bad = (first["row"] != rows.index) & ~((rows["weight"] == 1) & (first["weight"] == 1))
    if bad.any():
        row = int(rows.index[int(np.argmax(bad))])
        problem = f"{table.where(row)}: {shown(rows['response'][row])} has a count or share already in "
        raise table.error(
            f"{problem}{table.where(int(first['row'][row]))}, for the same context; leave one of the rows (was the "
            "table pasted twice?), add them up, or name the column that tells them apart",
            "response",
        )


def _of_people(table: Table, rows: pd.DataFrame, words: pd.Index) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {"response_item": rows["item"].to_numpy(dtype=np.int32)}
    arrays["response_word"] = words.get_indexer(pd.Index(rows["word"])).astype(np.int32)
    weight = rows["weight"].to_numpy(dtype=float)
    if rows["share"].any():
        arrays["response_proportion"] = weight
    else:
        arrays["response_count"] = weight.astype(np.int32)
    if "participant" in table and (weight != 1).any():
        at = int(np.argmax(weight != 1))
        problem = f"{table.where(int(rows.index[at]))}: has a participant and a count of {weight[at]:g}"
        raise table.error(problem, "count")
    named = [name for name in ("participant", "participant_group") if name in table]
    return arrays | {name: rows[name].to_numpy(dtype=object) for name in named}


def _with_scores(
    rows: pd.DataFrame, table: Table, settings: ClozeRowSettings, items: _Items
) -> tuple[pd.DataFrame, list[Note]]:
    """Words of models, and after them the targets that files of other programs score, as words that were not drawn."""
    share, weight = rows["share"].to_numpy(dtype=bool), rows["weight"].to_numpy(dtype=float)
    with np.errstate(divide="ignore"):
        logprob = np.where(share, np.log(weight), np.nan)
    drawn = rows[["item", "model", "word"]].assign(source=0, count=np.where(share, 0, weight), logprob=logprob)
    texts = (items.arrays[name].tolist() for name in ("context", "target_word"))
    contexts = Contexts({name: table.given[name] for name in key_parts(table)}, items.keys, *texts)
    parts, notes = [drawn], list[Note]()
    for model, file in settings.scores.items():
        logprob, said = target_logprobs(file, contexts, model)
        notes += said
        item = np.flatnonzero(np.isfinite(logprob))
        targets = objects(contexts.targets)[item]
        scored = {"item": item, "model": model, "word": targets, "source": 1, "count": 0.0, "logprob": logprob[item]}
        parts.append(pd.DataFrame(scored))
    return pd.concat(parts, ignore_index=True) if notes else drawn, notes


def _with_other_words(people: pd.DataFrame, items: _Items) -> tuple[pd.DataFrame, list[Note]]:
    """What the shares of a context lack, as the fewest other words that are all rarer than its best answer."""
    shares = people[people["share"]].groupby("item")["weight"].agg(["sum", "max"])
    lacking = (1 - shares["sum"])[(shares["sum"] < 1 - SUM_SLACK) & (shares["max"] > 0)]
    if lacking.empty:
        return people, []
    number = np.floor(lacking / shares["max"][lacking.index] + 1e-9).astype(int) + 1
    nth = np.concatenate([np.arange(1, n + 1) for n in number])
    words = [OTHER if n == 1 else f"{OTHER}_{n}" for n in nth.tolist()]
    first = people.drop_duplicates("item").set_index("item")
    other = first.loc[np.repeat(lacking.index.to_numpy(), number)].reset_index()
    other = other.assign(response=words, word=words, weight=np.repeat((lacking / number).to_numpy(), number))
    worst = items.keys[int(lacking.index[int(lacking.argmax())])][-60:]
    text = f"contexts whose proportions do not sum to 1; the rest is {OTHER} ({worst!r} lacks {lacking.max():.3g})"
    return pd.concat([people, other[people.columns]], ignore_index=True), [Note(text, len(lacking), "warning")]


def _samples(models: pd.DataFrame, words: pd.Index) -> dict[str, NDArray[Any]]:
    asked = models.groupby(["item", "model"], sort=False)
    entries = models[~models.duplicated(["item", "model"])]
    entry_model, names = pd.factorize(entries["model"])
    return {
        "sample_entry": asked.ngroup().to_numpy(dtype=np.int32),
        "sample_word": words.get_indexer(pd.Index(models["word"])).astype(np.int32),
        **{f"sample_{name}": models[name].to_numpy(dtype=np.int32) for name in ("source", "count")},
        "sample_logprob": models["logprob"].to_numpy(dtype=float),
        "entry_item": entries["item"].to_numpy(dtype=np.int32),
        "entry_model": entry_model.astype(np.int32),
        "model": np.array(list(names), dtype=object),
    }


def _proportions(
    table: Table, arrays: dict[str, NDArray[Any]], items: _Items, settings: ClozeRowSettings
) -> list[Note]:
    """Check the sums; with a number of answers, make counts of the shares."""
    notes: list[Note] = []
    share, item = arrays["response_proportion"], arrays["response_item"].astype(np.intp)
    sums = np.bincount(item, weights=share, minlength=len(items))
    fractions = np.abs(100 * sums - 1) <= SUM_SLACK
    fractions &= np.bincount(item, weights=share > 0, minlength=len(items)) > 1
    if settings.percent and fractions.any():
        # 0.6 and 0.4 of a hundred; a single answer of 1 % may be what people gave
        first = items.keys[int(np.argmax(fractions))]
        problem = f"the percentages of {int(fractions.sum())} contexts sum to 1, the first is {first[-60:]!r}; are"
        problem += (
            f" these fractions? write all proportions on one scale; {Set('study.percent', True)} reads percentages"
        )
        raise table.error(problem, "proportion")
    off = np.abs(sums - 1) > SUM_SLACK
    if off.any():
        worst = int(np.argmax(np.abs(sums - 1)))
        text = f"{items.keys[worst][-60:]!r} sums to {sums[worst]:.4g}"
        if settings.proportions == "refuse":
            problem = f"the proportions of {int(off.sum())} contexts do not sum to 1, {text}"
            raise table.error(f"{problem}; {Set('study.proportions', 'rescale')} keeps them", "proportion")
        text = f"contexts whose proportions do not sum to 1, rescaled by every analysis; {text}"
        notes.append(Note(text, int(off.sum()), "warning"))
    if settings.n_answers is not None:
        counts = np.rint(share * settings.n_answers).astype(np.int64)
        lost = (counts == 0) & (share > 0)
        if lost.any():
            text = f"answers whose share of {settings.n_answers} answers rounds to none, counted as one"
            notes.append(Note(text, int(lost.sum()), "warning"))
        del arrays["response_proportion"]
        arrays["response_count"] = np.where(lost, 1, counts)
    return notes


def _model_shares(table: Table, arrays: dict[str, NDArray[Any]], items: _Items, settings: ClozeRowSettings) -> Note:
    """Let draws stand for the probabilities of models' words: estimators of distributions take counts."""
    drawn = arrays["sample_source"] == 0
    entry, logprob = arrays["sample_entry"].astype(np.intp)[drawn], arrays["sample_logprob"][drawn]
    scored, n_entries = ~np.isnan(logprob), len(arrays["entry_item"])
    share = np.exp(np.where(scored, logprob, -np.inf))
    total = np.bincount(entry, weights=share, minlength=n_entries)
    asked = np.bincount(entry[scored], minlength=n_entries) > 0
    for bad, problem in (
        (asked & (np.bincount(entry, weights=~scored, minlength=n_entries) > 0), "has counts and probabilities"),
        (total > 1 + SUM_SLACK, "has probabilities that sum to more than 1"),
        (asked & (total <= 0), "has probabilities that are all 0"),
    ):
        if bad.any():
            first = int(np.argmax(bad))
            model, key = arrays["model"][arrays["entry_model"][first]], items.keys[arrays["entry_item"][first]]
            said = f"{model} in {key[-60:]!r} {problem} (sum {total[first]:.4g}, {int(bad.sum())} such contexts)"
            raise table.error(said, "proportion")
    draws = np.rint(share / np.where(total > 0, total, 1)[entry] * settings.model_draws)
    arrays["sample_count"] = arrays["sample_count"].astype(np.int64)
    arrays["sample_count"][drawn] = np.where(scored, draws, arrays["sample_count"][drawn])
    least, most = total[asked].min(), total[asked].max()
    text = f"contexts in which a model's probabilities stand for {settings.model_draws:,} draws; they sum to "
    text += f"{least:.3g} to {most:.3g}"
    if least < 1 - SUM_SLACK:
        text += ", and what is missing is spread over the words that are there"
        return Note(text, int(asked.sum()), "warning")
    return Note(text, int(asked.sum()))
