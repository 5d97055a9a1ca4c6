"""Engines of the user's: what they answer is checked; an ``lm_eval.api.model.LM`` is adapted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from inspect import isclass
from itertools import accumulate, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.word_spans import word_spans
from shannon_game.inference.lm.engine import EngineBase, Floats, Strings
from shannon_game.inference.lm.scored import BOUNDARY
from shannon_game.inference.lm.settings import OwnSettings

_METHODS = ("score", "next_token", "next_word", "generate")
_WANTED = f"some of {', '.join(_METHODS)}"
# rounding of a model in float32
_ABOVE_ZERO = 1e-5
_MORE = {"rank", "entropy_nats", BOUNDARY}


class OwnEngine(EngineBase):
    """An engine of the user's, whose methods it has; what they give is checked."""

    def __init__(self, name: str, settings: OwnSettings) -> None:
        super().__init__(name, settings)
        engine = _made(settings) if settings.given is None else settings.given
        if callable(getattr(engine, "loglikelihood", None)) and not callable(getattr(engine, "score", None)):
            engine = LmEval(engine)
        if not _answers(engine):
            problem = f"is a {type(engine).__name__}, should be an engine: an object with {_WANTED}"
            raise InputError(problem, source=f"model {name!r}")
        self.engine, self.whole_words = engine, bool(getattr(engine, "whole_words", False))
        if not self.whole_words and not self.can("next_word"):
            self.word_note = "probabilities of words leave out that the word ends: it has no next_word"

    @property
    def identity(self) -> Mapping[str, Any] | None:
        """Key that the engine states; None: nothing is stored."""
        key = getattr(self.engine, "key", None)
        return None if key is None else {"engine": f"{type(self.engine).__qualname__}", "key": key}

    def can(self, method: str) -> bool:
        """Whether the engine has a method."""
        return method == "encode" or callable(getattr(self.engine, method, None))

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        """Tokens, which joined are the texts."""
        if not callable(getattr(self.engine, "encode", None)):
            return [_words(text) for text in texts]
        found = self._rows("encode", texts, self.engine.encode(list(texts)))
        for text, tokens in zip(texts, found, strict=True):
            if not all(isinstance(token, str) for token in tokens) or "".join(tokens) != text:
                raise self._wrong(
                    "encode", f"gives {_brief(tokens)} for {_brief(text)}", "tokens that joined are the text"
                )
        return [list(tokens) for tokens in found]

    def score(self, texts: Sequence[str]) -> list[dict[str, NDArray[Any]]]:
        """Scores of every token by name."""
        given, rows = self._rows("score", texts, self.engine.score(list(texts))), []
        for text, tokens, its in zip(texts, self.encode(texts), given, strict=True):
            named = its if isinstance(its, Mapping) else {"logprob": its}
            row = {"logprob": self._log_probs("score", named.get("logprob"), len(tokens), text, n_without=1)}
            if np.isneginf(row["logprob"]).any():
                raise self._wrong("score", f"gives -inf in {_brief(text)}", "finite for a text that was read")
            for name in _MORE & named.keys():
                row[name] = self._numbers("score", named[name], len(tokens) + (name == BOUNDARY), text)
            rows.append(row)
        return rows

    def next_token(self, contexts: Sequence[str], strings: Strings) -> list[Floats]:
        """Ln q of strings after contexts."""
        return self._after("next_token", contexts, strings)

    def next_word(self, contexts: Sequence[str], words: Strings) -> list[Floats]:
        """Ln q of words after contexts."""
        return self._after("next_word", contexts, words)

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, temperature: float, seeds: Sequence[int]
    ) -> list[str]:
        """What it writes after prompts."""
        how = {"max_tokens": max_tokens, "temperature": temperature, "seeds": list(seeds)}
        found = self._rows("generate", prompts, self.engine.generate(list(prompts), **how))
        if not all(isinstance(text, str) for text in found):
            raise self._wrong("generate", f"gives {_brief(found)}", "a text for each prompt")
        return found

    def _after(self, method: str, contexts: Sequence[str], asked: Strings) -> list[Floats]:
        given = self._rows(
            method, contexts, getattr(self.engine, method)(list(contexts), [list(some) for some in asked])
        )
        triples = zip(contexts, asked, given, strict=True)
        return [self._log_probs(method, its, len(some), context) for context, some, its in triples]

    def _rows(self, method: str, asked: Sequence[Any], given: Any) -> list[Any]:
        rows = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
        if len(rows) != len(asked):
            raise self._wrong(method, f"gives {_brief(given)} for {len(asked)} texts", "as many, one for each")
        return rows

    def _numbers(self, method: str, given: Any, n: int, text: str) -> Floats:
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._wrong(method, f"gives {_brief(given)} for {_brief(text)}", f"{n} numbers") from None
        if values.shape != (n,):
            raise self._wrong(method, f"gives shape {values.shape} for {_brief(text)}", f"({n},)")
        return values

    def _log_probs(self, method: str, given: Any, n: int, text: str, n_without: int = 0) -> Floats:
        values = self._numbers(method, given, n, text)
        if np.isnan(values[n_without:]).any():
            raise self._wrong(method, f"gives NaN for {_brief(text)}", "a natural logarithm of each probability")
        if (values > _ABOVE_ZERO).any():
            raise self._wrong(
                method, f"gives {np.nanmax(values):.3g} for {_brief(text)}", "at most 0: a log-probability"
            )
        return np.minimum(values, 0.0)

    def _wrong(self, method: str, problem: str, wanted: str) -> InputError:
        return InputError(f"{problem}, should be {wanted}", source=f"model {self.name!r}", field=method)


class LmEval:
    """A model object of lm-eval as an engine: its tokens are words with the space before them."""

    def __init__(self, lm: Any) -> None:
        self.lm, self.key = lm, getattr(lm, "key", None)

    def score(self, texts: Sequence[str]) -> list[Floats]:
        """Ln q of every word given the text before it: what it adds to the log-likelihood of the text up to there."""
        parts = [list(accumulate(_words(text))) for text in texts]
        asked = [SimpleNamespace(args=(part,)) for its in parts for part in its]
        # a number, or a number in a tuple
        found = (float(np.ravel(its)[0]) for its in self.lm.loglikelihood_rolling(asked))
        return [np.diff([next(found) for _ in its], prepend=0.0) for its in parts]

    def next_token(self, contexts: Sequence[str], strings: Strings) -> list[Floats]:
        """Ln q of strings after contexts."""
        pairs = [(context, string) for context, some in zip(contexts, strings, strict=True) for string in some]
        found = iter(self.lm.loglikelihood([SimpleNamespace(args=pair) for pair in pairs]))
        return [np.array([float(next(found)[0]) for _ in some]) for some in strings]

    def generate(
        self, prompts: Sequence[str], *, max_tokens: int, temperature: float, seeds: Sequence[int]
    ) -> list[str]:
        """What it writes up to a line break; draws are of the object's own random numbers."""
        del seeds
        how: dict[str, Any] = {"until": ["\n"], "max_gen_toks": max_tokens, "do_sample": temperature > 0}
        if temperature:
            # transformers would draw from the 50 most probable tokens
            how |= {"temperature": temperature, **({"top_k": 0} if hasattr(self.lm, "AUTO_MODEL_CLASS") else {})}
        return list(self.lm.generate_until([SimpleNamespace(args=(prompt, dict(how))) for prompt in prompts]))


def _answers(engine: Any) -> bool:
    return any(callable(getattr(engine, method, None)) for method in (*_METHODS, "loglikelihood"))


def _made(settings: OwnSettings) -> Any:
    """Make an engine of its class; nothing else is called."""
    source, (module, _, name) = f"model {settings.name!r}", settings.target.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        problem = f"is {settings.target!r}, which cannot be imported: {' '.join(str(error).split())}"
        raise InputError(problem, source=source, field="_target_") from error
    if not isclass(found) or not _answers(found):
        problem = f"is {settings.target!r}, should be the class of an engine, with {_WANTED}"
        raise InputError(problem, source=source, field="_target_")
    try:
        return found(**settings.arguments)
    except (TypeError, ValueError, OSError) as error:
        problem = f"{settings.target} cannot be made: {' '.join(str(error).split())}"
        raise InputError(problem, source=source) from error


def _words(text: str) -> list[str]:
    """Words with the white space before them; what is after the last is of it."""
    ends = [word.stop for word in word_spans(text)]
    cuts = [0, *ends[:-1], len(text)] if ends else [0, len(text)][: 1 + bool(text)]
    return [text[start:stop] for start, stop in pairwise(cuts)]


def _brief(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
