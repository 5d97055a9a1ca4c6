"""What live models are asked about the words of a cloze study: exact probabilities and draws, through the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from shannon_game.experiments.harness.language_models import StoreSettings
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.inference.lm.decoding import Decoding
from shannon_game.inference.lm.engine import EngineBase
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.lm.vocabulary import boundary_at
from shannon_game.inference.settings import Count
from shannon_game.inference.store.keys import result_key
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


def lost_spellings(name: str, lost: Sequence[str], note: str = "") -> list[str]:
    """Warn of spellings that a model has no tokens for, and of what its probabilities of words leave out."""
    notes = [f"{player_label(name)}: {note}"] if note else []
    if not lost:
        return notes
    first = ", ".join(map(repr, lost[:5])) + (", ..." if len(lost) > 5 else "")
    which = f"{len(lost)} spellings of people's words, whose probability is therefore 0: {first}"
    return [*notes, f"{player_label(name)} has no tokens for {which}"]


def draw_words(
    work: Work, engine: EngineBase, texts: Sequence[str], *, decoding: Decoding, n_samples: int, seed: int
) -> Mapping[str, NDArray[Any]]:
    """Draw words after contexts; a draw that gives none is a failed sample."""
    drawn = engine.draw_words(work, texts, decoding=decoding, n_samples=n_samples, seed=seed)
    return {**drawn, "word": ragged([[str(word) or FAILED for word in some] for some in drawn["word"]])}


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
