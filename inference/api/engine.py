"""A model behind an endpoint as the engine of a question: its answers are kept in a store of their own, paid once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.calls import scoring_call
from shannon_game.inference.api.chat import ChatAnswer, ChatQuestion, chat_call, read_answer
from shannon_game.inference.api.client import UnusableCallError
from shannon_game.inference.api.echo import TextTokens, text_tokens
from shannon_game.inference.api.stopping import ask_each
from shannon_game.inference.api.store import Ledger
from shannon_game.inference.lm.engine import EngineBase, Floats, OptionLogProbs, Strings, TextAnswers
from shannon_game.inference.lm.scored import Scored, Scoring, scores_of, units_of
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.progress import stage
from shannon_game.inference.text.prompts import Question

_Answers = list[ChatAnswer | UnusableCallError]
_Echo = TextTokens | UnusableCallError


class Endpoint(EngineBase):
    """A model behind an endpoint, which scores whole texts or is asked in text."""

    extra: ClassVar[str] = "api"

    def needed(self, method: str, wanted: str) -> Callable[..., Any]:
        """Refuse what wants whole distributions."""
        del method
        raise InputError(f"is behind an endpoint, which does not give {wanted}", source=f"model {self.name!r}")

    def scored(self, work: Work, texts: Sequence[str], how: Scoring) -> Scored:
        """Score texts, one call each; what an endpoint does not tell, such as where words may end, is missing."""
        self._check_limits(how)
        found, ledger = self._echoed(work, texts, "documents")
        there = [(at, its) for at, its in enumerate(found) if isinstance(its, TextTokens) and its.token]
        if not there:
            raise InputError(f"have no token that {self.name} can score", source="study", field="text")
        lost = [its for its in found if not isinstance(its, TextTokens)]
        rows = [{what: np.array(getattr(its, what), dtype=float) for what in ("logprob", "rank")} for _, its in there]
        bos = next((its.bos for _, its in there if its.bos), "")
        # a first character in parts may hide what stands before one text, and not before the others
        places = [np.array([0 if bos else its.place[0], *its.place[1:]], dtype=np.int64) for _, its in there]
        contents = [texts[at].encode()[place[0] : place[-1]] for (at, _), place in zip(there, places, strict=True)]
        return Scored(
            document=np.array([at for at, _ in there], dtype=np.intp),
            scores=scores_of(rows),
            places=places,
            units=np.array([units_of(content, how.boundaries) for content in contents]),
            bos=bos or "none",
            tokens=[its.token for _, its in there],
            notes=(f"{len(lost)} texts were left out, the first: {lost[0]}",) if lost else (),
            said=ledger.said(work.answers),
        )

    def _echoed(self, work: Work, texts: Sequence[str], what: str) -> tuple[list[_Echo], Ledger]:
        calls = [scoring_call(self.settings, text) for text in texts]
        with stage(f"{what} under {self.name}", announced=True) as show:
            read = partial(text_tokens, bos=self.settings.bos)
            return ask_each(calls, self.settings, work.answers, read, progress=show)

    def strings_after(self, work: Work, contexts: Sequence[str], strings: Strings) -> tuple[list[Floats], int]:
        """Ln q that contexts go on with strings, a call each; NaN where no token begins at the end of the context."""
        asked = [(context, string) for context, some in zip(contexts, strings, strict=True) for string in some]
        found, _ = self._echoed(work, ["".join(pair) for pair in asked], "odds of tokens")
        values = [_after(context, its) for (context, _), its in zip(asked, found, strict=True)]
        if np.isnan(values).all():
            problem = "gives no context a token that ends where the context does"
            raise next((its for its in found if isinstance(its, InputError)), InputError(problem))
        return np.split(np.array(values), np.cumsum([len(some) for some in strings])[:-1]), 0

    def answers(
        self, work: Work, questions: Sequence[Question], *, max_tokens: int, temperature: float, seed: int
    ) -> TextAnswers:
        """Answer questions in text; numbers of draws are the seeds."""
        del seed
        asked = [ChatQuestion(its.system, its.user, max_tokens, temperature, its.draw) for its in questions]
        given, said = self._asked(work, asked)
        texts = [its.text if isinstance(its, ChatAnswer) else None for its in given]
        finished = np.array([isinstance(its, ChatAnswer) and its.finished for its in given], dtype=np.bool_)
        return TextAnswers(texts, finished, said)

    def answer_log_probs(
        self, work: Work, questions: Sequence[Question], values: Sequence[str], *, options: bool = False
    ) -> OptionLogProbs:
        """Ln q of options as the first token of an answer, of those that the endpoint lists.

        An option that is not listed counts with the probability of the last one that is, the most that it can have.
        """
        if not options:
            problem = (
                "is behind an endpoint, which says no probability of a given answer; leave 'boxes' out of the ways"
            )
            raise InputError(problem, source=f"model {self.name!r}", field="ways")
        asked = [ChatQuestion(its.system, its.user, max_tokens=1, draw=its.draw, ranked=True) for its in questions]
        given, said = self._asked(work, asked)
        return OptionLogProbs(np.array([_listed(its, values) for its in given]).reshape(-1, len(values)), said)

    def _asked(self, work: Work, questions: list[ChatQuestion]) -> tuple[_Answers, str]:
        calls = [chat_call(self.settings, question) for question in questions]
        with stage(f"{self.name} answers", announced=True) as show:
            found, ledger = ask_each(calls, self.settings, work.answers, read_answer, progress=show)
        return found, ledger.said(work.answers)


def _after(context: str, its: _Echo) -> float:
    """Ln q of all tokens after a context; NaN where none begins there."""
    start = len(context.encode())
    if not isinstance(its, TextTokens) or start not in its.place[:-1]:
        return np.nan
    return sum(its.logprob[its.place.index(start) :])


def _listed(answer: ChatAnswer | UnusableCallError, options: Sequence[str]) -> NDArray[np.float64]:
    first = answer.first if isinstance(answer, ChatAnswer) else None
    found = np.full(len(options), np.nan)
    if first is None:
        return found
    for number, option in enumerate(options):
        its = [value for token, value in zip(first.token, first.logprob, strict=True) if token.strip() == option]
        found[number] = np.logaddexp.reduce(its) if its else np.nan
    if np.isfinite(found).any():
        found[np.isnan(found)] = first.logprob[-1]
    return found
