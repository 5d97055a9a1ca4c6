"""``+exp=rank_bounds``: Shannon's bounds of the entropy of a text, from the ranks of its tokens."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.rankings import guess_bounds, score_study, top_k_accuracy
from shannon_game.experiments.harness.figures import new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import bars, length_axis, styled
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.experiments.rankings.settings import ListSettings
from shannon_game.inference.settings import Count, Probability

_ALL = 0  # context length of the rows over all lengths
_FEW = 10

RANK_BOUND_COLUMNS = (
    *("model", "context_length", "n_tokens", "n_windows", "n_not_found"),
    *("lower_nats", "lower_se_nats", "upper_nats", "upper_se_nats", "upper_plug_in_nats", "lower_bits", "upper_bits"),
    *("is_falling", "top_1", "average"),
)
"""Columns of the table; see :class:`shannon_game.estimators.rankings.GuessBounds`.

``context_length`` 0 is of all lengths together; ``top_1`` and ``average`` are mean rank scores of the same tokens.
"""


class RankBoundsSettings(ListSettings):
    """Settings of :func:`rank_bounds`."""

    tie: Literal["listed", "best", "worst"] = "listed"
    """Place of a token among equally probable ones; a half rank is no number of guesses."""
    vocab_size: Count | None = None
    """Tokens that can be guessed; the upper bound needs it where a token is in no list."""
    interval: Probability = 0.9
    """Probability inside the intervals of the figure."""


@experiment(RankBoundsSettings)
def rank_bounds(study: xr.Dataset, settings: RankBoundsSettings) -> ExperimentResult:
    """Bound the entropy of the texts by the ranks at which every model would have guessed their tokens.

    Returns
    -------
    ExperimentResult
        :data:`RANK_BOUND_COLUMNS`, a row a model and length of the context, and one a model over all lengths. Standard
        errors are over windows.

    Examples
    --------
    >>> from shannon_game import rank_bounds
    >>> from shannon_game.estimators.rankings.examples import ranking_study
    >>> table = rank_bounds(ranking_study(), vocab_size=1000).table
    >>> bool((table["lower_nats"] < table["upper_nats"]).all())
    True
    """
    scores = score_study(study, match=settings.match, tie=settings.tie, top_k=settings.top_k)
    listed = np.minimum((~np.isnan(study["ranked_logprob"].to_numpy())).sum(axis=1), scores.k)
    tokens = pd.DataFrame(
        {name: study[name].to_numpy() for name in ("model", "text", "context_length", "window")}
        | {"rank": scores.rank, "n_tried": listed, "average": scores.average, "top_1": top_k_accuracy(scores.rank, 1)}
    )
    rows = []
    for model, own in tokens.groupby("model", sort=True):
        lengths = [(_ALL, own), *own.groupby("context_length", sort=True)]
        # one length is all lengths
        for length, some in lengths if len(lengths) > 2 else lengths[1:]:
            rows.append({"model": model, "context_length": length, **_row(some, settings.vocab_size)})
    table = pd.DataFrame(rows, columns=list(RANK_BOUND_COLUMNS))
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(
            table_variables(table, "row", but=["model"]), coords={"row": table["model"].to_numpy(dtype=object)}
        ),
        figures={"rank_bounds": bounds_figure(table, str(study.attrs.get("name", "")), interval=settings.interval)},
        text=_summary(table),
        warnings=_warnings(table),
    )


def _row(tokens: pd.DataFrame, vocab_size: int | None) -> dict[str, Any]:
    window = tokens["text"].astype(str) + "\n" + tokens["context_length"].astype(str) + "\n" + tokens["window"]
    found = guess_bounds(
        tokens["rank"].to_numpy(),
        item=window.to_numpy(dtype=str),
        n_tried=tokens["n_tried"].to_numpy(),
        vocab_size=vocab_size,
    )
    bits = {f"{end}_bits": getattr(found, f"{end}_nats") / np.log(2) for end in ("lower", "upper")}
    means = {name: float(tokens[name].mean()) for name in ("top_1", "average")}
    return {**vars(found), "n_tokens": found.n_responses, "n_windows": found.n_items, **bits, **means}


def _whole(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of all lengths, or of the only one."""
    return table[(table["context_length"] == _ALL) | ~table["model"].duplicated(keep=False)]


def _warnings(table: pd.DataFrame) -> tuple[str, ...]:
    said = []
    if table["upper_nats"].isna().any():
        said.append("tokens are in no list: the upper bound needs experiment.vocab_size")
    if (table["n_windows"] < _FEW).any():
        least = int(table["n_windows"].min())
        said.append(f"some rows have few windows ({least} the fewest): standard errors over windows are rough there")
    return tuple(said)


def _summary(table: pd.DataFrame) -> str:
    lines = []
    for row in rows_of(_whole(table)):
        upper = f"{row.upper_nats:.3f} (se {row.upper_se_nats:.3f})" if np.isfinite(row.upper_nats) else "unknown"
        lines.append(
            f"- **{row.model}**: {row.lower_nats:.3f} (se {row.lower_se_nats:.3f}) to {upper} nats per token; first "
            f"guess right in {row.top_1:.1%} of {row.n_tokens:,} tokens, {row.n_not_found:,} in no list"
        )
    return (
        "\n".join(lines)
        + "\n\nTokens guessed in the order of a model's list bound the entropy (Shannon 1951): the upper "
        "bound holds for any guesser, the lower one for a guesser who knows the text's own probabilities. Standard "
        "errors are over windows."
    )


@styled
def bounds_figure(table: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """Both bounds of every model, by the length of the context."""
    shown = table[table["context_length"] != _ALL]
    models = [str(name) for name in shown["model"].unique()]
    colours = player_colours(models)
    z = NormalDist().inv_cdf((1 + interval) / 2)
    styles = {"upper": "-", "lower": "--"}
    fig = new_figure(5.6, 3.9)
    axes = fig.add_subplot()
    for at, model in enumerate(models):
        own = shown[shown["model"] == model]
        # models of one length stand side by side
        x = own["context_length"] * 2 ** (0.06 * (at - (len(models) - 1) / 2))
        for end, style in styles.items():
            middle, reach = own[f"{end}_nats"], z * own[f"{end}_se_nats"].fillna(0)
            bars(axes, x, middle - reach, middle, middle + reach, color=colours[model], linestyle=style, capsize=0)
    length_axis(axes, shown["context_length"])
    axes.tick_params(axis="x", labelrotation=60)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("entropy, nats per token")
    light_grid(axes, "y")
    handles = [mark(player_label(model), colours[model], "o", line="-") for model in models]
    named(fig, [*handles, *(mark(f"{end} bound, {interval:.0%}", line=style) for end, style in styles.items())])
    titled(fig, "What ranks say of the entropy of a text", study_name)
    return fig
