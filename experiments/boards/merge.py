"""``shannon-game board``: cards of many machines as one table, one figure and one page."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shannon_game.estimators.documents import share_difference
from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.boards.abilities import DEFINITIONS
from shannon_game.experiments.boards.cards import Card, CardScore, known_scores, read_cards
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.csv_tables import write_csv
from shannon_game.experiments.harness.figures import Series, forest, new_figure, player_label
from shannon_game.experiments.harness.marks import light_grid
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.report import save_figures
from shannon_game.experiments.harness.tables import latex_table, markdown_table
from shannon_game.experiments.harness.views import for_readers
from shannon_game.inference.manifest import replaced
from shannon_game.inference.progress import say


def named_ability(name: str) -> str:
    """What readers call an ability."""
    return {"odds": "odds between two tokens"}.get(name, name.replace("_", " "))


class BoardRow(column.Row):
    """One score of one player on one data set."""

    ability: str = column.key("what people did", words=named_ability)
    corpus: str = column.key("data set")
    score: str = column.key("what was measured")
    model: str = column.key("people, or a model", players=True)
    share: float = column.headline(
        "share of the way from the floor to people", label="from floor (0) to people (1)", interval="share_{}"
    )
    value: float = column.estimate("the score itself", interval="value_{}")
    floor: float = column.beside("value", "score of what knows nothing")
    ceiling: float = column.beside("value", "score of people")
    unit: str = column.detail("unit of value, floor and ceiling")
    n_units: int = column.context("contexts or questions")
    n_groups: int = column.context("texts or documents, which are resampled")
    no_share: str = column.detail("why there is no share")
    units: str = column.detail("digest of units and people: shares of equal ones can be paired")


@dataclass(frozen=True, eq=False)
class Board:
    """Cards as tables, a figure and a page.

    Attributes
    ----------
    table : DataFrame
        One row per ability, data set, score and player.
    differences : DataFrame
        Paired differences of two players' shares.
    figure : Figure
        Shares by ability, each with its interval.
    notes : tuple of str
        What was left out, and cards of other versions.
    """

    table: pd.DataFrame
    differences: pd.DataFrame
    figure: Figure
    notes: tuple[str, ...]
    cards: tuple[Card, ...]

    @property
    def shown(self) -> pd.DataFrame:
        """What readers see: the first score of each ability, intervals as texts."""
        return for_readers(headlines(self.table).round(3), BoardRow.columns).table

    @property
    def markdown(self) -> str:
        """Table in Markdown."""
        return markdown_table(self.shown) + "\n"

    @property
    def latex(self) -> str:
        """Table in LaTeX."""
        return latex_table(self.shown, caption="Share of the way from the floor to people", label="tab:board")

    @property
    def html(self) -> str:
        """One page that sorts and filters without a server."""
        template = Path(__file__).with_name("board.html").read_text(encoding="utf-8")
        rows = json.loads(self.table.drop(columns="units").to_json(orient="records", double_precision=6))
        named = [{**row, "label": player_label(row["model"])} for row in rows]
        facts = [card.model_dump(mode="json", exclude={"scores"}) for card in self.cards]
        content = json.dumps({"rows": named, "cards": facts, "notes": self.notes}, ensure_ascii=False)
        return template.replace("__CONTENT__", content.replace("<", "\\u003c"))

    def write(self, folder: str | Path) -> Path:
        """Write board.csv, differences.csv, board.md, board.tex, board.png and board.html into a folder."""
        with replaced(Path(folder), "board") as made:
            write_csv(self.table, made / "board.csv")
            write_csv(self.differences, made / "differences.csv")
            notes = "".join(f"- {text}\n" for text in self.notes)
            for name, text in (("md", f"{self.markdown}\n{notes}"), ("tex", self.latex), ("html", self.html)):
                (made / f"board.{name}").write_text(text, encoding="utf-8")
            save_figures(made, {"board": self.figure}, dpi=200)
        return Path(folder)

    def __repr__(self) -> str:
        return "\n".join([self.shown.to_string(index=False), *self.notes])


def board(cards: Sequence[str | Path | Card]) -> Board:
    """Merge cards of many machines into one board.

    Parameters
    ----------
    cards : sequence of path or Card
        Files of cards, and folders with such.

    Examples
    --------
    >>> from shannon_game import board
    >>> board(["cards/"])  # doctest: +SKIP
    """
    found = read_cards([each for each in cards if not isinstance(each, Card)])
    found += [(Path(f"{each.model}.json"), each) for each in cards if isinstance(each, Card)]
    kept, notes = [], []
    for path, card in found:
        scores, said = known_scores(path, card)
        notes += said
        notes += [f"{card.model}: left out {its.corpus} ({its.ability}): {its.why}" for its in card.left_out]
        kept.append(card.changed(scores=tuple(scores)))
    levels = {level for card in kept if isinstance(level := card.settings.get("interval"), float)} or {0.9}
    if len(levels) > 1:
        notes.append(f"cards have intervals of {', '.join(f'{level:.0%}' for level in sorted(levels))}")
    table, twice = rows_of_cards(kept)
    return Board(
        table,
        differences_of(kept, level=max(levels)),
        board_figure(table),
        tuple(dict.fromkeys([*notes, *twice])),
        tuple(kept),
    )


def _newest(cards: Sequence[Card]) -> tuple[dict[tuple[str, ...], CardScore], list[str]]:
    """Scores by what they are of; of two cards with one the newer has it."""
    found: dict[tuple[str, ...], CardScore] = {}
    notes = []
    for card in sorted(cards, key=lambda each: each.made):
        for score in card.scores:
            key = (score.ability, score.corpus, score.score, card.model)
            if key in found and found[key] != score:
                notes.append(f"{card.model}: several cards score {score.corpus}, the newest is taken ({card.made})")
            found[key] = score
    return found, list(dict.fromkeys(notes))


def rows_of_cards(cards: Sequence[Card]) -> tuple[pd.DataFrame, list[str]]:
    """Table of all scores by ability, and notes on scores that several cards have."""
    found, notes = _newest(cards)
    order = list(DEFINITIONS)
    players = list(dict.fromkeys([HUMAN, *(card.model for card in cards)]))
    keys = sorted(found, key=lambda key: (order.index((key[0], key[2])), key[1], players.index(key[3])))
    return BoardRow.table(BoardRow.of(found[key], model=key[3], **_numbers(found[key])) for key in keys), notes


def _numbers(score: CardScore) -> dict[str, float]:
    names = ("floor", "ceiling", "share", "share_lower", "share_upper", "value_lower", "value_upper")
    return {name: float("nan") if getattr(score, name) is None else getattr(score, name) for name in names}


def differences_of(cards: Sequence[Card], *, level: float) -> pd.DataFrame:
    """Paired differences of the shares of two players on the same units of one data set."""
    found, _ = _newest(cards)
    rows = []
    for (one, a), (other, b) in combinations(found.items(), 2):
        is_pair = one[:3] == other[:3] and a.units == b.units and len(a.replicates) == len(b.replicates) > 0
        if not is_pair or HUMAN in (one[3], other[3]) or a.share is None or b.share is None:
            continue
        its = share_difference(
            (a.share, b.share), np.array(a.replicates) / 1e4, np.array(b.replicates) / 1e4, level=level
        )
        keys = dict(zip(("ability", "corpus", "score", "model"), one, strict=True))
        rows.append({**keys, "minus": other[3], **vars(its)})
    columns = ("ability", "corpus", "score", "model", "minus", "difference", "lower", "upper")
    return pd.DataFrame(rows, columns=list(columns))


def headlines(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the first score of each ability."""
    main = {key for key, its in DEFINITIONS.items() if its.headline}
    return table[[key in main for key in zip(table["ability"], table["score"], strict=True)]].reset_index(drop=True)


@styled
def board_figure(table: pd.DataFrame, *, width: float = 3.35) -> Figure:
    """Shares of all players with a panel per ability and data set; `width` is in inches, as in a column of a paper."""
    shown = headlines(table)
    shown = shown[(shown["model"] != HUMAN) & shown["share"].notna()]
    panels = list(shown.groupby(["ability", "corpus"], sort=False))
    heights = [len(rows) + 2.4 for _, rows in panels] or [1.0]
    fig = new_figure(width, 0.4 + 0.19 * sum(heights))
    axes = np.atleast_1d(fig.subplots(len(panels) or 1, 1, gridspec_kw={"height_ratios": heights}))
    for axis, ((ability, corpus), own) in zip(axes, panels, strict=False):
        rows = own.sort_values("share", ascending=False)
        forest(
            axis, rows.assign(label=rows["model"].map(player_label)), [Series("share", "share_lower", "share_upper")]
        )
        axis.tick_params(labelsize=8)
        axis.set_title(f"{named_ability(str(ability))} ({corpus})", fontsize=8.5)
        for at, style in ((0, ":"), (1, "-")):
            axis.axvline(at, color="0.4", linewidth=0.8, linestyle=style, zorder=1)
        light_grid(axis, "x")
    axes[-1].set_xlabel("floor 0 (dotted), people 1", fontsize=8.5)
    return fig


def board_command(arguments: Sequence[str] = ()) -> int:
    """Run ``shannon-game board CARDS... [--out FOLDER]``."""
    parser = argparse.ArgumentParser(prog="shannon-game board", description=__doc__.partition(": ")[2])
    parser.add_argument("cards", nargs="+", help="cards (.json), and folders with cards")
    parser.add_argument("--out", type=Path, help="where to write (outputs/board/TIME)")
    given = parser.parse_args(list(arguments))
    folder = given.out or Path("outputs", "board", f"{datetime.now().astimezone():%Y-%m-%d_%H-%M-%S}")
    made = board(given.cards)
    made.write(folder)
    sys.stdout.write(made.markdown)
    for text in made.notes:
        say(text)
    say(f"board: {(folder / 'board.html').resolve()}")
    return 0
