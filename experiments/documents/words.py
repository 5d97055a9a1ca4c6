r"""Surprisal of every token and of every word of texts.

A word is what stands between whitespace, with its punctuation; in scripts without spaces ICU finds it. Its probability
needs the end of the word: without it " the" would have the probability of " them" too. With :math:`B_t` the probability
that a word ends before token t (of
tokens that begin with whitespace, and of the text's end), the word of tokens a to b has

.. math:: -\ln q(w \mid c) = -\sum_{t=a}^{b} \ln q(y_t \mid y_{<t}) - \ln B_{b+1} + \ln B_a

(Pimentel and Meister 2024; Oh and Schuler 2024). The first word of a text has no :math:`B_a`. Where a script writes no
space, no token ends a word: its surprisal is the plain sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import font_manager
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.word_spans import word_spans
from shannon_game.experiments.documents.scored import BOUNDARY, Scored
from shannon_game.experiments.harness.figures import new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.lm.alignment import character_places

TOKEN_COLUMNS = (
    *("document", "model", "token_num", "start", "stop", "token"),
    *("surprisal_bits", "surprisal_nats", "entropy_nats", "rank", "revision"),
)
"""A row per token; ``start`` and ``stop`` are characters of the text, ``entropy_nats`` and ``rank`` are of the
distribution before the token, ``revision`` begins the model's commit or the hash of its files."""
WORD_COLUMNS = (
    *("document", "model", "word_num", "start", "stop", "word", "surprisal_bits", "surprisal_nats", "probability"),
    *("sum_bits", "entropy_nats", "rank", "n_tokens", "revision"),
)
"""A row per word; ``sum_bits`` is the plain sum over its tokens, ``entropy_nats`` and ``rank`` are of the first."""
REGION_COLUMNS = (
    *("document", "model", "region_num", "start", "stop", "region", "surprisal_bits", "surprisal_nats"),
    *("sum_bits", "n_words", "n_tokens", "revision"),
)
"""A row per region of interest: ``surprisal_*`` are sums over its words, none where it cuts one; ``sum_bits`` is the
sum over its tokens, none where it cuts one."""

REVISION_SHOWN = 12
"""Characters of a revision that tables of words show."""

_SHOWN = 60
"""Most words of the figure."""


def word_tables(
    scored: Mapping[str, Scored], documents: NDArray[Any], texts: Sequence[str], boundaries: str
) -> dict[str, pd.DataFrame]:
    """Tables ``words`` and ``tokens`` of all models."""
    words = [word_table(name, its, documents, texts, boundaries) for name, its in scored.items()]
    tokens = [token_table(name, its, documents, texts) for name, its in scored.items()]
    return {"words": pd.concat(words, ignore_index=True), "tokens": pd.concat(tokens, ignore_index=True)}


def token_table(name: str, scored: Scored, documents: NDArray[Any], texts: Sequence[str]) -> pd.DataFrame:
    """Make a table of :data:`TOKEN_COLUMNS`."""
    parts = []
    for row, at in enumerate(scored.document):
        start, stop = _characters(scored.places[row], texts[at], len(scored.tokens[row]))
        nats = -scored.scores["logprob"][row].astype(float)
        first = 1 + int(scored.bos == "none")
        columns: dict[str, Any] = {"token_num": np.arange(first, first + nats.size), "start": start, "stop": stop}
        columns |= {"token": list(scored.tokens[row]), "surprisal_bits": nats / np.log(2), "surprisal_nats": nats}
        columns |= {key: scored.scores[key][row] for key in ("entropy_nats", "rank")}
        columns["revision"] = scored.revision[:REVISION_SHOWN]
        parts.append(pd.DataFrame({"document": documents[at], "model": name, **columns}))
    return pd.concat(parts, ignore_index=True)[list(TOKEN_COLUMNS)]


def word_table(
    name: str, scored: Scored, documents: NDArray[Any], texts: Sequence[str], boundaries: str = "script"
) -> pd.DataFrame:
    """Make a table of :data:`WORD_COLUMNS`; a word that a token shares with its neighbour has no surprisal."""
    parts = []
    for row, at in enumerate(scored.document):
        found = word_spans(texts[at], boundaries=boundaries)
        starts, stops, spaced = np.array(found, dtype=int).T
        columns: dict[str, Any] = {"word_num": np.arange(1, len(found) + 1), "start": starts, "stop": stops}
        columns |= {
            "word": [texts[at][one.start : one.stop] for one in found],
            "revision": scored.revision[:REVISION_SHOWN],
        }
        place = character_places(texts[at])
        columns |= _of_words(scored, row, place[starts], place[stops], spaced.astype(bool))
        parts.append(pd.DataFrame({"document": documents[at], "model": name, **columns}))
    table = pd.concat(parts, ignore_index=True)
    table = table.assign(surprisal_bits=table["surprisal_nats"] / np.log(2))
    return table.assign(probability=np.exp(-table["surprisal_nats"]))[list(WORD_COLUMNS)]


def best_column(words: pd.DataFrame) -> str:
    """Surprisal of words, or the plain sum over their tokens where a model cannot say that a word ends."""
    known = words["surprisal_bits"].notna().groupby(words["model"]).any()
    return "surprisal_bits" if known.all() else "sum_bits"


def region_table(
    words: pd.DataFrame, tokens: pd.DataFrame, regions: pd.DataFrame, texts: Mapping[Any, str], column: str
) -> pd.DataFrame:
    """Sum `column` of words over regions, and as ``tokens_sum`` that of tokens; `texts` are by document.

    `regions` have ``document``, ``region_num``, ``start``, ``stop``, ``region``.
    """
    both = words[["document", "model", "revision"]].assign(first=words["start"], end=words["stop"], its=words[column])
    both = both.merge(regions, on="document")
    both = both[(both["first"] < both["stop"]) & (both["end"] > both["start"])]
    is_cut = (both["first"] < both["start"]) | (both["end"] > both["stop"])
    key = ["document", "model", "region_num", "start", "stop", "region", "revision"]
    found = both.assign(its=both["its"].mask(is_cut)).groupby(key, sort=False)["its"]
    # a word without surprisal leaves its region without
    table = pd.DataFrame({"n_words": found.size(), column: found.agg(lambda its: its.sum(skipna=False))}).reset_index()
    own = {key: _Extents.of(part, texts[key[0]], column) for key, part in tokens.groupby(["document", "model"])}
    sums = [own[row.document, row.model].over(row.start, row.stop) for row in rows_of(table)]
    return table.join(pd.DataFrame(sums, columns=["n_tokens", "tokens_sum"], index=table.index))


@dataclass(frozen=True, eq=False)
class _Extents:
    """Tokens of a text by their first visible character and the end of the last; white space is of the token after."""

    visible: NDArray[np.int64]
    first: NDArray[np.int64]
    end: NDArray[np.int64]
    value: NDArray[np.float64]

    @classmethod
    def of(cls, tokens: pd.DataFrame, text: str, column: str) -> _Extents:
        """Places of all tokens; of none where they are not known."""
        tokens = tokens if tokens["start"].notna().all() else tokens.iloc[:0]
        visible = np.array([at for at, character in enumerate(text) if not character.isspace()], dtype=np.int64)
        dark = np.append(visible, len(text))
        first = dark[np.searchsorted(visible, tokens["start"])]
        end = np.maximum(dark[np.searchsorted(visible, tokens["stop"]) - 1], first) + 1
        return cls(visible, first, end, tokens[column].to_numpy(dtype=float))

    def over(self, start: int, stop: int) -> tuple[int, float]:
        """Number of the tokens in a region and their sum; none where a token is on its edge, or was not scored."""
        here = (self.first < stop) & (self.end > start)
        low, high = self.visible[np.searchsorted(self.visible, [start, stop]) - [0, 1]]
        is_whole = here.any() and self.first[here].min() == low and self.end[here].max() == high + 1
        return int(here.sum()), float(self.value[here].sum()) if is_whole else np.nan


def _characters(places: NDArray[np.int64] | None, text: str, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """First and last character of every token, by places in bytes; none where the tokenizer changed the text."""
    if places is None:
        return np.full(n, np.nan), np.full(n, np.nan)
    begins = character_places(text)
    # a token that holds a part of a character has that character
    start, stop = np.searchsorted(begins, places[:-1], "right") - 1, np.searchsorted(begins, places[1:], "left")
    return np.minimum(start, stop), stop


def _of_words(
    scored: Scored, row: int, starts: NDArray[np.int64], stops: NDArray[np.int64], is_spaced: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Columns of the words of a text, whose ends are given in bytes."""
    names = ("surprisal_nats", "sum_bits", "entropy_nats", "rank")
    found = {name: np.full(starts.size, np.nan) for name in names}
    n_tokens, places = np.zeros(starts.size, dtype=int), scored.places[row]
    if places is None:
        return {**found, "n_tokens": n_tokens}
    logprob, boundary = scored.scores["logprob"][row].astype(float), scored.scores[BOUNDARY][row]
    # whitespace between two words is of the second, but for what the first one's last token holds of it
    last, next_start = np.searchsorted(places, stops), np.append(starts[1:], places[-1])
    first, is_open = 0, row in scored.goes_on
    for at, b in enumerate(last):
        if b == places.size:
            break
        if first < b and places[first] <= starts[at] and places[b] <= next_start[at]:
            nats = -logprob[first:b].sum()
            ends_here = places[b] == stops[at] and is_spaced[at]
            before, after = boundary[first] if is_open else 0.0, boundary[b] if ends_here else 0.0
            found["surprisal_nats"][at], found["sum_bits"][at] = nats + before - after, nats / np.log(2)
            found["entropy_nats"][at], found["rank"][at] = (scored.scores[name][row][first] for name in names[2:])
            n_tokens[at] = b - first
        first, is_open = int(b), bool(places[b] == stops[at] and is_spaced[at])
    return {**found, "n_tokens": n_tokens}


def _labels(words: pd.DataFrame) -> list[str]:
    """The words, or their numbers where the figure's font has no such characters."""
    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    pairs = zip(words["word"], words["word_num"], strict=True)
    return [word if all(font.get_char_index(ord(c)) for c in word) else str(number) for word, number in pairs]


@styled
def word_figure(words: pd.DataFrame, title: str, column: str = "surprisal_bits", what: str = "surprisal") -> Figure:
    """A number of the words of the first texts under every model, word by word."""
    models = list(dict.fromkeys(words["model"]))
    colour = player_colours(models)
    first = words[words["model"] == models[0]]
    ends = first.groupby("document", sort=False).size().cumsum()
    # whole texts, or the beginning of one that is too long
    n_shown = int(ends[ends <= _SHOWN].max()) if ends.iloc[0] <= _SHOWN else _SHOWN
    n_out, first = max(len(first) - n_shown, 0), first.head(n_shown)
    # a column of a journal: words stand below one another, so that they stay legible
    fig = new_figure(3.35, 1.5 + 0.18 * len(first))
    axes = fig.add_subplot()
    for name in models:
        own = words[words["model"] == name].head(n_shown).reset_index(drop=True)
        for _, text in own.groupby("document", sort=False):
            axes.plot(text[column], text.index, marker="o", markersize=4, color=colour[name])
    # a text begins where the numbers of its words do
    for at in np.flatnonzero(first["word_num"].to_numpy() == 1)[1:]:
        axes.axhline(at - 0.5, color="0.7", linewidth=0.8)
    axes.set_yticks(np.arange(len(first)), _labels(first))
    axes.set_ylim(len(first) - 0.5, -0.5)
    axes.set_xlabel(f"{what}, bits")
    if (words[column].dropna() >= 0).all():
        axes.set_xlim(left=0)
    else:
        axes.set_xlim(right=0)
    light_grid(axes, "x")
    if len(models) > 1:
        named(fig, [mark(player_label(name), colour[name], "o", line="-") for name in models])
    some = f", first {len(first)} words ({n_out:,} left out)" if n_out else ""
    titled(
        fig, f"How much {what} has each word?" if what != "surprisal" else "How surprising is each word?", title + some
    )
    return fig
