"""``+exp=guess_bounds``: Shannon's bounds of the entropy of a text, from the guesses that people took for its words."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.documents.guess_bounds import guess_bounds as bounds_of
from shannon_game.estimators.guesses import GuessRanks, guess_ranks
from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.harness.figures import Series, player_label
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import short_names, table_variables
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Count, Probability, Settings

GUESS_BOUND_COLUMNS = (
    *("player", "n_words", "n_items", "n_participants", "n_not_found"),
    *("lower_nats", "lower_se_nats", "upper_nats", "upper_se_nats", "upper_plug_in_nats", "lower_bits", "upper_bits"),
    *("is_falling", "top_1", "reciprocal"),
)
"""Columns of the table; see :class:`shannon_game.estimators.rankings.GuessBounds`.

``player`` is "human" for all participants together, then each one; ``reciprocal`` is the mean of 1 / rank, 0 for a word
that was not found.
"""

_SHARE_OF_ONE = 0.5


class GuessBoundsSettings(Settings):
    """Settings of :func:`guess_bounds`."""

    vocab_size: Count | None = None
    """Words (or letters) that can be guessed; the upper bound needs it where a word was not found."""
    interval: Probability = 0.9
    """Probability inside the intervals of the figure."""


@experiment(GuessBoundsSettings)
def guess_bounds(study: xr.Dataset, settings: GuessBoundsSettings) -> ExperimentResult:
    """Bound the entropy of a text by the numbers of guesses that people took until they were right.

    Parameters
    ----------
    study : xarray.Dataset
        A guess study; in a game that goes on until the guess is right, every guess is a response.

    Returns
    -------
    ExperimentResult
        :data:`GUESS_BOUND_COLUMNS`: all participants together (standard errors over people and items), then each one
        (over items).

    Examples
    --------
    >>> from shannon_game import guess_bounds
    >>> from shannon_game.estimators.guesses.examples import guess_study
    >>> guess_bounds(guess_study(), vocab_size=100).table["player"].tolist()
    ['human', 'p0', 'p1', 'p2', 'p3']
    """
    found = guess_ranks(study)
    rows = [_row(HUMAN, found, np.ones(found.rank.size, dtype=bool), settings.vocab_size)]
    rows += [
        _row(str(name), found, found.participant == name, settings.vocab_size) for name in np.unique(found.participant)
    ]
    table = pd.DataFrame(rows, columns=list(GUESS_BOUND_COLUMNS))
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(
            table_variables(table, "row", but=["player"]), coords={"row": table["player"].to_numpy(dtype=object)}
        ),
        figures={"guess_bounds": bounds_figure(table, str(study.attrs["name"]), interval=settings.interval)},
        text=_summary(table),
        warnings=_warnings(table),
    )


def _row(player: str, ranks: GuessRanks, mine: NDArray[np.bool_], vocab_size: int | None) -> dict[str, Any]:
    found = bounds_of(
        ranks.rank[mine],
        item=ranks.item[mine],
        participant=ranks.participant[mine],
        n_tried=ranks.n_tried[mine],
        vocab_size=vocab_size,
    )
    row = {"player": player, "n_words": found.n_responses, "top_1": found.share_first, **vars(found)}
    row |= {f"{end}_bits": row[f"{end}_nats"] / np.log(2) for end in ("lower", "upper")}
    return {**row, "reciprocal": float((1 / ranks.rank[mine]).mean())}


def _warnings(table: pd.DataFrame) -> tuple[str, ...]:
    said = []
    if table["upper_nats"].isna().any():
        said.append("words were not found: the upper bound needs experiment.vocab_size")
    if table["n_not_found"].iloc[0] > _SHARE_OF_ONE * table["n_words"].iloc[0]:
        said.append("most words were not found: a game with few guesses a word says little of the entropy")
    return tuple(said)


def _summary(table: pd.DataFrame) -> str:
    row = rows_of(table)[0]
    upper = f"{row.upper_nats:.3f} (se {row.upper_se_nats:.3f})" if np.isfinite(row.upper_nats) else "unknown"
    return (
        f"**The entropy is {row.lower_nats:.3f} (se {row.lower_se_nats:.3f}) to {upper} nats per word**, by how many "
        f"guesses were taken (Shannon 1951) by {counted(row.n_participants, 'person', 'people')} for "
        f"{counted(row.n_words, 'word')} at {counted(row.n_items, 'place')}, {row.n_not_found:,} of them not "
        f"found. The first guess is right in {row.top_1:.1%}. The upper bound holds for any guesser, the lower one for "
        "a guesser who knows the text's own probabilities; standard errors are clustered over people and items."
    )


def bounds_figure(table: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """Both bounds of all people together and of each."""
    z = NormalDist().inv_cdf((1 + interval) / 2)
    # people's long ids become short names, the row of all of them keeps its own
    names = {HUMAN: HUMAN} | short_names(name for name in table["player"] if name != HUMAN)
    rows = table.assign(
        label=[player_label(names[name]) for name in table["player"]],
        group=np.where(table["player"] == HUMAN, "all", "each"),
    )
    series = []
    for end, colour, offset in (("lower", "#0072B2", 0.12), ("upper", "#D55E00", -0.12)):
        reach = z * rows[f"{end}_se_nats"].fillna(0)
        rows[f"{end}_from"], rows[f"{end}_to"] = rows[f"{end}_nats"] - reach, rows[f"{end}_nats"] + reach
        label = f"{end} bound, {interval:.0%}"
        series.append(Series(f"{end}_nats", f"{end}_from", f"{end}_to", label=label, colour=colour, offset=offset))
    title = "What numbers of guesses say of the entropy"
    return forest_figure(rows, series, "entropy, nats per word", title, study_name, row_height=0.24, start=0)
