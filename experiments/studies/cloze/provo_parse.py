"""The public files of "Predict the Next Word", as the columns of a cloze study.

The files keep their own order, their doubtful entries and their raw strings: what to make of them is the business of
the experiments. The layout is described in the data's own documentation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, Strict, TypeAdapter

from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.cloze.rows import ClozeRows, Parsed
from shannon_game.experiments.studies.parsing import Note, Real, Text, checked, is_number, parse_json, shown

__all__ = ["HUMAN_FILES", "MODEL_FILES", "RESULT_FILES", "SOURCES", "TRAINING_FILES", "parse"]

HUMAN_FILES = "TVD/GPT2_Temp/Generations/Paragraphs_temp-*.json"
MODEL_FILES: Mapping[str, str] = {
    "gpt2": "TVD/GPT2/Generations/Paragraphs-*.json",
    "gpt2-ft": "TVD/GPT2_FT/Generations/Paragraphs-*_fine_tuned.json",
    "bloom": "TVD/BLOOM/Generations/processed_bloom.json",
    "chatgpt": "TVD/ChatGPT/Generations/processed_chatgpt.json",
}
RESULT_FILES = ("TVD/*/uncertainty_results/*.json", "Additional_Experiments/*/uncertainty_*/*.json")
TRAINING_FILES = "TVD/*/fine_tuning/training_stats/*.json"
"""Losses by epoch of fine-tuning, a file a fold of passages."""
SOURCES = (SAMPLES, "nucleus 0.7", "nucleus 0.8", "nucleus 0.9", "greedy", "human", "corpus")

_TEMPERATURE = "gpt2-t0.5"
_SOURCE = {name: position for position, name in enumerate(SOURCES)}
# in passages 3, 13 and 36 the stored lists drop one context and repeat another: the code that made them counted a
# lone dash token as a word in passage 36, and lost a context each in the other two; (drop, repeat, before which)
_GPT2_ORDER = {"3": (45, 58, None), "13": (19, 53, None), "36": (39, 25, 26)}

# a study holds counts in 32 bits
_Count = Annotated[int, Strict(), Field(ge=0, le=2**31 - 1)]
_Digits = Annotated[Text, Field(pattern="^(?:0|[1-9][0-9]{0,8})$")]
_Filled = Annotated[Text, Field(min_length=1)]


class _Scored(BaseModel):
    """A word with its log-probability; a float32 softmax can round to a hair above one."""

    pred: Text
    cond_log_prob: Annotated[Real, Field(le=1e-5)]


class _Drawn(_Scored):
    count: _Count


class _Original(_Scored):
    pred: _Filled


class _Context(BaseModel):
    text: _Filled


class _Nucleus(BaseModel):
    by_p: dict[str, list[_Drawn]] = Field(alias="top-p")


class _Entry(BaseModel):
    """What people said and a model drew in one context."""

    context: _Context
    original: _Original
    human: list[_Drawn]
    ancestral_samples: list[_Drawn]
    greedy: _Scored | None = None
    nucleus_samples: _Nucleus | None = None


class _Key(BaseModel):
    text_id: _Count | _Digits
    word_num: _Count | _Digits


class _Rounds(BaseModel):
    chatgpt: list[Text] = Field(alias="unbiased_temp_1")
    again: list[Text] = Field(alias="unbiased_temp_2")


class _Diverse(BaseModel):
    words: list[Text] = Field(alias="diverse")


class _Epoch(BaseModel):
    training: Real = Field(alias="Training Loss")
    held_out: Real = Field(alias="Valid. Loss")


_PASSAGES = TypeAdapter(dict[_Digits, dict[_Digits, _Entry]])
_BLOOM = TypeAdapter(list[tuple[Text, _Key, list[Text], Any]])
# the raw "diverse" is one numbered list, already cut into words beside it
_CHATGPT = TypeAdapter(list[tuple[Text, _Key, _Rounds, _Diverse]])
_EPOCHS = TypeAdapter(list[_Epoch])


@dataclass
class _Reading:
    rows: ClozeRows = field(default_factory=ClozeRows)
    items: dict[tuple[str, int], int] = field(default_factory=dict)
    by_context: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    models: dict[str, int] = field(default_factory=dict)
    result_names: dict[str, int] = field(default_factory=dict)
    published: dict[str, float] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    n_entries: int = 0
    redirected: list[str] = field(default_factory=list)
    blank: int = 0

    def append(self, **values: Any) -> None:
        for name, value in values.items():
            self.rows.column(name).append(value)

    def item(self, key: tuple[str, int], entry: _Entry) -> None:
        """Add a context and what people said there."""
        item = self.items[key] = len(self.items)
        context = entry.context.text
        self.by_context.setdefault((key[0], _without_dashes(context)), []).append(item)
        self.append(text_id=key[0], word_num=key[1], context=context, target_word=entry.original.pred)
        for one in entry.human:
            self.blank += not one.pred
            # the blank answers have count 0 in these files and 1 in those of GPT-2
            self.append(response_item=item, response_word=self.rows.word(one.pred), response_count=one.count or 1)

    def item_of(self, text_id: str, word_num: int, context: str, where: str) -> int:
        """Find the item of a file's own key; where another text stands at that key, that of the same context."""
        found = self.items.get((text_id, word_num))
        contexts = self.rows.column("context")
        if found is not None and contexts[found] == context:
            return found
        same = self.by_context.get((text_id, _without_dashes(context)), [])
        if len(same) != 1:
            raise InputError(
                f"the context at text {text_id}, word {word_num} ends in {context[-40:]!r}, which is "
                f"{len(same)} of the contexts of {HUMAN_FILES}; one is needed",
                source=where,
            )
        word = self.rows.column("word_num")[same[0]]
        self.redirected.append(f"{where.rpartition('/')[2]}: ({text_id}, {word_num}) is ({text_id}, {word})")
        return same[0]

    def entry(self, item: int, model: str) -> int:
        self.append(entry_item=item, entry_model=self.models.setdefault(model, len(self.models)))
        self.n_entries += 1
        return self.n_entries - 1

    def samples(
        self, entry: int, source: str, words: Sequence[int], counts: Sequence[int], logprobs: Sequence[float]
    ) -> None:
        column = self.rows.column
        column("sample_entry").extend([entry] * len(words))
        column("sample_source").extend([_SOURCE[source]] * len(words))
        column("sample_word").extend(words)
        column("sample_count").extend(counts)
        column("sample_logprob").extend(logprobs)


def parse(files: Mapping[str, bytes]) -> Parsed:
    """Read the public files."""
    reading = _Reading()
    temperature = _passages(files, "TVD/GPT2_Temp/Generations/Paragraphs_temp-")
    if not temperature:
        raise InputError(f"there is no file {HUMAN_FILES}, which holds the human answers", source="study=provo")
    for key, entry, _ in temperature:
        reading.item(key, entry)
    gpt2 = _passages(files, "TVD/GPT2/Generations/Paragraphs-")
    fine_tuned = _passages(files, "TVD/GPT2_FT/Generations/Paragraphs-")
    for model, passages in (("gpt2", gpt2), ("gpt2-ft", fine_tuned), (_TEMPERATURE, temperature)):
        for key, entry, name in passages:
            _read_entry(reading, model, key, entry, name)
    bloom, chatgpt = MODEL_FILES["bloom"], MODEL_FILES["chatgpt"]
    if bloom in files:
        for context, at, words, _ in checked(_BLOOM.validate_python, parse_json(files[bloom], bloom), bloom):
            position = reading.entry(reading.item_of(str(at.text_id), int(at.word_num), context, bloom), "bloom")
            _read_words(reading, position, words)
    if chatgpt in files:
        queries = checked(_CHATGPT.validate_python, parse_json(files[chatgpt], chatgpt), chatgpt)
        for model in ("chatgpt", "chatgpt-2", "chatgpt-diverse"):
            for context, at, rounds, diverse in queries:
                words = {"chatgpt": rounds.chatgpt, "chatgpt-2": rounds.again}.get(model, diverse.words)
                position = reading.entry(reading.item_of(str(at.text_id), int(at.word_num), context, chatgpt), model)
                _read_words(reading, position, words)
    _read_results(reading, files)
    _read_training(reading, files)
    arrays = reading.rows.arrays()
    arrays["item"] = np.arange(len(reading.items))
    for name, values in (
        ("model", list(reading.models)),
        ("source", list(SOURCES)),
        ("result_name", list(reading.result_names)),
    ):
        if values:
            arrays[name] = np.array(values, dtype=object)
    return Parsed(arrays, reading.published, [*_notes(reading), *reading.notes])


def _passages(files: Mapping[str, bytes], prefix: str) -> list[tuple[tuple[str, int], _Entry, str]]:
    """Passage and word, entry, and file, in the order of the passages' numbers; a blank answer is a bare NaN there."""
    found: dict[str, tuple[str, dict[str, _Entry]]] = {}
    for name in (name for name in files if name.startswith(prefix)):
        passages = checked(_PASSAGES.validate_python, parse_json(files[name], name, nan=""), name)
        for passage, entries in passages.items():
            if passage in found:
                raise InputError(f"passage {passage} is in {found[passage][0]} too; leave one", source=name)
            found[passage] = name, entries
    return [
        ((passage, int(word)), entry, name)
        for passage, (name, entries) in sorted(found.items(), key=lambda one: int(one[0]))
        for word, entry in entries.items()
    ]


def _without_dashes(context: str) -> str:
    return " ".join(token for token in context.split(" ") if re.search(r"\w", token) and token != "\u00d1")


def _read_entry(reading: _Reading, model: str, key: tuple[str, int], entry: _Entry, name: str) -> None:
    position = reading.entry(reading.item_of(*key, entry.context.text, name), model)
    scored: list[tuple[str, Sequence[_Scored]]] = [("corpus", [entry.original]), ("human", entry.human)]
    drawn = (
        [(f"nucleus {p}", words) for p, words in entry.nucleus_samples.by_p.items()] if entry.nucleus_samples else []
    )
    if entry.greedy is not None:
        scored.append(("greedy", [entry.greedy]))
    for source, answers in (*scored[:2], (SAMPLES, entry.ancestral_samples), *scored[2:], *drawn):
        words = [reading.rows.word(one.pred) for one in answers]
        counts = [0 if source in ("corpus", "human") or not isinstance(one, _Drawn) else one.count for one in answers]
        reading.samples(position, source, words, counts, [one.cond_log_prob for one in answers])


def _read_words(reading: _Reading, position: int, words: Sequence[str]) -> None:
    counts: dict[int, int] = {}
    for text in words:
        code = reading.rows.word(text)
        counts[code] = counts.get(code, 0) + 1
    reading.samples(position, SAMPLES, list(counts), list(counts.values()), [math.nan] * len(counts))


# ------------------------------------------------------------------------------------------------- results


def _read_results(reading: _Reading, files: Mapping[str, bytes]) -> None:
    orders = _Orders(reading)
    for name, content in files.items():
        if "/uncertainty_" not in name:
            continue
        for path, values in _lists(parse_json(content, name), name.rpartition("/")[2].removesuffix(".json"), name):
            if isinstance(values, float):
                reading.published[path] = values
                continue
            if path.endswith("/TVD_mean_std_min_max") and len(values) == 4:
                which = ("mean", "sd", "min", "max")
                reading.published.update({f"{path}/{w}": value for w, value in zip(which, values, strict=True)})
                continue
            items = orders.items(path, len(values), name)
            if items is None:
                reading.notes.append(
                    Note(f"published list {path} has {len(values)} values, in an order that is not known; left out", 1)
                )
                continue
            code = reading.result_names.setdefault(path, len(reading.result_names))
            reading.rows.column("result_item").extend(items)
            reading.rows.column("result_list").extend([code] * len(values))
            reading.rows.column("result_value").extend(values)


def _read_training(reading: _Reading, files: Mapping[str, bytes]) -> None:
    """Keep ``training_stats_.../EPOCH/Training Loss`` and ``.../Valid. Loss`` among the single numbers."""
    for name, content in files.items():
        if "/training_stats/" in name:
            stem = name.rpartition("/")[2].removesuffix(".json")
            for number, epoch in enumerate(checked(_EPOCHS.validate_python, parse_json(content, name), name), start=1):
                its = epoch.model_dump(by_alias=True)
                reading.published.update({f"{stem}/{number}/{key}": loss for key, loss in its.items()})


def _lists(content: Any, path: str, name: str) -> list[tuple[str, Any]]:
    """Lists of numbers and single numbers inside a result file, with their path."""
    if isinstance(content, dict):
        return [found for key, value in content.items() for found in _lists(value, f"{path}/{key}", name)]
    wrong = [value for value in (content if isinstance(content, list) else [content]) if not is_number(value)]
    if wrong or content == []:
        problem = f"holds {shown((wrong or [content])[0])}, should hold numbers or lists of numbers"
        raise InputError(problem, source=name, field=path)
    return [(path, list(map(float, content)) if isinstance(content, list) else float(content))]


class _Orders:
    """Items in the order of every stored list."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._temperature = list(reading.items)
        texts = dict.fromkeys(text for text, _ in self._temperature)
        self._gpt2 = [key for text in texts for key in self._shifted(text)]

    def _shifted(self, text: str) -> list[tuple[str, int]]:
        keys = [key for key in self._temperature if key[0] == text]
        drop, repeat, before = _GPT2_ORDER.get(text, (None, None, None))
        if drop is None or (text, drop) not in keys or (text, repeat) not in keys:
            return keys
        keys.remove((text, drop))
        again = (text, int(repeat or 0))
        keys.insert(len(keys) if before is None else keys.index((text, before)), again)
        return keys

    def items(self, path: str, length: int, name: str) -> list[int] | None:
        keys = self._keys(path, name)
        if keys is None or not 0 <= len(keys) - length <= 1:
            return None
        # the code that wrote the lists left out the last context
        return [self._reading.items[key] for key in keys[:length]]

    def _keys(self, path: str, name: str) -> list[tuple[str, int]] | None:
        stem = path.partition("/")[0]
        if "/BLOOM/" in name or "/ChatGPT/" in name:
            model = "bloom" if "/BLOOM/" in name else "chatgpt"
            return self._of_entries(model)
        if stem == "TVD_GPT2_temp":
            return self._temperature
        if stem == "TVD_GPT2_FT":
            return self._between("1_40", self._temperature if path.endswith("_fine_tuned") else self._gpt2)
        fold = re.fullmatch(r"cal_metrics_improved_model(_fine_tuned)?_(\d+_\d+)", stem)
        if fold:
            return self._between(fold[2], self._temperature if fold[1] else self._gpt2)
        return self._gpt2

    def _between(self, passages: str, keys: list[tuple[str, int]]) -> list[tuple[str, int]]:
        first, last = map(int, passages.split("_"))
        return [key for key in keys if first <= int(key[0]) <= last]

    def _of_entries(self, model: str) -> list[tuple[str, int]] | None:
        if model not in self._reading.models:
            return None
        code = self._reading.models[model]
        column = self._reading.rows.column
        pairs = zip(column("entry_item"), column("entry_model"), strict=True)
        return [self._temperature[item] for item, its in pairs if its == code]


def _notes(reading: _Reading) -> list[Note]:
    notes = [Note(f"contexts, from {len({text for text, _ in reading.items})} passages", len(reading.items))]
    if reading.blank:
        text = "blank answers (a bare NaN in the files), kept as blank strings that no analysis counts as a word"
        notes.append(Note(text, reading.blank))
    if reading.redirected:
        shown = "; ".join(dict.fromkeys(reading.redirected))
        text = f"entries whose key names another context than they hold, joined by the context's text: {shown}"
        notes.append(Note(text, len(reading.redirected)))
    again = 0
    seen: set[tuple[int, int]] = set()
    for pair in zip(reading.rows.column("entry_item"), reading.rows.column("entry_model"), strict=True):
        again += pair in seen
        seen.add(pair)
    if again:
        text = "further entries for a context that the model was asked before, kept (clean pools their samples)"
        notes.append(Note(text, again))
    return notes
