"""``+exp=text_players``: language models answer the questions of a comparison study in words, as people do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison.chance import AT_CHANCE, FEWEST_ITEMS, TOO_FEW
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN, item_labels
from shannon_game.experiments.comparison.text_players.answers import (
    ORDERS,
    answer_rows,
    believed_nats,
    probability_of,
    say,
)
from shannon_game.experiments.comparison.text_players.compared import (
    ALWAYS_HALF,
    BASELINE,
    BELIEF,
    Compared,
    Played,
    asked_player,
    on_values,
    people_pairs,
    people_row,
    player_rows,
    same_pairs,
)
from shannon_game.experiments.comparison.text_players.figures import said_figure
from shannon_game.experiments.comparison.text_players.pairs import VERBALISED, Pairs, TextPlayersSettings, asked_pairs
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.language_models import open_work
from shannon_game.experiments.harness.plots import declared_forest
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.text_models import text_players as players_of
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.inference.store.keys import result_key


class TextPlayersRow(column.Row):
    """One player and way, on the pairs that are compared: beside always 50%, beside its belief, and by equation 5."""

    player: str = column.key("participant or model", players=True)
    way: str = column.key(
        "people: the study's own responses; belief: the model's probabilities of both tokens; verbalised, boxes, "
        "options: what it answers in text; baseline: whoever says 50% to every pair"
    )
    rounding: str = column.key("grid to which answers are rounded", usual="none")
    n_items: int = column.context("items")
    n_pairs: int = column.context("pairs of tokens that are compared")
    n_questions: int = column.context("questions")
    n_unreadable: int = column.context("answers that cannot be read")
    points: float = column.headline("points per question above always 50%", interval="points_{}")
    standing: str = column.flag("beside always 50%, by the interval of the points", "points", bad={TOO_FEW: "‡"})
    favoured: float = column.beside("points", "share of questions where the token of the text is favoured")
    position_bias_nats: float = column.estimate("mean log-odds of A over both orders: 0 without a bias", unit="nats")
    slope: float = column.estimate("log-odds said per log-odds believed", se="slope_se")
    correlation: float = column.detail("correlation of what is said and believed")
    agreement: float = column.beside("slope", "share of pairs where both favour the same token")
    distance_nats: float = column.detail("mean distance of what is said and believed", unit="nats")
    gap_nats: float = column.detail("loss minus the generator's", unit="nats", se="se_items_nats")
    perplexity: float = column.estimate("perplexity per token", scale="log", interval="perplexity_{}")
    pareto_k: float = column.detail("tail of the leave-one-out weights")
    verdict: str = column.flag("whether the pairs per item are enough for equation 5", "perplexity")


@experiment(TextPlayersSettings, row=TextPlayersRow)
def text_players(study: xr.Dataset, settings: TextPlayersSettings) -> ExperimentResult:
    """Let language models answer a study's questions in text, beside people and beside always saying 50%.

    Everybody is compared on the same pairs. Its ``tables`` have every answer and those that could not be read; the
    folder ``studies`` has a comparison study of every model and way, which ``comparison_file`` reads.
    """
    pairs = _mine(settings, asked_pairs(study, settings))
    others = [Played(ALWAYS_HALF, BASELINE, {ALWAYS_HALF: np.full(len(pairs.target), 0.5)})]
    played: list[Played] = []
    for player in players_of(settings, settings.seed):
        believed = believed_nats(player, pairs) if settings.belief else np.full(len(pairs.target), np.nan)
        if np.isfinite(believed).any():
            others.append(Played(player.name, BELIEF, {player.name: probability_of(believed)}))
        played += [asked_player(player.name, say(player, pairs, way), believed) for way in settings.ways]
    everybody = [*others, *played]
    compared = same_pairs(pairs, everybody, people_pairs(study, pairs), cut=settings.same_pairs)
    rows = [people_row(study, compared, settings.interval)] if (compared.people >= 0).any() else []
    rows += [row for one in everybody for row in player_rows(study, pairs, one, compared, settings.interval)]
    table = TextPlayersRow.table(rows)
    known = table[np.isfinite(table["points"].astype(float)) & (table["way"] != BASELINE)]
    title, bars = "Points above always 50%", f"estimate, {settings.interval:.0%} interval (over items)"
    figures = {}
    if len(known):
        figures["points"] = declared_forest(known, TextPlayersRow.columns, title, str(study.attrs["name"]), bars=bars)
    panels = {
        one.name: (one.believed_nats, one.said.nats, stated)
        for one in played
        if one.said is not None and one.believed_nats is not None
        if (stated := one.stated(pairs, ~pairs.automatic)) is not None and stated.n_pairs
    }
    figures |= {"said": said_figure(panels)} if panels else {}
    labels = item_labels(study)
    studies = {f"{one.player}_{one.way}": one.study(study, pairs, rounded=True) for one in played}
    return ExperimentResult(
        table=table,
        dataset=_dataset(table, played, pairs, labels),
        figures=figures,
        text=summary(table, settings, pairs, compared, [one.said.said for one in played if one.said and one.said.said]),
        warnings=_warnings(table, played, pairs),
        tables=_tables(played, pairs, labels[pairs.position]),
        writers={"studies": partial(_write, studies)},
    )


def _mine(settings: TextPlayersSettings, pairs: Pairs) -> Pairs:
    keys = [result_key(*each) for each in zip(pairs.context, pairs.target, pairs.other, strict=True)]
    mine = open_work(settings).mine(keys)
    if not mine.size:
        raise InputError(f"holds none of the {len(keys)} pairs; take fewer shards", field="shard")
    return pairs.take(mine)


def _tables(played: Sequence[Played], pairs: Pairs, item: NDArray[Any]) -> dict[str, pd.DataFrame]:
    """Every answer, and those that cannot be read."""
    unread, answers = [], []
    for one in played:
        if one.said is not None:
            unread += [(one.player, one.way, text, n) for text, n in one.said.unreadable(pairs).most_common()]
            # both orders of probabilities are one answer
            reports = np.column_stack([*one.reports.values()] * (1 if one.way == VERBALISED else len(ORDERS)))
            answers.append(answer_rows(one.player, one.said, pairs, item, on_values(reports)))
    columns = ["player", "way", "answer", "n"]
    return {"answers": pd.concat(answers, ignore_index=True), "unreadable": pd.DataFrame(unread, columns=columns)}


def _dataset(table: pd.DataFrame, played: list[Played], pairs: Pairs, labels: NDArray[Any]) -> xr.Dataset:
    of_pair, nats = ("text_player", "pair"), {"units": "nats"}
    said = [one.said for one in played if one.said is not None]
    return xr.Dataset(
        {
            **TextPlayersRow.variables(table, "row"),
            "said_nats": (of_pair, np.stack([its.nats for its in said]), nats),
            "believed_nats": (of_pair, np.stack([np.asarray(one.believed_nats) for one in played]), nats),
            "probability_a": ((*of_pair, "target_side"), np.stack([its.probability_a for its in said])),
            "pair_item": ("pair", labels[pairs.position]),
            "pair_candidate": ("pair", pairs.candidate),
        },
        coords={"text_player": [one.name for one in played], "target_side": list(ORDERS)},
    )


def _warnings(table: pd.DataFrame, played: list[Played], pairs: Pairs) -> tuple[str, ...]:
    n_questions = pairs.n_asked * len(ORDERS)
    unread = [(one, one.said.unreadable(pairs)) for one in played if one.said is not None]
    said = [
        f"{its.total():,} of {n_questions:,} answers of {one.player} ({one.way}) cannot be read and are left out, most "
        f"often {its.most_common(1)[0][0]!r}; unreadable.csv lists them"
        for one, its in unread
        if its
    ]
    if few := int((table["standing"] == TOO_FEW).sum()):
        said.append(
            f"fewer than {FEWEST_ITEMS} items in {few} rows of table.csv, whose intervals are not to be relied on"
        )
    return tuple(said)


def _write(studies: Mapping[str, xr.Dataset | None], folder: Path) -> None:
    folder.mkdir()
    for name, study in studies.items():
        if study is not None:
            save_comparison_study(study, folder / f"{name}.nc")


def summary(
    table: pd.DataFrame, settings: TextPlayersSettings, pairs: Pairs, compared: Compared, costs: Sequence[str]
) -> str:
    """Say how many points each player gains on always 50%, what it says of its belief, and on which pairs."""
    how = "greedy" if settings.temperature == 0 else f"temperature {settings.temperature:g}"
    exact = [row for row in rows_of(table[table["rounding"] == "none"]) if row.way != BASELINE]
    sure = [row for row in exact if row.standing not in (TOO_FEW, "no answer")]
    gains = [
        f"{named(row)} {row.points:.1f} [{row.points_lower:.1f}, {row.points_upper:.1f}], {row.standing}"
        # its points are below those of 50%, and yet it is not worse than chance
        f"{' (favours neither token, and loses by confidence)' * (row.standing == AT_CHANCE and row.points_upper < 0)}"
        for row in sure
    ]
    few = [named(row) for row in exact if row not in sure]
    first = f"**Points per question above always saying 50%: {'; '.join(gains)}.**" if gains else ""
    missing = f"Of fewer than {FEWEST_ITEMS} items nothing is said: {listed(few)}." if few else ""
    n_pairs, n_asked = int((compared.pairs & ~pairs.automatic).sum()), pairs.n_asked
    same = f"Everybody is compared on the same {n_pairs:,} of {n_asked:,} pairs"
    if compared.apart:
        same += f", but for those with answers to less than half of them: {listed(compared.apart)}"
    about = (
        f"Intervals are {settings.interval:.0%}, over items; {AT_CHANCE} is whoever's interval holds 0, or favours "
        f"neither token. {same if settings.same_pairs else 'Each player is taken on all pairs that it answered'}. "
        f"Every pair was asked in both orders, by the prompt `{settings.prompt.name}` ({how}); equal strings are "
        "answered 50%, as the game does."
    )
    slopes = [f"{row.slope:.2g} ({named(row)})" for row in exact if np.isfinite(row.slope)]
    believed = f"Of each nat that a model believes it says {listed(slopes)}." if slopes else ""
    enough = [f"{row.perplexity:.1f} ({named(row)})" for row in exact if row.verdict not in (TOO_FEW, "no answer")]
    perplexity = (
        f"Perplexities by equation 5 are {listed(enough)}." if enough else "For perplexities, pairs are too few."
    )
    return "\n\n".join(
        filter(
            None,
            [
                first or missing,
                missing if first else "",
                about,
                f"{believed} {perplexity}".strip(),
                *dict.fromkeys(costs),
            ],
        )
    )


def named(row: Any) -> str:
    """Player and way, as a sentence names it."""
    return "people" if row.player == HUMAN else f"{row.player} by {row.way}"
