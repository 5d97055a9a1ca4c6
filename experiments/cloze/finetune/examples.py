"""People's answers as training examples, and the parts into which texts are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze import WordRules, normalise_words
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions
from shannon_game.experiments.cloze.live_words import is_word
from shannon_game.experiments.cloze.settings import groups_of
from shannon_game.inference.lm.answer_labels import LabelledContext, label_shares
from shannon_game.inference.lm.forward import with_bos
from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.words import can_write, word_tokens


@dataclass(frozen=True, eq=False)
class Fold:
    """One part of the texts, and the others."""

    number: int
    training: NDArray[np.intp]
    held_out: NDArray[np.intp]
    validation: NDArray[np.intp]
    """Whose loss is computed while the model trains: the part held out, unless texts are kept for it."""


def text_folds(
    study: xr.Dataset,
    items: NDArray[np.intp],
    *,
    n_folds: int,
    n_texts: int | None,
    in_order: bool,
    n_validation_texts: int,
    rng: np.random.Generator,
) -> list[Fold]:
    """Cut texts into parts, each of which is held out once; all contexts of a text are in one part.

    In order, the parts are neighbouring texts, and the last texts validate.
    """
    text = groups_of(study, items).astype(str)
    every = list(dict.fromkeys(text.tolist()))
    names = np.array(every if in_order else rng.permutation(sorted(every)).tolist(), dtype=str)[:n_texts]
    names, last = np.split(names, [max(len(names) - n_validation_texts, 0)])
    if len(names) < n_folds:
        raise InputError(f"is {n_folds}, but there are {len(names)} texts to hold out; take fewer", field="n_folds")
    parts = np.array_split(names, n_folds) if in_order else [names[number::n_folds] for number in range(n_folds)]
    is_there, validation = np.isin(text, names), items[np.isin(text, last)]
    folds = []
    for number, part in enumerate(parts, start=1):
        is_held_out = np.isin(text, part)
        held_out = items[is_held_out]
        folds.append(Fold(number, items[is_there & ~is_held_out], held_out, validation if len(last) else held_out))
    return folds


def answer_counts(study: xr.Dataset, rules: WordRules) -> list[dict[str, float]]:
    """Collect what people wrote in each context, as a model may write it."""
    typed = [str(text) for text in study["word_text"].to_numpy().tolist()]
    normalised = normalise_words(typed, rules)
    name = "response_count" if "response_count" in study else "response_proportion"
    rows = zip(
        item_positions(study, "response_item").tolist(),
        study["response_word"].to_numpy().tolist(),
        study[name].to_numpy().tolist(),
        strict=True,
    )
    spelt: list[dict[str, dict[str, float]]] = [{} for _ in range(study.sizes["item"])]
    for item, code, weight in rows:
        word = str(normalised.words[code])
        form = typed[code] if is_word(typed[code]) else word
        if normalised.missing[code] or weight <= 0 or not is_word(form):
            continue
        forms = spelt[item].setdefault(word, {})
        forms[form] = forms.get(form, 0.0) + weight
    return [{max(sorted(forms), key=forms.__getitem__): sum(forms.values()) for forms in its.values()} for its in spelt]


def answer_examples(
    model: LanguageModel,
    study: xr.Dataset,
    counts: Sequence[dict[str, float]],
    items: NDArray[np.intp],
    labels: str,
    *,
    together: int,
    rng: np.random.Generator,
) -> list[list[LabelledContext]]:
    """Turn contexts and answers into examples of neighbouring contexts of one text."""
    every = sorted({word for item in items for word in counts[item]})
    fine = [word for word, can in zip(every, can_write(model, [" " + word for word in every]), strict=True) if can]
    tokens = {word: tuple(word_tokens(model, " " + word)) for word in fine}
    texts = [str(text).rstrip() for text in study["context"].to_numpy()[items]]
    contexts = with_bos(model, encode(model, texts), source="study")
    examples: list[list[LabelledContext]] = []
    before = None
    for item, context, text in zip(items, contexts, groups_of(study, items), strict=True):
        its = {word: count for word, count in counts[item].items() if word in tokens}
        if not its:
            continue
        shares = label_shares(its, labels, rng)
        words = tuple(tokens[word] for word in shares)
        if len(context) + max(map(len, words)) > model.max_tokens:
            raise InputError(f"is too long for {model.name}, which takes {model.max_tokens} tokens", field="context")
        if text != before or len(examples[-1]) == together:
            examples.append([])
        before = text
        examples[-1].append(LabelledContext(tuple(context), words, tuple(shares.values())))
    if not examples:
        raise InputError("has no context whose answers the model can write", source="study", field="response_word")
    return examples
