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
from shannon_game.inference.lm.engine import EngineBase, Floats, Pairs, Rows, Strings
from shannon_game.inference.lm.forward import with_bos
from shannon_game.inference.lm.generation import generate, option_log_probs
from shannon_game.inference.lm.language_model import encode, model_record, token_strings
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.prompting import prompt_tokens
from shannon_game.inference.lm.scored import Scored, Scoring
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.lm.vocabulary import writes_bytes
from shannon_game.inference.lm.word_samples import sample_words
from shannon_game.inference.lm.words import can_write, word_log_probs
from shannon_game.inference.progress import stage
from shannon_game.inference.store.store import ragged
from shannon_game.inference.text.prompts import Question

_WORDS = "punctuation"
# tokens that a string or a guess may take after the longest context
_ROOM = 32
# what tokenising a text anew, after its beginning was cut off, may add
_SLACK_TOKENS = 8


class Causal(EngineBase):
    """A causal model that runs here; texts are cut into its own tokens."""

    extra: ClassVar[str] = "lm"
    takes: ClassVar[frozenset[str]] = frozenset({"max_tokens", "window", "stride", "turns"})

    def __init__(self, name: str, settings: ModelSettings) -> None:
        super().__init__(name, settings)
        self.model = load_language_model(settings)

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

    def score(self, texts: Sequence[str]) -> list[Rows]:
        """Scores of every token of texts by name; without a BOS token, NaN for the first."""
        tokens = encode(self.model, texts)
        rows = document_rows(self.model, tokens, boundaries=writes_bytes(self.model))
        n_before = [int(self.model.bos_id is None and bool(its)) for its in tokens]
        pairs = zip(rows, n_before, strict=True)
        return [{name: np.append([np.nan] * n, values) for name, values in row.items()} for row, n in pairs]

    def next_token(self, contexts: Sequence[str], strings: Strings) -> list[Floats]:
        """Ln q that contexts go on with strings; of a longer context it sees the end."""
        cut = [tokens[-self._longest :] for tokens in encode(self.model, contexts)]
        return continuation_log_probs(self.model, cut, strings)

    @property
    def _longest(self) -> int:
        return self.model.max_tokens - _ROOM

    def n_cut(self, contexts: Sequence[str]) -> int:
        """How many contexts are longer than what it sees."""
        return sum(len(tokens) > self._longest for tokens in encode(self.model, contexts))

    def next_word(self, contexts: Sequence[str], words: Strings) -> list[Floats]:
        """Ln q of words with their ends, given that a word begins."""
        return list(self.word_rows(list(zip(contexts, words, strict=True)))["logprob"])

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

    def word_rows(self, asked: Pairs, *, others: float | None = None, alone: bool = False) -> dict[str, NDArray[Any]]:
        """Exact log-probabilities of words, each context in passes of its own or several together."""
        logprob, start = [], []
        how: dict[str, Any] = {"boundary": _WORDS, "other_tokenisations_nats": others}
        for part in [[pair] for pair in asked] if alone else [asked]:
            texts, some = zip(*part, strict=True)
            found = word_log_probs(self.model, encode(self.model, texts), some, **how)
            index, values = found["context_index"].to_numpy(), found["logprob"].to_numpy()
            logprob += [values[index == i] for i in range(len(part))]
            start.append(found["start_logprob"].to_numpy())
        return {"logprob": ragged(logprob), "start_logprob": np.concatenate(start)}

    def writable(self, forms: Mapping[str, Sequence[str]]) -> tuple[dict[str, list[str]], list[str]]:
        """Spellings that it has tokens for, and those that it has none for."""
        every = sorted({form for some in forms.values() for form in some})
        fine = can_write(self.model, [" " + form for form in every])
        lost = {form for form, can in zip(every, fine, strict=True) if not can}
        return {word: [form for form in some if form not in lost] for word, some in forms.items()}, sorted(lost)

    def words_drawn(self, text: str, decoding: Decoding, n_samples: int, seed: int) -> list[str]:
        """Words of so many draws after one context, which share their passes as far as they agree."""
        how: dict[str, Any] = {"n_samples": n_samples, "boundary": _WORDS, "seed": seed}
        [one] = sample_words(self.model, encode(self.model, [text]), decoding=decoding, **how)
        of_draw = dict(zip(one.draws, one.words, strict=True))
        return [of_draw.get(draw, "") for draw in range(n_samples)]

    def guess_tokens(self, work: Work, asked: Sequence[tuple[str, str]]) -> Rows:
        """Guess the next token of contexts; of a longer text it sees the end."""
        longest = self._longest

        def compute(batch: list[Any]) -> Rows:
            contexts = encode(self.model, [context for context, _ in batch])
            cut = [tokens[-longest:] for tokens in contexts]
            found = play_top1(self.model, cut, [target for _, target in batch])
            arrays = {str(name): found[name].to_numpy() for name in found.data_vars}
            return arrays | {"is_cut": np.array([len(tokens) > longest for tokens in contexts])}

        return self.kept(work, "guesses", "play_top1", asked, compute, parameters={"longest_context": longest})

    def replies(self, questions: Sequence[Question], **how: Any) -> tuple[Sequence[str], Sequence[bool]]:
        """First lines of answers, and whether each was ended."""
        with self._prompts(questions) as (prompts, done):
            found = generate(self.model, prompts, progress=done, **how)
        return found.text, found.finished.tolist()

    def answer_rows(self, questions: Sequence[Question], values: Sequence[str], *, options: bool) -> Floats:
        """Ln q of values as the beginning of an answer; of options as its first token."""
        with self._prompts(questions) as (prompts, done):
            if options:
                return option_log_probs(self.model, prompts, values, progress=done)
            several = [values] * len(prompts)
            return np.stack(continuation_log_probs(self.model, prompts, several, bos=False, progress=done))

    def shortened(self, contexts: Sequence[str], around: Question, max_tokens: int) -> list[str]:
        """Ends of contexts that it takes inside a question, with an answer."""
        [shortest] = prompt_tokens(self.model, [(around.system, around.user)])
        room = self.model.max_tokens - len(shortest) - max_tokens - _SLACK_TOKENS
        return [
            context if len(tokens) <= room else str(self.model.tokenizer.decode(tokens[-room:]))
            for context, tokens in zip(contexts, encode(self.model, contexts), strict=True)
        ]

    @contextmanager
    def _prompts(self, questions: Sequence[Question]) -> Iterator[tuple[Any, Callable[[int], None]]]:
        """Give questions as tokens, and show how far they are: on a processor one batch takes minutes."""
        prompts = prompt_tokens(self.model, [(question.system, question.user) for question in questions])
        done = 0
        with stage("of this batch", len(prompts)) as show:

            def more(count: int) -> None:
                nonlocal done
                done = min(done + count, len(prompts))
                show(done)

            show(0)
            yield prompts, more
