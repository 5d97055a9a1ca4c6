"""``+exp=practice``: whether the answers of the comparison game get better as people go on."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.estimators.comparison.study_sources import TARGET_POSITION, response_references
from shannon_game.estimators.documents import crossed_slope
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import item_positions
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.marks import mark, named, number_ticks
from shannon_game.experiments.harness.questions import INTERVAL_SE, one_panel
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.settings import Probability, Settings


class PracticeRow(column.Row):
    """One regression of the answers."""

    answers: str = column.key("all answers, or those to the same questions, every question having a level too")
    slope_nats: float = column.headline(
        "change of ln p of the text's token when the number of answers, or what else they are regressed on, doubles; "
        "participants' own levels taken out",
        label="change of ln p per doubling",
        unit="nats",
    )
    se_nats: float = column.se("slope_nats", unit="nats")
    lower_nats: float = column.lower("slope_nats", unit="nats")
    upper_nats: float = column.upper("slope_nats", unit="nats")
    n_responses: int = column.context("answers")
    n_participants: int = column.context("people")
    n_items: int = column.context("questions")
    item_share: float = column.detail("near 1: it is the same for everybody who met a question, as their order can be")
    first_quarter_nats: float = column.estimate("mean of the participants' first quarters", unit="nats")
    last_quarter_nats: float = column.estimate("mean of the participants' last quarters", unit="nats")


_ONE_ORDER = 0.8
_BINS = 8


class PracticeSettings(Settings):
    against: str = "order"
    """What the answers are regressed on: order (answers given before), or a variable of the answers above 0, such as
    client_ms or server_ms of collected answers: whether slow answers are better."""
    automatic: bool = False
    """Count the answers that the site gave by itself."""
    interval: Probability = 0.9
    """Probability inside the intervals."""


@experiment(PracticeSettings, row=PracticeRow)
def practice(study: xr.Dataset, settings: PracticeSettings) -> ExperimentResult:
    """Regress how good an answer is on the number of answers given before.

    Rows of a study stand in the order in which a participant answered. A row for all answers, and one for those to the
    same questions where these stood at different places.

    Examples
    --------
    >>> from shannon_game import practice, simulated
    >>> found = practice(simulated(n_items=30, n_participants=20, vocab_size=300, n_candidates=40))
    >>> found.table[["answers", "n_participants"]]
                  answers  n_participants
    0                 all              20
    1  the same questions              20
    """
    answers = practice_answers(study, against=settings.against, automatic=settings.automatic)
    of = (answers["log_score"], np.log2(answers["x"].to_numpy(dtype=float)), answers["participant"], answers["item"])
    found = {"all": crossed_slope(*of, item_levels=False, probability=settings.interval)}
    # where everybody met the questions in one order, no question was met at two places
    with suppress(InputError):
        found["the same questions"] = crossed_slope(*of, item_levels=True, probability=settings.interval)
    ends = ("slope", "se", "lower", "upper")
    table = PracticeRow.table(
        PracticeRow.of(one, answers=name, **{f"{end}_nats": getattr(one, end) for end in ends}, **_quarters(answers))
        for name, one in found.items()
    )
    variables = PracticeRow.variables(table, "row")
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(variables | table_variables(answers.add_prefix("answer_"), "answer")),
        figures={"practice": practice_figure(answers, str(study.attrs.get("name", "")), settings.against)},
        text=_summary(table, settings.interval, settings.against),
        warnings=_warnings(table) if settings.against == "order" else (),
    )


def practice_answers(study: xr.Dataset, *, against: str = "order", automatic: bool = False) -> pd.DataFrame:
    """How good every answer is, and what came before it."""
    item = item_positions(study, "response_item")
    keep = (response_references(study) == TARGET_POSITION) & (automatic | ~study["automatic"].to_numpy())
    who = study["participant"].to_numpy()[keep].astype(str)
    before = pd.Series(who).groupby(who).cumcount().to_numpy()
    if not (before > 0).any():
        raise InputError("has no participant who gave two answers; nobody can get better", field="participant")
    x = 1.0 + before
    if against != "order":
        numbers = {
            str(name): one.to_numpy()[keep].astype(np.float64)
            for name, one in study.data_vars.items()
            if one.dims == ("response",) and one.dtype.kind in "iuf"
        }
        usable = {name: np.isfinite(values) & (values > 0) for name, values in numbers.items()}
        if against not in numbers:
            known = [name for name, fits in usable.items() if fits.all()]
            raise unknown_choice("variable of every answer", against, ["order", *known], source="against")
        x = numbers[against]
        if n_wrong := int((~usable[against]).sum()):
            raise InputError(f"has {n_wrong} values of {against} that are not above 0", field="against")
    return pd.DataFrame(
        {
            "participant": who,
            "item": study["item"].to_numpy()[item[keep]],
            "n_before": before,
            "x": x,
            "log_score": np.log(study["report"].to_numpy()[keep].astype(float)),
        }
    )


def _quarters(answers: pd.DataFrame) -> dict[str, float]:
    """Means of the participants' first and last quarters."""
    groups = answers.groupby("participant")["x"]
    place = (groups.rank(method="first") - 0.5) / groups.transform("size")
    parts = {"first": place < 0.25, "last": place > 0.75}
    return {f"{name}_quarter_nats": float(answers.loc[part, "log_score"].mean()) for name, part in parts.items()}


def _warnings(table: pd.DataFrame) -> tuple[str, ...]:
    share = float(table["item_share"].iloc[0])
    said = (
        f"Question order is nearly the same for everybody ({share:.0%} of the variation of the place is between "
        "questions), so the slope may be question difficulty, not practice: ask in random orders"
    )
    return (said,) if share >= _ONE_ORDER else ()


def _summary(table: pd.DataFrame, interval: float, against: str) -> str:
    said = [
        f"{row.slope_nats:+.4f} nats [{row.lower_nats:+.4f}, {row.upper_nats:+.4f}] "
        f"({'all answers' if row.answers == 'all' else row.answers})"
        for row in rows_of(table)
    ]
    first, what = table.iloc[0], "the number of answers" if against == "order" else against
    return (
        f"**When {what} doubles, the log-probability of the true token changes by {' and '.join(said)}.** These are "
        f"{first['n_responses']:,} answers of {first['n_participants']} people, with participant fixed effects "
        f"removed and {interval:.0%} intervals clustered over people and questions. The mean is "
        f"{first['first_quarter_nats']:.3f} nats in people's first quarters and {first['last_quarter_nats']:.3f} in "
        "their last ones."
    )


def practice_figure(answers: pd.DataFrame, study_name: str, against: str) -> Figure:
    """Mean of the answers by their number, or another variable, less the levels of people, and of questions, too."""
    starts = np.unique(np.quantile(answers["x"], np.arange(_BINS) / _BINS).round())
    bins = np.clip(np.searchsorted(starts, answers["x"], side="right") - 1, 0, None)
    by_person = answers["log_score"] - answers.groupby("participant")["log_score"].transform("mean")
    by_question = by_person - by_person.groupby(answers["item"]).transform("mean")
    what, how = ("answer number", "as they go on") if against == "order" else (against, f"with {against}")
    with one_panel(4.5, 3.4, f"Do answers get better {how}?", study_name) as (fig, axes):
        middle = answers["x"].groupby(bins).mean()
        shown = ((by_person, "black", "minus the person's mean"), (by_question, "#D55E00", "and the question's"))
        for values, colour, name in shown:
            means, errors = values.groupby(bins).mean(), values.groupby(bins).sem()
            axes.errorbar(
                middle,
                means,
                yerr=INTERVAL_SE * errors,
                fmt="o-",
                markersize=3.5,
                linewidth=1,
                color=colour,
                label=name,
            )
        axes.axhline(0, color="0.55", linewidth=0.8)
        axes.set_xscale("log", base=2)
        powers = 2.0 ** np.arange(25)
        number_ticks(axes.xaxis, powers[(middle.min() / 2 <= powers) & (powers <= middle.max() * 2)])
        axes.set(xlabel=f"{what} (log scale)", ylabel="ln p of the text's token, nats")
        named(
            fig,
            [mark(name, colour, "o", line="-") for _, colour, name in shown] + [mark("bar: 90% interval")],
        )
    return fig
