"""What models say of pairs of tokens, in both orders, and what they believe of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import report_from_log_ratio
from shannon_game.estimators.comparison.stated import both_orders
from shannon_game.experiments.comparison.text_players.pairs import BOXES, OPTIONS, VERBALISED, Pairs
from shannon_game.experiments.harness.text_models import TextPlayer, ask_texts
from shannon_game.inference.text.prompts import PERCENTS, Question, option_question, percent_question
from shannon_game.inference.text.reading import read_percent

ORDERS = ("A", "B")
"""Where the target stands; every pair is asked in both orders."""
# a probability that a double cannot tell from 1 is no report
_NEAREST = 1e-12


@dataclass(frozen=True, eq=False)
class Said:
    """What a model said of pairs, by pair and order: NaN and "" where nothing was asked, None where nothing came."""

    way: str
    probability_a: FloatArray
    text: list[list[str | None]]
    said: str

    @property
    def nats(self) -> FloatArray:
        """Log-odds of the target over both orders, (pair,)."""
        return both_orders(*self.probability_a.T)[0]

    @property
    def lean_nats(self) -> FloatArray:
        """Log-odds of A over both orders, (pair,)."""
        return both_orders(*self.probability_a.T)[1]

    @property
    def reports(self) -> FloatArray:
        """Probability given to the target, shape (pair, order)."""
        return np.column_stack([self.probability_a[:, 0], 1 - self.probability_a[:, 1]])

    def unreadable(self, pairs: Pairs) -> Counter[str]:
        """Count answers that could not be read, by what they say."""
        missing = np.isnan(self.probability_a) & ~pairs.automatic[:, None]
        if self.way == OPTIONS:
            n_missing = int(missing.sum())
            return Counter({"(no log-probability of A or B)": n_missing} if n_missing else {})
        texts = [self.text[pair][order] for pair, order in np.argwhere(missing).tolist()]
        return Counter("(no usable answer)" if text is None else text for text in texts)


def probability_of(log_odds: FloatArray) -> FloatArray:
    """Probabilities of log-odds, strictly between 0 and 1; what is missing stays so."""
    known = np.isfinite(log_odds)
    found = np.full(log_odds.shape, np.nan)
    found[known] = np.clip(report_from_log_ratio(-log_odds[known]), _NEAREST, 1 - _NEAREST)
    return found


def say(player: TextPlayer, pairs: Pairs, way: str) -> Said:
    """Ask a model about every pair in both orders."""
    asked = np.flatnonzero(~pairs.automatic)
    ask = option_question if way == OPTIONS else percent_question
    questions: list[Question] = []
    for at in asked.tolist():
        tokens = pairs.target[at], pairs.other[at]
        # of draws, each position of a candidate has its own
        draw = int(pairs.candidate[at]) if player.settings.temperature and way == VERBALISED else 0
        for a, b in (tokens, tokens[::-1]):
            questions.append(replace(ask(player.settings.prompt, pairs.context[at], a, b), draw=draw))
    probability = np.full((len(pairs.target), len(ORDERS)), np.nan)
    text: list[list[str | None]] = [["", ""] for _ in pairs.target]
    if not asked.size:
        return Said(way, probability, text, "")
    if way == BOXES:
        logprob = player.engine.answer_log_probs(
            player.work, questions, [f"{percent}%" for percent in PERCENTS]
        ).logprob
        weights = np.exp(logprob - logprob.max(axis=1, keepdims=True))
        means = weights @ np.array(PERCENTS) / 100 / weights.sum(axis=1)
        probability[asked] = means.reshape(-1, len(ORDERS))
        return Said(way, probability, text, "")
    if way == OPTIONS:
        found = player.engine.answer_log_probs(player.work, questions, ORDERS, options=True)
        values = probability_of(found.logprob[:, 0] - found.logprob[:, 1])
        probability[asked] = values.reshape(-1, len(ORDERS))
        return Said(way, probability, text, found.said)
    answers = ask_texts(player, questions)
    for number, (its, finished) in enumerate(zip(answers.text, answers.finished.tolist(), strict=True)):
        at, order = int(asked[number // len(ORDERS)]), number % len(ORDERS)
        text[at][order] = its
        percent = None if its is None else read_percent(its, finished=finished)
        probability[at, order] = np.nan if percent is None else percent / 100
    return Said(way, probability, text, answers.said)


def believed_nats(player: TextPlayer, pairs: Pairs) -> FloatArray:
    r"""Compute what a model with probabilities of tokens believes of every pair: ln q(y|c) - ln q(x|c)."""
    if not player.engine.can("next_token"):
        return np.full(len(pairs.target), np.nan)
    both = list(zip(pairs.target, pairs.other, strict=True))
    logprob, _ = player.engine.strings_after(player.work, pairs.context, both)
    of_target, of_other = np.array(logprob, dtype=np.float64).reshape(-1, 2).T
    difference: FloatArray = of_target - of_other
    return difference


def answer_rows(player: str, said: Said, pairs: Pairs, item: NDArray[Any], reports: FloatArray) -> pd.DataFrame:
    """List every answer, a row per question, in the columns that ``study=comparison_table`` reads, and some more."""
    n_pairs = len(pairs.target)
    return pd.DataFrame(
        {
            "participant": np.repeat(f"{player} {said.way}", n_pairs * len(ORDERS)),
            "item": np.repeat(item, len(ORDERS)),
            "draw": np.repeat(pairs.candidate, len(ORDERS)),
            "report": np.where(pairs.automatic[:, None], 0.5, reports).ravel(),
            "player": player,
            "way": said.way,
            "target_side": np.tile(ORDERS, n_pairs),
            "target": np.repeat(pairs.target, len(ORDERS)),
            "candidate": np.repeat(pairs.other, len(ORDERS)),
            "automatic": np.repeat(pairs.automatic, len(ORDERS)),
            "probability_a": said.probability_a.ravel(),
            "answer": [text for both in said.text for text in both],
        }
    )
