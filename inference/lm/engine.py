"""What a language model is to a question: one that runs here, one behind an endpoint, or one of the user's own.

:class:`Engine` says what an engine of one's own has. A question asks through :class:`EngineBase`, whose methods go
through the store; an engine that can do better than by those of :class:`Engine` overrides them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pkgutil import resolve_name
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.decoding import Decoding
from shannon_game.inference.lm.scored import BOUNDARY, Flat, Scored, Scoring, scores_of, units_of
from shannon_game.inference.lm.stored import Work, batches_in_order
from shannon_game.inference.lm.word_samples import first_word, tallied
from shannon_game.inference.store.keys import context_seed, operation_key, result_key
from shannon_game.inference.store.store import ragged
from shannon_game.inference.text.prompts import Question

ENGINES: Mapping[str, str] = {
    "api": "shannon_game.inference.api.engine:Endpoint",
    "ngram": "shannon_game.inference.lm.ngram_engine:WordEngine",
    "own": "shannon_game.inference.lm.own_engine:OwnEngine",
}
"""Class by source of the settings; all other sources are causal models that run here."""
Floats = NDArray[np.float64]
Rows = Mapping[str, NDArray[Any]]
Strings = Sequence[Sequence[str]]
Pairs = Sequence[tuple[str, Sequence[str]]]
"""Contexts, each with strings after it."""
Said = Sequence[tuple[int, Sequence[str]]]
"""Positions of contexts, each with the forms of a word."""
_CAUSAL = "shannon_game.inference.lm.causal:Causal"


class Engine(Protocol):
    """A language model of one's own: a class with some of these methods, texts in and natural logarithms out.

    A question names the method that it needs and the engine lacks. `score` is enough for surprisal and minimal pairs,
    `next_word` or `next_token` for the probabilities of words, `generate` for words that are drawn.

    Attributes
    ----------
    name : str
        What tables call it; by default the name of the class.
    key : str
        What decides its numbers. Results are stored under it; without one, none are.
    whole_words : bool
        Tokens and strings are whole words, whose end is counted. False by default.
    """

    name: str
    key: str
    whole_words: bool

    def encode(self, texts: Sequence[str]) -> Strings:
        """Cut texts into tokens, which joined are the text; words with the space before them by default."""

    def score(self, texts: Sequence[str]) -> Sequence[ArrayLike | Mapping[str, ArrayLike]]:
        """Ln q of each token given those before it; NaN for first tokens that have none.

        A mapping may add ``rank``, ``entropy_nats`` and ``boundary_logprob`` to ``logprob``
        (:func:`~shannon_game.inference.lm.score_documents`).
        """

    def next_token(self, contexts: Sequence[str], strings: Strings) -> Sequence[ArrayLike]:
        """Ln q that each context goes on with each of its strings, such as " in"."""

    def next_word(self, contexts: Sequence[str], words: Strings) -> Sequence[ArrayLike]:
        """Ln q that the next word of each context is each of its words, given that a word begins; -inf for never."""

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, temperature: float, seeds: Sequence[int]
    ) -> Sequence[str]:
        """Go on with prompts up to a line break; temperature 0 takes the most probable tokens; answers are whole."""


@dataclass(frozen=True, eq=False)
class TextAnswers:
    """What a model answered, by question; None where an endpoint gave no usable answer."""

    text: list[str | None]
    finished: NDArray[np.bool_]
    """The model ended the answer."""
    said: str = ""
    """For the report: what it cost, or nothing."""


@dataclass(frozen=True, eq=False)
class OptionLogProbs:
    """How probable a model finds the options as first token of its answer."""

    logprob: Floats
    """Shape (question, option): nats, not renormalised; NaN where an endpoint named none of the options."""
    said: str = ""


class EngineBase:
    """What questions ask, by the methods of :class:`Engine`."""

    extra: ClassVar[str] = ""
    """Extra of the package that it needs."""
    takes: ClassVar[frozenset[str]] = frozenset()
    """Which limits of :class:`Scoring` it takes."""
    whole_words: bool = False
    word_note: str = ""
    """What a report warns of where probabilities of words are asked for."""

    def __init__(self, name: str, settings: Any) -> None:
        self.name, self.settings = name, settings

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """What decides its numbers; None: nothing is stored."""
        return None

    def record(self) -> dict[str, Any]:
        """Plain values that tell it from others, for outputs."""
        return {**self.settings.record(), **(self.identity or {})}

    def can(self, method: str) -> bool:
        """Whether it has one of the methods of :class:`Engine`."""
        return callable(getattr(self, method, None))

    def needed(self, method: str, wanted: str) -> Callable[..., Any]:
        """Give one of the methods of :class:`Engine`, or refuse what wants it."""
        if not self.can(method):
            raise InputError(f"has no {method}, which {wanted} need", source=f"model {self.name!r}")
        found: Callable[..., Any] = getattr(self, method)
        return found

    def kept(
        self,
        work: Work,
        what: str,
        operation: str,
        items: Sequence[Any],
        compute: Callable[[list[Any]], Rows],
        *,
        parameters: Mapping[str, Any] | None = None,
        batches: Callable[[list[Any]], list[list[int]]] | None = None,
        keys: Sequence[str] | None = None,
    ) -> Rows:
        """Compute what the store lacks, under the engine's key."""
        its = self.identity
        return work.compute(
            f"{what} under {self.name}",
            None if its is None else operation_key(operation, model=its, parameters=parameters or {}, compute=compute),
            items,
            keys or [result_key(*each) if isinstance(each, tuple) else result_key(each) for each in items],
            compute,
            batches=batches or batches_in_order(work.items_per_batch),
            provenance=self.record(),
        )

    def scored(self, work: Work, texts: Sequence[str], how: Scoring) -> Scored:
        """Score texts, each from its beginning."""
        self._check_limits(how)
        score = self.needed("score", "log-probabilities of texts")
        tokens = self.needed("encode", "log-probabilities of texts")(texts)

        def compute(batch: list[str]) -> dict[str, NDArray[Any]]:
            rows = scores_of(score(batch), boundary=0.0 if self.whole_words else np.nan)
            return {name: ragged(list(its)) for name, its in rows.items()}

        found = self.kept(work, "documents", "engine_scores", texts, compute)
        # what no first token has a score after
        first = int(any(np.isnan(row[:1]).any() for row in found["logprob"]))
        document = np.array([at for at, its in enumerate(tokens) if len(its) > first], dtype=np.intp)
        if not document.size:
            raise InputError(f"have no token that {self.name} can score", source="study", field="text")
        ends = [np.cumsum([0, *(len(token.encode()) for token in tokens[at])])[first:] for at in document]
        is_open = all(np.isnan(row).all() for row in found[BOUNDARY])
        note = "its tokens do not say where a word ends: words have the sum over their tokens alone (sum_bits)"
        return Scored(
            document=document,
            scores={name: Flat.of([rows[at][first:] for at in document]) for name, rows in found.items()},
            places=ends,
            units=np.array(
                [units_of(texts[at].encode()[its[0] :], how.boundaries) for at, its in zip(document, ends, strict=True)]
            ),
            tokens=[tokens[at][first:] for at in document],
            bos="none" if first else "what the engine puts there",
            revision=str((self.identity or {}).get("key", "")),
            notes=(note,) if how.has_words and is_open else (),
        )

    def _check_limits(self, how: Scoring) -> None:
        for limit in ("max_tokens", "window", "stride"):
            value = getattr(how, limit)
            if value is not None and limit not in self.takes:
                problem = f"is {value}, but {self.name} takes whole texts; leave it out"
                raise InputError(problem, field=f"experiment.{limit}")
        if how.turns is not None and "turns" not in self.takes:
            problem = f"needs a model that runs here with a chat template, which {self.name} is not"
            raise InputError(problem, field="experiment.chat")

    def strings_after(self, work: Work, contexts: Sequence[str], strings: Strings) -> tuple[list[Floats], int]:
        """Ln q that contexts go on with strings, and how many contexts are longer than what it sees."""
        next_token = self.needed("next_token", "probabilities of tokens")

        def compute(batch: list[Any]) -> Rows:
            return {"logprob": ragged(next_token(*zip(*batch, strict=True)))}

        asked = [(context, list(some)) for context, some in zip(contexts, strings, strict=True)]
        # contexts that begin alike may share that part of their passes
        alike = batches_in_order(work.items_per_batch, lambda item: item[0])
        found = self.kept(work, "odds of tokens", "next_token", asked, compute, batches=alike)
        return list(found["logprob"]), self.n_cut(contexts)

    def n_cut(self, contexts: Sequence[str]) -> int:
        """How many contexts are longer than what it sees."""
        return 0 * len(contexts)

    def word_log_probs(
        self, work: Work, contexts: Sequence[str], words: Strings, *, others: float | None = None, alone: bool = False
    ) -> Rows:
        """Ln q of words after contexts: ``logprob`` given that a word begins, ``start_logprob`` that one does."""
        how: dict[str, Any] = {"others": others, "alone": alone}

        def compute(batch: list[Any]) -> Rows:
            return self.word_rows(batch, **how)

        asked = [(context, list(some)) for context, some in zip(contexts, words, strict=True)]
        return self.kept(work, "probabilities of words", "word_log_probs", asked, compute, parameters=how)

    def word_rows(self, asked: Pairs, *, others: float | None = None, alone: bool = False) -> Rows:
        """Compute what :meth:`word_log_probs` gives."""
        del others, alone
        contexts, words = zip(*asked, strict=True)
        if self.can("next_word") or not self.can("next_token"):
            logprob = self.needed("next_word", "probabilities of words")(contexts, words)
        else:
            logprob = self.needed("next_token", "")(contexts, [[f" {word}" for word in some] for some in words])
        return {"logprob": ragged(logprob), "start_logprob": np.full(len(asked), np.nan)}

    def word_probabilities(
        self, work: Work, contexts: Sequence[str], said: Said, *, others: float | None = None
    ) -> tuple[Floats, Floats]:
        """Probability of every word said in a context, by its forms, and ln of the probability that a word begins."""
        of_context: list[list[str]] = [[] for _ in contexts]
        for context, forms in said:
            of_context[context] += forms
        found = self.word_log_probs(work, contexts, of_context, others=others)
        logprob = [iter(values) for values in found["logprob"]]
        probability = [np.exp(list(islice(logprob[context], len(forms)))).sum() for context, forms in said]
        return np.array(probability), found["start_logprob"]

    def writable(self, forms: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[str]], list[str]]:
        """Spellings that it has tokens for, and those that it has none for."""
        return {word: list(some) for word, some in forms.items()}, []

    def draw_words(self, work: Work, texts: Sequence[str], *, decoding: Decoding, n_samples: int, seed: int) -> Rows:
        """Draw words after contexts (:func:`~shannon_game.inference.lm.word_samples.tallied`); "" where one fails."""

        def compute(batch: list[str]) -> Rows:
            return tallied([self.words_drawn(text, decoding, n_samples, seed) for text in batch])

        parameters = {"n_samples": n_samples, "seed": seed, "decoding": decoding.record()}
        what = f"{n_samples:,} words a context ({decoding.label or 'ancestral'})"
        return self.kept(work, what, "sample_words", texts, compute, parameters=parameters)

    def words_drawn(self, text: str, decoding: Decoding, n_samples: int, seed: int) -> list[str]:
        """Words of so many draws after one context."""
        generate = self.needed("generate", "draws of words")
        if decoding.top_k is not None or decoding.top_p is not None:
            problem = f"cut off what {self.name} draws from, which takes a temperature alone; leave them out"
            raise InputError(problem, field="experiment.top_k and nucleus")
        temperature = 0.0 if decoding.greedy else decoding.temperature
        n_asked = n_samples if temperature else 1
        seeds = [context_seed(seed, result_key(text, draw)) for draw in range(n_asked)]
        found = generate([text] * n_asked, max_tokens=_MOST_TOKENS, temperature=temperature, seeds=seeds)
        return list(map(first_word, found)) * (n_samples // n_asked)

    def best_words(self, work: Work, texts: Sequence[str]) -> Sequence[str | None]:
        """The word that greedy decoding begins with, "" where it begins none; None where the engine cannot generate."""
        if not self.can("generate"):
            return [None] * len(texts)
        drawn = self.draw_words(work, texts, decoding=Decoding(greedy=True), n_samples=2, seed=0)
        return [max(zip(n, word, strict=True))[1] for n, word in zip(drawn["n_first"], drawn["word"], strict=True)]

    def guess_tokens(self, work: Work, asked: Sequence[tuple[str, str]]) -> Rows:
        """Guess the next token of contexts, and compare it with the target."""
        del work, asked
        raise InputError("guesses no tokens, as models that run here do", source=f"model {self.name!r}")

    def answers(
        self, work: Work, questions: Sequence[Question], *, max_tokens: int, temperature: float, seed: int
    ) -> TextAnswers:
        """Answer questions in text."""
        how: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature}

        def compute(batch: list[Any]) -> Rows:
            seeds = [context_seed(seed, key) for _, key in batch]
            text, finished = self.replies([question for question, _ in batch], seeds=seeds, **how)
            return {"text": np.array(text, dtype=object), "finished": np.asarray(finished, dtype=np.bool_)}

        # without draws the seed decides nothing
        drawn = {"seed": seed} if temperature else {}
        found = self._of_questions(work, "text_answers", how | drawn, questions, compute)
        return TextAnswers([str(text) for text in found["text"]], np.asarray(found["finished"], dtype=np.bool_))

    def replies(self, questions: Sequence[Question], **how: Any) -> tuple[Sequence[str], Sequence[bool]]:
        """First lines of answers, and whether each was ended."""
        text = self.needed("generate", "words and answers in text")(list(map(_prompt, questions)), **how)
        return text, [True] * len(text)

    def answer_log_probs(
        self, work: Work, questions: Sequence[Question], values: Sequence[str], *, options: bool = False
    ) -> OptionLogProbs:
        """Ln q of values as the beginning of an answer; of options as its first token, after a space or not."""

        def compute(batch: list[Any]) -> Rows:
            return {"logprob": self.answer_rows([question for question, _ in batch], values, options=options)}

        how = {"values": [*values], "options": options}
        found = self._of_questions(work, "text_values", how, questions, compute)["logprob"]
        return OptionLogProbs(np.asarray(found, dtype=np.float64).reshape(-1, len(values)))

    def answer_rows(self, questions: Sequence[Question], values: Sequence[str], *, options: bool) -> Floats:
        """Compute what :meth:`answer_log_probs` gives."""
        next_token = self.needed("next_token", "probabilities of answers")
        ways = [way for value in values for way in ((value, f" {value}") if options else (value,))]
        rows = np.array(next_token(list(map(_prompt, questions)), [ways] * len(questions)))
        return np.asarray(np.logaddexp.reduce(rows.reshape(len(questions), len(values), -1), axis=-1))

    def _of_questions(
        self,
        work: Work,
        operation: str,
        parameters: Mapping[str, Any],
        questions: Sequence[Question],
        compute: Callable[[list[Any]], Rows],
    ) -> Rows:
        keys = [result_key(question.system, question.user, question.draw) for question in questions]
        # questions that begin alike share that part of their passes
        alike = batches_in_order(work.items_per_batch, lambda item: (item[0].system, item[0].user))
        items = list(zip(questions, keys, strict=True))
        return self.kept(work, "answers", operation, items, compute, parameters=parameters, batches=alike, keys=keys)

    def shortened(self, contexts: Sequence[str], around: Question, max_tokens: int) -> list[str]:
        """Ends of contexts that it takes inside a question, with an answer."""
        del around, max_tokens
        return list(contexts)


_MOST_TOKENS = 10
"""Of a word that is drawn, and what ends it."""


def _prompt(question: Question) -> str:
    return "\n\n".join(text for text in (question.system, question.user) if text) + "\n"


def engine_class(settings: Any) -> type[EngineBase]:
    """Class of the engine that settings name."""
    found: type[EngineBase] = resolve_name(ENGINES.get(settings.source, _CAUSAL))
    return found


def open_engine(name: str, settings: Any) -> EngineBase:
    """Open the engine that settings name; a model that runs here is loaded.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> engine = lm.open_engine("tiny", lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> [len(row["logprob"]) > 0 for row in engine.score(["The old clock"])]
    [True]
    """
    return engine_class(settings)(name, settings)
