"""Log-probabilities of the target words, as other programs write them: pangoling, minicons, lm-evaluation-harness.

========================  ===========================================================================================
file                      what it is
========================  ===========================================================================================
a table (CSV, Parquet)    one row per word or token with its value, such as the data frame to which R's pangoling adds
                          ``causal_words_pred()`` (ln p by default; ``log.p`` sets the base), or pairs of minicons
``.jsonl`` of lists       one line per context, in the order of the study: ``[["The", 0.0], ["cat", 5.1]]``, as
                          ``token_score()`` of minicons gives them (ln p by default)
``.jsonl`` of objects     ``samples_TASK_TIME.jsonl`` of lm-evaluation-harness (``--log_samples``), requests of the kind
                          loglikelihood: a context, a continuation, and ln p of all its tokens; or one list of them
========================  ===========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.cells import folded
from shannon_game.experiments.studies.cloze.table_columns import ScoreColumns, ScoreFile
from shannon_game.experiments.studies.files import read_bytes, regular_file
from shannon_game.experiments.studies.parsing import Note, Real, Text, checked, json_records, objects, shown, some_of
from shannon_game.experiments.studies.plain_table import Table, cell_text
from shannon_game.experiments.studies.table_file import read_table

# tokens and their values
_SCORED = TypeAdapter(list[tuple[Text, Real]])
_JSON = (".json", ".jsonl", ".ndjson")
_NATS_PER_BIT = math.log(2)
# R writes the first word of a sentence, of which nothing is known, like this
_UNKNOWN = ("", "NA", "nan", "NaN", "None")
# marks of word pieces and of spaces in the vocabularies of language models
_PIECES = str.maketrans("", "", "\u0120\u2581\u010a")
_EDGES = " \t\n.,;:!?\"'()[]\u2018\u2019\u201c\u201d\u2026"


@dataclass(frozen=True, eq=False)
class Contexts:
    """What tells the contexts of a study apart.

    `parts` are the columns of the key and their names in the study's table; the parts of each of `keys` are joined by
    U+001F. `texts` and `targets` are "" where they are not known.
    """

    parts: Mapping[str, str]
    keys: list[str]
    texts: Sequence[str]
    targets: Sequence[str]


def target_logprobs(file: ScoreFile, contexts: Contexts, model: str) -> tuple[NDArray[np.float64], list[Note]]:
    """Look up ln p of each context's target in the file of a model."""
    field = str(Set(f"study.scores.{model}"))
    regular_file(file.path, field=field)
    if not any(contexts.targets):
        raise InputError(f"needs the targets of the contexts: {Set('study.columns.target', 'NAME')}", field=field)
    if file.path.suffix.lower() in _JSON:
        found, attached = _of_json(file, contexts, field)
        notes = list[Note]()
    else:
        rows, notes = _table(file, contexts, model)
        found, attached = _of_words(rows, contexts)
    known = np.isfinite(found)
    if not known.any():
        raise InputError(f"has the target of none of the {len(found)} contexts", source=file.path, field=field)
    notes.append(Note(f"contexts whose target has a log-probability of {model}", int(known.sum())))
    if not known.all():
        first = contexts.keys[int(np.argmin(known))].replace("\x1f", " ")
        text = f"contexts whose target has no log-probability of {model}, the first {first!r}"
        notes.append(Note(text, int((~known).sum()), "warning"))
    text = f"targets with punctuation attached, which their log-probability of {model} is of too"
    return found, [*notes, *([Note(text, attached, "warning")] if attached else [])]


def _of_words(rows: Mapping[str, list[tuple[str, float]]], contexts: Contexts) -> tuple[NDArray[np.float64], int]:
    """Sum over the last words of a context that make up its target; and how many of them have punctuation attached."""
    found, attached = np.full(len(contexts.keys), np.nan), 0
    for at, (key, target) in enumerate(zip(contexts.keys, contexts.targets, strict=True)):
        words = rows.get(key, [])
        span = _span([word for word, _ in words], target)
        if span is not None:
            found[at] = sum(value for _, value in words[slice(*span)])
            joined = "".join(word for word, _ in words[slice(*span)]).translate(_PIECES).strip()
            attached += joined.casefold() != target.strip().casefold() and math.isfinite(found[at])
    return found, attached


def _span(words: Sequence[str], target: str) -> tuple[int, int] | None:
    """Which words, the last such ones, joined are the target; punctuation at its edges and case do not matter."""
    wanted = _bare(target)
    if not wanted:
        return None
    for end in range(len(words), 0, -1):
        joined = ""
        for start in range(end - 1, -1, -1):
            joined = words[start].translate(_PIECES).removeprefix("##").strip() + joined
            if _bare(joined) == wanted:
                return start, end
            if len(joined) > len(target) + 4:
                break
    return None


def _bare(word: str) -> str:
    return normalize("NFC", word.translate(_PIECES)).strip(_EDGES).casefold()


def key_parts(table: Table) -> dict[str, NDArray[np.object_]]:
    """What names a context; a number is one however it is written."""
    parts = {name: table[name] for name in ("context_id", "text_id", "word_num") if name in table}
    if "word_num" in parts:
        parts["word_num"] = objects([cell_text(number) for number in parts["word_num"].tolist()])
    if "context" in table and not {"context_id", "word_num"} & set(parts):
        parts = {"context": table.ids("context", empty=True), **parts}
    return parts


def _names_column(what: str) -> str:
    return f"{Set(f'study.scores.NAME.columns.{what}', 'NAME')} says which one it is"


def _table(file: ScoreFile, contexts: Contexts, model: str) -> tuple[dict[str, list[tuple[str, float]]], list[Note]]:
    columns = {what: getattr(file.columns, what) or name for what, name in contexts.parts.items()}
    columns |= {"word": file.columns.word, "value": file.columns.value}
    columns |= {"model": file.columns.model} if file.columns.model else {}
    table = read_table(file.path, of="word", how=file, wanted=list(columns.values()))
    table = table.named(columns, ScoreColumns.types(), hint=_names_column)
    if "model" in table:
        names = table["model"]
        if model not in names.tolist():
            raise table.error(
                f"has no row of {shown(model)}, only of {some_of(list(dict.fromkeys(names.tolist())))}", "model"
            )
        table = table.take(np.flatnonzero(names == model))
    known = ["" if text.strip() in _UNKNOWN else text for text in table.texts("value").tolist()]
    table = replace(table, cells=table.cells.assign(value=objects(known)))
    values = _nats(table["value"], file, table.where)
    rows: dict[str, list[tuple[str, float]]] = {}
    parts = (part.tolist() for part in key_parts(table).values())
    for *key, word, value in zip(*parts, table["word"].tolist(), values.tolist(), strict=True):
        rows.setdefault("\x1f".join(key), []).append((word, value))
    for context, scored in rows.items():
        if _scored_again(scored):
            raise _twice(context.replace("\x1f", " "), scored[0][0], file)
    return rows, table.notes


def _scored_again(scored: Sequence[tuple[str, float]]) -> bool:
    """Whether the same words, as a whole or each, follow one another with other values."""
    words = [word for word, _ in scored]
    for size in range(1, len(words) // 2 + 1):
        times = len(words) // size
        whole = words == words[:size] * times and list(scored) != [*scored[:size]] * times
        each = words == [word for word in words[::times] for _ in range(times)]
        if whole or (each and len(set(scored)) > len(set(words))):
            return True
    return False


def _twice(context: str, word: str, file: ScoreFile) -> InputError:
    problem = f"has other values again for {shown(word)} and what follows in context {shown(context[-60:])}"
    cure = "leave one, or name the column of the model (columns.model of the scores)"
    return InputError(f"{problem}; of two models or runs? {cure}", source=file.path, field=file.columns.value)


def _nats(values: NDArray[np.float64], file: ScoreFile, where: Any) -> NDArray[np.float64]:
    scale = file.scale
    if scale is None:
        right = "logprob_nats, logprob_bits, surprisal_nats, surprisal_bits or probability"
        raise InputError(f"has no value; say what the numbers are: {right}", source=file.path, field="scale")
    if scale == "probability":
        bad = (values < 0) | (values > 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(values)
    else:
        found = values * (-1 if scale.startswith("surprisal") else 1) * (_NATS_PER_BIT if scale.endswith("bits") else 1)
        bad = found > 1e-5
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InputError(f"is {values[at]:g} in {where(at)}, which is no {scale}", source=file.path, field="scale")
    return found


def _of_json(file: ScoreFile, contexts: Contexts, field: str) -> tuple[NDArray[np.float64], int]:
    content = read_bytes(file.path)
    found = [(f"{file.path}, {where}", record) for where, record in json_records(content, file.path)]
    records = [record for _, record in found]
    if records and all(isinstance(record, dict) for record in records):
        return _of_harness(found, contexts, file), 0
    if len(records) != len(contexts.keys) or not all(isinstance(record, list) for record in records):
        problem = f"has {len(records)} lines for {len(contexts.keys)} contexts; it should have one list a context"
        raise InputError(problem, source=file.path, field=field)
    rows = {}
    for key, (place, record) in zip(contexts.keys, found, strict=True):
        pairs = checked(_SCORED.validate_python, record, place)
        values = _nats(np.array([value for _, value in pairs], dtype=float), file, lambda _, place=place: place)
        rows[key] = [(token, value) for (token, _), value in zip(pairs, values.tolist(), strict=True)]
    return _of_words(rows, contexts)


def _of_harness(
    records: Sequence[tuple[str, Mapping[str, Any]]], contexts: Contexts, file: ScoreFile
) -> NDArray[np.float64]:
    known: dict[tuple[str, str], float] = {}
    for place, record in records:
        for context, continuation, logprob in _requests(record, place):
            if known.setdefault((folded(context), _bare(continuation)), logprob) != logprob:
                raise _twice(context, continuation, file)
    pairs = zip(contexts.texts, contexts.targets, strict=True)
    return np.array([known.get((folded(text), _bare(target)), math.nan) for text, target in pairs])


def _requests(record: Mapping[str, Any], place: str) -> Iterator[tuple[str, str, float]]:
    """Context, continuation and ln p of each request; newer versions name the arguments, and write numbers as text."""
    try:
        given = record["arguments"]
        for arguments, answer in zip(_values_of(given), record["resps"], strict=True):
            context, continuation = _values_of(arguments)
            # one list for repeats, and one for the pair of log-probability and whether it is the most probable
            while isinstance(answer[0], list):
                answer = answer[0]  # noqa: PLW2901
            yield f"{context}", f"{continuation}", _at_most_nothing(float(answer[0]))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        problem = f"is no record of log-likelihoods ({type(error).__name__}: {error})"
        right = "it should have arguments with a context and a continuation each, and resps with their log-probability"
        raise InputError(f"{problem}; {right}", source=place) from None


def _values_of(given: Any) -> list[Any]:
    return list(given.values()) if isinstance(given, dict) else list(given)


def _at_most_nothing(logprob: float) -> float:
    if not logprob <= 1e-5:
        raise ValueError(f"{logprob} is no log-probability")
    return logprob
