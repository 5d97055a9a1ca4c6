"""What live models are asked about the words of a cloze study: exact probabilities and draws, through the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.cloze import StudyWords, WordRules, normalise_words
from shannon_game.estimators.cloze.words import FAILED
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.cloze.settings import ComparableSettings, groups_of
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.language_models import StoreSettings, Work, batches_in_order
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.inference.lm.decoding import Decoding
from shannon_game.inference.lm.language_model import LanguageModel, encode, model_record
from shannon_game.inference.lm.vocabulary import boundary_at
from shannon_game.inference.lm.word_samples import sample_words
from shannon_game.inference.lm.words import can_write, word_log_probs
from shannon_game.inference.settings import Count
from shannon_game.inference.store.keys import operation_key, result_key
from shannon_game.inference.store.store import ragged

_BOUNDARY = "punctuation"


class LiveWordSettings(ComparableSettings, Seeded, StoreSettings):
    """What a question takes that asks live models for people's words."""

    n_contexts: Count | None = None
    """Contexts at random; null takes all."""
    max_forms: Count = 6
    """Most strings that count as one of people's words, each looked up."""
    other_tokenisations_nats: Annotated[float, Field(ge=0)] | None = None
    """Also other ways of writing a word in tokens, as long as they are at most so many nats less probable; null takes
    the tokenizer's own way, which has nearly all of it."""


def usable_contexts(study: xr.Dataset, words: StudyWords) -> NDArray[np.intp]:
    """Positions of the contexts that have an answer and a text before them."""
    text = study["context"].to_numpy()
    return np.flatnonzero((words.human_distributions.mass > 0) & np.array([bool(str(one).strip()) for one in text]))


def contexts_asked(
    study: xr.Dataset, words: StudyWords, settings: LiveWordSettings, work: Work, *, n_texts: int | None = None
) -> NDArray[np.intp]:
    """Usable contexts, of `n_texts` and then `n_contexts` at random and of this run's shard, in the study's order."""
    usable = usable_contexts(study, words)
    groups = groups_of(study, usable).astype(str)
    names = list(dict.fromkeys(groups.tolist()))
    if n_texts is not None and n_texts < len(names):
        kept = rng_for(settings.seed, "texts").choice(len(names), size=n_texts, replace=False)
        usable = usable[np.isin(groups, [names[i] for i in kept])]
    if settings.n_contexts is not None and settings.n_contexts < len(usable):
        usable = np.sort(rng_for(settings.seed, "contexts").choice(usable, size=settings.n_contexts, replace=False))
    text = study["context"].to_numpy()
    items = usable[work.mine([result_key(str(text[item])) for item in usable])]
    if not len(items):
        problem = "holds none of the contexts that have an answer and a text before them"
        raise InputError(f"{problem}; use fewer shards or more contexts", field=Set("experiment.shard"))
    return items


def is_word(text: str) -> bool:
    """Whether a string can be one word of a model: not empty, without a boundary, and without a lost character."""
    return bool(text) and "\ufffd" not in text and boundary_at(text.encode(errors="replace"), _BOUNDARY) is None


def spellings(
    study: xr.Dataset, words: StudyWords, items: NDArray[np.intp], rules: WordRules, *, most: int
) -> dict[str, list[str]]:
    """Find the strings that a model may write for each word that people gave in some contexts."""
    people = words.human_distributions.take(items)
    forms = word_forms(
        [str(words.strings[code]) for code in np.unique(people.word)],
        # what holds a boundary is no word to the model: it ends there, and its beginning is looked up
        [text for text in map(str, study["word_text"].to_numpy()) if is_word(text)],
        lambda texts: normalise_words(texts, rules).words.tolist(),
        most=most,
    )
    return {word: [form for form in some if is_word(form)] for word, some in forms.items()}


def writable(model: LanguageModel, forms: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[str]], list[str]]:
    """Spellings that the model has tokens for, and those that it has none for."""
    every = sorted({form for some in forms.values() for form in some})
    fine = can_write(model, [" " + form for form in every])
    lost = {form for form, can in zip(every, fine, strict=True) if not can}
    return {word: [form for form in some if form not in lost] for word, some in forms.items()}, sorted(lost)


def lost_spellings(name: str, lost: Sequence[str]) -> list[str]:
    """Warn of spellings that a model has no tokens for."""
    if not lost:
        return []
    first = ", ".join(map(repr, lost[:5])) + (", ..." if len(lost) > 5 else "")
    which = f"{len(lost)} spellings of people's words, whose probability is therefore 0: {first}"
    return [f"{player_label(name)} has no tokens for {which}"]


def score_words(
    work: Work,
    model: LanguageModel,
    texts: Sequence[str],
    wanted: Sequence[Sequence[str]],
    *,
    other_tokenisations_nats: float | None,
    alone: bool = False,
) -> Mapping[str, NDArray[Any]]:
    """Compute the exact log-probabilities of words after contexts, given that a word begins."""
    ways: dict[str, Any] = {"boundary": _BOUNDARY, "other_tokenisations_nats": other_tokenisations_nats}

    def compute(batch: list[tuple[str, list[str]]]) -> Mapping[str, NDArray[Any]]:
        logprob, start = [], []
        for part in [[pair] for pair in batch] if alone else [batch]:
            texts, some = zip(*part, strict=True)
            found = word_log_probs(model, encode(model, texts), some, **ways)
            index, values = found["context_index"].to_numpy(), found["logprob"].to_numpy()
            logprob += [values[index == i] for i in range(len(part))]
            start.append(found["start_logprob"].to_numpy())
        return {"logprob": ragged(logprob), "start_logprob": np.concatenate(start)}

    pairs = [(text, list(some)) for text, some in zip(texts, wanted, strict=True)]
    return work.compute(
        f"{model.name}, probabilities of words",
        operation_key("word_log_probs", model=model.identity, parameters={**ways, "alone": alone}, compute=compute),
        pairs,
        [result_key(text, some) for text, some in pairs],
        compute,
        batches=batches_in_order(work.items_per_batch),
        provenance=model_record(model),
    )


def answer_probabilities(
    work: Work,
    model: LanguageModel,
    contexts: Sequence[str],
    said: Sequence[tuple[int, Sequence[str]]],
    *,
    other_tokenisations_nats: float | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probability of every word said in a context, by its forms, and ln of the probability that a word begins there."""
    of_context: list[list[str]] = [[] for _ in contexts]
    for context, forms in said:
        of_context[context] += forms
    answers = score_words(work, model, contexts, of_context, other_tokenisations_nats=other_tokenisations_nats)
    logprob = [iter(values) for values in answers["logprob"]]
    probability = [np.exp(list(islice(logprob[context], len(forms)))).sum() for context, forms in said]
    return np.array(probability), answers["start_logprob"]


def draw_words(
    work: Work, model: LanguageModel, texts: Sequence[str], *, decoding: Decoding, n_samples: int, seed: int
) -> Mapping[str, NDArray[Any]]:
    """Draw words after contexts."""

    def compute(batch: list[str]) -> Mapping[str, NDArray[Any]]:
        how: dict[str, Any] = {"n_samples": n_samples, "boundary": _BOUNDARY, "seed": seed}
        words, halves = [], []
        for text in batch:
            [one] = sample_words(model, encode(model, [text]), decoding=decoding, **how)
            of_draw = [FAILED] * n_samples
            for draw, word in zip(one.draws, one.words, strict=True):
                of_draw[draw] = word
            different = {word: place for place, word in enumerate(dict.fromkeys([FAILED, *of_draw]))}
            code = [different[word] for word in of_draw]
            half = n_samples // 2
            words.append(list(different))
            halves.append([np.bincount(part, minlength=len(different)) for part in (code[:half], code[half:])])
        first, second = zip(*halves, strict=True)
        return {"word": ragged(words), "n_first": ragged(first), "n_second": ragged(second)}

    parameters = {"boundary": _BOUNDARY, "n_samples": n_samples, "seed": seed, "decoding": decoding.record()}
    return work.compute(
        f"{model.name}, {n_samples:,} words a context ({decoding.label or 'ancestral'})",
        operation_key("sample_words", model=model.identity, parameters=parameters, compute=compute),
        list(texts),
        [result_key(text) for text in texts],
        compute,
        batches=batches_in_order(work.items_per_batch),
        provenance=model_record(model),
    )


def word_forms(
    words: Iterable[str], seen: Sequence[str], normalise: Callable[[Sequence[str]], Sequence[str]], *, most: int
) -> dict[str, list[str]]:
    """Find strings that a model may write and that count as a given word."""
    wanted = dict.fromkeys(words)
    cases = [form for word in wanted for form in dict.fromkeys((word, word.capitalize(), word.upper()))]
    forms: dict[str, list[str]] = {word: [] for word in wanted}
    candidates = list(dict.fromkeys([*cases, *seen]))
    for form, word in zip(candidates, normalise(candidates), strict=True):
        if word in forms and len(forms[word]) < most:
            forms[word].append(form)
    return forms
