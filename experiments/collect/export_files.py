"""Everything that a database holds of a study, as files in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session as Transaction

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.export import (
    export_csv,
    games_answered,
    pay_table,
    survey_answers,
    tidy_answers,
)
from shannon_game.experiments.collect.settings import PaySettings
from shannon_game.experiments.collect.tables import Study
from shannon_game.inference.disk import write_whole
from shannon_game.inference.manifest import replaced


def chosen_study(transaction: Transaction, collection: str | None = None) -> Study:
    """Find the study of a database by its name or number; the only one by default."""
    there = transaction.scalars(select(Study).order_by(Study.id)).all()
    named = {study.id: (study.name, study.name) for study in there}
    chosen = chosen_number(named, collection, source="database")
    return next(study for study in there if study.id == chosen)


def chosen_number(there: Mapping[int, tuple[str, str]], wanted: str | None, *, source: str) -> int:
    """Find a study by its name or number; the only one by default."""
    found = [number for number, (name, _) in there.items() if wanted is None or wanted in (str(number), name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{number} ({said})" for number, (_, said) in there.items()) or "none"
    if wanted is None or found:
        problem = f"should name one of the studies in the database: {listed}"
    else:
        problem = f"is {wanted!r}; there are {listed}"
    raise InputError(problem, source=source, field="collection")


def write_exports(transaction: Transaction, study: Study, folder: Path | str, *, pay: bool = True) -> list[Path]:
    """Write ``answers_GAME.csv`` for every game that was answered, ``surveys.csv`` and ``pay.csv``."""
    folder = Path(folder)
    tables = {
        f"answers_{game}": tidy_answers(transaction, game, study_ids=[study.id])
        for game in games_answered(transaction, study_ids=[study.id])
    }
    tables["surveys"] = survey_answers(transaction, study_ids=[study.id])
    if pay:
        tables["pay"] = pay_table(transaction, study.id, PaySettings(**study.settings.get("pay", {})))
    with replaced(folder, "export") as staging:
        for name, table in tables.items():
            write_whole(staging / f"{name}.csv", export_csv(table), private=True)
    return [folder / f"{name}.csv" for name in tables]
