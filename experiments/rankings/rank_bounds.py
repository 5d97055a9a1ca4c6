"""``+exp=rank_bounds``: Shannon's bounds of the entropy of a text, from the ranks of its tokens."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from estimators.rankings import guess_bounds, score_study, top_k_accuracy
from experiments.harness.figures import STYLE, new_figure, player_colours, player_label
from experiments.harness.marks import light_grid, mark, named, number_ticks, titled
from experiments.harness.result import ExperimentResult, experiment
from experiments.harness.settings import rows_of
from experiments.harness.tables import table_variables
from inference.settings import Count, Probability, Settings

__all__ = ["RANK_BOUND_COLUMNS", "RankBoundsSettings", "rank_bounds"]

_ALL = 0  # context length of the rows over all lengths
_FEW = 10

RANK_BOUND_COLUMNS = (
    *("model", "context_length", "n_tokens", "n_windows", "n_not_found"),
    *("lower_nats", "lower_se_nats", "upper_nats", "upper_se_nats", "upper_plug_in_nats", "lower_bits", "upper_bits"),
    *("is_falling", "top_1", "average"),
)
"""Columns of the table; see :class:`estimators.rankings.GuessBounds`.

``context_length`` 0 is of all lengths together; ``top_1`` and ``average`` are mean rank scores of the same tokens.
"""


class RankBoundsSettings(Settings):
    """Settings of :func:`rank_bounds`."""

    match: Literal["stripped", "exact", "id"] = "stripped"
    """How the reference token is found in a list: without outer blanks (the thesis), as it is, or by its number."""
    tie: Literal["listed", "best", "worst"] = "listed"
    """Place of a token among equally probable ones; a half rank is no number of guesses."""
    top_k: Count | None = None
    """Tokens of a list to look at; null takes all."""
    vocab_size: Count | None = None
    """Tokens that can be guessed; the upper bound needs it where a token is in no list."""
    interval: Probability = 0.9
    """Probability inside the intervals of the figure."""


@experiment(RankBoundsSettings)
def rank_bounds(study: xr.Dataset, settings: RankBoundsSettings) -> ExperimentResult:
    """Bound the entropy of the texts by the ranks at which every model would have guessed their tokens.

    Parameters
    ----------
    study : xarray.Dataset
        A ranking study.
    settings : RankBoundsSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        :data:`RANK_BOUND_COLUMNS`, a row a model and length of the context, and one a model over all lengths. Standard
        errors are over windows.

    Examples
    --------
    >>> from experiments import rank_bounds
    >>> from estimators.rankings.examples import ranking_study
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
    same = ("n_not_found", "is_falling", "upper_plug_in_nats")
    ends = ("lower_nats", "lower_se_nats", "upper_nats", "upper_se_nats")
    bits = {f"{end}_bits": getattr(found, f"{end}_nats") / np.log(2) for end in ("lower", "upper")}
    return {
        "n_tokens": found.n_responses,
        "n_windows": found.n_items,
        **{name: getattr(found, name) for name in (*same, *ends)},
        **bits,
        "top_1": float(tokens["top_1"].mean()),
        "average": float(tokens["average"].mean()),
    }


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
            f"- **{row.model}**: {row.lower_nats:.3f} (se {row.lower_se_nats:.3f}) to {upper} nats a token; first "
            f"guess right in {row.top_1:.1%} of {row.n_tokens:,} tokens, {row.n_not_found:,} in no list"
        )
    return (
        "Were the tokens guessed in the order of each model's list until one is right (Shannon 1951), the numbers of "
        "guesses would bound the entropy:\n\n" + "\n".join(lines) + "\n\nThe upper bound holds for any guesser, the "
        "lower one for a guesser who knows the text's own probabilities. Standard errors are over windows."
    )


def bounds_figure(table: pd.DataFrame, study_name: str = "", *, interval: float) -> Figure:
    """Both bounds of every model, by the length of the context."""
    shown = table[table["context_length"] != _ALL]
    models = [str(name) for name in shown["model"].unique()]
    colours = player_colours(models)
    z = NormalDist().inv_cdf((1 + interval) / 2)
    lengths = np.unique(shown["context_length"])
    with mpl.rc_context(STYLE):
        fig = new_figure(5.6, 3.9)
        axes = fig.add_subplot()
        for at, model in enumerate(models):
            own = shown[shown["model"] == model]
            # models of one length stand side by side
            x = own["context_length"] * 2 ** (0.06 * (at - (len(models) - 1) / 2))
            for end, style in (("lower", "--"), ("upper", "-")):
                reach = z * own[f"{end}_se_nats"].fillna(0)
                axes.errorbar(
                    x, own[f"{end}_nats"], yerr=reach, fmt="o", markersize=3.5, linestyle=style, color=colours[model]
                )
        axes.set_xscale("log", base=2)
        number_ticks(axes.xaxis, lengths[:: max(1, round(lengths.size / 9))])
        axes.tick_params(axis="x", labelrotation=60)
        axes.set_xlim(lengths[0] / 1.5, lengths[-1] * 1.5)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("tokens of context (log scale)")
        axes.set_ylabel("entropy, nats a token")
        light_grid(axes, "y")
        handles = [mark(player_label(model), colours[model], "o", line="-") for model in models]
        handles += [mark(f"upper bound, {interval:.0%}", line="-"), mark(f"lower bound, {interval:.0%}", line="--")]
        named(fig, handles, 3)
        titled(fig, "What ranks say of the entropy of a text", study_name)
    return fig
