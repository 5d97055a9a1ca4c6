"""Table, figure and words of a cloze study that live models were added to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.cloze import WordRules, entropy_nats, relative_frequencies, study_words, total_variation
from shannon_game.estimators.cloze.words import FAILED
from shannon_game.experiments.cloze.build_cloze.players import Player
from shannon_game.experiments.cloze.figures import colours, label
from shannon_game.experiments.cloze.settings import known_mean
from shannon_game.experiments.harness.questions import one_panel
from shannon_game.experiments.harness.settings import rows_of

_PEOPLE = "human"


def players_table(
    built: xr.Dataset, players: Sequence[Player], listed: Mapping[str, NDArray[np.float64]], rules: WordRules
) -> tuple[pd.DataFrame, xr.Dataset]:
    """Describe what each player said, over contexts and by context."""
    names = [player.name for player in players]
    words = study_words(built, human=rules, model=rules, corpus=rules, models=names)
    said = {name: relative_frequencies(words.models[name].counts) for name in names}
    n_items = built.sizes["item"]
    rows = []
    entropy = [entropy_nats(words.human_distributions)]
    for player in players:
        name = player.name
        totals = words.models[name].counts.totals
        failed = [sum(row.count for row in some if row.word == FAILED) for some in player.rows]
        different = np.bincount(words.models[name].counts.context, minlength=n_items)
        entropy.append(entropy_nats(said[name]))
        exact = said.get(f"{player.model}-exact")
        row: dict[str, Any] = {"player": name, "model": player.model, "decoding": player.decoding}
        row |= {"n_contexts": n_items, "n_contexts_without_word": int((totals == 0).sum()), "n_draws": player.n_draws}
        row |= {"share_failed": float(np.mean(failed)) / player.n_draws}
        row |= {"n_different": float(different[totals > 0].mean()) if (totals > 0).any() else np.nan}
        row |= {"entropy_nats": known_mean(entropy[-1])}
        row |= {"tvd_to_exact": np.nan if exact is None else known_mean(total_variation(said[name], exact))}
        rows.append(row | {"probability_listed": float(listed[name].mean()) if name in listed else np.nan})
    by_item = xr.Dataset(
        {"entropy_nats": (("player", "item"), np.stack(entropy), {"units": "nats"})},
        coords={"player": [_PEOPLE, *names], "item": built["item"].to_numpy()},
    )
    return pd.DataFrame(rows), by_item


def players_figure(by_item: xr.Dataset, title: str) -> Figure:
    """Cumulative share of contexts by the entropy of their next word, one line a player and one of people."""
    highest = 1.05 * max(float(by_item["entropy_nats"].max().fillna(0)), 0.1)
    title = f"Next words in {by_item.sizes['item']:,} contexts of {title}"
    with one_panel(6.0, 3.6, title, grid="both") as (fig, axes):
        for name, colour in colours([str(name) for name in by_item["player"].to_numpy()]).items():
            values = by_item["entropy_nats"].sel(player=name).dropna("item").to_numpy()
            if len(values):
                shown, style = f"{label(name)}, mean {values.mean():.2f}", "--" if name == _PEOPLE else "-"
                axes.ecdf(values, color=colour, linestyle=style, label=shown)
        # beside the axis, so that a player without any entropy is seen
        axes.set(xlim=(-0.03 * highest, highest), ylim=(0, 1.02))
        axes.set_xlabel("entropy of a context's next words (nats, of the samples)")
        axes.set_ylabel("share of contexts with this or less")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    return fig


def summary(table: pd.DataFrame, computed: str) -> str:
    """Say what each player is, and how far its samples are from the exact distribution."""
    lines = []
    for row in rows_of(table):
        line = f"- **{label(row.player)}** ({row.decoding}): {row.n_different:.0f} different words per context, "
        line += f"entropy {row.entropy_nats:.3f} nats"
        if row.decoding == "exact":
            line += f"; the words that are listed hold {row.probability_listed:.1%} of the probability"
        else:
            line += f"; {row.share_failed:.1%} of {row.n_draws:,} draws per context gave no word"
            if not np.isnan(row.tvd_to_exact):
                line += f"; TVD to the exact distribution {row.tvd_to_exact:.4f}"
        lines.append(f"{line}.")
    return (
        "\n".join(lines) + "\n\n`study=cloze_file study.path=.../study.nc` reads the study of people's answers and the "
        "models' words. Draws that give no word are failed samples in it, which the word rules leave out: players are "
        f"compared given that a word begins. {computed}"
    )
