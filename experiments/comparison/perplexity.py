"""``+exp=perplexity``: perplexity of humans and of every model as a player, raw and rounded (figures 4 and 9)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.comparison import (
    ESTIMATORS,
    HUMAN,
    PerplexityEstimate,
    comparison_items,
    comparison_participants,
)
from shannon_game.estimators.comparison.importance import drawn_response_mask
from shannon_game.estimators.messages import Ask, Set
from shannon_game.experiments.comparison import estimates
from shannon_game.experiments.comparison.estimates import ComparisonSettings, EstimateRow, EstimatorSettings, bars_label
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import TRUTH_ASKED, TRUTH_REFERENCE, Series, player_label
from shannon_game.experiments.harness.plots import declared_forest
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult, choice, experiment
from shannon_game.experiments.harness.settings import rows_of

_VERDICTS = {
    "too few": "too few responses per item, so that equation 5 is too low by itself: ask more per item (the column "
    "n_required says how many), and fit human_loss for people (Pareto k, share of items with under two effective "
    "responses)",
    "doubtful": "responses per item may be too few: ask more per item (the column n_required says how many; "
    "Pareto k, share of items with under two effective responses)",
}


class PerplexitySettings(ComparisonSettings):
    """Settings of :func:`perplexity`."""


class PerplexityRow(EstimateRow):
    """One player under one rounding, in bits as well: the paper's unit; a perplexity is the same in both."""

    gap_bits: float = column.detail("gap_nats in bits", unit="bits", value=lambda row: row.gap_nats / np.log(2))
    responses_per_item: float = column.detail("responses per item", value=lambda row: row.n_responses / row.n_items)
    loss_bits: float = column.detail("loss in bits", unit="bits", value=lambda row: np.log2(row.perplexity))


_VARIED = {
    name: f"shannon_game.experiments.comparison.{name}.{name}"
    for name in ("rounding", "bootstrap", "sample_size", "token_classes", "extrapolation")
}


@choice("vary", "nothing", _VARIED)
@experiment(PerplexitySettings, row=PerplexityRow)
def perplexity(study: xr.Dataset, settings: PerplexitySettings) -> ExperimentResult:
    """Estimate every player's perplexity, unrounded and under one rounding (figures 4 and 9 of the paper).

    One row per player and rounding, with gap and loss in bits as well. Its ``tables`` have one row per item
    (:func:`shannon_game.estimators.comparison.comparison_items`, unrounded) and one row per participant
    (:func:`shannon_game.estimators.comparison.comparison_participants`).

    Examples
    --------
    >>> from shannon_game import perplexity, simulated
    >>> study = simulated(n_items=12, n_reference_items=30, vocab_size=300, n_candidates=40, n_participants=8)
    >>> result = perplexity(study, players="lm-weak", rounding="none")
    >>> result.table[["player", "perplexity"]].round(1)
        player  perplexity
    0  lm-weak        23.8
    """
    study, control = estimates.asked_for(study, settings)
    schemes = estimates.compared_schemes(settings.rounding)
    players = estimates.chosen_players(study, settings.players)
    results = [estimates.estimate(settings, study, player, scheme) for player in players for scheme in schemes]
    table = PerplexityRow.table(estimates.estimate_row(result, control, PerplexityRow) for result in results)
    estimator, generator = settings.estimator.function, settings.generator
    drawn_by = {"generator": generator.name, "control_only": generator.control_only}
    tables = {"items": comparison_items(study, players, estimator=estimator, **drawn_by)}
    tables |= {"participants": comparison_participants(study)} if drawn_response_mask(study).any() else {}
    twice = _rounded_already(table)
    return ExperimentResult(
        table=table,
        on_screen=table[~twice],
        dataset=estimates_dataset(results, table, PerplexityRow),
        tables=tables,
        figures={"perplexity": perplexity_figure(table, study.attrs["name"], settings.estimator)},
        text=summary(table),
        warnings=(*_study_warnings(study, table, settings), *sampling_warnings(table[~twice])),
    )


def _study_warnings(study: xr.Dataset, table: pd.DataFrame, settings: PerplexitySettings) -> list[str]:
    said = (
        ["there is one item, so that no standard error over items exists: ask about more items"]
        if (table["n_items"] == 1).all()
        else []
    )
    if settings.estimator.reference != "asked" and not study["selected"].all():
        said.append(
            f"as in the paper, the gap is over the {int(study['selected'].sum())} items that pass the filter, the "
            f"generator's loss over all {int(study['in_reference'].sum())} reference items; set "
            f"{Set('estimator.reference', 'asked')} to take the items asked for both"
        )
    if n_left_out := int(np.sum(~drawn_response_mask(study))):
        said.append(
            f"{n_left_out} of {study.sizes['response']} responses are left out, as they are about people's free "
            f"answers or compare two candidates; {Ask('human_loss')} uses them"
        )
    return said


def estimates_dataset(results: list[PerplexityEstimate], table: pd.DataFrame, kind: type[EstimateRow]) -> xr.Dataset:
    """All that is needed to redraw: every item's log-mean, with the estimates beside it."""
    items = pd.Index(dict.fromkeys(item for result in results for item in result.gap.item.tolist()))
    item_gap = np.full((len(results), items.size), np.nan)
    item_n = np.zeros((len(results), items.size), dtype=np.int64)
    for row, result in enumerate(results):
        at = items.get_indexer(result.gap.item)
        item_gap[row, at] = result.gap.item_gap_nats
        item_n[row, at] = result.gap.item_n
    return xr.Dataset(
        {
            "item_gap_nats": (("estimate", "item"), item_gap, {"units": "nats"}),
            "item_n": (("estimate", "item"), item_n),
            **kind.variables(table, "estimate", but=["generator"]),
        },
        coords={"item": items},
        attrs={"generator": table["generator"].iloc[0]},
    ).set_coords(["player", "rounding"])


def sampling_warnings(table: pd.DataFrame) -> tuple[str, ...]:
    """One warning a verdict, naming the rows whose number of responses is not enough (or may not be).

    People get one in any case: what moves their number is not the draws alone. That of ``too few`` says it already.
    """
    found = []
    for verdict, meaning in _VERDICTS.items():
        rows = [
            f"{row.player}/{row.rounding} (k {row.pareto_k:.2f}, {row.share_starved:.0%} starved)".replace(
                "k nan, ", ""
            )
            for row in rows_of(table)
            if row.verdict == verdict
        ]
        if rows:
            found.append(f"{meaning}: {', '.join(rows)}")
    people = [row.rounding for row in rows_of(table) if row.player == HUMAN and row.verdict != "too few"]
    if people:
        found.append(
            "the verdict on people counts responses only; noise, bias and rounding of their reports move equation 5 "
            f"too: fit {Ask('human_loss')}, which models them (rounding {', '.join(people)})"
        )
    return tuple(found)


def summary(table: pd.DataFrame) -> str:
    """Say every player's perplexity, and how far the estimates are from the truth, where it is known."""
    rows = rows_of(table[table["rounding"] == table["rounding"].iloc[0]])
    said = [
        f"{row.perplexity:.1f} for {player_label(row.player)} (the generator)"
        if row.player == row.generator
        else f"{row.perplexity:.1f} [{row.perplexity_lower:.1f}, {row.perplexity_upper:.1f}] for "
        f"{player_label(row.player)}"
        for row in rows
    ]
    rounding = table["rounding"].iloc[0]
    how = "from the reports as given" if rounding == "none" else f"with reports rounded to {rounding}"
    errors = [f"{player_label(row.player)} {_off(row.error_nats)}" for row in rows if np.isfinite(row.error_nats)]
    what = "Intervals are of chance alone and leave the estimator's own error out."
    if set(table["estimator"]) & set(ESTIMATORS):
        what = (
            "Equation 5 has errors that the intervals do not show. It is too low where responses per item are few, "
            "and too high where reports are rounded or noisy."
        )
    truth = f" Errors of the estimated gaps: {listed(errors)}." if errors else " The truth is not known."
    return f"**Perplexity per token is {listed(said)}**, {how}.{truth} {what}"


def _off(error: float) -> str:
    return "exact" if abs(error) < 5e-7 else f"{abs(error):.3f} nats too {'high' if error > 0 else 'low'}"


def _rounded_already(table: pd.DataFrame) -> pd.Series[bool]:
    """Which rows are of people's reports on a grid that they are on already: the row above says the same."""
    people = table["player"] == HUMAN
    given = table.loc[people & (table["rounding"] == "none"), "gap_nats"]
    if given.empty:
        return people & False
    same: pd.Series[bool] = (table["gap_nats"] - given.iloc[0]).abs() < 1e-12
    return people & (table["rounding"] != "none") & same


def perplexity_figure(table: pd.DataFrame, study_name: str = "", estimator: EstimatorSettings | None = None) -> Figure:
    """Estimates with bars and truths, one line per player and rounding, on a log axis."""
    reference = Series("true_perplexity", marker="*", size=7, offset=-0.28, label=TRUTH_REFERENCE)
    name = (estimator or EstimatorSettings()).name
    about = study_name if name == EstimatorSettings().name else f"{study_name}; estimator {name}"
    title, look = "What perplexity do people and models have?", {"bars": bars_label(estimator), "truth": TRUTH_ASKED}
    rows, columns = table[~_rounded_already(table)], PerplexityRow.columns
    fig = declared_forest(rows, columns, title, about, more=[reference], **look)
    estimates.grey_roundings(fig.axes[0])
    return fig
