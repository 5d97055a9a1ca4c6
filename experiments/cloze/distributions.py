"""``+exp=distributions item=...``: what people and models said in single contexts (figure 1, appendix G)."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from difflib import get_close_matches
from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.cloze import Distributions, StudyWords, entropy_nats, relative_frequencies
from shannon_game.estimators.cloze.study import context_labels
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.figures import colours, label
from shannon_game.experiments.cloze.settings import ClozeSettings, chosen_models, words_of
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.settings import Count, Names, Settings

_HUMAN = "human"
_PER_PAGE = 6
_N_CHOSEN = 3


ItemNames = Annotated[Names, Field(min_length=1)]
"""Contexts; a list in YAML, or a single one."""


class ItemSettings(Settings):
    """Which contexts are shown, and how much of each."""

    item: ItemNames | None = None
    """Contexts: the study's own ids, "TEXT:WORD", "TEXT" for every context of a text, or a list of them; null takes the
    three on which people disagree most (highest entropy)."""
    n_words: Count = 15
    """Most probable words of each player."""


class DistributionsSettings(ClozeSettings, ItemSettings):
    """Settings of :func:`distributions`."""


@experiment(DistributionsSettings)
def distributions(study: xr.Dataset, settings: DistributionsSettings) -> ExperimentResult:
    """Show people's and models' most probable words side by side, a page for each text.

    Returns
    -------
    ExperimentResult
        One row a context, player and word.

    Raises
    ------
    InputError
        If there is no such text or word.

    Examples
    --------
    >>> from shannon_game import cloze_simulated, distributions
    >>> study = cloze_simulated(n_items=4, vocab_size=40)
    >>> distributions(study, item="1:2", n_words=1, players="mixture").table[["player", "word", "probability"]]
        player word  probability
    0    human   w0        0.225
    1  mixture   w0        0.175
    """
    models = chosen_models(settings, study, needed=False)
    words = words_of(settings, study, models)
    return replace(distributions_result(study, words, settings), warnings=answer_warnings(words))


def distributions_result(study: xr.Dataset, words: StudyWords, settings: ItemSettings) -> ExperimentResult:
    """Table and pages of words in one coding."""
    items, n_words = _items(settings.item, study, words), settings.n_words
    found: dict[str, Distributions] = {_HUMAN: words.human_distributions}
    for name, model in words.models.items():
        found[name] = _over_items(relative_frequencies(model.counts), model.item, study.sizes["item"])
    silent = np.all([cpd.mass[items] == 0 for cpd in found.values()], axis=0)
    if silent.all():
        raise InputError("has no context with an answer that is a word", field="experiment.item")
    without, items = items[silent], items[~silent]
    shown = [_HUMAN, *(name for name in words.models if (found[name].mass[items] > 0).any())]
    rows: list[dict[str, Any]] = []
    for item in items:
        rows += _rows(study, words, {name: found[name] for name in shown}, int(item), n_words)
    table = pd.DataFrame(rows)
    dataset = xr.Dataset(
        {"probability": ("row", table["probability"].to_numpy())},
        coords={name: ("row", table[name].astype(str).to_list()) for name in ("item", "text_id", "player", "word")}
        | {"word_num": ("row", table["word_num"].to_numpy())},
    )
    chosen = "" if settings.item else "These are the contexts where people's answers have the highest entropy. "
    text = (
        f"{chosen}The {n_words} most probable words of people and of each model in {len(items)} contexts; `target` "
        "marks the word of the text. A word that is among them for one player is in the table for all of them."
    )
    if without.size:
        text += f" Nothing that is a word was said in {', '.join(context_labels(study)[without])}."
    figures = {
        name: distributions_figure(study, table, part, n_words=n_words) for name, part in _pages(study, items).items()
    }
    return ExperimentResult(table, dataset, figures, text)


def _items(wanted: Names | None, study: xr.Dataset, words: StudyWords) -> NDArray[np.intp]:
    """Positions of the contexts with these ids, of "TEXT:WORD", or of all contexts of "TEXT"."""
    if wanted is None:
        # what has no answer comes last
        order = np.argsort(-np.nan_to_num(entropy_nats(words.human_distributions), nan=-1), kind="stable")
        return np.sort(order[:_N_CHOSEN])
    text, number = study["text_id"].to_numpy().astype(str), study["word_num"].to_numpy()
    labels = context_labels(study)
    found: list[int] = []
    for one in wanted:
        if (labels == one).any():
            found += np.flatnonzero(labels == one).tolist()
            continue
        name, colon, word = one.rpartition(":") if ":" in one else (one, "", "")
        mask = text == name
        if not mask.any():
            near = get_close_matches(one, labels.tolist(), n=1)
            meant = f"; did you mean {near[0]!r}?" if near else f"; contexts are {', '.join(labels[:5])}, ..."
            problem = f"is {one!r}; there is no such context and no text {name!r}{meant}"
            raise InputError(problem, field="experiment.item")
        if colon:
            if not word.isdecimal() or not (mask & (number == int(word))).any():
                known = number[mask]
                raise InputError(
                    f"is {one!r}; text {name} has the words {known.min()} to {known.max()}: TEXT:WORD",
                    field="experiment.item",
                )
            mask &= number == int(word)
        found += np.flatnonzero(mask).tolist()
    return np.array(list(dict.fromkeys(found)), dtype=np.intp)


def _over_items(cpd: Distributions, item: NDArray[np.intp], n_items: int) -> Distributions:
    return Distributions(item[cpd.context], cpd.word, cpd.probability, n_items)


def _rows(
    study: xr.Dataset, words: StudyWords, cpds: dict[str, Distributions], item: int, n_words: int
) -> list[dict[str, Any]]:
    tables = {}
    for name, cpd in cpds.items():
        here = cpd.context == item
        tables[name] = dict(zip(cpd.word[here].tolist(), cpd.probability[here].tolist(), strict=True))
    union: dict[int, float] = {}
    for table in tables.values():
        for code, probability in sorted(table.items(), key=lambda pair: -pair[1])[:n_words]:
            union[code] = max(union.get(code, 0.0), probability)
    rows, label_of_item = [], str(context_labels(study)[item])
    for name, table in tables.items():
        if not table:
            continue
        ranks = {code: rank for rank, code in enumerate(sorted(table, key=lambda code: -table[code]), start=1)}
        rows += [
            {
                "item": label_of_item,
                "text_id": str(study["text_id"].to_numpy()[item]),
                "word_num": int(study["word_num"].to_numpy()[item]),
                "player": name,
                "word": str(words.strings[code]),
                "probability": table.get(code, 0.0),
                "rank": ranks.get(code, 0),
                "target": bool(code == words.target[item]),
            }
            for code in union
        ]
    return rows


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
def distributions_figure(
    study: xr.Dataset, table: pd.DataFrame, items: NDArray[np.intp], *, n_words: int = 15
) -> Figure:
    """Draw one row of panels for each context, one panel for each player: horizontal bars, most probable on top."""
    players = list(dict.fromkeys(table["player"]))
    # as much room as the player with the most words needs
    n_words = int(np.clip(table["rank"].max(), 3, n_words))
    palette = colours(players)
    keys = [(str(study["text_id"].to_numpy()[i]), int(study["word_num"].to_numpy()[i])) for i in items]
    fig = new_figure(1.0 + 1.75 * len(players), (0.95 + 0.18 * n_words) * len(items) + 0.3)
    parts = fig.subfigures(len(items), 1, squeeze=False)[:, 0]
    for part, item, (text, word) in zip(parts, items, keys, strict=True):
        here = table[(table["text_id"] == text) & (table["word_num"] == word)]
        context = str(study["context"].to_numpy()[item])
        shown = context if len(context) <= 150 else "..." + context[-147:]
        target = str(study["target_word"].to_numpy()[item])
        title = f"{context_labels(study)[item]}  {shown} ___" + (f"  [{target}]" if target else "")
        titled(part, "\n".join(textwrap.wrap(title, 25 + 22 * len(players))), size=8.5)
        axes = part.subplots(1, len(players), squeeze=False)[0]
        highest = max(here["probability"].max(), 0.05)
        for ax, player in zip(axes, players, strict=True):
            mine = here[(here["player"] == player) & (here["rank"] > 0)].sort_values("rank").head(n_words)
            _bars(ax, mine, colour=palette[player], n_words=n_words, highest=highest, name=label(player))
    known = bool(study["target_word"].to_numpy()[items].astype(str).astype(bool).any())
    fig.supxlabel("probability" + (" (bold: the word of the text)" if known else ""), fontsize=8.5)
    return fig


def _bars(ax: Axes, rows: pd.DataFrame, *, colour: str, n_words: int, highest: float, name: str) -> None:
    ax.set_title(name, fontsize=8)
    ax.set_xlim(0, highest * 1.05)
    ax.set_ylim(n_words - 0.4, -0.6)
    ax.tick_params(axis="both", labelsize=6.5, length=2)
    if rows.empty:
        ax.set_yticks([])
        ax.text(0.5, 0.5, "no samples", transform=ax.transAxes, ha="center", va="center", fontsize=7, color="0.4")
        return
    places = np.arange(len(rows))
    ax.barh(places, rows["probability"], color=colour, height=0.75, alpha=0.85)
    ax.set_yticks(places, [word if len(word) <= 12 else word[:11] + "\N{HORIZONTAL ELLIPSIS}" for word in rows["word"]])
    for tick, hit in zip(ax.get_yticklabels(), rows["target"], strict=True):
        if hit:
            tick.set_fontweight("bold")
