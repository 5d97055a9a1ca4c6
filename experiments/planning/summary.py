"""What was planned, in words: the recommendation, or the frontier, and a paragraph to preregister."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from shannon_game.estimators.comparison import QuestionPlan
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.report import fill
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.planning.figures import GAME_LABELS
from shannon_game.experiments.planning.points import SHARE_GAMES
from shannon_game.experiments.planning.replicates import COVERAGE_SLACK
from shannon_game.experiments.planning.settings import ADAPTIVE, DesignSettings
from shannon_game.experiments.planning.worlds import N_TRIED, StudyContexts

_OF = {
    "the loss of people's belief": ("comparison", "bridge", ADAPTIVE, "mixed"),
    "what people lose in bets": ("bets",),
    "the TVD of people and the generator": ("cloze",),
    "people's accuracy": ("accuracy",),
    "Shannon's upper bound": ("ranks",),
}


def summary(table: pd.DataFrame, contexts: StudyContexts, settings: DesignSettings) -> str:
    """Say which design is recommended and what it promises; where there is none, how far the budget reaches."""
    found = _recommended(table)
    lines = [
        _frontier(table, what, settings)
        if row is None
        else f"**For {what}: {GAME_LABELS[row.game]}**, {_sizes(row)}; {_cost(row)}. {_promise(row, settings)}\n"
        for what, row in found.items()
    ]
    worlds = "a pilot's posterior" if settings.pilot else "the assumptions that the settings state"
    lines.append(
        f"People were drawn from {worlds}, {settings.assumed.n_beliefs} worlds in all. A recommended design is the "
        f"cheapest that keeps the wanted width in {settings.assurance:.0%} of the simulated studies and whose "
        f"intervals cover in {settings.interval - COVERAGE_SLACK:.0%} ({COVERAGE_SLACK:.0%} less than stated), each "
        "with a Monte-Carlo standard error to spare. Bets estimate what was really lost; `bias_to_belief` says how "
        "far that is from the belief's loss."
    )
    chosen = [preregistration(row, contexts, settings) for row in found.values() if row is not None]
    return "\n".join(lines) + "".join(f"\n\n{text}" for text in (["## To preregister", *chosen] if chosen else []))


def conclusion(table: pd.DataFrame, settings: DesignSettings) -> tuple[str, ...]:
    """Say what is recommended, a line a number that is estimated: for the screen."""
    return tuple(
        f"For {what}: {_not_reached(table, what, settings)}."
        if row is None
        else f"For {what}: {GAME_LABELS[row.game]}, {_sizes(row)}; {_cost(row)}."
        for what, row in _recommended(table).items()
    )


def preregistration(row: Any, contexts: StudyContexts, settings: DesignSettings) -> str:
    """Write the paragraph that fixes a design before its study."""
    return " ".join(
        fill(
            "preregistration.md",
            Path(__file__).parent,
            row=row._asdict(),
            study=contexts.name,
            settings=settings,
            estimator=_ESTIMATORS[row.game],
            bets="".join(_of_one_person(row)).removesuffix(" a person"),
            unit=_unit(row.game),
            against="the generator" if row.game == "accuracy" else player_label(contexts.against),
            adaptive=ADAPTIVE,
            plan=QuestionPlan,
            n_tried=N_TRIED,
        ).split()
    )


def design_warnings(table: pd.DataFrame, settings: DesignSettings) -> tuple[str, ...]:
    """Warn of what was not reached and of too few simulations."""
    found = [
        f"no design for {what} within the budget keeps the wanted width in {settings.assurance:.0%} of the studies "
        "together with its coverage"
        for what, row in _recommended(table).items()
        if row is None
    ]
    if settings.n_replicates < 100:
        error = (settings.interval * (1 - settings.interval) / settings.n_replicates) ** 0.5
        found.append(
            f"n_replicates is {settings.n_replicates}: a coverage of {settings.interval:.0%} is known to "
            f"{error:.0%} only"
        )
    return tuple(found)


def _recommended(table: pd.DataFrame) -> dict[str, Any]:
    """Cheapest recommended design of every number that is estimated; None where there is none."""
    return {what: _cheapest(table, games) for what, games in _OF.items() if set(games) & set(table["game"])}


def _not_reached(table: pd.DataFrame, what: str, settings: DesignSettings) -> str:
    row = rows_of(table[table["game"].isin(_OF[what])])[0]
    return (
        f"none of the sizes tried within the budget keeps a width of {row.wanted_width:g} {_unit(row.game)} in "
        f"{settings.assurance:.0%} of the studies together with its coverage"
    )


def _cheapest(table: pd.DataFrame, games: tuple[str, ...]) -> Any:
    """Cheapest recommended design of some games, as a named tuple; None where there is none."""
    own = table[table["game"].isin(games) & table["recommended"]].sort_values("minutes")
    return rows_of(own)[0] if len(own) else None


def _frontier(table: pd.DataFrame, what: str, settings: DesignSettings) -> str:
    reached = [
        f"{GAME_LABELS[game]}: {_reached(table, game)}" for game in dict.fromkeys(table["game"]) if game in _OF[what]
    ]
    return (
        f"**For {what}, {_not_reached(table, what, settings).replace('budget', 'budget**', 1)}. Try more contexts, ask "
        f"for a wider interval, or raise the budget, which reaches: {' '.join(reached)}\n"
    )


def _reached(table: pd.DataFrame, game: str) -> str:
    """Say what the narrowest design within the budget would be."""
    own = table[(table["game"] == game) & table["in_budget"]].sort_values("width")
    if not len(own):
        cheapest = rows_of(table[table["game"] == game].sort_values("minutes"))[0]
        return f"Every design costs more than the budget; the cheapest takes {cheapest.minutes:,.0f} minutes."
    row = rows_of(own)[0]
    return (
        f"The narrowest in the budget, {_sizes(row)}, takes {row.minutes:,.0f} minutes: width {row.width:.3f}, "
        f"coverage {row.coverage:.0%}, bias {row.bias:+.3f} {_unit(game)}."
    )


_PER_CONTEXT = {
    "n_draws": "draws",
    "n_answers": "free answers",
    "n_comparisons": "comparisons",
    "n_bets": "bets",
    "n_guesses": "guessers",
}


def _sizes(row: Any) -> str:
    parts = [f"{row.n_people} people, {row.n_contexts} contexts"]
    each = [f"{getattr(row, name)} {word}" for name, word in _PER_CONTEXT.items() if getattr(row, name)]
    if row.game == "cloze":
        parts.append(f"{row.n_answers} cloze answers and as many samples of the model each")
    else:
        parts.append(" and ".join([", ".join(each[:-1]), each[-1]] if len(each) > 1 else each) + " each")
    scale = [f"scale {row.scale}"] if row.scale else []
    return ", ".join([*parts, *scale, *_of_one_person(row)])


def _of_one_person(row: Any) -> list[str]:
    """Say how many bets one person makes: each takes most of a minute."""
    if not row.n_bets:
        return []
    share = 0.5 if row.game == "mixed" else 1.0
    return [f"about {share * row.n_contexts * row.n_bets / row.n_people:.0f} bets a person"]


_BRIDGE = "the bridge between draws and free answers, the scale of reports found from which tokens were answered"
_ESTIMATORS = {
    "comparison": "the mean log importance weight (equation 5)",
    "bridge": _BRIDGE,
    ADAPTIVE: _BRIDGE,
    "bets": "the mean loss of bets less the generator's, the generator filling in for words not named",
    "mixed": "the mean of the bridge and of bets, weighed by their variances",
    "cloze": "the mean TVD, corrected for the size of the samples",
    "accuracy": "the share of guesses that are right",
    "ranks": "Shannon's upper bound from the numbers of guesses",
}


def _promise(row: Any, settings: DesignSettings) -> str:
    right = f", right order in {_share(row, 'p_right_order')}" if row.p_right_order >= 0 else ""
    return (
        f"Width {row.width:.3f} on average, at most {row.wanted_width:g} {_unit(row.game)} in "
        f"{_share(row, 'p_width')} of {row.n_replicates} simulated studies (± Monte-Carlo standard error); "
        f"{settings.interval:.0%} intervals cover {_share(row, 'coverage')}; bias {row.bias:+.3f}{right}."
    )


def _share(row: Any, name: str) -> str:
    """A share of the simulated studies, with its Monte-Carlo standard error."""
    return f"{100 * getattr(row, name):.0f} ± {100 * getattr(row, f'{name}_mcse'):.1f}%"


def _cost(row: Any) -> str:
    return f"{row.minutes:,.0f} minutes of people's time, ${row.money:,.0f}"


def _unit(game: str) -> str:
    return "of 1" if game in SHARE_GAMES else "nats"
