"""What people and models said in single contexts (figure 1, appendix G)."""

from __future__ import annotations

import textwrap
from difflib import get_close_matches
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.cloze import Distributions, StudyWords, entropy_nats, relative_frequencies
from shannon_game.estimators.cloze.study import context_labels
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN
from shannon_game.estimators.messages import Set
from shannon_game.experiments.cloze.figures import colours, label
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.settings import Names

_HUMAN = "human"
_PER_PAGE = 6
_N_DISPUTED = 3
_NAMED = 3
DISPUTED = "disputed"


class WordRow(column.Row):
    """One word of one player in one context."""

    item: str = column.key("context")
    text_id: str = column.context("its text")
    word_num: int = column.context("number of the word in its text")
    player: str = column.key("people, or a model", players=True)
    word: str = column.key("word")
    probability: float = column.headline("share of the player's words")
    rank: int = column.beside("probability", "its rank, 0 where the player never gave it")
    target: bool = column.beside("probability", "whether it is the word of the text")


def contexts_shown(study: xr.Dataset, words: StudyWords, wanted: Names, n_words: int) -> ExperimentResult:
    """People's and models' most probable words side by side: one row per context, player and word; a page a text."""
    items = _items(wanted, study, words)
    found: dict[str, Distributions] = {_HUMAN: words.human_distributions}
    for name, model in words.models.items():
        own = relative_frequencies(model.counts)
        found[name] = Distributions(model.item[own.context], own.word, own.probability, study.sizes["item"])
    silent = np.all([cpd.mass[items] == 0 for cpd in found.values()], axis=0)
    if silent.all():
        raise InputError("has no context with an answer that is a word", field=Set("experiment.item"))
    without, items = items[silent], items[~silent]
    shown = {name: cpd for name, cpd in found.items() if name == _HUMAN or (cpd.mass[items] > 0).any()}
    table = pd.concat([_rows(study, words, shown, int(item), n_words) for item in items], ignore_index=True)
    dataset = xr.Dataset(WordRow.variables(table, "row", but=["rank", "target"]))
    dataset = dataset.set_coords(["item", "text_id", "word_num", "player", "word"])
    people = table[(table["player"] == HUMAN) & (table["rank"] == 1)]
    first = [f"{row.word!r} ({row.probability:.0%}, context {row.item})" for row in rows_of(people)]
    if len(first) > _NAMED:
        share = people["probability"]
        said = (
            f"has {share.min():.0%} to {share.max():.0%} of their answers (median {share.median():.0%}), and is the "
            f"word of the text in {int(people['target'].sum())}"
        )
    else:
        said = f"is {listed(first)}"
    text = (
        f"**In {len(items)} contexts, people's most frequent word {said}.** The table has the {n_words} most "
        "probable words of people and of each model; `target` marks the word of the text. A word that is among them "
        "for one player is in the table for all players."
    )
    if DISPUTED in wanted:
        text += " These are the contexts where people's answers have the highest entropy."
    if without.size:
        text += f" Nothing that is a word was said in {', '.join(context_labels(study)[without])}."
    pages = _pages(study, items).items()
    figures = {name: contexts_figure(study, table, part, n_words=n_words) for name, part in pages}
    return ExperimentResult(table, dataset, figures, text, row=WordRow)


def _items(wanted: Names, study: xr.Dataset, words: StudyWords) -> NDArray[np.intp]:
    text, number = study["text_id"].to_numpy().astype(str), study["word_num"].to_numpy()
    labels = context_labels(study)
    found: list[int] = []
    for one in wanted:
        name, colon, word = one.rpartition(":") if ":" in one else (one, "", "")
        mask = labels == one
        if not mask.any() and one == DISPUTED:
            # what has no answer comes last
            order = np.argsort(-np.nan_to_num(entropy_nats(words.human_distributions), nan=-1), kind="stable")
            found += sorted(order[:_N_DISPUTED].tolist())
            continue
        if not mask.any() and not (text == name).any():
            near = get_close_matches(one, labels.tolist(), n=1)
            meant = f"; did you mean {near[0]!r}?" if near else f"; contexts are {', '.join(labels[:5])}, ..."
            problem = f"is {one!r}; there is no such context and no text {name!r}{meant}"
            raise InputError(problem, field=Set("experiment.item"))
        if not mask.any():
            mask = text == name
            known = number[mask]
            if colon:
                mask &= number == int(word) if word.isdecimal() else False
            if not mask.any():
                problem = f"is {one!r}; text {name} has the words {known.min()} to {known.max()}: TEXT:WORD"
                raise InputError(problem, field=Set("experiment.item"))
        found += np.flatnonzero(mask).tolist()
    return np.array(list(dict.fromkeys(found)), dtype=np.intp)


def _rows(
    study: xr.Dataset, words: StudyWords, cpds: dict[str, Distributions], item: int, n_words: int
) -> pd.DataFrame:
    said = {}
    for name, cpd in cpds.items():
        here = cpd.context == item
        own = pd.Series(cpd.probability[here], cpd.word[here]).sort_values(ascending=False, kind="stable")
        if len(own):
            said[name] = own
    codes = list(dict.fromkeys(code for own in said.values() for code in own.index[:n_words]))
    place: dict[str, Any] = {"item": str(context_labels(study)[item])}
    place |= {"text_id": str(study["text_id"].to_numpy()[item]), "word_num": int(study["word_num"].to_numpy()[item])}
    texts = [str(words.strings[code]) for code in codes]
    is_target = [bool(code == words.target[item]) for code in codes]
    frames = []
    for name, own in said.items():
        rank = pd.Series(np.arange(1, len(own) + 1), own.index).reindex(codes, fill_value=0).to_numpy()
        probability = own.reindex(codes, fill_value=0.0).to_numpy()
        mine = {"player": name, "word": texts, "probability": probability, "rank": rank, "target": is_target}
        frames.append(pd.DataFrame({**place, **mine}))
    return pd.concat(frames, ignore_index=True)


def _pages(study: xr.Dataset, items: NDArray[np.intp]) -> dict[str, NDArray[np.intp]]:
    text = study["text_id"].to_numpy()[items].astype(str)
    pages: dict[str, NDArray[np.intp]] = {}
    for name in dict.fromkeys(text.tolist()):
        mine = items[text == name]
        for start in range(0, len(mine), _PER_PAGE):
            part = mine[start : start + _PER_PAGE]
            ends = part[[0, -1]]
            if "item_id" in study:
                page = "contexts_" + "_".join(dict.fromkeys(study["item_id"].to_numpy()[ends].tolist()))
            else:
                page = f"text_{name}_words_" + "_".join(map(str, study["word_num"].to_numpy()[ends]))
            page = "".join(letter if letter.isalnum() else "_" for letter in page)
            # ids that differ in such letters only
            while page in pages:
                page += "_"
            pages[page] = part
    return pages


@styled
def contexts_figure(study: xr.Dataset, table: pd.DataFrame, items: NDArray[np.intp], *, n_words: int = 10) -> Figure:
    """Draw one row of panels for each context, one panel for each player: horizontal bars, most probable on top."""
    players = list(dict.fromkeys(table["player"]))
    # as much room as the player with the most words needs
    n_words = int(np.clip(table["rank"].max(), 3, n_words))
    palette = colours(players)
    fig = new_figure(1.0 + 1.75 * len(players), (0.95 + 0.2 * n_words) * len(items) + 0.3)
    parts = fig.subfigures(len(items), 1, squeeze=False)[:, 0]
    for part, item in zip(parts, items, strict=True):
        name = str(context_labels(study)[item])
        here = table[table["item"] == name]
        context = str(study["context"].to_numpy()[item])
        shown = context if len(context) <= 150 else "..." + context[-147:]
        target = str(study["target_word"].to_numpy()[item])
        title = f"{name}  {shown} ___" + (f"  [{target}]" if target else "")
        titled(part, "\n".join(textwrap.wrap(title, 20 + 18 * len(players))), size=9.5)
        highest = max(here["probability"].max(), 0.05)
        for ax, player in zip(part.subplots(1, len(players), squeeze=False)[0], players, strict=True):
            mine = here[(here["player"] == player) & (here["rank"] > 0)].sort_values("rank").head(n_words)
            ax.set_title(label(player), fontsize=9.5)
            ax.set(xlim=(0, highest * 1.05), ylim=(n_words - 0.4, -0.6))
            _bars(ax, mine, palette[player])
    known = bool(study["target_word"].to_numpy()[items].astype(str).astype(bool).any())
    fig.supxlabel("probability" + (" (bold: the word of the text)" if known else ""), fontsize=9.5)
    return fig


def _bars(ax: Axes, rows: pd.DataFrame, colour: str) -> None:
    ax.tick_params(axis="both", labelsize=8.5, length=2)
    if rows.empty:
        ax.set_yticks([])
        ax.text(0.5, 0.5, "no samples", transform=ax.transAxes, ha="center", va="center", fontsize=7, color="0.4")
        return
    places = np.arange(len(rows))
    ax.barh(places, rows["probability"], color=colour, height=0.75, alpha=0.85)
    ax.set_yticks(places, [word if len(word) <= 12 else word[:11] + "\N{HORIZONTAL ELLIPSIS}" for word in rows["word"]])
    for tick, hit in zip(ax.get_yticklabels(), rows["target"], strict=True):
        tick.set_fontweight("bold" if hit else "normal")
