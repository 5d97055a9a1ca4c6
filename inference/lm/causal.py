"""Causal models that run here, as the engine of a question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.continuations import continuation_log_probs, play_top1
from shannon_game.inference.lm.decoding import Decoding
from shannon_game.inference.lm.document_scores import document_rows, score_texts
from shannon_game.inference.lm.engine import Asked, EngineBase, OptionLogProbs, TextAnswers
from shannon_game.inference.lm.forward import with_bos
from shannon_game.inference.lm.generation import generate, option_log_probs
from shannon_game.inference.lm.language_model import LanguageModel, encode, model_record, token_strings
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.prompting import prompt_tokens
from shannon_game.inference.lm.scored import Scored, Scoring
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.stored import Work, batches_in_order
from shannon_game.inference.lm.vocabulary import writes_bytes
from shannon_game.inference.lm.word_samples import sample_words, tallied
from shannon_game.inference.lm.words import can_write, word_log_probs
from shannon_game.inference.progress import stage
from shannon_game.inference.store.keys import context_seed, result_key
from shannon_game.inference.store.store import ragged

_WORDS = "punctuation"
# tokens that a string or a guess may take after the longest context
_ROOM = 32
# what tokenising a text anew, after its beginning was cut off, may add
_SLACK_TOKENS = 8

_Answers = list[tuple[Asked, str]]


class Causal(EngineBase):
    """A causal model that runs here; texts are cut into its own tokens."""

    extra: ClassVar[str] = "lm"
    takes: ClassVar[frozenset[str]] = frozenset({"max_tokens", "window", "stride", "turns"})

    def __init__(self, name: str, settings: ModelSettings) -> None:
        super().__init__(name, settings)
        self.model = load_language_model(settings)

    @classmethod
    def of(cls, model: LanguageModel) -> Causal:
        """Make the engine of a model that is loaded."""
        found = cls.__new__(cls)
        found.name, found.settings, found.model = model.name, model.settings, model
        return found

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides its numbers."""
        return self.model.identity

    def record(self) -> dict[str, Any]:
        """Everything that should stand in an output."""
        return model_record(self.model)

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        """Strings of the tokens of texts."""
        return [token_strings(self.model, tokens) for tokens in encode(self.model, texts)]

    def score(self, texts: Sequence[str]) -> list[Mapping[str, NDArray[Any]]]:
        """Scores of every token of texts by name; without a BOS token, NaN for the first."""
        tokens = encode(self.model, texts)
        rows = document_rows(self.model, tokens, boundaries=writes_bytes(self.model))
        n_before = [int(self.model.bos_id is None and bool(its)) for its in tokens]
        pairs = zip(rows, n_before, strict=True)
        return [{name: np.append([np.nan] * n, values) for name, values in row.items()} for row, n in pairs]

    def next_token(self, contexts: Sequence[str], strings: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        """Ln q that contexts go on with strings."""
        return continuation_log_probs(self.model, encode(self.model, contexts), strings)

    def next_word(self, contexts: Sequence[str], words: Sequence[Sequence[str]]) -> list[NDArray[np.float64]]:
        """Ln q of words with their ends, given that a word begins."""
        return list(self._word_rows(list(zip(contexts, words, strict=True)))["logprob"])

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, temperature: float = 0.0, seeds: Sequence[int] | None = None
    ) -> Sequence[str]:
        """Go on with prompts."""
        tokens = with_bos(self.model, encode(self.model, prompts))
        return generate(self.model, tokens, max_tokens=max_tokens, temperature=temperature, seeds=seeds).text

    def scored(self, work: Work, texts: Sequence[str], how: Scoring) -> Scored:
        """Score texts, or the answers to turns of a chat."""
        heads = None
        if how.turns is not None:
            if not self.model.tokenizer.chat_template:
                problem = f"is true, but {self.name} has no chat template; leave it out"
                raise InputError(problem, field="experiment.chat")
            heads = prompt_tokens(self.model, [("", turn) for turn in how.turns])
        return score_texts(work, self.model, texts, how, heads)

    def strings_after(
        self, work: Work, contexts: Sequence[str], strings: Sequence[Sequence[str]]
    ) -> tuple[list[NDArray[np.float64]], int]:
        """Ln q that contexts go on with strings; of a longer context it sees the end."""
        longest = self.model.max_tokens - _ROOM

        def compute(batch: list[tuple[str, Sequence[str]]]) -> Mapping[str, NDArray[Any]]:
            tokens = encode(self.model, [context for context, _ in batch])
            cut = [each[-longest:] for each in tokens]
            logprob = continuation_log_probs(self.model, cut, [some for _, some in batch])
            return {"logprob": ragged(logprob), "is_cut": np.array([len(each) > longest for each in tokens])}

        asked = [(context, list(some)) for context, some in zip(contexts, strings, strict=True)]
        # contexts that begin alike share that part of their passes
        batches = batches_in_order(work.items_per_batch, lambda item: item[0])
        how: dict[str, Any] = {"parameters": {"longest": longest}, "batches": batches}
        found = self.kept(work, "odds of tokens", "continuations", asked, compute, **how)
        return list(found["logprob"]), int(found["is_cut"].sum())

    def _word_rows(
        self, pairs: Sequence[tuple[str, Sequence[str]]], *, alone: bool = False, others: float | None = None
    ) -> dict[str, NDArray[Any]]:
        logprob, start = [], []
        for part in [[pair] for pair in pairs] if alone else [pairs]:
            texts, some = zip(*part, strict=True)
            how: dict[str, Any] = {"boundary": _WORDS, "other_tokenisations_nats": others}
            found = word_log_probs(self.model, encode(self.model, texts), some, **how)
            index, values = found["context_index"].to_numpy(), found["logprob"].to_numpy()
            logprob += [values[index == i] for i in range(len(part))]
            start.append(found["start_logprob"].to_numpy())
        return {"logprob": ragged(logprob), "start_logprob": np.concatenate(start)}

    def word_log_probs(
        self,
        work: Work,
        contexts: Sequence[str],
        words: Sequence[Sequence[str]],
        *,
        other_tokenisations_nats: float | None = None,
        alone: bool = False,
    ) -> Mapping[str, NDArray[Any]]:
        """Exact log-probabilities of words after contexts."""
        ways = {"boundary": _WORDS, "other_tokenisations_nats": other_tokenisations_nats, "alone": alone}

        def compute(batch: list[tuple[str, list[str]]]) -> Mapping[str, NDArray[Any]]:
            return self._word_rows(batch, alone=alone, others=other_tokenisations_nats)

        pairs = [(context, list(some)) for context, some in zip(contexts, words, strict=True)]
        return self.kept(work, "probabilities of words", "word_log_probs", pairs, compute, parameters=ways)

    def writable(self, forms: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[str]], list[str]]:
        """Spellings that it has tokens for, and those that it has none for."""
        every = sorted({form for some in forms.values() for form in some})
        fine = can_write(self.model, [" " + form for form in every])
        lost = {form for form, can in zip(every, fine, strict=True) if not can}
        return {word: [form for form in some if form not in lost] for word, some in forms.items()}, sorted(lost)

    def draw_words(
        self, work: Work, texts: Sequence[str], *, decoding: Decoding, n_samples: int, seed: int
    ) -> Mapping[str, NDArray[Any]]:
        """Draw words after contexts; draws that agree so far share a pass."""
        parameters = {"boundary": _WORDS, "n_samples": n_samples, "seed": seed, "decoding": decoding.record()}

        def compute(batch: list[str]) -> Mapping[str, NDArray[Any]]:
            draws, how = [], {"n_samples": n_samples, "boundary": _WORDS, "seed": seed}
            for text in batch:
                [one] = sample_words(self.model, encode(self.model, [text]), decoding=decoding, **how)
                of_draw = dict(zip(one.draws, one.words, strict=True))
                draws.append([of_draw.get(draw, "") for draw in range(n_samples)])
            return tallied(draws)

        what = f"{n_samples:,} words a context ({decoding.label or 'ancestral'})"
        return self.kept(work, what, "sample_words", texts, compute, parameters=parameters)

    def guess_tokens(self, work: Work, asked: Sequence[tuple[str, str]]) -> Mapping[str, NDArray[Any]]:
        """Guess the next token of contexts; of a longer text it sees the end."""
        longest = self.model.max_tokens - _ROOM

        def compute(batch: list[tuple[str, str]]) -> Mapping[str, NDArray[Any]]:
            contexts = encode(self.model, [context for context, _ in batch])
            cut = [tokens[-longest:] for tokens in contexts]
            found = play_top1(self.model, cut, [target for _, target in batch])
            arrays = {str(name): found[name].to_numpy() for name in found.data_vars}
            return arrays | {"is_cut": np.array([len(tokens) > longest for tokens in contexts])}

        return self.kept(work, "guesses", "play_top1", asked, compute, parameters={"longest_context": longest})

    def answers(
        self, work: Work, questions: Sequence[Asked], *, max_tokens: int, temperature: float, seed: int
    ) -> TextAnswers:
        """Answer questions in text."""
        parameters: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature}

        def compute(batch: _Answers) -> dict[str, NDArray[Any]]:
            seeds = [context_seed(seed, key) for _, key in batch]
            with self._prompts(batch) as (prompts, done):
                found = generate(self.model, prompts, seeds=seeds, progress=done, **parameters)
            return {"text": np.array(found.text, dtype=object), "finished": found.finished}

        # without draws the seed decides nothing
        drawn = {"seed": seed} if temperature else {}
        found = self._answered(work, "text_answers", parameters | drawn, questions, compute)
        return TextAnswers([str(text) for text in found["text"]], np.asarray(found["finished"], dtype=np.bool_))

    def options(self, work: Work, questions: Sequence[Asked], options: Sequence[str]) -> OptionLogProbs:
        """Exact ln q of options as the first token of an answer."""

        def compute(batch: _Answers) -> dict[str, NDArray[Any]]:
            with self._prompts(batch) as (prompts, done):
                return {"logprob": option_log_probs(self.model, prompts, options, progress=done)}

        found = self._answered(work, "text_options", {"options": [*options]}, questions, compute)["logprob"]
        return OptionLogProbs(np.asarray(found, dtype=np.float64).reshape(-1, len(options)))

    def values(self, work: Work, questions: Sequence[Asked], values: Sequence[str]) -> NDArray[np.float64]:
        """Ln q of values as the beginning of an answer."""

        def compute(batch: _Answers) -> dict[str, NDArray[Any]]:
            with self._prompts(batch) as (prompts, done):
                several = [values] * len(prompts)
                found = continuation_log_probs(self.model, prompts, several, bos=False, progress=done)
            return {"logprob": np.stack(found)}

        found = self._answered(work, "text_values", {"values": [*values]}, questions, compute)["logprob"]
        return np.asarray(found, dtype=np.float64).reshape(-1, len(values))

    def shortened(self, contexts: Sequence[str], around: Asked, max_tokens: int) -> list[str]:
        """Ends of contexts that it takes inside a question, with an answer."""
        [shortest] = prompt_tokens(self.model, [(around.system, around.user)])
        room = self.model.max_tokens - len(shortest) - max_tokens - _SLACK_TOKENS
        return [
            context if len(tokens) <= room else str(self.model.tokenizer.decode(tokens[-room:]))
            for context, tokens in zip(contexts, encode(self.model, contexts), strict=True)
        ]

    @contextmanager
    def _prompts(self, batch: _Answers) -> Iterator[tuple[Any, Callable[[int], None]]]:
        """Give a batch as tokens, and show how far it is: on a processor one batch takes minutes."""
        prompts = prompt_tokens(self.model, [(question.system, question.user) for question, _ in batch])
        done = 0
        with stage("of this batch", len(prompts)) as show:

            def more(count: int) -> None:
                nonlocal done
                done = min(done + count, len(prompts))
                show(done)

            show(0)
            yield prompts, more

    def _answered(
        self,
        work: Work,
        operation: str,
        parameters: Mapping[str, Any],
        questions: Sequence[Asked],
        compute: Callable[[_Answers], Mapping[str, NDArray[Any]]],
    ) -> Mapping[str, NDArray[Any]]:
        keys = [result_key(question.system, question.user, question.draw) for question in questions]
        # questions that begin alike share that part of their passes
        alike = batches_in_order(work.items_per_batch, lambda item: (item[0].system, item[0].user))
        items, how = list(zip(questions, keys, strict=True)), {"parameters": parameters, "batches": alike}
        return self.kept(work, "answers", operation, items, compute, keys=keys, **how)
