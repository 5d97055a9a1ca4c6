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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import font_manager
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.word_spans import word_spans
from shannon_game.experiments.harness.figures import new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.lm.alignment import character_places
from shannon_game.inference.lm.scored import BOUNDARY, Scored

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
_TOKENS_AT_ONCE = 1 << 17
"""Tokens whose columns are made together."""


def word_tables(
    scored: Mapping[str, Scored], documents: NDArray[Any], texts: Sequence[str], boundaries: str = "script"
) -> Iterator[dict[str, pd.DataFrame]]:
    """Tables ``words`` and ``tokens`` of all models, so many texts at a time that a part takes little memory."""
    for name, its in scored.items():
        for laid in _laid_out(its, texts):
            yield {
                "words": _word_table(name, laid, documents, boundaries),
                "tokens": _token_table(name, laid, documents),
            }


def _token_table(name: str, laid: _Laid, documents: NDArray[Any]) -> pd.DataFrame:
    """Make a table of :data:`TOKEN_COLUMNS`."""
    start, stop = laid.characters()
    first, nats = 1 + int(laid.scored.bos == "none"), -laid.values("logprob").astype(float)
    columns: dict[str, Any] = {"token_num": first + _within(laid.n_tokens), "start": start, "stop": stop}
    columns |= {"token": [token for row in laid.rows for token in laid.scored.tokens[row]]}
    columns |= {"surprisal_bits": nats / np.log(2), "surprisal_nats": nats}
    columns |= {key: laid.values(key) for key in ("entropy_nats", "rank")}
    return laid.table(name, documents, laid.n_tokens, columns)[list(TOKEN_COLUMNS)]


def _word_table(name: str, laid: _Laid, documents: NDArray[Any], boundaries: str) -> pd.DataFrame:
    """Make a table of :data:`WORD_COLUMNS`; a word that a token shares with its neighbour has no surprisal."""
    flat: list[int] = []
    n_words, words = np.zeros(len(laid.texts), dtype=int), list[str]()
    for at, text in enumerate(laid.texts):
        found = word_spans(text, boundaries=boundaries)
        n_words[at] = len(found)
        flat += chain.from_iterable(found)
        words += [text[start:stop] for start, stop, _ in found]
    starts, stops, spaced = np.array(flat, dtype=int).reshape(-1, 3).T
    columns: dict[str, Any] = {"word_num": 1 + _within(n_words), "start": starts, "stop": stops, "word": words}
    columns |= laid.of_words(np.repeat(np.arange(n_words.size), n_words), starts, stops, spaced.astype(bool))
    nats = columns["surprisal_nats"]
    columns |= {"surprisal_bits": nats / np.log(2), "probability": np.exp(-nats)}
    return laid.table(name, documents, n_words, columns)[list(WORD_COLUMNS)]


def _within(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbers from 0 within each of several groups."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _laid_out(scored: Scored, texts: Sequence[str]) -> Iterator[_Laid]:
    """Rows of scores, so many texts at a time that their columns take little memory."""
    n_tokens = scored.scores["logprob"].sizes
    part = np.cumsum(n_tokens) // _TOKENS_AT_ONCE
    for rows in np.split(np.arange(n_tokens.size), np.flatnonzero(np.diff(part)) + 1):
        yield _Laid(scored, rows, [texts[at] for at in scored.document[rows]], n_tokens[rows])


@dataclass(frozen=True, eq=False)
class _Laid:
    """Some rows of scores with their texts one after another, so that columns are made of all at once."""

    scored: Scored
    rows: NDArray[np.intp]
    texts: list[str]
    n_tokens: NDArray[np.intp]

    def table(
        self, name: str, documents: NDArray[Any], counts: NDArray[np.intp], columns: dict[str, Any]
    ) -> pd.DataFrame:
        """Columns beside those that are the same for a document or a model."""
        own = pd.Series(documents[self.scored.document[self.rows]]).repeat(counts.tolist()).array
        same = {"model": name, "revision": self.scored.revision[:REVISION_SHOWN]}
        return pd.DataFrame({"document": own, **columns}).assign(**same)

    def values(self, key: str) -> NDArray[Any]:
        """Scores of all tokens."""
        found = self.scored.scores[key].take(self.rows).items
        return found.astype(np.int64) if found.dtype == np.int32 else found

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """Bytes of all texts at which a character begins, and their end."""
        return character_places("".join(self.texts))

    @cached_property
    def first_character(self) -> NDArray[np.int64]:
        """Number of the first character of each text."""
        return np.cumsum([0, *map(len, self.texts[:-1])])

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Bytes at which tokens begin, and of each row the end of the last; its text's beginning if none is known."""
        own = (self.scored.places[row] for row in self.rows)
        known = [its if its.size else np.zeros(n + 1, int) for n, its in zip(self.n_tokens, own, strict=True)]
        return np.concatenate(known) + np.repeat(self.begins[self.first_character], self.n_tokens + 1)

    def characters(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """First and last character of every token; none where the tokenizer changed the text."""
        ends = np.cumsum(self.n_tokens + 1)
        first, last = np.delete(self.places, ends - 1), np.delete(self.places, ends - self.n_tokens - 1)
        # a token that holds a part of a character has that character
        start, stop = np.searchsorted(self.begins, first, "right") - 1, np.searchsorted(self.begins, last, "left")
        is_placed = np.array([self.scored.places[row].size > 0 for row in self.rows])
        before, is_known = np.repeat(self.first_character, self.n_tokens), np.repeat(is_placed, self.n_tokens)
        start, stop = np.minimum(start, stop) - before, stop - before
        return (
            (start, stop) if is_known.all() else (np.where(is_known, start, np.nan), np.where(is_known, stop, np.nan))
        )

    def of_words(
        self, row: NDArray[np.intp], starts: NDArray[np.int64], stops: NDArray[np.int64], is_spaced: NDArray[np.bool_]
    ) -> dict[str, NDArray[Any]]:
        """Columns of the words of all texts, each of a row and from a character to another."""
        is_first = np.diff(row, prepend=-1) > 0
        starts, stops = (self.begins[self.first_character[row] + its] for its in (starts, stops))
        # whitespace between two words is of the second, but for what the first one's last token holds of it
        last_place = np.cumsum(self.n_tokens + 1) - 1
        begin = last_place - self.n_tokens
        next_start = np.where(np.append(is_first[1:], True), self.places[last_place[row]], np.append(starts[1:], 0))
        last = np.searchsorted(self.places, stops)
        is_there = last <= last_place[row]
        end = np.minimum(last, last_place[row])
        first = np.where(is_first, begin[row], np.append(0, end[:-1]))
        ends_here = (self.places[end] == stops) & is_spaced
        goes_on = np.array([at in self.scored.goes_on for at in self.rows])
        is_open = np.where(is_first, goes_on[row], np.append(False, ends_here[:-1]))
        whole = is_there & (first < end) & (self.places[first] <= starts) & (self.places[end] <= next_start)
        first, end, boundary = first[whole], end[whole], self.values(BOUNDARY)
        # rows have one place more than tokens
        token, n_own = first - row[whole], end - first
        nats = -_sums(self.values("logprob").astype(float), token, n_own)
        before = np.where(is_open[whole], boundary[first], 0.0)
        found = {"surprisal_nats": nats + before - np.where(ends_here[whole], boundary[end], 0.0)}
        found |= {"sum_bits": nats / np.log(2), "n_tokens": n_own}
        found |= {key: self.values(key)[token] for key in ("entropy_nats", "rank")}
        columns = {key: np.full(row.size, 0 if key == "n_tokens" else np.nan) for key in found}
        for key, values in found.items():
            columns[key][whole] = values
        return columns


def _sums(values: NDArray[np.float64], first: NDArray[np.intp], n: NDArray[np.intp]) -> NDArray[np.float64]:
    """Sums of so many values from each of several places, those of one length at once."""
    sums = np.zeros(n.size)
    for length in np.unique(n):
        own = np.flatnonzero(n == length)
        sums[own] = values[first[own, None] + np.arange(length)].sum(axis=1)
    return sums


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


def _labels(words: pd.DataFrame) -> list[str]:
    """The words, or their numbers where the figure's font has no such characters."""
    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    pairs = zip(words["word"], words["word_num"], strict=True)
    return [word if all(font.get_char_index(ord(c)) for c in word) else str(number) for word, number in pairs]


def first_words(words: pd.DataFrame) -> pd.DataFrame:
    """The words that the figure may show: one more than fit, which says whether the last text ends there."""
    return words.groupby("model", sort=False).head(_SHOWN + 1)


@styled
def word_figure(
    words: pd.DataFrame,
    title: str,
    column: str = "surprisal_bits",
    what: str = "surprisal",
    n_words: int | None = None,
) -> Figure:
    """A number of the words of the first texts under every model; there are `n_words`, where `words` are the first."""
    models = list(dict.fromkeys(words["model"]))
    colour = player_colours(models)
    first = words[words["model"] == models[0]]
    ends = first.groupby("document", sort=False).size().cumsum()
    # whole texts, or the beginning of one that is too long
    n_shown = int(ends[ends <= _SHOWN].max()) if ends.iloc[0] <= _SHOWN else _SHOWN
    n_out, first = max((n_words or len(first)) - n_shown, 0), first.head(n_shown)
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
