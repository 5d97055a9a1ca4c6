"""``+exp=text_players``: language models answer the questions of a comparison study in words, as people do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison import HUMAN, estimate_perplexity, round_reports
from shannon_game.estimators.comparison.importance import drawn_response_mask
from shannon_game.estimators.comparison.stated import StatedBelief, both_orders, stated_belief
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.estimators.messages import Set
from shannon_game.experiments.comparison.text_players.answers import (
    ORDERS,
    Said,
    answer_rows,
    believed_nats,
    probability_of,
    say,
)
from shannon_game.experiments.comparison.text_players.figures import said_figure
from shannon_game.experiments.comparison.text_players.pairs import (
    VERBALISED,
    Pairs,
    TextPlayersSettings,
    answered_study,
    asked_pairs,
)
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.language_models import open_work
from shannon_game.experiments.harness.plots import declared_forest
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.text_models import text_players as players_of
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.inference.store.keys import result_key

PEOPLE, BELIEF, BASELINE = "people", "belief", "baseline"
ALWAYS_HALF = "always 50%"


class TextPlayersRow(column.Row):
    """One player and way; estimates compare with the belief, or are equation 5 on the answers."""

    player: str = column.key("participant or model", players=True)
    way: str = column.key(
        "people: the study's own responses; belief: the model's probabilities of both tokens; verbalised, boxes, "
        "options: what it answers in text; baseline: whoever says 50% to every pair"
    )
    rounding: str = column.key("grid to which answers are rounded", usual="none")
    n_pairs: int = column.context("pairs of tokens")
    n_questions: int = column.context("questions")
    n_unreadable: int = column.context("answers that cannot be read")
    position_bias_nats: float = column.estimate("mean log-odds of A over both orders: 0 without a bias", unit="nats")
    slope: float = column.estimate("log-odds said per log-odds believed", se="slope_se")
    correlation: float = column.detail("correlation of what is said and believed")
    agreement: float = column.beside("slope", "share of pairs where both favour the same token")
    distance_nats: float = column.detail("mean distance of what is said and believed", unit="nats")
    gap_nats: float = column.detail("loss minus the generator's", unit="nats", se="se_items_nats")
    perplexity: float = column.headline("perplexity per token", scale="log", interval="perplexity_{}")
    pareto_k: float = column.detail("tail of the leave-one-out weights")
    verdict: str = column.flag("whether the pairs per item are enough", bad={"too few": "‡", "doubtful": "†"})


@dataclass(frozen=True, eq=False)
class Played:
    """One model in one way, with studies of its answers: on the game's eleven values, and exact."""

    player: str
    said: Said
    study: xr.Dataset | None
    exact: xr.Dataset | None
    compared: StatedBelief
    bias_nats: float
    said_nats: FloatArray
    believed_nats: FloatArray
    unreadable: Counter[str]
    answers: pd.DataFrame

    @property
    def name(self) -> str:
        """Model and way."""
        return f"{self.player}, {self.said.way}"


@experiment(TextPlayersSettings, row=TextPlayersRow)
def text_players(study: xr.Dataset, settings: TextPlayersSettings) -> ExperimentResult:
    """Let language models answer a study's questions in text, and compare what they say with what they believe.

    Its ``tables`` have every answer and those that could not be read; the folder ``studies`` has a comparison study of
    every model and way, which ``comparison_file`` reads.
    """
    pairs = _mine(settings, asked_pairs(study, settings))
    rows = _references(study, pairs)
    played: list[Played] = []
    for player in players_of(settings, settings.seed):
        believed = believed_nats(player, pairs) if settings.belief else np.full(len(pairs.target), np.nan)
        if np.isfinite(believed).any():
            rows += _belief_rows(study, pairs, player.name, believed)
        for way in settings.ways:
            one = _played(study, pairs, player.name, say(player, pairs, way), believed)
            played.append(one)
            rows += _text_rows(one, pairs)
    table = TextPlayersRow.table(rows)
    known = table[np.isfinite(table["perplexity"].astype(float))]
    # an interval of too few answers is too narrow: it should not look as sure as the others
    known = known.assign(alpha=np.where(known["verdict"] == "too few", 0.35, 1.0))
    title, bars = "Perplexity of what players say", "estimate ± 2 s.e. (over items); pale: too few answers"
    about = str(study.attrs["name"])
    figures = {"perplexity": declared_forest(known, TextPlayersRow.columns, title, about, bars=bars)}
    panels = {
        one.name: (one.believed_nats[~pairs.automatic], one.said_nats[~pairs.automatic], one.compared)
        for one in played
        if one.compared.n_pairs
    }
    figures |= {"said": said_figure(panels)} if panels else {}
    unread = [(one.player, one.said.way, text, n) for one in played for text, n in one.unreadable.most_common()]
    unreadable = pd.DataFrame(unread, columns=["player", "way", "answer", "n"])
    files = {"studies": partial(_write, {f"{one.player}_{one.said.way}": one.study for one in played})}
    return ExperimentResult(
        table=table,
        dataset=_dataset(table, played, pairs, item_labels(study)),
        figures=figures,
        text=summary(table, settings, [one.said.said for one in played if one.said.said]),
        warnings=_warnings(table, played, pairs),
        tables={"answers": pd.concat([one.answers for one in played], ignore_index=True), "unreadable": unreadable},
        writers=files,
    )


def _mine(settings: TextPlayersSettings, pairs: Pairs) -> Pairs:
    keys = [result_key(*each) for each in zip(pairs.context, pairs.target, pairs.other, strict=True)]
    mine = open_work(settings).mine(keys)
    if not mine.size:
        raise InputError(f"holds none of the {len(keys)} pairs; take fewer shards", field="shard")
    return pairs.take(mine)


def _played(study: xr.Dataset, pairs: Pairs, player: str, said: Said, believed: FloatArray) -> Played:
    said_nats, lean = both_orders(*said.probability_a.T)
    averaged = probability_of(said_nats)
    if said.way == VERBALISED:
        given = [(f"{player} (target {side})", said.reports[:, order]) for order, side in enumerate(ORDERS)]
        reports = said.reports
    else:
        # probabilities are the same however often they are asked for: both orders are one answer
        given = [(player, averaged)]
        reports = np.column_stack([averaged, averaged])
    on_values = [(name, _rounded(values)) for name, values in given]
    name = f"{study.attrs['name']}, {player} {said.way}"
    asked = ~pairs.automatic
    return Played(
        player,
        said,
        answered_study(study, pairs, on_values, name),
        answered_study(study, pairs, given, name),
        stated_belief(said_nats[asked], believed[asked], pairs.position[asked]),
        float(np.nanmean(lean)) if np.isfinite(lean).any() else np.nan,
        said_nats,
        believed,
        said.unreadable(pairs),
        answer_rows(player, said, pairs, item_labels(study)[pairs.position], _rounded(reports)),
    )


def _rounded(reports: FloatArray) -> FloatArray:
    """Round to the game's eleven values; what is missing stays so."""
    known = np.isfinite(reports)
    rounded = np.full(reports.shape, np.nan)
    rounded[known] = round_reports(reports[known], "interface")
    return rounded


def _row(study: xr.Dataset | None, player: str, way: str, rounding: str = "none", **more: Any) -> dict[str, Any]:
    row = {"player": player, "way": way, "rounding": rounding, **more}
    if study is None:
        return row | {"verdict": "no answer"}
    found = estimate_perplexity(study, HUMAN)
    return {**vars(found.gap.diagnostics), **vars(found.gap), **vars(found), **row}


def _references(study: xr.Dataset, pairs: Pairs) -> list[dict[str, Any]]:
    half = answered_study(study, pairs, [(ALWAYS_HALF, np.full(len(pairs.target), 0.5))], ALWAYS_HALF)
    baseline = _row(half, ALWAYS_HALF, BASELINE, n_pairs=pairs.n_asked)
    drawn = drawn_response_mask(study)
    if not drawn.any():
        return [baseline]
    n_questions = int((drawn & ~study["automatic"].to_numpy()).sum())
    return [_row(study, HUMAN, PEOPLE, n_questions=n_questions), baseline]


def _belief_rows(study: xr.Dataset, pairs: Pairs, player: str, believed: FloatArray) -> list[dict[str, Any]]:
    exact = probability_of(believed)
    name = f"{study.attrs['name']}, {player} {BELIEF}"
    return [
        _row(answered_study(study, pairs, [(player, reports)], name), player, BELIEF, rounding, n_pairs=pairs.n_asked)
        for rounding, reports in (("none", exact), ("interface", _rounded(exact)))
    ]


def _text_rows(one: Played, pairs: Pairs) -> list[dict[str, Any]]:
    more = {
        **vars(one.compared),
        "n_pairs": pairs.n_asked,
        "n_questions": pairs.n_asked * len(ORDERS),
        "n_unreadable": sum(one.unreadable.values()),
        "position_bias_nats": one.bias_nats,
    }
    studies = {"none": one.exact} | ({"interface": one.study} if one.said.way != VERBALISED else {})
    return [_row(its, one.player, one.said.way, rounding, **more) for rounding, its in studies.items()]


def _dataset(table: pd.DataFrame, played: list[Played], pairs: Pairs, labels: NDArray[Any]) -> xr.Dataset:
    of_pair, nats = ("text_player", "pair"), {"units": "nats"}
    probability_a = np.stack([one.said.probability_a for one in played])
    return xr.Dataset(
        {
            **TextPlayersRow.variables(table, "row"),
            "said_nats": (of_pair, np.stack([one.said_nats for one in played]), nats),
            "believed_nats": (of_pair, np.stack([one.believed_nats for one in played]), nats),
            "probability_a": ((*of_pair, "target_side"), probability_a),
            "pair_item": ("pair", labels[pairs.position]),
            "pair_candidate": ("pair", pairs.candidate),
        },
        coords={"text_player": [one.name for one in played], "target_side": list(ORDERS)},
    )


def _warnings(table: pd.DataFrame, played: list[Played], pairs: Pairs) -> tuple[str, ...]:
    n_questions = pairs.n_asked * len(ORDERS)
    said = [
        f"{sum(one.unreadable.values()):,} of {n_questions:,} answers of {one.player} ({one.said.way}) cannot be read "
        f"and are left out, most often {one.unreadable.most_common(1)[0][0]!r}; unreadable.csv lists them"
        for one in played
        if one.unreadable
    ]
    few = table[(table["verdict"] == "too few") & (table["way"] != PEOPLE)]
    if len(few):
        said.append(
            f"too few pairs per item for equation 5: {', '.join(dict.fromkeys(few['player'] + ' ' + few['way']))}; "
            f"these perplexities are too low: raise {Set('experiment.pairs_per_item')}, or compare with {ALWAYS_HALF!r}"
        )
    return tuple(said)


def _write(studies: Mapping[str, xr.Dataset | None], folder: Path) -> None:
    folder.mkdir()
    for name, study in studies.items():
        if study is not None:
            save_comparison_study(study, folder / f"{name}.nc")


_WAYS = ("verbalised", "boxes", "options")


def summary(table: pd.DataFrame, settings: TextPlayersSettings, costs: Sequence[str]) -> str:
    """Say how each player answered, and how far that is from what it believes."""
    how = "greedy" if settings.temperature == 0 else f"temperature {settings.temperature:g}"
    said = []
    for row in rows_of(table[table["rounding"] == "none"]):
        interval = f"{row.perplexity:.1f} [{row.perplexity_lower:.1f}, {row.perplexity_upper:.1f}]"
        text = f"{interval if np.isfinite(row.perplexity) else 'not known'} for {row.player} ({row.way})"
        if row.way in _WAYS and np.isfinite(row.slope):
            text += f", which says {row.slope:.2g} of each nat that it believes"
        said.append(text)
    about = (
        f"**Asked in words, the perplexity is {listed(said)}.** Every pair of tokens was asked in both orders, by the "
        f"prompt `{settings.prompt.name}` ({how}); equal strings are answered 50%, as the game does. Perplexities are "
        "of equation 5: noise and rounding make them too high, few pairs per item too low."
    )
    return "\n\n".join([about, *dict.fromkeys(costs)])
