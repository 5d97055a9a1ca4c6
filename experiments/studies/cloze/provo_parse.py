"""The public files of "Predict the Next Word", as the columns of a cloze study.

The files keep their own order, their doubtful entries and their raw strings: what to make of them is the business of
the experiments. The layout is described in the data's own documentation.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import BaseModel, Field, Strict, TypeAdapter

from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Load
from shannon_game.experiments.studies.cloze.rows import cloze_dataset
from shannon_game.experiments.studies.parsing import (
    Note,
    Real,
    Text,
    add_notes,
    checked,
    is_number,
    objects,
    parse_json,
    shown,
)

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


class _Reading:
    """Columns by the names of the format while files are read; a string stands once and is named by its position."""

    def __init__(self) -> None:
        self.columns: defaultdict[str, list[Any]] = defaultdict(list)
        self.words: dict[str, int] = {}
        self.items: dict[tuple[str, int], int] = {}
        self.by_context: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self.models: dict[str, int] = {}
        self.redirected: list[str] = []

    def append(self, **values: Any) -> None:
        for name, value in values.items():
            self.columns[name].append(value)

    def word(self, text: str) -> int:
        return self.words.setdefault(text, len(self.words))

    def item(self, key: tuple[str, int], entry: _Entry) -> None:
        """Add a context and what people said there."""
        item = self.items[key] = len(self.items)
        context = entry.context.text
        self.by_context[key[0], _without_dashes(context)].append(item)
        self.append(text_id=key[0], word_num=key[1], context=context, target_word=entry.original.pred)
        for one in entry.human:
            # the blank answers have count 0 in these files and 1 in those of GPT-2
            self.append(response_item=item, response_word=self.word(one.pred), response_count=one.count or 1)

    def item_of(self, text_id: str, word_num: int, context: str, where: str) -> int:
        """Find the item of a file's own key; where another text stands at that key, that of the same context."""
        found = self.items.get((text_id, word_num))
        if found is not None and self.columns["context"][found] == context:
            return found
        same = self.by_context.get((text_id, _without_dashes(context)), [])
        if len(same) != 1:
            raise InputError(
                f"the context at text {text_id}, word {word_num} ends in {context[-40:]!r}, which is "
                f"{len(same)} of the contexts of {HUMAN_FILES}; one is needed",
                source=where,
            )
        word = self.columns["word_num"][same[0]]
        self.redirected.append(f"{where.rpartition('/')[2]}: ({text_id}, {word_num}) is ({text_id}, {word})")
        return same[0]

    def entry(self, item: int, model: str, samples: Iterable[tuple[str, str, int, float]]) -> None:
        """Add a model's words in a context: source, word, count, log-probability."""
        entry = len(self.columns["entry_item"])
        self.append(entry_item=item, entry_model=self.models.setdefault(model, len(self.models)))
        for source, word, count, logprob in samples:
            self.append(sample_entry=entry, sample_source=_SOURCE[source], sample_word=self.word(word))
            self.append(sample_count=count, sample_logprob=logprob)

    def arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {"item": np.arange(len(self.items)), "word_text": objects(list(self.words))}
        for name, values in self.columns.items():
            is_real = name in ("sample_logprob", "result_value")
            is_text = isinstance(values[0], str)
            found[name] = objects(values) if is_text else np.array(values, dtype=float if is_real else np.int32)
        if self.models:
            found["model"] = objects(list(self.models))
        return found | {"source": objects(SOURCES)}


def parse(files: Mapping[str, bytes]) -> xr.Dataset:
    """Read the public files as a cloze study that is not validated yet."""
    reading = _Reading()
    temperature = _passages(files, "TVD/GPT2_Temp/Generations/Paragraphs_temp-")
    if not temperature:
        raise InputError(f"there is no file {HUMAN_FILES}, which holds the human answers", source=Load("provo"))
    for key, entry, _ in temperature:
        reading.item(key, entry)
    gpt2 = _passages(files, "TVD/GPT2/Generations/Paragraphs-")
    fine_tuned = _passages(files, "TVD/GPT2_FT/Generations/Paragraphs-")
    for model, passages in (("gpt2", gpt2), ("gpt2-ft", fine_tuned), (_TEMPERATURE, temperature)):
        for key, entry, name in passages:
            reading.entry(reading.item_of(*key, entry.context.text, name), model, _samples(entry))
    asked: list[tuple[str, str, str, _Key, list[str]]] = []
    bloom, chatgpt = MODEL_FILES["bloom"], MODEL_FILES["chatgpt"]
    if bloom in files:
        queries = checked(_BLOOM.validate_python, parse_json(files[bloom], bloom), bloom)
        asked += [("bloom", bloom, context, at, words) for context, at, words, _ in queries]
    if chatgpt in files:
        rounds = checked(_CHATGPT.validate_python, parse_json(files[chatgpt], chatgpt), chatgpt)
        asked += [("chatgpt", chatgpt, context, at, words.chatgpt) for context, at, words, _ in rounds]
        asked += [("chatgpt-2", chatgpt, context, at, words.again) for context, at, words, _ in rounds]
        asked += [("chatgpt-diverse", chatgpt, context, at, diverse.words) for context, at, _, diverse in rounds]
    for model, name, context, at, words in asked:
        drawn = [(SAMPLES, word, count, math.nan) for word, count in Counter(words).items()]
        reading.entry(reading.item_of(str(at.text_id), int(at.word_num), context, name), model, drawn)
    published, result_names, notes = _read_results(reading, files)
    arrays = reading.arrays() | ({"result_name": objects(result_names)} if result_names else {})
    published |= _read_training(files)
    study = cloze_dataset(arrays, {"published": json.dumps(published, sort_keys=True)})
    add_notes(study, [*_notes(reading), *notes])
    return study


def _passages(files: Mapping[str, bytes], prefix: str) -> list[tuple[tuple[str, int], _Entry, str]]:
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


def _samples(entry: _Entry) -> Iterator[tuple[str, str, int, float]]:
    yield "corpus", entry.original.pred, 0, entry.original.cond_log_prob
    for one in entry.human:
        yield "human", one.pred, 0, one.cond_log_prob
    for one in entry.ancestral_samples:
        yield SAMPLES, one.pred, one.count, one.cond_log_prob
    if entry.greedy is not None:
        yield "greedy", entry.greedy.pred, 0, entry.greedy.cond_log_prob
    for p, words in entry.nucleus_samples.by_p.items() if entry.nucleus_samples else ():
        for one in words:
            yield f"nucleus {p}", one.pred, one.count, one.cond_log_prob


# ------------------------------------------------------------------------------------------------- results


def _read_results(reading: _Reading, files: Mapping[str, bytes]) -> tuple[dict[str, float], list[str], list[Note]]:
    """Single published numbers, names of the published lists, which become columns, and what was left out."""
    temperature, gpt2 = list(reading.items), _gpt2_order(list(reading.items))
    published: dict[str, float] = {}
    names: dict[str, int] = {}
    notes = []
    for name in (name for name in files if "/uncertainty_" in name):
        for path, values in _lists(parse_json(files[name], name), name.rpartition("/")[2].removesuffix(".json"), name):
            if isinstance(values, float):
                published[path] = values
                continue
            if path.endswith("/TVD_mean_std_min_max") and len(values) == 4:
                which = ("mean", "sd", "min", "max")
                published |= {f"{path}/{one}": value for one, value in zip(which, values, strict=True)}
                continue
            model = next((model for model in ("bloom", "chatgpt") if f"/{model}/" in name.lower()), None)
            keys = _order(path, temperature, gpt2) if model is None else _asked(reading, temperature, model)
            # the code that wrote the lists left out the last context
            if not 0 <= len(keys) - len(values) <= 1:
                text = f"published list {path} has {len(values)} values, in an order that is not known; left out"
                notes.append(Note(text, 1))
                continue
            code = names.setdefault(path, len(names))
            for key, value in zip(keys, values, strict=False):
                reading.append(result_item=reading.items[key], result_list=code, result_value=value)
    return published, list(names), notes


def _read_training(files: Mapping[str, bytes]) -> dict[str, float]:
    """Losses as ``training_stats_.../EPOCH/Training Loss`` and ``.../Valid. Loss``."""
    found: dict[str, float] = {}
    for name, content in files.items():
        if "/training_stats/" in name:
            stem = name.rpartition("/")[2].removesuffix(".json")
            for number, epoch in enumerate(checked(_EPOCHS.validate_python, parse_json(content, name), name), start=1):
                its = epoch.model_dump(by_alias=True)
                found |= {f"{stem}/{number}/{key}": loss for key, loss in its.items()}
    return found


def _lists(content: Any, path: str, name: str) -> list[tuple[str, Any]]:
    """Lists of numbers and single numbers inside a result file, with their path."""
    if isinstance(content, dict):
        return [found for key, value in content.items() for found in _lists(value, f"{path}/{key}", name)]
    wrong = [value for value in (content if isinstance(content, list) else [content]) if not is_number(value)]
    if wrong or content == []:
        problem = f"holds {shown((wrong or [content])[0])}, should hold numbers or lists of numbers"
        raise InputError(problem, source=name, field=path)
    return [(path, list(map(float, content)) if isinstance(content, list) else float(content))]


def _gpt2_order(keys: list[tuple[str, int]]) -> list[tuple[str, int]]:
    for text, (drop, repeat, before) in _GPT2_ORDER.items():
        if {(text, drop), (text, repeat)} <= set(keys):
            keys.remove((text, drop))
            last = max(at for at, key in enumerate(keys) if key[0] == text)
            keys.insert(last + 1 if before is None else keys.index((text, before)), (text, repeat))
    return keys


def _order(path: str, temperature: list[tuple[str, int]], gpt2: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Contexts in the order of a stored list."""
    stem = path.partition("/")[0]
    if stem == "TVD_GPT2_temp":
        return temperature
    fold = re.fullmatch(r"cal_metrics_improved_model(_fine_tuned)?_(\d+)_(\d+)", stem)
    if stem != "TVD_GPT2_FT" and fold is None:
        return gpt2
    is_tuned, first, last = (path.endswith("_fine_tuned"), 1, 40) if fold is None else (fold[1], fold[2], fold[3])
    return [key for key in (temperature if is_tuned else gpt2) if int(first) <= int(key[0]) <= int(last)]


def _asked(reading: _Reading, keys: list[tuple[str, int]], model: str) -> list[tuple[str, int]]:
    pairs = zip(reading.columns["entry_item"], reading.columns["entry_model"], strict=True)
    return [keys[item] for item, its in pairs if its == reading.models.get(model)]


def _notes(reading: _Reading) -> list[Note]:
    notes = [Note(f"contexts, from {len({text for text, _ in reading.items})} passages", len(reading.items))]
    if blank := reading.columns["response_word"].count(reading.words.get("")):
        text = "blank answers (a bare NaN in the files), kept as blank strings that no analysis counts as a word"
        notes.append(Note(text, blank))
    if reading.redirected:
        listed = "; ".join(dict.fromkeys(reading.redirected))
        text = f"entries whose key names another context than they hold, joined by the context's text: {listed}"
        notes.append(Note(text, len(reading.redirected)))
    pairs = list(zip(reading.columns["entry_item"], reading.columns["entry_model"], strict=True))
    if again := len(pairs) - len(set(pairs)):
        text = "further entries for a context that the model was asked before, kept (clean pools their samples)"
        notes.append(Note(text, again))
    return notes
