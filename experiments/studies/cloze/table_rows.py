"""From the rows of a table to a cloze study: which answers count, what is noted or refused."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from estimators.cloze import validate_cloze_study
from estimators.cloze.study import SAMPLES
from estimators.errors import InputError
from experiments.studies.cells import folded
from experiments.studies.cloze.answers import answer_notes
from experiments.studies.cloze.rows import ClozeRows, cloze_dataset
from experiments.studies.cloze.scores import Contexts, key_part, target_logprobs
from experiments.studies.cloze.table_columns import ClozeRowSettings
from experiments.studies.cloze.table_weights import SUM_SLACK, draws_of_shares, row_weights
from experiments.studies.parsing import Note, add_notes, objects, shown
from experiments.studies.plain_table import Table
from experiments.studies.table_file import file_sha256

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

__all__ = ["RowsToStudy"]

# words that files only score stand under the same name in the published files
_TARGETS = "corpus"
# of a row: the text of its context, as what names it
_KEY = "key"


class RowsToStudy:
    """Collect the rows of one table, and make a study of them.

    Parameters
    ----------
    settings : ClozeRowSettings
    table : Table
    columns : mapping of str to str
        What a column is -> its name in the table.
    """

    def __init__(self, settings: ClozeRowSettings, table: Table, columns: Mapping[str, str]) -> None:
        if settings.n_answers is not None and "proportion" not in columns:
            raise InputError("goes with a column of proportions", source=table.source, field="n_answers")
        self._settings = settings
        self._columns = columns
        self._table = table
        self._rows = ClozeRows()
        self._items: dict[str, int] = {}
        self._keys: dict[tuple[str, int], str] = {}
        self._per_text: dict[str, int] = {}
        self._same_context: dict[str, int] = {}
        self._entries: dict[tuple[int, str], int] = {}
        self._models: dict[str, int] = {}
        self._seen: set[tuple[int, str]] = set()
        self._weights: dict[tuple[int, str, str, str], tuple[float, int]] = {}
        self._scored = False
        self._blank = self._incomplete = self._repeats = 0

    def study(self, *, name: str, notes: Iterable[Note] = ()) -> xr.Dataset:
        """Read every row."""
        columns = {what: self._texts(what).tolist() for what in self._columns if what not in ("count", "proportion")}
        if self._keyed_by_text:
            columns[_KEY] = self._table.ids(self._columns["context"], empty=True).tolist()
        weights = row_weights(self._table, self._columns, percent=self._settings.percent)
        weight, is_share = weights.weight.tolist(), weights.is_share.tolist()
        for row, values in enumerate(zip(*columns.values(), strict=True)):
            self._read(dict(zip(columns, values, strict=True)), weight[row], is_share[row], row)
        if not self._items:
            raise InputError("holds no answer", source=self._table.source)
        scored = self._add_scores()
        arrays = self._rows.arrays()
        if "response_item" not in arrays:
            raise InputError("holds no human answer: every row names a model", source=self._table.source)
        self._check_answered(arrays["response_item"])
        shares = self._proportions(arrays) if "response_proportion" in arrays else []
        found = [*self._table.notes, *notes, *shares, *self._model_shares(arrays), *scored]
        arrays["item"] = np.arange(len(self._items))
        if "item_id" in arrays and len(set(arrays["item_id"].tolist())) < len(self._items):
            # ids that start anew in each text
            arrays["item_id"] = objects([key.replace("\x1f", ":") for key in self._items])
        if self._models:
            arrays["model"] = np.array(list(self._models), dtype=object)
            arrays["source"] = np.array([SAMPLES, *([_TARGETS] if scored else [])], dtype=object)
        attrs = {"name": name, "word_rules": self._settings.word_rules, "data_sha256": self._sha256()}
        study = cloze_dataset(arrays, attrs)
        add_notes(study, (*found, *self._notes(arrays), *answer_notes(study)))
        return validate_cloze_study(study)

    def _sha256(self) -> str:
        digests = [self._table.sha256, *(file_sha256(file.path) for file in self._settings.scores.values())]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def _wrong(self, problem: str, field: str | None = None) -> InputError:
        return InputError(problem, source=self._table.source, field=field)

    def _texts(self, what: str) -> NDArray[np.object_]:
        column = self._columns[what]
        if what == "response" and self._table.cells[column].dtype.kind in "biufcO":
            for row, value in enumerate(self._table.cells[column].tolist()):
                if not isinstance(value, str) and not pd.isna(value):
                    problem = f"{self._table.where(row)}: is {shown(value)}; answers have to be strings"
                    raise self._wrong(f"{problem} (TRUE and 1.0 do not say what was typed)", column)
        if what in ("context", "response", "target"):
            return self._table.texts(column)
        return key_part(self._table, what, column)

    @property
    def _keyed_by_text(self) -> bool:
        return "context" in self._columns and not {"context_id", "word_num"} & set(self._columns)

    def _read(self, values: Mapping[str, str], weight: float, is_share: bool, row: int) -> None:
        item = self._item(values, row)
        if item is None:
            return
        answer = values["response"]
        if not answer.strip() or answer in self._settings.missing:
            self._blank += 1
            answer = ""
        if math.isnan(weight):
            self._leave_out(f"has no {' and no '.join({'count', 'proportion'} & set(self._columns))}", row)
            return
        model = values.get("model", "")
        self._refuse_again(item, values, weight, row)
        if model:
            self._model_row(item, model, answer, weight, is_share=is_share)
            return
        who = values.get("participant")
        if who == "":
            self._leave_out("has no participant", row)
            return
        column = self._rows.column
        if who is not None:
            if weight != 1:
                raise self._wrong(f"{self._table.where(row)}: has a participant and a count of {weight:g}", "count")
            self._repeats += (item, who) in self._seen
            self._seen.add((item, who))
            column("participant").append(who)
        if "participant_group" in values:
            column("participant_group").append(values["participant_group"])
        column("response_item").append(item)
        column("response_word").append(self._rows.word(answer))
        if is_share:
            column("response_proportion").append(weight)
        else:
            column("response_count").append(int(weight))

    def _refuse_again(self, item: int, values: Mapping[str, str], weight: float, row: int) -> None:
        """A count of each answer is there once; rows that count one each are answers, one by one."""
        if "count" not in self._columns and "proportion" not in self._columns:
            return
        key = (item, values.get("model", ""), values.get("participant_group", ""), values["response"])
        before = self._weights.setdefault(key, (weight, row))
        if before[1] != row and (weight, before[0]) != (1, 1):
            problem = f"{self._table.where(row)}: {shown(values['response'])} has a count or share already in "
            raise self._wrong(
                f"{problem}{self._table.where(before[1])}, for the same context; leave one of the rows (was the table "
                "pasted twice?), add them up, or name the column that tells them apart",
                self._columns["response"],
            )

    def _model_row(self, item: int, model: str, answer: str, weight: float, *, is_share: bool) -> None:
        entry, word = self._entry(item, model), self._rows.word(answer)
        if is_share:
            self._scored = True
        logprob = (math.log(weight) if weight else -math.inf) if is_share else math.nan
        self._sample(entry, word, 0 if is_share else int(weight), logprob)

    def _entry(self, item: int, model: str) -> int:
        if (item, model) not in self._entries:
            self._entries[item, model] = len(self._entries)
            self._rows.column("entry_item").append(item)
            self._rows.column("entry_model").append(self._models.setdefault(model, len(self._models)))
        return self._entries[item, model]

    def _sample(self, entry: int, word: int, count: int, logprob: float, *, source: int = 0) -> None:
        row = {"entry": entry, "word": word, "source": source, "count": count, "logprob": logprob}
        for name, value in row.items():
            self._rows.column(f"sample_{name}").append(value)

    def _add_scores(self) -> list[Note]:
        """Add log-probabilities of the targets from the files of other programs, as words that were never drawn."""
        names = [name for name in ("context_id", "text_id", "word_num") if name in self._columns]
        if "context" in self._columns and not {"context_id", "word_num"} & set(names):
            names = ["context", *names]
        column, notes = self._rows.column, []
        for model, file in self._settings.scores.items():
            parts = {name: self._columns[name] for name in names}
            contexts = Contexts(parts, list(self._items), column("context"), column("target_word"))
            logprob, said = target_logprobs(file, contexts, model)
            notes += said
            for item in np.flatnonzero(np.isfinite(logprob)).tolist():
                word = self._rows.word(column("target_word")[item])
                self._sample(self._entry(item, model), word, 0, float(logprob[item]), source=1)
        return notes

    def _leave_out(self, problem: str, row: int) -> None:
        if not self._settings.drop_incomplete:
            where = self._table.where(row)
            raise self._wrong(f"{where}: {problem}; study.drop_incomplete=true leaves such rows out")
        self._incomplete += 1

    def _item(self, values: Mapping[str, str], row: int) -> int | None:
        context, text = values.get("context", ""), values.get("text_id", "")
        said = [values[name] for name in (_KEY, "context_id", "text_id", "word_num") if name in values]
        if not all(said):
            self._leave_out("does not say which context", row)
            return None
        key = "\x1f".join(said)
        if key in self._items:
            item = self._items[key]
            self._check_same(item, "context", context, row)
            self._check_same(item, "target_word", values.get("target", ""), row)
            return item
        name = text or "1"
        if "word_num" in values:
            place = int(values["word_num"])
        else:
            place = self._per_text[name] = self._per_text.get(name, 0) + 1
        if (name, place) in self._keys:
            raise self._wrong(
                f"{self._table.where(row)}: text {name}, word {place} is another context already "
                f"({self._keys[name, place]!r}); leave columns.word_num or columns.context_id out"
            )
        item = self._items[key] = len(self._items)
        self._keys[name, place] = key.replace("\x1f", " ")
        if "context" in values:
            self._same_context[context] = self._same_context.get(context, 0) + 1
        contents = {"text_id": name, "word_num": place, "context": context, "target_word": values.get("target", "")}
        if "context_id" in values:
            contents["item_id"] = said[0]
        for column, content in contents.items():
            self._rows.column(column).append(content)
        return item

    def _check_same(self, item: int, name: str, value: str, row: int) -> None:
        before = self._rows.column(name)[item]
        # an empty cell says nothing
        if value and before != value and folded(before) != folded(value):
            where = self._table.where(row)
            problem = f"{where}: is {value[-60:]!r}, but an earlier row of the same context has {before[-60:]!r}"
            raise self._wrong(problem, name)

    def _check_answered(self, response_item: NDArray[np.int32]) -> None:
        answered = np.zeros(len(self._items), dtype=bool)
        answered[response_item] = True
        if not answered.all():
            first = list(self._items)[int(np.argmin(answered))]
            raise self._wrong(
                f"{int((~answered).sum())} contexts have no human answer, the first is {first[-60:]!r}; leave them out"
            )

    def _proportions(self, arrays: dict[str, NDArray[np.generic]]) -> list[Note]:
        """Check the sums; with a number of answers, make counts of the shares."""
        settings, notes = self._settings, []
        share, item = arrays["response_proportion"].astype(float), arrays["response_item"].astype(np.intp)
        sums = np.bincount(item, weights=share, minlength=len(self._items))
        fractions = np.abs(100 * sums - 1) <= SUM_SLACK
        fractions &= np.bincount(item, weights=share > 0, minlength=len(self._items)) > 1
        if settings.percent and fractions.any():
            # 0.6 and 0.4 of a hundred; a single answer of 1 % may be what people gave
            first = list(self._items)[int(np.argmax(fractions))]
            problem = f"the percentages of {int(fractions.sum())} contexts sum to 1, the first is {first[-60:]!r}; are"
            problem += " these fractions? write all proportions on one scale; study.percent=true reads percentages"
            raise self._wrong(problem, self._columns["proportion"])
        off = np.abs(sums - 1) > SUM_SLACK
        if off.any():
            worst = int(np.argmax(np.abs(sums - 1)))
            text = f"{list(self._items)[worst][-60:]!r} sums to {sums[worst]:.4g}"
            if settings.proportions == "refuse":
                problem = f"the proportions of {int(off.sum())} contexts do not sum to 1, {text}"
                raise self._wrong(f"{problem}; study.proportions=rescale keeps them", self._columns["proportion"])
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

    def _model_shares(self, arrays: dict[str, NDArray[np.generic]]) -> list[Note]:
        """Turn the probabilities of models' words into draws; without any, log-probabilities are not known."""
        if not self._scored:
            if not self._settings.scores:
                arrays.pop("sample_logprob", None)
            return []
        rows = np.flatnonzero(arrays["sample_source"].astype(int) == 0)
        entry, logprob = arrays["sample_entry"].astype(np.intp)[rows], arrays["sample_logprob"].astype(float)[rows]
        count = arrays["sample_count"].astype(np.int64)
        items = list(self._items)
        names = [f"{model} in {items[item][-60:]!r}" for item, model in self._entries]
        try:
            count[rows], note = draws_of_shares(
                entry, count[rows], logprob, names=names, draws=self._settings.model_draws
            )
        except InputError as error:
            raise self._wrong(str(error), self._columns["proportion"]) from None
        arrays["sample_count"] = count
        return [note]

    def _notes(self, arrays: Mapping[str, NDArray[np.generic]]) -> list[Note]:
        again = sum(times for times in self._same_context.values() if times > 1)
        blank = (
            "blank answers (empty, null, or listed in study.missing), kept as blank strings; distributions leave "
            "them out unless the word rules keep them (experiment.words.blank=keep)"
        )
        same = "contexts with the same text as another one and an id of their own, kept apart"
        found = (
            Note(blank, self._blank),
            Note("rows without a context, a weight or a participant, left out", self._incomplete, "warning"),
            Note("further answers of a participant to the same context, all kept", self._repeats, "warning"),
            Note(same, again),
        )
        answers = Note("rows with a human answer", len(arrays["response_item"]))
        return [Note("contexts", len(self._items)), answers, *(note for note in found if note.count)]
