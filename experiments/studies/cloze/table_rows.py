"""From rows of text to a cloze study: what a column may be, which answers count, what is noted or refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import model_validator

from estimators.cloze import validate_cloze_study
from estimators.cloze.study import SAMPLES
from estimators.errors import InputError
from experiments.studies.cloze.rows import ClozeRows, WordRulesName, cloze_dataset
from experiments.studies.parsing import Note, add_notes
from inference.settings import Count, Settings

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

__all__ = ["ClozeColumns", "ClozeRowSettings", "RowsToStudy"]

# a sum of shares printed with two digits each is off by more than this only where answers are left out
_SUM_SLACK = 0.02


class ClozeColumns(Settings):
    """Name of each column in the table; null where there is none."""

    context: str | None = None
    """Text before the word asked for."""
    context_id: str | None = None
    """Tells contexts apart; without it (and without word_num) their text does."""
    response: str | None = None
    """The answer. Needed, and a context, a context_id, or text_id with word_num."""
    count: str | None = None
    """People who gave this answer. With neither count nor proportion every row is one answer."""
    proportion: str | None = None
    """Share of the people who gave this answer (0.25, or 25%)."""
    participant: str | None = None
    """Who answered."""
    target: str | None = None
    """The word of the text."""
    text_id: str | None = None
    """Text that the context is from; standard errors resample texts."""
    word_num: str | None = None
    """Number of the word asked for in its text."""
    model: str | None = None
    """Empty for people's answers, else the name of the model whose samples these are."""

    @property
    def given(self) -> dict[str, str]:
        """What a column is -> its name in the table."""
        return {name: column for name, column in self if column}

    @model_validator(mode="after")
    def _enough_and_not_too_much(self) -> ClozeColumns:
        found = self.given
        if "response" not in found or not {"context", "context_id", "word_num"} & set(found):
            raise InputError(
                "has to name the column of the response, and of the context, of an id of it, or of text_id and "
                "word_num: columns={context: COLUMN, response: COLUMN}"
            )
        if "count" in found and "proportion" in found:
            raise InputError("names a count and a proportion; name the count only")
        if "word_num" in found and "text_id" not in found:
            raise InputError("names word_num without text_id")
        return self


class ClozeRowSettings(Settings):
    """How the rows of a table become a study."""

    columns: ClozeColumns | None = None
    """What each column of the table is; null takes those that bear these names."""
    missing: tuple[str, ...] = ()
    """Texts that stand for no answer in this table, such as [NA, -99]; a null and an empty field always do."""
    drop_incomplete: bool = False
    """Leave rows without a context, weight or participant out (counted) instead of refusing the table."""
    n_answers: Count | None = None
    """Answers behind the proportions of each context, if there were as many everywhere: gives counts."""
    proportions: Literal["rescale", "refuse"] = "rescale"
    """What happens to proportions that do not sum to one; rescale warns."""
    percent: bool = False
    """Proportions are percentages."""
    word_rules: WordRulesName = "clean"
    """What makes this table's strings comparable (estimators.cloze.words.WORD_RULES)."""


class RowsToStudy:
    """Collect the rows of one table, and make a study of them.

    Parameters
    ----------
    settings : ClozeRowSettings
    columns : mapping of str to str
        What a column is -> its name in the rows.
    source : object
        The table, for messages.
    """

    def __init__(self, settings: ClozeRowSettings, columns: Mapping[str, str], source: object) -> None:
        if settings.n_answers is not None and "proportion" not in columns:
            raise InputError("goes with a column of proportions", source=source, field="n_answers")
        self._settings = settings
        self._columns = columns
        self._source = source
        self._rows = ClozeRows()
        self._items: dict[str, int] = {}
        self._keys: dict[tuple[str, int], str] = {}
        self._per_text: dict[str, int] = {}
        self._same_context: dict[str, int] = {}
        self._entries: dict[tuple[int, str], int] = {}
        self._models: dict[str, int] = {}
        self._seen: set[tuple[int, str]] = set()
        self._blank = self._incomplete = self._repeats = 0

    def study(
        self,
        rows: Iterable[tuple[str, Mapping[str, str | None]]],
        *,
        name: str,
        sha256: str,
        notes: Iterable[Note] = (),
    ) -> xr.Dataset:
        """Read every row.

        Raises
        ------
        InputError
            For a value that cannot be, or a table without people's answers.
        """
        for where, row in rows:
            self._read(row, where)
        if not self._items:
            raise InputError("holds no answer", source=self._source)
        arrays = self._rows.arrays()
        if "response_item" not in arrays:
            raise InputError("holds no human answer: every row names a model", source=self._source)
        self._check_answered(arrays["response_item"])
        found = [*notes, *(self._proportions(arrays) if "proportion" in self._columns else ())]
        arrays["item"] = np.arange(len(self._items))
        if self._models:
            arrays["model"] = np.array(list(self._models), dtype=object)
            arrays["source"] = np.array([SAMPLES], dtype=object)
        attrs = {"name": name, "word_rules": self._settings.word_rules, "data_sha256": sha256}
        study = cloze_dataset(arrays, attrs)
        add_notes(study, (*found, *self._notes(arrays)))
        return validate_cloze_study(study)

    def _wrong(self, problem: str, field: str | None = None) -> InputError:
        return InputError(problem, source=self._source, field=field)

    # ------------------------------------------------------------------------------------------------ one row

    def _read(self, row: Mapping[str, str | None], where: str) -> None:
        values = {what: row[column] for what, column in self._columns.items()}
        item = self._item(values, where)
        if item is None:
            return
        answer = values["response"]
        if answer is None or not answer.strip() or answer in self._settings.missing:
            self._blank += 1
            answer = ""
        weight = self._weight(values, where)
        if weight is None:
            return
        model = (values.get("model") or "").strip()
        if model:
            self._model_row(item, model, answer, weight=weight, where=where)
            return
        who = values.get("participant")
        if who is not None and not who.strip():
            self._leave_out("has no participant", where)
            return
        column = self._rows.column
        if who is not None:
            if weight != 1:
                raise self._wrong(f"{where}: has a participant and a count of {weight:g}", "count")
            self._repeats += (item, who.strip()) in self._seen
            self._seen.add((item, who.strip()))
            column("participant").append(who.strip())
        column("response_item").append(item)
        column("response_word").append(self._rows.word(answer))
        if "proportion" in self._columns:
            column("response_proportion").append(weight)
        else:
            column("response_count").append(int(weight))

    def _model_row(self, item: int, model: str, answer: str, *, weight: float, where: str) -> None:
        if weight != int(weight):
            raise self._wrong(f"{where}: a model's word has the proportion {weight:g}; models' words need counts")
        column = self._rows.column
        if (item, model) not in self._entries:
            self._entries[item, model] = len(self._entries)
            column("entry_item").append(item)
            column("entry_model").append(self._models.setdefault(model, len(self._models)))
        column("sample_entry").append(self._entries[item, model])
        column("sample_word").append(self._rows.word(answer))
        column("sample_source").append(0)
        column("sample_count").append(int(weight))

    def _leave_out(self, problem: str, where: str) -> None:
        if not self._settings.drop_incomplete:
            raise self._wrong(f"{where}: {problem}; study.drop_incomplete=true leaves such rows out")
        self._incomplete += 1

    def _item(self, values: Mapping[str, str | None], where: str) -> int | None:
        context, text = values.get("context"), values.get("text_id")
        used = [values[name] for name in ("context_id", "text_id", "word_num") if name in values]
        if "context" in values and "context_id" not in values and "word_num" not in values:
            used = [context, *used]
        said = [part.strip() for part in used if part is not None and part.strip()]
        if len(said) < len(used):
            self._leave_out("does not say which context", where)
            return None
        key = "\x1f".join(said)
        target = values.get("target")
        if key in self._items:
            item = self._items[key]
            self._check_same(item, "context", context, where)
            self._check_same(item, "target_word", target, where)
            return item
        name = (text or "").strip() or "1"
        if "word_num" in values:
            place = self._whole(values["word_num"], "word_num", where)
        else:
            place = self._per_text[name] = self._per_text.get(name, 0) + 1
        if (name, place) in self._keys:
            raise self._wrong(
                f"{where}: text {name}, word {place} is another context already ({self._keys[name, place]!r}); leave "
                "columns.word_num or columns.context_id out"
            )
        item = self._items[key] = len(self._items)
        self._keys[name, place] = key.replace("\x1f", " ")
        if context is not None:
            self._same_context[context] = self._same_context.get(context, 0) + 1
        contents = {"text_id": name, "word_num": place, "context": context or "", "target_word": target or ""}
        for column, content in contents.items():
            self._rows.column(column).append(content)
        return item

    def _check_same(self, item: int, name: str, value: str | None, where: str) -> None:
        before = self._rows.column(name)[item]
        if value is not None and before != value:
            problem = f"{where}: is {value[-60:]!r}, but an earlier row of the same context has {before[-60:]!r}"
            raise self._wrong(problem, name)

    def _weight(self, values: Mapping[str, str | None], where: str) -> float | None:
        name = "proportion" if "proportion" in values else "count"
        if name not in values:
            return 1.0
        text = values[name]
        if text is None or not text.strip():
            self._leave_out(f"has no {name}", where)
            return None
        if name == "count":
            return float(self._whole(text, "count", where))
        shown = text.strip()
        share = _number(shown.removesuffix("%"))
        if share is not None and (self._settings.percent or shown.endswith("%")):
            share /= 100
        if share is None or not 0 <= share <= 1:
            hint = "; study.percent=true reads percentages" if share is not None and 1 < share <= 100 else ""
            problem = f"{where}: is {text!r}, should be a share between 0 and 1{hint}"
            raise self._wrong(problem, self._columns[name])
        return share

    def _whole(self, text: str | None, name: str, where: str) -> int:
        number = _number(text or "")
        if number is None or number < 0 or number != int(number):
            raise self._wrong(f"{where}: is {text!r}, should be a whole number", self._columns[name])
        return int(number)

    # ---------------------------------------------------------------------------------------------- all rows

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
        share = arrays["response_proportion"].astype(float)
        sums = np.bincount(arrays["response_item"].astype(np.intp), weights=share, minlength=len(self._items))
        off = np.abs(sums - 1) > _SUM_SLACK
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


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
