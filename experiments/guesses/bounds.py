"""``+exp=bounds``: Shannon's bounds of the entropy of a text, from numbers of guesses or from ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from hydra.utils import get_object
from matplotlib.figure import Figure

from shannon_game.estimators.documents.guess_bounds import guess_bounds
from shannon_game.estimators.guesses import guess_ranks
from shannon_game.estimators.layout import HUMAN
from shannon_game.estimators.messages import Set
from shannon_game.estimators.schema import KIND
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import Series, player_colours, player_label
from shannon_game.experiments.harness.marks import mark, named
from shannon_game.experiments.harness.plots import bars, forest_figure, length_axis
from shannon_game.experiments.harness.questions import bullets, half_width, one_panel
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import short_names
from shannon_game.inference.settings import Count, Probability, Settings

_FEW = 10


class BoundRow(column.Row):
    """People, one person, or a model at one length of the context."""

    player: str = column.key("people, one of them, or a model", players=True)
    context_length: int = column.key("tokens of context; 0: all lengths", usual="0")
    n_words: int = column.context("words")
    n_items: int = column.context("places")
    n_participants: int = column.context("people")
    n_not_found: int = column.context("words that were not found")
    lower_nats: float = column.estimate("lower bound of the entropy", unit="nats", se="lower_se_nats")
    upper_nats: float = column.headline("upper bound of the entropy", unit="nats", se="upper_se_nats")
    upper_plug_in_nats: float = column.detail("upper bound before the correction for few guesses", unit="nats")
    lower_bits: float = column.detail("lower_nats in bits", unit="bits")
    upper_bits: float = column.detail("upper_nats in bits", unit="bits")
    is_falling: bool = column.detail("whether shares of guesses fall, as the lower bound needs")
    top_1: float = column.estimate("share of words that the first guess is right for")
    reciprocal: float = column.detail("mean reciprocal of the number of guesses")


class BoundsSettings(Settings):
    vocab_size: Count | None = None
    """Words (or letters, or tokens) that can be guessed; the upper bound needs it where one was not found."""
    interval: Probability = 0.9
    """Probability inside the intervals."""
    match: Literal["stripped", "exact", "id"] = "stripped"
    """Of a ranking study: how the reference token is found in a list, without outer blanks, as it is, or by number."""
    tie: Literal["listed", "best", "worst"] = "listed"
    """Of a ranking study: place of a token among equally probable ones; a half rank is no number of guesses."""
    top_k: Count | None = None
    """Of a ranking study: tokens of a list to look at; null takes all."""


@experiment(BoundsSettings, row=BoundRow)
def bounds(study: xr.Dataset, settings: BoundsSettings) -> ExperimentResult:
    """Bound the entropy of a text by how many guesses its words took people, or would have taken models.

    One row for all people (player "human", standard errors over people and items) and one each (over items); or a
    row per model over all lengths of the context (0) and one a length, standard errors over windows.

    Examples
    --------
    >>> from shannon_game import bounds
    >>> from shannon_game.estimators.guesses.examples import guess_study
    >>> bounds(guess_study(), vocab_size=100).table["player"].tolist()
    ['human', 'p0', 'p1', 'p2', 'p3']
    """
    of_people = study.attrs[KIND] == "guess"
    if of_people:
        words, groups = _guesses(study), _by_person
    else:
        # another kind of study
        read: Callable[..., pd.DataFrame] = get_object("shannon_game.experiments.rankings.windows.guess_order")
        words, groups = read(study, match=settings.match, tie=settings.tie, top_k=settings.top_k), _by_length
    rows = [_row(player, length, some, settings.vocab_size) for player, length, some in groups(words)]
    table = BoundRow.table(rows)
    name = str(study.attrs.get("name", ""))
    draw = people_figure if of_people else lengths_figure
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(
            BoundRow.variables(table, "row", but=["player"]),
            coords={"row": table["player"].to_numpy(dtype=object)},
        ),
        figures={"bounds": draw(table, name, interval=settings.interval)},
        text=_summary(table, of_people),
        warnings=_warnings(table),
    )


def _guesses(study: xr.Dataset) -> pd.DataFrame:
    found = guess_ranks(study)
    return pd.DataFrame({**vars(found), "participant": found.participant.astype(str)})


def _by_person(words: pd.DataFrame) -> list[tuple[str, int, pd.DataFrame]]:
    return [(HUMAN, 0, words), *((str(name), 0, own) for name, own in words.groupby("participant", sort=True))]


def _by_length(words: pd.DataFrame) -> list[tuple[str, int, pd.DataFrame]]:
    found = []
    for model, own in words.groupby("model", sort=True):
        lengths = [(0, own), *own.groupby("context_length", sort=True)]
        # one length is all lengths
        found += [(str(model), length, its) for length, its in (lengths if len(lengths) > 2 else lengths[1:])]
    return found


def _row(player: str, length: int, words: pd.DataFrame, vocab_size: int | None) -> dict[str, Any]:
    found = guess_bounds(
        words["rank"].to_numpy(),
        item=words["item"].to_numpy(),
        participant=words["participant"].to_numpy() if "participant" in words else None,
        n_tried=words["n_tried"].to_numpy(),
        vocab_size=vocab_size,
    )
    row = {"player": player, "context_length": length, "n_words": found.n_responses, "top_1": found.share_first}
    row |= vars(found) | {f"{end}_bits": getattr(found, f"{end}_nats") / np.log(2) for end in ("lower", "upper")}
    return {**row, "reciprocal": float((1 / words["rank"]).mean())}


def _warnings(table: pd.DataFrame) -> tuple[str, ...]:
    said = []
    if table["upper_nats"].isna().any():
        said.append(f"words were not found: give {Set('experiment.vocab_size')}, which the upper bound needs")
    if table["n_not_found"].iloc[0] > table["n_words"].iloc[0] / 2:
        said.append("most words were not found, so that the bounds say little: allow more guesses per word")
    if (table["n_items"] < _FEW).any():
        said.append(f"some rows have {int(table['n_items'].min())} places: standard errors are rough, use more")
    return tuple(said)


def _summary(table: pd.DataFrame, of_people: bool) -> str:
    rows = table[:1] if of_people else table[~table["player"].duplicated()]
    upper = [
        f"{row.upper_nats:.3f} (se {row.upper_se_nats:.3f})" if np.isfinite(row.upper_nats) else "unknown"
        for row in rows_of(rows)
    ]
    line = (
        "**The entropy is between {lower_nats:.3f} (se {lower_se_nats:.3f}) and {upper} nats per word for {label}**. "
        "The first guess is right for {top_1:.1%} of {n_words:,} words at {n_items:,} places; {n_not_found:,} words "
        "were not found."
    )
    lines = bullets(rows.assign(label=rows["player"].map(player_label), upper=upper), line)
    return (
        f"{lines}\n\nNumbers of guesses bound the entropy (Shannon 1951). The upper bound holds for any guesser, the "
        "lower one for a guesser who knows the text's own probabilities."
    )


def people_figure(table: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """Draw both bounds of all people together and of each."""
    # people's long ids become short names, the row of all of them keeps its own
    names = {HUMAN: HUMAN} | short_names(name for name in table["player"] if name != HUMAN)
    rows = _with_ends(table, interval).assign(
        label=[player_label(names[name]) for name in table["player"]],
        group=np.where(table["player"] == HUMAN, "all", "each"),
    )
    series = [
        Series(
            f"{end}_nats", f"{end}_from", f"{end}_to", label=f"{end} bound, {interval:.0%}", colour=colour, offset=at
        )
        for end, colour, at in (("lower", "#0072B2", 0.12), ("upper", "#D55E00", -0.12))
    ]
    title = "Between which bounds is the entropy of the text?"
    return forest_figure(rows, series, "entropy, nats per word", title, study_name, row_height=0.24, start=0)


def _with_ends(table: pd.DataFrame, interval: float) -> pd.DataFrame:
    for end in ("lower", "upper"):
        middle, reach = table[f"{end}_nats"], half_width(table[f"{end}_se_nats"], interval)
        table = table.assign(**{f"{end}_from": middle - reach, f"{end}_to": middle + reach})
    return table


def lengths_figure(table: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """Draw both bounds of every model, by the length of the context."""
    shown = _with_ends(table[table["context_length"] > 0], interval)
    models = list(dict.fromkeys(shown["player"]))
    colours, styles = player_colours(models), {"upper": "-", "lower": "--"}
    with one_panel(4.5, 4.2, "Between which bounds is the entropy of a text?", study_name) as (fig, axes):
        for at, model in enumerate(models):
            own = shown[shown["player"] == model]
            # models of one length stand side by side
            x = own["context_length"] * 2 ** (0.06 * (at - (len(models) - 1) / 2))
            for end, style in styles.items():
                ends = (own[f"{end}_from"], own[f"{end}_nats"], own[f"{end}_to"])
                bars(axes, x, *ends, color=colours[model], linestyle=style, capsize=0)
        length_axis(axes, shown["context_length"], most_ticks=5)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("entropy, nats per token")
        handles = [mark(player_label(model), colours[model], "o", line="-") for model in models]
        named(fig, [*handles, *(mark(f"{end} bound, {interval:.0%}", line=style) for end, style in styles.items())])
    return fig
