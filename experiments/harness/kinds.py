"""Kinds of study: which there are, and the check that a study is of one that a question takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Load
from shannon_game.estimators.schema import KIND, is_dataset
from shannon_game.experiments.harness.shipped import makers

if TYPE_CHECKING:
    import xarray as xr

KINDS: Mapping[str, str] = {
    "comparison": "shannon_game.estimators.comparison.validate_comparison_study",
    "forecast": "shannon_game.estimators.comparison.validate_forecast_study",
    "cloze": "shannon_game.estimators.cloze.validate_cloze_study",
    "guess": "shannon_game.estimators.guesses.validate_guess_study",
    "ranking": "shannon_game.estimators.rankings.validate_ranking_study",
    "bet": "shannon_game.estimators.bets.validate_bet_study",
    "documents": "shannon_game.estimators.documents.validate_documents_study",
    "estimates": "shannon_game.estimators.documents.validate_estimates_study",
    "corpora": "shannon_game.experiments.boards.corpora.validate_corpora",
    "published": "shannon_game.experiments.papers.published_study.validate_published_study",
}
"""Kind of study -> its validator, whose docstring says what such a study holds."""


def lacking(kind: object, kinds: Collection[str]) -> str:
    """Say what a study of a kind lacks for a question to others, and what gives it; "" where nothing is known."""
    table = Load("comparison_table", {"pairs": "FILE", "answers": "FILE", "generator": "NAME"})
    gives = f"; forecasts have no generator: {table} takes its target_logprob_NAME and candidate_logprob_NAME"
    return gives if kind == "forecast" and "comparison" in kinds else ""


def checked_study(study: xr.Dataset, kinds: Collection[str], asked_by: str) -> xr.Dataset:
    """Let its validator read a study by its labels; one that does not say its kind is of the only kind that is asked.

    Of a question of somebody else's the kinds may not be known: then a study without a kind is left as it is.
    """
    made = " or ".join(f"{name}(...)" for name in makers(kinds))
    made = f", as from {made}" if made else ""
    if not is_dataset(study):
        problem = f"is a {type(study).__name__}, should be a study (xarray.Dataset){made}"
        raise InputError(problem, source=asked_by, field="study")
    kind = study.attrs.get(KIND, next(iter(kinds)) if len(kinds) == 1 else None)
    if kind is None and not kinds:
        return study
    if not isinstance(kind, str) or kind not in (kinds or KINDS):
        given = "the study does not say its kind, which its validator writes" if kind is None else f"is {kind!r}"
        problem = f"{given}; {asked_by} takes {' or '.join(kinds or KINDS)}{lacking(kind, kinds) or made}"
        raise InputError(problem, source=f"study {study.attrs.get('name', '(unnamed)')!r}", field=KIND)
    found: xr.Dataset = resolve_name(KINDS[kind])(study)
    return found
