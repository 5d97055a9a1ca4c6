"""The public files of "Predict the Next Word", as the columns of a cloze study.

The files keep their own order, their doubtful entries and their raw strings: what to make of them is the business of
the experiments. The layout is described in the data's own documentation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.cloze.rows import ClozeRows, Parsed
from shannon_game.experiments.studies.parsing import Note, is_number, is_whole, parse_json, shown

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
_CHATGPT = {"chatgpt": "unbiased_temp_1", "chatgpt-2": "unbiased_temp_2", "chatgpt-diverse": "diverse"}
_SOURCE = {name: position for position, name in enumerate(SOURCES)}
_NUMBER = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
_MOST = 2**31 - 1  # of a count: a study holds them in 32 bits
# a float32 softmax can round to a hair above one
_LOGPROB_SLACK = 1e-5
# what the files call a source
_KEY = {SAMPLES: "ancestral_samples", "corpus": "original"}
# in passages 3, 13 and 36 the stored lists drop one context and repeat another: the code that made them counted a
# lone dash token as a word in passage 36, and lost a context each in the other two; (drop, repeat, before which)
_GPT2_ORDER = {"3": (45, 58, None), "13": (19, 53, None), "36": (39, 25, 26)}


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
        self.rows.column("entry_item").append(item)
        self.rows.column("entry_model").append(self.models.setdefault(model, len(self.models)))
        self.n_entries += 1
        return self.n_entries - 1


def parse(files: Mapping[str, bytes]) -> Parsed:
    """Read the public files."""
    reading = _Reading()
    temperature = _passages(files, "TVD/GPT2_Temp/Generations/Paragraphs_temp-")
    if not temperature:
        raise InputError(f"there is no file {HUMAN_FILES}, which holds the human answers", source="study=provo")
    _read_items(reading, temperature)
    gpt2 = _passages(files, "TVD/GPT2/Generations/Paragraphs-")
    fine_tuned = _passages(files, "TVD/GPT2_FT/Generations/Paragraphs-")
    for model, passages in (("gpt2", gpt2), ("gpt2-ft", fine_tuned), (_TEMPERATURE, temperature)):
        _each(passages, partial(_read_entry, reading, model))
    bloom, chatgpt = (files.get(MODEL_FILES[name]) for name in ("bloom", "chatgpt"))
    if bloom is not None:
        _read_bloom(reading, parse_json(bloom, MODEL_FILES["bloom"]))
    if chatgpt is not None:
        _read_chatgpt(reading, parse_json(chatgpt, MODEL_FILES["chatgpt"]))
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


_Passages = list[tuple[str, str, dict[str, Any]]]


def _passages(files: Mapping[str, bytes], prefix: str) -> _Passages:
    """(passage, file, its entries by word number), in the order of the passages' numbers."""
    found: _Passages = []
    for name, content in files.items():
        if name.startswith(prefix):
            # a blank answer is a bare NaN in these files
            loaded = parse_json(content, name, nan=True)
            if not isinstance(loaded, dict):
                raise InputError(f"holds a {type(loaded).__name__}, should be an object of passages", source=name)
            found += [(passage, name, entries) for passage, entries in loaded.items()]
    for passage, name, entries in found:
        if not (_NUMBER.fullmatch(passage) and isinstance(entries, dict)):
            raise InputError(f"{passage!r} should be a passage's number, with an object", source=name)
    found.sort(key=lambda triple: int(triple[0]))
    for before, after in pairwise(found):
        if before[0] == after[0]:
            raise InputError(f"passage {after[0]} is in {before[1]} too; leave one", source=after[1])
    return found


def _each(passages: _Passages, read: Callable[[tuple[str, int], Any, str], None]) -> None:
    for passage, name, entries in passages:
        for word, entry in entries.items():
            with _place(name, f"passage {passage}, word {word}"):
                read((passage, _whole_text(word, "key")), entry, name)


@contextmanager
def _place(name: str, entry: str) -> Iterator[None]:
    """Say in which entry of which file something is wrong."""
    try:
        yield
    except _WrongError as error:
        raise InputError(error.problem, source=name, field=f"{entry}, {error.field}") from None
    except InputError:
        raise
    except KeyError as error:
        raise InputError("is missing", source=name, field=f"{entry}, {error.args[0]}") from None
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        problem = f"is not as the layout says ({type(error).__name__}: {error})"
        raise InputError(problem, source=name, field=entry) from error


class _WrongError(Exception):
    """A value of an entry is wrong."""

    def __init__(self, value: object, wanted: str, field: str) -> None:
        super().__init__(field)
        self.problem, self.field = f"is {shown(value)}, should be {wanted}", field


def _whole_text(value: object, field: str) -> int:
    """A number that is written as text, as in the files, or as a number."""
    if not (is_whole(value, 0, _MOST) or (isinstance(value, str) and _NUMBER.fullmatch(value))):
        raise _WrongError(value, "a whole number", field)
    return int(value)  # type: ignore[call-overload, no-any-return]


def _string(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise _WrongError(value, "a string", field)
    return value


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list):
        raise _WrongError(value, "a list", field)
    return value


def _texts(answers: Sequence[Mapping[str, Any]], field: str) -> list[str]:
    """Words as they stand; a bare NaN, which is a blank answer, is ""."""
    found = [answer["pred"] for answer in answers]
    # the files hold half a million answers: a whole list is looked at before any one of it
    if {str}.issuperset(map(type, found)):
        return found
    return ["" if isinstance(one, float) and math.isnan(one) else _string(one, f"{field}, pred") for one in found]


def _counts(answers: Sequence[Mapping[str, Any]], field: str) -> list[int]:
    found = [answer["count"] for answer in answers]
    if {int}.issuperset(map(type, found)) and min(found, default=0) >= 0 and max(found, default=0) <= _MOST:
        return found
    wrong = next(value for value in found if not is_whole(value, 0, _MOST))
    raise _WrongError(wrong, f"a whole number of at most {_MOST:,}", f"{field}, count")


def _logprobs(answers: Sequence[Mapping[str, Any]], field: str) -> list[float]:
    found = [answer["cond_log_prob"] for answer in answers]
    if {float}.issuperset(map(type, found)) and math.isfinite(sum(found)) and max(found, default=0) <= _LOGPROB_SLACK:
        return found
    for value in found:
        if not (is_number(value) and value <= _LOGPROB_SLACK):
            raise _WrongError(value, "a log-probability: a finite number of at most 0", f"{field}, cond_log_prob")
    return found


def _without_dashes(context: str) -> str:
    return " ".join(token for token in context.split(" ") if re.search(r"\w", token) and token != "\u00d1")


def _read_items(reading: _Reading, passages: _Passages) -> None:
    rows = reading.rows
    columns = [rows.column(name) for name in ("text_id", "word_num", "context", "target_word")]
    responses = [rows.column(name) for name in ("response_item", "response_word", "response_count")]

    def read(key: tuple[str, int], entry: Any, name: str) -> None:  # noqa: ARG001
        context = _string(entry["context"]["text"], "context, text")
        target = _string(entry["original"]["pred"], "original, pred")
        item = len(reading.items)
        reading.items[key] = item
        reading.by_context.setdefault((key[0], _without_dashes(context)), []).append(item)
        for column, value in zip(columns, (*key, context, target), strict=True):
            column.append(value)
        human = _list(entry["human"], "human")
        for text, count in zip(_texts(human, "human"), _counts(human, "human"), strict=True):
            reading.blank += not text
            # the blank answers have count 0 in these files and 1 in those of GPT-2
            for column, value in zip(responses, (item, rows.word(text), count or 1), strict=True):
                column.append(value)

    _each(passages, read)


def _read_entry(reading: _Reading, model: str, of: tuple[str, int], entry: Any, name: str) -> None:
    context = _string(entry["context"]["text"], "context, text")
    position = reading.entry(reading.item_of(*of, context, name), model)
    lists: list[tuple[str, Sequence[Mapping[str, Any]]]] = [
        ("corpus", [entry["original"]]),
        ("human", entry["human"]),
        (SAMPLES, entry["ancestral_samples"]),
    ]
    if "greedy" in entry:
        lists.append(("greedy", [entry["greedy"]]))
    if "nucleus_samples" in entry:
        lists += [(f"nucleus {p}", words) for p, words in entry["nucleus_samples"]["top-p"].items()]
    word = reading.rows.word
    entries, words, sources, counts, logprobs = _sample_columns(reading)
    for source, preds in lists:
        scored_only = source in ("corpus", "human", "greedy")
        entries.extend([position] * len(preds))
        sources.extend([_SOURCE[source]] * len(preds))
        key = _KEY.get(source, source)
        words.extend(map(word, _texts(_list(preds, key), key)))
        counts.extend([0] * len(preds) if scored_only else _counts(preds, key))
        logprobs.extend(_logprobs(preds, key))


def _sample_columns(reading: _Reading) -> tuple[list[Any], list[Any], list[Any], list[Any], list[Any]]:
    column = reading.rows.column
    return (
        column("sample_entry"),
        column("sample_word"),
        column("sample_source"),
        column("sample_count"),
        column("sample_logprob"),
    )


def _read_bloom(reading: _Reading, content: Any) -> None:
    name = MODEL_FILES["bloom"]

    def read(query: Any) -> None:
        _read_words(reading, "bloom", query, query[2], name)

    _each_query(content, name, read)


def _read_chatgpt(reading: _Reading, content: Any) -> None:
    name = MODEL_FILES["chatgpt"]

    def read(model: str, key: str, query: Any) -> None:
        # the raw "diverse" is one numbered list, already cut into words beside it
        _read_words(reading, model, query, query[3 if key == "diverse" else 2][key], name)

    for model, key in _CHATGPT.items():
        _each_query(content, name, partial(read, model, key))


def _each_query(content: Any, name: str, read: Callable[[Any], None]) -> None:
    if not isinstance(content, list):
        raise InputError(f"holds a {type(content).__name__}, should be a list of queries", source=name)
    for number, query in enumerate(content):
        with _place(name, f"query {number}"):
            read(query)


def _read_words(reading: _Reading, model: str, query: Any, strings: Any, name: str) -> None:
    key = (str(_whole_text(query[1]["text_id"], "text_id")), _whole_text(query[1]["word_num"], "word_num"))
    position = reading.entry(reading.item_of(*key, _string(query[0], "context"), name), model)
    counts: dict[int, int] = {}
    for text in _list(strings, "words"):
        code = reading.rows.word(_string(text, "words"))
        counts[code] = counts.get(code, 0) + 1
    entries, words, sources, drawn, logprobs = _sample_columns(reading)
    entries.extend([position] * len(counts))
    words.extend(counts)
    sources.extend([_SOURCE[SAMPLES]] * len(counts))
    drawn.extend(counts.values())
    logprobs.extend([math.nan] * len(counts))


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
        if "/training_stats/" not in name:
            continue
        epochs = parse_json(content, name)
        if not isinstance(epochs, list):
            raise InputError(f"holds {shown(epochs)}, should hold a list of epochs", source=name)
        for number, epoch in enumerate(epochs, start=1):
            for key in ("Training Loss", "Valid. Loss"):
                loss = epoch.get(key) if isinstance(epoch, dict) else None
                if not isinstance(loss, int | float) or not is_number(loss):
                    raise InputError(
                        f"is {shown(loss)}, should be a number", source=name, field=f"epoch {number}, {key}"
                    )
                reading.published[f"{name.rpartition('/')[2].removesuffix('.json')}/{number}/{key}"] = float(loss)


def _lists(content: Any, path: str, name: str, deepest: int = 9) -> list[tuple[str, Any]]:
    """Lists of numbers and single numbers inside a result file, with their path."""
    if isinstance(content, dict) and deepest:
        return [found for key, value in content.items() for found in _lists(value, f"{path}/{key}", name, deepest - 1)]
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
